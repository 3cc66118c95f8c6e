/* play_parse.h: parses a command of the playground's language into an operation and its arguments.
 *
 *     command    [NAME =] [NAME .] OPERATION argument…       x = arange 0 12      x.reshape(3, 4)      x reshape 3 4
 *     argument   number | word | KEY=VALUE | 2x3 | (argument…) | [argument…]     commas and blanks separate
 *     slice      [:, ::2] by itself, or `slice :, ::2`: Python's syntax, kept as text in `rest`
 *
 * Brackets group numbers (a shape, strides); 2x3 equals (2, 3).
 */
#ifndef STOKER_PLAY_PARSE_H
#define STOKER_PLAY_PARSE_H

#include <stdbool.h>
#include <stoker/scalar.h>
#include <stoker/tensor.h>

enum { PL_NAME_BYTES = 32, PL_COMMAND_BYTES = 1024, PL_ITEMS = 512 };

struct pl_item {
    enum pl_item_kind { PL_NUMBER, PL_WORD } kind;
    stk_scalar number;
    const char *text; /* as written */
    const char *key;  /* KEY of KEY=VALUE, or NULL */
    int group;        /* 0: outside of brackets; otherwise the number of the pair */
    bool used;
};

struct pl_command {
    char target[PL_NAME_BYTES];  /* left of the =, or "" */
    char subject[PL_NAME_BYTES]; /* name of the input tensor, or "" */
    char op[PL_NAME_BYTES];      /* "" if there is only a subject */
    char rest[PL_COMMAND_BYTES]; /* the arguments as written */
    char words[2 * PL_COMMAND_BYTES];
    struct pl_item items[PL_ITEMS];
    int item_count, group_count;
};

/* `is_name` returns whether a word is the name of a tensor. STK_E_CONFIG: syntax error. */
stk_status pl_parse(const char *text, int length, bool (*is_name)(const void *context, const char *word),
                    const void *context, struct pl_command *out, stk_error *err);

/* The pl_take functions consume unused items. pl_take_ints takes all remaining integers, pl_take_group those in the
 * next brackets. */
/* STK_E_CONFIG: "WHERE: unknown dtype GIVEN", with the known ones. */
stk_status pl_fail_dtype(const char *where, const char *given, stk_error *err);
stk_status pl_take_dtype(struct pl_command *command, stk_dtype usual, stk_dtype *out, stk_error *err);
stk_status pl_take_int_key(struct pl_command *command, const char *key, int64_t usual, int64_t *out, stk_error *err);
bool pl_take_word(struct pl_command *command, const char *word); /* also WORD=True */
const char *pl_take_any_word(struct pl_command *command);        /* NULL: none left */
bool pl_take_number(struct pl_command *command, stk_scalar *out);
stk_status pl_take_int(struct pl_command *command, const char *what, int64_t *out, stk_error *err);
int pl_numbers_left(const struct pl_command *command);
stk_status pl_take_ints(struct pl_command *command, const char *what, int most, int64_t *out, int *count,
                        stk_error *err);
stk_status pl_take_dims(struct pl_command *command, int *out, int *count, stk_error *err);
stk_status pl_take_group(struct pl_command *command, const char *what, int64_t *out, int *count, stk_error *err);
/* STK_E_CONFIG if items are left. */
stk_status pl_take_end(const struct pl_command *command, stk_error *err);

/* "3x1", "(3, 1)", "3,1" or "3"; the whole text must be one. */
stk_status pl_parse_shape(const char *text, int64_t *shape, int *ndim, stk_error *err);

#endif
