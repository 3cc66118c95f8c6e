/* wrap.h: arithmetic on strides and addresses that may never be dereferenced. The stride of an axis of length 0 or 1
 * may be any number, and products of such numbers may overflow; here they wrap instead of being undefined behavior. */
#ifndef STKI_WRAP_H
#define STKI_WRAP_H

#include <stdint.h>

static inline int64_t stki_wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t stki_wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline void *stki_address(const void *base, int64_t offset)
{
    return (void *)((uintptr_t)base + (uintptr_t)offset);
}

#endif
