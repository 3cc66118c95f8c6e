/* caching_pool_blocks.c: segments of the driver's memory and the blocks they are cut into. A segment is a list of
 * blocks in order of address that cover it without gaps; no two neighbors are free.
 *
 * The trees of free blocks are treaps: search trees by owner, size and address, and heaps by random priorities that
 * block structs get when they are created. The priorities balance the trees for any order of insertion. They come from
 * a fixed sequence, so that every run behaves the same. Blocks in use are in a hash table by address. */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "checked.h"

#define MIB (INT64_C(1) << 20)

const int64_t stki_pool_unowned = 0;

/* ---- free blocks ---- */

static inline bool comes_before(const stki_pool_block *block, const void *owner, int64_t bytes, const char *address)
{
    const void *own = block->segment->owner;

    if (own != owner)
        return (uintptr_t)own < (uintptr_t)owner;
    if (block->bytes != bytes)
        return block->bytes < bytes;
    return (uintptr_t)block->address < (uintptr_t)address;
}

static stki_pool_block **tree_of(stki_caching_pool *pool, const stki_pool_segment *segment)
{
    return &pool->free[segment->class != STKI_POOL_SMALL];
}

static void tree_insert(stki_caching_pool *pool, stki_pool_block *block)
{
    stki_pool_block **at = tree_of(pool, block->segment), **less = &block->left, **more = &block->right, *below;
    const void *owner = block->segment->owner;

    while (*at && (*at)->priority >= block->priority)
        at = comes_before(*at, owner, block->bytes, block->address) ? &(*at)->right : &(*at)->left;
    below = *at;
    *at = block;
    while (below) { /* the old subtree is split at the new block's key */
        if (comes_before(below, owner, block->bytes, block->address)) {
            *less = below;
            less = &below->right;
            below = below->right;
        } else {
            *more = below;
            more = &below->left;
            below = below->left;
        }
    }
    *less = *more = NULL;
}

