/* stki-threads */
/* Tests of failures in jobs: a full disk, inputs that disappear, are truncated or are not images, failing system calls
 * and allocations. Each must give a clear error and no output under its final name, and the next run must continue. */
#include "allocate.h"
#include "clock.h"
#include "faults.h"
#include "journal.h"
#include "jpeg_make.h"
#include "leak_check.h"
#include "output.h"
#include "prep_file.h"
#include "prep_test.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

enum { ROWS = 300, BYTES = 2000 };

static char input[300];

static int setup(void **unused)
{
    (void)unused;
    snprintf(input, sizeof input, "%s", stkt_path("in"));
    stkt_prep_inputs(input, ROWS, BYTES);
    return stkt_leak_setup(unused);
}

static const char *job(const char *out, const char *prep)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}, label: {path: %s.label.npy}}}\n"
                     "prep: {piece_bytes: 100KiB, num_workers: 1%s%s}\noutput: {path: %s}\n",
                     input, input, *prep ? ", " : "", prep, out);
}

static void expect_copy(const char *name)
{
    stkt_same_file(stkt_text("%s.npy", input), stkt_path(stkt_text("%s.x.npy", name)));
    stkt_same_file(stkt_text("%s.label.npy", input), stkt_path(stkt_text("%s.label.npy", name)));
}

/* ---- calls that fail ---- */

/* Every write, sync, rename … fails in turn; afterwards the job continues and completes. */
static void test_calls(void **unused)
{
    static const enum stkt_call calls[] = {STKT_WRITE, STKT_SYNC, STKT_CLOSE};
    static const char *const outs[] = {"c.npy", "c.h5"};
    bool told = false, commits = false;
    int told_count = 0;
    stk_error err;

    (void)unused;
    for (size_t o = 0; o < 2; o++)
        for (size_t c = 0; c < 3; c++)
            for (int64_t n = 1; n < 40; n += n < 6 ? 1 : 5) {
                stk_prep_result result = {.struct_size = sizeof result};
                stk_status status;

                stkt_fail_call(calls[c], n, ENOSPC);
                status = stkt_prep_run(NULL, &result, &err, job(stkt_path(outs[o]), ""));
                stkt_fail_call(calls[c], 0, 0);
                /* The error of the run before said that it resumes if, and only if, it does. */
                if (result.resumed_rows > 0 || (status == STK_OK && told))
                    assert_true(told && (result.resumed_rows > 0 || commits));
                told = status != STK_OK && strstr(err.message, "it resumes");
                commits = stkt_is_there(stkt_path(stkt_text("%s.prep/commit.json", outs[o])));
                told_count += told;
                if (status == STK_OK) {
                    remove(stkt_path("c.manifest.json"));
                    remove(stkt_path("c.x.npy"));
                    remove(stkt_path("c.label.npy"));
                    remove(stkt_path("c.h5"));
                    break;
                }
                assert_int_equal(status, STK_E_IO);
                assert_says("No space left");
                assert_false(stkt_is_there(stkt_path("c.manifest.json")));
            }
    assert_true(told_count > 0);
    /* Writes to the journal are incomplete. */
    for (int64_t n = 1; n < 4; n++) {
        stkt_fail_call(STKT_JOURNAL_WRITE, n, EIO);
        assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("j.npy"), "")), STK_E_IO);
        assert_false(stkt_is_there(stkt_path("j.x.npy")));
    }
    stkt_fail_call(STKT_JOURNAL_WRITE, 0, 0);
    assert_ok(stkt_prep_run(NULL, NULL, &err, job(stkt_path("j.npy"), "")));
    expect_copy("j");
}

/* The n-th allocation fails, for many n; each run continues in the same work folder. */
static void test_memory(void **unused)
{
    static const char *const outs[] = {"m.npy", "m.npz"};
    stk_error err = {0};

    (void)unused;
    for (size_t o = 0; o < 2; o++) {
        int failures = 0;

        for (int64_t n = 1;; n += n < 200 ? 1 : 37) {
            stk_status status;

            stki_memory_fail_at(n);
            status = stkt_prep_run(NULL, NULL, &err, job(stkt_path(outs[o]), ""));
            stki_memory_fail_at(0);
            if (status == STK_OK)
                break;
            if (status != STK_E_MEMORY)
                fail_msg("allocation %lld: %s: %s", (long long)n, stk_status_name(status), err.message);
            failures++;
            /* The last step that can fail is the removal of the work folder. */
            assert_true(!stkt_is_there(stkt_path("m.manifest.json")) ||
                        stkt_is_there(stkt_path(stkt_text("%s.prep/commit.json", outs[o]))));
        }
        assert_true(failures > 100);
        remove(stkt_path("m.manifest.json"));
    }
    expect_copy("m");
}

