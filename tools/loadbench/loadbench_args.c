/* loadbench_args.c: reads the command line. One table names the flags; --help and the "did you mean" come from it. */
#include "loadbench_args.h"
#include "allocate.h"
#include "document.h"
#include "error.h"
#include "loadbench_accelerators.h"
#include "loadbench_cache.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum flag {
    SET,
    FORMAT,
    SHOW_CONFIG,
    PARSE_ONLY,
    EXPLAIN,
    PREVIEW,
    MAKE,
    FORCE,
    TRANSFER,
    DIGEST,
    CACHE,
    INTERVALS,
    ACCELERATORS,
    CHECK_PREDICTION,
    SWEEP,
    TUNE,
    BUDGET,
    COMPARE,
    REQUIRE,
    REPORT,
    DEBUG,
    HELP,
    HELP_OPTIONS,
    VERSION,
    FLAG_COUNT
};

static const struct {
    const char *name;
    const char *value; /* what to write after '='; NULL: the flag takes no value */
    const char *help;
    bool repeats; /* several values add up, or the last one wins by what is written about it */
} flags[FLAG_COUNT] = {
    [SET] = {"--set", "KEY=VALUE", "change one key of the config, --set loader.num_workers=2; may be repeated", true},
    [FORMAT] = {"--format", "text|json", "how the result is printed (text)"},
    [SHOW_CONFIG] = {"--show-config", NULL, "print the config with includes, variables and --set applied, and stop"},
    [PARSE_ONLY] = {"--parse-only", NULL, "check the config without opening any data, and stop"},
    [EXPLAIN] = {"--explain", NULL, "print what the loader is going to do, without reading a sample, and stop"},
    [PREVIEW] = {"--preview", "OUT.png", "write the images of the first batch, as the model will see them, and stop"},
    [MAKE] = {"--make", NULL,
              "make the data that SPEC.yaml describes, unless it is there already; nothing is written over"},
    [FORCE] = {"--force", NULL, "with --make: write all files, also over those that are there and hold something else"},
    [TRANSFER] = {"--transfer", "DEVICE", "measure copies to a device by size: cuda:0, host"},
    [DIGEST] =
        {"--digest", NULL,
         "print a digest of what was delivered: num_epochs, else one epoch, however long (loader.digest: order)"},
    [CACHE] = {"--cache", "as-is|warm|cold",
               "the page cache before each repeat: as it is, all of the data in it, or none of it", true},
    [INTERVALS] = {"--intervals", "FILE", "write what happened in each interval as a line of JSON"},
    [ACCELERATORS] = {"--accelerators", "N|search",
                      "feed so many emulated accelerators at once, or find out how many pass"},
    [CHECK_PREDICTION] = {"--check-prediction", NULL, "run what the verdict predicts, and print what comes beside it"},
    [SWEEP] = {"--sweep", "KEY=VALUES",
               "run every value: 1,2,4 or 64..1024*2 or 2..8+2; several keys: all combinations", true},
    [TUNE] = {"--tune", NULL, "search for the workers, slots, tiles and access that give the most samples a second"},
    [BUDGET] = {"--budget", "cpus=N,memory=SIZE", "with --tune: what the settings may use"},
    [COMPARE] = {"--compare", "OLD.json", "put the result beside one that was kept with --format=json"},
    [REQUIRE] = {"--require", "NAME>=NUMBER", "exit with 1 unless this holds, wait.p99<=5ms; may be repeated", true},
    [REPORT] = {"--report", "OUT.html", "write the result, or a sweep, as one page with plots"},
    [DEBUG] = {"--debug", "TOPIC[,TOPIC]", "debug messages on stderr"},
    [HELP] = {"--help", NULL, "this text"},
    [HELP_OPTIONS] = {"--help-options", NULL, "every key of the config files"},
    [VERSION] = {"--version", NULL, "the version"},
};

