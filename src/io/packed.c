/* packed.c: see packed.h. Contiguous data is used in place; other data is packed chunk by chunk on the stack. */
#include "packed.h"
#include "tensor_internal.h"
#include <string.h>

enum { PIECE = 16 << 10 };

struct packing {
    void (*take)(void *context, const void *bytes, int64_t count);
    void *context;
    _Alignas(64) char piece[PIECE];
};

static void take_packed(struct packing *p, const stk_tensor *t)
{
    int64_t strides[STK_MAX_DIMS], bytes = stk_dtype_size(t->dtype);

    for (int i = t->ndim - 1; i >= 0; i--) {
        strides[i] = bytes;
        bytes *= t->shape[i];
    }
    stki_copy_strided(p->piece, t->dtype, strides, t->data, t->dtype, t->strides, t->flags & STK_TENSOR_SWAPPED,
                      t->ndim, t->shape);
    p->take(p->context, p->piece, bytes);
}

/* Splits the tensor along its outermost axes until a part fits in a chunk. */
static void take_tensor(struct packing *p, const stk_tensor *t)
{
    int64_t size = stk_dtype_size(t->dtype), left;
    stk_tensor part = *t;

    if (stk_tensor_nbytes(t) <= PIECE) {
        take_packed(p, t);
        return;
    }
    if (t->ndim == 1) {
        for (left = t->shape[0]; left > 0; left -= part.shape[0]) {
            part.shape[0] = left < PIECE / size ? left : PIECE / size;
            take_packed(p, &part);
            part.data = (char *)part.data + part.shape[0] * part.strides[0];
        }
        return;
    }
    part.ndim--;
    memmove(part.shape, part.shape + 1, (size_t)part.ndim * sizeof *part.shape);
    memmove(part.strides, part.strides + 1, (size_t)part.ndim * sizeof *part.strides);
    for (int64_t i = 0; i < t->shape[0]; i++) { /* the recursion depth is the number of axes */
        part.data = (char *)t->data + i * t->strides[0];
        take_tensor(p, &part);
    }
}

void stki_packed_each(const stk_tensor *tensor, void (*take)(void *context, const void *bytes, int64_t count),
                      void *context)
{
    struct packing p;

    if (stk_tensor_numel(tensor) == 0)
        return;
    if (!(tensor->flags & STK_TENSOR_SWAPPED) && tensor->dtype != STK_BOOL && stk_tensor_is_contiguous(tensor)) {
        take(context, tensor->data, stk_tensor_nbytes(tensor));
        return;
    }
    p.take = take;
    p.context = context;
    take_tensor(&p, tensor);
}