/* ---- a full disk ---- */

static bool write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = file < 0 ? -1 : write(file, text, strlen(text));

    if (file >= 0)
        close(file);
    return n == (ssize_t)strlen(text);
}

static bool make_small_disk(const char *disk)
{
    char users[64], groups[64];

    if (mkdir(disk, 0700) && errno != EEXIST)
        return false;
    snprintf(users, sizeof users, "0 %d 1", (int)getuid());
    snprintf(groups, sizeof groups, "0 %d 1", (int)getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) || !write_text("/proc/self/setgroups", "deny") ||
        !write_text("/proc/self/uid_map", users) || !write_text("/proc/self/gid_map", groups))
        return false;
    return mount("tmpfs", disk, "tmpfs", 0, "size=1m") == 0;
}

static void note_counting(void *context, const stk_prep_progress *now)
{
    *(bool *)context |= now->phase == STK_PREP_COUNTING;
}

static void test_full_disk(void **unused)
{
    static char filler[700 << 10];
    const char *disk = stkt_path("disk");
    bool counted = false;
    stk_prep_opts unchecked = {.struct_size = sizeof unchecked, .no_space_check = true},
                  noticed = {.struct_size = sizeof noticed, .progress = note_counting, .progress_context = &counted};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;
    char file[300], out[300];

    (void)unused;
    if (!make_small_disk(disk))
        skip();
    snprintf(file, sizeof file, "%s/filler", disk);
    snprintf(out, sizeof out, "%s/out.npy", disk);
    stkt_write_file(file, filler, sizeof filler);
    assert_status(stkt_prep_run(&noticed, NULL, &err,
                                stkt_text("dataset: {fields: {x: {path: %s.npy, transforms: [{normalize: {stats: "
                                          "job}}]}}}\noutput: {path: %s}\n",
                                          input, out)),
                  STK_E_LIMIT);
    assert_says("the option no_space_check");
    assert_false(counted); /* it is detected before counting */
    assert_int_equal(stkt_count_names(disk, "out"), 0);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "")), STK_E_LIMIT);
    assert_says("the option no_space_check");
    assert_status(stkt_prep_run(&unchecked, NULL, &err, job(out, "")), STK_E_IO);
    assert_says("No space left");
    assert_says("run the job again when there is: it resumes");
    assert_int_equal(stkt_count_names(disk, "out"), 1); /* the work folder */
    assert_int_equal(remove(file), 0);
    assert_ok(stkt_prep_run(NULL, &result, &err, job(out, "")));
    assert_true(result.resumed_rows > 0);
    stkt_same_file(stkt_text("%s.npy", input), stkt_text("%s/out.x.npy", disk));
    assert_int_equal(stkt_count_names(disk, ".prep"), 0);
}

static const char *one_field(const char *out)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}}}\noutput: {path: %s}\n", input, out);
}

static void test_unwritable(void **unused)
{
    stk_error err;

    (void)unused;
    if (geteuid() == 0) { /* root is allowed to write everywhere except in /proc */
        assert_status(stkt_prep_run(NULL, NULL, &err, job("/proc/out.npy", "")), STK_E_NOT_FOUND);
    } else {
        mkdir(stkt_path("closed"), 0500);
        assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("closed/out.npy"), "")), STK_E_IO);
        assert_says("ermission");
    }
    stkt_write_file(stkt_path("file"), "x", 1);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("file/out.npy"), "")), STK_E_IO);
    assert_says("another kind of file");
    mkdir(stkt_path("long"), 0700);
    for (int length = 237; length <= 238; length++) { /* with .manifest.json.tmp added, at most 255 bytes */
        char name[300];

        snprintf(name, sizeof name, "%.*s.npy", length, (char[300]){[0 ... 298] = 'x'});
        assert_status(stkt_prep_run(NULL, NULL, &err, one_field(stkt_text("%s/%s", stkt_path("long"), name))),
                      length > 237 ? STK_E_CONFIG : STK_OK);
    }
    assert_says("too long");
    for (int length = 245; length <= 246; length++) { /* with .prep.lock and .json.prep added */
        char text[1024];

        snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s.npy}}}\nstats: {path: %s/%.*s.json}\n", input,
                 stkt_path("long"), length, (char[300]){[0 ... 298] = 'y'});
        assert_status(stkt_prep_run(NULL, NULL, &err, text), length > 245 ? STK_E_CONFIG : STK_OK);
    }
    assert_says("too long");
    mkdir(stkt_path("taken.npy"), 0700);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("taken.npy"), "")), STK_E_IO);
    assert_says("a folder");
}

