/* stki-threads */
/* Tests of whole preparation jobs: the same bytes for any number of workers and piece sizes, with and without shards;
 * rejected jobs; the manifest. */
#include "digest.h"
#include "document.h"
#include "faults.h"
#include "manifest.h"
#include "prep_file.h"
#include "prep_test.h"

enum { ROWS = 1500, BYTES = 700 };

static char input[300];

static int setup(void **state)
{
    (void)state;
    snprintf(input, sizeof input, "%s", stkt_path("in"));
    stkt_prep_inputs(input, ROWS, BYTES);
    return 0;
}

/* A job with the test's inputs. `prep` and `output` are inserted into their sections. */
static const char *job(const char *out, const char *prep, const char *output)
{
    return stkt_text("dataset: {fields: {x: {path: %s.npy}, label: {path: %s.label.npy}}}\n"
                     "prep: {piece_bytes: 64KiB%s%s}\noutput: {path: %s%s%s}\n",
                     input, input, *prep ? ", " : "", prep, out, *output ? ", " : "", output);
}

static void run(const char *text)
{
    stk_error err = {0};
    stk_prep_result result = {.struct_size = sizeof result};

    assert_ok(stkt_prep_run(NULL, &result, &err, text));
    assert_true(result.complete);
    assert_int_equal(result.rows, ROWS);
}

static void test_copies(void **state)
{
    char a[300], b[300];
    stk_error err = {0};
    int64_t n;

    (void)state;
    snprintf(a, sizeof a, "%s", stkt_path("one.npy"));
    run(job(a, "num_workers: 1", ""));
    stkt_same_file(stkt_text("%s.npy", input), stkt_path("one.x.npy"));
    stkt_same_file(stkt_text("%s.label.npy", input), stkt_path("one.label.npy"));
    assert_false(stkt_is_there(stkt_path("one.npy.prep")));
    snprintf(b, sizeof b, "%s", stkt_path("one.manifest.json"));
    assert_true(stkt_is_there(b));
    /* A loader can read the manifest and finds the files that it lists. */
    stki_manifest list;

    assert_ok(stki_manifest_open(b, &list, &err));
    assert_int_equal(list.count, 2);
    assert_ok(stki_manifest_check(&list, &err));
    for (int i = 0; i < list.count; i++) {
        uint64_t sum;

        assert_int_equal(list.files[i].rows, ROWS);
        assert_ok(stki_prep_digest_file(list.files[i].path, &sum, &n, &err));
        assert_true(sum == list.files[i].xxh3);
    }
    stki_manifest_fini(&list);
}

/* Checks that the manifest's digest is that of the rest of the manifest without "run", and returns it. */
static char *manifest_digest(const char *path)
{
    json_t *json;
    stk_error err = {0};
    char text[STKI_U128_TEXT], *dump;

    assert_ok(stki_prep_read_json(path, &json, &err));
    char *stated = strdup(json_string_value(json_object_get(json, "digest")));

    json_object_del(json, "run");
    json_object_del(json, "digest");
    dump = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(stki_u128_text(stki_digest(dump, (int64_t)strlen(dump)), text), stated);
    free(dump);
    json_decref(json);
    return stated;
}

static void test_workers_and_formats(void **state)
{
    static const char *const formats[] = {"npy", "npz", "h5", "beton", "pt", "safetensors", "tar"};
    static const char *const ways[] = {"num_workers: 0", "num_workers: 1", "num_workers: 8"};

    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        for (size_t w = 0; w < 3; w++)
            run(job(stkt_path(stkt_text("w%zu/out.%s", w, formats[f])),
                    stkt_text("order: random, seed: 5, %s", ways[w]), ""));
        for (size_t w = 1; w < 3; w++) {
            char *one = manifest_digest(stkt_path("w0/out.manifest.json")),
                 *other = manifest_digest(stkt_path(stkt_text("w%zu/out.manifest.json", w)));

            assert_string_equal(one, other);
            if (strcmp(formats[f], "npy") == 0) {
                stkt_same_file(stkt_path("w0/out.x.npy"), stkt_path(stkt_text("w%zu/out.x.npy", w)));
                stkt_same_file(stkt_path("w0/out.label.npy"), stkt_path(stkt_text("w%zu/out.label.npy", w)));
            } else {
                stkt_same_file(stkt_path(stkt_text("w0/out.%s", formats[f])),
                               stkt_path(stkt_text("w%zu/out.%s", w, formats[f])));
            }
            free(one);
            free(other);
        }
        for (int w = 0; w < 3; w++)
            assert_int_equal(remove(stkt_path(stkt_text("w%d/out.manifest.json", w))), 0);
    }
}

