/* stki-threads */
/* Eight threads use one reader at the same time, mapped and reading by position, in both orders. */
#include "allocate.h"
#include "io_files.h"
#include "npy_open.h"
#include "thread.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { THREADS = 8, SAMPLES = 200, A = 5, B = 7, READS = 400 };

static stk_error err;

struct worker {
    const stki_reader *reader;
    int64_t number, wrong;
};

/* Element (a, b) of sample i is i * 100 + a * 10 + b. */
static void read_samples(void *context)
{
    struct worker *w = context;
    stki_scratch scratch;

    stki_scratch_init(&scratch);
    for (int64_t n = 0; n < READS; n++) {
        int64_t i = (n * 37 + w->number * 11) % SAMPLES, ahead[3] = {i, (i + 1) % SAMPLES, SAMPLES - 1};
        stk_tensor t;
        w->reader->ops->will_need(w->reader, ahead, 3);
        if (w->reader->ops->read(w->reader, i, NULL, &scratch, &t, NULL)) {
            w->wrong++;
            continue;
        }
        for (int64_t a = 0; a < A; a++)
            for (int64_t b = 0; b < B; b++) {
                int32_t value;
                memcpy(&value, (const char *)t.data + a * t.strides[0] + b * t.strides[1], sizeof value);
                w->wrong += value != i * 100 + a * 10 + b;
            }
        stki_reader_done(w->reader, &t);
        w->wrong += w->reader->ops->read(w->reader, SAMPLES, NULL, &scratch, &t, NULL) != STK_E_RANGE;
    }
    stki_scratch_fini(&scratch);
}

static void read_from_all_threads(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.access = access, .pattern = STKI_PATTERN_RANDOM};
    struct worker workers[THREADS];
    stki_thread *threads[THREADS];
    stki_reader *reader;

    assert_int_equal(stkt_npy_reader(path, &opts, &reader, &err), STK_OK);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){reader, i, 0};
        assert_int_equal(stki_thread_start(&threads[i], "reader", read_samples, &workers[i], &err), STK_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(workers[i].wrong, 0);
    }
    stki_reader_destroy(reader);
}

static void test_one_reader_for_all_threads(void **state)
{
    static int32_t rows[SAMPLES][A][B], columns[B][A][SAMPLES];
    const char *c = stkt_path("c.npy"), *fortran = stkt_path("fortran.npy");

    (void)state;
    for (int i = 0; i < SAMPLES; i++)
        for (int a = 0; a < A; a++)
            for (int b = 0; b < B; b++)
                rows[i][a][b] = columns[b][a][i] = i * 100 + a * 10 + b;
    stkt_write_npy(c, "<i4", "False", "(200, 5, 7)", 64, rows, sizeof rows);
    stkt_write_npy(fortran, "<i4", "True", "(200, 5, 7)", 64, columns, sizeof columns);
    read_from_all_threads(c, STKI_ACCESS_MMAP);
    read_from_all_threads(c, STKI_ACCESS_PREAD);
    read_from_all_threads(fortran, STKI_ACCESS_MMAP);
    read_from_all_threads(fortran, STKI_ACCESS_PREAD);
}

struct holder {
    stk_tensor tensor;
    int64_t sum;
};

static void use_and_release(void *context)
{
    struct holder *h = context;

    for (int64_t i = 0; i < h->tensor.shape[0]; i++)
        h->sum += ((const unsigned char *)h->tensor.data)[i * h->tensor.strides[0]];
    stk_tensor_release(&h->tensor);
}

/* The last release, on any thread, unmaps the file. */
static void test_the_last_view_closes_the_file(void **state)
{
    const char *path = stkt_path("array.npy");
    struct holder holders[THREADS];
    stki_thread *threads[THREADS];
    stki_memory_stats before, after;
    unsigned char data[64];
    stk_tensor array;

    (void)state;
    memset(data, 3, sizeof data);
    stkt_write_npy(path, "|u1", "False", "(64,)", 64, data, sizeof data);
    stki_memory_read(STKI_MEM_HOST, &before);
    assert_int_equal(stkt_npy_tensor(path, NULL, &array, &err), STK_OK);
    for (int i = 0; i < THREADS; i++) {
        holders[i].sum = 0;
        assert_int_equal(stk_tensor_narrow(&array, 0, i * 8, 8, &holders[i].tensor, &err), STK_OK);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(stki_thread_start(&threads[i], "holder", use_and_release, &holders[i], &err), STK_OK);
    stk_tensor_release(&array);
    for (int i = 0; i < THREADS; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(holders[i].sum, 24);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.bytes, after.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_reader_for_all_threads),
        cmocka_unit_test(test_the_last_view_closes_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
