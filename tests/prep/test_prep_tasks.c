/* stki-threads */
/* Tests of jobs with several tasks: whatever their number and however they end, the joined output is that of a single
 * process. */
#include "faults.h"
#include "job_clock.h"
#include "prep_file.h"
#include "prep_test.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROWS = 700, BYTES = 900 };

static char input[300];

static int setup(void **unused)
{
    (void)unused;
    snprintf(input, sizeof input, "%s", stkt_path("in"));
    stkt_prep_inputs(input, ROWS, BYTES);
    return 0;
}

static const char *job(const char *out, const char *output)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}, label: {path: %s.label.npy}}}\n"
                     "prep: {piece_bytes: 40KiB, order: random, seed: 3, num_workers: 1}\noutput: {path: %s%s%s}\n",
                     input, input, out, *output ? ", " : "", output);
}

static const char *output_of(const char *folder, const char *name)
{
    return stkt_path(stkt_text("%s/%s", folder, name));
}

static stk_prep_opts task(int64_t number, int64_t of)
{
    return (stk_prep_opts){.struct_size = sizeof(stk_prep_opts), .task = number, .tasks = of};
}

static void run_whole(const char *name, const char *output)
{
    stk_error err = {0};

    assert_ok(stkt_prep_run(NULL, NULL, &err, job(output_of("one", name), output)));
}

/* Runs the tasks one after another, beginning with `first`; the last one joins. */
static void run_tasks(const char *folder, const char *name, const char *output, int64_t count, int64_t first)
{
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    for (int64_t i = 0; i < count; i++) {
        stk_prep_opts opts = task((first + i * (count - 1)) % count, count);

        assert_ok(stkt_prep_run(&opts, &result, &err, job(output_of(folder, name), output)));
        assert_int_equal(result.complete, i == count - 1);
        if (i < count - 1)
            assert_true(result.missing_pieces > 0);
    }
    assert_int_equal(result.rows, ROWS);
    assert_false(stkt_is_there(stkt_text("%s.prep", output_of(folder, name))));
}

static void test_same_bytes(void **unused)
{
    (void)unused;
    run_whole("a.npy", "");
    run_whole("b.h5", "");
    run_whole("c.beton", "");
    run_whole("d.npy", "shard_rows: 130");
    run_whole("e.npy", "shard_bytes: 99999");
    for (int count = 2; count <= 4; count++) {
        char folder[8];

        snprintf(folder, sizeof folder, "n%d", count);

        mkdir(stkt_path(folder), 0755);
        run_tasks(folder, "a.npy", "", count, 0);
        run_tasks(folder, "b.h5", "", count, 1);
        run_tasks(folder, "c.beton", "", count, count - 1);
        run_tasks(folder, "d.npy", "shard_rows: 130", count, 0);
        run_tasks(folder, "e.npy", "shard_bytes: 99999", count, 1);
        stkt_same_file(output_of("one", "a.x.npy"), output_of(folder, "a.x.npy"));
        stkt_same_file(output_of("one", "b.h5"), output_of(folder, "b.h5"));
        stkt_same_file(output_of("one", "c.beton"), output_of(folder, "c.beton"));
        for (int i = 0; i < 6; i++)
            stkt_same_file(output_of("one", stkt_text("d-%05d.x.npy", i)),
                           output_of(folder, stkt_text("d-%05d.x.npy", i)));
        for (int i = 0; i < 7; i++)
            stkt_same_file(output_of("one", stkt_text("e-%05d.label.npy", i)),
                           output_of(folder, stkt_text("e-%05d.label.npy", i)));
    }
}

/* More tasks than units of work. */
static void test_idle_tasks(void **unused)
{
    (void)unused;
    mkdir(stkt_path("many"), 0755);
    run_whole("f.npy", "shard_rows: 300");
    run_tasks("many", "f.npy", "shard_rows: 300", 3, 0);
    stkt_same_file(output_of("one", "f-00002.x.npy"), output_of("many", "f-00002.x.npy"));
}

