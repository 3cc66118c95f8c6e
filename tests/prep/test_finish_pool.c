/* stki-threads */
/* Tests of the pool that runs finishers and observers: values are the same and in order with any number of threads;
 * failed rows are left out, with their errors, and are not observed; nothing is allocated after the first batches. Also
 * tests failing allocations. */
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "faults.h"
#include "finish_pool.h"
#include "jpeg_decode.h"
#include "jpeg_encode.h"
#include "jpeg_make.h"
#include "reader.h"
#include "stk_test.h"
#include "test_random.h"

/* ---- a finisher for this test: repeats the bytes of a row, or fails ---- */

enum { FAILS = 251, LENDS = 250 };

static stk_status echo_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                           stki_sink_value *out, stk_error *err)
{
    const uint8_t *bytes = in->bytes;
    stk_status status;

    (void)finisher;
    *(int64_t *)scratch += 1;
    if (in->size > 0 && bytes[0] == LENDS) {
        *out = (stki_sink_value){.bytes = in->bytes, .size = in->size, .length = 1};
        return STK_OK;
    }
    status = stki_bytes_reserve(to, 2 * in->size, err);
    if (status != STK_OK)
        return status;
    if (in->size > 0) {
        memcpy(to->bytes + to->used, bytes, (size_t)in->size);
        memcpy(to->bytes + to->used + in->size, bytes, (size_t)in->size);
    }
    to->used += 2 * in->size;
    if (in->size > 0 && bytes[0] == FAILS) /* fails after it has allocated */
        return stki_fail(err, STK_E_CORRUPT, "a row that begins with %d", FAILS);
    *out = (stki_sink_value){.size = 2 * in->size, .length = in->position, .height = in->sample};
    return STK_OK;
}

static stk_status echo_scratch(const stki_finisher *finisher, void **out, stk_error *err)
{
    (void)finisher;
    *out = stki_zalloc(sizeof(int64_t));
    return *out ? STK_OK : stki_fail_memory(err, 8, "a scratch");
}

static const stki_finisher_ops echo_ops = {
    .name = "echo", .scratch = echo_scratch, .scratch_destroy = stki_free, .run = echo_run};
static const stki_finisher echo = {&echo_ops};

/* ---- batches: one field of rows of a fixed shape, one ragged ---- */

enum { ROWS = 300, BATCHES = 9 };

typedef struct rows_of {
    uint32_t fixed[ROWS][3];
    uint8_t values[ROWS * 40];
    int64_t offsets[ROWS + 1];
    int64_t samples[ROWS];
    int64_t rows;
} rows_of;

static void make_source(rows_of *s, int number, bool broken)
{
    uint64_t state = (uint64_t)number + 1;
    int64_t at = 0;

    s->rows = number == 4 ? 0 : number == 5 ? 1 : stkt_random_in(&state, 1, ROWS);
    for (int64_t i = 0; i < s->rows; i++) {
        int64_t length = stkt_random_in(&state, 0, 40);

        for (int c = 0; c < 3; c++)
            s->fixed[i][c] = (uint32_t)(number * 100000 + i * 3 + c);
        s->offsets[i] = at;
        for (int64_t k = 0; k < length; k++)
            s->values[at++] = (uint8_t)(stkt_random(&state) % 200);
        if (length > 0 && i % 5 == 1)
            s->values[s->offsets[i]] = LENDS;
        if (length > 0 && broken && i % 17 == 3)
            s->values[s->offsets[i]] = FAILS;
        s->samples[i] = 1000 * number + i;
    }
    s->offsets[s->rows] = at;
}

static const stki_finish_field two_fields[] = {
    {NULL, {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_U32, .ndim = 1, .shape = {3}}},
    {&echo, {.name = "text", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1}},
};

static const char *path_of(void *context, int field, int64_t sample, char *buffer)
{
    (void)context;
    if (field != 1)
        return NULL;
    snprintf(buffer, STKI_RECORD_PATH, "folder/%lld.txt", (long long)sample);
    return buffer;
}

