/* stki-threads */
/* Tests of saved and restored positions: after a restore, each batch must have the bytes of an uninterrupted run,
 * whatever the number of workers, slots and ranks, and whenever the position was saved. */
#include "allocate.h"
#include "calm.h"
#include "clock.h"
#include "draw.h"
#include "faults.h"
#include "faulty.h"
#include "loader_test.h"
#include <dlpack/dlpack.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONFIG                                                                                                        \
    "{dataset: {fields: {x: {synthetic: {count: 103, shape: [40], dtype: u8, distinct: 103}}, v: {synthetic: "        \
    "{count: 103, shape: [9], dtype: i32, min_length: 0, form: scratch}}}}, loader: {batch_size: 10, order: random, " \
    "seed: 5, num_epochs: 3, num_workers: %d, prefetch: %d%s}}"

enum { STEPS = 11, TOTAL = 33 };

static uint64_t expected[TOTAL]; /* a hash of each batch, by global step */

typedef struct saved {
    uint8_t bytes[STK_STATE_MAX];
    int64_t size;
} saved;

static stk_loader *open_with(int workers, int prefetch, const char *more)
{
    stk_loader *loader;

    assert_int_equal(stkt_open(&loader, CONFIG, workers, prefetch, more), STK_OK);
    return loader;
}

static saved save(const stk_loader *loader)
{
    saved state;
    stk_error err;

    memset(&state, 0, sizeof state);
    assert_ok(stk_loader_save(loader, state.bytes, sizeof state.bytes, &state.size, &err));
    return state;
}

static void restore(stk_loader *loader, const saved *state)
{
    stk_error err;

    assert_ok(stk_loader_restore(loader, state->bytes, state->size, &err));
}

/* Checks that the next `count` batches are those from global step `first` on. */
static void expect(stk_loader *loader, int first, int count)
{
    stk_batch *batch;
    stk_error err;

    for (int i = first; i < first + count; i++) {
        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        assert_int_equal(stk_batch_global_step(batch), i);
        assert_int_equal(stk_batch_epoch(batch), i / STEPS);
        assert_int_equal(stk_batch_step(batch), i % STEPS);
        assert_true(stkt_hash_batch(0, loader, batch) == expected[i]);
        stk_batch_release(batch);
    }
}

static void expect_end(stk_loader *loader)
{
    stk_batch *batch;
    stk_error err;

    assert_status(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err), STK_END);
}

static int learn(void **state)
{
    stk_loader *loader = open_with(0, 1, "");
    stk_batch *batch;
    stk_error err;

    (void)state;
    for (int i = 0; i < TOTAL; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        expected[i] = stkt_hash_batch(0, loader, batch);
        for (int k = 0; k < i; k++)
            assert_true(expected[k] != expected[i]);
        stk_batch_release(batch);
    }
    expect_end(loader);
    stk_loader_destroy(loader);
    return 0;
}

/* Rows R03 (huggingface/accelerate#2016) and R04 (mosaicml/streaming#880): at every step of three epochs, restored
 * before the first call to next, with different numbers of workers and slots. */
static void every_position(void **state)
{
    stk_loader *first = open_with(1, 2, "");

    (void)state;
    for (int at = 0; at <= TOTAL; at++) {
        saved now = save(first);
        stk_loader *second = open_with(at % 4, 1 + at % 5, "");

        assert_true(now.size <= STK_STATE_MAX);
        restore(second, &now);
        expect(second, at, TOTAL - at);
        expect_end(second);
        stk_loader_destroy(second);
        if (at < TOTAL)
            expect(first, at, 1);
    }
    stk_loader_destroy(first);
}

/* Row R05 (lhotse-speech/lhotse#417): prefetched batches do not count. */
static void r05_prefetched_batches_do_not_count(void **state)
{
    stk_loader *loader = open_with(4, 8, ""), *other = open_with(1, 1, "");
    stk_loader_stats stats = {.struct_size = sizeof stats};
    saved now;
    stk_error err;

    (void)state;
    expect(loader, 0, 3);
    do
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
    while (stats.slots_ready < 8);
    now = save(loader);
    restore(other, &now);
    expect(other, 3, 2);
    stk_loader_destroy(loader);
    stk_loader_destroy(other);
}

/* Row R02 (KempnerInstitute/KempnerForge#57): saves and restores repeatedly in one epoch. Saving right after a restore
 * gives the same bytes. */
static void r02_resumes_do_not_drift(void **state)
{
    stk_loader *loader = open_with(2, 4, "");
    int at = 0;

    (void)state;
    for (int count = 1; at + count < TOTAL; count = count % 5 + 1) {
        saved now, again;

        expect(loader, at, count);
        at += count;
        now = save(loader);
        stk_loader_destroy(loader);
        loader = open_with(count % 3, 4, "");
        restore(loader, &now);
        again = save(loader);
        assert_int_equal(now.size, again.size);
        assert_memory_equal(now.bytes, again.bytes, (size_t)now.size);
    }
    expect(loader, at, TOTAL - at);
    stk_loader_destroy(loader);
}

