/* loadbench_args.c: the command line. --help and "did you mean" are generated from a single table of options. */
#include "loadbench_args.h"
#include "allocate.h"
#include "args.h"
#include "error.h"
#include "loadbench_accelerators.h"
#include "loadbench_cache.h"
#include <string.h>

static stk_status take_format(void *owner, const char *value, stk_error *err)
{
    struct lb_args *args = owner;

    args->json = strcmp(value, "json") == 0;
    return args->json || strcmp(value, "text") == 0
               ? STK_OK
               : stki_fail(err, STK_E_CONFIG, "--format: found \"%s\", expected text or json", value);
}

static stk_status take_digest(void *owner, const char *value, stk_error *err)
{
    struct lb_args *args = owner;

    (void)value;
    (void)err;
    args->sets[args->set_count++] = "loader.digest=order";
    return STK_OK;
}

/* --cache=… is the same as --set bench.cache=…; the last one given wins. */
static stk_status take_cache(void *owner, const char *value, stk_error *err)
{
    static const char *const sets[] = {"bench.cache=as-is", "bench.cache=warm", "bench.cache=cold"};
    struct lb_args *args = owner;

    args->cache = true;
    for (int i = 0; lb_cache_words[i]; i++)
        if (strcmp(value, lb_cache_words[i]) == 0) {
            args->sets[args->set_count++] = sets[i];
            return STK_OK;
        }
    return stki_fail(err, STK_E_CONFIG, "--cache: found \"%s\", expected as-is, warm or cold", value);
}

static stk_status take_accelerators(void *owner, const char *value, stk_error *err)
{
    struct lb_args *args = owner;
    long long count = LB_ACCELERATORS_SEARCH;

    if (strcmp(value, "search") != 0 &&
        arg_number("--accelerators", value, 1, LB_ACCELERATORS_MOST, &count, NULL) != STK_OK)
        return stki_fail(err, STK_E_CONFIG, "--accelerators: found \"%s\", expected 1 to %d, or search", value,
                         LB_ACCELERATORS_MOST);
    args->accelerators = (int)count;
    return STK_OK;
}

static stk_status take_report(void *owner, const char *value, stk_error *err)
{
    (void)owner;
    return arg_check_ending("--report", value, ".html", err);
}

static stk_status take_picture(void *owner, const char *value, stk_error *err)
{
    (void)owner;
    return arg_check_ending("--preview", value, ".png", err);
}

enum { OPTIONS = 24 };

static void options_of(struct lb_args *a, struct arg_option *options)
{
    int *const action = &a->action;
    const struct arg_option table[OPTIONS] = {
        {"--set", "KEY=VALUE", "change one key of the config, such as loader.num_workers=2; may be repeated",
         .text = a->sets, .count = &a->set_count},
        {"--format", "text|json", "output format (text)", .take = take_format},
        {"--show-config", NULL, "print the config after includes, variables and --set, and exit", .action = action,
         .as = LB_SHOW_CONFIG},
        {"--parse-only", NULL, "check the config without opening data, and exit", .action = action,
         .as = LB_PARSE_ONLY},
        {"--explain", NULL, "print what the loader will do, without reading samples, and exit", .action = action,
         .as = LB_EXPLAIN},
        {"--preview", "OUT.png",
         "write the images of the first batch, as the model would get them, to a file, and exit", .text = &a->picture,
         .take = take_picture, .action = action, .as = LB_PREVIEW},
        {"--make", NULL, "generate the data that SPEC.yaml describes; existing files are not overwritten",
         .action = action, .as = LB_MAKE},
        {"--force", NULL, "with --make: overwrite existing files", .flag = &a->force},
        {"--transfer", "DEVICE", "measure copies of several sizes to a device (cuda:0, host)", .text = &a->device,
         .action = action, .as = LB_TRANSFER},
        {"--digest", NULL,
         "run num_epochs epochs (default 1) without a time limit, and print a digest of the samples "
         "(loader.digest: order)",
         .flag = &a->digest, .take = take_digest},
        {"--cache", "as-is|warm|cold",
         "before each repeat, leave the page cache unchanged, load all data into it, or evict the data from it",
         .take = take_cache, .repeats = true},
        {"--intervals", "FILE", "write the figures of each interval as JSON Lines", .text = &a->intervals},
        {"--accelerators", "N|search", "feed N emulated accelerators at once, or search for the largest N that passes",
         .take = take_accelerators, .action = action, .as = LB_ACCELERATORS},
        {"--check-prediction", NULL, "also measure the settings for which the verdict predicts a rate, and compare",
         .flag = &a->check_prediction},
        {"--sweep", "KEY=VALUES",
         "measure every value of a key: 1,2,4 or 64..1024*2 or 2..8+2; with several keys, all combinations",
         .text = a->sweeps, .count = &a->sweep_count},
        {"--tune", NULL,
         "search for the numbers of workers and slots, tile size and access mode with the highest samples/s",
         .flag = &a->tune},
        {"--budget", "cpus=N,memory=SIZE", "with --tune: upper limits on the processors and memory used",
         .text = &a->budget},
        {"--compare", "OLD.json", "compare the result with one saved with --format=json", .text = &a->compare},
        {"--require", "NAME>=NUMBER",
         "exit with status 1 unless this condition holds, such as wait.p99<=5ms; may be repeated", .text = a->required,
         .count = &a->require_count},
        {"--report", "OUT.html", "write the result or sweep as an HTML page with plots", .text = &a->report,
         .take = take_report},
        {"--debug", "TOPIC[,TOPIC]", "print debug messages to stderr", .text = &a->debug},
        {"--help", NULL, "print this text", .action = action, .as = LB_HELP},
        {"--help-options", NULL, "print every key of the config files", .action = action, .as = LB_HELP_OPTIONS},
        {"--version", NULL, "print the version", .action = action, .as = LB_VERSION},
    };

    memcpy(options, table, sizeof table);
}

