/* stki-threads */
/* Tests of the order of samples in loaders: splits, weights, mixtures, lengths of epochs, buckets and the quality of
 * blocks, from configs and from the C structs, on ranks and with any number of workers. Each row's value identifies its
 * file and sample. */
#include "allocate.h"
#include "faults.h"
#include "ids_test.h"
#include "loader_handle.h"
#include <math.h>

/* ---- subset before shuffle before ranks ---- */

/* Row F04 (libffcv/ffcv#90): all ranks together get exactly these records. */
static void subset_over_ranks(void **state)
{
    (void)state;
    write_ids("x.npy", 100, 12);
    for (int world = 1; world <= 4; world++) {
        int64_t ids[8], n = 0;

        for (int rank = 0; rank < world; rank++)
            n += read_ids(
                open_text("{dataset: {fields: {x: {path: x.npy}}}, loader: {indices: [7, 3, 11], order: random, "
                          "seed: 2, global_batch_size: 2, rank: %d, world_size: %d}}",
                          rank, world),
                ids + n, 8 - n);
        assert_int_equal(n, 3);
        assert_true(has(ids, n, 107) && has(ids, n, 103) && has(ids, n, 111));
    }
}

/* Rows D04, D05 and D06 (karpathy/llm.c#792, jzhang38/TinyLlama#67, huggingface/datasets#8079): with one file or many,
 * the samples of the ranks are disjoint and complete, and each rank gets its share. */
static void ranks_share_every_file(void **state)
{
    int64_t ids[128], n;

    (void)state;
    write_ids("one.npy", 0, 32);
    for (int f = 0; f < 8; f++) {
        char name[16];

        snprintf(name, sizeof name, "f%d.npy", f);
        write_ids(name, f * 4, 4);
    }
    for (int files = 0; files < 2; files++)
        for (int world = 2; world <= 4; world += 2) {
            n = 0;
            for (int rank = 0; rank < world; rank++) {
                int64_t its =
                    read_ids(open_text("{dataset: {fields: {x: {path: %s}}}, loader: {shuffle: true, seed: 3, "
                                       "batch_size: 4, rank: %d, world_size: %d}}",
                                       files ? "f*.npy" : "one.npy", rank, world),
                             ids + n, 128 - n);

                assert_int_equal(its, 32 / world);
                n += its;
            }
            assert_int_equal(n, 32);
            qsort(ids, 32, sizeof *ids, by_value);
            for (int i = 0; i < 32; i++)
                assert_int_equal(ids[i], i);
        }
}

/* ---- split ---- */

static int64_t split_ids(const char *file, const char *part, const char *rest, int64_t *ids)
{
    return read_ids(open_text("{dataset: {fields: {x: {path: %s}}}, loader: {batch_size: 16, split: {part: %s%s}}}",
                              file, part, rest),
                    ids, 4000);
}

static void check_parts(const char *file, int64_t count, const char *rest, int64_t *val, int64_t *val_count)
{
    static int64_t both[4000];
    int64_t n = split_ids(file, "train", rest, both), before = n;

    *val_count = split_ids(file, "val", rest, val);
    for (int64_t i = 1; i < n; i++)
        assert_true(both[i - 1] < both[i]); /* a split keeps the order of the data set */
    for (int64_t i = 0; i < *val_count; i++)
        both[n++] = val[i];
    assert_int_equal(n, count);
    assert_true(before > 0);
    qsort(both, (size_t)n, sizeof *both, by_value);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(both[i], i);
}

