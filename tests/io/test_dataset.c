/* Tests of data sets: fields and shards with a common index space. */
#include "allocate.h"
#include "dataset_internal.h"
#include "faults.h"
#include "io_files.h"
#include "npy_open.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static stk_error err;

static stki_reader *made(stk_dtype dtype, int64_t count, int64_t size, int64_t min_length)
{
    stki_synthetic_opts opts = {
        .count = count, .dtype = dtype, .ndim = 1, .shape = {size}, .min_length = min_length, .seed = count};
    stki_reader *reader;

    assert_int_equal(stki_synthetic_open(&opts, &reader, &err), STK_OK);
    return reader;
}

static stki_reader *npy(const char *name, const char *descr, const char *shape)
{
    static const char zeros[4096];
    stki_reader *reader;

    stkt_write_npy(stkt_path(name), descr, "False", shape, 64, zeros, sizeof zeros);
    assert_int_equal(stkt_npy_reader(stkt_path(name), NULL, &reader, &err), STK_OK);
    return reader;
}

static void test_shards_are_concatenated(void **state)
{
    static const int64_t counts[] = {3, 0, 1, 5, 0, 0, 2, 0};
    stki_reader *shards[8];
    const stki_field *field;
    stki_dataset *dataset;
    int64_t index = 0;

    (void)state;
    assert_int_equal(stki_dataset_create(&dataset, &err), STK_OK);
    for (int i = 0; i < 8; i++)
        shards[i] = made(STK_I32, counts[i], 4, -1);
    assert_int_equal(stki_dataset_add(dataset, "x", shards, 8, &err), STK_OK);
    assert_int_equal(stki_dataset_finish(dataset, &err), STK_OK);
    assert_int_equal(dataset->count, 11);
    field = &dataset->fields[0];
    assert_string_equal(field->name, "x");
    assert_int_equal(field->dtype, STK_I32);
    assert_int_equal(field->ndim, 1);
    assert_int_equal(field->shape[0], 4);
    assert_int_equal(field->max_bytes, 16);
    assert_false(field->variable);
    for (int s = 0; s < 8; s++)
        for (int64_t i = 0; i < counts[s]; i++, index++) {
            int64_t within = -1;
            assert_ptr_equal(stki_field_locate(field, index, &within), shards[s]);
            assert_int_equal(within, i);
        }
    assert_int_equal(index, dataset->count);
    stki_dataset_destroy(dataset);
}

static void test_variable_fields_have_a_largest_shape(void **state)
{
    stki_reader *shards[3] = {made(STK_U8, 2, 4, 0), made(STK_U8, 3, 9, 5), made(STK_U8, 3, 6, -1)};
    stki_dataset *dataset;

    (void)state;
    assert_int_equal(stki_dataset_create(&dataset, &err), STK_OK);
    assert_int_equal(stki_dataset_add(dataset, "x", shards, 3, &err), STK_OK);
    assert_true(dataset->fields[0].variable);
    assert_int_equal(dataset->fields[0].shape[0], 9);
    assert_int_equal(dataset->fields[0].max_bytes, 9);
    stki_dataset_destroy(dataset);
}

static void test_shards_must_agree(void **state)
{
    static const struct {
        const char *descr, *shape;
        const char *found;
    } others[] = {{"<f8", "(2, 4)", "f64 [4]"}, {"<f4", "(2, 5)", "f32 [5]"}, {"<f4", "(2, 4, 1)", "f32 [4, 1]"}};
    stki_dataset *dataset;

    (void)state;
    assert_int_equal(stki_dataset_create(&dataset, &err), STK_OK);
    for (int i = 0; i < 3; i++) {
        stki_reader *shards[2] = {npy("a.npy", "<f4", "(3, 4)"), npy("b.npy", others[i].descr, others[i].shape)};
        assert_int_equal(stki_dataset_add(dataset, "image", shards, 2, &err), STK_E_MISMATCH);
        assert_non_null(strstr(err.message, "a.npy"));
        assert_non_null(strstr(err.message, "b.npy"));
        assert_non_null(strstr(err.message, "'image'"));
        assert_string_equal(err.found, others[i].found);
        assert_string_equal(err.expected, "f32 [4]");
    }
    assert_int_equal(dataset->field_count, 0);
    stki_dataset_destroy(dataset);
}

