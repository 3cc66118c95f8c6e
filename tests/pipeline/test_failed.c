/* stki-threads */
/* Tests of samples that fail, under each policy: rows are skipped, masked or substituted, identically for any number of
 * workers and after a restart, with counts, a list of failures, and budgets. */
#include "allocate.h"
#include "clock.h"
#include "failed.h"
#include "faults.h"
#include "faulty.h"
#include "loader_test.h"

enum { COUNT = 103, BATCH = 10 };

/* Records that fail, by wrapping one faulty reader in another. */
typedef struct bad_records {
    const int64_t *records;
    int count;
    stk_status status;
    const char *field;
    const stk_status *statuses; /* if not NULL: one status per record, instead of `status` */
    int *spared;                /* if not NULL: number of readers, from the first on, that are not wrapped */
} bad_records;

static stk_status wrap(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    const bad_records *bad = context;

    if ((bad->field && strcmp(bad->field, field) != 0) || (bad->spared && --*bad->spared >= 0))
        return STK_OK;
    for (int i = 0; i < bad->count; i++) {
        stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
        stki_reader *wrapped = NULL;
        stk_status status;

        opts.fail_at = bad->records[i];
        opts.status = bad->statuses ? bad->statuses[i] : bad->status;
        status = stki_faulty_open(*reader, &opts, &wrapped, err);
        if (status != STK_OK)
            return status;
        *reader = wrapped;
    }
    return STK_OK;
}

static stk_status open_text(stk_loader **out, const bad_records *bad, const char *text, stk_error *err)
{
    stki_document *document;
    stki_loader_config *config;
    stk_status status;

    if ((status = stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, err)) != STK_OK ||
        (status = stki_config_read(document, NULL, &config, err)) != STK_OK)
        return status;
    config->wrap_reader = wrap;
    config->wrap_context = (void *)(uintptr_t)bad;
    return stki_loader_open_config(config, out, err);
}

static STK_PRINTF(2, 3) stk_loader *open_bad(const bad_records *bad, const char *format, ...)
{
    char keys[512], text[2048];
    stk_loader *loader;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(keys, sizeof keys, format, args);
    va_end(args);
    snprintf(
        text, sizeof text,
        "{dataset: {fields: {x: {synthetic: {count: 103, shape: [6], dtype: i32, distinct: 103, form: scratch}}, v: "
        "{synthetic: {count: 103, shape: [9], dtype: u8, min_length: 0, form: scratch, seed: 4}}}}, loader: "
        "{batch_size: 10, order: random, seed: 3, %s}}",
        keys);
    assert_ok(open_text(&loader, bad, text, &err));
    return loader;
}

static const stki_synthetic_opts made_x = {
    .count = COUNT, .dtype = STK_I32, .ndim = 1, .shape = {6}, .distinct = COUNT, .min_length = -1};
static const stki_synthetic_opts made_v = {.count = COUNT, .dtype = STK_U8, .ndim = 1, .shape = {9}, .seed = 4};

/* Every row must be its sample's bytes; masked rows in the middle are zeros. */
static void check_bytes(const stk_batch *batch, bool padded)
{
    const int64_t *indices = stk_batch_indices(batch);
    stk_tensor x, v, offsets;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, "x", &x, &err));
    assert_ok(stk_batch_tensor(batch, "v.values", &v, &err));
    assert_ok(stk_batch_tensor(batch, "v.offsets", &offsets, &err));
    assert_int_equal(x.shape[0], stk_batch_rows(batch));
    assert_int_equal(((int64_t *)offsets.data)[stk_batch_rows(batch)], v.shape[0]);
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        int64_t from = ((int64_t *)offsets.data)[r], length = ((int64_t *)offsets.data)[r + 1] - from;
        int32_t expected[6] = {0};
        uint8_t text[9] = {0};

        if (stk_batch_mask(batch)[r] || !padded) {
            stki_synthetic_fill(&made_x, indices[r], 6, expected);
            assert_int_equal(length, stki_synthetic_length(&made_v, indices[r]));
            stki_synthetic_fill(&made_v, indices[r], length, text);
        }
        assert_memory_equal((int32_t *)x.data + 6 * r, expected, sizeof expected);
        assert_memory_equal((uint8_t *)v.data + from, text, (size_t)length);
    }
}

