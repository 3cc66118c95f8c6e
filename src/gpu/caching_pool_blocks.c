/* caching_pool_blocks.c: segments of the driver's memory and the blocks they are cut into. A segment is a list of
 * blocks in order of address that cover it without gaps; no two neighbours are free.
 *
 * Free blocks are a treap: a search tree by owner, size and address, and a heap by priorities that are drawn when a
 * block struct is made. Priorities of a fixed sequence balance it for whatever order the blocks come in, and the same
 * in every run. Blocks in use are a table of chains by address. The links lie in the blocks. */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "checked.h"

enum { FIRST_CHAINS = 256 };

const char stki_pool_nobody = 0;

/* ---- free blocks ---- */

/* Does `block` come before a block of that owner, size and address? */
static bool comes_before(const stki_pool_block *block, const void *owner, int64_t bytes, const char *address)
{
    const void *own = block->segment->owner;

    if (own != owner)
        return (uintptr_t)own < (uintptr_t)owner;
    if (block->bytes != bytes)
        return block->bytes < bytes;
    return (uintptr_t)block->address < (uintptr_t)address;
}

void stki_pool_tree_insert(stki_pool_block **root, stki_pool_block *block)
{
    const void *owner = block->segment->owner;
    stki_pool_block **at = root, **less = &block->left, **more = &block->right, *below;

    while (*at && (*at)->priority >= block->priority)
        at = comes_before(*at, owner, block->bytes, block->address) ? &(*at)->right : &(*at)->left;
    below = *at;
    *at = block;
    while (below) { /* what hung here falls apart along the new block's place */
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

void stki_pool_tree_remove(stki_pool_block **root, stki_pool_block *block)
{
    const void *owner = block->segment->owner;
    stki_pool_block **at = root, *left = block->left, *right = block->right;

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

stki_pool_block *stki_pool_tree_best(stki_pool_block *root, const void *owner, int64_t bytes)
{
    stki_pool_block *best = NULL;

    while (root) {
        if (comes_before(root, owner, bytes, NULL)) {
            root = root->right;
        } else {
            best = root;
            root = root->left;
        }
    }
    return best && best->segment->owner == owner ? best : NULL;
}

/* ---- blocks in use ---- */

static stki_pool_block **chain_of(const stki_pool_table *table, const void *address)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)address >> 6) * UINT64_C(0x9e3779b97f4a7c15);

    return &table->chains[(mixed >> 32) & (uint64_t)(table->chain_count - 1)];
}

bool stki_pool_table_init(stki_pool_table *table)
{
    table->chains = stki_zalloc_array(FIRST_CHAINS, sizeof *table->chains);
    table->chain_count = FIRST_CHAINS;
    return table->chains != NULL;
}

void stki_pool_table_fini(stki_pool_table *table)
{
    stki_free(table->chains);
    *table = (stki_pool_table){0};
}

/* Without memory the chains grow longer instead. */
static void grow(stki_pool_table *table)
{
    stki_pool_table wider = {.chain_count = table->chain_count * 2, .used = table->used};

    wider.chains = stki_zalloc_array(wider.chain_count, sizeof *wider.chains);
    if (!wider.chains)
        return;
    for (int64_t i = 0; i < table->chain_count; i++) {
        for (stki_pool_block *block = table->chains[i], *next; block; block = next) {
            stki_pool_block **chain = chain_of(&wider, block->address);
            next = block->next_used;
            block->next_used = *chain;
            *chain = block;
        }
    }
    stki_free(table->chains);
    *table = wider;
}

void stki_pool_table_insert(stki_pool_table *table, stki_pool_block *block)
{
    stki_pool_block **chain;

    if (table->used >= table->chain_count)
        grow(table);
    chain = chain_of(table, block->address);
    block->next_used = *chain;
    *chain = block;
    table->used++;
}

void stki_pool_table_remove(stki_pool_table *table, stki_pool_block *block)
{
    stki_pool_block **at = chain_of(table, block->address);

    while (*at != block)
        at = &(*at)->next_used;
    *at = block->next_used;
    table->used--;
}

