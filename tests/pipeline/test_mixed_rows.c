/* stki-threads */
/* Tests of the rows that mixup and cutmix skip with on_error: skip. A row is skipped only if its own sample fails, or
 * if it is mixed and the image or label of its partner fails. The same rows with the same bytes must be delivered with
 * any number of ranks and workers, and from positions that are restored with a different number of ranks. Each failed
 * sample is counted exactly once. */
#include "faulty.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_handle.h"
#include "loader_test.h"
#include "test_random.h"

enum { FIELDS = 3, MOST = 80, EPOCHS = 2, ROOM = 4 * MOST };

static const char *const fields[FIELDS] = {"image", "label", "other"};

/* A config, and the failing samples of each field. */
typedef struct scene {
    char text[2048]; /* the config up to the options that differ between runs */
    bool bad[FIELDS][MOST];
    bool any_bad; /* otherwise the readers are not wrapped */
} scene;

typedef struct row {
    int64_t epoch, position, sample;
    uint64_t hash;
    float share; /* mix_lambda; 2: not delivered */
} row;

typedef struct rows {
    row of[ROOM];
    int count;
    int64_t failed, skipped, steps; /* steps: per epoch */
    uint64_t digest[2];
} rows;

static stk_status wrap(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    const scene *s = context;
    int f = 0;

    while (strcmp(fields[f], field) != 0)
        f++;
    for (int64_t i = 0; s->any_bad && i < MOST; i++) {
        stki_faulty_opts opts = STKI_FAULTY_OPTS_INIT;
        stki_reader *wrapped = NULL;
        stk_status status;

        if (!s->bad[f][i])
            continue;
        opts.fail_at = i;
        opts.status = STK_E_CORRUPT;
        status = stki_faulty_open(*reader, &opts, &wrapped, err);
        if (status != STK_OK)
            return status;
        *reader = wrapped;
    }
    return STK_OK;
}

static stk_loader *open_scene(const scene *s, int world_size, int rank, int workers)
{
    char text[4096];
    stki_document *document;
    stki_loader_config *config;
    stk_loader *loader;
    stk_error err;

    snprintf(text, sizeof text,
             "%s, on_error: skip, max_error_fraction: 1, num_workers: %d, world_size: %d, rank: %d}}", s->text, workers,
             world_size, rank);
    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
    assert_ok(stki_config_read(document, NULL, &config, &err));
    config->close_timeout = 60 * STKI_SECOND;
    config->wrap_reader = wrap;
    config->wrap_context = (void *)(uintptr_t)s;
    assert_ok(stki_loader_open_config(config, &loader, &err));
    return loader;
}

static uint64_t hash_row(uint64_t h, const stk_batch *batch, const char *name, int64_t r)
{
    char part[64];
    stk_tensor values, offsets;
    int64_t bytes;

    if (stk_batch_tensor(batch, name, &values, NULL) == STK_OK) {
        bytes = stk_tensor_nbytes(&values) / values.shape[0];
        return stkt_hash(h, (const char *)values.data + r * bytes, bytes);
    }
    snprintf(part, sizeof part, "%s.offsets", name);
    if (stk_batch_tensor(batch, part, &offsets, NULL) != STK_OK)
        return h;
    snprintf(part, sizeof part, "%s.values", name);
    assert_int_equal(stk_batch_tensor(batch, part, &values, NULL), STK_OK);
    const int64_t *at = offsets.data;

    return stkt_hash(h, (const char *)values.data + at[r], at[r + 1] - at[r]);
}

/* The padding depends on the batch, so only the row's own values are hashed. */
static uint64_t hash_padded(uint64_t h, const stk_batch *batch, int64_t r)
{
    stk_tensor values, lengths;

    if (stk_batch_tensor(batch, "other.lengths", &lengths, NULL) != STK_OK)
        return hash_row(h, batch, "other", r);
    assert_int_equal(stk_batch_tensor(batch, "other", &values, NULL), STK_OK);
    return stkt_hash(h, (const char *)values.data + r * values.shape[1], ((const int64_t *)lengths.data)[r]);
}

