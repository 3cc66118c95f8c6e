/* play_parse.h: one command of the playground's language as an operation and its arguments.
 *
 *     command    [NAME =] [NAME .] OPERATION argument…       x = arange 0 12      x.reshape(3, 4)      x reshape 3 4
 *     argument   number | word | KEY=VALUE | 2x3 | (argument…) | [argument…]     commas and blanks separate
 *     slice      [:, ::2] by itself, or `slice :, ::2`: Python's syntax, kept as text in `rest`
 *
 * Numbers in brackets belong together (a shape, strides); 2x3 is the same as (2, 3).
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
    const char *text; /* as it was written */
    const char *key;  /* of KEY=VALUE, or NULL */
    int group;        /* 0: in no brackets; else the number of the pair */
    bool used;
};

struct pl_command {
    char target[PL_NAME_BYTES];  /* before the =, or "" */
    char subject[PL_NAME_BYTES]; /* the tensor it works on by name, or "" */
    char op[PL_NAME_BYTES];      /* "" if only a subject was named */
    char rest[PL_COMMAND_BYTES]; /* the arguments as written */
    char words[2 * PL_COMMAND_BYTES];
    struct pl_item items[PL_ITEMS];
    int item_count, group_count;
};

/* `is_name` says which words are names of tensors. STK_E_CONFIG: not of the language. */
stk_status pl_parse(const char *text, int length, bool (*is_name)(const void *context, const char *word),
                    const void *context, struct pl_command *out, stk_error *err);

/* Each takes items that were not taken yet. A shape, a list: all whole numbers left, or those of the next brackets. */
/* STK_E_CONFIG: "WHERE: unknown dtype GIVEN", with what there is. */
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
/* STK_E_CONFIG if something is left. */
stk_status pl_take_end(const struct pl_command *command, stk_error *err);

/* "3x1", "(3, 1)", "3,1" or "3"; the whole text must be one. */
stk_status pl_parse_shape(const char *text, int64_t *shape, int *ndim, stk_error *err);

#endif
