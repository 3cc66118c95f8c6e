/* loadbench_study.c: see loadbench_study.h. Everything after the measurement uses the result's JSON, so results saved
 * with --format=json can be compared, checked and reported like new ones. With --format=json, text goes to stderr, and
 * stdout contains only the JSON. */
#include "loadbench_study.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_compare.h"
#include "loadbench_json_parts.h"
#include "loadbench_output.h"
#include "loadbench_report.h"
#include "loadbench_require.h"
#include "loadbench_result.h"
#include "loadbench_sweep.h"
#include "loadbench_tune.h"
#include "stamp.h"
#include "text_json.h"
#include <string.h>

enum { EXIT_FINE = 0, EXIT_RUN = 1, EXIT_USE = 2 };

static int complain(const stk_error *err)
{
    fprintf(stderr, "loadbench: %s\n", err->message);
    return err->status == STK_E_CONFIG ? EXIT_USE : EXIT_RUN;
}

/* Returns the exit status of the first failure. */
static int worse(int code, int other)
{
    return code != EXIT_FINE ? code : other;
}

/* Whether the file starts like a saved result, even if it is truncated. */
static bool begins_as_result(const char *path)
{
    char head[256] = "";
    FILE *file = fopen(path, "re");
    const size_t got = file ? fread(head, 1, sizeof head - 1, file) : 0;

    head[got] = '\0';
    if (file)
        fclose(file);
    return strstr(head, "\"schema\"") && strstr(head, "\"program\": \"loadbench");
}

/* Whether the file is a saved result. Its contents decide, because a config may be JSON too. *tree (`tree` may be
 * NULL): the parsed file, if complete. */
static bool read_kept(const char *path, json_t **tree)
{
    const size_t length = strlen(path);
    json_t *found;
    bool is;

    if (length <= 5 || strcmp(path + length - 5, ".json") != 0)
        return false;
    found = json_load_file(path, 0, NULL);
    is = found ? json_object_get(found, "schema") && json_object_get(found, "program") : begins_as_result(path);
    if (is && tree)
        *tree = json_incref(found);
    json_decref(found);
    return is;
}

bool lb_is_kept_result(const char *path)
{
    return read_kept(path, NULL);
}

/* Checks that output files differ from all other files of the command. Data files are checked later, when they are
 * known. */
static stk_status check_outputs(const struct lb_args *args, stk_error *err)
{
    const struct {
        const char *option, *path;
    } outputs[] = {{"--report", args->report}, {"--intervals", args->intervals}},
      inputs[] = {{"the file that is measured", args->file}, {"the file of --compare", args->compare}};

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            if (outputs[i].path && inputs[k].path && stki_is_one_file(outputs[i].path, inputs[k].path))
                return stki_fail(err, STK_E_CONFIG, "%s: %s is %s: choose another name", outputs[i].option,
                                 outputs[i].path, inputs[k].option);
    if (args->report && args->intervals &&
        (strcmp(args->report, args->intervals) == 0 || stki_is_one_file(args->report, args->intervals)))
        return stki_fail(err, STK_E_CONFIG, "--report and --intervals both name %s: choose different files",
                         args->report);
    return STK_OK;
}

/* A swept key must not be set as well. */
static stk_status check_swept(const struct lb_args *args, const struct lb_sweep *sweep, stk_error *err)
{
    for (int i = 0; i < sweep->count; i++)
        for (int k = 0; k < args->set_count; k++) {
            const size_t length = strlen(sweep->ranges[i].key);
            if (strncmp(args->sets[k], sweep->ranges[i].key, length) == 0 && args->sets[k][length] == '=')
                return stki_fail(err, STK_E_CONFIG, "%s is both set and swept: remove --set %s", sweep->ranges[i].key,
                                 args->sets[k]);
        }
    return STK_OK;
}

/* Returns the --set of a key; NULL: there is none. */
static const char *set_of(const struct lb_args *args, const char *key)
{
    const size_t length = strlen(key);

    for (int i = 0; i < args->set_count; i++)
        if (strncmp(args->sets[i], key, length) == 0 && args->sets[i][length] == '=')
            return args->sets[i];
    return NULL;
}