/* ---- inputs ---- */

/* Many files with one row each. */
static void make_rows(const char *folder, int count)
{
    int64_t shape[1] = {64};
    stk_error err = {0};
    uint8_t row[64];

    mkdir(stkt_path(folder), 0700);
    for (int i = 0; i < count; i++) {
        stk_npy_writer *writer;

        memset(row, i, sizeof row);
        assert_ok(
            stk_npy_create(stkt_path(stkt_text("%s/%03d.npy", folder, i)), STK_U8, 0, NULL, false, &writer, &err));
        assert_ok(stk_npy_append(writer, row, shape[0], &err));
        assert_ok(stk_npy_commit(writer, &err));
    }
}

static const char *rows_job(const char *folder, const char *out, const char *prep)
{
    char pattern[300];

    snprintf(pattern, sizeof pattern, "%s", stkt_path(folder));
    return stkt_text("dataset: {fields: {x: {path: '%s/*.npy', source: {sample_per_file: true}}}}\n"
                     "prep: {piece_bytes: 4KiB, num_workers: 0%s%s}\noutput: {path: %s}\n",
                     pattern, *prep ? ", " : "", prep, stkt_path(out));
}

enum { OPENING = -1 };

struct meddler {
    const char *path; /* a file that the callback removes, truncates (cut) or changes (touches) */
    bool cut, touches;
    stk_prep *job;
    bool cancels;
    int32_t phase; /* the phase in which the callback acts; 0: STK_PREP_MAKING; OPENING: when files are opened */
    int skip;      /* number of calls in this phase that are ignored first */
};

/* Changes one byte of the values; a second call restores it. */
static void touch(const char *path)
{
    const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_sec = 86400, .tv_nsec = 5}};
    int file = open(path, O_RDWR | O_CLOEXEC);
    char byte;

    assert_int_equal(pread(file, &byte, 1, 140), 1);
    byte = (char)(byte ^ 0x55);
    assert_int_equal(pwrite(file, &byte, 1, 140), 1);
    close(file);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void meddle(void *context, const stk_prep_progress *now)
{
    struct meddler *m = context;

    if (now->phase != (m->phase == OPENING ? STK_PREP_OPENING : m->phase ? m->phase : STK_PREP_MAKING) || m->skip-- > 0)
        return;
    if (m->cancels)
        stk_prep_cancel(m->job);
    else if (m->touches && m->path)
        touch(m->path);
    else if (m->path && m->cut)
        assert_int_equal(truncate(m->path, 100), 0);
    else if (m->path)
        assert_int_equal(remove(m->path), 0);
    m->path = NULL;
}

static void set_times(const char *path, const struct stat *as)
{
    const struct timespec times[] = {as->st_atim, as->st_mtim};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* An input that is temporarily missing or truncated: once its bytes and modification time are restored, the job
 * continues. */
static void test_inputs(void **unused)
{
    char path[300];
    struct stat before;
    stk_error err;
    stk_prep_result result = {.struct_size = sizeof result};
    int64_t n;

    (void)unused;
    for (int cut = 0; cut < 2; cut++) {
        struct meddler m = {.cut = cut};
        stk_prep_opts opts = {.struct_size = sizeof opts, .progress = meddle, .progress_context = &m};
        char *saved;

        make_rows("rows", 100);
        snprintf(path, sizeof path, "%s", stkt_path("rows/099.npy"));
        saved = stkt_read_all(path, &n);
        assert_int_equal(stat(path, &before), 0);
        m.path = path;
        assert_status(stkt_prep_run(&opts, NULL, &err, rows_job("rows", "fail.npy", "")),
                      cut ? STK_E_TRUNCATED : STK_E_NOT_FOUND);
        assert_says("099.npy");
        assert_false(stkt_is_there(stkt_path("fail.npy")));
        stkt_write_file(path, saved, (size_t)n);
        free(saved);
        assert_status(stkt_prep_run(NULL, &result, &err, rows_job("rows", "fail.npy", "")), STK_E_MISMATCH);
        assert_says("099.npy");
        assert_says("the option restart");
        set_times(path, &before);
        assert_ok(stkt_prep_run(NULL, &result, &err, rows_job("rows", "fail.npy", "")));
        assert_int_equal(result.rows, 100);
        remove(stkt_path("fail.npy"));
        remove(stkt_path("fail.manifest.json"));
    }
}

/* Values change in a file of the same size, between two runs and during one: the job fails and names the file before
 * any output gets its final name. Also with a counting pass. */
static void test_inputs_in_place(void **unused)
{
    static const char *const outputs[] = {"place.npy", "place.h5"},
                             counted[] = ", transforms: [{normalize: {stats: job}}]";
    stk_error err;
    struct stat before;
    char path[300];

    (void)unused;
    for (int i = 0; i < 8; i++) {
        const bool during = i & 2;
        struct meddler m = {.cancels = !during, .touches = during};
        stk_prep_opts opts = {.struct_size = sizeof opts, .progress = meddle, .progress_context = &m};
        char text[4096];

        make_rows("place", 40);
        snprintf(text, sizeof text,
                 "dataset: {fields: {x: {path: '%s/*.npy', source: {sample_per_file: true}%s}}}\n"
                 "prep: {piece_bytes: 4KiB, num_workers: 0, inputs: digests}\noutput: {path: %s}\n",
                 stkt_path("place"), i < 4 ? "" : counted, stkt_path(outputs[i % 2]));
        snprintf(path, sizeof path, "%s", stkt_path("place/031.npy"));
        assert_int_equal(stat(path, &before), 0);
        m.path = during ? path : NULL;
        assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &m.job, &err));
        assert_status(stk_prep_run(m.job, &err), during ? STK_E_MISMATCH : STK_E_CANCELLED);
        stk_prep_destroy(m.job);
        if (!during) {
            touch(path);
            assert_status(stkt_prep_run(NULL, NULL, &err, text), STK_E_MISMATCH);
        }
        assert_says("031.npy");
        assert_false(stkt_is_there(stkt_path(outputs[i % 2])));
        touch(path);
        set_times(path, &before);
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
        (void)remove(stkt_path("place.stats.json"));
        assert_int_equal(remove(stkt_path(outputs[i % 2])) + remove(stkt_path("place.manifest.json")), 0);
    }
}

