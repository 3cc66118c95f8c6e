/* stki-threads */
/* Limits are measured in a child process. However it ends, there is a result that says what is missing, and the page
 * cache is restored afterwards. The two measurements are linked with --wrap, so that they can be made to fail. */
#include "io_files.h"
#include "loadbench_apart.h"
#include "loadbench_limit.h"
#include "loadbench_limit_read.h"
#include "loadbench_look.h"
#include "loadbench_machine.h"
#include "loadbench_result.h"
#include "loadbench_stop.h"
#include "loadbench_transfer.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a child process ---- */

struct answer {
    int64_t number;
    char filler[200000]; /* more than the capacity of a pipe */
};

static struct answer answer;
static stk_error err;

static stk_status multiply(const void *ask, void *out, stk_error *error)
{
    struct answer *to = out;

    (void)error;
    to->number = 6 * *(const int64_t *)ask;
    to->filler[sizeof to->filler - 1] = 'e';
    return STK_OK;
}

static stk_status fail_in_child(const void *ask, void *out, stk_error *error)
{
    (void)ask, (void)out;
    snprintf(error->message, sizeof error->message, "no room");
    error->record = 77;
    return error->status = STK_E_MEMORY;
}

static stk_status raise_signal(const void *ask, void *out, stk_error *error)
{
    (void)out, (void)error;
    raise(*(const int *)ask);
    return STK_OK;
}

/* Accesses a mapping past the end of its file. */
static stk_status touch_cut_file(const void *ask, void *out, stk_error *error)
{
    const int fd = open(ask, O_RDWR);
    volatile const char *map = mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 0);

    (void)error;
    ((struct answer *)out)->number = ftruncate(fd, 0) == 0 ? map[40000] : 0;
    return STK_OK;
}

static stk_status leave(const void *ask, void *out, stk_error *error)
{
    (void)ask, (void)out, (void)error;
    _exit(0);
    return STK_OK;
}

static stk_status wait_for_signal(const void *ask, void *out, stk_error *error)
{
    (void)ask, (void)out, (void)error;
    pause();
    return STK_OK;
}

static void results_are_returned(void **state)
{
    const int64_t seven = 7;

    (void)state;
    assert_int_equal(lb_apart(multiply, &seven, &answer, sizeof answer, &err), STK_OK);
    assert_int_equal(answer.number, 42);
    assert_int_equal(answer.filler[sizeof answer.filler - 1], 'e');
    assert_int_equal(lb_apart(fail_in_child, NULL, &answer, sizeof answer, &err), STK_E_MEMORY);
    assert_string_equal(err.message, "no room");
    assert_int_equal(err.record, 77);
    assert_int_equal(lb_apart(fail_in_child, NULL, &answer, sizeof answer, NULL), STK_E_MEMORY);
}

static void a_child_that_ends_is_an_error(void **state)
{
    const int killed = SIGKILL;
    const char *path = stkt_path("cut");
    char bytes[65536] = {0};

    (void)state;
    assert_int_equal(lb_apart(raise_signal, &killed, &answer, sizeof answer, &err), STK_E_RESOURCE);
    assert_non_null(strstr(err.message, "signal 9"));
    stkt_write_file(path, bytes, sizeof bytes);
    assert_int_equal(lb_apart(touch_cut_file, path, &answer, sizeof answer, &err), STK_E_RESOURCE);
    assert_non_null(strstr(err.message, "signal 7"));
    assert_int_equal(lb_apart(leave, NULL, &answer, sizeof answer, &err), STK_E_RESOURCE);
    lb_stop_asked = SIGTERM;
    assert_int_equal(lb_apart(wait_for_signal, NULL, &answer, sizeof answer, &err), STK_E_RESOURCE);
    lb_stop_asked = 0;
}

/* ---- a whole run ---- */

static int memory_ends, reading_ends; /* the signal that ends the child; 0: the real measurement runs */

stk_status __real_lb_limit_measure(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *error);
stk_status __wrap_lb_limit_measure(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *error);
stk_status __wrap_lb_limit_measure(const struct lb_limit_ask *ask, struct lb_limit *out, stk_error *error)
{
    if (memory_ends)
        raise(memory_ends);
    return __real_lb_limit_measure(ask, out, error);
}

stk_status __real_lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns,
                                        struct lb_read_limit *out, stk_error *error);
stk_status __wrap_lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns,
                                        struct lb_read_limit *out, stk_error *error);