/* Row R13 (mosaicml/streaming#593): restores in the middle of a run, backwards and forwards. */
static void r13_the_last_restore_holds(void **state)
{
    static const int workers[] = {0, 1, 4};

    (void)state;
    for (size_t w = 0; w < 3; w++) {
        stk_loader *loader = open_with(workers[w], 3, "");
        saved a, b;

        expect(loader, 0, 4);
        a = save(loader);
        expect(loader, 4, 20);
        b = save(loader);
        restore(loader, &a);
        restore(loader, &b);
        expect(loader, 24, 3);
        restore(loader, &a);
        expect(loader, 4, 12);
        restore(loader, &b);
        restore(loader, &a);
        restore(loader, &a);
        expect(loader, 4, TOTAL - 4);
        expect_end(loader);
        restore(loader, &b); /* even after the end */
        expect(loader, 24, TOTAL - 24);
        stk_loader_destroy(loader);
    }
}

/* Batches that are held while another position is restored do not change, and their release no longer counts. */
static void held_over_a_restore(void **state)
{
    stk_loader *loader = open_with(2, 4, "");
    stk_batch *held[2], *batch;
    stk_error err;
    saved start = save(loader), now;

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_ok(stk_loader_next(loader, &held[i], &err));
    assert_ok(stk_loader_seek(loader, 1, 5, &err));
    now = save(loader);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_true(stkt_hash_batch(0, loader, batch) == expected[16]);
    for (int i = 0; i < 2; i++) {
        assert_true(stkt_hash_batch(0, loader, held[i]) == expected[i]);
        stk_batch_release(held[i]);
        assert_memory_equal(save(loader).bytes, now.bytes, (size_t)now.size);
    }
    stk_batch_release(batch);
    expect(loader, 17, 3);
    restore(loader, &start);
    expect(loader, 0, 5);
    stk_loader_destroy(loader);
}

static int64_t position_of(const stk_loader *loader)
{
    saved now = save(loader);
    stki_state state;
    stk_error err;

    assert_ok(stki_state_read(now.bytes, now.size, NULL, &state, &err));
    return state.epoch * STEPS + state.step;
}

/* The position is the longest prefix of released steps, with leases released in any order. A released batch counts even
 * if an export still holds it. */
static void released_in_any_order(void **state)
{
    stk_loader *loader = open_with(2, 5, "");
    stk_batch *held[4];
    DLManagedTensor *tensor;
    stk_error err;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_ok(stk_loader_next(loader, &held[i], &err));
    assert_int_equal(position_of(loader), 0);
    stk_batch_release(held[1]);
    assert_int_equal(position_of(loader), 0);
    assert_ok(stk_batch_dlpack(held[0], "x", &tensor, &err));
    stk_batch_release(held[0]);
    assert_int_equal(position_of(loader), 2);
    stk_batch_release(held[3]);
    expect(loader, 4, 2);
    assert_int_equal(position_of(loader), 2);
    stk_batch_release(held[2]);
    assert_int_equal(position_of(loader), 6);
    expect(loader, 6, 5);
    assert_int_equal(position_of(loader), STEPS); /* the end of epoch 0 is the beginning of epoch 1 */
    tensor->deleter(tensor);
    stk_loader_close(loader, NULL);
    assert_int_equal(position_of(loader), STEPS);
    stk_loader_destroy(loader);
}

/* ---- ranks ---- */

#define RANKS                                                                                                          \
    "{dataset: {fields: {x: {synthetic: {count: 203, shape: [1], dtype: i64, distinct: 203}}}}, loader: "              \
    "{global_batch_size: 12, order: random, seed: 9, num_epochs: 2, last_batch: %s, num_workers: %d, world_size: %d, " \
    "rank: "                                                                                                           \
    "%d%s}}"

enum { RANK_STEPS = 17 };

/* Runs `steps` steps on all of `world` ranks and adds their samples to counts[epoch][sample]. */
static saved run_ranks(int world, int workers, const char *last, const saved *from, int steps, int counts[2][203])
{
    saved state = {.size = 0};

    for (int rank = 0; rank < world; rank++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        saved mine;

        assert_int_equal(stkt_open(&loader, RANKS, last, workers, world, rank, ""), STK_OK);
        if (from)
            restore(loader, from);
        for (int i = 0; i < steps && stk_loader_next(loader, &batch, &err) == STK_OK; i++) {
            for (int64_t r = 0; r < stk_batch_rows(batch); r++)
                counts[stk_batch_epoch(batch)][stk_batch_indices(batch)[r]] += stk_batch_mask(batch)[r];
            stk_batch_release(batch);
        }
        mine = save(loader);
        if (rank == 0)
            state = mine;
        assert_int_equal(mine.size, state.size); /* at one step all ranks save the same bytes */
        assert_memory_equal(mine.bytes, state.bytes, (size_t)state.size);
        stk_loader_destroy(loader);
    }
    return state;
}

/* Rows R07 (AI-Hypercomputer/maxtext#1760, Lightning-AI/litData#878), D01, D04, D06 and D10: four ranks stop, and a
 * different number of ranks continues, in the first and in the second epoch. Over all ranks and stops every sample is
 * delivered once per epoch, not counting padding, which is marked. */