static void push(stki_finish_pool *pool, rows_of *s, int64_t position)
{
    const stki_finish_source sources[] = {{.bytes = (const char *)s->fixed, .step = sizeof s->fixed[0]},
                                          {.bytes = (const char *)s->values, .step = 1, .offsets = s->offsets}};
    const stki_finish_batch batch = {
        .rows = s->rows, .sources = sources, .first_position = position, .samples = s->samples, .lease = s};
    stk_error err;

    assert_true(stki_finish_pool_has_room(pool));
    assert_ok(stki_finish_pool_push(pool, &batch, &err));
}

static void check(const stki_finished *got, int64_t position, bool broken)
{
    const rows_of *s = got->lease;
    int64_t failed = 0, good = 0;

    for (int64_t i = 0; i < s->rows; i++) {
        const uint8_t *bytes = s->values + s->offsets[i];
        const int64_t size = s->offsets[i + 1] - s->offsets[i];
        const stki_sink_value *value = &got->values[good * 2];

        if (size > 0 && bytes[0] == FAILS) {
            const stki_finish_failure *failure = &got->failures[failed++];
            char where[64];

            snprintf(where, sizeof where, "folder/%lld.txt: record %lld: text: ", (long long)s->samples[i],
                     (long long)s->samples[i]);
            assert_int_equal(failure->row, i);
            assert_int_equal(failure->sample, s->samples[i]);
            assert_int_equal(failure->field, 1);
            assert_int_equal(failure->error.status, STK_E_CORRUPT);
            assert_int_equal(failure->error.record, s->samples[i]);
            assert_memory_equal(failure->error.message, where, strlen(where));
            continue;
        }
        assert_int_equal(got->kept[good], i);
        good++;
        assert_ptr_equal(value[0].bytes, s->fixed[i]);
        assert_int_equal(value[0].size, 12);
        if (size > 0 && bytes[0] == LENDS) {
            assert_ptr_equal(value[1].bytes, bytes);
            continue;
        }
        assert_int_equal(value[1].size, 2 * size);
        assert_int_equal(value[1].length, position + i);
        assert_int_equal(value[1].height, s->samples[i]);
        assert_non_null(value[1].bytes);
        assert_memory_equal(value[1].bytes, bytes, (size_t)size);
        assert_memory_equal((const uint8_t *)value[1].bytes + size, bytes, (size_t)size);
    }
    assert_int_equal(got->rows, good);
    assert_int_equal(got->failed, failed);
    assert_true(!broken || s->rows < 20 || failed > 0);
}

static void all_batches(int threads, int depth, bool broken, int rounds)
{
    const stki_finish_pool_opts opts = {.fields = two_fields,
                                        .field_count = 2,
                                        .max_rows = ROWS,
                                        .threads = threads,
                                        .depth = depth,
                                        .path_of = path_of};
    rows_of *sources = calloc(BATCHES, sizeof *sources);
    int64_t starts[BATCHES + 1] = {0};
    stki_finish_pool *pool;
    stki_finished got;
    stk_error err;

    for (int i = 0; i < BATCHES; i++) {
        make_source(&sources[i], i, broken);
        starts[i + 1] = starts[i] + sources[i].rows;
    }
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    for (int round = 0; round < rounds; round++) {
        int pushed = 0;

        for (int popped = 0; popped < BATCHES; popped++) {
            while (pushed < BATCHES && stki_finish_pool_has_room(pool)) {
                push(pool, &sources[pushed], starts[pushed]);
                pushed++;
            }
            assert_ok(stki_finish_pool_pop(pool, INT64_MAX, &got, &err));
            assert_ptr_equal(got.lease, &sources[popped]);
            check(&got, starts[popped], broken);
            stki_finish_pool_release(pool);
        }
        assert_int_equal(stki_finish_pool_pop(pool, INT64_MAX, &got, &err), STK_END);
    }
    stki_finish_pool_destroy(pool);
    free(sources);
}

static void any_number_of_threads(void **unused)
{
    (void)unused;
    for (int threads = 0; threads <= 8; threads = threads ? threads * 2 : 1)
        for (int depth = 1; depth <= 4; depth++)
            all_batches(threads, depth, false, 1);
}