static void splits_are_disjoint_and_complete(void **state)
{
    static int64_t val[4000], again[4000];
    int64_t n, m;

    (void)state;
    write_ids("some.npy", 0, 1000);
    check_parts("some.npy", 1000, "", val, &n);
    assert_int_equal(n, 100);
    check_parts("some.npy", 1000, ", fraction: 0.25", val, &n);
    assert_int_equal(n, 250);
    check_parts("some.npy", 1000, ", fraction: 0.25", again, &m);
    assert_memory_equal(val, again, (size_t)n * sizeof *val);
    check_parts("some.npy", 1000, ", fraction: 0.25, seed: 1", again, &m);
    assert_memory_not_equal(val, again, (size_t)n * sizeof *val);
    check_parts("some.npy", 1000, ", fraction: 0.25, method: hash", val, &n);
    assert_in_range(n, 250 - 5 * 14, 250 + 5 * 14);
    check_parts("some.npy", 1000, ", fraction: 0.25, method: hash, seed: 7", again, &m);
    assert_in_range(m, 250 - 5 * 14, 250 + 5 * 14);
    assert_true(n != m || memcmp(val, again, (size_t)n * sizeof *val) != 0);
    assert_int_equal(read_ids(open_text("{dataset: {fields: {x: {path: some.npy}}}, loader: {split: val}}"), val, 4000),
                     100);
}

/* Appending samples does not change which part the others are in. */
static void hash_splits_are_stable(void **state)
{
    static int64_t before[4000], after[4000];
    int64_t n, m, kept = 0;

    (void)state;
    write_ids("some.npy", 0, 1000);
    write_ids("more.npy", 0, 1500);
    check_parts("some.npy", 1000, ", method: hash", before, &n);
    check_parts("more.npy", 1500, ", method: hash", after, &m);
    for (int64_t i = 0; i < m; i++)
        if (after[i] < 1000)
            assert_int_equal(after[i], before[kept++]);
    assert_int_equal(kept, n);
    assert_true(m > n);
}

/* From an independent implementation of XXH3: python3 -c 'import xxhash, struct; print([i for i in range(40) if
 * xxhash.xxh3_64_intdigest(struct.pack("<Q", i), seed=5) < 0.2 * 2**64])' */
static void hash_is_the_published_one(void **state)
{
    static const int64_t expected[] = {9, 13, 22, 26, 30, 31, 32, 36, 37};
    int64_t ids[40], n;

    (void)state;
    write_ids("forty.npy", 0, 40);
    n = split_ids("forty.npy", "val", ", method: hash, fraction: 0.2, seed: 5", ids);
    assert_int_equal(n, sizeof expected / sizeof *expected);
    assert_memory_equal(ids, expected, sizeof expected);
}

/* All samples of a group are in one part, wherever they are in the data set. */
static void split_by_a_field(void **state)
{
    static int64_t val[4000], train[4000];
    int part_of[30] = {0};
    stk_npy_writer *writer;
    stk_error err;
    int64_t n, m;

    (void)state;
    write_ids("x.npy", 0, 300);
    assert_ok(stk_npy_create(stkt_path("group.npy"), STK_I32, 0, NULL, false, &writer, &err));
    for (int i = 0; i < 300; i++) {
        int32_t group = i * 7 % 30;

        assert_ok(stk_npy_append(writer, &group, 1, &err));
    }
    assert_ok(stk_npy_commit(writer, &err));
#define BY_GROUP                                                                                                  \
    "{dataset: {fields: {x: {path: x.npy}, group: {path: group.npy}}}, loader: {split: {part: %s, method: hash, " \
    "fraction: 0.3, key: group}}}"
    m = read_ids(open_text(BY_GROUP, "train"), train, 4000);
    n = read_ids(open_text(BY_GROUP, "val"), val, 4000);
    assert_int_equal(m + n, 300);
    assert_true(n > 0 && m > 0);
    for (int64_t i = 0; i < m; i++)
        part_of[train[i] * 7 % 30] |= 1;
    for (int64_t i = 0; i < n; i++)
        part_of[val[i] * 7 % 30] |= 2;
    for (int g = 0; g < 30; g++)
        assert_true(part_of[g] == 1 || part_of[g] == 2);
}