stk_status __wrap_lb_read_limit_measure(const struct lb_files *files, int threads, int64_t time_ns,
                                        struct lb_read_limit *out, stk_error *error)
{
    if (reading_ends)
        raise(reading_ends);
    return __real_lb_read_limit_measure(files, threads, time_ns, out, error);
}

static int looking_ends;         /* the same, when the available memory is queried */
static int64_t memory_available; /* 0: the real value */

int64_t __real_lb_memory_available(void);
int64_t __wrap_lb_memory_available(void);
int64_t __wrap_lb_memory_available(void)
{
    if (looking_ends)
        raise(looking_ends);
    return memory_available ? memory_available : __real_lb_memory_available();
}

static void run_config(struct lb_config *config, struct lb_result *result)
{
    static const char text[] = "dataset: {fields: {x: {synthetic: {count: 1000, shape: [16], dtype: u8}}}}\n"
                               "loader: {num_workers: 1}\nbench: {ramp: 0, batches: 30, repeats: 2, limit_time: 1ms}\n";
    const char *path = stkt_path("run.yaml");

    stkt_write_file(path, text, sizeof text - 1);
    assert_int_equal(lb_config_open(path, NULL, 0, false, config, &err), STK_OK);
    assert_int_equal(lb_result_measure(config, result, &err), STK_OK);
    assert_int_equal(result->run_count, 2);
}

static void the_result_survives_failing_limits(void **state)
{
    struct lb_result *result = calloc(1, sizeof *result);
    struct lb_config config;

    (void)state;
    memory_ends = SIGKILL;
    reading_ends = SIGBUS;
    run_config(&config, result);
    assert_int_equal(result->limit_count, 0);
    assert_non_null(strstr(result->limit_missing, "signal 9"));
    assert_non_null(strstr(result->once.read.cold_missing, "signal 7"));
    assert_non_null(strstr(result->once.read.cached_missing, "signal 7"));
    assert_true(lb_result_samples_per_s(result) > 0);
    lb_result_fini(result);
    lb_config_close(&config);
    memory_ends = reading_ends = 0;
    run_config(&config, result);
    assert_int_equal(result->limit_count, 2);
    assert_true(result->limits[1].gather.bytes_per_s > 0 && result->limits[1].gather.way[0] != '\0');
    lb_result_fini(result);
    lb_config_close(&config);
    free(result);
}

/* ---- printed explanations ---- */

static char printed[100000];

/* The printed text. */
static const char *text_of(FILE *file)
{
    rewind(file);
    printed[fread(printed, 1, sizeof printed - 1, file)] = '\0';
    fclose(file);
    return printed;
}

static void the_explanation_survives_a_failing_limit(void **state)
{
    static const char text[] = "dataset: {fields: {x: {synthetic: {count: 1000, shape: [16], dtype: u8}}}}\n"
                               "loader: {num_workers: 2}\n";
    const char *path = stkt_path("explain.yaml");
    struct lb_config config;

    (void)state;
    stkt_write_file(path, text, sizeof text - 1);
    for (int killed = 0; killed < 2; killed++) {
        FILE *to = tmpfile();

        memory_ends = killed ? SIGKILL : 0;
        assert_int_equal(lb_config_open(path, NULL, 0, false, &config, &err), STK_OK);
        assert_int_equal(lb_explain(&config, to, &err), STK_OK);
        lb_config_close(&config);
        assert_non_null(strstr(text_of(to), "field x"));
        if (killed)
            assert_non_null(strstr(printed, "not measured: the measuring process was killed by signal 9"));
        else
            assert_non_null(strstr(printed, "GB/s read and written"));
    }
    memory_ends = 0;
}

/* The host device and both buffers are in memory: four blocks, each at most an eighth of the free memory. */
static void transfers_fit_the_memory(void **state)
{
    static const struct {
        int64_t available;
        const char *largest, *next, *left_out; /* of 6 */
    } cases[] = {{INT64_C(8) << 20, "\n1 MiB", "\n4 MiB", "\"left_out_for_memory\": 3"},
                 {1000, "\n256 KiB", "\n1 MiB", "\"left_out_for_memory\": 4"}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        FILE *to = tmpfile();

        memory_available = cases[i].available;
        assert_int_equal(lb_transfer("host", false, to, &err), STK_OK);
        assert_non_null(strstr(text_of(to), cases[i].largest));
        assert_null(strstr(printed, cases[i].next));
        assert_non_null(strstr(printed, "too little memory is free"));
        to = tmpfile();
        assert_int_equal(lb_transfer("host", true, to, &err), STK_OK);
        assert_non_null(strstr(text_of(to), cases[i].left_out));
    }
    memory_available = 0;
    looking_ends = SIGKILL;
    assert_int_equal(lb_transfer("host", false, stdout, &err), STK_E_RESOURCE);
    assert_non_null(strstr(err.message, "signal 9"));
    looking_ends = 0;
}