static void r07_another_world_size(void **state)
{
    static const struct {
        int world, workers;
    } then[] = {{2, 8}, {1, 1}, {4, 2}, {3, 0}, {7, 1}};
    static const char *const lasts[] = {"partial", "pad"};

    (void)state;
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < sizeof then / sizeof then[0]; i++)
            for (int stop = 0; stop <= 2 * RANK_STEPS; stop += 5) {
                int counts[2][203] = {{0}};
                saved state_of_four = run_ranks(4, 2, lasts[l], NULL, stop, counts);

                run_ranks(then[i].world, then[i].workers, lasts[l], &state_of_four, 1000, counts);
                for (int epoch = 0; epoch < 2; epoch++)
                    for (int sample = 0; sample < 203; sample++)
                        assert_int_equal(counts[epoch][sample], 1);
            }
}

/* ---- rejected positions ---- */

#define OTHER                                                                                                         \
    "{dataset: {fields: {%s: {synthetic: {count: %d, shape: %s, dtype: u8, distinct: 10, seed: %d}, transforms: %s, " \
    "dtype: %s}}}, loader: {batch_size: %d, order: %s, seed: %d, last_batch: %s%s}}"

static stk_loader *open_other(const char *name, int count, const char *shape, int made, const char *transforms,
                              const char *dtype, int batch, const char *order, int seed, const char *last,
                              const char *more)
{
    stk_loader *loader;

    assert_int_equal(
        stkt_open(&loader, OTHER, name, count, shape, made, transforms, dtype, batch, order, seed, last, more), STK_OK);
    return loader;
}

static void another_run_is_refused(void **state)
{
    static const struct {
        const char *name;
        int count;
        const char *shape;
        int made;
        const char *transforms, *dtype;
        int batch;
        const char *order;
        int seed;
        const char *last, *more, *says;
    } cases[] = {
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "", NULL},
        {"x", 100, "[4]", 0, "[{scale: 2.0}]", "f32", 5, "random", 1, "partial", ", prefetch: 2, num_workers: 3", NULL},
        {"x", 100, "[4]", 0, "[{scale: 4}, {scale: 0.5}]", "f32", 5, "random", 1, "partial", "", NULL},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 2, "partial", "",
         "a different seed (loader.seed); set loader.resume: force to resume at its step: found 1, expected 2"},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "sequential", 1, "partial", "",
         "a different order (loader.order)"},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 10, "random", 1, "partial", "",
         "a different global batch (loader.global_batch_size)"},
        {"x", 101, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "", "a different number of samples"},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "drop", "",
         "a different rule for the last batch (loader.last_batch)"},
        {"x", 100, "[5]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "", "section files"},
        {"x", 100, "[4]", 1, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "", "section synthetic"},
        {"y", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "", "section"},
        {"x", 100, "[4]", 0, "[{scale: 3}]", "f32", 5, "random", 1, "partial", "", "section transforms"},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f16", 5, "random", 1, "partial", "", "section fields"},
        {"x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial",
         ", indices: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]",
         "a different number of samples"},
    };
    stk_loader *loader = open_other("x", 100, "[4]", 0, "[{scale: 2}]", "f32", 5, "random", 1, "partial", "");
    stk_batch *batch;
    stk_error err;
    saved now;
    char more[256];

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
    }
    now = save(loader);
    stk_loader_destroy(loader);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        loader =
            open_other(cases[i].name, cases[i].count, cases[i].shape, cases[i].made, cases[i].transforms,
                       cases[i].dtype, cases[i].batch, cases[i].order, cases[i].seed, cases[i].last, cases[i].more);
        if (cases[i].says) {
            assert_status(stk_loader_restore(loader, now.bytes, now.size, &err), STK_E_MISMATCH);
            assert_says(cases[i].says);
            assert_ok(stk_loader_next(loader, &batch, &err)); /* the position is unchanged */
            assert_int_equal(stk_batch_global_step(batch), 0);
        } else {
            restore(loader, &now);
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_global_step(batch), 4);
        }
        stk_batch_release(batch);
        stk_loader_destroy(loader);
        if (!cases[i].says)
            continue;
        snprintf(more, sizeof more, "%s, resume: force", cases[i].more);
        loader = open_other(cases[i].name, cases[i].count, cases[i].shape, cases[i].made, cases[i].transforms,
                            cases[i].dtype, cases[i].batch, cases[i].order, cases[i].seed, cases[i].last, more);
        restore(loader, &now);
        assert_ok(stk_loader_next(loader, &batch, &err));
        assert_int_equal(stk_batch_global_step(batch), cases[i].batch == 10 ? 2 : 4); /* position 20 */
        stk_batch_release(batch);
        assert_true(stk_loader_note_count(loader) > 0);
        stk_loader_destroy(loader);
    }
}

