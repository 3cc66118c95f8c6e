/* caching_pool_tags.c: bytes in use by tag: the tag of the thread that allocated a block (stk_tag_push), or else the
 * name of the operation (known only while profiling or recording). */
#include "allocate.h"
#include "caching_pool_internal.h"
#include "record.h"
#include <stdio.h>
#include <string.h>

static stki_pool_tag *tag_of(stki_caching_pool *pool, const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    stki_pool_tag **chain, *tag, *vacant = NULL;

    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 16777619u;
    chain = &pool->tags[(hash >> 16 ^ hash) % STKI_POOL_TAG_CHAINS];
    for (tag = *chain; tag && strcmp(tag->text, text) != 0; tag = tag->next)
        vacant = tag->blocks == 0 ? tag : vacant;
    if (tag)
        return tag;
    if (!vacant) {
        vacant = stki_zalloc(sizeof *vacant);
        if (!vacant)
            return &pool->untagged;
        vacant->next = *chain;
        *chain = vacant;
    }
    snprintf(vacant->text, sizeof vacant->text, "%s", text);
    return vacant;
}

void stki_pool_tag_add(stki_caching_pool *pool, stki_pool_block *block)
{
    const char *name = *stki_record_tag() ? stki_record_tag() : stki_profile_operation();
    char text[sizeof block->tag->text];

    snprintf(text, sizeof text, "%s", name);
    block->tag = *text ? tag_of(pool, text) : &pool->untagged;
    block->tag->bytes += block->asked_bytes;
    block->tag->blocks++;
}

static void add_top(const stki_pool_tag **top, int *count, int max, const stki_pool_tag *tag)
{
    int at = *count;

    if (tag->blocks == 0)
        return;
    while (at > 0 && (tag->bytes != top[at - 1]->bytes ? tag->bytes > top[at - 1]->bytes
                                                       : strcmp(tag->text, top[at - 1]->text) < 0))
        at--;
    if (at == max)
        return;
    *count += *count < max;
    memmove(top + at + 1, top + at, (size_t)(*count - at - 1) * sizeof *top);
    top[at] = tag;
}

int stki_pool_tags_top(const stki_caching_pool *pool, const stki_pool_tag **top, int max)
{
    int count = 0;

    add_top(top, &count, max, &pool->untagged);
    for (int i = 0; i < STKI_POOL_TAG_CHAINS; i++)
        for (const stki_pool_tag *tag = pool->tags[i]; tag; tag = tag->next)
            add_top(top, &count, max, tag);
    return count;
}

void stki_pool_tags_fini(stki_caching_pool *pool)
{
    for (int i = 0; i < STKI_POOL_TAG_CHAINS; i++) {
        for (stki_pool_tag *tag = pool->tags[i], *next; tag; tag = next) {
            next = tag->next;
            stki_free(tag);
        }
    }
}