/* ---- the page cache ---- */

enum { PAGES = 8192, FOLIO = 512 }; /* a file system may evict only whole blocks of FOLIO pages */
static int64_t page;

static void read_pages(const char *path, unsigned char *pages)
{
    const int fd = open(path, O_RDONLY);
    void *map = mmap(NULL, (size_t)(PAGES * page), PROT_READ, MAP_SHARED, fd, 0);

    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, (size_t)(PAGES * page), pages), 0);
    for (int i = 0; i < PAGES; i++)
        pages[i] &= 1;
    munmap(map, (size_t)(PAGES * page));
    close(fd);
}

/* A file with `count` pages from `first` on that are not in memory. */
static void make_file(const char *path, int first, int count)
{
    char *bytes = calloc(PAGES, (size_t)page);

    stkt_write_file(path, bytes, (size_t)(PAGES * page));
    free(bytes);
    const int fd = open(path, O_RDWR);
    assert_int_equal(fsync(fd), 0);
    if (count > 0)
        posix_fadvise(fd, first * page, count * page, POSIX_FADV_DONTNEED);
    close(fd);
}

/* The kernel may evict single pages, and keep single pages that are in use. */
enum { STRAY = 32 };

static void assert_same_pages(const unsigned char *after, const unsigned char *before)
{
    int differ = 0;

    for (int i = 0; i < PAGES; i++)
        differ += after[i] != before[i];
    assert_in_range(differ, 0, STRAY);
}

static void the_page_cache_stays(void **state)
{
    static const struct {
        int first, count;
    } gone[] = {{0, PAGES}, {PAGES / 4, PAGES / 2}, {PAGES / 2, FOLIO}, {0, 0}};
    static unsigned char before[PAGES], after[PAGES];
    const char *path = "stoker_apart_file"; /* in the current folder, because /tmp may be in memory */
    int tried = 0;

    (void)state;
    page = sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        struct lb_limit_ask ask = {.threads = 2,
                                   .row_bytes = 1000,
                                   .row_count = 1000,
                                   .slot_bytes = 64000,
                                   .random = true,
                                   .path = path,
                                   .time_ns = 2000000,
                                   .block_bytes = 1 << 20};
        struct lb_files files = {0};
        struct lb_pages pages;
        struct lb_read_limit reading;
        struct lb_limit limit;
        make_file(path, gone[i].first, gone[i].count);
        read_pages(path, before);
        if (gone[i].count > 0 && before[gone[i].first + gone[i].count / 2])
            continue; /* the file system keeps them in memory */
        tried++;
        assert_int_equal(lb_files_add(&files, path, &err), STK_OK);
        assert_int_equal(__real_lb_limit_measure(&ask, &limit, &err), STK_OK);
        assert_true(!limit.from_file || gone[i].count <= PAGES / 10);
        read_pages(path, after);
        assert_same_pages(after, before);
        assert_int_equal(__real_lb_read_limit_measure(&files, 2, 2000000, &reading, &err), STK_OK);
        assert_true((reading.cached_bytes_per_s > 0) == (gone[i].count <= PAGES / 10));
        assert_true(reading.cold_bytes_per_s > 0 || reading.cold_missing[0]);
        read_pages(path, after);
        assert_same_pages(after, before);

        /* pages that have been read since are evicted again */
        assert_int_equal(lb_pages_note(&files, &pages, &err), STK_OK);
        assert_int_equal(lb_cache_fill(&files, &err), STK_OK);
        lb_pages_put_back(&pages);
        read_pages(path, after);
        assert_same_pages(after, before);

        /* also if the file has grown since */
        assert_int_equal(lb_pages_note(&files, &pages, &err), STK_OK);
        assert_int_equal(truncate(path, (off_t)(2 * PAGES) * page), 0);
        assert_int_equal(lb_cache_fill(&files, &err), STK_OK);
        lb_pages_put_back(&pages);
        lb_files_fini(&files);
    }
    unlink(path);
    if (tried < 2)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_returned),
        cmocka_unit_test(a_child_that_ends_is_an_error),
        cmocka_unit_test(the_result_survives_failing_limits),
        cmocka_unit_test(the_explanation_survives_a_failing_limit),
        cmocka_unit_test(transfers_fit_the_memory),
        cmocka_unit_test(the_page_cache_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
