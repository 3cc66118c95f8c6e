/* stki-threads */
/* Many threads read the members of one open .npz, .pt or .safetensors file at the same time, stored and deflated,
 * sample by sample, while others release the container. */
#include "container.h"
#include "format.h"
#include "io_files.h"
#include "stk_test.h"
#include "thread.h"
#include <stoker/dataset.h>

enum { THREADS = 6, ARRAYS = 8, ROWS = 200, ROW = 64, ROUNDS = 30 };

static stk_error err;

static void write_file(const char *path, int level)
{
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *w;
    int64_t shape[1] = {ROW};
    char name[16];

    opts.level = level;
    assert_ok(stk_writer_create(path, NULL, &opts, &w, &err));
    for (int a = 0; a < ARRAYS; a++) {
        snprintf(name, sizeof name, "a%d", a);
        assert_ok(stk_writer_begin(w, name, STK_I32, 1, shape, -1, &err));
        for (int r = 0; r < ROWS; r++) {
            int32_t row[ROW];

            for (int i = 0; i < ROW; i++)
                row[i] = a * 1000000 + r * ROW + i;
            assert_ok(stk_writer_append(w, row, 1, &err));
        }
        assert_ok(stk_writer_end(w, &err));
    }
    assert_ok(stk_writer_commit(w, &err));
}

struct work {
    stki_container *container; /* holds its own reference */
    stki_reader_opts opts;
    int seed, wrong;
};

static int read_rows(const stki_reader *reader, int array, int seed)
{
    stki_scratch scratch;
    stk_tensor sample;
    int wrong = 0;

    stki_scratch_init(&scratch);
    for (int k = 0; k < 20; k++) {
        int64_t row = (seed * 7919 + k * 131) % ROWS;
        int32_t first;

        if (reader->ops->read(reader, row, NULL, &scratch, &sample, NULL)) {
            wrong++;
            continue;
        }
        memcpy(&first, sample.data, sizeof first);
        wrong += first != array * 1000000 + (int32_t)row * ROW;
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    return wrong;
}

static void run(void *context)
{
    struct work *work = context;

    for (int round = 0; round < ROUNDS; round++) {
        int array = (work->seed + round) % ARRAYS;
        stki_reader *reader;

        if (stki_container_reader(work->container, array, &work->opts, &reader, NULL)) {
            work->wrong++;
            continue;
        }
        work->wrong += read_rows(reader, array, work->seed + round);
        stki_reader_destroy(reader);
    }
    stki_container_release(work->container);
}

static void together(const char *path, enum stki_access access)
{
    struct work work[THREADS];
    stki_thread *threads[THREADS];
    stki_container *c;

    assert_ok(stki_container_open(path, &(stki_reader_opts){.access = access}, &c, &err));
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){stki_container_retain(c), {.access = access, .verify = i % 2}, i, 0};
        assert_ok(stki_thread_start(&threads[i], "reads", run, &work[i], &err));
    }
    stki_container_release(c);
    for (int i = 0; i < THREADS; i++) {
        assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(work[i].wrong, 0);
    }
}

static void test_threads(void **state)
{
    static const char *const files[] = {"stored.npz", "deflated.npz", "a.pt", "a.safetensors"};
    char path[300];

    (void)state;
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s", stkt_path(files[i]));
        write_file(path, i == 1 ? 6 : 0);
        together(path, STKI_ACCESS_MMAP);
        together(path, STKI_ACCESS_PREAD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
