/* Two jobs in child processes have outputs with the same NAME: extensions and work folders differ, but both jobs would
 * write the same manifest and other files next to the output. One job must be rejected while the other runs, and
 * neither may remove the other's files. The processes are synchronized in progress callbacks, with pipes. */
#include "prep_test.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ROWS = 300, BYTES = 400 };

static char input[300];

static int setup(void **unused)
{
    (void)unused;
    snprintf(input, sizeof input, "%s", stkt_path("in"));
    stkt_prep_inputs(input, ROWS, BYTES);
    return 0;
}

static const char *job(const char *folder, const char *name, const char *temporary)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}}}\n"
                     "prep: {piece_bytes: 24KiB, num_workers: 1%s%s}\noutput: {path: %s/%s}\n",
                     input, *temporary ? ", temporary: " : "", *temporary ? stkt_path(temporary) : "", folder, name);
}

/* A job in a child process that stops at the first progress callback of a phase until it is released. */
struct other {
    pid_t process;
    int stopped[2], go_on[2];
    int phase;
};

static void meet(void *context, const stk_prep_progress *now)
{
    struct other *other = context;
    char byte = 0;

    if (now->phase != other->phase)
        return;
    other->phase = -1;
    if (write(other->stopped[1], &byte, 1) != 1 || read(other->go_on[0], &byte, 1) != 1)
        _exit(2);
}

static void begin(struct other *other, int phase, const char *text)
{
    char byte;

    assert_int_equal(pipe(other->stopped), 0);
    assert_int_equal(pipe(other->go_on), 0);
    other->phase = phase;
    other->process = fork();
    assert_true(other->process >= 0);
    if (other->process == 0) {
        stk_prep_opts opts = {.struct_size = sizeof opts, .progress = meet, .progress_context = other};
        stk_error err = {0};
        stk_status status;

        close(other->stopped[0]);
        close(other->go_on[1]);
        status = stkt_prep_run(&opts, NULL, &err, text);
        if (status != STK_OK)
            fprintf(stderr, "child: %s\n", err.message);
        _exit(status == STK_OK ? 0 : 1);
    }
    close(other->stopped[1]);
    close(other->go_on[0]);
    assert_int_equal(read(other->stopped[0], &byte, 1), 1);
}

static void end(struct other *other, int signal_number)
{
    int how;

    if (signal_number)
        assert_int_equal(kill(other->process, signal_number), 0);
    else
        assert_int_equal(write(other->go_on[1], "", 1), 1);
    assert_int_equal(waitpid(other->process, &how, 0), other->process);
    if (!signal_number)
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    close(other->stopped[0]);
    close(other->go_on[1]);
}

/* Checks the values of an .npy file of this job, which follow its header. */
static void check_rows(const char *path)
{
    int64_t bytes;
    char *text = stkt_read_all(path, &bytes);

    if (!text)
        fail_msg("%s does not exist", path);
    assert_true(bytes > ROWS * BYTES);
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t k = 0; k < BYTES; k++)
            assert_int_equal((uint8_t)text[bytes - (ROWS - r) * BYTES + k], stkt_prep_byte(r, k));
    free(text);
}

static void test_refused(void **unused)
{
    static const struct {
        const char *name, *temporary;
    } second[] = {{"t.beton", ""}, {"t.npy", "elsewhere"}, {"t.h5", "elsewhere"}};
    const char *folder = stkt_path("refused");
    stk_prep_opts forced = {.struct_size = sizeof forced, .force = true};
    struct other first;
    stk_error err = {0};

    (void)unused;
    mkdir(folder, 0755);
    for (int phase = STK_PREP_MAKING; phase <= STK_PREP_COMMITTING; phase += STK_PREP_COMMITTING - STK_PREP_MAKING) {
        begin(&first, phase, job(folder, "t.npy", ""));
        for (size_t i = 0; i < sizeof second / sizeof second[0]; i++) {
            assert_status(stkt_prep_run(&forced, NULL, &err, job(folder, second[i].name, second[i].temporary)),
                          STK_E_BUSY);
            assert_non_null(strstr(err.message, "t.prep.lock"));
            assert_non_null(strstr(err.message, stkt_text("process %lld", (long long)first.process)));
        }
        /* a job with another name is not affected */
        assert_ok(stkt_prep_run(&forced, NULL, &err, job(folder, "u.npy", "")));
        end(&first, 0);
        check_rows(stkt_text("%s/t.npy", folder));
        assert_int_equal(stkt_count_names(folder, ""), 4); /* two outputs with their manifests */
        remove(stkt_text("%s/t.manifest.json", folder));
        remove(stkt_text("%s/t.npy", folder));
    }
}

