/* args.h: the command lines of loadbench and of stoker's commands: words, and options of one table. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stdio.h>
#include <stoker/status.h>

/* Any of the targets may be NULL. */
struct arg_option {
    const char *name;  /* "--json" */
    const char *value; /* what to write after '='; NULL: the option takes no value */
    const char *help;
    bool *flag;        /* becomes true */
    const char **text; /* becomes the value */
    int *count;        /* the option may be repeated: text[(*count)++] is set, room for argc of them */
    int *action, as;   /* becomes `as`; refused where another option has made it something else than 0 */
    stk_status (*take)(void *owner, const char *value, stk_error *err); /* "" without a value */
    bool repeats; /* it may be given with several values, although it has no count */
};

enum { ARG_OPTIONS = 32 }; /* of a table, at most */

/* Reads argv[1…] in any order; `--option value` works as `--option=value`, -h as --help. "--" ends the options. A word
 * that begins with '-' and no letter is no option: -1. Words go to `words`, at most most_words. `owner` is for the
 * functions of the table. STK_E_CONFIG: what is wrong with the command; an option that is given twice with different
 * values is, unless it may be repeated. */
stk_status arg_read(int argc, char **argv, const struct arg_option *options, int option_count, void *owner,
                    const char **words, int most_words, int *word_count, stk_error *err);
/* A line per option, the help texts in column `width`. */
void arg_help(const struct arg_option *options, int option_count, int width, FILE *to);

/* A whole number from `least` to `most`. */
stk_status arg_number(const char *option, const char *text, long long least, long long most, long long *out,
                      stk_error *err);
/* STK_E_CONFIG: the name of a file does not end in `ending`, ".html", in any case. */
stk_status arg_check_ending(const char *option, const char *text, const char *ending, stk_error *err);

#endif