static void take(rows *out, const stk_batch *batch)
{
    for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
        row *to = &out->of[out->count];
        stk_tensor shares;

        if (!stk_batch_mask(batch)[r])
            continue;
        assert_true(out->count < ROOM);
        *to = (row){stk_batch_epoch(batch), batch->positions[r].draw, stk_batch_indices(batch)[r], 1, 2};
        if (stk_batch_tensor(batch, "mix_lambda", &shares, NULL) == STK_OK)
            to->share = ((const float *)shares.data)[r];
        to->hash = hash_row(to->hash, batch, "image", r);
        to->hash = hash_row(to->hash, batch, "label", r);
        to->hash = hash_row(to->hash, batch, "label_mix", r);
        to->hash = hash_row(to->hash, batch, "mix_lambda", r);
        to->hash = hash_padded(to->hash, batch, r);
        out->count++;
    }
}

/* Appends the rows that all ranks deliver in steps [from, to) of all epochs, and saves the position after them. *bytes
 * is 0 if there is no saved position yet. */
static void run(const scene *s, int world_size, int workers, int64_t from, int64_t to, uint8_t *state, int64_t *bytes,
                rows *out)
{
    uint8_t saved[STK_STATE_MAX];
    int64_t saved_bytes = 0;

    for (int rank = 0; rank < world_size; rank++) {
        stk_loader *loader = open_scene(s, world_size, rank, workers);
        stk_loader_stats stats = {.struct_size = sizeof stats};
        stk_digest_info digest;
        stk_batch *batch;
        stk_error err;

        if (*bytes > 0)
            assert_ok(stk_loader_restore(loader, state, *bytes, &err));
        out->steps = loader->core->steps;
        for (int64_t step = from; step < to && step < loader->core->end; step++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_global_step(batch), step);
            take(out, batch);
            stk_batch_release(batch);
        }
        if (to >= loader->core->end)
            assert_int_equal(stk_loader_next(loader, &batch, &err), STK_END);
        assert_ok(stk_loader_save(loader, saved, sizeof saved, &saved_bytes, &err));
        assert_ok(stk_loader_get_stats(loader, &stats, &err));
        assert_ok(stk_loader_digest(loader, &digest, &err));
        out->failed += stk_loader_failed(loader, STK_OK);
        out->skipped += stats.skipped;
        out->digest[0] += digest.word[0];
        out->digest[1] += digest.word[1] + (out->digest[0] < digest.word[0]);
        stk_loader_destroy(loader);
    }
    memcpy(state, saved, sizeof saved);
    *bytes = saved_bytes;
}

static int by_position(const void *a, const void *b)
{
    const row *x = a, *y = b;

    return x->epoch != y->epoch ? (x->epoch > y->epoch) - (x->epoch < y->epoch)
                                : (x->position > y->position) - (x->position < y->position);
}

static void run_whole(const scene *s, int world_size, int workers, rows *out)
{
    uint8_t state[STK_STATE_MAX];
    int64_t bytes = 0;

    memset(out, 0, sizeof *out);
    run(s, world_size, workers, 0, INT64_MAX, state, &bytes, out);
    qsort(out->of, (size_t)out->count, sizeof out->of[0], by_position);
}

static void expect_rows(const rows *found, const rows *expected, const char *what)
{
    for (int i = 0; i < found->count || i < expected->count; i++) {
        const row *x = &found->of[i], *y = &expected->of[i];

        if (i == found->count || i == expected->count || by_position(x, y) != 0 || x->sample != y->sample ||
            x->hash != y->hash)
            fail_msg("%s: row %d of %d differs from the expected %d rows", what, i, found->count, expected->count);
    }
}

/* ---- against arithmetic ---- */

static bool is_bad(const scene *s, int64_t sample)
{
    for (int f = 0; f < FIELDS; f++)
        if (s->bad[f][sample])
            return true;
    return false;
}

/* Checks `found` against `clean`, the rows of a run in which nothing fails. Rows form pairs within each `batch`
 * positions; those that fail or lose their partner must be missing, and the counters must match. */
