/* packing.c: see packing.h.
 *
 * Best fit. Open windows are kept in stacks by their number of free elements. With a four-level bitmap of the non-empty
 * stacks, the window with the smallest sufficient room is found in a few steps, regardless of the number of windows.
 * Pieces are first assigned to windows in any order and counted, then laid out window by window. */
#include "packing.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

enum { LEVELS = 4 }; /* 64^4: enough for windows of up to 16 million elements */
#define MOST_LENGTH (INT64_C(1) << 24)

struct placed {
    stki_piece piece;
    int64_t window;
};

struct planner {
    const stki_packing_opts *opts;
    int64_t *lengths;
    struct placed *placed;
    int64_t placed_count, windows;
    int64_t *top;  /* for each amount of room, the top of the stack of windows that have it; -1: empty */
    int64_t *next; /* next window in the same stack */
    uint64_t *bits[LEVELS];
};

/* ---- bitmap of non-empty stacks ---- */

static void mark(struct planner *p, int64_t room)
{
    for (int level = 0; level < LEVELS; level++, room >>= 6)
        p->bits[level][room >> 6] |= UINT64_C(1) << (room & 63);
}

static void unmark(struct planner *p, int64_t room)
{
    for (int level = 0; level < LEVELS; level++, room >>= 6) {
        p->bits[level][room >> 6] &= ~(UINT64_C(1) << (room & 63));
        if (p->bits[level][room >> 6])
            return;
    }
}

/* Returns the smallest available room of at least `wanted`; -1: none. */
static int64_t least_room(const struct planner *p, int64_t wanted)
{
    int64_t at = wanted;

    for (int level = 0; level < LEVELS; level++) {
        uint64_t word = p->bits[level][at >> 6] >> (at & 63) << (at & 63);

        if (word) {
            at = (at & ~INT64_C(63)) + __builtin_ctzll(word);
            while (level-- > 0)
                at = (at << 6) + __builtin_ctzll(p->bits[level][at]);
            return at;
        }
        at = (at >> 6) + 1; /* continue with the next word, one level up */
        if (at >> 6 >= 1 + (p->opts->length >> (6 * (level + 2))))
            return -1;
    }
    return -1;
}

/* ---- placing ---- */

static void place(struct planner *p, stki_piece piece, int64_t window)
{
    p->placed[p->placed_count++] = (struct placed){piece, window};
}

static void push(struct planner *p, int64_t window, int64_t room)
{
    if (room == 0)
        return;
    p->next[window] = p->top[room];
    p->top[room] = window;
    mark(p, room);
}

static int64_t pop(struct planner *p, int64_t room)
{
    int64_t window = p->top[room];

    p->top[room] = p->next[window];
    if (p->top[room] < 0)
        unmark(p, room);
    return window;
}

/* Returns the number of pieces that fill a whole window, and sets *rest to the length of the remainder. */
static int64_t whole_pieces(const stki_packing_opts *o, int64_t length, int64_t *rest)
{
    int64_t step = o->length - o->overlap, whole = 0;

    if (length >= o->length)
        whole = 1 + (length - o->length) / step;
    *rest = length - whole * step;
    if (whole > 0 && *rest <= o->overlap) /* the last piece already contains the remainder */
        *rest = 0;
    return whole;
}

/* Places the pieces that fill whole windows, and counts the remainders by length: counts[i] is the number of remainders
 * that are `i` elements shorter than a window. */
static void place_whole(struct planner *p, int64_t *counts)
{
    const stki_packing_opts *o = p->opts;

    for (int64_t d = 0; d < o->documents; d++) {
        int64_t rest, whole = whole_pieces(o, p->lengths[d], &rest);

        for (int64_t i = 0; i < whole; i++)
            place(p, (stki_piece){d, i * (o->length - o->overlap), o->length}, p->windows++);
        counts[o->length - rest]++; /* longest first */
    }
}

static void place_rest(struct planner *p, int64_t document, int64_t rest)
{
    int64_t room = p->opts->apart ? -1 : least_room(p, rest), window;

    if (room >= 0) {
        window = pop(p, room);
    } else {
        window = p->windows++;
        room = p->opts->length;
    }
    place(p, (stki_piece){document, p->lengths[document] - rest, rest}, window);
    push(p, window, room - rest);
}

/* Places the remainders, longest first, using a counting sort. `sorted` has room for all documents. */
static void place_rests(struct planner *p, int64_t *counts, int64_t *sorted)
{
    const stki_packing_opts *o = p->opts;
    int64_t before = 0, rest;

    for (int64_t r = 0; r <= o->length; r++) { /* prefix sums: the start of each length */
        int64_t its = counts[r];

        counts[r] = before;
        before += its;
    }
    for (int64_t d = 0; d < o->documents; d++) {
        (void)whole_pieces(o, p->lengths[d], &rest);
        sorted[counts[o->length - rest]++] = d;
    }
    for (int64_t i = 0; i < o->documents; i++) {
        (void)whole_pieces(o, p->lengths[sorted[i]], &rest);
        if (rest > 0)
            place_rest(p, sorted[i], rest);
    }
}