static void test_merge(void **unused)
{
    stk_prep_opts merge = {.struct_size = sizeof merge, .merge = true, .tasks = 3},
                  alone = {.struct_size = sizeof alone};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;

    (void)unused;
    for (int64_t i = 0; i < 3; i++) {
        stk_prep_opts opts = task(i, 3);

        assert_status(stkt_prep_run(&merge, &result, &err, job(output_of("one", "g.npy"), "")), STK_E_NOT_FOUND);
        assert_says(i == 0   ? "no such work folder (missing pieces: all 16)"
                    : i == 1 ? "missing pieces: 11 of 16"
                             : "6 of 16");
        assert_int_equal(result.missing_pieces, i == 0 ? 16 : i == 1 ? 11 : 6);
        opts.no_merge = true;
        assert_ok(stkt_prep_run(&opts, &result, &err, job(output_of("one", "g.npy"), "")));
        assert_false(result.complete);
        assert_false(stkt_is_there(output_of("one", "g.x.npy")));
    }
    assert_ok(stkt_prep_run(&merge, &result, &err, job(output_of("one", "g.npy"), "")));
    assert_true(result.complete);
    run_whole("a2.npy", "");
    stkt_same_file(output_of("one", "a2.x.npy"), output_of("one", "g.x.npy"));
    /* One process, or a different number of tasks, completes what earlier tasks have begun. */
    for (int way = 0; way < 2; way++) {
        const char *name = way ? "h.npy" : "i.npy";
        stk_prep_opts first = task(1, 3), rest[2] = {task(0, 2), task(1, 2)};

        assert_ok(stkt_prep_run(&first, NULL, &err, job(output_of("one", name), "")));
        if (way) {
            assert_ok(stkt_prep_run(&alone, &result, &err, job(output_of("one", name), "")));
        } else {
            assert_ok(stkt_prep_run(&rest[0], NULL, &err, job(output_of("one", name), "")));
            assert_ok(stkt_prep_run(&rest[1], &result, &err, job(output_of("one", name), "")));
        }
        assert_true(result.complete && result.resumed_rows > 0);
        stkt_same_file(output_of("one", "a2.x.npy"), output_of("one", stkt_text("%.1s.x.npy", name)));
    }
}

/* Child processes run at the same time, and each may find that everything is done; some are killed and restarted. */
static void test_processes(void **unused)
{
    enum { TASKS = 4 };

    (void)unused;
    run_whole("j.beton", "");
    mkdir(stkt_path("procs"), 0755);
    for (int round = 0; round < 3; round++) {
        pid_t children[TASKS];

        for (int i = 0; i < TASKS; i++) {
            children[i] = fork();
            if (children[i] == 0) {
                stk_prep_opts opts = task(i, TASKS);
                stk_error err = {0};
                stk_status status = stkt_prep_run(&opts, NULL, &err, job(output_of("procs", "j.beton"), ""));

                if (status != STK_OK && !strstr(err.message, "complete"))
                    fprintf(stderr, "task %d: %s\n", i, err.message);
                _exit(status == STK_OK || strstr(err.message, "complete") ? 0 : 1);
            }
        }
        for (int i = 0; i < TASKS; i++) {
            int how;

            if (round < 2 && i % 2 == round) {
                usleep((useconds_t)(1000 * (1 + i)));
                kill(children[i], SIGKILL);
            }
            waitpid(children[i], &how, 0);
            assert_true(WIFEXITED(how) ? WEXITSTATUS(how) == 0 : WTERMSIG(how) == SIGKILL);
        }
    }
    stkt_same_file(output_of("one", "j.beton"), output_of("procs", "j.beton"));
    assert_false(stkt_is_there(stkt_text("%s.prep", output_of("procs", "j.beton"))));
}

