/* grow.h: arrays that grow. */
#ifndef STKI_GROW_H
#define STKI_GROW_H

#include <stdint.h>
#include <stoker/status.h>

/* Makes sure that an array has room for `need` elements of `bytes_each` bytes; *room is the current number, which grows
 * by doubling. `array` is the address of the pointer to the array, of any type, which stki_free frees. If memory is
 * exhausted, nothing changes; `what` says in the message what the memory was for. */
stk_status stki_grow(void *array, int64_t *room, int64_t need, int64_t bytes_each, const char *what, stk_error *err);

#endif
