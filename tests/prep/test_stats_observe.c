/* Tests of statistics as observers of a job: the report is the same for rows of every kind, however they are divided
 * into calls. Also tests errors in the `stats` section. */
#include "allocate.h"
#include "faults.h"
#include "observe.h"
#include "stats_options.h"
#include "stk_test.h"
#include "test_random.h"

enum { ROWS = 700 };

static stki_document *document_of(const char *text)
{
    stki_document *document;
    stk_error err;

    assert_ok(stki_document_parse(text, (int64_t)strlen(text), "text", STKI_NO_INCLUDE, &document, &err));
    return document;
}

static stki_row row_of(const stki_sink_field *field, const char *bytes, int64_t position, int64_t length)
{
    stki_row row = {.bytes = bytes, .dtype = field->dtype, .ndim = field->ndim, .position = position};

    row.size = stk_dtype_size(field->dtype);
    for (int i = 0; i < field->ndim; i++) {
        row.shape[i] = i == 0 && length >= 0 ? length : field->shape[i];
        row.size *= row.shape[i];
    }
    return row;
}

/* The report for rows in calls of random lengths drawn with `seed`; if `apart`, no two of them are adjacent. */
static char *seen_by(stki_observer *observer, const stki_row *rows, int64_t count, uint64_t seed, bool apart)
{
    const stki_observer_ops *ops = observer->ops;
    uint64_t state = seed, parts = 1;
    stki_seen *total = NULL;
    json_t *json;
    char *text, **copies = calloc((size_t)count, sizeof *copies);
    stk_error err;

    for (int64_t i = 0; i < count;) {
        /* parts are always the same, as in a job */
        const int64_t end = i + stkt_random_in(&parts, 1, 300);
        stki_seen *seen, *back;
        json_t *saved;

        assert_ok(ops->begin(observer, &seen, &err));
        while (i < end && i < count) {
            int64_t n = stkt_random_in(&state, 1, 90);
            stki_row call[90];

            n = n < end - i ? n : end - i;
            n = n < count - i ? n : count - i;
            for (int64_t k = 0; k < n; k++) {
                call[k] = rows[i + k];
                if (apart) {
                    copies[i + k] = malloc((size_t)call[k].size + 1);
                    memcpy(copies[i + k], call[k].bytes, (size_t)call[k].size);
                    call[k].bytes = copies[i + k];
                }
            }
            assert_ok(ops->see(observer, seen, call, n, &err));
            i += n;
        }
        saved = ops->save(observer, seen);
        assert_non_null(saved);
        if (stkt_random(&state) & 1) {
            assert_ok(ops->load(observer, saved, &back, &err));
            ops->drop(observer, seen);
            seen = back;
        }
        json_decref(saved);
        if (total) {
            assert_ok(ops->merge(observer, total, seen, &err));
            ops->drop(observer, seen);
        } else {
            total = seen;
        }
    }
    assert_ok(ops->report(observer, total, &json, &err));
    text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(json);
    ops->drop(observer, total);
    for (int64_t i = 0; i < count; i++)
        free(copies[i]);
    free(copies);
    return text;
}

static void check_field(const stki_sink_field *field, const char *options, const char *says)
{
    stki_document *document = document_of(options);
    stki_observer **observers;
    const int64_t most = field->largest_bytes;
    char *data = malloc((size_t)(ROWS * most)), *first = NULL, *at = data;
    stki_row *rows = calloc(ROWS, sizeof *rows);
    uint64_t state = 9;
    int count;
    stk_error err;

    for (int64_t i = 0; i < ROWS * most; i++)
        data[i] = (char)(1 + stkt_random(&state) % 100);
    for (int64_t i = 0; i < ROWS; i++) {
        const bool varies = field->kind != STKI_SINK_ARRAY;

        /* some positions are left out, including some at the end of a block */
        rows[i] = row_of(field, at, i + i / 7, varies ? stkt_random_in(&state, 0, field->shape[0]) : -1);
        at += rows[i].size;
    }
    assert_ok(stki_observers_create(stki_document_root(document), field, 1, &observers, &count, &err));
    assert_int_equal(count, 1);
    for (uint64_t seed = 1; seed < 9; seed++) {
        char *text = seen_by(observers[0], rows, ROWS, seed, seed % 3 == 0);

        if (first)
            assert_string_equal(first, text);
        else
            first = text;
        if (text != first)
            free(text);
    }
    if (!strstr(first, says))
        fail_msg("%s does not say %s", first, says);
    free(first);
    observers[0]->ops->destroy(observers[0]);
    stki_free(observers);
    stki_document_destroy(document);
    free(rows);
    free(data);
}

