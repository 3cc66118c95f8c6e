/* loadbench_effective.h: a loader's effective options, parsed once for a result, its figures and its text. */
#ifndef LOADBENCH_EFFECTIVE_H
#define LOADBENCH_EFFECTIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stoker/loader.h>

struct lb_effective {
    json_t *all;        /* `effective` in results; NULL: not read yet */
    char device[32];    /* "": batches in ordinary memory */
    char convert[48];   /* "loader.convert=…" in effect, for later repeats; "" without a device */
    int64_t timeout_ns; /* negative: no timeout */
    int64_t batch_size;
    bool random; /* whether the order is random */
};

/* Call lb_effective_fini even after a failure. */
stk_status lb_effective_read(const stk_loader *loader, struct lb_effective *out, stk_error *err);
void lb_effective_fini(struct lb_effective *effective);

/* Returns the properties of a field, such as its format and its files. NULL: none. */
const json_t *lb_effective_field(const struct lb_effective *effective, const char *name);
/* Returns a property of the plan; NULL: none. */
const json_t *lb_effective_plan(const struct lb_effective *effective, const char *name);

#endif
