/* token_join.c: see token_join.h. Most pieces are words of a few bytes, for which a linear search for the lowest rank
 * is fastest. Long pieces (text without spaces, or not split at all) keep the ranks in a heap, so that a document of
 * megabytes does not take quadratic time. Both merge in the same order. */
#include "token_join.h"
#include "allocate.h"
#include "error.h"
#include "token_split.h"
#include <inttypes.h>
#include <string.h>

enum { SHORT = 96, LARGE = 1 << 24 };

static stk_status reserve(stki_token_joiner *joiner, int64_t bytes, stk_error *err)
{
    int64_t room = bytes + bytes / (bytes < LARGE ? 4 : 16);
    void *grown;

    if (bytes <= joiner->room)
        return STK_OK;
    room = room < 4096 ? 4096 : room;
    stki_free(joiner->memory); /* the old content is not needed */
    joiner->room = 0;
    joiner->memory = grown = stki_resize(NULL, room);
    if (!grown)
        return stki_fail_memory(err, room, "the tokens of a text");
    joiner->room = room;
    return STK_OK;
}

void stki_token_joiner_fini(stki_token_joiner *joiner)
{
    stki_free(joiner->memory);
    *joiner = (stki_token_joiner){0};
}

/* Returns the end of the part at `at`, and its token: a byte, or a character that has a token. */
static int32_t first_part(const stki_vocabulary *v, const uint8_t *bytes, int32_t length, int32_t at, uint32_t *id)
{
    const uint8_t lead = bytes[at];
    const int32_t step = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    const stki_token *token = NULL;

    if (v->by_characters && (lead & 0xc0) != 0x80 && step <= length - at)
        token = stki_vocabulary_find(v, bytes + at, (uint32_t)step);
    *id = token ? token->id : v->of_byte[lead];
    return at + (token ? step : 1);
}

/* ---- short pieces ---- */

/* The parts in order: start, token, and the rank of merging it with the next part. */
typedef struct parts {
    int start[SHORT + 1];
    uint32_t rank[SHORT + 1];
} parts;

static uint32_t rank_of(const stki_vocabulary *v, const uint8_t *bytes, const parts *p, const uint32_t *ids, int i,
                        int count)
{
    if (i + 1 >= count)
        return STKI_NO_TOKEN;
    return stki_vocabulary_rank(v, bytes + p->start[i], (uint32_t)(p->start[i + 2] - p->start[i]), ids[i], ids[i + 1]);
}

static int64_t join_short(const stki_vocabulary *v, const uint8_t *bytes, int length, uint32_t *ids)
{
    parts p;
    int count = v->by_characters ? 0 : length;

    for (int i = 0; i < count; i++) {
        p.start[i] = i;
        ids[i] = v->of_byte[bytes[i]];
        p.rank[i] = i + 1 < length ? v->two_bytes[bytes[i] << 8 | bytes[i + 1]] : STKI_NO_TOKEN;
    }
    if (v->by_characters) {
        for (int at = 0; at < length; count++) {
            p.start[count] = at;
            at = first_part(v, bytes, length, at, &ids[count]);
        }
        p.start[count] = length;
        for (int i = 0; i < count; i++)
            p.rank[i] = rank_of(v, bytes, &p, ids, i, count);
    }
    p.start[count] = length;
    for (;;) {
        uint32_t lowest = STKI_NO_TOKEN;
        int at = 0;

        for (int i = 0; i + 1 < count; i++)
            if (p.rank[i] < lowest) {
                lowest = p.rank[i];
                at = i;
            }
        if (lowest == STKI_NO_TOKEN)
            return count;
        ids[at] = stki_vocabulary_joined(v, lowest);
        count--;
        for (int i = at + 1; i < count; i++) {
            p.start[i] = p.start[i + 1];
            p.rank[i] = p.rank[i + 1];
            ids[i] = ids[i + 1];
        }
        p.start[count] = length;
        p.rank[at] = rank_of(v, bytes, &p, ids, at, count);
        if (at > 0)
            p.rank[at - 1] = rank_of(v, bytes, &p, ids, at - 1, count);
    }
}

/* ---- long pieces ---- */

/* Parts are identified by their start; next[i] is the start of the following part, `length` at the end. */
typedef struct chain {
    const stki_vocabulary *v;
    const uint8_t *bytes;
    int32_t length;
    int32_t *next, *previous;
    uint32_t *id, *rank; /* token of a part; rank of merging it with the next. STKI_NO_TOKEN: cannot be merged, or no
                            part starts here */
    uint64_t *heap; /* rank << 32 | start; the smallest is at 0. Outdated entries remain until they are popped or the
                       heap is full. */
    int64_t heap_count, heap_room;
} chain;

