/* stki-threads */
/* A signal ends every measurement: each would run for an hour, and the signal is sent while it runs. A measurement that
 * does not check for it makes the test time out. */
#include "codec_limit.h"
#include "loadbench_device.h"
#include "loadbench_limit.h"
#include "loadbench_limit_read.h"
#include "loadbench_stop.h"
#include "loadbench_transfer.h"
#include "stk_test.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define HOUR INT64_C(3600000000000)

static const char *folder;

static void ask_to_stop(int number)
{
    lb_stop_asked = number;
}

/* Sends the signal shortly after the measurement has started, and repeatedly, in case it had not started yet. */
static int in_a_moment(void **state)
{
    const struct itimerval soon = {{0, 20000}, {0, 20000}};

    (void)state;
    lb_stop_asked = 0;
    signal(SIGALRM, ask_to_stop);
    return setitimer(ITIMER_REAL, &soon, NULL);
}

static int no_more(void **state)
{
    const struct itimerval never = {{0, 0}, {0, 0}};

    (void)state;
    lb_stop_asked = 0;
    return setitimer(ITIMER_REAL, &never, NULL);
}

static void memory(void **state)
{
    const struct lb_limit_ask ask = {
        .threads = 2, .row_bytes = 4096, .row_count = 100, .slot_bytes = 1 << 20, .random = true, .time_ns = HOUR};
    struct lb_limit limit;
    stk_error err;

    (void)state;
    assert_status(lb_limit_measure(&ask, &limit, &err), STK_END);
}

static void make_file(char *path, size_t size, int megabytes)
{
    static char block[1 << 20];

    snprintf(path, size, "%s/data", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < megabytes; i++)
        assert_true(fwrite(block, 1, sizeof block, file) == sizeof block);
    assert_int_equal(fclose(file), 0);
}

static void reading(void **state)
{
    struct lb_files files = {0};
    struct lb_read_limit limit;
    char path[600];
    stk_error err;

    (void)state;
    make_file(path, sizeof path, 4);
    assert_ok(lb_files_add(&files, path, &err));
    lb_stop_asked = 0; /* as if no signal had been received */
    assert_ok(lb_read_limit_measure(&files, 2, HOUR, &limit, &err));
    assert_string_equal(limit.cached_missing, LB_STOPPED);
    assert_string_equal(limit.cold_missing, LB_STOPPED);
    assert_true(limit.cached_bytes_per_s <= 0 && limit.cold_bytes_per_s <= 0);
    lb_files_fini(&files);
}

static void decoding(void **state)
{
    const char *path = STKT_TESTS_DIR "/data/photos";
    const struct codec_ask ask = {.threads = 2,
                                  .time_ns = HOUR,
                                  .paths = &path,
                                  .path_count = 1,
                                  .source = "{decode: none}",
                                  .name = "image",
                                  .stop = &lb_stop_asked};
    struct codec_limit limit;
    stk_error err;

    (void)state;
    assert_ok(codec_jpeg(&ask, &limit, &err));
    assert_string_equal(limit.missing, LB_STOPPED);
    assert_true(limit.samples_per_s <= 0);
}

static void copies(void **state)
{
    struct lb_transfer transfer;
    stk_error err;

    (void)state;
    assert_status(lb_transfer_measure("host", 1 << 20, 4, HOUR, &transfer, &err), STK_END);
}

/* After a signal, --transfer prints nothing and returns STK_E_CLOSED. */
static void transfer_by_size(void **state)
{
    FILE *to = tmpfile();
    stk_error err;

    (void)state;
    assert_non_null(to);
    lb_stop_asked = SIGINT;
    assert_status(lb_transfer("host", false, to, &err), STK_E_CLOSED);
    assert_says("stopped by a signal");
    assert_int_equal(ftell(to), 0);
    fclose(to);
}

/* If a signal stops the filling or eviction of the cache, there is no run. */
static void page_cache(void **state)
{
    struct lb_files files = {0};
    char path[600];
    stk_error err;

    (void)state;
    make_file(path, sizeof path, 1);
    assert_ok(lb_files_add(&files, path, &err));
    lb_stop_asked = SIGINT;
    assert_status(lb_cache_fill(&files, &err), STK_END);
    assert_status(lb_cache_drop(&files, &err), STK_END);
    lb_files_fini(&files);
}

static int make_folder(void **state)
{
    (void)state;
    folder = stkt_make_dir();
    return folder ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    stkt_remove_dir(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory, in_a_moment, no_more),
        cmocka_unit_test_setup_teardown(reading, in_a_moment, no_more),
        cmocka_unit_test_setup_teardown(decoding, in_a_moment, no_more),
        cmocka_unit_test_setup_teardown(copies, in_a_moment, no_more),
        cmocka_unit_test_setup_teardown(transfer_by_size, NULL, no_more),
        cmocka_unit_test_setup_teardown(page_cache, NULL, no_more),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