/* The output bytes do not depend on the size of pieces. */
static void test_pieces(void **state)
{
    static const char *const sizes[] = {"4KiB", "10000", "1MiB", "64MiB"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (int f = 0; f < 2; f++)
            run(stkt_text("dataset: {fields: {x: {path: %s.npy}, label: {path: %s.label.npy}}}\n"
                          "prep: {piece_bytes: %s, order: random}\noutput: {path: %s}\n",
                          input, input, sizes[i], stkt_path(stkt_text("w%zu/p%d.%s", i, f, f ? "h5" : "beton"))));
    for (size_t i = 1; i < 4; i++) {
        stkt_same_file(stkt_path("w0/p0.beton"), stkt_path(stkt_text("w%zu/p0.beton", i)));
        stkt_same_file(stkt_path("w0/p1.h5"), stkt_path(stkt_text("w%zu/p1.h5", i)));
    }
}

/* Shards with a given number of rows contain the rows of the whole output in order. The last shard is shorter. */
static void test_shards(void **state)
{
    int64_t at = 128, n, whole_bytes;
    char *whole;

    (void)state;
    run(job(stkt_path("whole.npy"), "order: random", ""));
    run(job(stkt_path("cut.npy"), "order: random", "shard_rows: 400"));
    whole = stkt_read_all(stkt_path("whole.x.npy"), &whole_bytes);
    for (int i = 0; i < 4; i++) {
        char *part = stkt_read_all(stkt_path(stkt_text("cut-%05d.x.npy", i)), &n);

        assert_non_null(part);
        assert_int_equal(n, 128 + (i < 3 ? 400 : 300) * BYTES);
        assert_memory_equal(part + 128, whole + at, (size_t)n - 128);
        at += n - 128;
        free(part);
    }
    assert_false(stkt_is_there(stkt_path("cut-00004.x.npy")));
    free(whole);
}

/* Shards with a given number of bytes are never larger than requested, and do not depend on the number of workers. */
static void test_shard_bytes(void **state)
{
    int64_t rows = 0, n;

    (void)state;
    for (int w = 0; w < 2; w++)
        run(job(stkt_path(stkt_text("w%d/b.npy", w)), w ? "num_workers: 4" : "num_workers: 1", "shard_bytes: 30000"));
    for (int i = 0;; i++) {
        char *part = stkt_read_all(stkt_path(stkt_text("w0/b-%05d.x.npy", i)), &n);

        if (!part)
            break;
        assert_true(n + stkt_file_bytes(stkt_path(stkt_text("w0/b-%05d.label.npy", i))) <= 30000);
        assert_int_equal((n - 128) % BYTES, 0);
        for (int64_t r = 0; r < (n - 128) / BYTES; r++)
            for (int k = 0; k < BYTES; k += 97)
                assert_int_equal((uint8_t)part[128 + r * BYTES + k], stkt_prep_byte(rows + r, k));
        rows += (n - 128) / BYTES;
        stkt_same_file(stkt_path(stkt_text("w0/b-%05d.label.npy", i)), stkt_path(stkt_text("w1/b-%05d.label.npy", i)));
        free(part);
    }
    assert_int_equal(rows, ROWS);
}

static void test_refusals(void **state)
{
    stk_error err;
    const char *out = stkt_path("no.npy");
    static const struct {
        const char *text, *says;
        stk_status status;
    } wrong[] = {
        {"output: {}", "found no path", STK_E_CONFIG},
        {"output: {path: x.npy}\nloader: {}", "prep", STK_E_CONFIG},
        {"output: {path: x.npy}\nprp: {}", "did you mean prep", STK_E_CONFIG},
        {"output: {path: x.xyz}", "output.format", STK_E_CONFIG},
        {"output: {path: x.npy, format: nmy}", "expected one of npy", STK_E_CONFIG},
        {"output: {path: x.npy, shard_row: 3}", "did you mean shard_rows", STK_E_CONFIG},
        {"output: {path: x.npy, shard_rows: 3, shard_bytes: 3}", "shard_rows and shard_bytes", STK_E_CONFIG},
        {"output: {path: x.npy}\nprep: {ordr: random}", "did you mean order", STK_E_CONFIG},
        {"output: {path: x.npy}\nprep: {order: shuffled}", "sequential", STK_E_CONFIG},
        {"output: {path: x.npy}\nprep: {max_errors: 3}", "on_error", STK_E_CONFIG},
        {"output: {path: x.npy}\nstats: {path: y.json}", "NAME.stats.json", STK_E_CONFIG},
        {"output: {path: ../, format: npy}", "file name", STK_E_CONFIG},
        {"output: [3]", "output: expected {path: FILE}", STK_E_CONFIG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stk_prep *made = NULL;

        assert_status(
            stk_prep_open_text(stkt_text("dataset: {fields: {x: {path: %s.npy}}}\n%s\n", input, wrong[i].text), NULL,
                               NULL, 0, NULL, &made, &err),
            wrong[i].status);
        assert_says(wrong[i].says);
    }
    /* Errors that only the data shows. */
    assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "", "fields: {y: {extension: jpg}}")), STK_E_CONFIG);
    assert_says("no field of the data set");
    assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "", "fields: {x: {encode: mp3}}")), STK_E_CONFIG);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "memory_budget: 4KiB", "")), STK_E_LIMIT);
    assert_says("prep.memory_budget is 4096");
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("nowhere/x.npy"), "", "")), STK_E_NOT_FOUND);
    assert_status(
        stkt_prep_run(NULL, NULL, &err,
                      stkt_text("dataset: {fields: {x: {path: %s.gone.npy}}}\noutput: {path: %s}\n", input, out)),
        STK_E_NOT_FOUND);
    assert_false(stkt_is_there(stkt_path("no.npy.prep")));
}