static void failed_rows_are_left_out(void **unused)
{
    (void)unused;
    all_batches(0, 1, true, 1);
    all_batches(1, 2, true, 3);
    all_batches(4, 3, true, 30);
}

/* ---- observers ---- */

/* The hash depends on the order of the rows within a batch and on the order of the batches. */
struct stki_seen {
    uint64_t hash;
    int64_t rows;
};

typedef struct hasher {
    stki_observer base;
    int64_t fails_at; /* a position; -1: never */
} hasher;

static uint64_t chain(uint64_t hash, uint64_t next)
{
    return (hash + next) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static stk_status hash_begin(const stki_observer *observer, stki_seen **out, stk_error *err)
{
    (void)observer, (void)err;
    *out = calloc(1, sizeof **out);
    return STK_OK;
}

static stk_status hash_see(const stki_observer *observer, stki_seen *seen, const stki_row *rows, int64_t count,
                           stk_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *bytes = rows[i].bytes;

        if (rows[i].position == ((const hasher *)observer)->fails_at)
            return stki_fail(err, STK_E_RANGE, "observer of field %d", observer->field);
        seen->hash = chain(seen->hash, (uint64_t)rows[i].sample);
        seen->hash = chain(seen->hash, (uint64_t)rows[i].shape[0]);
        for (int64_t k = 0; k < rows[i].size; k++)
            seen->hash = chain(seen->hash, bytes[k]);
        seen->rows++;
    }
    return STK_OK;
}

static stk_status hash_merge(const stki_observer *observer, stki_seen *into, const stki_seen *next, stk_error *err)
{
    (void)observer, (void)err;
    into->hash = chain(into->hash, next->hash);
    into->rows += next->rows;
    return STK_OK;
}

static void hash_drop(const stki_observer *observer, stki_seen *seen)
{
    (void)observer;
    free(seen);
}

static const stki_observer_ops hash_ops = {
    .name = "hash", .begin = hash_begin, .see = hash_see, .merge = hash_merge, .drop = hash_drop};

static bool fails(const rows_of *s, int64_t row)
{
    return s->offsets[row + 1] > s->offsets[row] && s->values[s->offsets[row]] == FAILS;
}

/* The same without a pool. */
static stki_seen expected(const rows_of *sources, int field)
{
    stki_seen all = {0};

    for (int b = 0; b < BATCHES; b++) {
        const rows_of *s = &sources[b];
        stki_seen one = {0};

        for (int64_t i = 0; i < s->rows; i++) {
            const uint8_t *bytes = field ? s->values + s->offsets[i] : (const uint8_t *)s->fixed[i];
            const int64_t size = field ? s->offsets[i + 1] - s->offsets[i] : (int64_t)sizeof s->fixed[i];

            if (fails(s, i))
                continue;
            one.hash = chain(chain(one.hash, (uint64_t)s->samples[i]), (uint64_t)(field ? size : 3));
            for (int64_t k = 0; k < size; k++)
                one.hash = chain(one.hash, bytes[k]);
            one.rows++;
        }
        all.hash = b == 0 ? one.hash : chain(all.hash, one.hash);
        all.rows += one.rows;
    }
    return all;
}

