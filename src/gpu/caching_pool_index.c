/* caching_pool_index.c: how a pool finds its blocks, with links that lie in the blocks themselves.
 *
 * Free blocks are a treap: a search tree by owner, size and address, and a heap by priorities that are drawn when a
 * block struct is made. Priorities of a fixed sequence make it balanced for whatever order the blocks come in, and the
 * same in every run. Blocks in use are a table of chains by address.
 */
#include "allocate.h"
#include "caching_pool_internal.h"

enum { FIRST_CHAINS = 256 };

const char stki_pool_nobody = 0;

/* ---- free blocks ------------------------------------------------------------------------------------------------- */

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

/* ---- blocks in use ----------------------------------------------------------------------------------------------- */

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
