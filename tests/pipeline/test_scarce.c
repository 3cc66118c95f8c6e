/* stki-threads */
/* Tests of a process that runs out of descriptors or memory during a run. Such a failure is not an error of a sample,
 * so nothing is skipped: the loader waits for up to loader.timeout, or ends with the error. open and the functions of
 * malloc are defined in this program, so that they can be made to fail inside libraries as well. */
#include "hdf5_type.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_handle.h"
#include "loader_test.h"
#include "tar_build.h"
#include <malloc.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { SAMPLES = 40, SIDE = 8 };

/* ---- injected failures ---- */

static _Atomic int opens_fail, open_errno; /* number of opens that fail from now on, and their errno */

STK_API int open(const char *path, int flags, ...)
{
    va_list args;
    int mode;

    va_start(args, flags);
    mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    if (atomic_load(&opens_fail) > 0 && atomic_fetch_sub(&opens_fail, 1) > 0) {
        errno = atomic_load(&open_errno);
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#if defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#if !SANITIZED /* sanitizers define malloc themselves */
#define OWN_MALLOC 1

static _Atomic int64_t allocation_fails_in; /* the n-th from now on; 0: none */

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);

static bool fails(void)
{
    return atomic_load(&allocation_fails_in) > 0 && atomic_fetch_sub(&allocation_fails_in, 1) == 1;
}

STK_API void *malloc(size_t bytes)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_malloc(bytes);
}

STK_API void *calloc(size_t count, size_t bytes)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_calloc(count, bytes);
}

STK_API void *realloc(void *block, size_t bytes)
{
    return fails() ? (errno = ENOMEM, NULL) : __libc_realloc(block, bytes);
}
#endif

/* ---- the data ---- */

static void make_packed(void)
{
    const hsize_t shape[2] = {SAMPLES, 32}, chunk[2] = {8, 32};
    const hid_t file = H5Fcreate("packed.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hid_t space = H5Screate_simple(2, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    float values[SAMPLES * 32] = {0};

    assert_true(H5Pset_chunk(how, 2, chunk) >= 0 && H5Pset_shuffle(how) >= 0 && H5Pset_deflate(how, 1) >= 0);
    const hid_t set = H5Dcreate2(file, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Pclose(how);
    H5Sclose(space);
    H5Fclose(file);
}

static int make_data(void **state)
{
    const stkt_jpeg picture = {.width = SIDE, .height = SIDE};
    const stkt_bytes jpeg = stkt_jpeg_make(&picture);
    struct stkt_tar tar = {0};
    unsigned char row[SIDE];
    char name[64];
    FILE *lines;

    (void)state;
    assert_int_equal(mkdir(stkt_path("images"), 0755), 0);
    assert_non_null(lines = fopen(stkt_path("lines.txt"), "w"));
    for (int i = 0; i < SAMPLES; i++) {
        snprintf(name, sizeof name, "images/%02d.jpg", i);
        stkt_write_file(stkt_path(name), jpeg.data, jpeg.size);
        snprintf(name, sizeof name, "row%02d.npy", i);
        memset(row, i, sizeof row);
        stkt_write_npy(stkt_path(name), "|u1", "False", "(8,)", 64, row, sizeof row);
        snprintf(name, sizeof name, "%02d.jpg", i);
        stkt_tar_put(&tar, '0', name, jpeg.data, jpeg.size);
        fprintf(lines, "line %d\n", i);
    }
    fclose(lines);
    assert_int_equal(chdir(stkt_dir), 0);
    make_packed();
    memset(stkt_tar_grow(&tar, 1024), 0, 1024);
    stkt_write_file(stkt_path("images.tar"), tar.bytes, tar.size);
    free(tar.bytes);
    free(jpeg.data);
    return 0;
}

static const char *const sources[] = {
    "image: {path: images}",
    "x: {path: 'row*.npy', source: {sample_per_file: true}}",
    "image: {path: images.tar, source: {name: jpg}}",
    "x: {path: lines.txt, pad: {to: 16}}",
    "x: {path: packed.h5}",
};
enum { ON_OPEN = 2, SOURCES = 5 }; /* the first two sources open files during a run */

static stk_loader *opened(const char *source, int workers, const char *timeout)
{
    stk_loader *loader;
    stk_error err;

    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {%s}}, loader: {batch_size: 4, num_workers: %d, prefetch: 1, timeout: %s, "
                        "on_error: skip, max_error_fraction: 1}}",
                        source, workers, timeout));
    return loader;
}

/* Takes rows up to the end or an error; after a timeout it tries again. */
static stk_status take_all(stk_loader *loader, int64_t *rows, stk_error *err)
{
    stk_batch *batch;
    stk_status status;

    while ((status = stk_loader_next(loader, &batch, err)) == STK_OK || status == STK_E_TIMEOUT)
        if (status == STK_OK) {
            *rows += stk_batch_valid_rows(batch);
            stk_batch_release(batch);
        }
    return status;
}

static void nothing_was_skipped(const stk_loader *loader)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_error err;

    assert_ok(stk_loader_get_stats(loader, &stats, &err));
    assert_int_equal(stats.skipped, 0);
}

/* ---- descriptors ---- */

static int taken[4096], taken_count;

static void take_descriptors(void)
{
    while (taken_count < 4096 && (taken[taken_count] = dup(0)) >= 0)
        taken_count++;
    assert_true(taken_count < 4096 && errno == EMFILE);
}

static void give_descriptors(void)
{
    while (taken_count > 0)
        close(taken[--taken_count]);
}