stki_pool_block *stki_pool_table_find(const stki_pool_table *table, const void *address)
{
    stki_pool_block *block = *chain_of(table, address);

    while (block && block->address != (const char *)address)
        block = block->next_used;
    return block;
}

#define MIB (INT64_C(1) << 20)

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

/* Is what is left of a block of use to anybody? */
static bool is_worth_splitting(const stki_pool_segment *segment, int64_t rest)
{
    return segment->class == STKI_POOL_SMALL ? rest >= STKI_POOL_UNIT : rest > MIB;
}

/* ---- spare structs ---- */

/* A fixed sequence of well mixed numbers (splitmix64's finaliser). */
static uint32_t draw_priority(int64_t number)
{
    uint64_t x = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(x >> 32);
}

static void put_spare(stki_caching_pool *pool, stki_pool_block *block)
{
    block->after = pool->spare;
    pool->spare = block;
    pool->spare_count++;
}

bool stki_pool_reserve(stki_caching_pool *pool, int64_t count)
{
    while (pool->spare_count < count) {
        stki_pool_block *block = stki_zalloc(sizeof *block);
        if (!block)
            return false;
        block->priority = draw_priority(++pool->blocks_made);
        put_spare(pool, block);
    }
    return true;
}

static stki_pool_block *take_spare(stki_caching_pool *pool, stki_pool_segment *segment, char *address, int64_t bytes)
{
    stki_pool_block *block = pool->spare;

    pool->spare = block->after;
    pool->spare_count--;
    *block = (stki_pool_block){
        .priority = block->priority, .segment = segment, .address = address, .bytes = bytes, .state = STKI_POOL_FREE};
    return block;
}

/* ---- blocks ---- */

/* Cuts what is not needed off a block that is in no tree. A spare block is there. */
static void split(stki_caching_pool *pool, stki_pool_block *block, int64_t bytes)
{
    stki_pool_block *rest;

    if (!is_worth_splitting(block->segment, block->bytes - bytes))
        return;
    rest = take_spare(pool, block->segment, block->address + bytes, block->bytes - bytes);
    rest->before = block;
    rest->after = block->after;
    if (rest->after)
        rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    stki_pool_tree_insert(stki_pool_tree_of(pool, rest->segment), rest);
}

/* `next`, which is in no tree, becomes part of the block before it. */
static void absorb(stki_caching_pool *pool, stki_pool_block *block, stki_pool_block *next)
{
    block->bytes += next->bytes;
    block->after = next->after;
    if (block->after)
        block->after->before = block;
    put_spare(pool, next);
}

static void raise_to(int64_t *peak, int64_t value)
{
    *peak = value > *peak ? value : *peak;
}

static void use_block(stki_caching_pool *pool, stki_pool_block *block, int64_t asked_bytes)
{
    stk_device_memory_stats *stats = &pool->stats;

    block->state = STKI_POOL_USED;
    block->asked_bytes = asked_bytes;
    block->lost_use = false;
    stki_pool_table_insert(&pool->used, block);
    stki_pool_tag_add(pool, block);
    stats->blocks++;
    stats->allocations++;
    stats->allocated_bytes += asked_bytes;
    stats->active_bytes += block->bytes;
    raise_to(&stats->allocated_peak, stats->allocated_bytes);
    raise_to(&stats->active_peak, stats->active_bytes);
    raise_to(&stats->largest_bytes, asked_bytes);
}

/* The best block of a segment that belongs to nobody: whole, it is the stream's from now on; a part of one is used
 * beside its owner, as any other stream would. */
static stki_pool_block *take_from_nobody(stki_caching_pool *pool, stki_pool_block **tree,
                                         const stki_pool_request *request, stki_pool_use_fn *use)
{
    stki_pool_block *block = stki_pool_tree_best(*tree, &stki_pool_nobody, request->block_bytes);

    if (!block)
        return NULL;
    if (!stki_pool_whole(block->segment) && (!request->stream || !use(pool, block, request->stream)))
        return NULL;
    stki_pool_tree_remove(tree, block);
    if (stki_pool_whole(block->segment))
        block->segment->owner = request->stream;
    return block;
}