/* The report of a run has the fingerprints. They do not depend on the folder of the data. */
static void fingerprints_are_reported(void **state)
{
    char dir[512], command[2048], texts[2][64];

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(command, sizeof command, "cp '%s/data/digits_labels.npy' '%s'", STKT_TESTS_DIR, dir);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) {
        stk_loader *loader;
        json_t *options;
        const json_t *prints;

        assert_int_equal(stkt_open(&loader, "{dataset: {fields: {y: {path: '%s/digits_labels.npy'}}}}",
                                   i ? dir : STKT_TESTS_DIR "/data"),
                         STK_OK);
        options = json_loads(stk_loader_options_json(loader), 0, NULL);
        prints = json_object_get(json_object_get(options, "plan"), "fingerprints");
        assert_int_equal(json_object_size(prints), 3); /* the order's samples, files and rows */
        snprintf(texts[i], sizeof texts[i], "%s", json_string_value(json_object_get(prints, "files")));
        assert_int_equal(strlen(texts[i]), 8);
        json_decref(options);
        stk_loader_destroy(loader);
    }
    assert_string_equal(texts[0], texts[1]);
    stkt_remove_dir(dir);
}

/* The error names the part of the order that differs, even if the numbers are the same. */
static void another_order_is_named(void **state)
{
    static const char *const orders[] = {"order: random, indices: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]",
                                         "order: random, indices: [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]",
                                         "order: block, block_window: 1",
                                         "order: block, block_window: 2",
                                         "order: random, split: {part: val, fraction: 0.5}",
                                         "order: random, split: {part: val, fraction: 0.5, seed: 3}"},
                             *const says[] = {"section split", "section loader", "section split"},
                             *const names[] = {"loader.split or indices", "loader.block_window",
                                               "loader.split or indices"};

    char dir[512], path[600];

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/run.state", dir);
    for (int i = 0; i < 6; i += 2) {
        stk_loader *a, *b;
        stk_error err;
        saved now;
        char *text;

        for (int k = 0; k < 2; k++)
            assert_int_equal(
                stkt_open(k ? &b : &a,
                          "{dataset: {fields: {x: {synthetic: {count: 20, shape: [400000]}}}}, loader: {%s}}",
                          orders[i + k]),
                STK_OK);
        now = save(a);
        assert_status(stk_loader_restore(b, now.bytes, now.size, &err), STK_E_MISMATCH);
        assert_says(says[i / 2]);
        text = stk_state_json(now.bytes, now.size, &err);
        assert_status(stk_loader_restore(b, text, (int64_t)strlen(text), &err), STK_E_MISMATCH);
        assert_says(says[i / 2]);
        stk_text_free(text);
        assert_ok(stk_loader_save_file(a, path, &err));
        assert_status(stk_loader_restore_file(b, path, &err), STK_E_MISMATCH);
        assert_says(names[i / 2]);
        stk_loader_destroy(a);
        stk_loader_destroy(b);
    }
    stkt_remove_dir(dir);
}

/* All lists compute the same values, but an erased pixel gets different ones. */
static void the_place_of_erasing_is_compared(void **state)
{
#define PLUS(n) "{normalize: {mean: [-" #n ", -" #n ", -" #n "], std: [1, 1, 1], scale: 1}}"
#define LAST(n) "{normalize: {mean: [-1, -1, -" #n "], std: [1, 1, 1], scale: 1}}"
#define TWICE(n) "{normalize: {mean: [0, 0, -" #n "], std: [0.5, 0.5, 0.5], scale: 1}}"
    static const char *const steps[] = {
        PLUS(1) ", {random_erasing: 1}, {scale: 2}", "{scale: 2}, {random_erasing: 1}, " PLUS(2),
        "{random_erasing: 1}, {scale: 2}, " PLUS(2),
        /* 2x + 2, 2x + 2, 2x + 4: only the steps before erasing differ, in the last channel */
        LAST(2) ", {random_erasing: 1}, " TWICE(0), LAST(0) ", {random_erasing: 1}, " TWICE(2)};
    enum { COUNT = sizeof steps / sizeof steps[0] };
#undef LAST
#undef TWICE
#undef PLUS
    stk_loader *loaders[COUNT];
    stk_error err;
    saved now;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(stkt_open(&loaders[i],
                                   "{dataset: {fields: {x: {synthetic: {count: 20, shape: [8, 8, 3], dtype: u8}, "
                                   "source: {layout: nhwc}, dtype: f32, transforms: [%s]}}}}",
                                   steps[i]),
                         STK_OK);
    for (int i = 0; i < COUNT; i++) {
        now = save(loaders[i]);
        for (int k = 0; k < COUNT; k++) {
            stk_status status = stk_loader_restore(loaders[k], now.bytes, now.size, &err);

            assert_int_equal(status, k == i ? STK_OK : STK_E_MISMATCH);
        }
    }
    for (int i = 0; i < COUNT; i++)
        stk_loader_destroy(loaders[i]);
}

