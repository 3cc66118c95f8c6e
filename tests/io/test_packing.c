/* Tests of the plan of packed windows against its definition, which tries every window for every piece. Every element
 * must be in exactly one window. Known plans, large windows, rejected options and failing allocations are tested,
 * too. */
#include "allocate.h"
#include "faults.h"
#include "packing.h"
#include "stk_test.h"
#include <string.h>

static int64_t length_of(void *context, int64_t document)
{
    return ((const int64_t *)context)[document];
}

static stki_packing_opts options(const int64_t *lengths, int64_t documents, int64_t length, int64_t overlap)
{
    return (stki_packing_opts){.length = length,
                               .overlap = overlap,
                               .length_of = length_of,
                               .context = (void *)(uintptr_t)lengths,
                               .documents = documents};
}

/* ---- the definition ---- */

struct window {
    int64_t used, touched, count;
    stki_piece pieces[512];
};

enum { MOST_WINDOWS = 3000 };
static struct window windows[MOST_WINDOWS];
static int64_t window_count, clock_now;

static void put(struct window *w, int64_t document, int64_t start, int64_t length)
{
    assert_true(w->count < 512);
    w->pieces[w->count++] = (stki_piece){document, start, length};
    w->used += length;
    w->touched = ++clock_now;
}

static struct window *open_window(void)
{
    assert_true(window_count < MOST_WINDOWS);
    windows[window_count] = (struct window){0};
    return &windows[window_count++];
}

static void expect(const stki_packing_opts *o, const int64_t *lengths)
{
    int64_t rests[4096] = {0};

    window_count = 0;
    for (int64_t d = 0; d < o->documents; d++) {
        int64_t start = 0;

        rests[d] = lengths[d];
        while (lengths[d] - start >= o->length) {
            put(open_window(), d, start, o->length);
            if (lengths[d] - start == o->length) {
                rests[d] = 0;
                break;
            }
            start += o->length - o->overlap;
            rests[d] = lengths[d] - start;
        }
    }
    for (int64_t size = o->length - 1; size > 0; size--)
        for (int64_t d = 0; d < o->documents; d++) {
            struct window *best = NULL;

            if (rests[d] != size || (size <= o->overlap && lengths[d] >= o->length))
                continue;
            for (int64_t w = 0; !o->apart && w < window_count; w++) {
                struct window *its = &windows[w];
                bool fits = its->used + size <= o->length;

                if (fits &&
                    (!best || its->used > best->used || (its->used == best->used && its->touched > best->touched)))
                    best = its;
            }
            put(best ? best : open_window(), d, lengths[d] - size, size);
        }
}

static void check(const int64_t *lengths, int64_t documents, int64_t length, int64_t overlap, bool apart)
{
    stki_packing_opts o = options(lengths, documents, length, overlap);
    stki_packing plan;
    stk_error err;
    int64_t used = 0;

    o.apart = apart;
    expect(&o, lengths);
    assert_ok(stki_packing_plan(&o, &plan, &err));
    assert_int_equal(plan.windows, window_count);
    assert_int_equal(plan.length, length);
    assert_int_equal(plan.first[0], 0);
    assert_int_equal(plan.first[plan.windows], plan.piece_count);
    for (int64_t w = 0; w < plan.windows; w++) {
        assert_int_equal(plan.first[w + 1] - plan.first[w], windows[w].count);
        assert_memory_equal(plan.pieces + plan.first[w], windows[w].pieces,
                            (size_t)windows[w].count * sizeof(stki_piece));
        used += windows[w].used;
    }
    assert_int_equal(plan.used, used);
    stki_packing_fini(&plan);
}

static void equals_the_definition(void **state)
{
    static int64_t lengths[700];
    uint64_t draw = 1;

    (void)state;
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 700; i++) {
            draw = draw * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            lengths[i] = (int64_t)(draw >> 33) % (round % 3 == 0 ? 10 : round % 3 == 1 ? 100 : 1000);
        }
        for (int64_t length = 1 + round; length <= 400; length = length * 2 + 1)
            if (length > 150 || round % 3 != 2)
                for (int64_t overlap = 0; overlap < length && overlap <= 2 && length > 30; overlap++)
                    check(lengths, 300, length, overlap, overlap == 2);
    }
}