static void split_of_a_subset(void **state)
{
    static int64_t val[4000], ids[10];
    int64_t n, m;

    (void)state;
    write_ids("some.npy", 0, 1000);
    n = split_ids("some.npy", "val", ", fraction: 0.5", val);
    m = read_ids(open_text("{dataset: {fields: {x: {path: some.npy}}}, loader: {split: {part: val, fraction: 0.5}, "
                           "indices: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]}}"),
                 ids, 10);
    for (int64_t i = 1; i < m; i++)
        assert_true(ids[i] < ids[i - 1]);
    for (int64_t i = 0; i < 10; i++)
        assert_int_equal(has(ids, m, i), has(val, n, i));
}

/* ---- weights ---- */

static void write_weights(const char *name)
{
    stk_npy_writer *writer;
    stk_error err;

    assert_ok(stk_npy_create(stkt_path(name), STK_F32, 0, NULL, false, &writer, &err));
    for (int i = 0; i < 4; i++) {
        float weight = (float)i;

        assert_ok(stk_npy_append(writer, &weight, 1, &err));
    }
    assert_ok(stk_npy_commit(writer, &err));
}

static void weights_from_anywhere(void **state)
{
    static const char *const from[] = {"[0, 1, 2, 3]", "w.npy", "{path: w.npy}", "{field: w}"};
    static const double numbers[] = {0, 1, 2, 3};
    static int64_t first[6000], ids[6000];
    int64_t counts[4] = {0};

    (void)state;
    write_ids("four.npy", 0, 4);
    write_weights("w.npy");
    for (int i = 0; i < 5; i++) {
        stk_loader *loader;
        stk_error err;

        if (i < 4) {
            loader = open_text("{dataset: {fields: {x: {path: four.npy}, w: {path: w.npy}}}, loader: {order: weighted, "
                               "weights: %s, epoch_length: 3000, batch_size: 64, num_epochs: 2}}",
                               from[i]);
        } else {
            const char *path = stkt_path("four.npy");
            stk_field_opts field = STK_FIELD_OPTS_INIT;
            stk_loader_opts opts = STK_LOADER_OPTS_INIT;

            field.name = "x";
            field.paths = &path;
            field.path_count = 1;
            opts.fields = &field;
            opts.field_count = 1;
            opts.order = STK_ORDER_WEIGHTED;
            opts.weights = numbers;
            opts.weight_count = 4;
            opts.epoch_length = 3000;
            opts.batch_size = 64;
            opts.num_epochs = 2;
            assert_ok(stk_loader_open(&opts, &loader, &err));
        }
        assert_int_equal(stk_loader_samples(loader), 3000);
        assert_int_equal(read_ids(loader, i ? ids : first, 6000), 6000);
        if (i)
            assert_memory_equal(ids, first, sizeof ids);
    }
    for (int i = 0; i < 6000; i++)
        counts[first[i]]++;
    assert_int_equal(counts[0], 0);
    assert_in_range(counts[1], 1000 - 150, 1000 + 150);
    assert_in_range(counts[2], 2000 - 190, 2000 + 190);
    assert_memory_not_equal(first, first + 3000, 3000 * sizeof *first);
}

#define FOUR(rest) "{dataset: {fields: {x: {path: four.npy}}}, loader: {" rest "}}"