/* States of version 1 have fingerprints that can no longer be compared. */
static void states_of_older_versions(void **state)
{
    static const char text[] = "{\"stoker_state\": 1, \"epoch\": 1, \"step\": 3, \"seed\": 4, \"transforms\": "
                               "\"0123456789abcdef0123456789abcdef\"}";
    stk_loader *loader = open_with(1, 2, "");
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_status(stk_loader_restore(loader, text, sizeof text - 1, &err), STK_E_MISMATCH);
    assert_says("older version");
    stk_loader_destroy(loader);
    loader = open_with(1, 2, ", resume: force");
    assert_ok(stk_loader_restore(loader, text, sizeof text - 1, &err));
    assert_true(stk_loader_note_count(loader) > 0);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_epoch(batch), 1);
    assert_int_equal(stk_batch_step(batch), 3);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void impossible_positions(void **state)
{
    static const struct {
        const char *text, *says;
        stk_status status;
    } cases[] = {
        {"{\"stoker_state\": 1, \"epoch\": 3}", NULL, STK_OK}, /* the end */
        {"{\"stoker_state\": 1, \"epoch\": 2, \"step\": 11}", NULL, STK_OK},
        {"{\"stoker_state\": 1, \"epoch\": 1, \"step\": 12}", "step of the epoch: found 12, expected 0 to 11",
         STK_E_RANGE},
        {"{\"stoker_state\": 1, \"epoch\": 3, \"step\": 1}", "found 3, step 1, expected at most 3, step 0",
         STK_E_RANGE},
        {"{\"stoker_state\": 1, \"epoch\": 9223372036854775807}", "at most 3", STK_E_RANGE},
        {"{\"stoker_state\": 1, \"step\": 9223372036854775807}", "step of the epoch", STK_E_RANGE},
    };
    stk_loader *loader = open_with(1, 2, "");
    stk_error err;
    int64_t size;
    uint8_t small[16];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_status(stk_loader_restore(loader, cases[i].text, (int64_t)strlen(cases[i].text), &err), cases[i].status);
        if (cases[i].says)
            assert_says(cases[i].says);
        else
            expect_end(loader);
    }
    assert_status(stk_loader_seek(loader, -1, 0, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_seek(loader, 0, 12, &err), STK_E_RANGE);
    assert_status(stk_loader_save(loader, small, sizeof small, &size, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_save(NULL, small, sizeof small, &size, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_restore(NULL, small, sizeof small, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_restore(loader, NULL, 0, &err), STK_E_BAD_ARG);
    assert_status(stk_loader_restore(loader, "", 0, &err), STK_E_CORRUPT);
    assert_ok(stk_loader_seek(loader, 1, 4, &err));
    expect(loader, 15, 2);
    assert_ok(stk_loader_close(loader, &err));
    assert_status(stk_loader_seek(loader, 0, 0, &err), STK_E_CLOSED);
    stk_loader_destroy(loader);
}

/* ---- files ---- */

static void through_a_file(void **state)
{
    char dir[512], path[600], more[700];
    stk_loader *loader = open_with(1, 2, ""), *other;
    stk_error err;
    FILE *file;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/run.state", dir);
    snprintf(more, sizeof more, ", resume_from: %s", path);
    assert_status(stk_loader_restore_file(loader, path, &err), STK_E_NOT_FOUND);
    expect(loader, 0, 14);
    assert_ok(stk_loader_save_file(loader, path, &err));
    other = open_with(2, 3, more);
    expect(other, 14, 2);
    assert_ok(stk_loader_save_file(other, path, &err)); /* replaces the old file */
    assert_ok(stk_loader_restore_file(loader, path, &err));
    expect(loader, 16, TOTAL - 16);
    stk_loader_destroy(other);
    file = fopen(path, "w");
    fputs("{\"stoker_state\": 2,\n \"seed\": 77}\n", file);
    fclose(file);
    assert_status(stk_loader_restore_file(loader, path, &err), STK_E_MISMATCH);
    assert_says(path);
    assert_says("a different seed");
    assert_status(
        stk_loader_open_text("{dataset: {fields: {x: {synthetic: {count: 1}}}}, loader: {resume_from: /no/such}}", NULL,
                             NULL, 0, &other, &err),
        STK_E_NOT_FOUND);
    assert_status(stk_loader_save_file(loader, "/no/such/folder/state", &err), STK_E_NOT_FOUND);
    stk_loader_destroy(loader);
    stkt_remove_dir(dir);
}

/* Relative paths of a config are relative to its folder; those of a text without a folder, to the working directory. */
static void paths_start_from_the_config(void **state)
{
    static const char text[] = "dataset: {fields: {x: {synthetic: {count: 4, shape: [], dtype: i64}}}}\n"
                               "loader: {on_error: skip, error_list: failed.jsonl, resume_from: at.state}\n";
    char dir[512], path[600];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    FILE *file;
    int here;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/at.state", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"stoker_state\": 1, \"step\": 3}\n", file);
    fclose(file);
    snprintf(path, sizeof path, "%s/c.yaml", dir);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_ok(stk_loader_open_file(path, NULL, 0, &loader, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_indices(batch)[0], 3);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    snprintf(path, sizeof path, "%s/failed.jsonl", dir);
    assert_int_equal(access(path, F_OK), 0);
    assert_ok(stk_loader_open_text(text, dir, NULL, 0, &loader, &err));
    stk_loader_destroy(loader);
    here = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(here >= 0);
    snprintf(path, sizeof path, "%s/other", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(chdir(path), 0);
    assert_status(stk_loader_open_text(text, NULL, NULL, 0, &loader, &err), STK_E_NOT_FOUND);
    assert_int_equal(fchdir(here), 0);
    close(here);
    stkt_remove_dir(dir);
}

/* ---- digest ---- */

static stk_digest_info digest_of(const stk_loader *loader)
{
    stk_digest_info info;
    stk_error err;

    assert_ok(stk_loader_digest(loader, &info, &err));
    return info;
}

/* The definition, applied to the contents of the batches. */
static void add_by_hand(stki_u128 *sum, const stk_batch *batch, int64_t n, int64_t first_position)
{
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        uint64_t words[4] = {(uint64_t)(stk_batch_epoch(batch) * n + first_position + r), 0,
                             (uint64_t)stk_batch_indices(batch)[r], stki_draw_key(5, stk_batch_epoch(batch))};

        if (stk_batch_mask(batch)[r])
            *sum = stki_u128_add(*sum, stki_digest(words, sizeof words));
    }
}

static void the_digest_of_the_stream(void **state)
{
    static const char *const kinds[] = {", digest: order", ", digest: bytes"};
    stk_digest_info infos[2];

    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int workers = 0; workers <= 8; workers = workers ? workers * 2 : 1) {
            stk_loader *loader = open_with(workers, 1 + workers % 5, kinds[kind]);
            stki_u128 by_hand = {0};
            stk_digest_info info = digest_of(loader);
            stk_batch *batch;
            stk_error err;
            char text[STKI_U128_TEXT];

            assert_string_equal(info.text, "00000000000000000000000000000000");
            for (int i = 0; stk_loader_next(loader, &batch, &err) == STK_OK; i++) {
                add_by_hand(&by_hand, batch, 103, stk_batch_step(batch) * 10);
                if (i == 20) { /* not yet released, so not included */
                    assert_int_equal(digest_of(loader).end_step, 20);
                }
                stk_batch_release(batch);
            }
            info = digest_of(loader);
            assert_int_equal(info.first_step, 0);
            assert_int_equal(info.end_step, TOTAL);
            if (kind == 0)
                assert_string_equal(info.text, stki_u128_text(by_hand, text));
            if (workers == 0)
                infos[kind] = info;
            assert_string_equal(info.text, infos[kind].text);
            stk_loader_destroy(loader);
        }
    assert_string_not_equal(infos[0].text, infos[1].text);
}

/* The digest continues after a restore in another loader, and the digests of the ranks add up. */
static void the_digest_continues(void **state)
{
    stk_loader *loader, *other;
    stk_digest_info whole, info;
    stki_u128 sum = {0};
    stk_batch *batch;
    stk_error err;
    saved now;

    (void)state;
    loader = open_with(0, 2, ", digest: bytes");
    expect(loader, 0, TOTAL);
    whole = digest_of(loader);
    assert_ok(stk_loader_seek(loader, 0, 0, &err));
    expect(loader, 0, 15);
    now = save(loader);
    assert_true(now.size <= STK_STATE_MAX);
    other = open_with(3, 4, ", digest: bytes");
    restore(other, &now);
    expect(other, 15, TOTAL - 15);
    info = digest_of(other);
    assert_string_equal(info.text, whole.text);
    assert_int_equal(info.first_step, 0);
    stk_loader_destroy(loader);
    stk_loader_destroy(other);

    loader = open_with(1, 2, ", digest: order"); /* a digest of another kind, so it starts again */
    restore(loader, &now);
    assert_int_equal(digest_of(loader).first_step, 15);
    stk_loader_destroy(loader);

    for (int world = 1; world <= 4; world += 3)
        for (int rank = 0; rank < world; rank++) {
            assert_int_equal(stkt_open(&loader, RANKS, "pad", rank % 3, world, rank, ", digest: order"), STK_OK);
            while (stk_loader_next(loader, &batch, &err) == STK_OK)
                stk_batch_release(batch);
            info = digest_of(loader);
            if (world == 1)
                whole = info;
            else
                sum = stki_u128_add(sum, (stki_u128){info.word[0], info.word[1]});
            stk_loader_destroy(loader);
        }
    assert_true(sum.low == whole.word[0] && sum.high == whole.word[1]);

    loader = open_with(1, 2, "");
    assert_status(stk_loader_digest(loader, &info, &err), STK_E_CONFIG);
    stk_loader_destroy(loader);
}

/* ---- devices ---- */

/* Checks the facts of a batch without its tensors, which are on the device. */
static void expect_on_device(stk_loader *loader, int first, int count)
{
    stk_batch *batch;
    stk_error err;

    for (int i = first; i < first + count; i++) {
        stk_loader *same = open_with(0, 1, "");
        stk_batch *other;

        assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
        assert_int_equal(stk_batch_global_step(batch), i);
        assert_ok(stk_loader_seek(same, i / STEPS, i % STEPS, &err));
        assert_ok(stk_loader_next(same, &other, &err));
        assert_int_equal(stk_batch_rows(batch), stk_batch_rows(other));
        assert_memory_equal(stk_batch_indices(batch), stk_batch_indices(other), (size_t)stk_batch_rows(batch) * 8);
        stk_batch_release(batch);
        stk_batch_release(other);
        stk_loader_destroy(same);
    }
}

/* Batches that are prefetched into a device's slots do not count, and a restore drops them. This includes the end of
 * the data, the state after an error, and held batches. */
static void on_a_device(void **state)
{
    static const int workers[] = {0, 1, 3};
    stk_loader *plain = open_with(0, 1, ", digest: bytes");

    (void)state;
    expect(plain, 0, TOTAL);
    for (size_t w = 0; w < 3; w++) {
        stk_loader *loader = open_with(workers[w], 3, ", device: host, device_prefetch: 3, digest: bytes");
        stk_batch *held[2], *batch;
        stk_error err;
        saved a;

        expect_on_device(loader, 0, 4);
        assert_int_equal(position_of(loader), 4);
        a = save(loader);
        restore(loader, &a);
        expect_on_device(loader, 4, 20);
        assert_ok(stk_loader_seek(loader, 2, 9, &err));
        expect_on_device(loader, 31, 1);
        for (int i = 0; i < 1; i++)
            assert_ok(stk_loader_next(loader, &held[i], &err));
        expect_end(loader);
        expect_end(loader);
        restore(loader, &a); /* after the end, with one held batch */
        expect_on_device(loader, 4, 3);
        stk_batch_release(held[0]);
        assert_int_equal(position_of(loader), 7);
        expect_on_device(loader, 7, TOTAL - 7);
        expect_end(loader);
        assert_string_equal(digest_of(loader).text, digest_of(plain).text);
        assert_ok(stk_loader_seek(loader, 3, 0, &err));
        expect_end(loader);
        stk_loader_cancel(loader);
        assert_ok(stk_loader_close(loader, &err));
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_CANCELLED);
        stk_loader_destroy(loader);
    }
    stk_loader_destroy(plain);
}

/* ---- other states ---- */

/* Restoring another position clears a data error. Going back makes it occur again. */
static void after_an_error(void **state)
{
    (void)state;
    for (int device = 0; device <= 1; device++) {
        stkt_fault fault = {.opts = STKI_FAULTY_OPTS_INIT};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        fault.opts.fail_at = 25;
        assert_ok(
            stkt_open_faulty(&loader, &fault, false, &err,
                             "{dataset: {fields: {x: {synthetic: {count: 100, shape: [4]}}}}, loader: {batch_size: "
                             "10, num_workers: 2%s}}",
                             device ? ", device: host" : ""));
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < 2; i++) {
                assert_ok(stk_loader_next(loader, &batch, &err));
                assert_int_equal(stk_batch_step(batch), i);
                stk_batch_release(batch);
            }
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_IO);
            assert_status(stk_loader_next(loader, &batch, &err), STK_E_IO);
            assert_ok(stk_loader_seek(loader, 0, 3, &err));
            for (int i = 3; i < 10; i++) {
                assert_ok(stk_loader_next(loader, &batch, &err));
                assert_int_equal(stk_batch_step(batch), i);
                stk_batch_release(batch);
            }
            assert_status(stk_loader_next(loader, &batch, &err), STK_END);
            assert_ok(stk_loader_seek(loader, 0, 0, &err));
        }
        stk_loader_destroy(loader);
    }
}