/* An input changes while it is counted, or between the counting pass and the writing pass. */
static void test_inputs_counted(void **unused)
{
    static const struct {
        int32_t phase;
        int skip; /* 1: ignores the first opening, which only inspects the file */
        const char *field, *prep, *out;
    } cases[] = {
        {STK_PREP_COUNTING, 0, ", transforms: [{normalize: {stats: job}}]", "output", "seen.npy"},
        {OPENING, 1, ", transforms: [{normalize: {stats: job}}]", "output", "seen.npy"},
        {STK_PREP_COUNTING, 0, "", "stats", "seen.json"},
    };
    stk_error err;
    struct stat before;
    char path[300];

    (void)unused;
    make_rows("seen", 40);
    snprintf(path, sizeof path, "%s", stkt_path("seen/031.npy"));
    assert_int_equal(stat(path, &before), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct meddler m = {.path = path, .touches = true, .phase = cases[i].phase, .skip = cases[i].skip};
        stk_prep_opts opts = {.struct_size = sizeof opts, .progress = meddle, .progress_context = &m, .restart = true};

        assert_status(
            stkt_prep_run(&opts, NULL, &err,
                          stkt_text("dataset: {fields: {x: {path: '%s/*.npy', source: {sample_per_file: "
                                    "true}%s}}}\nprep: {num_workers: 0}\n%s: {path: %s}\n",
                                    stkt_path("seen"), cases[i].field, cases[i].prep, stkt_path(cases[i].out))),
            STK_E_MISMATCH);
        assert_says("031.npy");
        assert_false(stkt_is_there(stkt_path(cases[i].out)));
        touch(path);
        set_times(path, &before);
    }
}

/* JPEG images of the same size and different shades. */
static void make_images(const char *folder, int count)
{
    mkdir(stkt_path(folder), 0700);
    for (int i = 0; i < count; i++) {
        uint8_t pixels[24 * 16 * 3];
        stkt_bytes image;

        memset(pixels, i, sizeof pixels);
        image = stkt_jpeg_make(&(stkt_jpeg){.width = 24, .height = 16, .quality = 100, .pixels = pixels});
        stkt_write_file(stkt_path(stkt_text("%s/%03d.jpg", folder, i)), image.data, image.size);
        free(image.data);
    }
}

static const char *images_job(const char *folder, const char *out, const char *prep)
{
    char path[300];

    snprintf(path, sizeof path, "%s", stkt_path(folder));
    return stkt_text(
        "dataset: {fields: {x: {path: %s, source: {name: image}}}}\nprep: {piece_bytes: 9000, num_workers: 2%s%s}\n"
        "output: {path: %s}\n",
        path, *prep ? ", " : "", prep, stkt_path(out));
}

