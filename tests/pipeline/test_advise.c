/* Test of the advice to readers about samples that will be read soon: each file's reader gets only that file's samples,
 * in the order in which they are used. */
#include "io_files.h"
#include "loader_test.h"

enum { SHARDS = 3, ROWS = 100, NOTED = 1 << 10 };

static struct {
    const stki_reader *reader;
    stki_reader_ops ops;
    int64_t noted[NOTED];
    int count, calls;
} shards[SHARDS];
static int opened;

static void note(const stki_reader *reader, const int64_t *indices, int64_t count)
{
    for (int s = 0; s < SHARDS; s++) {
        if (shards[s].reader != reader)
            continue;
        shards[s].calls++;
        for (int64_t i = 0; i < count; i++) {
            assert_true(shards[s].count < NOTED);
            shards[s].noted[shards[s].count++] = indices[i];
        }
    }
}

static stk_status listen(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    (void)context;
    (void)field;
    (void)err;
    assert_true(opened < SHARDS);
    shards[opened].reader = *reader;
    shards[opened].ops = *(*reader)->ops;
    shards[opened].ops.will_need = note;
    (*reader)->ops = &shards[opened++].ops;
    return STK_OK;
}

static void each_file_its_own(void **state)
{
    char text[1024];
    stki_document *document;
    stki_loader_config *config;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t used[SHARDS][NOTED], batches = 0;
    int count[SHARDS] = {0};

    (void)state;
    for (int s = 0; s < SHARDS; s++) {
        char name[32];
        stk_npy_writer *writer;
        float values[ROWS] = {0};

        snprintf(name, sizeof name, "%d.npy", s);
        assert_int_equal(stk_npy_create(stkt_path(name), STK_F32, 0, NULL, false, &writer, &err), STK_OK);
        assert_int_equal(stk_npy_append(writer, values, ROWS, &err), STK_OK);
        assert_int_equal(stk_npy_commit(writer, &err), STK_OK);
    }
    snprintf(text, sizeof text,
             "dataset: {fields: {x: {path: '%s'}}}\n"
             "loader: {batch_size: 150, order: random, seed: 5, num_workers: 0}",
             stkt_path("*.npy"));
    assert_int_equal(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, &err), STK_OK);
    assert_int_equal(stki_config_read(document, NULL, &config, &err), STK_OK);
    config->wrap_reader = listen;
    assert_int_equal(stki_loader_open_config(config, &loader, &err), STK_OK);
    assert_int_equal(opened, SHARDS);
    while (stk_loader_next(loader, &batch, &err) == STK_OK) {
        for (int64_t row = 0; row < stk_batch_rows(batch); row++) {
            const int64_t sample = stk_batch_indices(batch)[row];
            const int s = (int)(sample / ROWS);

            used[s][count[s]++] = sample % ROWS;
        }
        batches++;
        stk_batch_release(batch);
    }
    assert_int_equal(batches, 2);
    for (int s = 0; s < SHARDS; s++) {
        assert_int_equal(shards[s].count, ROWS);
        assert_memory_equal(shards[s].noted, used[s], ROWS * sizeof used[s][0]);
        assert_in_range(shards[s].calls, 1, 4); /* two calls per batch of 150 rows, not one per row */
    }
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_file_its_own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