static void test_existing_output(void **state)
{
    const stk_prep_opts force = {.struct_size = sizeof force, .force = true};
    stk_error err;

    (void)state;
    run(job(stkt_path("there.npy"), "", "shard_rows: 100"));
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("there.npy"), "", "")), STK_E_IO);
    assert_says("the option force");
    assert_ok(stkt_prep_run(&force, NULL, &err, job(stkt_path("there.npy"), "", "shard_rows: 700")));
    /* The shards of the old data set that the new one does not have are removed. */
    assert_true(stkt_is_there(stkt_path("there-00002.x.npy")));
    assert_false(stkt_is_there(stkt_path("there-00003.x.npy")));
    assert_false(stkt_is_there(stkt_path("there-00014.label.npy")));
    /* A file without a manifest is not overwritten either. */
    stkt_write_file(stkt_path("file.beton"), "precious", 8);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("file.beton"), "", "")), STK_E_IO);
    assert_says("the option force");
    /* Nor is a file in a format that is written only at the end. The error is returned before any row is written, even
     * to the work folder. */
    stkt_write_file(stkt_path("file.h5"), "precious", 8);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("file.h5"), "", "")), STK_E_IO);
    assert_says("the option force");
    assert_false(stkt_is_there(stkt_path("file.h5.prep/pieces/000000.rows")));
    stkt_write_file(stkt_path("cuts-00000.h5"), "precious", 8);
    assert_status(stkt_prep_run(NULL, NULL, &err, job(stkt_path("cuts.h5"), "", "shard_rows: 100")), STK_E_IO);
    assert_says("the option force");
}

