/* source_opts.h: options for opening a file, from the text of a `source` map as in a config: stkt_source("{axis:
 * 1}"). */
#ifndef STKT_SOURCE_OPTS_H
#define STKT_SOURCE_OPTS_H

#include "config.h"
#include "stk_test.h"

typedef struct stkt_source_read {
    struct stkt_source_read *next;
    char *text;
    stki_document *document;
    stki_reader_opts opts;
} stkt_source_read;

/* Like stki_config_source; strings and *out stay valid until the program ends. Not thread-safe. */
static inline stk_status stkt_source_try(const char *text, const stki_reader_opts **out, stk_error *err)
{
    static stkt_source_read *all;
    stki_field_config field = {.name = "field"};
    stkt_source_read *read = all;
    stk_status status;

    while (read && strcmp(read->text, text) != 0)
        read = read->next;
    if (!read) {
        read = calloc(1, sizeof *read);
        if (!read)
            abort();
        status = stki_document_parse(text, (int64_t)strlen(text), "source", STKI_NO_INCLUDE, &read->document, err);
        if (status == STK_OK)
            status = stki_config_source(stki_document_root(read->document), read->document, &field, err);
        if (status != STK_OK) {
            stki_document_destroy(read->document);
            free(read);
            return status;
        }
        read->text = strdup(text);
        read->opts = field.source;
        read->next = all;
        all = read;
    }
    *out = &read->opts;
    return STK_OK;
}

/* The same for a text that must be valid; fails the test otherwise. */
static inline const stki_reader_opts *stkt_source(const char *text)
{
    const stki_reader_opts *opts = NULL;
    stk_error err;

    if (stkt_source_try(text, &opts, &err) != STK_OK) {
        fprintf(stderr, "%s: %s\n", text, err.message);
        abort();
    }
    return opts;
}

#endif