static void expect_fates(const scene *s, const rows *clean, int batch, const rows *found)
{
    int left = 0, failed = 0, lost = 0;

    for (int i = 0; i < clean->count; i++) {
        const row *own = &clean->of[i], *partner = NULL;
        const int at = (int)(own->position % batch) ^ 1;
        bool fine = !is_bad(s, own->sample);

        for (int k = i - 1; k <= i + 1; k += 2)
            if (k >= 0 && k < clean->count && clean->of[k].epoch == own->epoch &&
                clean->of[k].position == own->position / batch * batch + at)
                partner = &clean->of[k];
        failed += !fine;
        if (partner && own->share != 1 && (s->bad[0][partner->sample] || s->bad[1][partner->sample])) {
            lost += fine;
            fine = false;
        }
        if (!fine)
            continue;
        assert_true(left < found->count);
        assert_int_equal(found->of[left].epoch, own->epoch);
        assert_int_equal(found->of[left].position, own->position);
        assert_int_equal(found->of[left].hash, own->hash);
        left++;
    }
    assert_int_equal(found->count, left);
    assert_int_equal(found->failed, failed);
    assert_int_equal(found->skipped, failed + lost);
}

/* ---- random configs ---- */

static int64_t draw(uint64_t *random, int64_t low, int64_t high)
{
    return stkt_random_in(random, low, high);
}

typedef struct facts {
    int64_t count;
    int batch;
    bool mixup_alone, labels, pads;
} facts;

static facts make_scene(uint64_t *random, scene *s)
{
    static const char *const chances[] = {"0", "0.3", "0.5", "0.5", "0.8", "1"},
                             *const orders[] = {"random", "sequential"}, *const lasts[] = {"partial", "pad", "drop"},
                             *const labels[] = {"", ", labels: label"}, *const units[] = {"batch", "pair", "pair"},
                             *const kinds[] = {"mixup", "mixup", "cutmix", "mixup"},
                             *const seconds[] = {"", "", "", ", {cutmix: {}}"},
                             *const casts[] = {"", ", {quantize: {scale: 0.02, zero_point: 3}}"},
                             *const others[] = {"", ", pad: {}"}, *const hots[] = {"", "{one_hot: 256}"};
    const int kind = (int)draw(random, 0, 3), last = (int)draw(random, 0, 2), named = (int)draw(random, 0, 3) > 0,
              hot = (int)draw(random, 0, 1);
    const facts f = {.count = draw(random, 40, MOST),
                     .batch = (int)draw(random, 2, 13),
                     .mixup_alone = kind < 2,
                     .labels = named && !hot,
                     .pads = last == 1};
    const long long n = (long long)f.count;

    *s = (scene){.any_bad = false};
    snprintf(
        s->text, sizeof s->text,
        "{dataset: {fields: {%s: {synthetic: {count: %lld, shape: [%s], dtype: u8, distinct: %lld, form: scratch}%s, "
        "transforms: [{random_horizontal_flip: {}}, {normalize: {mean: 0.4, std: 0.25, scale: unit}}%s, "
        "{%s: {p: %s, lambda: %s%s}}%s]}, label: {synthetic: {count: %lld, shape: [], dtype: u8, distinct: 80, form: "
        "scratch}, transforms: [%s]}, other: {synthetic: {count: %lld, shape: [9], dtype: u8, min_length: 0, form: "
        "scratch, seed: 4}%s}}}, loader: {global_batch_size: %d, order: %s, last_batch: %s, seed: %d, num_epochs: %d, "
        "digest: bytes, tile_bytes: %d",
        fields[0], n, "5, 6, 3", n,
        draw(random, 0, 1) ? ", source: {layout: nhwc}, layout: nchw" : ", source: {layout: nhwc}",
        casts[draw(random, 0, 1)], kinds[kind], chances[draw(random, 0, 5)], units[draw(random, 0, 2)], labels[named],
        seconds[kind], n, hots[hot], n, others[draw(random, 0, 1)], f.batch, orders[draw(random, 0, 1)], lasts[last],
        (int)draw(random, 0, 1000), EPOCHS, draw(random, 0, 1) ? 1024 : 65536);
    return f;
}

static void make_bad(uint64_t *random, int64_t count, scene *s)
{
    s->any_bad = true;
    for (int f = 0; f < FIELDS; f++)
        for (int64_t i = draw(random, 0, 8); i > 0; i--)
            s->bad[f][draw(random, 0, count - 1)] = true;
}