static void test_same_report(void **unused)
{
    const stki_sink_field
        scalars = {.name = "x", .dtype = STK_F32, .largest_bytes = 4},
        longer = {.name = "x", .dtype = STK_F32, .ndim = 1, .shape = {500}, .largest_bytes = 2000},
        vectors = {.name = "x", .dtype = STK_F64, .ndim = 1, .shape = {5}, .largest_bytes = 40},
        planes = {.name = "x", .dtype = STK_U8, .ndim = 3, .shape = {3, 8, 9}, .largest_bytes = 216, .channel_axis = 1},
        labels = {.name = "x", .dtype = STK_I64, .largest_bytes = 8},
        ragged =
            {.name = "x", .kind = STKI_SINK_RAGGED, .dtype = STK_F32, .ndim = 1, .shape = {50}, .largest_bytes = 200},
        images = {.name = "x",
                  .kind = STKI_SINK_IMAGE,
                  .dtype = STK_U8,
                  .ndim = 3,
                  .shape = {9, 7, 3},
                  .largest_bytes = 189,
                  .channel_axis = 3},
        files = {
            .name = "x", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1, .shape = {300}, .largest_bytes = 300};

    (void)unused;
    check_field(&scalars, "{fields: {x: {histogram: 5}}}", "\"per\":\"tensor\",\"count\":700");
    check_field(&longer, "{}", "\"count\":350000");
    check_field(&vectors, "{fields: {x: {calibrate: [minmax, mse]}}}", "\"quantize\":{\"minmax\":{\"dtype\":\"int8\"");
    check_field(&planes, "{}", "\"per\":\"channel\",\"count\":151200,");
    check_field(&planes, "{fields: {x: {per: tensor, histogram: 0}}}", "\"per\":\"tensor\"");
    check_field(&labels, "{fields: {x: {classes: true}}}", "\"classes\":{\"values\":[");
    check_field(&ragged, "{}", "\"lengths\":{\"mean\":");
    check_field(&images, "{}", "\"per\":\"channel\"");
    check_field(&files, "{}", "\"rows\":700,\"lengths\":");
}

static void refused(const stki_sink_field *field, const char *options, const char *says)
{
    stki_document *document = document_of(options);
    stki_observer **observers;
    int count;
    stk_error err;
    const stk_status status = stki_observers_create(stki_document_root(document), field, 1, &observers, &count, &err);

    assert_true(status < 0);
    assert_says(says);
    stki_document_destroy(document);
}

static void test_refusals(void **unused)
{
    const stki_sink_field floats = {.name = "image", .dtype = STK_F32, .ndim = 1, .shape = {4}, .largest_bytes = 16},
                          complex = {.name = "image", .dtype = STK_C64, .largest_bytes = 8},
                          files = {.name = "image", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1};

    (void)unused;
    refused(&floats, "{fields: {imag: {}}}", "did you mean image?");
    refused(&floats, "{field: {image: {}}}", "did you mean fields?");
    refused(&floats, "{fields: [image]}", "a map of fields");
    refused(&floats, "{fields: {image: {calibrat: mse}}}", "did you mean calibrate?");
    refused(&floats, "{fields: {image: {calibrate: entropy}}}", "minmax, percentile");
    refused(&floats, "{fields: {image: {calibrate: []}}}", "or a list of them");
    refused(&floats, "{fields: {image: {per: channel}}}", "source: {layout: nhwc}");
    refused(&floats, "{fields: {image: {classes: true}}}", "expected integers");
    refused(&floats, "{fields: {image: {percentile: 101}}}", "100");
    refused(&floats, "{fields: {image: {dtype: int4}}}", "int8 or uint8");
    refused(&complex, "{}", "expected real numbers");
    refused(&files, "{fields: {image: {calibrate: mse}}}", "only their lengths");
}

static void test_no_memory(void **unused)
{
    const stki_sink_field field = {.name = "x", .dtype = STK_F32, .ndim = 1, .shape = {6}, .largest_bytes = 24};
    stki_document *document = document_of("{fields: {x: {calibrate: mse}}}");
    float data[60];
    stki_row rows[10];

    (void)unused;
    for (int i = 0; i < 60; i++)
        data[i] = (float)i - 20;
    for (int i = 0; i < 10; i++)
        rows[i] = row_of(&field, (const char *)&data[6 * i], i, -1);
    for (int64_t n = 1;; n++) {
        stki_observer **observers = NULL;
        stki_seen *seen = NULL, *back = NULL;
        json_t *saved = NULL, *said = NULL;
        int count = 0;
        stk_error err;
        stk_status status;
        bool done = false;

        stki_memory_fail_at(n);
        status = stki_observers_create(stki_document_root(document), &field, 1, &observers, &count, &err);
        if (status == STK_OK)
            status = observers[0]->ops->begin(observers[0], &seen, &err);
        if (status == STK_OK)
            status = observers[0]->ops->see(observers[0], seen, rows, 10, &err);
        if (status == STK_OK) {
            saved = observers[0]->ops->save(observers[0], seen);
            status = saved ? observers[0]->ops->load(observers[0], saved, &back, &err) : STK_E_MEMORY;
        }
        if (status == STK_OK)
            status = observers[0]->ops->merge(observers[0], seen, back, &err);
        if (status == STK_OK) {
            status = observers[0]->ops->report(observers[0], seen, &said, &err);
            done = status == STK_OK;
        }
        stki_memory_fail_at(0);
        json_decref(saved);
        json_decref(said);
        if (count) {
            observers[0]->ops->drop(observers[0], seen);
            observers[0]->ops->drop(observers[0], back);
            observers[0]->ops->destroy(observers[0]);
        }
        stki_free(observers);
        if (done)
            break;
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        assert_in_range(n, 1, 400);
    }
    stki_document_destroy(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_report),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
