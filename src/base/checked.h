/* checked.h: overflow-checked arithmetic for sizes read from files. Each function returns false if the result does not
 * fit. */
#ifndef STKI_CHECKED_H
#define STKI_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool stki_mul(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static inline bool stki_add(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Whether [offset, offset + size) is inside [0, total); false if an argument is negative. */
static inline bool stki_inside(int64_t offset, int64_t size, int64_t total)
{
    return offset >= 0 && size >= 0 && offset <= total && size <= total - offset;
}

/* Rounds up to a multiple of a power of two. */
static inline int64_t stki_round_up(int64_t value, int64_t power)
{
    return (value + power - 1) & ~(power - 1);
}

#endif