static stk_loader *cancelled_by_handler;

static void cancel_on_signal(int number)
{
    (void)number;
    stk_loader_cancel(cancelled_by_handler);
}

/* A signal handler can end the wait for a batch that never arrives. The position can still be saved afterwards. */
static void cancelled(void **state)
{
    static const char *const devices[] = {"", ", device: host"};

    (void)state;
    stk_loader_cancel(NULL);
    for (int device = 0; device <= 1; device++) {
        stkt_fault fault = {.opts = STKI_FAULTY_OPTS_INIT};
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;
        saved now;

        fault.opts.slow_at = 25;
        fault.opts.slow_ns = INT64_MAX;
        assert_ok(
            stkt_open_faulty(&loader, &fault, false, &err,
                             "{dataset: {fields: {x: {synthetic: {count: 100, shape: [4]}}}}, loader: {batch_size: "
                             "10, num_workers: 1, timeout: infinite%s}}",
                             devices[device]));
        cancelled_by_handler = loader;
        signal(SIGALRM, cancel_on_signal);
        for (int i = 0; i < 2; i++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            stk_batch_release(batch);
        }
        ualarm(50000, 0);
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_CANCELLED);
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_CANCELLED);
        assert_status(stk_loader_next_timeout(loader, 0, &batch, &err), STK_E_CANCELLED);
        signal(SIGALRM, SIG_DFL);
        now = save(loader);
        {
            stki_state position;

            assert_ok(stki_state_read(now.bytes, now.size, NULL, &position, &err));
            assert_int_equal(position.step, 2);
        }
        stki_faulty_wake(fault.made);
        assert_ok(stk_loader_close(loader, &err));
        stk_loader_destroy(loader);
    }
}