/* The output is complete, and then an input is replaced by an older file of the same size. */
static void test_inputs_older(void **unused)
{
    static const struct timespec old[] = {{.tv_sec = 86400}, {.tv_sec = 86400}};
    stk_error err;
    stk_prep_result result = {.struct_size = sizeof result};
    stk_prep *job;
    struct stat before;
    char path[300], text[4096];

    (void)unused;
    for (int i = 0; i < 5; i++) {
        const bool digests = i % 2, folder = i / 2 == 1, statistics = i / 2 == 2;

        make_images("pictures", 20);
        make_rows("old", 1);
        snprintf(path, sizeof path, "%s", stkt_path(folder ? "pictures/013.jpg" : "old/000.npy"));
        assert_int_equal(stat(path, &before), 0);
        snprintf(text, sizeof text, "dataset: {fields: {x: {path: %s%s}}}\nprep: {%s}\n%s: {path: %s}\n",
                 stkt_path(folder ? "pictures" : "old/000.npy"), folder ? ", source: {name: image}" : "",
                 digests ? "inputs: digests" : "num_workers: 1", statistics ? "stats" : "output",
                 stkt_path(statistics ? "older.json" : "older.npy"));
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
        assert_ok(stkt_prep_run(NULL, &result, &err, text));
        assert_true(result.complete);
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
        if (digests) /* the bytes are equal */
            assert_ok(stkt_prep_run(NULL, &result, &err, text));
        touch(path);
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
        assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &job, &err));
        assert_status(stk_prep_run(job, &err), STK_E_MISMATCH);
        assert_int_equal(stk_prep_note_count(job), 0); /* not that the output is complete */
        stk_prep_destroy(job);
        assert_says(digests && folder ? "pictures" : folder ? "013.jpg" : "000.npy");
        set_times(path, &before); /* the next call restores its bytes */
        touch(path);
        set_times(path, &before);
        assert_ok(stkt_prep_run(NULL, &result, &err, text));
        (void)(remove(stkt_path("older.json")) + remove(stkt_path("older.npy")));
        (void)remove(stkt_path("older.manifest.json"));
    }
}

static void test_skip(void **unused)
{
    enum { IMAGE = 24 * 16 * 3 };
    char *text;
    stk_error err;
    stk_prep_result result = {.struct_size = sizeof result};
    int64_t n;

    (void)unused;
    make_images("some", 200);
    for (int i = 0; i < 3; i++) /* three truncated ones */
        assert_int_equal(truncate(stkt_path(stkt_text("some/%03d.jpg", 60 * i + 17)), 630), 0);
    assert_status(stkt_prep_run(NULL, NULL, &err, images_job("some", "s.npy", "")), STK_E_TRUNCATED);
    assert_says("017.jpg");
    assert_status(stkt_prep_run(NULL, NULL, &err,
                                images_job("some", "t.npy", "on_error: skip, max_errors: 2, max_error_fraction: 1")),
                  STK_E_LIMIT);
    assert_says("max_errors");
    assert_status(stkt_prep_run(NULL, NULL, &err, images_job("some", "u.npy", "on_error: skip")), STK_E_LIMIT);
    assert_says("at most 2"); /* one in a hundred */
    /* A job continues with a larger error budget, and a failed job continues with on_error: skip. */
    assert_ok(
        stkt_prep_run(NULL, &result, &err, images_job("some", "u.npy", "on_error: skip, max_error_fraction: 0.02")));
    assert_true(result.resumed_rows > 0);
    assert_ok(
        stkt_prep_run(NULL, &result, &err, images_job("some", "s.npy", "on_error: skip, max_error_fraction: 0.02")));
    stkt_same_file(stkt_path("u.npy"), stkt_path("s.npy"));
    assert_ok(
        stkt_prep_run(NULL, &result, &err, images_job("some", "v.npy", "on_error: skip, max_error_fraction: 0.02")));
    assert_int_equal(result.rows, 197);
    assert_int_equal(result.skipped, 3);
    stkt_same_file(stkt_path("u.npy"), stkt_path("v.npy"));
    stkt_same_file(stkt_path("u.skipped.jsonl"), stkt_path("v.skipped.jsonl"));
    text = stkt_read_all(stkt_path("v.skipped.jsonl"), &n);
    assert_non_null(text);
    assert_non_null(strstr(text, "017.jpg"));
    assert_non_null(strstr(text, "\"position\":77"));
    assert_non_null(strstr(text, "truncated"));
    free(text);
    text = stkt_read_all(stkt_path("v.npy"), &n);
    assert_int_equal(n, 128 + 197 * IMAGE);
    for (int i = 0; i < 197; i++) {
        const int image = i + (i >= 17) + (i + 1 >= 77) + (i + 2 >= 137);

        if (abs((uint8_t)text[128 + i * IMAGE] - image) > 2)
            fail_msg("row %d: found %d, expected about %d", i, (uint8_t)text[128 + i * IMAGE], image);
    }
    free(text);
}