void lb_args_help(FILE *to)
{
    struct lb_args none = {.action = LB_RUN};
    struct arg_option options[OPTIONS];

    fputs("Usage: loadbench CONFIG.yaml [--set KEY=VALUE]... [--format=text|json]\n"
          "       loadbench CONFIG.yaml --accelerators=N|search [--require=NAME>=NUMBER]... [--format=text|json]\n"
          "       loadbench --make SPEC.yaml [--force]\n"
          "       loadbench RESULT.json [--compare=OLD.json] [--require=NAME>=NUMBER]... [--report=OUT.html]\n"
          "       loadbench --transfer=DEVICE [--format=text|json]\n"
          "\n"
          "Runs the loader that CONFIG.yaml describes and measures its throughput in samples/s,\n"
          "waiting times, the work of each stage, and its share of this machine's limits.\n"
          "\n",
          to);
    options_of(&none, options);
    arg_help(options, OPTIONS, 28, to);
    fputs("\n"
          "Ctrl-C and SIGTERM end the run and print what was measured so far; after SIGTERM, the exit status is 1.\n"
          "Exit status: 0 success, 1 the data or the run failed, 2 the command or the config is wrong.\n",
          to);
}

/* Returns an option that was given and uses the result of a run; NULL: none. --accelerators handles --require
 * itself. */
static const char *studied(const struct lb_args *args)
{
    const bool required = args->require_count > 0 && args->action != LB_ACCELERATORS;

    return args->check_prediction  ? "--check-prediction"
           : args->sweep_count > 0 ? "--sweep"
           : args->tune            ? "--tune"
           : args->budget          ? "--budget"
           : args->compare         ? "--compare"
           : required              ? "--require"
           : args->report          ? "--report"
                                   : NULL;
}

static stk_status fail_no_run(struct lb_args *args, const char *option, stk_error *err)
{
    struct arg_option options[OPTIONS];
    const char *action = "";

    options_of(args, options);
    for (int i = 0; i < OPTIONS; i++)
        if (options[i].action && options[i].as == args->action)
            action = options[i].name;
    return stki_fail(err, STK_E_CONFIG, "%s applies only to a run: remove it or %s", option, action);
}

static stk_status check_together(struct lb_args *args, stk_error *err)
{
    const bool needs_file = args->action != LB_HELP && args->action != LB_HELP_OPTIONS && args->action != LB_VERSION &&
                            args->action != LB_TRANSFER;

    if ((args->action == LB_TRANSFER || args->action == LB_MAKE || args->action == LB_ACCELERATORS) && args->digest)
        return fail_no_run(args, "--digest", err);
    if ((args->action == LB_TRANSFER || args->action == LB_MAKE) && args->cache)
        return fail_no_run(args, "--cache", err);
    if (args->action == LB_TRANSFER && (args->file || args->set_count > 0))
        return stki_fail(err, STK_E_CONFIG, "--transfer does not use a config: remove %s",
                         args->file ? args->file : args->sets[0]);
    if (needs_file && (!args->file || !args->file[0]))
        return stki_fail(err, STK_E_CONFIG, "no %s given; see --help",
                         args->action == LB_MAKE ? "specification" : "config file");
    if (args->force && args->action != LB_MAKE)
        return stki_fail(err, STK_E_CONFIG, "--force needs --make");
    if (args->intervals && args->action != LB_RUN)
        return fail_no_run(args, "--intervals", err);
    if (args->action != LB_RUN && studied(args))
        return fail_no_run(args, studied(args), err);
    if (args->json && args->action != LB_RUN && args->action != LB_TRANSFER && args->action != LB_ACCELERATORS)
        return fail_no_run(args, "--format=json", err);
    return STK_OK;
}

stk_status lb_args_read(int argc, char **argv, struct lb_args *out, stk_error *err)
{
    struct arg_option options[OPTIONS];
    stk_status status;
    int words;

    memset(out, 0, sizeof *out);
    out->sets = stki_zalloc_array(argc + 1, sizeof *out->sets);
    out->sweeps = stki_zalloc_array(argc + 1, sizeof *out->sweeps);
    out->required = stki_zalloc_array(argc + 1, sizeof *out->required);
    if (!out->sets || !out->sweeps || !out->required)
        return stki_fail_memory(err, argc, "the command line");
    options_of(out, options);
    status = arg_read(argc, argv, options, OPTIONS, out, &out->file, 1, &words, err);
    return status == STK_OK ? check_together(out, err) : status;
}

void lb_args_fini(struct lb_args *args)
{
    stki_free(args->sets);
    stki_free(args->sweeps);
    stki_free(args->required);
    memset(args, 0, sizeof *args);
}
