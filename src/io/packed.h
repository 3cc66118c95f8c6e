/* packed.h: provides the values of a tensor with any strides and byte order as little-endian bytes in C order, as input
 * for checksums. bool values are normalized to 0 or 1. */
#ifndef STKI_PACKED_H
#define STKI_PACKED_H

#include <stoker/tensor.h>

/* Calls `take` for consecutive chunks of the values, or not at all if there are no values. */
void stki_packed_each(const stk_tensor *tensor, void (*take)(void *context, const void *bytes, int64_t count),
                      void *context);

#endif
