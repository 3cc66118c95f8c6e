/* loadbench_range.h: "KEY=VALUES", the values of a key in a sweep: a list, ranges, or both.
 *
 *     loader.num_workers=0,1,2,4           these values
 *     loader.batch_size=64..1024*2         64, 128, … up to 1024
 *     loader.prefetch=2..8+2               2, 4, 6, 8
 *     loader.prefetch=2..4                 2, 3, 4
 *     loader.tile_bytes=64KiB..1MiB*4      64KiB, 256KiB, 1024KiB: in the unit of the first value
 *     loader.access=mmap,pread             any text; commas in brackets and quotes are part of a value */
#ifndef LOADBENCH_RANGE_H
#define LOADBENCH_RANGE_H

#include <stoker/status.h>

enum { LB_RANGE_VALUES = 1000 };

struct lb_range {
    char *key;
    char **values;
    int count;
};

/* Parses the value of `option`, such as "--sweep". STK_E_CONFIG: the text is invalid; the message says why. */
stk_status lb_range_read(const char *option, const char *text, struct lb_range *out, stk_error *err);
void lb_range_fini(struct lb_range *range);

#endif
