/* args.c: see args.h. */
#include "args.h"
#include "document.h"
#include "error.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static stk_status fail_unknown(const struct arg_option *options, int count, const char *name, stk_error *err)
{
    const char *names[ARG_OPTIONS], *near;

    for (int i = 0; i < count; i++)
        names[i] = options[i].name;
    near = stki_nearest_word(name, names, count);
    return stki_fail(err, STK_E_CONFIG, "unknown option %s%s%s%s", name, near ? "; did you mean " : "; see --help",
                     near ? near : "", near ? "?" : "");
}

static stk_status apply(const struct arg_option *option, void *owner, const char *value, stk_error *err)
{
    if (option->action) {
        if (*option->action != 0 && *option->action != option->as)
            return stki_fail(err, STK_E_CONFIG, "%s and another action are mutually exclusive", option->name);
        *option->action = option->as;
    }
    if (option->flag)
        *option->flag = true;
    if (option->text)
        option->text[option->count ? (*option->count)++ : 0] = value;
    return option->take ? option->take(owner, value, err) : STK_OK;
}

/* Checks a value against the option's choices and the values given earlier. */
static stk_status check_value(const struct arg_option *option, const char *value, const char **given, stk_error *err)
{
    if (!option->value)
        return value ? stki_fail(err, STK_E_CONFIG, "%s takes no value", option->name) : STK_OK;
    if (!value || !value[0])
        return stki_fail(err, STK_E_CONFIG, "%s needs a value: %s=%s", option->name, option->name, option->value);
    if (!option->count && !option->repeats && *given && strcmp(*given, value) != 0)
        return stki_fail(err, STK_E_CONFIG, "%s is given twice: %s, then %s", option->name, *given, value);
    *given = value;
    return STK_OK;
}

/* Parses the option at argv[*at]. Advances *at if the value is a separate argument. */
static stk_status read_option(int argc, char **argv, int *at, const struct arg_option *options, int count, void *owner,
                              const char **given, stk_error *err)
{
    const char *word = strcmp(argv[*at], "-h") == 0 ? "--help" : argv[*at], *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : NULL;
    char name[64];
    stk_status status;

    snprintf(name, sizeof name, "%.*s", (int)(equals ? (size_t)(equals - word) : strlen(word)), word);
    for (int i = 0; i < count; i++) {
        if (strcmp(options[i].name, name) != 0)
            continue;
        if (options[i].value && !value && *at + 1 < argc)
            value = argv[++*at];
        status = check_value(&options[i], value, &given[i], err);
        return status == STK_OK ? apply(&options[i], owner, value ? value : "", err) : status;
    }
    return fail_unknown(options, count, name, err);
}

static bool is_option(const char *word)
{
    const char first = word[0] == '-' ? word[1] : '\0';

    return first == '-' || (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
}

stk_status arg_read(int argc, char **argv, const struct arg_option *options, int option_count, void *owner,
                    const char **words, int most_words, int *word_count, stk_error *err)
{
    const char *given[ARG_OPTIONS] = {NULL};
    bool only_words = false;

    assert(option_count <= ARG_OPTIONS);
    *word_count = 0;
    for (int i = 1; i < argc; i++) {
        stk_status status = STK_OK;

        if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = true;
        else if (!only_words && is_option(argv[i]))
            status = read_option(argc, argv, &i, options, option_count, owner, given, err);
        else if (*word_count == most_words)
            status = stki_fail(err, STK_E_CONFIG, "unexpected argument: %s", argv[i]);
        else
            words[(*word_count)++] = argv[i];
        if (status != STK_OK)
            return status;
    }
    return STK_OK;
}

void arg_help(const struct arg_option *options, int option_count, int width, FILE *to)
{
    for (int i = 0; i < option_count; i++) {
        char left[64];

        snprintf(left, sizeof left, "%s%s%s", options[i].name, options[i].value ? "=" : "",
                 options[i].value ? options[i].value : "");
        fprintf(to, "  %-*s %s\n", width, left, options[i].help);
    }
}

stk_status arg_number(const char *option, const char *text, long long least, long long most, long long *out,
                      stk_error *err)
{
    char *end = NULL;
    const long long n = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;

    if (!end || *end || n < least || n > most)
        return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected %lld to %lld", option, text, least, most);
    *out = n;
    return STK_OK;
}

stk_status arg_check_ending(const char *option, const char *text, const char *ending, stk_error *err)
{
    const size_t length = strlen(text), own = strlen(ending);

    if (length > own && strcasecmp(text + length - own, ending) == 0)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected a name that ends in %s, such as out%s", option,
                     text, ending, ending);
}