static void weights_refused(void **state)
{
    (void)state;
    write_ids("four.npy", 0, 4);
    write_ids("five.npy", 0, 5);
    refuse_text(STK_E_MISMATCH, "found 3",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: "
                "[1, 2, 3]}}");
    /* the number of weights is checked before memory is allocated for one per sample */
    refuse_text(STK_E_MISMATCH, "found 1, expected 1000000000000, one per sample",
                "{dataset: {fields: {x: {synthetic: {count: 1000000000000, shape: [1], dtype: u8}}}}, loader: {order: "
                "weighted, weights: [1]}}");
    refuse_text(STK_E_MISMATCH, "found 5, expected 1000000000000, one per sample",
                "{dataset: {fields: {x: {synthetic: {count: 1000000000000, shape: [1], dtype: u8}}}}, loader: {order: "
                "weighted, weights: five.npy}}");
    refuse_text(STK_E_MISMATCH, "five.npy",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: five.npy}}");
    refuse_text(STK_E_CONFIG, "wait",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: "
                "{field: wait}}}");
    refuse_text(STK_E_CONFIG, "weights", "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted}}");
    refuse_text(STK_E_CONFIG, "order: weighted",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {weights: [1, 2, 3, 4]}}");
    refuse_text(STK_E_RANGE, "sample 1",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: "
                "[1, -2, 3, 4]}}");
    refuse_text(STK_E_NOT_FOUND, "none.npy",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: none.npy}}");
    refuse_text(STK_E_CONFIG, "either path or field",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: {}}}");
    refuse_text(STK_E_CONFIG, "weights.name",
                "{dataset: {fields: {x: {path: four.npy}}}, loader: {order: weighted, weights: {name: a}}}");
    refuse_text(STK_E_CONFIG, "weights", FOUR("order: weighted"));
    refuse_text(STK_E_CONFIG, "order: weighted", FOUR("weights: [1, 1, 1, 1]"));
    refuse_text(STK_E_CONFIG, "order: block", FOUR("block_window: 4"));
    refuse_text(STK_E_CONFIG, "order: block", FOUR("block_rows: in_order"));
    refuse_text(STK_E_CONFIG, "block_window", FOUR("order: block, block_window: 4, block_rows: in_order"));
}

/* ---- blocks and buckets ---- */

static double quality_of(stk_loader *loader)
{
    const char *at = strstr(stk_loader_options_json(loader), "\"quality\": ");

    assert_non_null(at);
    return strtod(at + strlen("\"quality\": "), NULL);
}

/* Row F11 (libffcv/ffcv#304): records sorted by class, 1000 classes, batches of 16. The note compares the number of
 * classes per batch with that of a full shuffle, and must match the batches. */
static void block_reports_how_well_it_mixes(void **state)
{
    enum { N = 64000, BATCH = 16, CLASS = N / 1000 };
    /* approximately, because this formula is for sampling with replacement */
    const double shuffled = 1000 * (1 - pow(1 - 1.0 / 1000, BATCH));
    static int64_t ids[N];
    double last = 0;
    stk_loader *one;

    (void)state;
    write_ids("sorted.npy", 0, N);
    one = open_text("{dataset: {fields: {x: {path: sorted.npy}}}, loader: {order: block, block_window: 1, cache_bytes: "
                    "1MiB}}");
    assert_true(fabs(quality_of(one) - 1) < 1e-9); /* a batch of one sample has one class in any order */
    stk_loader_destroy(one);
    for (int window = 1; window <= 1000; window *= 10) {
        stk_loader *loader =
            open_text("{dataset: {fields: {x: {path: sorted.npy, source: {axis: 0}}}}, loader: {order: "
                      "block, block_window: %d, batch_size: %d, cache_bytes: 1MiB}}",
                      window, BATCH);
        double said = quality_of(loader), classes = 0;
        bool noted = false;

        for (int i = 0; i < stk_loader_note_count(loader); i++)
            noted = noted || (strstr(stk_loader_note(loader, i), "order: block mixes") &&
                              strstr(stk_loader_note(loader, i), "loader.block_window"));
        assert_true(noted);
        assert_int_equal(read_ids(loader, ids, N), N);
        for (int b = 0; b < N / BATCH; b++) {
            int64_t in[BATCH];
            int different = 0;

            for (int r = 0; r < BATCH; r++)
                in[r] = ids[b * BATCH + r] / CLASS;
            qsort(in, BATCH, sizeof *in, by_value);
            for (int r = 0; r < BATCH; r++)
                different += r == 0 || in[r] != in[r - 1];
            classes += different;
        }
        classes /= N / BATCH;
        assert_true(fabs(said - classes / shuffled) < 0.08);
        assert_true(said > last - 0.05 && said < 1.02);
        last = said;
    }
}

