/* packed.h: the values of a tensor as bytes in C order, little-endian, for any strides and byte order, as the input of
 * checksums. bool values are 0 or 1. */
#ifndef STKI_PACKED_H
#define STKI_PACKED_H

#include <stoker/tensor.h>

/* Calls `take` for consecutive pieces, or not at all if there are no values. */
void stki_packed_each(const stk_tensor *tensor, void (*take)(void *context, const void *bytes, int64_t count),
                      void *context);

#endif