stk_status lb_study_open(const struct lb_args *args, struct lb_study *study, stk_error *err)
{
    struct lb_sweep sweep = {0};
    const bool search = args->sweep_count > 0 || args->tune;
    const char *repeats;
    stk_status status = STK_OK;
    bool kept;

    *study = (struct lb_study){.args = args};
    kept = study->is_kept = args->file && !args->source && read_kept(args->file, &study->kept);

    if (args->sweep_count > 0)
        status = lb_sweep_init(args->sweeps, args->sweep_count, &sweep, err);
    if (status == STK_OK)
        status = check_swept(args, &sweep, err);
    lb_sweep_fini(&sweep);
    if (status == STK_OK)
        status = lb_require_read_all(args->required, args->require_count, &study->requirements, err);
    if (status == STK_OK && args->budget)
        status = lb_budget_read(args->budget, &study->budget, err);
    if (status != STK_OK)
        return status;
    if (args->source && (search || args->check_prediction || args->digest || args->report))
        return stki_fail(err, STK_E_CONFIG,
                         "%s is not a config, which --sweep, --tune, --check-prediction, --digest and --report require",
                         args->file);
    if (args->budget && !args->tune)
        return stki_fail(err, STK_E_CONFIG, "--budget needs --tune");
    if (args->tune && args->sweep_count > 0)
        return stki_fail(err, STK_E_CONFIG, "--tune and --sweep are mutually exclusive");
    if (args->tune && (repeats = set_of(args, "bench.repeats")) != NULL)
        return stki_fail(err, STK_E_CONFIG,
                         "--tune measures settings in alternating single runs: remove --set %s, and set "
                         "bench.run_time for longer runs",
                         repeats);
    if (search && (args->compare || args->require_count > 0 || args->check_prediction || args->digest))
        return stki_fail(err, STK_E_CONFIG, "%s runs many configs, but %s uses the result of one",
                         args->tune ? "--tune" : "--sweep",
                         args->compare             ? "--compare"
                         : args->require_count > 0 ? "--require"
                         : args->digest            ? "--digest"
                                                   : "--check-prediction");
    if (kept && !args->compare && args->require_count == 0 && !args->report)
        return stki_fail(err, STK_E_CONFIG, "%s is a saved result: use --compare, --require or --report", args->file);
    if (args->tune && args->report)
        return stki_fail(err, STK_E_CONFIG, "--report applies to a run or a sweep, not to --tune");
    if (search && args->intervals)
        return stki_fail(err, STK_E_CONFIG, "--intervals applies only to a run of one config");
    if (kept && (search || args->intervals || args->check_prediction || args->digest || args->set_count > 0))
        return stki_fail(err, STK_E_CONFIG,
                         "%s is a saved result: it can only be used with --compare, --require and --report",
                         args->file);
    return check_outputs(args, err);
}

void lb_study_fini(struct lb_study *study)
{
    stki_free(study->requirements);
    json_decref(study->kept);
    *study = (struct lb_study){0};
}

/* A saved sweep can only be reported. */
static int report_kept_sweep(const struct lb_args *args, const json_t *tree)
{
    stk_error err;

    if (args->compare || args->require_count > 0 || args->json || !args->report)
        stki_fail(&err, STK_E_CONFIG, "%s is a saved sweep: it can only be used with --report", args->file);
    else if (lb_report_write(args->report, tree, &err) == STK_OK)
        return EXIT_FINE;
    return complain(&err);
}

/* Compares with `before` (may be NULL) and checks requirements. Sets *failed to the number of violated requirements. */
static stk_status judge(const struct lb_study *study, const json_t *before, json_t *tree, FILE *to, int *failed,
                        stk_error *err)
{
    stk_status status = before ? lb_compare(before, study->args->compare, tree, to, err) : STK_OK;

    if (status == STK_OK)
        status = lb_require_all(study->requirements, study->args->require_count, tree, to, failed, err);
    return status;
}

/* Compares, checks, prints and reports the result. Continues after a failure, so that a long measurement is not lost.
 * Returns the exit status. */
static int use(const struct lb_study *study, const json_t *before, json_t *tree)
{
    const struct lb_args *args = study->args;
    stk_error err;
    int failed = 0, code = EXIT_FINE;

    if (judge(study, before, tree, args->json ? stderr : stdout, &failed, &err) != STK_OK)
        code = complain(&err);
    if (args->json && lb_json_print(tree, stdout, &err) != STK_OK)
        code = worse(code, complain(&err));
    if (args->report && lb_report_write(args->report, tree, &err) != STK_OK)
        code = worse(code, complain(&err));
    return failed > 0 ? worse(code, EXIT_RUN) : code;
}

/* Measures one config. STK_END: interrupted before anything was measured. Sets *code to the exit status if --intervals
 * could not be written. */
static stk_status measure(const struct lb_args *args, struct lb_config *config, json_t **tree, int *code,
                          stk_error *err)
{
    struct lb_result *result = stki_zalloc(sizeof *result);
    stk_status status = result ? STK_OK : stki_fail_memory(err, sizeof *result, "the result");

    if (status == STK_OK)
        status = lb_result_measure(config, result, err);
    if (status == STK_OK && args->check_prediction)
        lb_predict_check(args->file, args->sets, args->set_count, (int)config->bench.repeats, &result->predictions);
    if (status == STK_OK && !args->json)
        lb_print_text(result, stdout);
    if (status == STK_OK && result->intervals.failed.status != STK_OK)
        *code = complain(&result->intervals.failed);
    if (status == STK_OK) {
        *tree = lb_result_tree(result, err);
        status = *tree ? STK_OK : STK_E_MEMORY;
    }
    if (status == STK_END)
        stki_fail(err, STK_E_CLOSED,
                  "stopped by a signal before the first batch was consumed, so there is nothing to print");
    if (result)
        lb_result_fini(result);
    stki_free(result);
    return status;
}

