/* pool_check.h: checks the invariants of a caching pool: blocks cover the segments, free neighbors are merged, every
 * free block is in its tree and every used block in the table, and the counters match what they count. No other thread
 * may use the pool during the check. */
#ifndef STKT_POOL_CHECK_H
#define STKT_POOL_CHECK_H

#include "caching_pool_internal.h"
#include "stk_test.h"

/* Sets how long an allocation waits for streams before it fails. */
static inline void pool_set_patience(stki_pool *pool, int64_t patience_ns)
{
    stki_count_set(&stki_caching_pool_of(pool)->patience_ns, patience_ns);
}

/* Counts the blocks of a tree and checks its order and heap property. */
static int64_t pool_check_tree(const stki_pool_block *root, const stki_pool_block **last)
{
    int64_t count = 1;

    if (!root)
        return 0;
    count += pool_check_tree(root->left, last);
    if (*last) {
        const stki_pool_block *a = *last;
        assert_true(a->segment->owner != root->segment->owner
                        ? (uintptr_t)a->segment->owner < (uintptr_t)root->segment->owner
                    : a->bytes != root->bytes ? a->bytes < root->bytes
                                              : a->address < root->address);
    }
    *last = root;
    assert_int_equal(root->state, STKI_POOL_FREE);
    assert_true(!root->left || root->left->priority <= root->priority);
    assert_true(!root->right || root->right->priority <= root->priority);
    return count + pool_check_tree(root->right, last);
}

static inline void pool_check(stki_pool *base)
{
    stki_caching_pool *pool = stki_caching_pool_of(base);
    int64_t segments = 0, reserved = 0, allocated = 0, active = 0, used = 0, chained = 0, free_blocks = 0,
            tag_bytes = pool->untagged.bytes, tag_blocks = pool->untagged.blocks;
    const stki_pool_block *last[2] = {NULL};

    for (const stki_pool_segment *segment = pool->segments; segment; segment = segment->next) {
        char *at = segment->address;
        segments++;
        reserved += segment->bytes;
        assert_null(segment->first.before);
        assert_true(!segment->next || segment->next->before == segment);
        for (const stki_pool_block *block = &segment->first; block; block = block->after) {
            assert_ptr_equal(block->address, at);
            assert_ptr_equal(block->segment, segment);
            assert_true(block->bytes > 0);
            at += block->bytes;
            assert_true(!block->after || block->after->before == block);
            assert_false(block->state == STKI_POOL_FREE && block->after && block->after->state == STKI_POOL_FREE);
            assert_true((block->state == STKI_POOL_WAITING) == (block->waits > 0));
            assert_true((block->state == STKI_POOL_USED) == (block->tag != NULL));
            free_blocks += block->state == STKI_POOL_FREE;
            active += block->state == STKI_POOL_FREE ? 0 : block->bytes;
            if (block->state == STKI_POOL_USED) {
                assert_ptr_equal(stki_pool_find(pool, block->address), block);
                assert_true(block->asked_bytes <= block->bytes);
                allocated += block->asked_bytes;
                used++;
            }
        }
        assert_ptr_equal(at, segment->address + segment->bytes);
    }
    for (int i = 0; i < STKI_POOL_TAG_CHAINS; i++) {
        for (const stki_pool_tag *tag = pool->tags[i]; tag; tag = tag->next) {
            assert_true(tag->blocks > 0 || tag->bytes == 0);
            tag_bytes += tag->bytes;
            tag_blocks += tag->blocks;
        }
    }
    assert_int_equal(pool_check_tree(pool->free[0], &last[0]) + pool_check_tree(pool->free[1], &last[1]), free_blocks);
    for (int i = 0; i < 1 << STKI_POOL_USED_BITS; i++) {
        for (const stki_pool_block *block = pool->used[i]; block; block = block->right) {
            assert_int_equal(block->state, STKI_POOL_USED);
            chained++;
        }
    }
    assert_int_equal(chained, used);
    assert_int_equal(pool->stats.segments, segments);
    assert_int_equal(pool->stats.reserved_bytes, reserved);
    assert_int_equal(pool->stats.allocated_bytes, allocated);
    assert_int_equal(pool->stats.active_bytes, active);
    assert_int_equal(pool->stats.blocks, used);
    assert_int_equal(pool->stats.driver_allocations - pool->stats.driver_frees, segments);
    assert_int_equal(tag_bytes, allocated);
    assert_int_equal(tag_blocks, used);
    assert_null(pool->leaving);
}

#endif
