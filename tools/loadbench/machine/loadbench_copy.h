/* loadbench_copy.h: the methods of copying bytes with which the machine's limit is measured. */
#ifndef LOADBENCH_COPY_H
#define LOADBENCH_COPY_H

#include <stdint.h>

typedef void (*lb_copy)(void *restrict to, const void *restrict from, int64_t bytes);

void lb_copy_plain(void *restrict to, const void *restrict from, int64_t bytes);
/* Copies with non-temporal stores. NULL: not supported on this machine. Call lb_copy_fence when done. */
lb_copy lb_copy_streaming(void);
void lb_copy_fence(void);
/* The same without reading; `from` is ignored. */
void lb_write_plain(void *restrict to, const void *restrict from, int64_t bytes);
lb_copy lb_write_streaming(void);
/* Prefetches a row that will be copied soon. */
void lb_prefetch(const void *row, int64_t bytes);

#endif