/* Near the end of 10^9 samples, memory does not grow. */
static void a_large_data_set(void **state)
{
    stk_loader *loader;
    stki_memory_stats before, after;
    stk_batch *batch;
    stk_error err;
    saved now;

    (void)state;
    assert_int_equal(stkt_open(&loader,
                               "{dataset: {fields: {x: {synthetic: {count: 1000000000, shape: [4]}}}}, loader: "
                               "{batch_size: 64, order: random, num_epochs: 0, num_workers: 1}}"),
                     STK_OK);
    stki_memory_read(STKI_MEM_HOST, &before);
    assert_ok(stk_loader_seek(loader, INT64_C(1) << 30, 15624999, &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_step(batch), 15624999);
    assert_true(stk_batch_last_of_epoch(batch));
    stk_batch_release(batch);
    now = save(loader);
    restore(loader, &now);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(after.bytes - before.bytes < 65536);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_epoch(batch), (INT64_C(1) << 30) + 1);
    assert_int_equal(stk_batch_step(batch), 0);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

/* One loader runs through many epochs, each of which is left early at a different step. The numbers of threads, slots
 * and bytes stay the same. */
static void early_breaks(void **state)
{
    stk_loader *loader;
    stki_memory_stats before, after;
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(stkt_open(&loader, "{dataset: {fields: {x: {synthetic: {count: 1000, shape: [10]}}}}, loader: "
                                        "{batch_size: 10, order: random, num_epochs: 0, num_workers: 3}}"),
                     STK_OK);
    for (int epoch = 0; epoch < 300; epoch++) {
        for (int i = 0; i < epoch % 7; i++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_epoch(batch), epoch);
            assert_int_equal(stk_batch_step(batch), i);
            stk_batch_release(batch);
        }
        assert_ok(stk_loader_seek(loader, epoch + 1, 0, &err));
        if (epoch == 20)
            stki_memory_read(STKI_MEM_HOST, &before);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(after.bytes - before.bytes < 4096);
    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.workers, 3);
    assert_int_equal(stats.slots_leased, 0);
    stk_loader_destroy(loader);
}