static void test_fields_must_agree(void **state)
{
    stki_reader *images = npy("images.npy", "<f4", "(3, 4)"), *labels = npy("labels.npy", "<i8", "(4,)");
    stki_dataset *dataset;

    (void)state;
    assert_int_equal(stki_dataset_create(&dataset, &err), STK_OK);
    assert_int_equal(stki_dataset_add(dataset, "image", &images, 1, &err), STK_OK);
    assert_int_equal(stki_dataset_add(dataset, "label", &labels, 1, &err), STK_OK);
    assert_int_equal(stki_dataset_finish(dataset, &err), STK_E_MISMATCH);
    assert_non_null(strstr(err.message, "labels.npy"));
    assert_non_null(strstr(err.message, "images.npy"));
    assert_non_null(strstr(err.message, "'label'"));
    assert_non_null(strstr(err.message, "'image'"));
    assert_string_equal(err.found, "4");
    assert_string_equal(err.expected, "3");
    stki_dataset_destroy(dataset);
}

static void test_names_and_emptiness(void **state)
{
    stki_reader *first = made(STK_U8, 2, 4, -1), *second = made(STK_U8, 2, 4, -1);
    stki_dataset *dataset;

    (void)state;
    assert_int_equal(stki_dataset_create(&dataset, &err), STK_OK);
    assert_int_equal(stki_dataset_finish(dataset, &err), STK_E_CONFIG);
    assert_int_equal(stki_dataset_add(dataset, "x", NULL, 0, &err), STK_E_CONFIG);
    assert_int_equal(stki_dataset_add(dataset, "x", &first, 1, &err), STK_OK);
    assert_int_equal(stki_dataset_add(dataset, "x", &second, 1, &err), STK_E_CONFIG);
    assert_non_null(strstr(err.message, "'x' is given twice"));
    assert_int_equal(stki_dataset_finish(dataset, &err), STK_OK);
    assert_int_equal(dataset->count, 2);
    stki_dataset_destroy(dataset);
}

static stk_status build(void)
{
    stki_reader *a[2] = {made(STK_U8, 2, 4, -1), made(STK_U8, 3, 4, -1)}, *b = made(STK_U8, 5, 1, -1);
    stki_dataset *dataset = NULL;
    stk_status status;

    /* The n-th allocation from here on fails; creating the readers succeeded. */
    status = stki_dataset_create(&dataset, &err);
    if (status) {
        stki_reader_destroy(a[0]);
        stki_reader_destroy(a[1]);
        stki_reader_destroy(b);
        return status;
    }
    status = stki_dataset_add(dataset, "a", a, 2, &err);
    if (status)
        stki_reader_destroy(b);
    else
        status = stki_dataset_add(dataset, "b", &b, 1, &err);
    if (!status)
        status = stki_dataset_finish(dataset, &err);
    stki_dataset_destroy(dataset);
    return status;
}

static void test_every_allocation_failing(void **state)
{
    enum { MAKING = 9 }; /* three readers with a struct, a path and a block each */
    stki_memory_stats before, after;
    stk_status status;
    int n = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_memory_fail_at(MAKING + ++n);
        status = build();
        assert_true(status == STK_OK || status == STK_E_MEMORY);
    } while (status && n < 50);
    stki_memory_fail_at(0);
    assert_int_equal(n, 10); /* the data set; for each field its shards, name, sums and list */
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shards_are_concatenated), cmocka_unit_test(test_variable_fields_have_a_largest_shape),
        cmocka_unit_test(test_shards_must_agree),       cmocka_unit_test(test_fields_must_agree),
        cmocka_unit_test(test_names_and_emptiness),     cmocka_unit_test(test_every_allocation_failing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
