/* prefetch.h: keeps the next batches on a device. A dedicated thread takes batches from an upstream, queues their
 * copies into one of `depth` device slots, and delivers the slots in the same order; a second thread waits for the
 * copies. It handles devices, streams and bytes only; the upstream's functions define what a batch is and where it
 * comes from.
 *
 *     upstream.next ── copy stream ──→ slot ── (convert stream) ──→ next(stream) … consumer … release(stream)
 *          ↑ release, when the copy is done                              │
 *          └─────────────── free slots, when the consumer's stream has passed release ──┘
 *
 * The streams wait for each other without blocking the host: `next` makes the consumer's stream wait for the copy, and
 * `release` records an event in the consumer's stream, after which the slot is overwritten. The host memory of a batch
 * is returned upstream when the event recorded after its copy has completed. Without a stream (NULL) the host waits
 * instead.
 *
 * Slots are allocated once, with exactly the given size, and keep their addresses until the end: a CUDA graph captured
 * on the address of a slot can be replayed whenever that slot is delivered again.
 *
 * Threads: next may be called by one thread at a time, and release by any thread. During close and destroy, only
 * release may be called. Slots held at close stay valid until they are released. */
#ifndef STKI_PREFETCH_H
#define STKI_PREFETCH_H

#include "convert.h"
#include "device_table.h"

typedef struct stki_prefetch stki_prefetch;

enum { STKI_PREFETCH_MAX_DEPTH = 64, STKI_PREFETCH_MAX_PARTS = 256 };

/* A part of a slot. Its bytes are copied to `copy_offset` in the slot's block; if it has a conversion, the plan then
 * writes it to `offset`, row by row. Parts that are adjacent both in host memory and in the slot are copied together.
 */
typedef struct stki_prefetch_part {
    int64_t copy_offset, copy_bytes;
    const stki_convert *convert; /* NULL: the part is delivered as copied, and the strides, `offset` and `bytes` are
                                    ignored. Must outlive the prefetcher. */
    int64_t src_stride, dst_stride;
    int64_t offset, bytes;
    /* One address per slot, in the caller's memory, to write the part to instead of the slot's block. The memory must
     * outlive the prefetcher. NULL: in the block. */
    void *const *buffers;
} stki_prefetch_part;

/* The data of one batch for one part. */
typedef struct stki_prefetch_load {
    const void *host;
    int64_t bytes; /* at most copy_bytes; 0: nothing */
    int64_t rows;  /* number of rows to convert */
} stki_prefetch_load;

typedef struct stki_prefetch_upstream {
    void *context;
    /* Called by the copying thread only. Gets the next batch, for device slot `slot`: fills one load per part (zeroed
     * before the call) and *held, the handle of the host memory for `release`. STK_E_TIMEOUT: there was no batch by the
     * deadline; next is called again. After STK_END or any other error next is not called again, and the consumer
     * receives that status after the preceding batches. */
    stk_status (*next)(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                       stk_error *err);
    void (*release)(void *context, void *held);
    void (*ended)(void *context); /* called after the thread's last use of the upstream; may be NULL */
} stki_prefetch_upstream;

typedef struct stki_prefetch_opts {
    stk_device *device;
    int depth;          /* number of slots, including held ones; 1 to STKI_PREFETCH_MAX_DEPTH */
    int64_t slot_bytes; /* size of the block of each slot */
    int part_count;
    const stki_prefetch_part *parts; /* the array is copied; the buffers are not */
    stki_prefetch_upstream upstream;
} stki_prefetch_opts;

/* Creates slots, streams and events, and starts the thread. */
stk_status stki_prefetch_create(const stki_prefetch_opts *opts, stki_prefetch **out, stk_error *err);
/* Stops the thread and waits for it; queued batches that were not taken are dropped. STK_E_TIMEOUT: the thread is stuck
 * in the upstream or in a copy and was abandoned with the resources it uses. May be called again. */
stk_status stki_prefetch_close(stki_prefetch *prefetch, int64_t timeout_ns, stk_error *err);
/* Closes the prefetcher if necessary (within a second) and releases the handle. NULL is allowed. The memory is freed
 * when the last slot has been released. Memory that a stream still uses at that time is leaked; to avoid that, wait
 * with stki_prefetch_has_passed. */
void stki_prefetch_destroy(stki_prefetch *prefetch);

/* For a closed prefetcher: waits until the streams that use its slots have completed their work. False: the deadline
 * passed first. */
bool stki_prefetch_has_passed(stki_prefetch *prefetch, int64_t deadline_ns);

/* Delivers the next batch: work queued in `stream` after this call runs after its copy. STK_E_TIMEOUT is not sticky,
 * and its message says what was missing; STK_END and other errors are sticky. A copy that fails after its batch was
 * delivered is reported by the next call. */
stk_status stki_prefetch_next(stki_prefetch *prefetch, stk_stream *stream, int64_t timeout_ns, int *slot,
                              stk_error *err);
/* Waits until all delivered batches are on the device, and returns the error of any failed copy. For use after the last
 * batch, when no further call to next would report it. */
stk_status stki_prefetch_settle(stki_prefetch *prefetch, int64_t timeout_ns, stk_error *err);
/* The device address of a part of a slot; constant for the life of the prefetcher. */
void *stki_prefetch_place(const stki_prefetch *prefetch, int slot, int part);

/* Makes work queued in `stream` from now on wait for the slot's bytes, as next does for its stream: for additional
 * streams that use a held slot. */
stk_status stki_prefetch_await(stki_prefetch *prefetch, int slot, stk_stream *stream, stk_error *err);
/* Prevents the held slot from being reused before everything queued so far in `stream` is complete. May be called for
 * any number of streams, by any thread. NULL: there is no queued work. */
void stki_prefetch_guard(stki_prefetch *prefetch, int slot, stk_stream *stream);
/* Releases the held slot. It is refilled after the guarded work is complete. */
void stki_prefetch_release(stki_prefetch *prefetch, int slot);

/* Totals since creation. `exposed` is the part of the copy and convert time during which the consumer's stream (or the
 * host, without a stream) waited for the batch. The rest overlapped with its work. */
typedef struct stki_prefetch_stats {
    int64_t batches, bytes; /* copied; batches in flight are not counted */
    int64_t copy_ns, convert_ns, exposed_ns;
    int64_t wait_upstream_ns, wait_slot_ns; /* time the copying thread waited for a batch; for a free slot */
    int64_t wait_next_ns;                   /* time the host waited in next */
    int64_t slots, queued, held;            /* numbers at the time of the call */
} stki_prefetch_stats;

void stki_prefetch_read_stats(stki_prefetch *prefetch, stki_prefetch_stats *out);

#endif