static void save_survives_every_allocation_failure(void **state)
{
    char dir[512], path[600];
    stk_loader *loader = open_with(0, 2, "");
    stk_status status = STK_E_MEMORY;
    stk_error err;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/run.state", dir);
    expect(loader, 0, 3);
    for (int n = 1; status == STK_E_MEMORY && n < 200; n++) {
        stki_memory_fail_at(n);
        status = stk_loader_save_file(loader, path, &err);
    }
    stki_memory_fail_at(0);
    assert_int_equal(status, STK_OK);
    status = STK_E_MEMORY;
    for (int n = 1; status == STK_E_MEMORY && n < 1000; n++) {
        stki_memory_fail_at(n);
        status = stk_loader_restore_file(loader, path, &err);
    }
    stki_memory_fail_at(0);
    assert_int_equal(status, STK_OK);
    expect(loader, 3, 3);
    stk_loader_destroy(loader);
    stkt_remove_dir(dir);
}

static void not_in_a_child(void **state)
{
    stk_loader *loader = open_with(2, 2, "");
    saved now = save(loader);
    int status;
    pid_t child;

    (void)state;
    fflush(NULL);
    stkt_wait_for_calm();
    child = fork();
    if (child == 0) {
        int64_t size;

        _exit(stk_loader_save(loader, now.bytes, sizeof now.bytes, &size, NULL) == STK_E_FORKED &&
                      stk_loader_restore(loader, now.bytes, now.size, NULL) == STK_E_FORKED &&
                      stk_loader_seek(loader, 0, 0, NULL) == STK_E_FORKED
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_position),
        cmocka_unit_test(r05_prefetched_batches_do_not_count),
        cmocka_unit_test(r02_resumes_do_not_drift),
        cmocka_unit_test(r13_the_last_restore_holds),
        cmocka_unit_test(held_over_a_restore),
        cmocka_unit_test(released_in_any_order),
        cmocka_unit_test(r07_another_world_size),
        cmocka_unit_test(another_run_is_refused),
        cmocka_unit_test(another_order_is_named),
        cmocka_unit_test(the_place_of_erasing_is_compared),
        cmocka_unit_test(states_of_older_versions),
        cmocka_unit_test(fingerprints_are_reported),
        cmocka_unit_test(impossible_positions),
        cmocka_unit_test(through_a_file),
        cmocka_unit_test(paths_start_from_the_config),
        cmocka_unit_test(the_digest_of_the_stream),
        cmocka_unit_test(the_digest_continues),
        cmocka_unit_test(on_a_device),
        cmocka_unit_test(after_an_error),
        cmocka_unit_test(cancelled),
        cmocka_unit_test(a_large_data_set),
        cmocka_unit_test(early_breaks),
        cmocka_unit_test(save_survives_every_allocation_failure),
        cmocka_unit_test(not_in_a_child),
    };

    return cmocka_run_group_tests(tests, learn, NULL);
}