struct rival {
    const char *text; /* job to run while rows are made; NULL: none */
    int lock;         /* file to close when pieces would be joined; -1: none */
};

static void compete(void *context, const stk_prep_progress *progress)
{
    struct rival *rival = context;

    if (rival->text && progress->phase == STK_PREP_MAKING) {
        const char *text = rival->text;
        stk_error err = {0};

        rival->text = NULL;
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
    }
    if (rival->lock >= 0 && progress->phase == STK_PREP_JOINING) {
        close(rival->lock);
        rival->lock = -1;
    }
}

/* The tasks of a job without output do not write its file at the same time. */
static void test_statistics(void **unused)
{
    struct rival rival = {.lock = -1};
    stk_prep_opts opts = task(0, 2);
    struct flock held = {.l_type = F_WRLCK};
    stk_error err = {0};
    char work[400];

    (void)unused;
    snprintf(work, sizeof work, "%s.prep", output_of("one", "t.json"));
    mkdir(work, 0755);
    rival.lock = open(stkt_text("%s/merge.lock", work), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(rival.lock >= 0);
    assert_int_equal(fcntl(rival.lock, F_OFD_SETLK, &held), 0);
    opts.progress = compete;
    opts.progress_context = &rival;
    assert_ok(stkt_prep_run(
        &opts, NULL, &err,
        stkt_text("dataset: {fields: {x: {path: %s.npy}}}\nstats: {path: %s}\n", input, output_of("one", "t.json"))));
    assert_int_equal(rival.lock, -1);
    assert_true(stkt_is_there(output_of("one", "t.json")));
    assert_false(stkt_is_there(work));
}

/* Two runs of one job without tasks: each returns only when the output is complete. */
static void test_second_run(void **unused)
{
    struct rival rival = {.lock = -1};
    stk_prep_opts part = {.struct_size = sizeof part, .no_merge = true},
                  opts = {.struct_size = sizeof opts, .progress = compete, .progress_context = &rival};
    stk_prep_result result = {.struct_size = sizeof result};
    struct flock held = {.l_type = F_WRLCK};
    stk_error err = {0};
    char text[2000], lock[400];

    (void)unused;
    run_whole("n.npy", "");
    run_whole("o.h5", "");
    mkdir(stkt_path("second"), 0755);
    snprintf(text, sizeof text, "%s", job(output_of("second", "n.npy"), ""));
    assert_ok(stkt_prep_run(&part, &result, &err, text));
    assert_false(result.complete);
    snprintf(lock, sizeof lock, "%s.prep/merge.lock", output_of("second", "n.npy"));
    rival.lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(rival.lock >= 0);
    assert_int_equal(fcntl(rival.lock, F_OFD_SETLK, &held), 0);
    assert_ok(stkt_prep_run(&opts, &result, &err, text)); /* the other process ends without joining */
    assert_true(result.complete);
    assert_int_equal(rival.lock, -1);
    stkt_same_file(output_of("one", "n.x.npy"), output_of("second", "n.x.npy"));

    snprintf(text, sizeof text, "%s", job(output_of("second", "o.h5"), ""));
    rival.text = text;
    assert_ok(stkt_prep_run(&opts, &result, &err, text)); /* the other process completes the output */
    assert_true(result.complete);
    assert_int_equal(result.rows, ROWS);
    assert_null(rival.text);
    stkt_same_file(output_of("one", "o.h5"), output_of("second", "o.h5"));
    assert_false(stkt_is_there(stkt_text("%s.prep", output_of("second", "o.h5"))));
}

/* Another run of the job that writes the second shard while this one has only read its rows. */
struct second_shard {
    const char *text;
    stk_prep *job;
    bool cancels, ran; /* cancels: stops after some pieces of the shard */
};

static void cancel_in_shard(void *context, const stk_prep_progress *progress)
{
    if (progress->phase == STK_PREP_MAKING && progress->rows >= ROWS / 4)
        stk_prep_cancel(((struct second_shard *)context)->job);
}

static void write_second_shard(void *context, const stk_prep_progress *progress)
{
    struct second_shard *s = context;
    stk_prep_opts opts = task(1, 2);
    stk_error err;

    if (s->ran || progress->phase != STK_PREP_MAKING || progress->rows < ROWS / 2)
        return;
    s->ran = opts.no_merge = true;
    opts.progress_interval_ns = 1;
    opts.progress = s->cancels ? cancel_in_shard : NULL;
    opts.progress_context = s;
    assert_ok(stk_prep_open_text(s->text, NULL, NULL, 0, &opts, &s->job, &err));
    assert_status(stk_prep_run(s->job, &err), s->cancels ? STK_E_CANCELLED : STK_OK);
    stk_prep_destroy(s->job);
}

/* Rows are computed before their shard is locked. If another run has written some or all of them in the meantime, they
 * are not written again. */
static void test_shard_of_another_run(void **unused)
{
    (void)unused;
    run_whole("u.npy", "shard_rows: 350");
    for (int i = 0; i < 2; i++) {
        struct second_shard second = {.cancels = i == 1};
        stk_prep_opts opts = {.struct_size = sizeof opts,
                              .progress = write_second_shard,
                              .progress_context = &second,
                              .progress_interval_ns = 1};
        stk_error err = {0};
        char folder[8], text[2000];

        snprintf(folder, sizeof folder, "other%d", i);
        mkdir(stkt_path(folder), 0755);
        snprintf(text, sizeof text, "%s", job(output_of(folder, "u.npy"), "shard_rows: 350"));
        second.text = text;
        assert_status(stkt_prep_run(&opts, NULL, &err, text), STK_E_BUSY);
        assert_true(second.ran);
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
        stkt_same_file(output_of("one", "u-00000.x.npy"), output_of(folder, "u-00000.x.npy"));
        stkt_same_file(output_of("one", "u-00001.x.npy"), output_of(folder, "u-00001.x.npy"));
    }
}

/* ---- tasks that start while another one completes the output ---- */

enum point { EXISTS, CLOCK, BEFORE_FINAL, AFTER_FINAL, REMOVE };

/* Called at points of the library with a path. */
static void (*at_point)(enum point point, const char *path);

static void reach(enum point point, const char *path)
{
    if (at_point)
        at_point(point, path);
}

bool __real_stki_prep_exists(const char *path);
bool __wrap_stki_prep_exists(const char *path);
bool __wrap_stki_prep_exists(const char *path)
{
    reach(EXISTS, path);
    return __real_stki_prep_exists(path);
}

stk_status __real_stki_job_clock_open(stki_job_clock *clock, const char *work, stk_error *err);
stk_status __wrap_stki_job_clock_open(stki_job_clock *clock, const char *work, stk_error *err);
stk_status __wrap_stki_job_clock_open(stki_job_clock *clock, const char *work, stk_error *err)
{
    stk_status status = __real_stki_job_clock_open(clock, work, err);

    reach(CLOCK, work);
    return status;
}

stk_status __real_stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err);
stk_status __wrap_stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err);
stk_status __wrap_stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err)
{
    stk_status status;

    reach(BEFORE_FINAL, path);
    status = __real_stki_prep_write_final(path, text, bytes, err);
    reach(AFTER_FINAL, path);
    return status;
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    reach(REMOVE, path);
    return __real_rmdir(path);
}

