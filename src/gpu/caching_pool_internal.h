/* caching_pool_internal.h: the structs of a caching pool and what its files do for each other. Everything here is
 * called with the pool's lock held unless it says otherwise.
 *
 *   caching_pool.c          the calls of the table, the driver, what happens without memory
 *   caching_pool_blocks.c   segments and blocks, the tree of free blocks, the table of those in use
 *   caching_pool_streams.c  which streams use a block, and the events it waits for
 *   caching_pool_tags.c     who holds how much
 *   caching_pool_report.c   statistics, summary, snapshot, the message of a failure
 */
#ifndef STKI_CACHING_POOL_INTERNAL_H
#define STKI_CACHING_POOL_INTERNAL_H

#include "caching_pool.h"
#include "thread.h"

enum { STKI_POOL_UNIT = 512 };

typedef struct stki_pool_block stki_pool_block;
typedef struct stki_pool_segment stki_pool_segment;
typedef struct stki_pool_use stki_pool_use;
typedef struct stki_pool_queue stki_pool_queue;
typedef struct stki_pool_tag stki_pool_tag;
typedef struct stki_caching_pool stki_caching_pool;

typedef enum stki_pool_class {
    STKI_POOL_SMALL,
    STKI_POOL_MEDIUM,
    STKI_POOL_LARGE,
    STKI_POOL_EXACT,
    STKI_POOL_CLASSES
} stki_pool_class;

typedef enum stki_pool_state {
    STKI_POOL_FREE,   /* in the tree */
    STKI_POOL_USED,   /* in the table of addresses */
    STKI_POOL_WAITING /* freed, `waits` events to go */
} stki_pool_state;

struct stki_pool_block {
    stki_pool_block *left, *right; /* in the tree of free blocks */
    uint32_t priority;
    stki_pool_state state;
    stki_pool_segment *segment;
    stki_pool_block *before, *after; /* neighbours in the segment; `after` is also the next spare one */
    stki_pool_block *next_used;      /* in the table */
    char *address;
    int64_t bytes, asked_bytes;
    int64_t waits;
    bool lost_use;       /* a stream uses it that there was no memory to remember */
    stki_pool_use *uses; /* while used: other streams */
    stki_pool_tag *tag;
};

struct stki_pool_segment {
    stki_pool_segment *before, *next; /* in order of making */
    stki_pool_block *first;
    char *address;
    int64_t bytes, number;
    stki_pool_class class;
    const void *owner; /* the stream; NULL: the NULL stream; &stki_pool_nobody */
};

extern const char stki_pool_nobody;

/* One stream that one block waits for, or will. */
struct stki_pool_use {
    stki_pool_use *next;
    stki_pool_queue *queue;
    stki_pool_block *block;
    stk_event *event;
    bool recorded;
};

/* The uses of one stream, whose events pass in order. */
struct stki_pool_queue {
    stki_pool_queue *next;
    stk_stream *stream; /* NULL: it is gone, its last events still have to pass */
    stki_pool_use *first, *last;
    stki_pool_use *spare; /* with their events */
    int64_t busy;         /* uses that are not spare */
};

struct stki_pool_tag {
    stki_pool_tag *next;
    int64_t bytes, blocks;
    char text[64];
};

enum { STKI_POOL_TAG_CHAINS = 64 };

typedef struct stki_pool_table {
    stki_pool_block **chains;
    int64_t chain_count, used; /* a power of two */
} stki_pool_table;

typedef struct stki_pool_rules {
    int64_t small_limit, small_segment;
    int64_t medium_limit, medium_segment; /* 0: no medium class */
    int64_t large_step;
} stki_pool_rules;

struct stki_caching_pool {
    stki_pool base;
    stki_caching_pool *next_pool; /* guarded by the lock of the list */
    /* fixed after create */
    const stki_pool_rules *rules;
    stki_counter patience_ns;

    stki_mutex lock;
    /* guarded by lock */
    stki_pool_block *tree[2]; /* small blocks, others */
    stki_pool_table used;
    stki_pool_segment *first, *last;
    stki_pool_segment *leaving; /* by `next`: the driver gets them as soon as the lock is open */
    stki_pool_block *spare;
    int64_t spare_count, blocks_made, segments_made;
    stki_pool_queue *queues;
    int64_t waiting_blocks;
    stki_pool_tag *tags[STKI_POOL_TAG_CHAINS], *spare_tags, untold;
    stk_device_memory_stats stats; /* the counts; the rest is looked for when asked */
    int64_t errors;
    char last_error[256];
};

static inline stki_caching_pool *stki_caching_pool_of(stki_pool *pool)
{
    return (stki_caching_pool *)(void *)pool; /* base is its first member */
}

static inline bool stki_pool_whole(const stki_pool_segment *segment)
{
    return segment->first->state == STKI_POOL_FREE && !segment->first->after;
}

