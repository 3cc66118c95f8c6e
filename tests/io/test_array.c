/* Tests of arrays in files and in memory: their samples along any axis and in windows, mapped and read by position. */
#include "allocate.h"
#include "array.h"
#include "container.h"
#include "faults.h"
#include "io_files.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include <inttypes.h>

static stk_error err;

enum { ELEMENTS = 2 * 3 * 4 * 5 };

/* Opens a file with an array of 120 u16 of shape [2, 3, 4, 5] at offset 7; element i is i. */
static stki_array make(enum stki_access access)
{
    char bytes[7 + 2 * ELEMENTS] = {0};
    stki_array array = {.offset = 7, .dtype = STK_U16, .ndim = 4, .shape = {2, 3, 4, 5}};
    int64_t total;

    for (int i = 0; i < ELEMENTS; i++)
        memcpy(bytes + 7 + 2 * i, &(uint16_t){(uint16_t)i}, 2);
    stkt_write_file(stkt_path("array"), bytes, sizeof bytes);
    assert_int_equal(stki_file_open(stkt_path("array"), access, STKI_PATTERN_RANDOM, &array.file, &err), STK_OK);
    assert_int_equal(stki_array_row_major(&array, &total, "array", &err), STK_OK);
    assert_int_equal(total, 2 * ELEMENTS);
    return array;
}

/* The same array in memory. */
static stki_array make_memory(void)
{
    stki_array array = make(STKI_ACCESS_PREAD);
    stk_storage *memory;

    assert_int_equal(stk_storage_create(NULL, 7 + 2 * ELEMENTS, &memory, &err), STK_OK);
    assert_int_equal(stki_file_read(array.file, 0, stk_storage_data(memory), 7 + 2 * ELEMENTS, &err), STK_OK);
    stki_file_close(array.file);
    array.file = NULL;
    array.memory = memory;
    return array;
}

static int64_t expected(const stki_array *array, int axis, int64_t at, const int64_t *index, bool window)
{
    static const int64_t steps[] = {60, 20, 5, 1};
    int64_t value = at * steps[axis];

    for (int i = 0, k = 0; i < array->ndim; i++)
        if (i != axis || window)
            value += index[k++] * steps[i];
    return value;
}