void lb_args_help(FILE *to)
{
    fputs("Usage: loadbench CONFIG.yaml [--set KEY=VALUE]... [--format=text|json]\n"
          "       loadbench CONFIG.yaml --accelerators=N|search [--format=text|json]\n"
          "       loadbench --make SPEC.yaml [--force]\n"
          "       loadbench RESULT.json [--compare=OLD.json] [--require=NAME>=NUMBER]... [--report=OUT.html]\n"
          "       loadbench --transfer=DEVICE [--format=text|json]\n"
          "\n"
          "Runs the loader that CONFIG.yaml describes and measures what it delivers: samples a second,\n"
          "waiting times, work of each stage, and its share of this machine's limits.\n"
          "\n",
          to);
    for (int i = 0; i < FLAG_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", flags[i].name, flags[i].value ? "=" : "",
                 flags[i].value ? flags[i].value : "");
        fprintf(to, "  %-28s %s\n", left, flags[i].help);
    }
    fputs("\n"
          "Ctrl-C ends the run and prints what was measured until then; so does SIGTERM, with exit status 1.\n"
          "Exit status: 0 fine, 1 the data or the run failed, 2 the command or the config is wrong.\n",
          to);
}

static stk_status fail_unknown(const char *word, size_t length, stk_error *err)
{
    const char *names[FLAG_COUNT];
    char name[64];

    for (int i = 0; i < FLAG_COUNT; i++)
        names[i] = flags[i].name;
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    const char *near = stki_nearest_word(name, names, FLAG_COUNT);
    return stki_fail(err, STK_E_CONFIG, "unknown option %s%s%s%s", name, near ? "; did you mean " : "; see --help",
                     near ? near : "", near ? "?" : "");
}

static stk_status set_action(struct lb_args *args, enum lb_action action, const char *name, stk_error *err)
{
    if (args->action != LB_RUN && args->action != action)
        return stki_fail(err, STK_E_CONFIG, "%s does not go together with the other action asked for", name);
    args->action = action;
    return STK_OK;
}

/* The same as --set bench.cache=…: the later one of both wins. */
static stk_status set_cache(struct lb_args *args, const char *value, stk_error *err)
{
    static const char *const sets[] = {"bench.cache=as-is", "bench.cache=warm", "bench.cache=cold"};

    for (int i = 0; lb_cache_words[i]; i++)
        if (strcmp(value, lb_cache_words[i]) == 0) {
            args->sets[args->set_count++] = sets[i];
            return STK_OK;
        }
    return stki_fail(err, STK_E_CONFIG, "--cache: found \"%s\", expected as-is, warm or cold", value);
}

static stk_status set_accelerators(struct lb_args *args, const char *value, stk_error *err)
{
    char *end;
    const long count = strtol(value, &end, 10);

    if (strcmp(value, "search") == 0)
        args->accelerators = LB_ACCELERATORS_SEARCH;
    else if (end != value && *end == '\0' && count >= 1 && count <= LB_ACCELERATORS_MOST)
        args->accelerators = (int)count;
    else
        return stki_fail(err, STK_E_CONFIG, "--accelerators: found \"%s\", expected 1 to %d, or search", value,
                         LB_ACCELERATORS_MOST);
    return set_action(args, LB_ACCELERATORS, "--accelerators", err);
}

