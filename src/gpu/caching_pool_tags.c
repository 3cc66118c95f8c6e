/* caching_pool_tags.c: who holds how much: the blocks in use by the tag of the thread that made them (stk_tag_push), or
 * the operation that did (known while profile or recording are on). A name is an entry with running sums as long as a
 * block bears it, so that the biggest holders are known without a look at the blocks.
 */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "record.h"
#include <stdio.h>
#include <string.h>

static stki_pool_tag **chain_of(stki_caching_pool *pool, const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return &pool->tags[(hash >> 16 ^ hash) % STKI_POOL_TAG_CHAINS];
}

static stki_pool_tag *entry_of(stki_caching_pool *pool, const char *text)
{
    stki_pool_tag **chain = chain_of(pool, text), *tag = *chain;

    while (tag && strcmp(tag->text, text) != 0)
        tag = tag->next;
    if (tag)
        return tag;
    tag = pool->spare_tags;
    if (tag)
        pool->spare_tags = tag->next;
    else
        tag = stki_zalloc(sizeof *tag);
    if (!tag)
        return &pool->untold; /* its bytes are counted all the same */
    snprintf(tag->text, sizeof tag->text, "%s", text);
    tag->bytes = tag->blocks = 0;
    tag->next = *chain;
    *chain = tag;
    return tag;
}

void stki_pool_tag_add(stki_caching_pool *pool, stki_pool_block *block)
{
    char text[sizeof pool->untold.text];
    const char *name = stki_record_tag();

    if (!*name)
        name = stki_profile_operation();
    snprintf(text, sizeof text, "%s", name);
    block->tag = *text ? entry_of(pool, text) : &pool->untold;
    block->tag->bytes += block->asked_bytes;
    block->tag->blocks++;
}

void stki_pool_tag_remove(stki_caching_pool *pool, stki_pool_block *block)
{
    stki_pool_tag *tag = block->tag, **at;

    block->tag = NULL;
    tag->bytes -= block->asked_bytes;
    if (--tag->blocks > 0 || tag == &pool->untold)
        return;
    at = chain_of(pool, tag->text);
    while (*at != tag)
        at = &(*at)->next;
    *at = tag->next;
    tag->next = pool->spare_tags;
    pool->spare_tags = tag;
}

static bool is_bigger(const stki_pool_tag *a, const stki_pool_tag *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : strcmp(a->text, b->text) < 0;
}

static void add_top(const stki_pool_tag **top, int *count, int max, const stki_pool_tag *tag)
{
    int at = *count < max ? (*count)++ : max;

    for (; at > 0 && is_bigger(tag, top[at - 1]); at--)
        if (at < max)
            top[at] = top[at - 1];
    if (at < max)
        top[at] = tag;
}

int stki_pool_tags_top(const stki_caching_pool *pool, const stki_pool_tag **top, int max)
{
    int count = 0;

    if (pool->untold.blocks > 0)
        add_top(top, &count, max, &pool->untold);
    for (int i = 0; i < STKI_POOL_TAG_CHAINS; i++)
        for (const stki_pool_tag *tag = pool->tags[i]; tag; tag = tag->next)
            add_top(top, &count, max, tag);
    return count;
}

static void free_all(stki_pool_tag *tag)
{
    while (tag) {
        stki_pool_tag *next = tag->next;
        stki_free(tag);
        tag = next;
    }
}

void stki_pool_tags_fini(stki_caching_pool *pool)
{
    for (int i = 0; i < STKI_POOL_TAG_CHAINS; i++)
        free_all(pool->tags[i]);
    free_all(pool->spare_tags);
}
