/* grow.h: arrays that grow. */
#ifndef STKI_GROW_H
#define STKI_GROW_H

#include <stdint.h>
#include <stoker/status.h>

/* Makes sure that an array has room for `need` elements of `bytes_each` bytes; *room is the current number, which grows
 * by doubling. `array` is the address of the pointer to the array, which may have any type; free the array with
 * stki_free. If memory is exhausted, nothing changes, and the message names `what` as the purpose of the memory. */
stk_status stki_grow(void *array, int64_t *room, int64_t need, int64_t bytes_each, const char *what, stk_error *err);

#endif