static stk_status apply(struct lb_args *args, enum flag flag, const char *value, stk_error *err)
{
    switch (flag) {
    case SET:
        args->sets[args->set_count++] = value;
        return STK_OK;
    case FORMAT:
        if (strcmp(value, "text") != 0 && strcmp(value, "json") != 0)
            return stki_fail(err, STK_E_CONFIG, "--format: found \"%s\", expected text or json", value);
        args->json = strcmp(value, "json") == 0;
        return STK_OK;
    case DIGEST:
        args->digest = true;
        args->sets[args->set_count++] = "loader.digest=order";
        return STK_OK;
    case CACHE:
        return set_cache(args, value, err);
    case INTERVALS:
        args->intervals = value;
        return STK_OK;
    case ACCELERATORS:
        return set_accelerators(args, value, err);
    case CHECK_PREDICTION:
        args->check_prediction = true;
        return STK_OK;
    case SWEEP:
        args->sweeps[args->sweep_count++] = value;
        return STK_OK;
    case TUNE:
        args->tune = true;
        return STK_OK;
    case BUDGET:
        args->budget = value;
        return STK_OK;
    case COMPARE:
        args->compare = value;
        return STK_OK;
    case REQUIRE:
        args->required[args->require_count++] = value;
        return STK_OK;
    case REPORT:
        if (strlen(value) < 6 || strcasecmp(value + strlen(value) - 5, ".html") != 0)
            return stki_fail(err, STK_E_CONFIG,
                             "--report: found \"%s\", expected a name that ends in .html, such as out.html", value);
        args->report = value;
        return STK_OK;
    case DEBUG:
        args->debug = value;
        return STK_OK;
    case FORCE:
        args->force = true;
        return STK_OK;
    case SHOW_CONFIG:
        return set_action(args, LB_SHOW_CONFIG, "--show-config", err);
    case PARSE_ONLY:
        return set_action(args, LB_PARSE_ONLY, "--parse-only", err);
    case EXPLAIN:
        return set_action(args, LB_EXPLAIN, "--explain", err);
    case PREVIEW:
        if (strlen(value) < 5 || strcasecmp(value + strlen(value) - 4, ".png") != 0)
            return stki_fail(err, STK_E_CONFIG,
                             "--preview: found \"%s\", expected a name that ends in .png, such as out.png", value);
        args->picture = value;
        return set_action(args, LB_PREVIEW, "--preview", err);
    case MAKE:
        return set_action(args, LB_MAKE, "--make", err);
    case TRANSFER:
        args->device = value;
        return set_action(args, LB_TRANSFER, "--transfer", err);
    case HELP:
        return set_action(args, LB_HELP, "--help", err);
    case HELP_OPTIONS:
        return set_action(args, LB_HELP_OPTIONS, "--help-options", err);
    case VERSION:
        return set_action(args, LB_VERSION, "--version", err);
    case FLAG_COUNT:
        break;
    }
    return stki_fail(err, STK_E_BAD_ARG, "no such flag");
}

/* Two values of an option that takes one: nobody knows which was meant. */
static stk_status check_given(enum flag flag, const char *value, const char **given, stk_error *err)
{
    if (flags[flag].value && !value[0])
        return stki_fail(err, STK_E_CONFIG, "%s needs a value: %s=%s", flags[flag].name, flags[flag].name,
                         flags[flag].value);
    if (flags[flag].value && !flags[flag].repeats && given[flag] && strcmp(given[flag], value) != 0)
        return stki_fail(err, STK_E_CONFIG, "%s is given twice: %s, then %s", flags[flag].name, given[flag], value);
    given[flag] = value ? value : "";
    return STK_OK;
}

/* One flag at argv[*at]; moves *at on to the value if that is a word of its own. */
static stk_status read_flag(int argc, char **argv, int *at, struct lb_args *args, const char **given, stk_error *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    const size_t length = equals ? (size_t)(equals - word) : strlen(word);

    for (int i = 0; i < FLAG_COUNT; i++) {
        const char *value = equals ? equals + 1 : NULL;
        if (strlen(flags[i].name) != length || strncmp(flags[i].name, word, length) != 0)
            continue;
        if (!flags[i].value && value)
            return stki_fail(err, STK_E_CONFIG, "%s takes no value", flags[i].name);
        if (flags[i].value && !value) {
            if (*at + 1 >= argc)
                return stki_fail(err, STK_E_CONFIG, "%s needs a value: %s=%s", flags[i].name, flags[i].name,
                                 flags[i].value);
            value = argv[++*at];
        }
        const stk_status status = check_given((enum flag)i, value, given, err);
        return status == STK_OK ? apply(args, (enum flag)i, value, err) : status;
    }
    return fail_unknown(word, length, err);
}