/* A task in a child process that stops at some points until it is released. */
static struct late {
    pid_t process;
    int stopped[2], go_on[2], phase, looks;
    char work[400], manifest[400];
} late;

static void stop(void)
{
    char byte = 0;

    if (write(late.stopped[1], &byte, 1) != 1 || read(late.go_on[0], &byte, 1) < 0)
        _exit(2);
}

static void stop_in_phase(void *unused, const stk_prep_progress *progress)
{
    (void)unused;
    if (progress->phase == late.phase) {
        late.phase = -1;
        stop();
    }
}

static void stop_at_clock(enum point point, const char *path)
{
    (void)path;
    if (point == CLOCK)
        stop();
}

/* A task looks for the manifest when it has locked the name, and before it checks for existing files. */
static void stop_at_first_look(enum point point, const char *path)
{
    if (point == EXISTS && strcmp(path, late.manifest) == 0 && ++late.looks == 1)
        stop();
}

static void stop_at_second_look(enum point point, const char *path)
{
    if (point == EXISTS && strcmp(path, late.manifest) == 0 && ++late.looks == 2)
        stop();
}

/* Starts a task and returns when it has stopped for the first time. `phase`: stops there too; -1: not. */
static void begin_late(const char *out, int64_t number, const char *text, int phase,
                       void (*at)(enum point point, const char *path))
{
    char byte;

    late = (struct late){.phase = phase};
    snprintf(late.work, sizeof late.work, "%s.prep", out);
    snprintf(late.manifest, sizeof late.manifest, "%.*s.manifest.json", (int)(strrchr(out, '.') - out), out);
    assert_int_equal(pipe(late.stopped), 0);
    assert_int_equal(pipe(late.go_on), 0);
    late.process = fork();
    assert_true(late.process >= 0);
    if (late.process == 0) {
        stk_prep_opts opts = task(number, 2);
        stk_error err = {0};

        close(late.stopped[0]);
        close(late.go_on[1]);
        at_point = at;
        opts.progress = stop_in_phase;
        if (stkt_prep_run(&opts, NULL, &err, text) == STK_OK)
            _exit(0);
        _exit(strstr(err.message, "s-00003.x.npy") ? 3 : 1);
    }
    close(late.stopped[1]);
    close(late.go_on[0]);
    assert_int_equal(read(late.stopped[0], &byte, 1), 1);
}