static void buckets_through_the_loader(void **state)
{
    static int64_t plain[2000], bucketed[2000], workers[2000];
    int64_t n;

    (void)state;
#define BUCKETS                                                                                                      \
    "{dataset: {fields: {x: {synthetic: {count: 500, shape: [], dtype: i64, seed: 1}}, t: {synthetic: {count: 500, " \
    "shape: [40], dtype: u16, min_length: 1, seed: 2}}}}, loader: {shuffle: true, batch_size: 8, seed: 9, "          \
    "num_workers: "                                                                                                  \
    "%d%s}}"
    assert_int_equal(read_ids(open_text(BUCKETS, 0, ""), plain, 2000), 500);
    n = read_ids(open_text(BUCKETS, 0, ", bucket_by: t, bucket_window: 10"), bucketed, 2000);
    assert_int_equal(n, 500);
    assert_int_equal(read_ids(open_text(BUCKETS, 3, ", bucket_by: t, bucket_window: 10"), workers, 2000), 500);
    assert_memory_equal(bucketed, workers, sizeof bucketed);
    assert_memory_not_equal(plain, bucketed, sizeof plain);
    qsort(plain, 500, sizeof *plain, by_value);
    qsort(bucketed, 500, sizeof *bucketed, by_value);
    assert_memory_equal(plain, bucketed, sizeof plain);
    refuse_text(STK_E_CONFIG, "bucket_by: found x", BUCKETS, 0, ", bucket_by: x");
    refuse_text(STK_E_CONFIG, "bucket_by: found z", BUCKETS, 0, ", bucket_by: z");
}

/* The program is linked with --wrap=stki_order_eval. */
static stki_counter evaluated_late;
static int64_t fail_at = -1; /* evaluating this position fails and leaves invalid positions */

stk_status __real_stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                                  stk_error *error);
stk_status __wrap_stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                                  stk_error *error);
stk_status __wrap_stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                                  stk_error *error)
{
    if (!stki_order_is_ready(order, epoch, first) || !stki_order_is_ready(order, epoch, first + n - 1))
        stki_count(&evaluated_late, 1);
    if (first == fail_at) {
        memset(out, 0x7f, (size_t)n * sizeof *out);
        return stki_fail_memory(error, 12345, "a table");
    }
    return __real_stki_order_eval(order, epoch, first, n, out, error);
}

/* No sample of a batch whose order fails is read. The batches before it are delivered. */
static void an_order_that_fails_is_the_error_of_its_batch(void **state)
{
    (void)state;
    fail_at = 32;
    for (int workers = 0; workers < 3; workers++) {
        stk_loader *loader;
        stk_batch *batch;
        stk_error err;

        loader = open_text("{dataset: {fields: {x: {synthetic: {count: 80, shape: [3]}}}}, loader: {batch_size: 16, "
                           "num_workers: %d, on_error: skip}}",
                           workers);
        for (int i = 0; i < 2; i++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_rows(batch), 16);
            stk_batch_release(batch);
        }
        assert_status(stk_loader_next(loader, &batch, &err), STK_E_MEMORY);
        assert_says("12345");
        stk_loader_destroy(loader);
    }
    fail_at = -1;
}

/* Every window except the first is sorted ahead of time, with and without workers. */
static void no_batch_waits_for_a_sort(void **state)
{
    (void)state;
    for (int workers = 0; workers < 2; workers++) {
        stk_loader *loader;

        stki_count_set(&evaluated_late, 0);
        loader = open_text(BUCKETS, workers, ", bucket_by: t, bucket_window: 10, num_epochs: 5");

        for (int step = 0; step < 5 * 63; step++) {
            stk_batch *batch;

            assert_int_equal(stk_loader_next(loader, &batch, NULL), STK_OK);
            stk_batch_release(batch);
            assert_int_equal(stki_counted(&evaluated_late), 1); /* only for the first window, not again later */
        }
        stk_loader_destroy(loader);
    }
}

