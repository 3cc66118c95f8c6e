/* stoker_args.c: see stoker_args.h. */
#include "stoker_args.h"
#include "config.h"
#include "error.h"
#include <string.h>

enum { MOST_NAMED = 32 };

static stk_status fail_unknown(const struct st_option *options, int count, const char *word, size_t length,
                               stk_error *err)
{
    const char *names[MOST_NAMED], *near;
    char name[64];

    for (int i = 0; i < count && i < MOST_NAMED; i++)
        names[i] = options[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    near = stki_nearest_word(name, names, count < MOST_NAMED ? count : MOST_NAMED);
    return stki_fail(err, STK_E_CONFIG, "unknown option %s%s%s%s", name, near ? "; did you mean " : "; see --help",
                     near ? near : "", near ? "?" : "");
}

static stk_status read_option(int argc, char **argv, int *at, const struct st_option *options, int count,
                              stk_error *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);

    for (int i = 0; i < count; i++) {
        if (strlen(options[i].name) != length || strncmp(options[i].name, word, length) != 0)
            continue;
        if (!options[i].value) {
            *options[i].flag = true;
            return equals ? stki_fail(err, STK_E_CONFIG, "%s takes no value", options[i].name) : STK_OK;
        }
        if (!equals && *at + 1 >= argc)
            return stki_fail(err, STK_E_CONFIG, "%s needs a value: %s=%s", options[i].name, options[i].name,
                             options[i].value);
        options[i].text[options[i].count ? (*options[i].count)++ : 0] = equals ? equals + 1 : argv[++*at];
        return STK_OK;
    }
    return fail_unknown(options, count, word, length, err);
}

stk_status st_args_read(int argc, char **argv, const struct st_option *options, int option_count, const char **words,
                        int most_words, int *word_count, stk_error *err)
{
    bool only_words = false;

    *word_count = 0;
    for (int i = 1; i < argc; i++) {
        stk_status status = STK_OK;

        if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = true;
        else if (!only_words && argv[i][0] == '-' && argv[i][1])
            status = read_option(argc, argv, &i, options, option_count, err);
        else if (*word_count == most_words)
            status = stki_fail(err, STK_E_CONFIG, "one word too many: %s", argv[i]);
        else
            words[(*word_count)++] = argv[i];
        if (status)
            return status;
    }
    return STK_OK;
}

void st_args_help(const struct st_option *options, int option_count)
{
    for (int i = 0; i < option_count; i++) {
        char left[64];

        snprintf(left, sizeof left, "%s%s%s", options[i].name, options[i].value ? "=" : "",
                 options[i].value ? options[i].value : "");
        printf("  %-20s %s\n", left, options[i].help);
    }
}

stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err)
{
    stki_field_config field = {.name = "FIELD"};
    stk_status status;

    *document = NULL;
    *out = (stki_reader_opts){0};
    if (!text)
        return STK_OK;
    status = stki_document_parse(text, (int64_t)strlen(text), "--source", STKI_NO_INCLUDE, document, err);
    if (!status)
        status = stki_config_source(stki_document_root(*document), *document, &field, err);
    if (!status && field.classes.node)
        status = stki_fail_key(err, field.classes.node,
                               "belongs to a field of a config: this looks at one file, whose "
                               "names stay names");
    if (!status)
        *out = field.source;
    return status;
}