/* Releases the task and returns when it has stopped again or ended. */
static void go_on_late(void)
{
    char byte = 0;

    if (late.go_on[1] >= 0 && (write(late.go_on[1], &byte, 1) != 1 || read(late.stopped[0], &byte, 1) != 1)) {
        close(late.go_on[1]);
        late.go_on[1] = -1;
    }
}

/* Returns the exit status of the task, which does not stop again. */
static int end_late(void)
{
    int how;

    if (late.go_on[1] >= 0)
        close(late.go_on[1]);
    late.go_on[1] = -1;
    assert_int_equal(waitpid(late.process, &how, 0), late.process);
    assert_true(WIFEXITED(how));
    close(late.stopped[0]);
    return WEXITSTATUS(how);
}

static void go_on_when_removing(enum point point, const char *path)
{
    if (point == REMOVE && strcmp(path, late.work) == 0)
        go_on_late();
}

static void run_both(const char *text)
{
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    for (int64_t i = 0; i < 2; i++) {
        stk_prep_opts opts = task(i, 2);

        assert_ok(stkt_prep_run(&opts, &result, &err, text));
    }
    assert_true(result.complete);
}

/* A task that found no output creates files in the work folder while other tasks complete the output and remove the
 * folder: afterwards, the folder is gone. */
static void test_late_files(void **unused)
{
    char out[300], text[2000];

    (void)unused;
    run_whole("p.beton", "");
    mkdir(stkt_path("late"), 0755);
    snprintf(out, sizeof out, "%s", output_of("late", "p.beton"));
    snprintf(text, sizeof text, "%s", job(out, ""));
    begin_late(out, 0, text, STK_PREP_OPENING, stop_at_clock);
    at_point = go_on_when_removing;
    run_both(text);
    at_point = NULL;
    assert_int_equal(end_late(), 0);
    assert_false(stkt_is_there(late.work));
    stkt_same_file(output_of("one", "p.beton"), out);
    assert_int_equal(stkt_count_names(stkt_path("late"), ""), 2); /* the output and its manifest */
}

