/* places.c: see places.h. */
#include "places.h"
#include "allocate.h"
#include "grow.h"
#include <assert.h>
#include <string.h>

enum { BLOCK = STKI_PLACES_BLOCK };

static const char what[] = "the offsets of samples";

/* Releases unused capacity if possible. */
static void shrink(void *memory, int64_t *room, int64_t used, int64_t size)
{
    void *block, *smaller;

    memcpy(&block, memory, sizeof block);
    smaller = used > 0 && used < *room ? stki_resize(block, used * size) : NULL;
    if (!smaller)
        return;
    memcpy(memory, &smaller, sizeof smaller);
    *room = used;
}

static stk_status add_far(stki_places *p, stki_places_near *block, int count, stk_error *err)
{
    stk_status status = stki_grow(&p->wide, &p->wide_room, p->wide_count + BLOCK, sizeof *p->wide, what, err);

    if (status != STK_OK)
        return status;
    block->far = 1;
    block->start = p->wide_count;
    memcpy(p->wide + p->wide_count, p->last, (size_t)count * sizeof *p->last);
    memset(p->wide + p->wide_count + count, 0, (size_t)(BLOCK - count) * sizeof *p->last);
    p->wide_count += BLOCK;
    return STK_OK;
}

/* Stores the `count` pending numbers as block `at`. */
static stk_status close_block(stki_places *p, int64_t at, int count, stk_error *err)
{
    stki_places_near block = {.start = p->last[0]};
    stk_status status = stki_grow(&p->blocks, &p->block_room, at + 1, sizeof *p->blocks, what, err);

    if (status == STK_OK && p->last[count - 1] - p->last[0] > UINT16_MAX)
        status = add_far(p, &block, count, err);
    if (status != STK_OK)
        return status;
    for (int i = 1; i < count && !block.far; i++)
        block.distance[i - 1] = (uint16_t)(p->last[i] - p->last[0]);
    p->blocks[at] = block;
    return STK_OK;
}

stk_status stki_places_add(stki_places *p, int64_t number, stk_error *err)
{
    const int at = (int)(p->count % BLOCK);

    assert(p->count == 0 || number >= p->last[at > 0 ? at - 1 : BLOCK - 1]);
    if (at == 0 && p->count > 0) {
        stk_status status = close_block(p, p->count / BLOCK - 1, BLOCK, err);

        if (status != STK_OK)
            return status;
    }
    p->last[at] = number;
    p->count++;
    return STK_OK;
}

stk_status stki_places_end(stki_places *p, stk_error *err)
{
    const int64_t blocks = (p->count + BLOCK - 1) / BLOCK;
    stk_status status = p->count > 0 ? close_block(p, blocks - 1, (int)((p->count - 1) % BLOCK) + 1, err) : STK_OK;

    if (status != STK_OK)
        return status;
    shrink(&p->blocks, &p->block_room, blocks, (int64_t)sizeof *p->blocks);
    shrink(&p->wide, &p->wide_room, p->wide_count, (int64_t)sizeof *p->wide);
    return STK_OK;
}

void stki_places_fini(stki_places *p)
{
    stki_free(p->blocks);
    stki_free(p->wide);
    *p = (stki_places){0};
}

int64_t stki_places_bytes(const stki_places *p)
{
    return p->block_room * (int64_t)sizeof *p->blocks + p->wide_room * (int64_t)sizeof *p->wide;
}
