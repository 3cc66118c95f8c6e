/* play_why.h: functions that explain the rule behind an error, or why a copy was needed. They write the text to a
 * buffer of `size` bytes, and leave it unchanged if there is nothing to explain. */
#ifndef STOKER_PLAY_WHY_H
#define STOKER_PLAY_WHY_H

#include <stoker/tensor.h>

/* Explains why view failed: names the two axes that are not contiguous with each other, and the cost of a copy. */
void pl_why_view(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_status status, char *out, int size);
/* Explains why reshape or flatten copied. */
void pl_why_copied(const stk_tensor *from, const stk_tensor *to, char *out, int size);
/* Explains that a shape has the wrong number of elements. */
void pl_why_count(const stk_tensor *tensor, int ndim, const int64_t *shape, char *out, int size);
void pl_why_expand(const stk_tensor *tensor, int ndim, const int64_t *shape, char *out, int size);
void pl_why_broadcast(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b, char *out, int size);
void pl_why_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape, const int64_t *strides,
                       int64_t offset_bytes, char *out, int size);
void pl_why_step(int64_t step, int64_t length, int dim, char *out, int size);
void pl_why_dim(const stk_tensor *tensor, char *out, int size);
void pl_why_index(int64_t length, char *out, int size);
void pl_why_in_place(const stk_tensor *tensor, stk_status status, char *out, int size);

#endif
