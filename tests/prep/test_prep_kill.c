/* stki-threads */
/* Jobs in child processes are killed with SIGKILL at random moments and restarted until they finish: the bytes must be
 * those of an uninterrupted run, finished work must not be repeated, and no file may have its final name before the
 * end. */
#include "journal.h"
#include "manifest.h"
#include "prep_file.h"
#include "prep_test.h"
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { ROWS = 900, BYTES = 500, MOST_RUNS = 400 };

static char input[300];
static uint32_t state = 20240607;

static uint32_t next_random(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

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
                     "prep: {piece_bytes: 24KiB, order: random, num_workers: 2}\noutput: {path: %s%s%s}\n",
                     input, input, out, *output ? ", " : "", output);
}

static void sleep_us(int64_t us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};

    nanosleep(&time, NULL);
}

/* Runs the job in a child process and kills it after some time. Returns true if it finished before. */
static bool run_and_kill(const char *text, const stk_prep_opts *opts, int64_t most_us)
{
    int how;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        stk_error err = {0};
        stk_status status = stkt_prep_run(opts, NULL, &err, text);

        if (status != STK_OK)
            fprintf(stderr, "child: %s\n", err.message);
        _exit(status == STK_OK ? 0 : 1);
    }
    if (most_us > 0)
        sleep_us(next_random() % most_us);
    else
        sleep_us(0);
    if (most_us > 0)
        (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how))
        assert_int_equal(WEXITSTATUS(how), 0);
    else
        assert_int_equal(WTERMSIG(how), SIGKILL);
    return WIFEXITED(how);
}

/* Counts the pieces in the journal of a unit. Each must occur once, in order. A format that cannot resume a file
 * rewrites it from the start unless the journal says that the unit is done, so its pieces count only then. */
static int64_t pieces_in(const char *path, bool resumes)
{
    json_t *lines;
    stk_error err = {0};
    int64_t last = -1, count = 0;
    bool done = false;

    assert_ok(stki_journal_read(path, &lines, &err));
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *piece = json_object_get(json_array_get(lines, i), "piece");

        done |= json_is_true(json_object_get(json_array_get(lines, i), "done"));
        if (!piece)
            continue;
        assert_true(json_integer_value(piece) == last + 1 || (last == -1 && json_integer_value(piece) >= 0));
        last = json_integer_value(piece);
        count++;
    }
    json_decref(lines);
    return resumes || done ? count : 0;
}

/* Checks by their inodes that existing spooled pieces are never written again. */
static void check_spooled(const char *work, ino_t *seen, int most)
{
    char path[600];

    snprintf(path, sizeof path, "%s/commit.json", work);
    if (stkt_is_there(path))
        return; /* the pieces are no longer needed */
    snprintf(path, sizeof path, "%s/job.json", work);
    if (!stkt_is_there(path))
        return; /* an empty folder: nothing has been started, or only the folder remains to be removed */
    for (int i = 0; i < most; i++) {
        struct stat st;

        snprintf(path, sizeof path, "%s/pieces/%06d.rows", work, i);
        if (stat(path, &st) != 0) {
            assert_int_equal(seen[i], 0);
            continue;
        }
        assert_true(seen[i] == 0 || seen[i] == st.st_ino);
        seen[i] = st.st_ino;
    }
}

/* The checksums in the manifest must be those of the files. */
static void check_sums(const char *manifest)
{
    stki_manifest list;
    stk_error err = {0};

    assert_ok(stki_manifest_open(manifest, &list, &err));
    for (int i = 0; i < list.count; i++) {
        uint64_t sum;
        int64_t bytes;

        assert_ok(stki_prep_digest_file(list.files[i].path, &sum, &bytes, &err));
        assert_int_equal(bytes, list.files[i].bytes);
        assert_true(sum == list.files[i].xxh3);
    }
    stki_manifest_fini(&list);
}

static void kill_until_done(const char *name, const char *output, bool resumes, const char *const *files)
{
    char out[300], work[320], path[400], commit[400], manifest[300];
    ino_t inodes[64] = {0};
    int64_t pieces = 0, most_us = 6000;
    int kills = 0;

    snprintf(out, sizeof out, "%s", stkt_path(stkt_text("killed/%s", name)));
    snprintf(work, sizeof work, "%s.prep", out);
    assert_true(run_and_kill(job(stkt_path(stkt_text("whole/%s", name)), output), NULL, 0));
    snprintf(manifest, sizeof manifest, "%s", stkt_path(stkt_text("killed/%.1s.manifest.json", name)));
    while (!run_and_kill(job(out, output), NULL, most_us)) {
        int64_t now;

        if (stkt_is_there(manifest) && !stkt_is_there(work))
            break; /* killed after all work was done */
        snprintf(path, sizeof path, "%s/unit-00000.journal", work);
        now = pieces_in(path, resumes);
        if (now < pieces && stkt_is_there(path))
            fail_msg("%s: %lld pieces, %lld before", path, (long long)now, (long long)pieces);
        pieces = now;
        check_spooled(work, inodes, 64);
        snprintf(path, sizeof path, "%s/job.json", work);
        snprintf(commit, sizeof commit, "%s/commit.json", work);
        if (stkt_is_there(path) && !stkt_is_there(commit)) /* files are renamed only after that */
            for (int i = 0; files[i]; i++)
                assert_false(stkt_is_there(stkt_path(stkt_text("killed/%s", files[i]))));
        assert_true(++kills < MOST_RUNS);
        most_us += most_us / 4; /* so that the test finishes on any machine */
    }
    print_message("%s: killed %d times\n", name, kills);
    assert_false(stkt_is_there(work));
    check_sums(manifest);
    for (int i = 0; files[i]; i++)
        stkt_same_file(stkt_path(stkt_text("whole/%s", files[i])), stkt_path(stkt_text("killed/%s", files[i])));
}

#define FILES(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static void test_one_file(void **unused)
{
    (void)unused;
    kill_until_done("a.npy", "", true, FILES("a.x.npy", "a.label.npy"));
    kill_until_done("b.beton", "", true, FILES("b.beton"));
}

static void test_spooled(void **unused)
{
    (void)unused;
    kill_until_done("d.h5", "", false, FILES("d.h5"));
}

static void test_shards(void **unused)
{
    (void)unused;
    kill_until_done("g.npz", "shard_rows: 350", false, FILES("g-00000.npz", "g-00001.npz", "g-00002.npz"));
    kill_until_done("h.npy", "shard_bytes: 60000", true, FILES("h-00000.x.npy", "h-00005.label.npy", "h-00007.x.npy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_spooled),
        cmocka_unit_test(test_shards),
    };

    mkdir(stkt_path("whole"), 0755);
    mkdir(stkt_path("killed"), 0755);
    return cmocka_run_group_tests(tests, setup, NULL);
}
