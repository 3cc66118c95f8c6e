/* loadbench_source.h: where the batches of a repeat come from: the loader of a config, or something else that delivers
 * batches one after the other. A Python iterable is one (python/core/bench.c). */
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
    /* Of a repeat. NULL where nothing is to be done. */
    stk_status (*open)(struct lb_source *source, stk_error *err);
    stk_status (*close)(struct lb_source *source, stk_error *err);
    /* The next batch. STK_E_TIMEOUT: none within timeout_ns, which a source may ignore; STK_END: there are no more. The
     * batch is valid until release. */
    stk_status (*next)(struct lb_source *source, stk_stream *stream, int64_t timeout_ns, struct lb_taken *out,
                       stk_error *err);
    void (*release)(struct lb_source *source, const struct lb_taken *taken, stk_stream *stream);
    /* Counters since open. A source that is not a loader sets batch_bytes, and leaves the rest. */
    void (*stats)(const struct lb_source *source, stk_loader_stats *out);
    /* Around each step of the consumer `step`, in which other threads of the source must be able to work; or NULL. */
    void (*step)(struct lb_source *source, bool begins);
    stk_loader *loader; /* NULL: not a loader, so there are no workers, no digest and no limits */
};

#endif