static void wrong_keys(void **state)
{
    (void)state;
    write_ids("four.npy", 0, 4);
    stk_loader_destroy(open_text(FOUR("split: null, weights: null, indices: null, bucket_by: null")));
    refuse_text(STK_E_CONFIG, "train or val", FOUR("split: test"));
    refuse_text(STK_E_CONFIG, "fraction", FOUR("split: {fraction: 1.5}"));
    refuse_text(STK_E_CONFIG, "split.key", FOUR("split: {method: hash, key: group}"));
    refuse_text(STK_E_CONFIG, "no field has a file", FOUR("split: {method: hash, key: path}"));
    refuse_text(STK_E_CONFIG, "method: hash", FOUR("split: {method: exact, key: x}"));
    refuse_text(STK_E_CONFIG, "method: hash", FOUR("split: {key: index}"));
    refuse_text(STK_E_CONFIG, "bucket_window: has no effect without bucket_by", FOUR("bucket_window: 4"));
    refuse_text(STK_E_CONFIG, "mixture_stop: has no effect without datasets", FOUR("mixture_stop: all_exhausted"));
    refuse_text(STK_E_CONFIG, "max_errors: has no effect without on_error: skip", FOUR("max_errors: 4"));
    refuse_text(STK_E_CONFIG, "max_error_fraction: has no effect without",
                FOUR("on_error: fail, max_error_fraction: 1"));
    refuse_text(STK_E_CONFIG, "error_list: has no effect without", FOUR("error_list: x"));
    refuse_text(STK_E_CONFIG, "shuffle: alias of order", FOUR("shuffle: true, order: random"));
    refuse_text(STK_E_CONFIG, "found both batch_size", FOUR("batch_size: 1, global_batch_size: 2"));
    refuse_text(STK_E_CONFIG, "epoch_length", FOUR("order: block, epoch_length: 10"));
    refuse_text(STK_E_CONFIG, "found group, expected index, path or the name of a field (x)",
                FOUR("split: {method: hash, key: group}"));
    refuse_text(STK_E_CONFIG, "expected the name of a field (x)", FOUR("order: weighted, weights: {field: group}"));
}

/* The error says that the subset is empty and why, rather than that the batch is too large. */
static void empty_subsets(void **state)
{
    (void)state;
    write_ids("four.npy", 0, 4);
    refuse_text(STK_E_EMPTY,
                "loader.split: the subset is empty: part: val with method: exact and fraction: 0, the share of val, "
                "selects none of 4 samples",
                FOUR("split: {part: val, fraction: 0}"));
    refuse_text(STK_E_EMPTY, "part: train with method: hash and fraction: 1",
                FOUR("split: {part: train, method: hash, fraction: 1}"));
    refuse_text(STK_E_EMPTY, "selects none of 2 samples in indices",
                FOUR("split: {part: val, fraction: 0}, indices: [1, 2]"));
    refuse_text(STK_E_EMPTY, "selects none of 1 sample in indices",
                FOUR("split: {part: val, fraction: 0}, indices: [1]"));
    refuse_text(STK_E_EMPTY, "loader.indices: the subset is empty", FOUR("indices: []"));
    refuse_text(STK_E_EMPTY, "loader.indices: the subset is empty", FOUR("indices: [], split: val"));
    refuse_text(STK_E_EMPTY, "data set b: indices: the subset is empty",
                "{datasets: [{name: a, fields: {x: {path: four.npy}}}, {name: b, indices: [], fields: {x: {path: "
                "four.npy}}}]}");
    refuse_text(STK_E_EMPTY, "data set a: loader.split: the subset is empty",
                "{datasets: [{name: a, fields: {x: {path: four.npy}}}, {name: b, fields: {x: {path: four.npy}}}], "
                "loader: {split: {part: val, fraction: 0}}}");
    refuse_text(STK_E_EMPTY, "use a smaller batch", FOUR("batch_size: 5, last_batch: drop"));
    stk_loader_destroy(open_text(FOUR("indices: [], allow_empty: true")));
    stk_loader_destroy(open_text(FOUR("split: {part: val, fraction: 0}, allow_empty: true")));
}