static int late_status;

static void end_before_manifest(enum point point, const char *path)
{
    if (point != BEFORE_FINAL || strcmp(path, late.manifest) != 0)
        return;
    at_point = NULL;
    late_status = end_late();
}

/* A task looks for existing files when the output has its final name, but no manifest yet. */
static void test_late_look(void **unused)
{
    char out[300], text[2000];

    (void)unused;
    mkdir(stkt_path("looks"), 0755);
    snprintf(out, sizeof out, "%s", output_of("looks", "q.h5"));
    snprintf(text, sizeof text, "%s", job(out, ""));
    begin_late(out, 0, text, -1, stop_at_second_look);
    late_status = -1;
    at_point = end_before_manifest;
    run_both(text);
    at_point = NULL;
    assert_int_equal(late_status, 0);
    assert_false(stkt_is_there(late.work));
}

static const char *commit_text;
static int commit_file;

static void start_after_manifest(enum point point, const char *path)
{
    stk_prep_opts opts = task(0, 2);
    stk_error err = {0};

    if (point != AFTER_FINAL || strcmp(path, late.manifest) != 0)
        return;
    at_point = NULL;
    commit_file = open(path, O_RDONLY | O_CLOEXEC);
    unlink(stkt_text("%s/merge.lock", late.work)); /* as if it had just been removed with the folder */
    assert_ok(stkt_prep_run(&opts, NULL, &err, commit_text));
}

/* A task that starts when the folder is being removed must not repeat the commit, which removes the manifest. */
static void test_commit_once(void **unused)
{
    char out[300], text[2000];

    (void)unused;
    mkdir(stkt_path("once"), 0755);
    snprintf(out, sizeof out, "%s", output_of("once", "r.npy"));
    snprintf(text, sizeof text, "%s", job(out, ""));
    snprintf(late.work, sizeof late.work, "%s.prep", out);
    snprintf(late.manifest, sizeof late.manifest, "%.*s.manifest.json", (int)(strrchr(out, '.') - out), out);
    commit_text = text;
    at_point = start_after_manifest;
    run_both(text);
    assert_null(at_point);
    assert_true(stki_prep_lock_stands(commit_file, late.manifest)); /* the same file */
    close(commit_file);
    assert_false(stkt_is_there(late.work));
}

static void complete_first(enum point point, const char *path)
{
    stk_error err = {0};

    if (point != EXISTS || strcmp(path, stkt_text("%s/lock", late.work)) != 0)
        return;
    at_point = NULL;
    assert_ok(stkt_prep_run(NULL, NULL, &err, commit_text));
}

/* With --restart, a run does not empty the folder of an output that another run has completed in the meantime. */
static void test_restart_late(void **unused)
{
    stk_prep_opts opts = {.struct_size = sizeof opts, .restart = true};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};
    char out[300], text[2000];

    (void)unused;
    mkdir(stkt_path("again"), 0755);
    snprintf(out, sizeof out, "%s", output_of("again", "v.npy"));
    snprintf(text, sizeof text, "%s", job(out, ""));
    snprintf(late.work, sizeof late.work, "%s.prep", out);
    commit_text = text;
    at_point = complete_first;
    assert_ok(stkt_prep_run(&opts, &result, &err, text));
    assert_null(at_point);
    assert_true(result.complete);
    assert_false(stkt_is_there(late.work));
}

static void go_on_when_making(void *context, const stk_prep_progress *progress)
{
    bool *done = context;

    if (progress->phase == STK_PREP_MAKING && !*done) { /* neither task can create its first file */
        mkdir(stkt_text("%s/s-00000.x.npy", late.work), 0755);
        mkdir(stkt_text("%s/s-00003.x.npy", late.work), 0755);
        go_on_late();
    }
    *done |= progress->phase == STK_PREP_MAKING;
}