/* The rows of one rank without workers are the reference for all other runs. */
static void random_configs(void **state)
{
    enum { CASES = 40 };
    static const int workers[] = {0, 1, 4};
    static scene s;
    static rows clean, expected, found;
    uint64_t random = 14;
    int compared = 0, lost = 0;

    (void)state;
    for (int c = 0; c < CASES; c++) {
        const facts f = make_scene(&random, &s);
        uint8_t saved[STK_STATE_MAX];
        int64_t bytes = 0, step = 0;

        run_whole(&s, 1, 0, &clean);
        assert_int_equal(clean.failed + clean.skipped, 0);
        make_bad(&random, f.count, &s);
        run_whole(&s, 1, 0, &expected);
        if (f.mixup_alone && f.labels && !f.pads) {
            expect_fates(&s, &clean, f.batch, &expected);
            lost += (int)(expected.skipped - expected.failed);
            compared++;
        }
        for (int world_size = 1; world_size <= 3; world_size++) {
            run_whole(&s, world_size, workers[draw(&random, 0, 2)], &found);
            expect_rows(&found, &expected, s.text);
            assert_int_equal(found.failed, expected.failed);
            assert_int_equal(found.skipped, expected.skipped);
            assert_memory_equal(found.digest, expected.digest, sizeof found.digest);
        }
        memset(&found, 0, sizeof found);
        for (int part = 0; part < 3; part++) {
            const int64_t to = part == 2 ? INT64_MAX : draw(&random, step, expected.steps * EPOCHS);

            run(&s, (int)draw(&random, 1, 3), workers[draw(&random, 0, 2)], step, to, saved, &bytes, &found);
            step = to;
        }
        qsort(found.of, (size_t)found.count, sizeof found.of[0], by_position);
        expect_rows(&found, &expected, s.text);
        assert_int_equal(found.failed, expected.failed);
    }
    assert_true(compared >= 5 && lost >= 5);
}

/* ---- images in files ---- */

/* 60 images, 5 of which are truncated. */
static void damaged_images(void **state)
{
    enum { IMAGES = 60, BATCH = 10 };
    static const int bad[] = {3, 14, 15, 40, 58};
    static scene s;
    static rows clean, expected, found;

    (void)state;
    assert_int_equal(mkdir(stkt_path("images"), 0755), 0);
    for (int broken = 0; broken < 2; broken++) {
        for (int i = 0; i < IMAGES; i++) {
            const stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 24, .height = 16 + i % 3});
            bool cut = false;
            char name[32];

            for (int k = 0; k < 5; k++)
                cut |= broken && bad[k] == i;
            snprintf(name, sizeof name, "images/%02d.jpg", i);
            stkt_write_file(stkt_path(name), file.data, cut ? file.size * 6 / 10 : file.size);
            free(file.data);
            s.bad[0][i] = cut;
        }
        snprintf(s.text, sizeof s.text,
                 "{dataset: {fields: {image: {path: '%s', source: {layout: nhwc}, transforms: [{resize: [12, 12]}, "
                 "{mixup: {p: 0.5, lambda: pair, labels: label}}]}, label: {synthetic: {count: 60, shape: [], dtype: "
                 "u8}}}}, loader: {global_batch_size: %d, order: random, seed: 1, digest: bytes, num_epochs: %d",
                 stkt_path("images"), BATCH, EPOCHS);
        run_whole(&s, 1, 2, broken ? &expected : &clean);
    }
    expect_fates(&s, &clean, BATCH, &expected);
    assert_int_equal(expected.failed, 5 * EPOCHS);
    assert_in_range(expected.skipped, 5 * EPOCHS + 1, 10 * EPOCHS - 1);
    for (int world_size = 2; world_size <= 3; world_size++) {
        run_whole(&s, world_size, world_size, &found);
        expect_rows(&found, &expected, "images");
        assert_int_equal(found.failed, expected.failed);
        assert_int_equal(found.skipped, expected.skipped);
    }
}

/* ---- the list of failures ---- */

#define LIST                                                                                                         \
    "{dataset: {fields: {image: {synthetic: {count: 12, shape: [8], dtype: f32, form: scratch}, transforms: "        \
    "[{mixup: {p: %d, labels: label}}]}, label: {synthetic: {count: 12, shape: [], dtype: u8}}, other: {synthetic: " \
    "{count: 12, shape: []}}}}, loader: {global_batch_size: 4, digest: bytes, error_list: '%s'"

