/* play_ops.c: lookup of operations, and helpers shared by them. */
#include "play_ops.h"
#include "checked.h"
#include "document.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

static const struct {
    const char *title;
    const struct pl_op *ops;
} groups[] = {
    {"Creating tensors", pl_create_ops},
    {"Views, which share the memory of their input", pl_view_ops},
    {"Copies and computations: in new memory, or in place if the name ends in _", pl_compute_ops},
    {"Information", pl_say_ops},
};

enum { GROUPS = sizeof groups / sizeof *groups, MOST_OPS = 96 };

const struct pl_op *pl_op_find(const char *name)
{
    for (int g = 0; g < GROUPS; g++)
        for (const struct pl_op *op = groups[g].ops; op->name; op++)
            if (strcmp(op->name, name) == 0)
                return op;
    return NULL;
}

const char *pl_op_nearest(const char *name)
{
    const char *names[MOST_OPS];
    int count = 0;

    for (int g = 0; g < GROUPS; g++)
        for (const struct pl_op *op = groups[g].ops; op->name && count < MOST_OPS; op++)
            names[count++] = op->name;
    return stki_nearest_word(name, names, count);
}

const char *pl_op_with_prefix(const char *prefix, int number)
{
    for (int g = 0; g < GROUPS; g++)
        for (const struct pl_op *op = groups[g].ops; op->name; op++)
            if (strncmp(op->name, prefix, strlen(prefix)) == 0 && number-- == 0)
                return op->name;
    return NULL;
}

/* Width in characters, not bytes. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void pl_ops_help(FILE *to)
{
    for (int g = 0; g < GROUPS; g++) {
        fprintf(to, "%s%s\n", g ? "\n" : "", groups[g].title);
        for (const struct pl_op *op = groups[g].ops; op->name; op++) {
            char left[80];
            snprintf(left, sizeof left, "%s%s%s", op->name, *op->arguments ? " " : "", op->arguments);
            fprintf(to, "  %s%*s%s\n", left, *op->help ? 36 - width_of(left) : 0, "", op->help);
        }
    }
}

const char *pl_shape_text(char *buffer, int size, int ndim, const int64_t *shape)
{
    int used = snprintf(buffer, (size_t)size, "(");

    for (int i = 0; i < ndim && used < size; i++)
        used += snprintf(buffer + used, (size_t)(size - used), "%s%" PRId64, i ? ", " : "", shape[i]);
    if (used < size)
        snprintf(buffer + used, (size_t)(size - used), "%s)", ndim == 1 ? "," : "");
    return buffer;
}

stk_status pl_afford(const char *what, stk_dtype dtype, int ndim, const int64_t *shape, stk_error *err)
{
    int64_t bytes = stk_dtype_size(dtype);
    bool fits = true;

    for (int i = 0; i < ndim; i++)
        if (shape[i] <= 0)
            return STK_OK; /* empty, or rejected by the operation itself */
    for (int i = 0; i < ndim; i++)
        fits = fits && stki_mul(bytes, shape[i], &bytes);
    if (fits && bytes <= PL_MOST_BYTES)
        return STK_OK;
    return stki_fail(err, STK_E_LIMIT,
                     "%s: a tensor of shape %s and dtype %s takes more than %" PRId64
                     " MiB, the limit of this program (--memory computes the size of larger tensors)",
                     what, PL_SHAPE(ndim, shape), stk_dtype_name(dtype), PL_MOST_BYTES >> 20);
}
