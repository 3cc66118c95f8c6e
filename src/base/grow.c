/* grow.c: see grow.h. */
#include "grow.h"
#include "allocate.h"
#include "error.h"
#include <string.h>

enum { FIRST_ROOM = 4 };

stk_status stki_grow(void *array, int64_t *room, int64_t need, int64_t bytes_each, const char *what, stk_error *err)
{
    int64_t wanted = *room ? *room : FIRST_ROOM, bytes;
    void *block;

    if (need <= *room)
        return STK_OK;
    while (wanted < need && wanted <= INT64_MAX / 2)
        wanted *= 2;
    if (__builtin_mul_overflow(wanted, bytes_each, &bytes) || wanted < need)
        return stki_fail_memory(err, INT64_MAX, what);
    memcpy(&block, array, sizeof block); /* copied as bytes, because the pointer may have any type */
    block = stki_resize(block, bytes);
    if (!block)
        return stki_fail_memory(err, bytes, what);
    memcpy(array, &block, sizeof block);
    *room = wanted;
    return STK_OK;
}