/* Three observers, two of them for one field; the first two fail at `first` and `second`. */
static stk_status observe_all(const stki_finish_field *fields, int threads, int depth, int64_t first, int64_t second,
                              stk_error *cause)
{
    hasher hashers[] = {{{&hash_ops, 1}, first}, {{&hash_ops, 0}, second}, {{&hash_ops, 1}, -1}};
    stki_observer *observers[] = {&hashers[0].base, &hashers[1].base, &hashers[2].base};
    const stki_finish_pool_opts opts = {.fields = fields,
                                        .field_count = 2,
                                        .max_rows = ROWS,
                                        .threads = threads,
                                        .depth = depth,
                                        .observers = observers,
                                        .observer_count = 3};
    rows_of *sources = calloc(BATCHES, sizeof *sources);
    stki_seen *seen[3] = {NULL, NULL, NULL};
    int64_t position = 0;
    int pushed = 0;
    stki_finish_pool *pool;
    stki_finished got;
    stk_status status = STK_OK;
    stk_error err = {0};

    for (int i = 0; i < BATCHES; i++)
        make_source(&sources[i], i, fields[1].finisher != NULL);
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    for (int popped = 0; popped < BATCHES && status == STK_OK; popped++) {
        for (; pushed < BATCHES && stki_finish_pool_has_room(pool); position += sources[pushed++].rows)
            push(pool, &sources[pushed], position);
        status = stki_finish_pool_pop(pool, INT64_MAX, &got, &err);
        if (status == STK_OK)
            status = stki_finish_pool_seen(pool, seen, &err);
        if (status == STK_OK)
            stki_finish_pool_release(pool);
    }
    for (int i = 0; i < 3; i++) {
        if (status == STK_OK) {
            const stki_seen right = expected(sources, hashers[i].base.field);

            assert_int_equal(seen[i]->rows, right.rows);
            assert_true(seen[i]->hash == right.hash);
        }
        free(seen[i]);
    }
    stki_finish_pool_destroy(pool); /* after a failure, with one batch that was popped and others in progress */
    free(sources);
    *cause = err;
    return status;
}

static void observers_see_rows_in_order(void **unused)
{
    static const stki_finish_field plain[] = {
        {NULL, {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_U32, .ndim = 1, .shape = {3}}},
        {NULL, {.name = "text", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1}},
    };
    stk_error err;

    (void)unused;
    for (int threads = 0; threads <= 4; threads++)
        for (int depth = 1; depth <= 4; depth++) {
            assert_ok(observe_all(two_fields, threads, depth, -1, -1, &err));
            assert_ok(observe_all(plain, threads, depth, -1, -1, &err));
        }
}

/* The error returned is that of the first failing batch and, within a batch, of the first failing observer. */
static void observers_fail(void **unused)
{
    stk_error err;

    (void)unused;
    for (int threads = 0; threads <= 4; threads++) {
        assert_status(observe_all(two_fields, threads, 3, 500, 1, &err), STK_E_RANGE);
        assert_string_equal(err.message, "observer of field 0");
        assert_status(observe_all(two_fields, threads, 3, 0, 1, &err), STK_E_RANGE);
        assert_string_equal(err.message, "observer of field 1");
    }
}

static void wrong_calls(void **unused)
{
    stki_finish_pool_opts opts = {.fields = two_fields, .field_count = 2, .max_rows = 10, .threads = 0, .depth = 1};
    rows_of *s = calloc(1, sizeof *s);
    stki_finish_pool *pool;
    stki_finished got;
    stk_status status;
    int again = 0;
    stk_error err;
    const stki_finish_source sources[] = {{.bytes = (const char *)s->fixed, .step = 12},
                                          {.bytes = (const char *)s->values, .step = 1, .offsets = s->offsets}};
    stki_finish_batch batch = {.rows = 11, .sources = sources};

    (void)unused;
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    assert_status(stki_finish_pool_push(pool, &batch, &err), STK_E_RANGE);
    batch.rows = 10;
    assert_ok(stki_finish_pool_push(pool, &batch, &err));
    assert_status(stki_finish_pool_push(pool, &batch, &err), STK_E_BUSY);
    do /* each call finishes some rows, even after the deadline */
        status = stki_finish_pool_pop(pool, 0, &got, &err);
    while (status == STK_AGAIN && ++again);
    assert_int_equal(status, STK_OK);
    assert_int_equal(again, 9);
    assert_status(stki_finish_pool_pop(pool, 0, &got, &err), STK_E_BUSY);
    stki_finish_pool_release(pool);
    stki_finish_pool_release(pool);
    assert_int_equal(stki_finish_pool_pop(pool, 0, &got, &err), STK_END);
    stki_finish_pool_destroy(pool);
    stki_finish_pool_destroy(NULL);
    opts.max_rows = 0;
    assert_status(stki_finish_pool_create(&opts, &pool, &err), STK_E_BAD_ARG);
    free(s);
}