static void test_plan(void **state)
{
    stk_prep *made;
    stk_prep_plan plan = {.struct_size = sizeof plan};
    stk_error err = {0};

    (void)state;
    assert_ok(stk_prep_open_text(job(stkt_path("plan.npy"), "split: {part: val, fraction: 0.5}", "shard_rows: 100"),
                                 NULL, NULL, 0, NULL, &made, &err));
    assert_ok(stk_prep_get_plan(made, &plan, &err));
    assert_int_equal(plan.samples, ROWS);
    assert_int_equal(plan.positions, ROWS / 2);
    assert_int_equal(plan.shards, 8);
    assert_true(plan.output_exact);
    assert_int_equal(plan.output_bytes, ROWS / 2 * (BYTES + 8) + 8 * 2 * 128); /* headers */
    assert_false(plan.output_exists || plan.spooled);
    stk_prep_destroy(made);
    assert_false(stkt_is_there(stkt_path("plan.npy.prep")));
}

/* The work folder is removed at the end and emptied by --restart, so a folder with other contents is rejected. */
static void test_work_folder_of_others(void **state)
{
    const stk_prep_opts ways[] = {
        {.struct_size = sizeof ways[0]},
        {.struct_size = sizeof ways[0], .restart = true},
        {.struct_size = sizeof ways[0], .restart = true, .force = true},
        {.struct_size = sizeof ways[0], .tasks = 2, .task = 1},
    };
    char mine[300], own[300], file[300];
    stk_error err;

    (void)state;
    snprintf(mine, sizeof mine, "%s", stkt_path("mine"));
    snprintf(own, sizeof own, "%s", stkt_path("own"));
    snprintf(file, sizeof file, "%s", stkt_path("mine/precious.txt"));
    assert_int_equal(mkdir(mine, 0755), 0);
    stkt_write_file(file, "precious", 8);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        assert_status(
            stkt_prep_run(&ways[i], NULL, &err, job(stkt_path("kept.npy"), stkt_text("temporary: %s", mine), "")),
            STK_E_CONFIG);
        assert_says("files that belong to no job");
        assert_true(stkt_is_there(file));
        assert_status(stkt_prep_run(&ways[i], NULL, &err,
                                    stkt_text("dataset: {fields: {x: {path: %s.npy}}}\nprep: {temporary: %s}\n"
                                              "stats: {path: %s}\n",
                                              input, mine, stkt_path("kept.json"))),
                      STK_E_CONFIG);
        assert_true(stkt_is_there(file));
        /* The folder in which the output will be. */
        assert_status(stkt_prep_run(&ways[i], NULL, &err,
                                    job(stkt_path("mine/kept.npy"), stkt_text("temporary: %s/../mine/", mine), "")),
                      STK_E_CONFIG);
        assert_says("a folder that contains the output");
        assert_true(stkt_is_there(file));
    }
    assert_false(stkt_is_there(stkt_path("mine/job.json")));
    /* A name that only begins like one of the job's own files. */
    assert_int_equal(rename(file, stkt_path("mine/seconds-2024.csv")), 0);
    assert_status(stkt_prep_run(&ways[0], NULL, &err, job(stkt_path("kept.npy"), stkt_text("temporary: %s", mine), "")),
                  STK_E_CONFIG);
    assert_says("files that belong to no job");
    /* An empty folder is accepted, even if it contains the remains of a process that was killed early, and is removed
     * at the end. */
    assert_int_equal(mkdir(own, 0755), 0);
    assert_int_equal(mkdir(stkt_path("own/pieces"), 0755), 0);
    run(job(stkt_path("kept.npy"), stkt_text("temporary: %s", own), ""));
    assert_false(stkt_is_there(own));
}

