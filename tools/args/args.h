/* args.h: parses the command lines of loadbench and stoker into words and options. The options are rows of a table. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Any of the targets may be NULL. */
struct arg_option {
    const char *name;  /* "--json" */
    const char *value; /* name of the value after '='; NULL: no value */
    const char *help;
    bool *flag;        /* set to true */
    const char **text; /* set to the value */
    int *count;        /* repeatable: sets text[(*count)++], with room for argc entries */
    int *action, as;   /* set to `as`; it is an error if another option has set it */
    stk_status (*take)(void *owner, const char *value, stk_error *err); /* called with the value, or "" without one */
    bool repeats; /* the option may be repeated with different values, although `count` is NULL */
};

enum { ARG_OPTIONS = 32 }; /* maximum number of rows of a table */

/* Reads argv[1…] in any order. `--option value` is the same as `--option=value`, -h the same as --help. "--" ends the
 * options. "-1" is a word: an option starts with "--", or with '-' and a letter. Words are stored in `words`, up to
 * most_words. `owner` is passed to the functions of the table. STK_E_CONFIG: a usage error, including an option given
 * twice with different values unless it may be repeated. */
stk_status arg_read(int argc, char **argv, const struct arg_option *options, int option_count, void *owner,
                    const char **words, int most_words, int *word_count, stk_error *err);
/* Prints one line per option, with help texts in column `width`. */
void arg_help(const struct arg_option *options, int option_count, int width, FILE *to);

/* Parses an integer from `least` to `most`. */
stk_status arg_number(const char *option, const char *text, long long least, long long most, long long *out,
                      stk_error *err);
/* STK_E_CONFIG: the file name does not have the extension `ending`, such as ".html", in any case. */
stk_status arg_check_ending(const char *option, const char *text, const char *ending, stk_error *err);

#endif