/* Every element of every document is in exactly one window. */
static void nothing_is_lost(void **state)
{
    enum { DOCUMENTS = 20000, LENGTH = 1025 };
    int64_t *lengths = calloc(DOCUMENTS, sizeof *lengths), *first = calloc(DOCUMENTS, sizeof *first), total = 0,
            most = 0;
    unsigned char *seen; /* one for each element */
    stki_packing_opts o;
    stki_packing plan;
    stk_error err;

    (void)state;
    for (int64_t d = 0; d < DOCUMENTS; d++) {
        lengths[d] = (d * 7919 + d * d) % 3001;
        first[d] = total;
        total += lengths[d];
    }
    seen = calloc((size_t)total, 1);
    o = options(lengths, DOCUMENTS, LENGTH, 0);
    assert_ok(stki_packing_plan(&o, &plan, &err));
    assert_int_equal(plan.used, total);
    for (int64_t w = 0; w < plan.windows; w++) {
        int64_t in = 0;

        for (int64_t i = plan.first[w]; i < plan.first[w + 1]; i++) {
            const stki_piece *piece = &plan.pieces[i];

            assert_true(piece->length > 0 && piece->start >= 0 &&
                        piece->start + piece->length <= lengths[piece->document]);
            for (int64_t k = 0; k < piece->length; k++)
                if (seen[first[piece->document] + piece->start + k]++ != 0)
                    fail_msg("element %lld of document %lld is in two windows", (long long)(piece->start + k),
                             (long long)piece->document);
            in += piece->length;
        }
        assert_true(in > 0 && in <= LENGTH);
        most = in > most ? in : most;
    }
    assert_null(memchr(seen, 0, (size_t)total));
    assert_true(plan.windows * LENGTH < total + total / 100); /* less than 1 % of the windows is empty */
    stki_packing_fini(&plan);
    free(lengths);
    free(first);
    free(seen);
}

static void known_plan(void **state)
{
    static const int64_t lengths[] = {3, 12, 5, 2, 0, 4};
    static const stki_piece expected[] = {{1, 0, 10}, {2, 0, 5}, {5, 0, 4}, {0, 0, 3}, {3, 0, 2}, {1, 10, 2}};
    stki_packing_opts o = options(lengths, 6, 10, 0);
    stki_packing plan;
    stk_error err;

    (void)state;
    assert_ok(stki_packing_plan(&o, &plan, &err));
    assert_int_equal(plan.windows, 3);
    assert_int_equal(plan.first[1], 1);
    assert_int_equal(plan.first[2], 3); /* 5 + 4; 3 does not fit; then 3 + 2 + 2 */
    assert_int_equal(plan.piece_count, 6);
    assert_memory_equal(plan.pieces + 3, expected + 3, sizeof *expected);
    assert_int_equal(plan.used, 26);
    stki_packing_fini(&plan);
}

/* A window of millions of elements: space is found through all levels of the bitmaps. */
static void long_windows(void **state)
{
    static const int64_t lengths[] = {9000000, 5000000, 1, 4000000, 777777, 70, 300000, 6999999};
    static const int64_t sizes[] = {16000000, 10000000, 262145, 262144, 4097, 64};
    stki_packing plan;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        stki_packing_opts o = options(lengths, 8, sizes[i], 0);
        int64_t total = 0;

        assert_ok(stki_packing_plan(&o, &plan, &err));
        for (int64_t p = 0; p < plan.piece_count; p++)
            total += plan.pieces[p].length;
        assert_int_equal(total, 9000000 + 5000000 + 1 + 4000000 + 777777 + 70 + 300000 + 6999999);
        if (sizes[i] == 16000000)
            assert_int_equal(plan.windows, 2);
        stki_packing_fini(&plan);
    }
}

static void refusals(void **state)
{
    static const int64_t lengths[] = {3, -1};
    stki_packing_opts o = options(lengths, 2, 10, 0);
    stki_packing plan;
    stk_error err;

    (void)state;
    assert_status(stki_packing_plan(&o, &plan, &err), STK_E_CORRUPT);
    assert_int_equal(err.record, 1);
    o = options(lengths, 1, 0, 0);
    assert_status(stki_packing_plan(&o, &plan, &err), STK_E_CONFIG);
    o = options(lengths, 1, 10, 10);
    assert_status(stki_packing_plan(&o, &plan, &err), STK_E_CONFIG);
    o = options(lengths, 1, (1 << 24) + 1, 0);
    assert_status(stki_packing_plan(&o, &plan, &err), STK_E_CONFIG);
    o = options(lengths, 0, 10, 0); /* no documents, so no windows */
    assert_ok(stki_packing_plan(&o, &plan, &err));
    assert_int_equal(plan.windows, 0);
    stki_packing_fini(&plan);
}

static void allocations(void **state)
{
    static const int64_t lengths[] = {3, 12, 5};
    stki_packing_opts o = options(lengths, 3, 10, 0);
    stki_memory_stats before, after;
    stki_packing plan;
    int64_t n = 1;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_packing_plan(&o, &plan, NULL);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
    }
    assert_int_equal(n, 13);
    stki_packing_fini(&plan);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_definition), cmocka_unit_test(nothing_is_lost), cmocka_unit_test(known_plan),
        cmocka_unit_test(long_windows),          cmocka_unit_test(refusals),        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