/* If the disk is full, the error of the lock file says so. */
static void test_no_space(void **unused)
{
    const char *folder = stkt_path("space");
    struct rlimit before, small;
    stk_error err = {0};

    (void)unused;
    mkdir(folder, 0755);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){10, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(folder, "t.npy", "")), STK_E_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(err.message, strerror(EFBIG)));
    assert_ok(stkt_prep_run(NULL, NULL, &err, job(folder, "t.npy", "")));
}

/* The lock of a killed process is released, and its work is kept. */
static void test_killed(void **unused)
{
    const char *folder = stkt_path("killed");
    stk_prep_opts forced = {.struct_size = sizeof forced, .force = true};
    stk_prep_result result = {.struct_size = sizeof result};
    struct other first;
    stk_error err = {0};

    (void)unused;
    assert_status(stkt_prep_run(NULL, NULL, &err, job(folder, "t.npy", "")), STK_E_NOT_FOUND);
    assert_non_null(strstr(err.message, "does not exist; create it"));
    mkdir(folder, 0755);
    begin(&first, STK_PREP_COMMITTING, job(folder, "t.npy", ""));
    end(&first, SIGKILL);
    assert_true(stkt_is_there(stkt_text("%s/t.prep.lock", folder)));
    assert_ok(stkt_prep_run(NULL, NULL, &err, job(folder, "t.beton", "")));
    assert_false(stkt_is_there(stkt_text("%s/t.prep.lock", folder)));
    assert_status(stkt_prep_run(NULL, &result, &err, job(folder, "t.npy", "")), STK_E_IO);
    assert_true(stkt_is_there(stkt_text("%s/t.beton", folder)));
    assert_ok(stkt_prep_run(&forced, &result, &err, job(folder, "t.npy", "")));
    assert_int_equal(result.resumed_rows, ROWS);
    check_rows(stkt_text("%s/t.npy", folder));
    /* replaced, because it was the older output of this name */
    assert_false(stkt_is_there(stkt_text("%s/t.beton", folder)));
    assert_int_equal(stkt_count_names(folder, "prep"), 0);
}

/* Other processes may remove files while the job runs, so it repeats its initial checks before files get their final
 * names. */
static void test_meanwhile(void **unused)
{
    const char *folder = stkt_path("meanwhile");
    stk_prep_opts forced = {.struct_size = sizeof forced, .force = true};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    (void)unused;
    mkdir(folder, 0755);
    for (int way = 0; way < 2; way++) {
        const char *old = stkt_path("old");
        struct other first;
        int how;

        mkdir(old, 0755);
        assert_ok(stkt_prep_run(&forced, NULL, &err, job(old, "t.beton", "")));
        begin(&first, STK_PREP_COMMITTING, job(folder, "t.npy", ""));
        if (way == 0) {
            assert_int_equal(remove(stkt_text("%s/t.prep.lock", folder)), 0);
        } else { /* as a version without locks would */
            assert_int_equal(rename(stkt_text("%s/t.beton", old), stkt_text("%s/t.beton", folder)), 0);
            assert_int_equal(rename(stkt_text("%s/t.manifest.json", old), stkt_text("%s/t.manifest.json", folder)), 0);
        }
        assert_int_equal(write(first.go_on[1], "", 1), 1);
        assert_int_equal(waitpid(first.process, &how, 0), first.process);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 1);
        assert_false(stkt_is_there(stkt_text("%s/t.npy", folder)));
        assert_int_equal(stkt_is_there(stkt_text("%s/t.beton", folder)), way);
        assert_ok(stkt_prep_run(way ? &forced : NULL, &result, &err, job(folder, "t.npy", "")));
        assert_int_equal(result.resumed_rows, ROWS); /* no work was lost */
        check_rows(stkt_text("%s/t.npy", folder));
        assert_int_equal(stkt_count_names(folder, ""), 2);
        remove(stkt_text("%s/t.manifest.json", folder));
        remove(stkt_text("%s/t.npy", folder));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_meanwhile),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