/* Sample 5 fails. Without mixing (p: 0) only its row is lost. With mixing (p: 1), row 4 is also lost, possibly on
 * another rank. That rank lists the row with the sample that failed, and counts no failed sample. */
static void the_list(void **state)
{
    static scene s;
    static rows found;

    (void)state;
    s.any_bad = s.bad[0][5] = true;
    for (int p = 0; p < 2; p++)
        for (int world_size = 1; world_size <= 4; world_size += 3) {
            const char *path = stkt_path(p ? "mixed.jsonl" : "apart.jsonl");
            bool seen[2] = {false, false};
            char line[2048];
            FILE *file;

            (void)unlink(path);
            snprintf(s.text, sizeof s.text, LIST, p, path);
            run_whole(&s, world_size, 2, &found);
            assert_int_equal(found.failed, 1);
            assert_int_equal(found.skipped, 1 + p);
            assert_int_equal(found.count, 12 - 1 - p);
            file = fopen(path, "r");
            assert_non_null(file);
            while (fgets(line, sizeof line, file)) {
                json_t *json = json_loads(line, 0, NULL);
                const int sample = (int)json_integer_value(json_object_get(json, "sample"));

                assert_in_range(sample, 5 - p, 5);
                assert_false(seen[sample - 4]);
                seen[sample - 4] = true;
                assert_int_equal(json_integer_value(json_object_get(json, "rank")), world_size == 4 ? sample % 4 : 0);
                assert_int_equal(json_integer_value(json_object_get(json, "record")), 5);
                assert_string_equal(json_string_value(json_object_get(json, "action")), "skip");
                if (sample == 4)
                    assert_int_equal(json_integer_value(json_object_get(json, "partner")), 5);
                else
                    assert_null(json_object_get(json, "partner"));
                json_decref(json);
            }
            fclose(file);
            assert_true(seen[1] && seen[0] == p);
        }
}

/* The policy is on_error of the failed sample's data set, even for the partner's row. max_errors counts failed samples,
 * not rows. */
static void policies_and_budgets(void **state)
{
    static const struct {
        int counts[2]; /* of a, which skips, and b, which does not; the sample of the larger data set fails */
        const char *keys;
        stk_status status;
    } cases[] = {{{24, 12}, "max_errors: 1", STK_END}, {{12, 24}, "max_errors: 1", STK_E_CORRUPT}};
    static scene s;
    int64_t failed = 0; /* on both ranks */

    (void)state;
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < 24; i++) {
            const int rank = i % 2, bad = 12 + i / 2;
            stki_document *document;
            stki_loader_config *config;
            char text[2048];
            stk_loader *loader;
            stk_status status;
            stk_batch *batch;
            stk_error err;

            s = (scene){.any_bad = true};
            s.bad[0][bad] = true;
            snprintf(text, sizeof text,
                     "{datasets: [{name: a, weight: %d, on_error: skip, fields: {image: {synthetic: {count: %d, shape: "
                     "[8], dtype: f32, form: scratch}, transforms: [{mixup: {}}]}}}, {name: b, weight: %d, on_error: "
                     "fail, fields: {image: {synthetic: {count: %d, shape: [8], dtype: f32, form: scratch}}}}], "
                     "loader: {global_batch_size: 2, world_size: 2, rank: %d, order: random, num_epochs: 1, "
                     "max_error_fraction: 1, %s}}",
                     cases[c].counts[0], cases[c].counts[0], cases[c].counts[1], cases[c].counts[1], rank,
                     cases[c].keys);
            assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err));
            assert_ok(stki_config_read(document, NULL, &config, &err));
            config->wrap_reader = wrap;
            config->wrap_context = &s;
            assert_ok(stki_loader_open_config(config, &loader, &err));
            while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
                stk_batch_release(batch);
            assert_int_equal(status, cases[c].status);
            failed = (rank ? failed : 0) + stk_loader_failed(loader, STK_OK);
            if (rank == 1)
                assert_int_equal(failed, c == 0);
            stk_loader_destroy(loader);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_configs),
        cmocka_unit_test(damaged_images),
        cmocka_unit_test(the_list),
        cmocka_unit_test(policies_and_budgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
