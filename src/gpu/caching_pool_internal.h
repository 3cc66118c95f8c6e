/* caching_pool_internal.h: the structs of a caching pool and the functions that its files share. All functions must be
 * called with the pool's lock held, unless stated otherwise.
 *
 *   caching_pool.c          the functions of the table, the driver, the handling of out-of-memory conditions
 *   caching_pool_blocks.c   segments and blocks, and the tree that finds them
 *   caching_pool_streams.c  the streams that use a block, and the events it waits for
 *   caching_pool_tags.c     bytes in use by tag
 *   caching_pool_report.c   statistics, summary, snapshot, the message of a failure
 */
#ifndef STKI_CACHING_POOL_INTERNAL_H
#define STKI_CACHING_POOL_INTERNAL_H

#include "caching_pool.h"
#include "thread.h"

enum { STKI_POOL_UNIT = 512, STKI_POOL_TAG_CHAINS = 64, STKI_POOL_USED_BITS = 12 };

typedef struct stki_pool_block stki_pool_block;
typedef struct stki_pool_segment stki_pool_segment;
typedef struct stki_pool_use stki_pool_use;
typedef struct stki_pool_queue stki_pool_queue;

typedef enum stki_pool_class {
    STKI_POOL_SMALL,
    STKI_POOL_MEDIUM,
    STKI_POOL_LARGE,
    STKI_POOL_EXACT,
    STKI_POOL_CLASSES
} stki_pool_class;

typedef enum stki_pool_state {
    STKI_POOL_FREE,   /* in a tree by owner and size */
    STKI_POOL_USED,   /* in the table by address */
    STKI_POOL_WAITING /* freed, but in neither until `waits` events have completed */
} stki_pool_state;

/* The blocks in use with this tag. */
typedef struct stki_pool_tag {
    struct stki_pool_tag *next;
    int64_t bytes, blocks; /* their size and number; at 0 blocks, the struct may be reused for another tag */
    char text[64];
} stki_pool_tag;

struct stki_pool_block {
    stki_pool_block *left, *right; /* in its tree; `right` also links the chains of the table */
    uint32_t priority;
    stki_pool_state state;
    stki_pool_segment *segment;
    stki_pool_block *before, *after; /* neighbors in the segment; `after` also links spare structs */
    char *address;
    int64_t bytes, asked_bytes;
    int64_t waits;
    bool lost_use;       /* a stream uses the block, but there was no memory to record that */
    stki_pool_use *uses; /* while in use: the other streams that use it */
    stki_pool_tag *tag;
};

struct stki_pool_segment {
    stki_pool_segment *before, *next; /* in the pool's list, newest first */
    stki_pool_block first;
    char *address;
    int64_t bytes, number;
    stki_pool_class class;
    const void *owner; /* a stream (which may be NULL), the queue of a destroyed stream, or &stki_pool_unowned */
};

extern const int64_t stki_pool_unowned;

/* One stream that uses one block. */
struct stki_pool_use {
    stki_pool_use *next;
    stki_pool_block *block;
    stki_pool_queue *queue;
    stk_event *event;
    bool recorded; /* false in the queue of a destroyed stream: the event is the queue's `end` */
};

/* The uses of one stream, whose events complete in order. */
struct stki_pool_queue {
    stki_pool_queue *next;
    stk_stream *stream; /* NULL: destroyed */
    stk_event *end;     /* recorded after the last work of a destroyed stream; NULL: completed */
    stki_pool_use *first, *last, *spare;
    int64_t busy; /* number of uses that are not spare */
};

typedef struct stki_pool_rules {
    int64_t small_limit, small_segment;
    int64_t medium_limit, medium_segment; /* 0: no medium class */
    int64_t large_step;
} stki_pool_rules;

typedef struct stki_caching_pool {
    stki_pool base;
    stki_fork_hold fork_hold;
    const stki_pool_rules *rules;
    stki_counter patience_ns; /* how long an allocation waits for streams before it fails with STK_E_MEMORY */

    stki_mutex lock;
    /* guarded by lock */
    stki_pool_block *free[2], *spare; /* free blocks of small segments, and of others */
    stki_pool_block *used[1 << STKI_POOL_USED_BITS];
    stki_pool_segment *segments;
    stki_pool_segment *leaving; /* linked by `next`: returned to the driver as soon as the lock is released */
    stki_pool_queue *queues;
    int64_t blocks_made, segments_made, errors;
    stki_pool_tag *tags[STKI_POOL_TAG_CHAINS], untagged;
    stk_device_memory_stats stats; /* counters; members that depend on the free blocks are computed on demand */
    char last_error[256];
} stki_caching_pool;