/* The work folder that a task created is removed although another task uses it when the first one fails. */
static void test_all_refused(void **unused)
{
    stk_prep_opts opts = task(0, 2);
    bool done = false;
    char out[300], text[2000];
    stk_error err;

    (void)unused;
    mkdir(stkt_path("none"), 0755);
    snprintf(out, sizeof out, "%s", output_of("none", "s.npy"));
    snprintf(text, sizeof text, "%s", job(out, "shard_rows: 130"));
    begin_late(out, 1, text, STK_PREP_MAKING, stop_at_first_look);
    opts.progress = go_on_when_making;
    opts.progress_context = &done;
    assert_status(stkt_prep_run(&opts, NULL, &err, text), STK_E_IO);
    assert_says("s-00000.x.npy");
    assert_true(done && stkt_is_there(late.work));
    assert_int_equal(end_late(), 3);
    assert_false(stkt_is_there(late.work));
    assert_int_equal(stkt_count_names(stkt_path("none"), ""), 0);
}

/* A work folder that is locked, of another job, or of a job with other options. */
static void test_work_folder(void **unused)
{
    stk_prep_opts opts = task(0, 2), restart = {.struct_size = sizeof restart, .restart = true},
                  alone = {.struct_size = sizeof alone};
    stk_error err;
    char lock[400];
    struct flock held = {.l_type = F_WRLCK};
    int fd;

    (void)unused;
    assert_ok(stkt_prep_run(&opts, NULL, &err, job(output_of("one", "k.npy"), "")));
    assert_status(
        stkt_prep_run(&opts, NULL, &err, stkt_text("%s", job(output_of("one", "k.npy"), "fields: {x: {alias: true}}"))),
        STK_E_MISMATCH);
    assert_says("output.fields");
    assert_says("the option restart");
    snprintf(lock, sizeof lock, "%s.prep/lock", output_of("one", "k.npy"));
    fd = open(lock, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &held), 0);
    assert_status(stkt_prep_run(&alone, NULL, &err, job(output_of("one", "k.npy"), "")), STK_E_BUSY);
    assert_status(stkt_prep_run(&restart, NULL, &err, job(output_of("one", "k.npy"), "")), STK_E_BUSY);
    close(fd);
    assert_ok(stkt_prep_run(&restart, NULL, &err, job(output_of("one", "k.npy"), "fields: {x: {alias: true}}")));
}

/* A job empties its work folder at the end, so it rejects a folder that contains other files. */
static void test_folder_of_others(void **unused)
{
    stk_prep_opts restart = {.struct_size = sizeof restart, .restart = true};
    char folder[300], file[320], text[2000];
    stk_error err;

    (void)unused;
    snprintf(folder, sizeof folder, "%s", stkt_path("others"));
    snprintf(file, sizeof file, "%s/letters.txt", folder);
    snprintf(text, sizeof text,
             "dataset: {fields: {x: {path: %s.npy}}}\nprep: {piece_bytes: 40KiB, num_workers: 1, temporary: %s}\n"
             "output: {path: %s}\nstats: {fields: {x: {}}}\n",
             input, folder, output_of("one", "l.npy"));
    mkdir(folder, 0755);
    stkt_write_file(file, "dear", 4);
    for (int i = 0; i < 3; i++) {
        if (i == 2) /* only a counting pass */
            memcpy(strstr(text, "output: {path: "), "bench : {path: ", 15);
        assert_status(stkt_prep_run(i == 1 ? &restart : NULL, NULL, &err, text), STK_E_CONFIG);
        if (i < 2)
            assert_says("prep.temporary");
        assert_true(stkt_is_there(file));
    }
    memcpy(strstr(text, "bench : {path: "), "output: {path: ", 15);
    unlink(file);
    assert_ok(stkt_prep_run(NULL, NULL, &err, text));
    assert_false(stkt_is_there(folder));
}

