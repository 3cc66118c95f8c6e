/* loadbench_effective.h: a loader's options in effect, parsed once for a result, its figures and its texts. */
#ifndef LOADBENCH_EFFECTIVE_H
#define LOADBENCH_EFFECTIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct lb_effective {
    json_t *all;        /* `effective` in results; NULL: not read yet */
    char device[32];    /* "": batches in ordinary memory */
    char convert[48];   /* "loader.convert=…", the place of the conversion, for later repeats; "" without a device */
    int64_t timeout_ns; /* negative: no timeout */
    int64_t batch_size;
    bool random; /* whether the order is random */
};

/* Call lb_effective_fini even after a failure. */
stk_status lb_effective_read(const stk_loader *loader, struct lb_effective *out, stk_error *err);
void lb_effective_fini(struct lb_effective *effective);

/* The facts of a field: its format, and the list of its files. NULL: none. */
const json_t *lb_effective_field(const struct lb_effective *effective, const char *name);
/* A fact of the plan; NULL: none. */
const json_t *lb_effective_plan(const struct lb_effective *effective, const char *name);

#endif