static inline stki_caching_pool *stki_caching_pool_of(stki_pool *pool)
{
    return (stki_caching_pool *)(void *)pool; /* base is its first member */
}

static inline bool stki_pool_whole(const stki_pool_segment *segment)
{
    return segment->first.state == STKI_POOL_FREE && !segment->first.after;
}

/* ---- blocks ---- */

typedef struct stki_pool_request {
    int64_t asked_bytes, block_bytes, segment_bytes;
    stki_pool_class class;
    stk_stream *stream; /* NULL for pinned memory */
} stki_pool_request;

/* False: no device has that many bytes. */
bool stki_pool_request_init(const stki_caching_pool *pool, int64_t bytes, stk_stream *stream, stki_pool_request *out);
/* Records that `stream` uses the block. False: out of memory. */
typedef bool stki_pool_use_fn(stki_caching_pool *pool, stki_pool_block *block, stk_stream *stream);
/* Takes a block from the cache; NULL: there is none. If it is part of a segment without an owner, the stream is
 * recorded with `use`. */
stki_pool_block *stki_pool_take(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_use_fn *use);
/* Adds memory from the driver as a segment and takes its first block. */
stki_pool_block *stki_pool_adopt(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                                 void *memory);
/* The block in use at this address. NULL: there is none. */
stki_pool_block *stki_pool_find(stki_caching_pool *pool, const void *address);
/* Starts to free a block in use: sets its state to WAITING and `waits` to 1. stki_pool_uses_record increments `waits`
 * for each event, and stki_pool_unwait decrements it. At 0, the block becomes free. */
void stki_pool_free(stki_caching_pool *pool, stki_pool_block *block);
void stki_pool_unwait(stki_caching_pool *pool, stki_pool_block *block);
/* Makes `to` the owner of all segments of `from`. */
void stki_pool_reown(stki_caching_pool *pool, const void *from, const void *to);
/* Removes a segment that is entirely free from the pool; it is returned to the driver when the lock is released. */
void stki_pool_detach(stki_caching_pool *pool, stki_pool_segment *segment);

/* ---- streams ---- */

stki_pool_use_fn stki_pool_use_add;
/* Makes a block that is being freed wait for all work queued so far in the streams that use it. False: an event could
 * not be recorded; the error is noted. */
bool stki_pool_uses_record(stki_caching_pool *pool, stki_pool_block *block);
/* Frees blocks whose events have completed. Returns whether other events are pending. */
bool stki_pool_process(stki_caching_pool *pool);
/* Called when the stream is destroyed: its segments become unowned after its last work. False: no event could be
 * recorded; call it again with `done` after waiting for the stream. */
bool stki_pool_forget(stki_caching_pool *pool, stk_stream *stream, bool done);
void stki_pool_queues_fini(stki_caching_pool *pool);
void stki_pool_uses_drop(stki_pool_block *block);
/* Records an error that the device reported while memory was freed, because there is no caller to return it to. */
void stki_pool_note_error(stki_caching_pool *pool, const char *what, stk_status status, const stk_error *err);

/* ---- tags ---- */

/* Counts the block under the calling thread's tag or, if it has none, the name of its operation. */
void stki_pool_tag_add(stki_caching_pool *pool, stki_pool_block *block);
/* The tags with the most bytes, in descending order. Returns their number. */
int stki_pool_tags_top(const stki_caching_pool *pool, const stki_pool_tag **top, int max);
void stki_pool_tags_fini(stki_caching_pool *pool);

/* ---- reports (these take the lock) ---- */

void stki_pool_stats_read(stki_pool *pool, stk_device_memory_stats *out);
stk_status stki_pool_snapshot(stki_pool *pool, char **out, stk_error *err);
stk_status stki_pool_summary(stki_pool *pool, char **out, stk_error *err);
stk_status stki_pool_fail_memory(stki_caching_pool *pool, const stki_pool_request *request, const char *driver_reason,
                                 stk_error *err);

#endif