/* Undecoded images that the output cannot store: a PNG image, and one that is larger than a page of .beton. */
static void test_skip_unsuitable(void **unused)
{
    static const struct {
        const char *name, *options;
        int skipped;
    } outputs[] = {{"fit.tar", "fields: {x: {extension: jpg}}", 1}, {"fit.beton", "page_bytes: 2MiB", 2}};
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;
    int64_t n;
    char *png = stkt_read_all(STKT_TESTS_DIR "/data/voc-mask.png", &n);

    (void)unused;
    make_images("fit", 200);
    stkt_write_file(stkt_path("fit/005.jpg"), png, (size_t)n);
    free(png);
    assert_int_equal(truncate(stkt_path("fit/007.jpg"), 3 << 20), 0);
    for (int i = 0; i < 4; i++) {
        const int skipped = outputs[i / 2].skipped;
        stk_prep_estimate estimate = {.struct_size = sizeof estimate};
        stk_prep *job;
        char *list, text[2048];

        snprintf(text, sizeof text,
                 "dataset: {fields: {x: {path: %s, source: {name: image, decode: none}}}}\n"
                 "prep: {num_workers: 1%s}\noutput: {path: %s, %s}\n",
                 stkt_path("fit"), i % 2 ? ", on_error: skip" : "", stkt_path(outputs[i / 2].name),
                 outputs[i / 2].options);
        assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &job, &err));
        if (i % 2 == 0) {
            assert_status(stk_prep_get_estimate(job, 0, &estimate, &err), STK_E_BAD_VALUE);
            assert_says("fit/005.jpg: record 5: field x: found a ");
            assert_status(stk_prep_run(job, &err), STK_E_BAD_VALUE);
            assert_says("fit/005.jpg: record 5: field x: found a ");
        } else {
            assert_ok(stk_prep_get_estimate(job, 0, &estimate, &err));
            assert_int_equal(estimate.failed_rows, skipped);
            assert_ok(stk_prep_run(job, &err));
            assert_ok(stk_prep_get_result(job, &result, &err));
            assert_int_equal(result.rows, 200 - skipped);
            assert_int_equal(result.skipped, skipped);
            list = stkt_read_all(result.skipped_path, &n);
            assert_non_null(strstr(list, "fit/005.jpg\""));
            assert_int_equal(strstr(list, "fit/007.jpg\"") != NULL, skipped == 2);
            free(list);
            assert_int_equal(remove(stkt_path("fit.manifest.json")) + remove(result.skipped_path), 0);
        }
        stk_prep_destroy(job);
    }
}

/* A sparse input of ten times the budget: rows in progress never take more than the budget, however few batches there
 * are. */
static void test_budget(void **unused)
{
    enum { MIB = 1 << 20, ROW = 64 << 10 };
    static const struct {
        const char *budget;
        int64_t bytes;
    } budgets[] = {{"8MiB", 8 * MIB}, {"4200KiB", 4200 * 1024}};
    const char *path = stkt_path("sparse.bin");
    stk_error err;
    int64_t n;
    char *text;

    (void)unused;
    stkt_write_file(path, "begin", 5);
    assert_int_equal(truncate(path, 80 * MIB), 0);
    for (int i = 0; i < 2; i++) {
        stki_memory_stats slots, host;
        stk_prep_result result = {.struct_size = sizeof result};

        stki_memory_reset_peak(STKI_MEM_SLOT);
        stki_memory_reset_peak(STKI_MEM_HOST);
        assert_ok(stkt_prep_run(NULL, &result, &err,
                                stkt_text("dataset: {fields: {x: {path: %s, source: {format: raw, dtype: uint8, shape: "
                                          "[%d]}}}}\n"
                                          "prep: {memory_budget: %s, num_workers: 2}\noutput: {path: %s}\n",
                                          path, ROW, budgets[i].budget, stkt_path("dense.npy"))));
        stki_memory_read(STKI_MEM_SLOT, &slots);
        stki_memory_read(STKI_MEM_HOST, &host);
        assert_int_equal(result.rows, 1280);
        assert_true(slots.peak_bytes <= budgets[i].bytes);
        assert_true(host.peak_bytes < 4 * MIB); /* memory that does not depend on the input */
        text = stkt_read_all(stkt_path("dense.npy"), &n);
        assert_int_equal(n, 128 + 80 * MIB);
        assert_memory_equal(text + 128, "begin", 5);
        free(text);
        remove(stkt_path("dense.npy"));
        remove(stkt_path("dense.manifest.json"));
    }
}

