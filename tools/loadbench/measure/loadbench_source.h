/* loadbench_source.h: the source of a repeat's batches: the loader of a config, or anything else that delivers batches
 * in sequence, such as a Python iterable (python/core/bench.c). */
#ifndef LOADBENCH_SOURCE_H
#define LOADBENCH_SOURCE_H

#include <stdbool.h>
#include <stoker/loader.h>

struct lb_taken {
    void *batch;
    int64_t samples; /* without padding */
    bool last_of_epoch;
};

struct lb_source {
    /* Called at the start and end of a repeat; may be NULL. */
    stk_status (*open)(struct lb_source *source, stk_error *err);
    stk_status (*close)(struct lb_source *source, stk_error *err);
    /* Returns the next batch, valid until release. STK_E_TIMEOUT: there was none within timeout_ns (a source may ignore
     * the timeout); STK_END: no more batches. */
    stk_status (*next)(struct lb_source *source, stk_stream *stream, int64_t timeout_ns, struct lb_taken *out,
                       stk_error *err);
    void (*release)(struct lb_source *source, const struct lb_taken *taken, stk_stream *stream);
    /* Returns counters since open. A source that is not a loader only sets batch_bytes. */
    void (*stats)(const struct lb_source *source, stk_loader_stats *out);
    /* May be NULL. Called before and after each step of the consumer `step`, during which other threads of the source
     * must be able to run (the GIL in Python). */
    void (*step)(struct lb_source *source, bool begins);
    stk_loader *loader; /* NULL: not a loader; no workers, digest or limits */
};

#endif