static void heap_push(chain *c, uint64_t entry)
{
    int64_t at = c->heap_count++;

    while (at > 0 && c->heap[(at - 1) / 2] > entry) {
        c->heap[at] = c->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    c->heap[at] = entry;
}

static uint64_t heap_pop(chain *c)
{
    const uint64_t top = c->heap[0], last = c->heap[--c->heap_count];
    int64_t at = 0;

    for (;;) {
        int64_t child = 2 * at + 1;

        if (child >= c->heap_count)
            break;
        if (child + 1 < c->heap_count && c->heap[child + 1] < c->heap[child])
            child++;
        if (c->heap[child] >= last)
            break;
        c->heap[at] = c->heap[child];
        at = child;
    }
    c->heap[at] = last;
    return top;
}

static void look(chain *c, int32_t at)
{
    const int32_t second = c->next[at];

    c->rank[at] = STKI_NO_TOKEN;
    if (second == c->length)
        return;
    c->rank[at] = stki_vocabulary_rank(c->v, c->bytes + at, (uint32_t)(c->next[second] - at), c->id[at], c->id[second]);
    if (c->rank[at] != STKI_NO_TOKEN)
        heap_push(c, (uint64_t)c->rank[at] << 32 | (uint32_t)at);
}

/* Removes outdated entries, which leaves at most one per part. */
static void sweep(chain *c)
{
    c->heap_count = 0;
    for (int32_t i = 0; i < c->length; i = c->next[i])
        if (c->rank[i] != STKI_NO_TOKEN)
            heap_push(c, (uint64_t)c->rank[i] << 32 | (uint32_t)i);
}

static void join(chain *c, int32_t at)
{
    const int32_t second = c->next[at];

    if (c->heap_count + 2 > c->heap_room) /* a merge adds at most two entries */
        sweep(c);
    c->id[at] = stki_vocabulary_joined(c->v, c->rank[at]);
    c->rank[second] = STKI_NO_TOKEN;
    c->next[at] = c->next[second];
    if (c->next[at] < c->length)
        c->previous[c->next[at]] = at;
    look(c, at);
    if (at > 0)
        look(c, c->previous[at]);
}

static int64_t join_long(chain *c)
{
    int64_t count = 0;

    for (int32_t i = 0, before = -1; i < c->length; before = i, i = c->next[i]) {
        c->next[i] = first_part(c->v, c->bytes, c->length, i, &c->id[i]);
        c->previous[i] = before;
    }
    for (int32_t i = 0; i < c->length; i = c->next[i])
        look(c, i);
    while (c->heap_count > 0) {
        const uint64_t entry = heap_pop(c);
        const int32_t at = (int32_t)(uint32_t)entry;

        if (c->rank[at] == (uint32_t)(entry >> 32))
            join(c, at);
    }
    for (int32_t i = 0; i < c->length; i = c->next[i])
        c->id[count++] = c->id[i]; /* count <= i */
    return count;
}

/* The heap starts with at most one entry per byte. Most later entries soon become outdated; more room means fewer
 * sweeps. */
static int64_t heap_room(int64_t length)
{
    return length + length / 4;
}

int64_t stki_token_join_bytes(int64_t length)
{
    if (length <= SHORT)
        return SHORT * (int64_t)sizeof(uint32_t);
    return heap_room(length) * (int64_t)sizeof(uint64_t) + 4 * length * (int64_t)sizeof(uint32_t);
}

stk_status stki_token_join(const stki_vocabulary *v, stki_token_joiner *joiner, const uint8_t *bytes, int64_t length,
                           const uint32_t **ids, int64_t *count, stk_error *err)
{
    chain c = {.v = v, .bytes = bytes};
    char words[STKI_TOKEN_PATTERN_LIST];
    stk_status status;

    if (length > INT32_MAX - 1)
        return stki_fail(err, STK_E_LIMIT,
                         "a piece of text: found %" PRId64 " bytes, expected at most %d: set split: %s, or a pattern, "
                         "to split texts first",
                         length, INT32_MAX - 1, stki_token_pattern_list(NULL, words, sizeof words));
    status = reserve(joiner, stki_token_join_bytes(length), err);
    if (status != STK_OK)
        return status;
    if (length <= SHORT) {
        *ids = joiner->memory;
        *count = join_short(v, bytes, (int)length, joiner->memory);
        return STK_OK;
    }
    c.length = (int32_t)length;
    c.heap = joiner->memory;
    c.heap_room = heap_room(length);
    c.id = (uint32_t *)(c.heap + c.heap_room);
    c.rank = c.id + length;
    c.next = (int32_t *)(c.rank + length);
    c.previous = c.next + length;
    *count = join_long(&c);
    *ids = c.id;
    return STK_OK;
}

stk_status stki_vocabulary_settle(stki_vocabulary *v, bool all_alone, stk_error *err)
{
    stki_token_joiner joiner = {0};
    stk_status status = v->by_characters ? STK_OK : stki_vocabulary_two_bytes(v, err);

    for (int64_t i = 0; i < v->count && status == STK_OK && !all_alone; i++) {
        stki_token *token = &v->tokens[i];
        const uint32_t *ids;
        int64_t count;

        status = stki_token_join(v, &joiner, v->bytes + token->at, token->length, &ids, &count, err);
        token->alone = status == STK_OK && count == 1;
    }
    stki_token_joiner_fini(&joiner);
    return status;
}