/* A job is cancelled in its own progress callback. The next run continues. */
static void test_cancel(void **unused)
{
    struct meddler m = {.cancels = true};
    stk_prep_opts opts = {
        .struct_size = sizeof opts, .progress = meddle, .progress_context = &m, .progress_interval_ns = 1};
    stk_error err;

    (void)unused;
    assert_ok(stk_prep_open_text(job(stkt_path("x.npy"), ""), NULL, NULL, 0, &opts, &m.job, &err));
    assert_status(stk_prep_run(m.job, &err), STK_E_CANCELLED);
    stk_prep_destroy(m.job);
    assert_false(stkt_is_there(stkt_path("x.x.npy")));
    assert_ok(stkt_prep_run(NULL, NULL, &err, job(stkt_path("x.npy"), "")));
    expect_copy("x");
}

/* The manifest has the seconds of all runs: a cancelled run is recorded as a thousand seconds. */
static void test_seconds(void **unused)
{
    static const char *const steps[] = {"", ", transforms: [{normalize: {stats: job}}]"};
    const char *work = stkt_path("long.npy.prep");
    char text[4096], name[300];

    (void)unused;
    for (int counts = 0; counts < 2; counts++) {
        struct meddler m = {.cancels = true, .phase = counts ? STK_PREP_COUNTING : STK_PREP_MAKING, .skip = 1};
        stk_prep_opts opts = {
            .struct_size = sizeof opts, .progress = meddle, .progress_context = &m, .progress_interval_ns = 1};
        const int64_t began = stki_now_ns();
        const struct dirent *entry;
        struct stat about;
        int files = 0;
        json_t *manifest;
        stk_error err;
        DIR *folder;

        snprintf(text, sizeof text,
                 "dataset: {fields: {x: {path: %s.npy%s}}}\nprep: {piece_bytes: 100KiB, num_workers: 0}\n"
                 "output: {path: %s}\n",
                 input, steps[counts], stkt_path("long.npy"));
        for (int run = 0; run < 2; run++) {
            m.skip = 1;
            assert_ok(stk_prep_open_text(text, NULL, NULL, 0, &opts, &m.job, &err));
            assert_status(stk_prep_run(m.job, &err), STK_E_CANCELLED);
            stk_prep_destroy(m.job);
        }
        folder = opendir(work);
        assert_non_null(folder);
        assert_int_equal(stat(work, &about), 0);
        const mode_t may_read = about.st_mode & 0444;

        while ((entry = readdir(folder)) != NULL)
            if (strncmp(entry->d_name, "seconds-", 8) == 0) {
                snprintf(name, sizeof name, "%s/%s", work, entry->d_name);
                assert_int_equal(stat(name, &about), 0);
                assert_int_equal(about.st_mode & 0444, may_read); /* tasks of other users must also read them */
                stkt_write_file(name, "1000000000000", 13);
                files++;
            }
        closedir(folder);
        assert_int_equal(files, 2);
        /* Impossible times count as zero. */
        stkt_write_file(stkt_text("%s/seconds-aaaaaa", work), "9223372036854775807", 19);
        stkt_write_file(stkt_text("%s/seconds-bbbbbb", work), "9223372036854775807", 19);
        stkt_write_file(stkt_text("%s/seconds-cccccc", work), "-1000000000000", 14);
        assert_ok(stkt_prep_run(NULL, NULL, &err, text));
        assert_ok(stki_prep_read_json(stkt_path("long.manifest.json"), &manifest, &err));
        const double seconds = json_real_value(json_object_get(json_object_get(manifest, "run"), "seconds"));

        assert_true(seconds > 2000 && seconds <= 2000 + (double)(stki_now_ns() - began) * 1e-9);
        json_decref(manifest);
        assert_int_equal(remove(stkt_path("long.npy")) + remove(stkt_path("long.manifest.json")), 0);
        (void)remove(stkt_path("long.stats.json"));
    }
}

/* A journal that is damaged anywhere but at its end is not used. */
static void test_journal(void **unused)
{
    struct meddler m = {.cancels = false};
    stk_prep_opts restart = {.struct_size = sizeof restart, .restart = true};
    char path[300];
    char *text;
    int64_t n;
    stk_error err;

    (void)unused, (void)m;
    stkt_fail_call(STKT_JOURNAL_WRITE, 4, EIO);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("y.npy"), "")), STK_E_IO);
    stkt_fail_call(STKT_JOURNAL_WRITE, 0, 0);
    snprintf(path, sizeof path, "%s", stkt_path("y.npy.prep/unit-00000.journal"));
    text = stkt_read_all(path, &n);
    text[40] ^= 1;
    stkt_write_file(path, text, (size_t)n);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("y.npy"), "")), STK_E_CORRUPT);
    assert_says("the option restart");
    free(text);
    assert_ok(stkt_prep_run(&restart, NULL, &err, job(stkt_path("y.npy"), "")));
    expect_copy("y");
}