static stk_status open_config(const struct lb_args *args, struct lb_config *config, stk_error *err)
{
    return args->source ? lb_config_open_source(args->source, args->file, args->sets, args->set_count, config, err)
                        : lb_config_open(args->file, args->sets, args->set_count, args->digest, config, err);
}

static int run_one(const struct lb_study *study)
{
    const struct lb_args *args = study->args;
    struct lb_config config = {0};
    json_t *tree = json_incref(study->kept), *before = NULL;
    stk_error err;
    stk_status status = STK_OK;
    int code = EXIT_FINE;

    if (args->compare) /* loaded before measuring, and only once, because it may be a pipe */
        status = lb_result_load(args->compare, &before, &err);
    if (status == STK_OK && tree)
        status = lb_result_check(args->file, tree, &err);
    else if (status == STK_OK && study->is_kept) /* truncated: load it again to get the error */
        status = lb_result_load(args->file, &tree, &err);
    else if (status == STK_OK && open_config(args, &config, &err) != STK_OK)
        status = err.status = err.status == STK_E_MEMORY ? STK_E_MEMORY : STK_E_CONFIG;
    else if (status == STK_OK) {
        config.intervals = args->intervals;
        if (args->require_count > 0) /* rejects impossible requirements before measuring */
            status = lb_require_foresee(study->requirements, args->require_count, &config, &err);
        if (status == STK_OK)
            status = measure(args, &config, &tree, &code, &err);
    }
    code = status == STK_OK ? worse(code, use(study, before, tree)) : complain(&err);
    json_decref(before);
    json_decref(tree);
    lb_config_close(&config);
    return code;
}

static int run_sweep(const struct lb_args *args)
{
    struct lb_sweep sweep;
    stk_error err;
    stk_status status = lb_sweep_init(args->sweeps, args->sweep_count, &sweep, &err);
    char *conclusion = NULL;
    json_t *tree = NULL;
    int code, within_noise = 0;

    if (status == STK_OK)
        status = lb_sweep_run(&sweep, args->file, args->sets, args->set_count, stderr, &err);
    if (status == STK_END)
        status = stki_fail(&err, STK_E_CLOSED, "stopped by a signal before the first point of the sweep");
    if (status == STK_OK) {
        conclusion = lb_sweep_conclusion(sweep.tree, &within_noise);
        tree = json_pack("{s:i, s:s, s:s, s:o, s:s, s:i, s:O}", "schema", LB_SCHEMA, "program", "loadbench --sweep",
                         "version", stk_version(), "file", stki_text_json(args->file), "conclusion", conclusion,
                         "within_noise_count", within_noise, "sweep", sweep.tree);
        status = tree ? STK_OK : stki_fail_memory(&err, 65536, "the JSON of the sweep");
    }
    if (status == STK_OK && args->json)
        status = lb_json_print(tree, stdout, &err);
    else if (status == STK_OK)
        lb_sweep_print(&sweep, conclusion, stdout);
    code = status != STK_OK ? complain(&err) : sweep.failed > 0 ? EXIT_RUN : EXIT_FINE;
    if (status == STK_OK && sweep.failed > 0)
        fprintf(stderr, "loadbench: --sweep: %lld of %lld points failed\n", (long long)sweep.failed,
                (long long)sweep.points);
    if (tree && args->report && lb_report_write(args->report, tree, &err) != STK_OK)
        code = worse(code, complain(&err));
    free(conclusion);
    json_decref(tree);
    lb_sweep_fini(&sweep);
    return code;
}

static int run_tune(const struct lb_study *study)
{
    const struct lb_args *args = study->args;
    json_t *tree = NULL;
    stk_error err;
    stk_status status =
        lb_tune(args->file, args->sets, args->set_count, &study->budget, args->json ? stderr : stdout, &tree, &err);

    if (status == STK_END)
        status = stki_fail(&err, STK_E_CLOSED, "stopped by a signal before the first run");
    if (status == STK_OK && args->json)
        status = lb_json_print(tree, stdout, &err);
    json_decref(tree);
    return status == STK_OK ? EXIT_FINE : complain(&err);
}

int lb_study_run(const struct lb_study *study)
{
    const struct lb_args *args = study->args;
    stk_error err;

    if (args->report && lb_report_try(args->report, &err) != STK_OK)
        return complain(&err);
    if (json_object_get(study->kept, "sweep"))
        return report_kept_sweep(args, study->kept);
    return args->tune ? run_tune(study) : args->sweep_count > 0 ? run_sweep(args) : run_one(study);
}