/* An option that makes something of results. NULL: none was given. */
static const char *studied(const struct lb_args *args)
{
    return args->check_prediction    ? "--check-prediction"
           : args->sweep_count > 0   ? "--sweep"
           : args->tune              ? "--tune"
           : args->budget            ? "--budget"
           : args->compare           ? "--compare"
           : args->require_count > 0 ? "--require"
           : args->report            ? "--report"
                                     : NULL;
}

static stk_status fail_no_run(const struct lb_args *args, const char *option, stk_error *err)
{
    static const char *const actions[] = {
        [LB_SHOW_CONFIG] = "--show-config",
        [LB_PARSE_ONLY] = "--parse-only",
        [LB_EXPLAIN] = "--explain",
        [LB_PREVIEW] = "--preview",
        [LB_MAKE] = "--make",
        [LB_TRANSFER] = "--transfer",
        [LB_ACCELERATORS] = "--accelerators",
        [LB_HELP] = "--help",
        [LB_HELP_OPTIONS] = "--help-options",
        [LB_VERSION] = "--version",
    };

    return stki_fail(err, STK_E_CONFIG, "%s is for a run only: leave it or %s out", option, actions[args->action]);
}

static stk_status check_together(const struct lb_args *args, const char *const *given, stk_error *err)
{
    const bool needs_file = args->action != LB_HELP && args->action != LB_HELP_OPTIONS && args->action != LB_VERSION &&
                            args->action != LB_TRANSFER;

    if ((args->action == LB_TRANSFER || args->action == LB_MAKE || args->action == LB_ACCELERATORS) && args->digest)
        return fail_no_run(args, "--digest", err);
    if ((args->action == LB_TRANSFER || args->action == LB_MAKE) && given[CACHE])
        return fail_no_run(args, "--cache", err);
    if (args->action == LB_TRANSFER && (args->file || args->set_count > 0))
        return stki_fail(err, STK_E_CONFIG, "--transfer needs no config: found %s",
                         args->file ? args->file : args->sets[0]);
    if (needs_file && (!args->file || !args->file[0]))
        return stki_fail(err, STK_E_CONFIG, "no %s named; see --help",
                         args->action == LB_MAKE ? "specification" : "config file");
    if (args->force && args->action != LB_MAKE)
        return stki_fail(err, STK_E_CONFIG, "--force goes with --make only");
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
    stk_status status = STK_OK;
    bool only_files = false;
    const char *given[FLAG_COUNT] = {NULL};

    memset(out, 0, sizeof *out);
    out->sets = stki_zalloc_array(argc + 1, sizeof *out->sets);
    out->sweeps = stki_zalloc_array(argc + 1, sizeof *out->sweeps);
    out->required = stki_zalloc_array(argc + 1, sizeof *out->required);
    if (!out->sets || !out->sweeps || !out->required)
        return stki_fail_memory(err, argc, "the command line");
    for (int i = 1; i < argc && status == STK_OK; i++) {
        if (!only_files && strcmp(argv[i], "--") == 0)
            only_files = true;
        else if (!only_files && strcmp(argv[i], "-h") == 0)
            status = set_action(out, LB_HELP, "-h", err);
        else if (!only_files && argv[i][0] == '-' && argv[i][1] != '\0')
            status = read_flag(argc, argv, &i, out, given, err);
        else if (out->file)
            status = stki_fail(err, STK_E_CONFIG, "one file at a time: %s, then %s", out->file, argv[i]);
        else
            out->file = argv[i];
    }
    return status == STK_OK ? check_together(out, given, err) : status;
}

void lb_args_fini(struct lb_args *args)
{
    stki_free(args->sets);
    stki_free(args->sweeps);
    stki_free(args->required);
    memset(args, 0, sizeof *args);
}