static bool is_bad(const bad_records *bad, int64_t sample)
{
    for (int i = 0; i < bad->count; i++)
        if (bad->records[i] == sample)
            return true;
    return false;
}

static const int64_t some[] = {5, 17, 18, 44, 102};

/* The rows of failed samples are removed. All other rows stay in their batches and in order. */
static void skipped_rows(void **state)
{
    static const char *const fields[] = {"x", "v", NULL};

    (void)state;
    for (int f = 0; f < 3; f++)
        for (int workers = 0; workers <= 4; workers += 2) {
            bad_records none = {some, 0, STK_E_CORRUPT, NULL}, five = {some, 5, STK_E_CORRUPT, fields[f]};
            stk_loader *whole = open_bad(&none, "num_workers: 1, num_epochs: 2"),
                       *loader = open_bad(
                           &five, "num_workers: %d, num_epochs: 2, on_error: skip, max_error_fraction: 1", workers);
            stk_loader_stats stats = {.struct_size = sizeof stats};
            stk_batch *all, *batch;
            stk_error err;

            while (stk_loader_next(whole, &all, &err) == STK_OK) {
                int64_t row = 0;

                assert_ok(stk_loader_next(loader, &batch, &err));
                assert_int_equal(stk_batch_global_step(batch), stk_batch_global_step(all));
                for (int64_t r = 0; r < stk_batch_rows(all); r++) {
                    int64_t sample = stk_batch_indices(all)[r];

                    if (is_bad(&five, sample))
                        continue;
                    assert_int_equal(stk_batch_indices(batch)[row], sample);
                    assert_int_equal(stk_batch_mask(batch)[row++], 1);
                }
                assert_int_equal(stk_batch_rows(batch), row);
                assert_int_equal(stk_batch_valid_rows(batch), row);
                check_bytes(batch, false);
                stk_batch_release(batch);
                stk_batch_release(all);
            }
            assert_status(stk_loader_next(loader, &batch, &err), STK_END);
            assert_ok(stk_loader_get_stats(loader, &stats, &err));
            assert_int_equal(stats.skipped, 10);
            assert_int_equal(stats.substituted, 0);
            assert_int_equal(stk_loader_failed(loader, STK_OK), 10);
            assert_int_equal(stk_loader_failed(loader, STK_E_CORRUPT), 10);
            assert_int_equal(stk_loader_failed(loader, STK_E_IO), 0);
            stk_loader_destroy(whole);
            stk_loader_destroy(loader);
        }
}

/* With last_batch: pad, a batch keeps its size: a failed row is kept, with zeros and mask 0. */
static void masked_rows(void **state)
{
    bad_records five = {some, 5, STK_E_TRUNCATED, NULL};
    stk_loader *loader =
        open_bad(&five, "num_workers: 3, last_batch: pad, on_error: skip, max_error_fraction: 1, num_epochs: 2");
    int64_t seen[2] = {0};
    stk_batch *batch;
    stk_error err;

    (void)state;
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        int64_t valid = 0;

        assert_int_equal(stk_batch_rows(batch), BATCH);
        for (int64_t r = 0; r < BATCH; r++) {
            bool failed = is_bad(&five, stk_batch_indices(batch)[r]);

            if (failed)
                assert_int_equal(stk_batch_mask(batch)[r], 0);
            valid += stk_batch_mask(batch)[r];
        }
        assert_int_equal(stk_batch_valid_rows(batch), valid);
        seen[stk_batch_epoch(batch)] += valid;
        if (!stk_batch_last_of_epoch(batch))
            check_bytes(batch, true);
        stk_batch_release(batch);
    }
    assert_int_equal(seen[0], COUNT - 5);
    assert_int_equal(seen[1], COUNT - 5);
    assert_int_equal(stk_loader_failed(loader, STK_E_TRUNCATED), 10); /* padding does not count */
    stk_loader_destroy(loader);
}

