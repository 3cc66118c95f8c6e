/* log.c: see log.h. A topic is one bit of an atomic, so that a disabled message costs one relaxed load. */
#include "log.h"
#include "counter.h"
#include "error.h"
#include "nearest_word.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOPICS = 0
#define STKI_X(name) +1
    STKI_LOG_TOPICS(STKI_X)
#undef STKI_X
};

static const char *const names[TOPICS] = {
#define STKI_X(name) #name,
    STKI_LOG_TOPICS(STKI_X)
#undef STKI_X
};

static stki_counter topics_on;

static int find_topic(const char *word, size_t length)
{
    int i;

    for (i = 0; i < TOPICS; i++)
        if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
            return i;
    return -1;
}

static stk_status fail_topic(stk_error *err, const char *word, size_t length)
{
    char list[256], given[64];
    const char *nearest;

    snprintf(given, sizeof given, "%.*s", (int)(length < 60 ? length : 60), word);
    nearest = stki_nearest_word(given, names, TOPICS);
    stki_word_list(names, TOPICS, list, sizeof list);
    return stki_fail(err, STK_E_CONFIG, "debug topic: found \"%s\", expected all, %s%s%s%s", given, list,
                     nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

stk_status stki_log_enable(const char *topics, stk_error *err)
{
    int64_t bits = 0;

    for (;;) {
        size_t length = strcspn(topics, ",");
        int topic = find_topic(topics, length);

        if (length == 3 && strncmp(topics, "all", 3) == 0)
            bits |= (INT64_C(1) << TOPICS) - 1;
        else if (topic >= 0)
            bits |= INT64_C(1) << topic;
        else
            return fail_topic(err, topics, length);
        if (topics[length] == '\0')
            break;
        topics += length + 1;
    }
    atomic_fetch_or_explicit(&topics_on, bits, memory_order_relaxed);
    return STK_OK;
}

/* An invalid topic in the environment is reported on stderr, since there is no caller to return the error to. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *topics = getenv("STOKER_DEBUG");
    stk_error err;

    if (topics && topics[0] && stki_log_enable(topics, &err) != STK_OK)
        fprintf(stderr, "stoker: STOKER_DEBUG: %s\n", err.message);
}

bool stki_log_on(enum stki_log_topic topic)
{
    return (stki_counted(&topics_on) >> topic) & 1;
}

void stki_log(enum stki_log_topic topic, const char *format, ...)
{
    char line[1024];
    va_list args;
    int used;

    if (!stki_log_on(topic))
        return;
    used = snprintf(line, sizeof line, "stoker: %s: ", names[topic]);
    va_start(args, format);
    vsnprintf(line + used, sizeof line - (size_t)used, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", line); /* one call, so that lines of several threads do not mix */
}
