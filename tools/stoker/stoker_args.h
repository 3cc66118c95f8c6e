/* stoker_args.h: the command lines of `stoker inspect`, `stoker prep` and `stoker verify`: words, and options of one
 * table. */
#ifndef STOKER_ARGS_H
#define STOKER_ARGS_H

#include "document.h"
#include "reader.h"

struct st_option {
    const char *name;  /* "--json" */
    const char *value; /* what to write after '='; NULL: the option takes no value */
    const char *help;
    bool *flag;        /* set where there is no value */
    const char **text; /* set to the value */
    int *count;        /* not NULL: the option may be repeated; text[(*count)++] is set, room for argc of them */
};

/* Reads argv[1…] in any order; `--option value` works as `--option=value`. Words go to `words` (at most most_words). */
stk_status st_args_read(int argc, char **argv, const struct st_option *options, int option_count, const char **words,
                        int most_words, int *word_count, stk_error *err);
void st_args_help(const struct st_option *options, int option_count);

/* What `--source '{…}'` says, in the language of the configs (docs/config.md, dataset.fields.NAME.source). The document
 * owns the texts; NULL where there is none. */
stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err);

#endif