/* The substitute for a sample is always the same, even after a restart and with a different number of workers. */
static void substitutes(void **state)
{
    uint64_t hashes[22] = {0};
    int64_t instead[COUNT];

    (void)state;
    memset(instead, -1, sizeof instead);
    for (int workers = 0; workers <= 6; workers += 2) {
        bad_records none = {some, 0, STK_E_CORRUPT, NULL}, five = {some, 5, STK_E_CORRUPT, NULL};
        stk_loader *whole = open_bad(&none, "num_workers: 1, num_epochs: 2"),
                   *loader = open_bad(&five,
                                      "num_workers: %d, num_epochs: 2, on_error: substitute, max_errors: 10, "
                                      "max_error_fraction: 0.05",
                                      workers);
        stk_batch *all, *batch;
        stk_error err;

        if (workers == 4) { /* starts in the middle */
            assert_ok(stk_loader_seek(whole, 0, 7, &err));
            assert_ok(stk_loader_seek(loader, 0, 7, &err));
        }
        while (stk_loader_next(whole, &all, &err) == STK_OK) {
            int64_t step = stk_batch_global_step(all);

            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_rows(batch), stk_batch_rows(all));
            for (int64_t r = 0; r < stk_batch_rows(all); r++) {
                int64_t sample = stk_batch_indices(all)[r], found = stk_batch_indices(batch)[r];

                if (!is_bad(&five, sample)) {
                    assert_int_equal(found, sample);
                    continue;
                }
                assert_false(is_bad(&five, found));
                if (instead[sample] < 0)
                    instead[sample] = found;
                assert_int_equal(found, instead[sample]);
            }
            check_bytes(batch, false);
            if (workers == 0)
                hashes[step] = stkt_hash_batch(0, loader, batch);
            assert_true(hashes[step] == stkt_hash_batch(0, loader, batch));
            stk_batch_release(batch);
            stk_batch_release(all);
        }
        assert_status(stk_loader_next(loader, &batch, &err), STK_END);
        if (workers != 4)
            assert_int_equal(stk_loader_failed(loader, STK_E_CORRUPT), 10);
        stk_loader_destroy(whole);
        stk_loader_destroy(loader);
    }
    assert_true(instead[17] != instead[18]);
}

/* A sample without elements can be a substitute. 51 samples with at most one element are replaced. */
static void empty_substitutes(void **state)
{
    int64_t records[51], lengths[2] = {0};
    const bad_records bad = {records, 51, STK_E_CORRUPT, NULL};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    for (int i = 0; i < 51; i++)
        records[i] = 2 * i;
    assert_ok(
        open_text(&loader, &bad,
                  "{dataset: {fields: {v: {synthetic: {count: 103, shape: [1], dtype: u8, min_length: 0}}}}, loader: "
                  "{batch_size: 10, on_error: substitute, max_error_fraction: 1}}",
                  &err));
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        stk_tensor offsets;

        assert_ok(stk_batch_tensor(batch, "v.offsets", &offsets, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch); r++)
            if (stk_batch_indices(batch)[r] !=
                10 * stk_batch_global_step(batch) + r) /* in sequence except for substitutes */
                lengths[((int64_t *)offsets.data)[r + 1] - ((int64_t *)offsets.data)[r]]++;
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_failed(loader, STK_E_CORRUPT), 51);
    assert_true(lengths[0] > 0 && lengths[1] > 0);
    stk_loader_destroy(loader);
}

/* Budgets are counted in the order of delivery. The error for an exceeded budget contains the count and the last
 * failure, and later calls return it again. */