/* A job that fails before it reads rows removes the work folder that it created, but not an older one. */
static void test_work_folder_of_refused(void **state)
{
    char work[300];
    stk_error err;

    (void)state;
    snprintf(work, sizeof work, "%s", stkt_path("refused.npy.prep"));
    stkt_write_file(stkt_path("refused.npy"), "mine", 4);
    for (int i = 0; i < 2; i++) {
        assert_status(stkt_prep_run(NULL, NULL, &err,
                                    stkt_text("dataset: {fields: {x: {path: %s.npy}}}\noutput: {path: %s}\n", input,
                                              stkt_path("refused.npy"))),
                      STK_E_IO);
        assert_says("it already exists");
        assert_int_equal(stkt_is_there(work), i);
        (void)mkdir(work, 0755);
    }
}

/* Statistics are not written over their input. */
static void test_statistics_over_input(void **state)
{
    const stk_prep_opts force = {.struct_size = sizeof force, .force = true};
    char copy[300];
    stk_error err;

    (void)state;
    snprintf(copy, sizeof copy, "%s", stkt_path("again"));
    stkt_prep_inputs(copy, ROWS, BYTES);
    assert_status(
        stkt_prep_run(&force, NULL, &err,
                      stkt_text("dataset: {fields: {x: {path: %s.npy}}}\nstats: {path: %s.npy}\n", copy, copy)),
        STK_E_CONFIG);
    assert_says("stats.path");
    stkt_same_file(stkt_text("%s.npy", input), stkt_text("%s.npy", copy));
}

/* ---- a damaged work folder ---- */

struct stop {
    stk_prep *job;
    int64_t last;
};

static void stop_midway(void *context, const stk_prep_progress *now)
{
    struct stop *stop = context;

    stop->last = now->phase == STK_PREP_DONE ? now->rows : -1;
    if (stop->job && now->phase == STK_PREP_MAKING && now->rows > ROWS / 2)
        stk_prep_cancel(stop->job);
}

/* The error names the damaged file and an option that solves the problem, and that option works. */
static void test_damaged_work_folder(void **state)
{
    static const char *const wrong[] = {"job.json", "torn.beton"};
    struct stop stop = {0};
    const stk_prep_opts watched = {.struct_size = sizeof watched,
                                   .progress = stop_midway,
                                   .progress_context = &stop,
                                   .progress_interval_ns = 1},
                        anew = {.struct_size = sizeof anew,
                                .restart = true,
                                .progress = stop_midway,
                                .progress_context = &stop};
    char out[300];
    stk_error err;

    (void)state;
    snprintf(out, sizeof out, "%s", stkt_path("torn.beton"));
    for (size_t i = 0; i < 2; i++) {
        assert_ok(stk_prep_open_text(job(out, "", ""), NULL, NULL, 0, &watched, &stop.job, &err));
        assert_status(stk_prep_run(stop.job, &err), STK_E_CANCELLED);
        stk_prep_destroy(stop.job);
        stop.job = NULL;
        stkt_write_file(stkt_path(stkt_text("torn.beton.prep/%s", wrong[i])), "{", 1);
        assert_status(stkt_prep_run(NULL, NULL, &err, job(out, "", "")), i == 0 ? STK_E_CORRUPT : STK_E_TRUNCATED);
        assert_says("the option restart");
        assert_null(strstr(err.message, "start again:")); /* the advice is given once */
        assert_says(wrong[i]);
        assert_ok(stkt_prep_run(&anew, NULL, &err, job(out, "", "")));
        assert_int_equal(stop.last, ROWS); /* all rows are complete in the end */
        assert_int_equal(remove(out), 0);
        assert_int_equal(remove(stkt_path("torn.manifest.json")), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_workers_and_formats),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_shards),
        cmocka_unit_test(test_shard_bytes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_existing_output),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_work_folder_of_others),
        cmocka_unit_test(test_work_folder_of_refused),
        cmocka_unit_test(test_statistics_over_input),
        cmocka_unit_test(test_damaged_work_folder),
    };

    stkt_skip_syncs(true);
    for (int i = 0; i < 4; i++)
        mkdir(stkt_path(stkt_text("w%d", i)), 0755);
    return cmocka_run_group_tests(tests, setup, NULL);
}