static void wait_until_it_waits(stk_loader *loader, int workers)
{
    const int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);

    for (;;)
        for (int i = 0; i < workers; i++) {
            stki_doing doing;

            stki_worker_look(&loader->core->workers[i], &doing);
            if (doing.stage == STKI_STAGE_READ && doing.part == STKI_READ_WAIT)
                return;
            assert_true(stki_now_ns() < deadline);
        }
}

static void descriptors_that_become_available(void **state)
{
    (void)state;
    for (int s = 0; s < ON_OPEN; s++)
        for (int workers = 1; workers <= 3; workers += 2) {
            stk_loader *loader = opened(sources[s], workers, "60s");
            stk_batch *batch;
            stk_error err;
            int64_t rows;

            assert_ok(stk_loader_next(loader, &batch, &err));
            rows = stk_batch_valid_rows(batch);
            take_descriptors();
            stk_batch_release(batch);
            for (int taken_before = 2; taken_before > 0; taken_before--) { /* batches finished earlier */
                if (stk_loader_next_timeout(loader, 1000000, &batch, &err) == STK_OK) {
                    rows += stk_batch_valid_rows(batch);
                    stk_batch_release(batch);
                }
            }
            wait_until_it_waits(loader, workers);
            give_descriptors();
            assert_status(take_all(loader, &rows, &err), STK_END);
            assert_int_equal(rows, SAMPLES);
            nothing_was_skipped(loader);
            stk_loader_destroy(loader);
        }
}

static void descriptors_that_stay_unavailable(void **state)
{
    (void)state;
    for (int s = 0; s < ON_OPEN; s++)
        for (int workers = 0; workers <= 2; workers++) {
            stk_loader *loader = opened(sources[s], workers, "30ms");
            stk_batch *batch;
            stk_error err;
            int64_t rows = 0;

            assert_ok(stk_loader_next_timeout(loader, 60 * STKI_SECOND, &batch, &err));
            take_descriptors();
            stk_batch_release(batch);
            assert_status(take_all(loader, &rows, &err), STK_E_RESOURCE);
            give_descriptors();
            assert_true(err.file[0] && err.record >= 0 && err.record < SAMPLES);
            nothing_was_skipped(loader);
            stk_loader_destroy(loader);
        }
}

/* A waiting worker returns when the loader is closed. */
static void closing_ends_the_wait(void **state)
{
    stk_loader *loader = opened(sources[0], 1, "infinite");
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_ok(stk_loader_next(loader, &batch, &err));
    take_descriptors();
    stk_batch_release(batch);
    while (stk_loader_next_timeout(loader, 1000000, &batch, &err) == STK_OK)
        stk_batch_release(batch);
    wait_until_it_waits(loader, 1);
    assert_ok(stk_loader_close(loader, &err));
    give_descriptors();
    stk_loader_destroy(loader);
}

/* The system has no file descriptors left, or no memory for one. */
static void scarce_in_the_system(void **state)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM};

    (void)state;
    for (int e = 0; e < 3; e++)
        for (int s = 0; s < ON_OPEN; s++)
            for (int workers = 0; workers <= 2; workers++) {
                stk_loader *loader = opened(sources[s], workers, "60s");
                stk_batch *batch;
                stk_error err;
                int64_t rows;

                assert_ok(stk_loader_next(loader, &batch, &err));
                rows = stk_batch_valid_rows(batch);
                stk_batch_release(batch);
                atomic_store(&open_errno, errors[e]);
                atomic_store(&opens_fail, 5);
                assert_status(take_all(loader, &rows, &err), STK_END);
                assert_true(atomic_exchange(&opens_fail, 0) <= 0);
                assert_int_equal(rows, SAMPLES);
                nothing_was_skipped(loader);
                stk_loader_destroy(loader);
            }
}

/* ---- memory ---- */

#ifdef OWN_MALLOC
/* Each allocation of the rest of a run fails once. The run either delivers all its rows or ends with this error. */
static void memory(void **state)
{
    (void)state;
    for (int s = 0; s < SOURCES; s++) {
        int ended = 0;

        for (int64_t n = 1;; n++) {
            stk_loader *loader = opened(sources[s], 0, "60s");
            stk_batch *batch;
            stk_status status;
            stk_error err;
            int64_t rows, left;

            assert_ok(stk_loader_next(loader, &batch, &err));
            rows = stk_batch_valid_rows(batch);
            stk_batch_release(batch);
            atomic_store(&allocation_fails_in, n);
            status = take_all(loader, &rows, &err);
            left = atomic_exchange(&allocation_fails_in, 0);
            if (status == STK_END)
                assert_int_equal(rows, SAMPLES);
            else if (status != STK_E_MEMORY)
                fail_msg("source %d, allocation %d: %s: %s", s, (int)n, stk_status_name(status), err.message);
            ended += status == STK_E_MEMORY;
            nothing_was_skipped(loader);
            stk_loader_destroy(loader);
            if (left > 0)
                break; /* the run makes fewer than n allocations */
            assert_true(n < 20000);
        }
        print_message("source %d: %d allocations ended the run\n", s, ended);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_that_become_available),
        cmocka_unit_test(descriptors_that_stay_unavailable),
        cmocka_unit_test(closing_ends_the_wait),
        cmocka_unit_test(scarce_in_the_system),
#ifdef OWN_MALLOC
        cmocka_unit_test(memory),
#endif
    };
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_cur < 1024 ? limit.rlim_cur : 1024;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return cmocka_run_group_tests(tests, make_data, NULL);
}