static void budgets(void **state)
{
    static const struct {
        const char *keys, *says;
    } cases[] = {
        {"on_error: skip, max_error_fraction: 1, max_errors: 4", "found 5, expected at most 4"},
        {"on_error: substitute, max_error_fraction: 1, max_errors: 4", "raise loader.max_errors"},
        {"on_error: skip, max_errors: 0", "found 1, expected at most 0"},
        {"on_error: skip, max_error_fraction: 0.01", "found 2, expected at most 1 of 103 in an epoch"},
        {"on_error: skip, max_error_fraction: 0.009", "found 1, expected at most 0 of 103 in an epoch"},
        {"on_error: skip, max_error_fraction: 0.04", "found 5, expected at most 4 of 103 in an epoch"},
        {"on_error: skip, max_error_fraction: 0", "found 1, expected at most 0 of 103 in an epoch"},
        {"on_error: skip, max_errors: 5, max_error_fraction: 0.05", NULL},
        {"on_error: skip, max_error_fraction: 0.05", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int workers = 0; workers <= 3; workers += 3) {
            bad_records five = {some, 5, STK_E_CORRUPT, NULL};
            stk_loader *loader = open_bad(&five, "%s, num_workers: %d", cases[i].keys, workers);
            stk_status status;
            stk_batch *batch;
            stk_error err;

            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
                stk_batch_release(batch);
            if (cases[i].says) {
                assert_int_equal(status, STK_E_LIMIT);
                assert_says(cases[i].says);
                assert_status(stk_loader_next(loader, &batch, &err), STK_E_LIMIT);
            } else {
                assert_int_equal(status, STK_END);
            }
            stk_loader_destroy(loader);
        }
}

/* The allowed share is computed exactly, however the double is rounded: a run ends if more samples failed than allowed,
 * not if exactly as many did. */
static void shares(void **state)
{
    (void)state;
    assert_int_equal(stki_failed_most(0.01, 61), 0);
    assert_int_equal(stki_failed_most(0.009, 103), 0);
    assert_int_equal(stki_failed_most(0.01, 99), 0);
    assert_int_equal(stki_failed_most(0.01, 100), 1);
    assert_int_equal(stki_failed_most(0.01, 0), 0);
    assert_int_equal(stki_failed_most(0, 1000), 0);
    assert_int_equal(stki_failed_most(1, 1000), 1000);
    assert_int_equal(stki_failed_most(1e-12, INT64_C(1000000000000)), 1);
    for (int64_t rows = 1; rows <= 1000; rows++)
        for (int64_t hundredths = 0; hundredths <= 100; hundredths++) { /* compared with integer arithmetic */
            char text[16];

            snprintf(text, sizeof text, "%d.%02d", (int)(hundredths / 100), (int)(hundredths % 100));
            assert_int_equal(stki_failed_most(strtod(text, NULL), rows), rows * hundredths / 100);
        }
}

/* One failed sample of 61 is more than 1 %. */
static void small_epochs(void **state)
{
    static const char *const keys[] = {"on_error: skip", "on_error: skip, max_error_fraction: 0.017"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        static const int64_t record = 17;
        const bad_records one = {&record, 1, STK_E_CORRUPT, NULL};
        stk_loader *loader;
        stk_status status;
        stk_batch *batch;
        char text[256];
        stk_error err;

        snprintf(
            text, sizeof text,
            "{dataset: {fields: {x: {synthetic: {count: 61, shape: [6], dtype: u8}}}}, loader: {batch_size: 10, %s}}",
            keys[i]);
        assert_ok(open_text(&loader, &one, text, &err));
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        assert_int_equal(status, i == 0 ? STK_E_LIMIT : STK_END);
        if (i == 0)
            assert_says("found 1, expected at most 0 of 61 in an epoch");
        stk_loader_destroy(loader);
    }
}

/* In the struct, 0 means the default and STK_NO_ERRORS means the config's 0. */
static void budgets_of_structs(void **state)
{
    static const struct {
        int64_t errors;
        double fraction;
        const char *says[2];
    } cases[] = {
        {0, 0, {"\"max_errors\": \"unlimited\"", "\"max_error_fraction\": 0.01"}},
        {STK_NO_ERRORS, STK_NO_ERRORS, {"\"max_errors\": 0", "\"max_error_fraction\": 0.0"}},
        {3, 0.5, {"\"max_errors\": 3", "\"max_error_fraction\": 0.5"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char *const path = STKT_TESTS_DIR "/data/digits_images.npy";
        stk_field_opts field = STK_FIELD_OPTS_INIT;
        stk_loader_opts opts = STK_LOADER_OPTS_INIT;
        stk_loader *loader;
        stk_error err;

        field.name = "x";
        field.paths = &path;
        field.path_count = 1;
        opts.fields = &field;
        opts.field_count = 1;
        opts.on_error = STK_ON_ERROR_SKIP;
        opts.max_errors = cases[i].errors;
        opts.max_error_fraction = cases[i].fraction;
        assert_ok(stk_loader_open(&opts, &loader, &err));
        for (int k = 0; k < 2; k++)
            if (!strstr(stk_loader_options_json(loader), cases[i].says[k]))
                fail_msg("%s: %s", cases[i].says[k], stk_loader_options_json(loader));
        stk_loader_destroy(loader);
        opts.max_errors = -2;
        assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    }
}

/* After a restore, counting continues with the saved counts. */
static void budgets_over_a_restart(void **state)
{
    bad_records five = {some, 5, STK_E_CORRUPT, NULL};
    stk_loader *loader = open_bad(&five, "on_error: skip, max_errors: 7, max_error_fraction: 1, num_epochs: 2"), *other;
    uint8_t bytes[STK_STATE_MAX];
    int64_t size;
    stk_status status;
    stk_batch *batch;
    stk_error err;

    (void)state;
    for (int i = 0; i < 11; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
    }
    assert_ok(stk_loader_save(loader, bytes, sizeof bytes, &size, &err));
    other = open_bad(&five, "on_error: skip, max_errors: 7, max_error_fraction: 1, num_epochs: 2");
    assert_ok(stk_loader_restore(other, bytes, size, &err));
    while ((status = stk_loader_next(other, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_int_equal(status, STK_E_LIMIT);
    assert_says("found 8, expected at most 7");
    stk_loader_destroy(loader);
    stk_loader_destroy(other);
}

/* Row W21: an epoch in which no sample remains is an error, whatever the budget. */
static void everything_fails(void **state)
{
    static const char *const policies[] = {"skip", "skip, last_batch: pad", "substitute"};
    int64_t all[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        all[i] = i;
    for (int p = 0; p < 3; p++) {
        bad_records every = {all, COUNT, STK_E_CORRUPT, "x"};
        stk_loader *loader = open_bad(&every, "on_error: %s, max_error_fraction: 1", policies[p]);
        stk_status status;
        stk_batch *batch;
        stk_error err;

        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
            assert_int_equal(stk_batch_valid_rows(batch), 0);
            stk_batch_release(batch);
        }
        /* there is no substitute, so it is the sample's error */
        assert_int_equal(status, p < 2 ? STK_E_EMPTY : STK_E_CORRUPT);
        if (p < 2)
            assert_says("epoch 0: all 103 ");
        stk_loader_destroy(loader);
    }
}

/* Out of memory is not an error of the sample. */
static void some_errors_end_the_run(void **state)
{
    static const int64_t one[] = {50};
    bad_records memory = {one, 1, STK_E_MEMORY, NULL};
    stk_loader *loader = open_bad(&memory, "on_error: skip");
    stk_status status;
    stk_batch *batch;
    stk_error err;

    (void)state;
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_int_equal(status, STK_E_MEMORY);
    stk_loader_destroy(loader);
}

/* The error of a batch is that of the first row that ends the run, not of a skipped row. */
static void the_error_of_a_batch(void **state)
{
    static const int64_t records[] = {2, 3, 5, 6};
    static const stk_status statuses[][4] = {{STK_E_CORRUPT, STK_E_CORRUPT, STK_E_MEMORY, STK_E_IO},
                                             {STK_E_IO, STK_E_RESOURCE, STK_E_CORRUPT, STK_E_MEMORY}};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int workers = 0; workers < 4; workers += 3) {
            const bad_records bad = {records, 4, STK_OK, NULL, statuses[i]};
            char text[256];
            stk_loader *loader;
            stk_batch *batch;
            stk_error err;

            snprintf(text, sizeof text,
                     "{dataset: {fields: {x: {synthetic: {count: 20, shape: [6]}}}}, loader: {batch_size: 10, "
                     "on_error: skip, max_error_fraction: 1, num_workers: %d}}",
                     workers);
            assert_ok(open_text(&loader, &bad, text, &err));
            assert_status(stk_loader_next(loader, &batch, &err), i ? STK_E_RESOURCE : STK_E_MEMORY);
            assert_int_equal(err.record, i ? 3 : 5);
            stk_loader_destroy(loader);
        }
}

/* Each data set has its own policy, and substitutes come from the same data set. */
static void policies_of_data_sets(void **state)
{
    static const char text[] =
        "{datasets: [{name: a, on_error: %s, fields: {x: {synthetic: {count: 40, shape: [2]}}}}, {name: b, on_error: "
        "%s, "
        "weight: 3, fields: {x: {synthetic: {count: 60, shape: [2]}}}}], loader: {batch_size: 7, order: random, "
        "max_error_fraction: 1, epoch_length: 200, on_error: %s}}";
    static const int64_t one[] = {11}; /* in both data sets, because both readers are wrapped */
    bad_records bad = {one, 1, STK_E_IO, NULL};
    stk_status status;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    char config[1024];

    (void)state;
    snprintf(config, sizeof config, text, "skip", "substitute", "fail");
    assert_ok(open_text(&loader, &bad, config, &err));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            assert_int_not_equal(stk_batch_indices(batch)[r], 11);
            assert_int_not_equal(stk_batch_indices(batch)[r], 40 + 11);
            assert_int_equal(stk_batch_sources(batch)[r], stk_batch_indices(batch)[r] >= 40);
        }
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    {
        stk_loader_stats stats = {.struct_size = sizeof stats};

        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_true(stats.skipped > 0 && stats.substituted > 0);
    }
    stk_loader_destroy(loader);
    snprintf(config, sizeof config, text, "skip", "fail", "skip");
    assert_ok(open_text(&loader, &bad, config, &err));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_int_equal(status, STK_E_IO);
    stk_loader_destroy(loader);
}

/* One of 100000 positions is from the second data set, and its sample fails. */
static void a_rare_sample_has_no_substitute(void **state)
{
    static const int64_t first = 0;
    int spared = 1;
    const bad_records bad = {.records = &first, .count = 1, .status = STK_E_CORRUPT, .spared = &spared};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_ok(open_text(&loader, &bad,
                        "{datasets: [{weight: 99999, fields: {y: {path: '" STKT_TESTS_DIR
                        "/data/digits_labels.npy'}}}, {fields: {y: {path: '" STKT_TESTS_DIR
                        "/data/digits_labels.npy'}}}], loader: {batch_size: 4, epoch_length: 100000, on_error: "
                        "substitute, max_error_fraction: 1}}",
                        &err));
    assert_ok(stk_loader_seek(loader, 0, 100000 / 4 - 1, &err));
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
    assert_int_equal(err.record, 0);
    stk_loader_destroy(loader);
}

/* One line of JSON per failed sample, in the order of delivery. */
static void the_list(void **state)
{
    bad_records five = {some, 5, STK_E_CORRUPT, "x"};
    char dir[512], path[600], line[2048];
    int64_t lines = 0, last = -1;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    FILE *file;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/failed.jsonl", dir);
    for (int i = 0; i < 2; i++) {
        loader = open_bad(&five, "on_error: %s, max_error_fraction: 1, num_workers: 3, error_list: %s",
                          i ? "substitute" : "skip", path);
        while (stk_loader_next(loader, &batch, &err) == STK_OK)
            stk_batch_release(batch);
        stk_loader_destroy(loader);
    }
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        json_t *json = json_loads(line, 0, NULL);
        int64_t position = json_integer_value(json_object_get(json, "position"));

        assert_non_null(json);
        assert_true(is_bad(&five, json_integer_value(json_object_get(json, "sample"))));
        assert_int_equal(json_integer_value(json_object_get(json, "record")),
                         json_integer_value(json_object_get(json, "sample")));
        assert_string_equal(json_string_value(json_object_get(json, "reason")), "corrupt");
        assert_string_equal(json_string_value(json_object_get(json, "action")), lines < 5 ? "skip" : "substitute");
        assert_true((json_object_get(json, "substitute") != NULL) == (lines >= 5));
        assert_true(position > last || lines == 5);
        assert_int_equal(json_integer_value(json_object_get(json, "step")), position / BATCH);
        last = position;
        lines++;
        json_decref(json);
    }
    fclose(file);
    assert_int_equal(lines, 10);
    assert_status(stk_loader_open_text("{dataset: {fields: {x: {synthetic: {count: 1}}}}, loader: {on_error: skip, "
                                       "error_list: /no/such/folder/list}}",
                                       NULL, NULL, 0, &loader, &err),
                  STK_E_NOT_FOUND);
    stkt_remove_dir(dir);
}

/* Labels are delivered together with the labels of the partner rows. A masked row must not contain values of the
 * previous batch. */
static void masked_rows_of_mixed_labels(void **state)
{
    bad_records five = {some, 5, STK_E_CORRUPT, "x"};
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;
    stk_error err;
    int64_t masked = 0;

    (void)state;
    assert_ok(open_text(&loader, &five,
                        "{dataset: {fields: {x: {synthetic: {count: 103, shape: [6], dtype: i32, distinct: 103, form: "
                        "scratch}, transforms: [{scale: 2}, {mixup: {labels: y}}]}, y: {synthetic: {count: 103, shape: "
                        "[], dtype: i32, distinct: 103}}}}, loader: {batch_size: 10, on_error: skip, last_batch: pad, "
                        "max_error_fraction: 1, prefetch: 1, num_epochs: 2, num_workers: 1}}",
                        &err));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor own, partners, shares;

        assert_ok(stk_batch_tensor(batch, "y", &own, &err));
        assert_ok(stk_batch_tensor(batch, "y_mix", &partners, &err));
        assert_ok(stk_batch_tensor(batch, "mix_lambda", &shares, &err));
        for (int64_t r = 0; r < stk_batch_rows(batch) && !stk_batch_last_of_epoch(batch); r++) {
            if (stk_batch_mask(batch)[r])
                continue;
            assert_int_equal(((const int32_t *)own.data)[r], 0);
            assert_int_equal(((const int32_t *)partners.data)[r], 0);
            assert_true(((const float *)shares.data)[r] == 0);
            masked++;
        }
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_true(masked > 8);
    stk_loader_destroy(loader);
}

/* A full disk ends the list, with a note, but not the run. */
static void a_list_that_cannot_be_written(void **state)
{
    bad_records five = {some, 5, STK_E_CORRUPT, "x"};
    stk_loader *loader =
        open_bad(&five, "on_error: skip, max_error_fraction: 1, num_workers: 2, error_list: /dev/full");
    const char *note = NULL;
    stk_batch *batch;
    stk_status status;
    stk_error err;
    int said = 0;

    (void)state;
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
        stk_batch_release(batch);
    assert_int_equal(status, STK_END);
    for (int i = 0; i < stk_loader_note_count(loader); i++) {
        note = stk_loader_note(loader, i);
        said += strstr(note, "loader.error_list: /dev/full: not all failed samples could be listed: No space") != NULL;
    }
    assert_int_equal(said, 1);
    stk_loader_destroy(loader);
}

/* The same for batches on a device, and when there is no memory to record the failures. */
static void on_a_device(void **state)
{
    bad_records five = {some, 5, STK_E_CORRUPT, NULL};
    stk_loader *loader = open_bad(&five, "on_error: skip, max_error_fraction: 1, device: host, num_workers: 2");
    int64_t rows = 0;
    stk_status status;
    stk_batch *batch;
    stk_error err;

    (void)state;
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        rows += stk_batch_rows(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    assert_int_equal(rows, COUNT - 5);
    assert_int_equal(stk_loader_failed(loader, STK_OK), 5);
    stk_loader_destroy(loader);

    loader = open_bad(&five, "on_error: skip, max_error_fraction: 1, num_workers: 0");
    assert_ok(stk_loader_next(loader, &batch, &err)); /* one-time allocations are done */
    stk_batch_release(batch);
    do {
        stki_memory_fail_at(1);
        status = stk_loader_next(loader, &batch, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            stk_batch_release(batch);
    } while (status == STK_OK);
    assert_int_equal(status, STK_E_CORRUPT);
    stk_loader_destroy(loader);
}

/* Samples 17 and 18 fail in one batch, and only the second is recorded. */
static void no_memory_to_record_one_of_two(void **state)
{
    const bad_records two = {.records = some + 1, .count = 2, .status = STK_E_CORRUPT};
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_ok(open_text(&loader, &two,
                        "{dataset: {fields: {x: {synthetic: {count: 20, shape: [6]}}}}, loader: {batch_size: 10, "
                        "on_error: skip, max_error_fraction: 1, num_workers: 0}}",
                        &err));
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    stki_memory_fail_at(1);
    assert_status(stk_loader_next(loader, &batch, &err), STK_E_CORRUPT);
    stki_memory_fail_at(0);
    assert_int_equal(err.record, 17);
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skipped_rows),
        cmocka_unit_test(masked_rows),
        cmocka_unit_test(substitutes),
        cmocka_unit_test(empty_substitutes),
        cmocka_unit_test(budgets),
        cmocka_unit_test(shares),
        cmocka_unit_test(small_epochs),
        cmocka_unit_test(budgets_of_structs),
        cmocka_unit_test(budgets_over_a_restart),
        cmocka_unit_test(everything_fails),
        cmocka_unit_test(some_errors_end_the_run),
        cmocka_unit_test(the_error_of_a_batch),
        cmocka_unit_test(policies_of_data_sets),
        cmocka_unit_test(a_rare_sample_has_no_substitute),
        cmocka_unit_test(the_list),
        cmocka_unit_test(masked_rows_of_mixed_labels),
        cmocka_unit_test(a_list_that_cannot_be_written),
        cmocka_unit_test(on_a_device),
        cmocka_unit_test(no_memory_to_record_one_of_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
