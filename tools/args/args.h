/* args.h: parses the command lines of loadbench and stoker into words and options, which are declared in a table. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* One row of the table. Any of the pointers below `help` may be NULL. */
struct arg_option {
    const char *name;  /* "--json" */
    const char *value; /* placeholder for the value in --help; NULL: the option takes no value */
    const char *help;
    bool *flag;        /* set to true */
    const char **text; /* set to the value */
    int *count;        /* repeatable: each value is stored in text[(*count)++], which has room for argc entries */
    int *action, as;   /* set to `as`; it is an error if another option has set it */
    stk_status (*take)(void *owner, const char *value, stk_error *err); /* called with the value, or "" without one */
    bool repeats; /* the option may be given several times with different values even if `count` is NULL */
};

enum { ARG_OPTIONS = 32 }; /* maximum number of rows of a table */

/* Parses argv[1…], in which words and options may be mixed. `--option value` is the same as `--option=value`, and -h is
 * the same as --help. "--" ends the options. An option starts with "--", or with '-' and a letter, so "-1" is a word.
 * Stores at most most_words words in `words`. `owner` is passed to the `take` functions of the table. STK_E_CONFIG: a
 * usage error, which includes too many words and an option that is given twice with different values but may not be
 * repeated. */
stk_status arg_read(int argc, char **argv, const struct arg_option *options, int option_count, void *owner,
                    const char **words, int most_words, int *word_count, stk_error *err);
/* Prints one line per option, with help texts in column `width`. */
void arg_help(const struct arg_option *options, int option_count, int width, FILE *to);

/* Parses an integer from `least` to `most`; negative numbers are not supported. */
stk_status arg_number(const char *option, const char *text, long long least, long long most, long long *out,
                      stk_error *err);
/* Checks that a file name has the extension `ending`, such as ".html", ignoring case; STK_E_CONFIG otherwise. */
stk_status arg_check_ending(const char *option, const char *text, const char *ending, stk_error *err);

#endif