static void check_samples(const stki_array *array, const stki_reader_opts *opts, int64_t count, int64_t step)
{
    bool window = opts->window_length > 0;
    stki_reader *reader;
    stki_scratch scratch;

    assert_int_equal(stki_array_reader(array, "test", "array", opts, &reader, &err), STK_OK);
    assert_int_equal(reader->count, count);
    assert_int_equal(reader->ndim, window ? 4 : 3);
    assert_string_equal(reader->ops->format, "test");
    stki_scratch_init(&scratch);
    for (int64_t s = 0; s < count; s++) {
        stk_tensor t;
        int64_t index[STK_MAX_DIMS] = {0}, done = 0;

        assert_int_equal(reader->ops->read(reader, s, NULL, &scratch, &t, &err), STK_OK);
        assert_true(t.flags & STK_TENSOR_READONLY);
        assert_memory_equal(t.strides, reader->strides, (size_t)t.ndim * sizeof *t.strides); /* plans rely on these */
        if (reader->base)
            assert_ptr_equal(t.data, (const char *)reader->base + s * reader->sample_stride);
        for (; done < stk_tensor_numel(&t); done++) {
            int64_t offset = 0;
            uint16_t value;

            for (int i = 0; i < t.ndim; i++)
                offset += index[i] * t.strides[i];
            memcpy(&value, (char *)t.data + offset, 2);
            assert_int_equal(value, expected(array, opts->axis, s * step, index, window));
            for (int i = t.ndim - 1; i >= 0 && ++index[i] == t.shape[i]; i--)
                index[i] = 0;
        }
        stki_reader_done(reader, &t);
    }
    assert_int_equal(reader->ops->read(reader, count, NULL, &scratch, &(stk_tensor){0}, &err), STK_E_RANGE);
    assert_int_equal(reader->ops->read(reader, -1, NULL, &scratch, &(stk_tensor){0}, &err), STK_E_RANGE);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void samples_along_every_axis(void **state)
{
    (void)state;
    for (int from = 0; from < 3; from++) {
        stki_array array = from == 2 ? make_memory() : make(from ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP);

        for (int axis = 0; axis < 4; axis++)
            check_samples(&array, &(stki_reader_opts){.axis = axis}, array.shape[axis], 1);
        stki_array_release(&array);
    }
}

static void windows_overlap(void **state)
{
    (void)state;
    for (int from = 0; from < 3; from++) {
        stki_array array = from == 2 ? make_memory() : make(from ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP);

        for (int axis = 0; axis < 4; axis++)
            for (int64_t length = 1; length <= array.shape[axis] + 1; length++)
                for (int64_t step = 1; step <= 3; step++) {
                    stki_reader_opts opts = {.axis = axis, .window_length = length, .window_stride = step};
                    int64_t count = array.shape[axis] < length ? 0 : (array.shape[axis] - length) / step + 1;

                    check_samples(&array, &opts, count, step);
                }
        check_samples(&array, &(stki_reader_opts){.window_length = 1, .window_stride = INT64_MAX}, 1, 0);
        stki_array_release(&array);
    }
}

/* If the elements of a sample are far apart, they are read one by one and returned contiguously; the reader's strides
 * say so. */
static void far_apart(void **state)
{
    enum { ROWS = 3000, COLUMNS = 200 };
    double *values = malloc(sizeof *values * ROWS * COLUMNS);
    stki_array array = {
        .dtype = STK_F64, .ndim = 2, .shape = {ROWS, COLUMNS}, .strides = {8, 8 * ROWS}}; /* column-major */
    stki_reader *reader;
    stki_scratch scratch;

    (void)state;
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (double)(i % ROWS * 1000 + i / ROWS);
    stkt_write_file(stkt_path("far"), values, sizeof *values * ROWS * COLUMNS);
    assert_int_equal(stki_file_open(stkt_path("far"), STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &array.file, &err),
                     STK_OK);
    assert_int_equal(stki_array_reader(&array, "test", "far", &(stki_reader_opts){0}, &reader, &err), STK_OK);
    assert_int_equal(reader->strides[0], 8);
    stki_scratch_init(&scratch);
    for (int64_t s = 0; s < ROWS; s += 997) {
        stk_tensor t;

        assert_int_equal(reader->ops->read(reader, s, NULL, &scratch, &t, &err), STK_OK);
        assert_int_equal(t.strides[0], reader->strides[0]);
        for (int64_t k = 0; k < COLUMNS; k++)
            assert_true(((const double *)t.data)[k] == (double)(s * 1000 + k));
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_array_release(&array);
    free(values);
}

static void a_whole_array_outlives_its_file(void **state)
{
    (void)state;
    for (int from = 0; from < 3; from++) {
        stki_array array = from == 2 ? make_memory() : make(from ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP);
        stk_tensor t;
        uint16_t last;

        assert_int_equal(stki_array_tensor(&array, "array", &t, &err), STK_OK);
        stki_array_release(&array);
        assert_int_equal(t.ndim, 4);
        memcpy(&last, (char *)t.data + 2 * (ELEMENTS - 1), 2);
        assert_int_equal(last, ELEMENTS - 1);
        stk_tensor_release(&t);
    }
}

static void missing_axes(void **state)
{
    stki_array array = make(STKI_ACCESS_MMAP);
    stki_reader *reader = NULL;

    (void)state;
    assert_int_equal(stki_array_reader(&array, "test", "array", &(stki_reader_opts){.axis = 4}, &reader, &err),
                     STK_E_CONFIG);
    assert_non_null(strstr(err.message, "found axis 4, expected 0 to 3, because the array has 4 axes"));
    array.ndim = 1;
    assert_int_equal(stki_array_reader(&array, "test", "array", &(stki_reader_opts){.axis = 1}, &reader, &err),
                     STK_E_CONFIG);
    assert_non_null(strstr(err.message, "found axis 1, expected 0 to 0, because the array has 1 axis"));
    array.ndim = 0;
    assert_int_equal(stki_array_reader(&array, "test", "array", NULL, &reader, &err), STK_E_UNSUPPORTED);
    assert_null(reader);
    stki_array_release(&array);
}

static void sizes_that_do_not_fit_are_rejected(void **state)
{
    static const struct {
        int64_t offset, shape, stride;
        stk_status status;
    } cases[] = {
        {7, ELEMENTS, 2, STK_OK},
        {8, ELEMENTS, 2, STK_E_TRUNCATED},
        {7, ELEMENTS + 1, 2, STK_E_TRUNCATED},
        {7, ELEMENTS, 3, STK_E_TRUNCATED},
        {-1, 1, 2, STK_E_TRUNCATED},
        {INT64_MAX, 1, 2, STK_E_TRUNCATED},
        {7 + 2 * ELEMENTS, 0, 2, STK_OK},
        {8 + 2 * ELEMENTS, 0, 2, STK_E_TRUNCATED},
        {7, INT64_MAX, 2, STK_E_CORRUPT},
        {7, 2, INT64_MAX, STK_E_CORRUPT},
        {7, 1, INT64_MAX, STK_OK}, /* an axis of length 1: its stride is not used */
        {7, INT64_MAX, 0, STK_OK},
        {7, -1, 2, STK_E_CORRUPT},
        {7, 1, -2, STK_E_CORRUPT},
    };
    stki_array array = make(STKI_ACCESS_MMAP);

    (void)state;
    array.ndim = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stk_tensor t = {0};

        array.offset = cases[i].offset;
        array.shape[0] = cases[i].shape;
        array.strides[0] = cases[i].stride;
        assert_int_equal(stki_array_check(&array, "the/path", &err), cases[i].status);
        if (cases[i].status) {
            assert_non_null(strstr(err.message, "the/path"));
            assert_int_equal(stki_array_tensor(&array, "the/path", &t, &err), cases[i].status);
        }
    }
    array.shape[0] = -1;
    assert_int_equal(stki_array_row_major(&array, &(int64_t){0}, "the/path", &err), STK_E_CORRUPT);
    array.ndim = 2;
    array.shape[0] = array.shape[1] = INT64_C(1) << 32;
    assert_int_equal(stki_array_row_major(&array, &(int64_t){0}, "the/path", &err), STK_E_CORRUPT);
    stki_array_release(&array);
}

/* The record is named in the message and in the error's field. */
static void errors_of_truncated_files_name_the_record(void **state)
{
    stki_array array = make(STKI_ACCESS_PREAD);
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;

    (void)state;
    assert_int_equal(stki_array_reader(&array, "test", stkt_path("array"), NULL, &reader, &err), STK_OK);
    assert_int_equal(truncate(stkt_path("array"), 7 + 150), 0);
    stki_scratch_init(&scratch);
    assert_int_equal(reader->ops->read(reader, 0, NULL, &scratch, &sample, &err), STK_OK);
    stki_reader_done(reader, &sample);
    assert_int_equal(reader->ops->read(reader, 1, NULL, &scratch, &sample, &err), STK_E_TRUNCATED);
    assert_int_equal(err.record, 1);
    assert_non_null(strstr(err.message, "/array: record 1: offset 127: the file is truncated"));
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    stki_array_release(&array);
}

static void memory_may_run_out(void **state)
{
    stk_status status = STK_E_MEMORY;
    stki_memory_stats before, after;
    stki_array array = make(STKI_ACCESS_PREAD);

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; status != STK_OK && n < 20; n++) {
        stki_reader *reader;
        stk_tensor t;

        stki_memory_fail_at(n);
        status = stki_array_tensor(&array, "array", &t, &err);
        if (status == STK_OK) {
            stk_tensor_release(&t);
            status = stki_array_reader(&array, "test", "array", NULL, &reader, &err);
            if (status == STK_OK)
                stki_reader_destroy(reader);
        }
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
    }
    assert_int_equal(status, STK_OK);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
    stki_array_release(&array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_along_every_axis),
        cmocka_unit_test(windows_overlap),
        cmocka_unit_test(a_whole_array_outlives_its_file),
        cmocka_unit_test(missing_axes),
        cmocka_unit_test(sizes_that_do_not_fit_are_rejected),
        cmocka_unit_test(errors_of_truncated_files_name_the_record),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(far_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
