/* loadbench_effective.h: what a loader says of the options in effect, read once: a result, its figures and its texts
 * ask here.
 */
#ifndef LOADBENCH_EFFECTIVE_H
#define LOADBENCH_EFFECTIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct lb_effective {
    json_t *all;        /* what results carry as `effective`; NULL: not read yet */
    char device[32];    /* "": batches in ordinary memory */
    char convert[48];   /* the assignment that makes another loader convert where this one does; "" without a device */
    int64_t timeout_ns; /* below 0: none */
    int64_t batch_size;
    bool random; /* the order */
};

/* lb_effective_fini in every case. */
stk_status lb_effective_read(const stk_loader *loader, struct lb_effective *out, stk_error *err);
void lb_effective_fini(struct lb_effective *effective);

/* Of a field: its format, and the files it was opened from (a list of texts). NULL: none. */
const json_t *lb_effective_field(const struct lb_effective *effective, const char *name);
/* Of the order and what it depends on; NULL: nothing is said of it. */
const json_t *lb_effective_plan(const struct lb_effective *effective, const char *name);

#endif