/* ---- saving and restoring ---- */

/* The indices of the next `batches` batches. */
static int64_t next_indices(stk_loader *loader, int batches, int64_t *out)
{
    int64_t n = 0;

    for (int b = 0; b < batches; b++) {
        stk_batch *batch;
        stk_error err;

        assert_ok(stk_loader_next(loader, &batch, &err));
        memcpy(out + n, stk_batch_indices(batch), (size_t)stk_batch_rows(batch) * sizeof *out);
        n += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    return n;
}

/* Every kind of order can be resumed in the middle of an epoch with a different number of workers. A position of
 * another order is rejected. */
static void every_order_can_be_resumed(void **state)
{
    static const char *const orders[] = {
        "order: random, split: {part: train, fraction: 0.3}",
        "order: weighted, weights: {field: x}, epoch_length: 100",
        "order: random, bucket_by: t, bucket_window: 3",
        "order: random, epoch_length: 77",
        "order: block, block_window: 2",
    };
    static int64_t whole[2000], rest[2000];

    (void)state;
    write_ids("hundred.npy", 1, 100);
    for (int i = 0; i < 6; i++) {
        char text[2][1024], blob[STK_STATE_MAX];
        stk_loader *loader;
        stk_error err;
        int64_t bytes, n, before, after;

        for (int k = 0; k < 2; k++) {
            if (i < 5)
                snprintf(
                    text[k], sizeof text[k],
                    "{dataset: {fields: {x: {path: hundred.npy}, t: {synthetic: {count: 100, shape: [30], dtype: u8, "
                    "min_length: 1}, pad: batch}}}, loader: {batch_size: 7, num_epochs: 0, num_workers: %d, seed: "
                    "5, %s}}",
                    3 * k, orders[i]);
            else
                snprintf(text[k], sizeof text[k],
                         "{" MIXED ", loader: {shuffle: true, batch_size: 7, num_epochs: 0, num_workers: %d, seed: 5}}",
                         3 * k);
        }
        write_mixture();
        loader = open_text("%s", text[0]);
        n = next_indices(loader, 40, whole);
        stk_loader_destroy(loader);
        loader = open_text("%s", text[1]);
        before = next_indices(loader, 23, rest);
        assert_ok(stk_loader_save(loader, blob, sizeof blob, &bytes, &err));
        stk_loader_destroy(loader);
        loader = open_text("%s", text[0]);
        assert_ok(stk_loader_restore(loader, blob, bytes, &err));
        after = next_indices(loader, 17, rest + before);
        assert_int_equal(before + after, n);
        assert_memory_equal(whole, rest, (size_t)n * sizeof *whole);
        stk_loader_destroy(loader);
        if (i < 5) {
            snprintf(text[0], sizeof text[0],
                     "{dataset: {fields: {x: {path: hundred.npy}, t: {synthetic: {count: 100, shape: [30], dtype: u8, "
                     "min_length: 1}, pad: batch}}}, loader: {batch_size: 7, num_epochs: 0, seed: 5, %s}}",
                     orders[(i + 1) % 5]);
            loader = open_text("%s", text[0]);
            assert_status(stk_loader_restore(loader, blob, bytes, &err), STK_E_MISMATCH);
            stk_loader_destroy(loader);
        }
    }
}

/* Each allocation of open fails in turn; nothing leaks. */
static void open_survives(const char *text)
{
    stki_memory_stats before, after;
    stk_loader *loader = NULL;
    stk_error err;
    int64_t n;

    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1; n < 5000; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        memset(&err, 0, sizeof err);
        status = stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        if (status != STK_E_MEMORY)
            fail_msg("allocation %lld: %s", (long long)n, err.message);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    assert_true(n > 30 && n < 5000);
    stk_loader_destroy(loader);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.blocks, before.blocks);
}