static void tree_remove(stki_caching_pool *pool, stki_pool_block *block)
{
    stki_pool_block **at = tree_of(pool, block->segment), *left = block->left, *right = block->right;
    const void *owner = block->segment->owner;

    while (*at != block)
        at = comes_before(*at, owner, block->bytes, block->address) ? &(*at)->right : &(*at)->left;
    while (left && right) {
        if (left->priority >= right->priority) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
}

/* The smallest free block of the owner that is large enough. NULL: none. */
static stki_pool_block *best_of(const stki_caching_pool *pool, const void *owner, const stki_pool_request *request)
{
    stki_pool_block *block = pool->free[request->class != STKI_POOL_SMALL], *best = NULL;

    while (block) {
        if (comes_before(block, owner, request->block_bytes, NULL)) {
            block = block->right;
        } else {
            best = block;
            block = block->left;
        }
    }
    return best && best->segment->owner == owner ? best : NULL;
}

/* ---- blocks in use ---- */

static stki_pool_block **chain_of(stki_caching_pool *pool, const void *address)
{
    const uint64_t mixed = (uint64_t)(uintptr_t)address / STKI_POOL_UNIT * UINT64_C(0x9e3779b97f4a7c15);

    return &pool->used[mixed >> (64 - STKI_POOL_USED_BITS)];
}

/* Returns the link that points to the block in use at this address; the link is NULL if there is none. */
static stki_pool_block **place_of(stki_caching_pool *pool, const void *address)
{
    stki_pool_block **at = chain_of(pool, address);

    while (*at && (*at)->address != (const char *)address)
        at = &(*at)->right;
    return at;
}

stki_pool_block *stki_pool_find(stki_caching_pool *pool, const void *address)
{
    return *place_of(pool, address);
}

/* ---- sizes ---- */

bool stki_pool_request_init(const stki_caching_pool *pool, int64_t bytes, stk_stream *stream, stki_pool_request *out)
{
    const stki_pool_rules *rules = pool->rules;

    *out = (stki_pool_request){.asked_bytes = bytes, .stream = pool->base.kind == STK_MEMORY_PINNED ? NULL : stream};
    if (bytes < 0 || bytes > INT64_MAX / 4)
        return false;
    out->block_bytes = stki_round_up(bytes ? bytes : 1, STKI_POOL_UNIT);
    if (out->block_bytes <= rules->small_limit) {
        out->class = STKI_POOL_SMALL;
        out->segment_bytes = rules->small_segment;
    } else if (out->block_bytes <= rules->medium_limit) {
        out->class = STKI_POOL_MEDIUM;
        out->segment_bytes = rules->medium_segment;
    } else {
        out->class = STKI_POOL_LARGE;
        out->segment_bytes = stki_round_up(out->block_bytes, rules->large_step);
    }
    return true;
}

static bool is_worth_splitting(const stki_pool_segment *segment, int64_t rest)
{
    if (segment->class == STKI_POOL_EXACT)
        return false;
    return segment->class == STKI_POOL_SMALL ? rest >= STKI_POOL_UNIT : rest > MIB;
}

/* ---- blocks ---- */

static void init_block(stki_caching_pool *pool, stki_pool_block *block, stki_pool_segment *segment, char *address,
                       int64_t bytes)
{
    uint64_t x = (uint64_t)++pool->blocks_made * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    *block = (stki_pool_block){.priority = (uint32_t)(x >> 32), .segment = segment, .address = address, .bytes = bytes};
}

/* Splits a block that is in no tree and frees the rest. If there is no memory for the rest's struct, the block is not
 * split. */
static void split(stki_caching_pool *pool, stki_pool_block *block, int64_t bytes)
{
    stki_pool_block *rest = pool->spare;

    if (!is_worth_splitting(block->segment, block->bytes - bytes))
        return;
    if (rest)
        pool->spare = rest->after;
    else if (!(rest = stki_zalloc(sizeof *rest)))
        return;
    init_block(pool, rest, block->segment, block->address + bytes, block->bytes - bytes);
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    tree_insert(pool, rest);
}

/* Merges the next block, which is in no tree, into this one. */
static void absorb_next(stki_caching_pool *pool, stki_pool_block *block)
{
    stki_pool_block *next = block->after;

    block->bytes += next->bytes;
    block->after = next->after;
    if (block->after)
        block->after->before = block;
    next->after = pool->spare;
    pool->spare = next;
}

static void raise_to(int64_t *peak, int64_t value)
{
    *peak = value > *peak ? value : *peak;
}

static stki_pool_block *use_block(stki_caching_pool *pool, stki_pool_block *block, const stki_pool_request *request)
{
    stk_device_memory_stats *stats = &pool->stats;
    stki_pool_block **chain = chain_of(pool, block->address);

    split(pool, block, request->block_bytes);
    block->state = STKI_POOL_USED;
    block->asked_bytes = request->asked_bytes;
    block->lost_use = false;
    block->right = *chain;
    *chain = block;
    stki_pool_tag_add(pool, block);
    stats->blocks++;
    stats->allocations++;
    stats->allocated_bytes += block->asked_bytes;
    stats->active_bytes += block->bytes;
    raise_to(&stats->allocated_peak, stats->allocated_bytes);
    raise_to(&stats->active_peak, stats->active_bytes);
    raise_to(&stats->largest_bytes, block->asked_bytes);
    return block;
}

stki_pool_block *stki_pool_take(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_use_fn *use)
{
    stki_pool_block *block = best_of(pool, request->stream, request);

    if (!block) {
        /* If the block is a whole unowned segment, the stream becomes its owner; if it is only a part of one, the
         * stream is recorded as another user. */
        block = best_of(pool, &stki_pool_unowned, request);
        if (!block || (!stki_pool_whole(block->segment) && (!request->stream || !use(pool, block, request->stream))))
            return NULL;
    }
    tree_remove(pool, block);
    if (stki_pool_whole(block->segment))
        block->segment->owner = request->stream;
    return use_block(pool, block, request);
}

void stki_pool_free(stki_caching_pool *pool, stki_pool_block *block)
{
    *place_of(pool, block->address) = block->right;
    block->tag->bytes -= block->asked_bytes;
    block->tag->blocks--;
    block->tag = NULL;
    pool->stats.blocks--;
    pool->stats.allocated_bytes -= block->asked_bytes;
    block->state = STKI_POOL_WAITING;
    block->waits = 1;
}

void stki_pool_unwait(stki_caching_pool *pool, stki_pool_block *block)
{
    if (--block->waits > 0)
        return;
    pool->stats.active_bytes -= block->bytes;
    if (block->after && block->after->state == STKI_POOL_FREE) {
        tree_remove(pool, block->after);
        absorb_next(pool, block);
    }
    if (block->before && block->before->state == STKI_POOL_FREE) {
        block = block->before;
        tree_remove(pool, block);
        absorb_next(pool, block);
    }
    block->state = STKI_POOL_FREE;
    tree_insert(pool, block);
    if (block->segment->class == STKI_POOL_EXACT)
        stki_pool_detach(pool, block->segment);
}

/* ---- segments ---- */

stki_pool_block *stki_pool_adopt(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                                 void *memory)
{
    *segment = (stki_pool_segment){.next = pool->segments,
                                   .address = memory,
                                   .bytes = request->segment_bytes,
                                   .number = ++pool->segments_made,
                                   .class = request->class,
                                   .owner = request->stream};
    if (segment->next)
        segment->next->before = segment;
    pool->segments = segment;
    pool->stats.segments++;
    pool->stats.driver_allocations++;
    pool->stats.reserved_bytes += segment->bytes;
    raise_to(&pool->stats.reserved_peak, pool->stats.reserved_bytes);
    init_block(pool, &segment->first, segment, segment->address, segment->bytes);
    return use_block(pool, &segment->first, request);
}

void stki_pool_reown(stki_caching_pool *pool, const void *from, const void *to)
{
    for (stki_pool_segment *segment = pool->segments; segment; segment = segment->next) {
        if (segment->owner != from)
            continue;
        for (stki_pool_block *block = &segment->first; block; block = block->after)
            if (block->state == STKI_POOL_FREE)
                tree_remove(pool, block);
        segment->owner = to;
        for (stki_pool_block *block = &segment->first; block; block = block->after)
            if (block->state == STKI_POOL_FREE)
                tree_insert(pool, block);
    }
}

void stki_pool_detach(stki_caching_pool *pool, stki_pool_segment *segment)
{
    tree_remove(pool, &segment->first);
    *(segment->before ? &segment->before->next : &pool->segments) = segment->next;
    if (segment->next)
        segment->next->before = segment->before;
    pool->stats.segments--;
    pool->stats.driver_frees++;
    pool->stats.reserved_bytes -= segment->bytes;
    segment->next = pool->leaving;
    pool->leaving = segment;
}