static inline stki_pool_block **stki_pool_tree_of(stki_caching_pool *pool, const stki_pool_segment *segment)
{
    return &pool->tree[segment->class != STKI_POOL_SMALL];
}

/* ---- index ---- */

void stki_pool_tree_insert(stki_pool_block **root, stki_pool_block *block);
void stki_pool_tree_remove(stki_pool_block **root, stki_pool_block *block);
/* The smallest of `owner` with at least so many bytes, the lowest address among equals. NULL: none. */
stki_pool_block *stki_pool_tree_best(stki_pool_block *root, const void *owner, int64_t bytes);

/* Grows by itself as long as there is memory. False: none even for the first chains. */
bool stki_pool_table_init(stki_pool_table *table);
void stki_pool_table_fini(stki_pool_table *table);
void stki_pool_table_insert(stki_pool_table *table, stki_pool_block *block);
void stki_pool_table_remove(stki_pool_table *table, stki_pool_block *block);
stki_pool_block *stki_pool_table_find(const stki_pool_table *table, const void *address);

/* ---- blocks ---- */

typedef struct stki_pool_request {
    int64_t asked_bytes, block_bytes, segment_bytes;
    stki_pool_class class;
    stk_stream *stream; /* NULL for pinned memory */
} stki_pool_request;

/* False: no size that could be. */
bool stki_pool_request_init(const stki_caching_pool *pool, int64_t bytes, stk_stream *stream, stki_pool_request *out);
/* At least `count` spare blocks. */
bool stki_pool_reserve(stki_caching_pool *pool, int64_t count);
/* `stream` uses the block. False: no memory to remember it. */
typedef bool stki_pool_use_fn(stki_caching_pool *pool, stki_pool_block *block, stk_stream *stream);
/* From the cache; `use` is called for part of a segment that is nobody's. STK_AGAIN: there is none. STK_E_MEMORY: no
 * memory for bookkeeping. */
stk_status stki_pool_take(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_use_fn *use,
                          stki_pool_block **out);
/* Memory of the driver joins, with two spare blocks that are there, and its first block is taken. */
stki_pool_block *stki_pool_adopt(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                                 void *memory);
/* A waiting block is free, and one with its free neighbours; an exact one leaves. */
void stki_pool_give(stki_caching_pool *pool, stki_pool_block *block);
/* A used block, or a free one that was taken out of its tree, waits from now on. */
void stki_pool_wait(stki_caching_pool *pool, stki_pool_block *block);
/* Takes a segment whose one block is free out of the pool and lets it leave. */
void stki_pool_detach(stki_caching_pool *pool, stki_pool_segment *segment);

/* ---- streams ---- */

stki_pool_use_fn stki_pool_use_add;
/* Everything queued so far in the streams that use the block is now waited for. STK_OK: the block waits, or has nothing
 * to wait for (waits == 0). An error: some streams could not be asked, which has been noted. */
stk_status stki_pool_uses_record(stki_caching_pool *pool, stki_pool_block *block);
/* Gives back what waited for events that have passed. */
void stki_pool_process(stki_caching_pool *pool);
/* Fetches `count` events for the stream in advance. */
bool stki_pool_events_reserve(stki_caching_pool *pool, stk_stream *stream, int64_t count);
/* How many events it takes to let the stream go. */
int64_t stki_pool_stream_stake(const stki_caching_pool *pool, const stk_stream *stream);
/* The stream goes: its segments are nobody's, and where it has not passed its blocks wait for events behind its last
 * work, which have been reserved. */
void stki_pool_forget(stki_caching_pool *pool, stk_stream *stream, bool passed);
void stki_pool_uses_drop(stki_pool_block *block);
void stki_pool_queues_fini(stki_caching_pool *pool);
/* A device said no while memory was given back: there is nobody to be handed the error. */
void stki_pool_note_error(stki_caching_pool *pool, const char *what, stk_status status, const stk_error *err);

/* ---- tags ---- */

/* The block is held under the calling thread's tag, or the name of its operation. */
void stki_pool_tag_add(stki_caching_pool *pool, stki_pool_block *block);
void stki_pool_tag_remove(stki_caching_pool *pool, stki_pool_block *block);
/* Those with the most bytes first; returns how many there are. */
int stki_pool_tags_top(const stki_caching_pool *pool, const stki_pool_tag **top, int max);
void stki_pool_tags_fini(stki_caching_pool *pool);

/* ---- reports (these take the lock) ---- */

void stki_pool_stats_read(stki_pool *pool, stk_device_memory_stats *out);
stk_status stki_pool_snapshot(stki_pool *pool, char **out, stk_error *err);
stk_status stki_pool_summary(stki_pool *pool, char **out, stk_error *err);
stk_status stki_pool_fail_memory(stki_caching_pool *pool, const stki_pool_request *request, const char *driver_said,
                                 stk_error *err);

#endif