stk_status stki_pool_take(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_use_fn *use,
                          stki_pool_block **out)
{
    stki_pool_block **tree = &pool->tree[request->class != STKI_POOL_SMALL], *block;

    if (!stki_pool_reserve(pool, 1))
        return STK_E_MEMORY;
    block = stki_pool_tree_best(*tree, request->stream, request->block_bytes);
    if (block)
        stki_pool_tree_remove(tree, block);
    else
        block = take_from_nobody(pool, tree, request, use);
    if (!block)
        return STK_AGAIN;
    split(pool, block, request->block_bytes);
    use_block(pool, block, request->asked_bytes);
    *out = block;
    return STK_OK;
}

void stki_pool_wait(stki_caching_pool *pool, stki_pool_block *block)
{
    if (block->state == STKI_POOL_FREE) {
        pool->stats.active_bytes += block->bytes;
        raise_to(&pool->stats.active_peak, pool->stats.active_bytes);
    } else {
        stki_pool_table_remove(&pool->used, block);
        stki_pool_tag_remove(pool, block);
        pool->stats.blocks--;
        pool->stats.allocated_bytes -= block->asked_bytes;
    }
    block->state = STKI_POOL_WAITING;
    pool->waiting_blocks++;
}

void stki_pool_give(stki_caching_pool *pool, stki_pool_block *block)
{
    stki_pool_block **tree = stki_pool_tree_of(pool, block->segment);

    pool->waiting_blocks--;
    pool->stats.active_bytes -= block->bytes;
    block->state = STKI_POOL_FREE;
    if (block->segment->class == STKI_POOL_EXACT) {
        stki_pool_detach(pool, block->segment);
        return;
    }
    if (block->after && block->after->state == STKI_POOL_FREE) {
        stki_pool_tree_remove(tree, block->after);
        absorb(pool, block, block->after);
    }
    if (block->before && block->before->state == STKI_POOL_FREE) {
        block = block->before;
        stki_pool_tree_remove(tree, block);
        absorb(pool, block, block->after);
    }
    stki_pool_tree_insert(tree, block);
}

/* ---- segments ---- */

stki_pool_block *stki_pool_adopt(stki_caching_pool *pool, const stki_pool_request *request, stki_pool_segment *segment,
                                 void *memory)
{
    *segment = (stki_pool_segment){.before = pool->last,
                                   .address = memory,
                                   .bytes = request->segment_bytes,
                                   .number = ++pool->segments_made,
                                   .class = request->class,
                                   .owner = request->stream};
    *(pool->last ? &pool->last->next : &pool->first) = segment;
    pool->last = segment;
    pool->stats.segments++;
    pool->stats.driver_allocations++;
    pool->stats.reserved_bytes += segment->bytes;
    raise_to(&pool->stats.reserved_peak, pool->stats.reserved_bytes);
    segment->first = take_spare(pool, segment, segment->address, segment->bytes);
    if (segment->class != STKI_POOL_EXACT)
        split(pool, segment->first, request->block_bytes);
    use_block(pool, segment->first, request->asked_bytes);
    return segment->first;
}

void stki_pool_detach(stki_caching_pool *pool, stki_pool_segment *segment)
{
    if (segment->class != STKI_POOL_EXACT)
        stki_pool_tree_remove(stki_pool_tree_of(pool, segment), segment->first);
    put_spare(pool, segment->first);
    *(segment->before ? &segment->before->next : &pool->first) = segment->next;
    *(segment->next ? &segment->next->before : &pool->last) = segment->before;
    pool->stats.segments--;
    pool->stats.driver_frees++;
    pool->stats.reserved_bytes -= segment->bytes;
    segment->next = pool->leaving;
    pool->leaving = segment;
}
