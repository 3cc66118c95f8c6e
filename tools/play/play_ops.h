/* play_ops.h: the operations of the playground's language, one table row each. */
#ifndef STOKER_PLAY_OPS_H
#define STOKER_PLAY_OPS_H

#include "play_session.h"
#include <stdio.h>

struct pl_call {
    const struct pl_session *session;
    struct pl_command *command;
    const stk_tensor *in; /* NULL for operations without input */
    stk_tensor out;       /* set if `has_out` */
    bool has_out;
    bool in_place;
    char remark[2048]; /* additional text, or "" */
    char *text;        /* output of an operation without a tensor; free this and `figure` with stki_free */
    char *figure;      /* SVG that replaces the text on a page; may also be set by an operation that fails */
};

struct pl_op {
    const char *name, *arguments, *help;
    bool needs_tensor;
    stk_status (*run)(struct pl_call *call, stk_error *err);
};

extern const struct pl_op pl_create_ops[], pl_view_ops[], pl_compute_ops[],
    pl_say_ops[]; /* each ends with a row without a name */

/* Returns the operation with that name; NULL: unknown. */
const struct pl_op *pl_op_find(const char *name);
/* Returns the most similar name, or NULL if none is similar. */
const char *pl_op_nearest(const char *name);
/* Returns the name of the operation with that prefix and that number, from 0; NULL: there are no more. */
const char *pl_op_with_prefix(const char *prefix, int number);
void pl_ops_help(FILE *to);

/* STK_E_LIMIT if a tensor of that shape is too large to draw. */
stk_status pl_afford(const char *what, stk_dtype dtype, int ndim, const int64_t *shape, stk_error *err);

/* The operation slice, with the syntax of Python: `:`, `1:`, `::2`, `-1`, `...`, `None`. */
stk_status pl_op_slice(struct pl_call *call, stk_error *err);
/* "(2, 3)" in a buffer with the lifetime of the enclosing block. */
#define PL_SHAPE(ndim, shape) pl_shape_text((char[200]){0}, 200, ndim, shape)
const char *pl_shape_text(char *buffer, int size, int ndim, const int64_t *shape);

#endif