/* Destroys the pool with batches in progress. */
static void destroyed_early(void **unused)
{
    const stki_finish_pool_opts opts = {
        .fields = two_fields, .field_count = 2, .max_rows = ROWS, .threads = 3, .depth = 3};
    rows_of *sources = calloc(3, sizeof *sources);
    stki_finish_pool *pool;
    stk_error err;

    (void)unused;
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    for (int i = 0; i < 3; i++) {
        make_source(&sources[i], i, false);
        push(pool, &sources[i], 0);
    }
    stki_finish_pool_destroy(pool);
    free(sources);
}

static void nothing_is_allocated_once_warm(void **unused)
{
    const stki_finish_pool_opts opts = {.fields = two_fields, .field_count = 2, .max_rows = ROWS, .depth = 2};
    rows_of *sources = calloc(2, sizeof *sources);
    stki_finish_pool *pool;
    stki_finished got;
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    make_source(&sources[0], 1, false);
    make_source(&sources[1], 2, false);
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    for (int round = 0; round < 8; round++) {
        if (round == 4)
            stki_memory_read(STKI_MEM_HOST, &before);
        push(pool, &sources[round % 2], 0);
        assert_ok(stki_finish_pool_pop(pool, INT64_MAX, &got, &err));
        stki_finish_pool_release(pool);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.total_allocations, after.total_allocations);
    stki_finish_pool_destroy(pool);
    free(sources);
}

static stk_status create_and_run(rows_of *s, stk_error *err)
{
    const stki_finish_pool_opts opts = {.fields = two_fields, .field_count = 2, .max_rows = ROWS, .threads = 1};
    const stki_finish_source sources[] = {{.bytes = (const char *)s->fixed, .step = sizeof s->fixed[0]},
                                          {.bytes = (const char *)s->values, .step = 1, .offsets = s->offsets}};
    const stki_finish_batch batch = {.rows = s->rows, .sources = sources};
    stki_finish_pool *pool;
    stki_finished got;
    stk_status status = stki_finish_pool_create(&opts, &pool, err);

    if (status != STK_OK)
        return status;
    status = stki_finish_pool_push(pool, &batch, err);
    if (status == STK_OK)
        status = stki_finish_pool_pop(pool, INT64_MAX, &got, err);
    stki_finish_pool_destroy(pool);
    return status;
}