/* ---- plan ---- */

static stk_status lay_out(const struct planner *p, stki_packing *out, stk_error *err)
{
    out->windows = p->windows;
    out->length = p->opts->length;
    out->piece_count = p->placed_count;
    out->first = stki_zalloc_array(p->windows + 2, sizeof *out->first);
    out->pieces = stki_zalloc_array(p->placed_count + 1, sizeof *out->pieces);
    if (!out->first || !out->pieces)
        return stki_fail_memory(err, p->placed_count * (int64_t)sizeof *out->pieces, "packed windows");
    for (int64_t i = 0; i < p->placed_count; i++)
        out->first[p->placed[i].window + 2]++;
    for (int64_t w = 2; w <= p->windows + 1; w++)
        out->first[w] += out->first[w - 1];
    for (int64_t i = 0; i < p->placed_count; i++) { /* first[w + 1] advances from the start of w to its end */
        out->pieces[out->first[p->placed[i].window + 1]++] = p->placed[i].piece;
        out->used += p->placed[i].piece.length;
    }
    return STK_OK;
}

/* Reads the lengths, sets an upper bound on the number of pieces and checks that the windows can be counted. */
static stk_status measure(struct planner *p, int64_t *pieces, stk_error *err)
{
    const stki_packing_opts *o = p->opts;

    *pieces = 0;
    for (int64_t d = 0; d < o->documents; d++) {
        int64_t rest;

        p->lengths[d] = o->length_of(o->context, d);
        if (p->lengths[d] < 0)
            return stki_fail_at(err, STK_E_CORRUPT, (stki_place){NULL, d, -1, NULL, NULL},
                                "the length of a document cannot be read");
        *pieces += whole_pieces(o, p->lengths[d], &rest) + 1;
        if (*pieces > INT64_MAX / 64)
            return stki_fail(err, STK_E_LIMIT, "packing: the documents would be divided into more than 2^57 parts");
    }
    return STK_OK;
}

static bool make_tables(struct planner *p, int64_t pieces)
{
    int64_t words = p->opts->length + 1;

    p->placed = stki_zalloc_array(pieces + 1, sizeof *p->placed);
    p->next = stki_zalloc_array(pieces + 1, sizeof *p->next);
    p->top = stki_zalloc_array(p->opts->length + 1, sizeof *p->top);
    for (int level = 0; level < LEVELS; level++) {
        words = words / 64 + 2;
        p->bits[level] = stki_zalloc_array(words, sizeof *p->bits[level]);
        if (!p->bits[level])
            return false;
    }
    return p->placed && p->next && p->top;
}

static stk_status plan(struct planner *p, stki_packing *out, stk_error *err)
{
    const stki_packing_opts *o = p->opts;
    int64_t pieces, *counts, *sorted;
    stk_status status;

    p->lengths = stki_zalloc_array(o->documents + 1, sizeof *p->lengths);
    if (!p->lengths)
        return stki_fail_memory(err, o->documents * (int64_t)sizeof *p->lengths, "the lengths of documents");
    if ((status = measure(p, &pieces, err)) != STK_OK)
        return status;
    counts = stki_zalloc_array(o->length + 1, sizeof *counts);
    sorted = stki_zalloc_array(o->documents + 1, sizeof *sorted);
    if (counts && sorted && make_tables(p, pieces)) {
        for (int64_t r = 0; r <= o->length; r++)
            p->top[r] = -1;
        place_whole(p, counts);
        place_rests(p, counts, sorted);
        status = lay_out(p, out, err);
    } else {
        status = stki_fail_memory(err, pieces * (int64_t)sizeof *p->placed, "packed windows");
    }
    stki_free(counts);
    stki_free(sorted);
    return status;
}

stk_status stki_packing_plan(const stki_packing_opts *opts, stki_packing *out, stk_error *err)
{
    struct planner p = {.opts = opts};
    stk_status status;

    *out = (stki_packing){0};
    if (opts->length < 1 || opts->length > MOST_LENGTH || opts->overlap < 0 || opts->overlap >= opts->length)
        return stki_fail(err, STK_E_CONFIG,
                         "packing: found a length of %" PRId64 " and an overlap of %" PRId64
                         ", expected a length of 1 to %" PRId64 " and a smaller overlap",
                         opts->length, opts->overlap, (int64_t)MOST_LENGTH);
    status = plan(&p, out, err);
    stki_free(p.lengths);
    stki_free(p.placed);
    stki_free(p.next);
    stki_free(p.top);
    for (int level = 0; level < LEVELS; level++)
        stki_free(p.bits[level]);
    if (status != STK_OK)
        stki_packing_fini(out);
    return status;
}

void stki_packing_fini(stki_packing *packing)
{
    stki_free(packing->first);
    stki_free(packing->pieces);
    *packing = (stki_packing){0};
}