/* The final names are read from a file. Only the job's own files may be removed. */
static void test_commit_file(void **unused)
{
    static const char *const damaged[] = {
        "{}",
        "{\"manifest\": {}, \"files\": [{}], \"making\": \"x\"}",
        "{\"manifest\": {}, \"files\": [{\"temporary\": \"a\", \"final\": \"../a\"}], \"making\": \"x\"}",
        "{\"manifest\": {}, \"files\": [{\"temporary\": \"a\"}], \"making\": \"x\"}",
    };
    char folder[300], work[320], path[340], text[600];
    stk_error err;

    (void)unused;
    snprintf(folder, sizeof folder, "%s", stkt_path("kept"));
    snprintf(work, sizeof work, "%s.prep", output_of("one", "m.npy"));
    snprintf(path, sizeof path, "%s/commit.json", work);
    mkdir(folder, 0755);
    mkdir(work, 0755);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        stkt_write_file(path, damaged[i], strlen(damaged[i]));
        assert_status(stkt_prep_run(NULL, NULL, &err, job(output_of("one", "m.npy"), "")), STK_E_CORRUPT);
        assert_says("the option restart");
    }
    snprintf(text, sizeof text, "{\"manifest\": {}, \"files\": [], \"making\": \"%s\"}", folder);
    stkt_write_file(path, text, strlen(text));
    assert_status(stkt_prep_run(NULL, NULL, &err, job(output_of("one", "m.npy"), "")), STK_E_IO);
    assert_says("the option force"); /* the file to be completed exists and does not belong to this job */
    assert_true(stkt_is_there(folder));
}

static void keep_folder(enum point point, const char *path)
{
    if (point == AFTER_FINAL && strcmp(path, late.manifest) == 0)
        assert_int_equal(system(stkt_text("cp -r %s %s.kept", late.work, late.work)), 0);
}

/* A run was killed before it wrote the manifest, or before it removed the work folder. --force makes the output again,
 * also for another job of this name. */
static void test_force_after_commit(void **unused)
{
    stk_prep_opts opts = {.struct_size = sizeof opts, .force = true};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};
    char out[300], text[2000];

    (void)unused;
    mkdir(stkt_path("forced"), 0755);
    for (int i = 0; i < 4; i++) {
        const bool other = i / 2, unnamed = i % 2;

        snprintf(out, sizeof out, "%s", output_of("forced", stkt_text("w%d.npy", i)));
        snprintf(text, sizeof text, "%s", job(out, ""));
        snprintf(late.work, sizeof late.work, "%s.prep", out);
        snprintf(late.manifest, sizeof late.manifest, "%s", output_of("forced", stkt_text("w%d.manifest.json", i)));
        at_point = keep_folder;
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
        at_point = NULL;
        assert_int_equal(rename(stkt_text("%s.kept", late.work), late.work), 0);
        if (unnamed)
            assert_int_equal(remove(late.manifest), 0);
        if (other)
            strstr(text, "seed: 3")[6] = '4';
        assert_ok(stkt_prep_run(&opts, &result, &err, text));
        assert_true(result.complete);
        if (other || !unnamed)
            assert_int_equal(result.resumed_rows, 0);
        assert_false(stkt_is_there(late.work));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),   cmocka_unit_test(test_idle_tasks),
        cmocka_unit_test(test_merge),        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_statistics),   cmocka_unit_test(test_second_run),
        cmocka_unit_test(test_work_folder),  cmocka_unit_test(test_folder_of_others),
        cmocka_unit_test(test_commit_file),  cmocka_unit_test(test_late_files),
        cmocka_unit_test(test_late_look),    cmocka_unit_test(test_commit_once),
        cmocka_unit_test(test_all_refused),  cmocka_unit_test(test_shard_of_another_run),
        cmocka_unit_test(test_restart_late), cmocka_unit_test(test_force_after_commit),
    };

    stkt_skip_syncs(true);
    mkdir(stkt_path("one"), 0755);
    return cmocka_run_group_tests(tests, setup, NULL);
}
