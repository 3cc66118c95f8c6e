/* stki-threads */
/* HDF5 data sets are read by many threads at the same time, and by parent and child after a fork. */
#include "cmocka_all.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "hdf5_files.h"
#include "hdf5_reader.h"
#include "io_files.h"
#include "tensor_internal.h"
#include "thread.h"
#include <stoker/dataset.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 600, WIDTH = 32, CHUNK = 16, THREADS = 8 };

static stk_error err;

/* The storage of rows determines how they are read. */
enum storage { CONTIGUOUS, PLAIN, DEFLATED, SPLIT, SECOND_TREE, SCALE_OFFSET, STORAGES };

static void make(const char *path, enum storage storage)
{
    const hsize_t shape[] = {ROWS, WIDTH}, largest[] = {H5S_UNLIMITED, H5S_UNLIMITED},
                  chunk[] = {CHUNK, storage == SPLIT ? WIDTH / 4 : WIDTH};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), plist = H5Pcreate(H5P_DATASET_CREATE), file, space, x;
    int32_t *values = malloc(ROWS * WIDTH * 4);

    for (int i = 0; i < ROWS * WIDTH; i++)
        values[i] = i;
    if (storage == SECOND_TREE)
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    if (storage != CONTIGUOUS)
        STKT_MUST(H5Pset_chunk(plist, 2, chunk));
    if (storage == DEFLATED || storage == SPLIT || storage == SECOND_TREE) {
        STKT_MUST(H5Pset_shuffle(plist));
        STKT_MUST(H5Pset_deflate(plist, 2));
        STKT_MUST(H5Pset_fletcher32(plist));
    }
    if (storage == SCALE_OFFSET)
        STKT_MUST(H5Pset_scaleoffset(plist, H5Z_SO_INT, 0));
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    space = H5Screate_simple(2, shape, storage == SECOND_TREE ? largest : NULL);
    x = H5Dcreate2(file, "x", H5T_STD_I32LE, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(x);
    STKT_MUST(H5Dwrite(x, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    STKT_MUST(H5Dclose(x));
    STKT_MUST(H5Sclose(space));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Pclose(access));
    STKT_MUST(H5Fclose(file));
    free(values);
}

static stki_reader *open_x(const char *path, enum stki_access access, int64_t cache_bytes)
{
    stki_reader_opts opts = {.name = "x", .access = access, .cache_bytes = cache_bytes};
    stki_reader *reader;

    if (stki_reader_open(path, &opts, &reader, &err))
        fail_msg("%s", err.message);
    return reader;
}

/* Returns 0, the status of the read, or STK_E_CORRUPT if values are wrong. */
static stk_status read_row(const stki_reader *reader, int64_t row, stki_scratch *scratch, stk_error *error)
{
    stk_tensor t;
    stk_status status = reader->ops->read(reader, row, NULL, scratch, &t, error);

    if (status)
        return status;
    for (int64_t k = 0; k < WIDTH; k++) {
        int32_t value;
        memcpy(&value, (const char *)t.data + k * t.strides[0], 4);
        if (value != row * WIDTH + k)
            status = stki_fail(error, STK_E_CORRUPT, "row %d is wrong", (int)row);
    }
    stki_reader_done(reader, &t);
    return status;
}

struct member {
    const stki_reader *reader;
    int id, reads;
    stk_status status;
    stk_error err;
};

static void read_at_random(void *context)
{
    struct member *m = context;
    stki_scratch scratch;
    uint64_t r = (uint64_t)m->id + 1;

    stki_scratch_init(&scratch);
    for (int i = 0; i < m->reads && !m->status; i++) {
        if (i % 100 == 50) { /* as in a program that itself calls libhdf5 */
            stk_hdf5_lock();
            stk_hdf5_unlock();
        }
        m->status = read_row(m->reader, stkt_below(&r, ROWS), &scratch, &m->err);
    }
    stki_scratch_fini(&scratch);
}

/* Row H23 (h5py/h5py#2764): eight threads read raw chunks of one data set. */
static void test_many_threads(void **state)
{
    (void)state;
    for (int storage = 0; storage < STORAGES; storage++)
        for (int mode = 0; mode < 2; mode++) {
            const char *path = stkt_path("threads.h5");
            stki_thread *threads[THREADS];
            struct member members[THREADS];
            stki_reader *reader;

            make(path, (enum storage)storage);
            reader = open_x(path, mode ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP, 5 * CHUNK * WIDTH * 4);
            for (int i = 0; i < THREADS; i++) {
                members[i] = (struct member){.reader = reader, .id = i, .reads = 400};
                assert_int_equal(stki_thread_start(&threads[i], "test", read_at_random, &members[i], &err), STK_OK);
            }
            for (int i = 0; i < THREADS; i++) {
                assert_true(stki_thread_join(threads[i], INT64_MAX));
                if (members[i].status)
                    fail_msg("storage %d: %s", storage, members[i].err.message);
            }
            stki_reader_destroy(reader);
        }
}

/* In one pass in block order, with all threads in the same chunk, each chunk is decoded once. */
struct pass {
    const stki_reader *reader;
    stki_counter next;
    stki_counter wrong;
};

static void take_rows(void *context)
{
    struct pass *pass = context;
    stki_scratch scratch;
    int64_t row;

    stki_scratch_init(&scratch);
    while ((row = atomic_fetch_add(&pass->next, 1)) < ROWS)
        if (read_row(pass->reader, row, &scratch, NULL))
            stki_count(&pass->wrong, 1);
    stki_scratch_fini(&scratch);
}

static void test_once_for_all_threads(void **state)
{
    static const enum storage storages[] = {DEFLATED, SPLIT, SECOND_TREE};

    (void)state;
    for (int s = 0; s < 3; s++) {
        const char *path = stkt_path("once.h5");
        stki_thread *threads[THREADS];
        stki_hdf5_counts counts;
        struct pass pass = {0};
        stki_reader *reader;
        int64_t chunks = (ROWS + CHUNK - 1) / CHUNK * (storages[s] == SPLIT ? 4 : 1);

        make(path, storages[s]);
        reader = open_x(path, STKI_ACCESS_MMAP, 0); /* enough for all chunks, because a thread may be delayed */
        pass.reader = reader;
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(stki_thread_start(&threads[i], "test", take_rows, &pass, &err), STK_OK);
        for (int i = 0; i < THREADS; i++)
            assert_true(stki_thread_join(threads[i], INT64_MAX));
        assert_int_equal(stki_counted(&pass.wrong), 0);
        assert_true(stki_hdf5_reader_counts(reader, &counts));
        assert_int_equal(counts.cache.decoded, chunks);
        stki_reader_destroy(reader);
    }
}

/* Row H22 (pytorch/pytorch#11929): opened before a fork and read in parent and child at the same time. Reads that need
 * libhdf5 are errors in the child; all others are right. */
static void test_fork(void **state)
{
    (void)state;
    for (int storage = 0; storage < STORAGES; storage++)
        for (int mode = 0; mode < 2; mode++) {
            const char *path = stkt_path("fork.h5");
            bool library = storage == SCALE_OFFSET;
            struct member member = {.id = 3, .reads = 300};
            stki_reader *reader;
            int wait_status;
            pid_t child;

            make(path, (enum storage)storage);
            reader = open_x(path, mode ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP, 0);
            member.reader = reader;
            child = fork();
            if (child == 0) {
                member.id = 8;
                read_at_random(&member);
                stki_reader_destroy(reader);
                _exit(member.status == (library ? STK_E_FORKED : STK_OK) ? 0 : 1);
            }
            read_at_random(&member);
            if (member.status)
                fail_msg("%s", member.err.message);
            assert_int_equal(waitpid(child, &wait_status, 0), child);
            assert_int_equal(wait_status, 0);
            stki_reader_destroy(reader);
        }
}

/* Functions that only inspect a data set also need libhdf5, so they fail in the child. */
static void test_fork_room(void **state)
{
    const char *path = stkt_path("room.h5");
    const stki_reader_opts opts = {.access = STKI_ACCESS_MMAP};
    stki_hdf5_dataset *dataset;
    stki_hdf5_file *file;
    int wait_status;
    pid_t child;

    (void)state;
    make(path, CONTIGUOUS);
    assert_int_equal(stki_hdf5_file_open(path, &opts, &file, &err), STK_OK);
    assert_int_equal(stki_hdf5_dataset_open(file, "x", &dataset, &err), STK_OK);
    child = fork();
    if (child == 0)
        _exit(stki_hdf5_dataset_check_room(dataset, &err) == STK_E_FORKED ? 0 : 1);
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
    assert_int_equal(stki_hdf5_dataset_check_room(dataset, &err), STK_OK);
    stki_hdf5_dataset_release(dataset);
    stki_hdf5_file_release(file);
}

/* A thread that holds the lock may call stoker; after a fork the lock is free. */
static void test_host_lock(void **state)
{
    const char *path = stkt_path("host.h5");
    stki_scratch scratch;
    stki_reader *reader;
    int wait_status;
    pid_t child;

    (void)state;
    make(path, SCALE_OFFSET);
    stki_scratch_init(&scratch);
    stk_hdf5_lock();
    stk_hdf5_lock();
    reader = open_x(path, STKI_ACCESS_MMAP, 0);
    assert_int_equal(read_row(reader, 7, &scratch, &err), STK_OK);
    stk_hdf5_unlock();
    stk_hdf5_unlock();
    child = fork();
    if (child == 0) {
        stk_hdf5_lock();
        stk_hdf5_unlock();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &wait_status, 0), child);
    assert_int_equal(wait_status, 0);
    assert_int_equal(read_row(reader, 8, &scratch, &err), STK_OK);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads), cmocka_unit_test(test_once_for_all_threads),
        cmocka_unit_test(test_fork),         cmocka_unit_test(test_fork_room),
        cmocka_unit_test(test_host_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