static void memory_runs_out(void **unused)
{
    rows_of *s = calloc(1, sizeof *s);
    stk_error err;
    int64_t n;

    (void)unused;
    make_source(s, 1, true);
    for (n = 1;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = create_and_run(s, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_true(err.message[0] != '\0');
    }
    assert_true(n > 12);
    free(s);
}

/* ---- the finishers of images ---- */

static stki_document *parse(const char *text)
{
    stki_document *document;
    stk_error err;

    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", STKI_NO_INCLUDE, &document, &err));
    return document;
}

static void jpeg_by_any_number_of_threads(void **unused)
{
    enum { IMAGES = 60, SIDE = 40 };
    static const char *const texts[] = {"{encode: jpeg, quality: 85, subsampling: 444}",
                                        "{encode: jpeg, proportion: 0.5, seed: 3}", "{encode: jpeg, above_pixels: 800}",
                                        "{encode: jpeg, above_bytes: 2400}"};
    const stki_sink_field in = {.name = "image", .kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3};
    static uint8_t values[IMAGES * SIDE * SIDE * 3];
    int64_t offsets[IMAGES + 1], shapes[IMAGES][3], at = 0;
    uint64_t state = 5;
    stk_error err;

    (void)unused;
    for (int i = 0; i < IMAGES; i++) {
        shapes[i][0] = stkt_random_in(&state, 1, SIDE);
        shapes[i][1] = stkt_random_in(&state, 1, SIDE);
        shapes[i][2] = i % 3 == 0 ? 1 : 3;
        offsets[i] = at;
        for (int64_t y = 0; y < shapes[i][0]; y++)
            for (int64_t x = 0; x < shapes[i][1]; x++)
                for (int64_t c = 0; c < shapes[i][2]; c++)
                    values[at++] = stkt_jpeg_pixel((int)y + i, (int)x, (int)c);
    }
    offsets[IMAGES] = at;
    for (int t = 0; t < 4; t++) {
        stki_document *document = parse(texts[t]);
        const stki_finisher_ops *ops = stki_finisher_find("jpeg");
        stki_sink_field out = in;
        stki_finisher *finisher;
        char *first = NULL;
        int64_t first_bytes = 0, encoded = 0;

        assert_ok(ops->create(stki_document_root(document), &in, &out, &finisher, &err));
        assert_int_equal(out.kind, STKI_SINK_IMAGE);
        assert_int_equal(stki_sink_is_mixed(&out), t > 0);
        assert_int_equal(out.extension != NULL, t == 0);
        for (int threads = 0; threads <= 4; threads += 2) {
            const stki_finish_field field = {finisher, in};
            const stki_finish_pool_opts opts = {
                .fields = &field, .field_count = 1, .max_rows = IMAGES, .threads = threads};
            const stki_finish_source source = {
                .bytes = (const char *)values, .step = 1, .offsets = offsets, .shapes = shapes[0]};
            /* Which images are drawn depends only on positions. */
            const stki_finish_batch batch = {
                .rows = IMAGES, .sources = &source, .first_position = 77, .samples = threads == 2 ? offsets : NULL};
            stki_finish_pool *pool;
            stki_finished got;
            char *all = malloc(sizeof values * 2);
            int64_t used = 0;

            assert_ok(stki_finish_pool_create(&opts, &pool, &err));
            assert_ok(stki_finish_pool_push(pool, &batch, &err));
            assert_ok(stki_finish_pool_pop(pool, INT64_MAX, &got, &err));
            assert_int_equal(got.rows, IMAGES);
            for (int i = 0; i < IMAGES; i++) {
                const stki_sink_value *value = &got.values[i];
                const bool small = shapes[i][0] * shapes[i][1] <= 800;

                assert_int_equal(value->height, shapes[i][0]);
                assert_int_equal(value->width, shapes[i][1]);
                assert_int_equal(value->channels, shapes[i][2]);
                if (t == 0)
                    assert_int_equal(value->encoding, STKI_JPEG);
                if (t == 2)
                    assert_int_equal(value->encoding == STKI_JPEG, !small);
                if (t == 3)
                    assert_int_equal(value->encoding == STKI_JPEG, offsets[i + 1] - offsets[i] > 2400);
                encoded += threads == 0 && value->encoding == STKI_JPEG;
                if (value->encoding == STKI_PLAIN)
                    assert_ptr_equal(value->bytes, values + offsets[i]);
                memcpy(all + used, value->bytes, (size_t)value->size);
                used += value->size;
            }
            if (first)
                assert_int_equal(used, first_bytes);
            if (first)
                assert_memory_equal(all, first, (size_t)used);
            if (first)
                free(all);
            else
                first = all, first_bytes = used;
            stki_finish_pool_destroy(pool);
        }
        assert_true(t == 0 ? encoded == IMAGES : encoded > IMAGES / 12 && encoded < IMAGES * 4 / 5);
        free(first);
        finisher->ops->destroy(finisher);
        stki_document_destroy(document);
    }
}

static void keep_reads_headers(void **unused)
{
    const stkt_jpeg how = {.width = 31, .height = 17};
    const stki_sink_field in = {.name = "image", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1};
    stkt_bytes file = stkt_jpeg_make(&how);
    const int64_t size = (int64_t)file.size;
    char *values = malloc(3 * file.size);
    const int64_t offsets[] = {0, size, size + 8, 2 * size + 8, 2 * size + 8 + 30};
    const stki_finish_source source = {.bytes = values, .step = 1, .offsets = offsets};
    const stki_finish_batch batch = {.rows = 4, .sources = &source};
    stki_document *document = parse("{encode: keep}");
    stki_sink_field out = in;
    stki_finish_field field = {NULL, in};
    const stki_finish_pool_opts opts = {.fields = &field, .field_count = 1, .max_rows = 4, .threads = 2};
    stki_finisher *finisher;
    stki_finish_pool *pool;
    stki_finished got;
    stk_error err;

    (void)unused;
    memcpy(values, file.data, file.size);
    memcpy(values + size, "GIF89a..", 8);
    memcpy(values + size + 8, file.data, file.size);
    memcpy(values + 2 * size + 8, file.data, 30); /* truncated */
    assert_ok(stki_finisher_find("keep")->create(stki_document_root(document), &in, &out, &finisher, &err));
    field.finisher = finisher;
    assert_int_equal(out.kind, STKI_SINK_IMAGE);
    assert_int_equal(out.ndim, 3);
    assert_ok(stki_finish_pool_create(&opts, &pool, &err));
    assert_ok(stki_finish_pool_push(pool, &batch, &err));
    assert_ok(stki_finish_pool_pop(pool, INT64_MAX, &got, &err));
    assert_int_equal(got.rows, 2);
    assert_int_equal(got.kept[1], 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(got.values[i].height, 17);
        assert_int_equal(got.values[i].width, 31);
        assert_int_equal(got.values[i].channels, 3);
        assert_int_equal(got.values[i].encoding, STKI_JPEG);
        assert_int_equal(got.values[i].size, size);
        assert_ptr_equal(got.values[i].bytes, values + i * (size + 8));
    }
    assert_int_equal(got.failed, 2);
    assert_int_equal(got.failures[0].error.status, STK_E_UNSUPPORTED);
    assert_non_null(strstr(got.failures[0].error.message, "GIF"));
    assert_int_equal(got.failures[1].error.status, STK_E_TRUNCATED);
    stki_finish_pool_destroy(pool);
    finisher->ops->destroy(finisher);
    stki_document_destroy(document);
    free(values);
    free(file.data);
}

static void options_that_do_not_fit(void **unused)
{
    static const struct {
        const char *encode, *text, *says;
        stki_sink_field in;
    } wrong[] = {
        {"jpeg", "{encode: jpeg, qualty: 3}", "quality", {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"jpeg", "{encode: jpeg, quality: 0}", "1 to 100", {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"jpeg", "{encode: jpeg, subsampling: 411}", "444", {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"jpeg",
         "{encode: jpeg, proportion: 0.5, above_pixels: 9}",
         "expected one of",
         {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"jpeg", "{encode: jpeg, seed: 5}", "proportion", {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"jpeg", "{encode: jpeg}", "uint8", {.kind = STKI_SINK_ARRAY, .dtype = STK_F32, .ndim = 3}},
        {"jpeg",
         "{encode: jpeg}",
         "layout: nhwc",
         {.kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 3, .shape = {3, 20, 30}}},
        {"jpeg", "{encode: jpeg}", "1 axis", {.kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 1, .shape = {3}}},
        {"keep", "{encode: keep}", "decode: none", {.kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3}},
        {"keep", "{encode: keep, quality: 3}", "quality", {.kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1}},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stki_document *document = parse(wrong[i].text);
        stki_sink_field in = wrong[i].in, out;
        stki_finisher *finisher;
        stk_error err;

        in.name = "image";
        out = in;
        assert_status(
            stki_finisher_find(wrong[i].encode)->create(stki_document_root(document), &in, &out, &finisher, &err),
            STK_E_CONFIG);
        assert_says(wrong[i].says);
        stki_document_destroy(document);
    }
    assert_null(stki_finisher_find("jpg"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads),
        cmocka_unit_test(failed_rows_are_left_out),
        cmocka_unit_test(observers_see_rows_in_order),
        cmocka_unit_test(observers_fail),
        cmocka_unit_test(wrong_calls),
        cmocka_unit_test(destroyed_early),
        cmocka_unit_test(nothing_is_allocated_once_warm),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(jpeg_by_any_number_of_threads),
        cmocka_unit_test(keep_reads_headers),
        cmocka_unit_test(options_that_do_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