static void allocations(void **state)
{
    (void)state;
    write_mixture();
    write_ids("four.npy", 0, 4);
    write_weights("w.npy");
    open_survives("{" MIXED ", loader: {shuffle: true, num_workers: 0, split: {part: train, method: hash}}}");
    open_survives(
        "{datasets: [{fields: {x: {path: web.npy}}}, {fields: {x: {path: code.npy}}, indices: [1, 2]}], loader: "
        "{num_workers: 0, epoch_length: 30}}");
    open_survives(
        "{dataset: {fields: {x: {path: four.npy}}}, loader: {num_workers: 0, order: weighted, weights: w.npy}}");
    open_survives(
        "{dataset: {fields: {x: {path: four.npy}}}, loader: {num_workers: 0, order: weighted, weights: [1, 2, 3, "
        "4], split: train}}");
    open_survives(
        "{dataset: {fields: {x: {path: four.npy}, w: {path: w.npy}}}, loader: {num_workers: 0, order: weighted, "
        "weights: {field: w}, indices: [1, 3]}}");
    open_survives("{dataset: {fields: {t: {synthetic: {count: 50, shape: [40], dtype: u16, min_length: 1}, pad: batch, "
                  "views: {a: [0, -1]}}}}, loader: {num_workers: 0, bucket_by: t, batch_size: 4}}");
    open_survives(
        "{dataset: {fields: {t: {synthetic: {count: 50, shape: [40], dtype: u16, min_length: 1}, source: {pack: "
        "16}, views: {a: [0, -1]}}}}, loader: {num_workers: 0, batch_size: 4}}");
    open_survives("{dataset: {fields: {x: {path: [books0.npy, books1.npy], source: {window: {length: 3, offsets: "
                  "shifted}}}}}, loader: {num_workers: 0, shuffle: true}}");
}

/* With `key: path`, a file stays in its part even if other files are added before it and its number changes. */
static void split_by_path(void **state)
{
    char name[64];
    bool val_before[60] = {false};

    (void)state;
    mkdir(stkt_path("files"), 0700);
    for (int round = 0; round < 2; round++) {
        static const char *const parts[] = {"train", "val"};
        int total = 0;

        for (int i = 0; i < (round ? 60 : 40); i++) { /* later names sort before the first ones */
            snprintf(name, sizeof name, "files/%c%02d.npy", i < 40 ? 'm' : 'a', i);
            write_ids(name, i, 2);
        }
        for (int part = 0; part < 2; part++) {
            static int64_t ids[400];
            stk_loader *loader = open_text(
                "{dataset: {fields: {x: {path: 'files/*.npy', source: {sample_per_file: true}}}}, loader: {split: "
                "{part: %s, method: hash, key: path, fraction: 0.4}}}",
                parts[part]);
            int64_t n = read_ids_of_rows(loader, ids, 400);

            total += (int)n;
            for (int64_t k = 0; k < n; k++) {
                if (round == 0)
                    val_before[ids[k]] = part == 1;
                else if (ids[k] < 40)
                    assert_int_equal(val_before[ids[k]], part == 1);
            }
            assert_true(n > 5);
        }
        assert_int_equal(total, round ? 60 : 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subset_over_ranks),
        cmocka_unit_test(ranks_share_every_file),
        cmocka_unit_test(splits_are_disjoint_and_complete),
        cmocka_unit_test(hash_splits_are_stable),
        cmocka_unit_test(hash_is_the_published_one),
        cmocka_unit_test(split_by_a_field),
        cmocka_unit_test(split_of_a_subset),
        cmocka_unit_test(weights_from_anywhere),
        cmocka_unit_test(weights_refused),
        cmocka_unit_test(block_reports_how_well_it_mixes),
        cmocka_unit_test(buckets_through_the_loader),
        cmocka_unit_test(an_order_that_fails_is_the_error_of_its_batch),
        cmocka_unit_test(no_batch_waits_for_a_sort),
        cmocka_unit_test(wrong_keys),
        cmocka_unit_test(empty_subsets),
        cmocka_unit_test(split_by_path),
        cmocka_unit_test(every_order_can_be_resumed),
        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
