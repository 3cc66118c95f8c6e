/* Tests of planning a job in a program that uses the library: if HDF5 files are read, the `stoker` program, which
 * STOKER_HELPER names, makes the plan first. tests/cli/bad_hdf5.c simulates failures of libhdf5 there. */
#include "io_files.h"
#include "stk_test.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <stoker/loader.h>
#include <stoker/prep.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELPER STKT_BUILD_DIR "/stoker"

static stk_error err;
static stk_prep *job;
static int waited;

static void helper(const char *program, const char *does)
{
    if (program)
        assert_int_equal(setenv("STOKER_HELPER", program, 1), 0);
    else
        assert_int_equal(unsetenv("STOKER_HELPER"), 0);
    assert_int_equal(setenv("BAD_HDF5_DOES", does ? does : "", 1), 0);
    if (does)
        assert_int_equal(setenv("LD_PRELOAD", STKT_BUILD_DIR "/tests/libbad_hdf5.so", 1), 0);
    else
        assert_int_equal(unsetenv("LD_PRELOAD"), 0);
}

static void cancel(void *context, const stk_prep_progress *now)
{
    (void)context;
    assert_int_equal(now->phase, STK_PREP_OPENING);
    waited++;
    stk_prep_cancel(job);
}

static stk_status plan_of(const char *file, const char *member, bool cancels, stk_prep_plan *plan)
{
    char text[1024];
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_status status;

    if (cancels)
        opts.progress = cancel;
    (void)snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s%s}}}\noutput: {path: %s}\n", file, member,
                   stkt_path("plan.npy"));
    /* relative paths are relative to this folder */
    assert_ok(stk_prep_open_text(text, STKT_TESTS_DIR "/data", NULL, 0, &opts, &job, &err));
    *plan = (stk_prep_plan){.struct_size = sizeof *plan};
    status = stk_prep_get_plan(job, plan, &err);
    stk_prep_destroy(job);
    return status;
}

static stk_status plan_values(stk_prep_plan *plan)
{
    return plan_of("hdf5/values.h5", ", source: {name: /ragged}", false, plan);
}

static void test_healthy(void **state)
{
    stk_prep_plan plan;

    (void)state;
    helper(HELPER, NULL);
    assert_ok(plan_values(&plan));
    assert_int_equal(plan.samples, 50);
    helper(NULL, NULL); /* no helper is installed next to this program */
    assert_ok(plan_values(&plan));
    assert_int_equal(plan.samples, 50);
}

static void test_crash(void **state)
{
    stk_prep_plan plan;

    (void)state;
    helper(HELPER, "crash");
    assert_status(plan_values(&plan), STK_E_CORRUPT);
    assert_non_null(strstr(err.message, "values.h5: libhdf5 crashed (Aborted) while opening the file"));
    helper(HELPER, "die");
    assert_status(plan_values(&plan), STK_E_RESOURCE);
    assert_non_null(strstr(err.message, "killed"));
    helper(HELPER, "crash"); /* without HDF5 files nothing is started */
    assert_ok(plan_of("digits_images.npy", "", false, &plan));
    assert_int_equal(plan.samples, 1797);
}

static void test_cancelled(void **state)
{
    stk_prep_plan plan;

    (void)state;
    helper(HELPER, "spin");
    waited = 0;
    assert_status(plan_of("hdf5/values.h5", ", source: {name: /ragged}", true, &plan), STK_E_CANCELLED);
    assert_true(waited > 0);
}

static void test_missing(void **state)
{
    stk_prep_plan plan;

    (void)state;
    helper("/nowhere/stoker", NULL);
    assert_status(plan_values(&plan), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nowhere/stoker"));
}

/* A helper that exits without a plan has not tested the files. */
static void test_broken_helper(void **state)
{
    stk_prep_plan plan;

    (void)state;
    helper("/bin/false", NULL);
    assert_status(plan_values(&plan), STK_E_IO);
    assert_non_null(strstr(err.message, "/bin/false"));
    assert_non_null(strstr(err.message, "exit status 1"));
    helper("/bin/true", NULL);
    assert_status(plan_values(&plan), STK_E_IO);
    assert_non_null(strstr(err.message, "/bin/true"));
}

/* Where the installed program is expected, there may be a folder of that name. */
static void test_folder_beside(void **state)
{
    char beside[PATH_MAX] = "";
    stk_prep_plan plan;

    (void)state;
    helper(NULL, NULL);
    assert_true(readlink("/proc/self/exe", beside, sizeof beside - 16) > 0);
    memcpy(strrchr(beside, '/') + 1, "stoker", 7);
    assert_int_equal(mkdir(beside, 0755), 0);
    const stk_status status = plan_values(&plan);

    assert_int_equal(rmdir(beside), 0);
    assert_ok(status);
}

static void test_closed_streams(void **state)
{
    int kept[3];
    stk_prep_plan plan;
    stk_status status;

    (void)state;
    helper(HELPER, NULL);
    for (int i = 0; i < 3; i++)
        kept[i] = fcntl(i, F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 3; i++)
        (void)close(i);
    status = plan_values(&plan);
    for (int i = 0; i < 3; i++) {
        (void)dup2(kept[i], i);
        (void)close(kept[i]);
    }
    assert_ok(status);
    assert_int_equal(plan.samples, 50);
}

/* A job whose folder is not UTF-8 cannot be passed to the program. */
static void test_folder_not_utf8(void **state)
{
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_prep_plan plan = {.struct_size = sizeof plan};
    bool noted = false;
    char folder[512];

    (void)state;
    helper(HELPER, NULL);
    (void)snprintf(folder, sizeof folder, "%s", stkt_path("\xff"));
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(symlink(STKT_TESTS_DIR "/data/hdf5/values.h5", stkt_path("\xff/values.h5")), 0);
    assert_ok(stk_prep_open_text("dataset: {fields: {x: {path: values.h5, source: {name: /ragged}}}}\n"
                                 "output: {path: plan.npy}\n",
                                 folder, NULL, 0, &opts, &job, &err));
    assert_ok(stk_prep_get_plan(job, &plan, &err));
    for (int i = 0; i < stk_prep_note_count(job); i++)
        noted = noted || strstr(stk_prep_note(job, i), "test read of HDF5 files was skipped");
    assert_true(noted);
    stk_prep_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_healthy),        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_cancelled),      cmocka_unit_test(test_missing),
        cmocka_unit_test(test_broken_helper),  cmocka_unit_test(test_folder_beside),
        cmocka_unit_test(test_closed_streams), cmocka_unit_test(test_folder_not_utf8),
    };
    const char *asan = getenv("ASAN_OPTIONS");
    char options[512];

    (void)snprintf(options, sizeof options, "%s:verify_asan_link_order=0:handle_abort=0", asan ? asan : "");
    (void)setenv("ASAN_OPTIONS", options, 1); /* for the child process */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