/* A byte of a finished piece changes before the job resumes. */
static void test_damaged_piece(void **unused)
{
    static const char *const files[] = {"z0.npy/z0.x.npy", "z1.npy/z1.label.npy", "z2.raw/z2.x.raw", "z3.tar/z3.tar"};
    const stk_prep_opts restart = {.struct_size = sizeof restart, .restart = true};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *slash = strchr(files[i], '/');
        char out[300], path[300], byte;
        int file;

        snprintf(out, sizeof out, "%s", stkt_path(stkt_text("%.*s", (int)(slash - files[i]), files[i])));
        snprintf(path, sizeof path, "%s.prep%s", out, slash);
        stkt_fail_call(STKT_JOURNAL_WRITE, 4, EIO);
        assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "")), STK_E_IO);
        stkt_fail_call(STKT_JOURNAL_WRITE, 0, 0);
        file = open(path, O_RDWR | O_CLOEXEC);
        assert_int_equal(pread(file, &byte, 1, 700), 1);
        byte = (char)(byte ^ 1);
        assert_int_equal(pwrite(file, &byte, 1, 700), 1);
        close(file);
        assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "")), STK_E_CORRUPT);
        assert_string_equal(err.file, path);
        assert_says("the option restart");
        assert_false(stkt_is_there(stkt_path(stkt_text("z%zu.manifest.json", i))));
        assert_ok(stkt_prep_run(&restart, NULL, &err, job(out, "")));
    }
    expect_copy("z0");
    expect_copy("z1");
}

static stk_status count_seen(void *context, json_t *line, stk_error *err)
{
    (void)err;
    *(int64_t *)context += json_integer_value(json_object_get(line, "seen"));
    return STK_OK;
}

/* A long journal is read line by line. An incomplete line is ignored. */
static void test_journal_lines(void **unused)
{
    char path[300];
    stki_journal *journal, *other;
    json_t *lines, *line;
    int64_t seen = 0, bytes;
    char *text;
    stk_error err;

    (void)unused;
    snprintf(path, sizeof path, "%s", stkt_path("lines.journal"));
    assert_ok(stki_journal_read(path, &lines, &err)); /* there is no journal */
    assert_int_equal(json_array_size(lines), 0);
    json_decref(lines);
    assert_ok(stki_journal_open(path, &journal, &lines, &err));
    json_decref(lines);
    for (int i = 1; i <= 3; i++) {
        line = json_pack("{s:i, s:i}", "piece", i, "seen", 10 * i);
        assert_ok(stki_journal_append(journal, line, &err));
        json_decref(line);
    }
    assert_status(stki_journal_open(path, &other, &lines, &err), STK_E_BUSY);
    stki_journal_close(journal);
    text = stkt_read_all(path, &bytes);
    stkt_write_file(path, text, (size_t)bytes - 2);
    free(text);
    assert_ok(stki_journal_each(path, count_seen, &seen, &err));
    assert_int_equal(seen, 30);
    assert_ok(stki_journal_open(path, &journal, &lines, &err));
    assert_int_equal(json_array_size(lines), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(lines, 1), "piece")), 2);
    assert_null(json_object_get(json_array_get(lines, 1), "seen"));
    json_decref(lines);
    assert_ok(stki_journal_clear(journal, &err));
    line = json_pack("{s:i, s:i}", "piece", 7, "seen", 5);
    assert_ok(stki_journal_append(journal, line, &err));
    json_decref(line);
    stki_journal_close(journal);
    seen = 0;
    assert_ok(stki_journal_each(path, count_seen, &seen, &err));
    assert_int_equal(seen, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),           cmocka_unit_test(test_memory),
        cmocka_unit_test(test_unwritable),      cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_inputs_in_place), cmocka_unit_test(test_skip),
        cmocka_unit_test(test_skip_unsuitable), cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_journal),         cmocka_unit_test(test_journal_lines),
        cmocka_unit_test(test_budget),          cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_inputs_counted),  cmocka_unit_test(test_seconds),
        cmocka_unit_test(test_inputs_older),    cmocka_unit_test(test_damaged_piece),
    };

    return cmocka_run_group_tests(tests, setup, stkt_leak_teardown);
}
