/* loadbench_main.c: the program. Runs a loader as configured and reports its throughput, its bottleneck, and how close
 * it comes to the machine's limit.
 *
 *     args     the command line                     look       --explain, --preview
 *     study    a run: measurement, verdict, report
 *
 * and the folders (docs/internals/architecture.md has their dependencies):
 *
 *     statistics/ medians, intervals, tables        show/      text and JSON
 *     machine/    the machine and its limits        report/    the HTML page
 *     measure/    one repeat, and its config        study/     sweeps, tuning, accelerators, comparisons
 *     result/     all repeats, the bottleneck       make/      --make
 *
 * Exit status: 0 success, 1 the data or the run failed, 2 the command or the config is wrong. */
#include "loadbench_main.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_accelerators.h"
#include "loadbench_args.h"
#include "loadbench_look.h"
#include "loadbench_make.h"
#include "loadbench_spec.h"
#include "loadbench_stop.h"
#include "loadbench_study.h"
#include "loadbench_transfer.h"
#include "log.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stoker/loader.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FINE = 0, EXIT_RUN = 1, EXIT_USE = 2 };

static void ask_to_stop(int signal_number)
{
    lb_stop_asked = signal_number;
}

/* The previous signal actions. */
struct before {
    struct sigaction interrupt, end, too_long;
};

/* The first signal requests an orderly stop; a second one of the same kind kills the program. */
static void catch_signals(struct before *before)
{
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};

    sigemptyset(&action.sa_mask);
    lb_stop_asked = 0;
    sigaction(SIGINT, &action, &before->interrupt);
    sigaction(SIGTERM, &action, &before->end);
    action.sa_handler = SIG_IGN; /* exceeding the file size limit is a write error, like a full disk */
    sigaction(SIGXFSZ, &action, &before->too_long);
}

/* Restores the signal actions for a process that continues, such as Python. */
static void put_back(const struct before *before)
{
    sigaction(SIGINT, &before->interrupt, NULL);
    sigaction(SIGTERM, &before->end, NULL);
    sigaction(SIGXFSZ, &before->too_long, NULL);
    setvbuf(stdout, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
}

static int complain(const stk_error *err, int code)
{
    fprintf(stderr, "loadbench: %s\n", err->message);
    return code;
}

/* An incomplete write, such as to a full disk, is a failure. Because of the buffer `output`, most of the result is
 * written only here, where errno is still available. */
static char output[256 << 10];

static int finish_output(int code)
{
    const bool said = code != EXIT_FINE && ferror(stdout); /* already reported when the buffer overflowed */

    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || said)
        return code;
    fprintf(stderr, "loadbench: writing the result: %s\n", errno ? strerror(errno) : "the output is incomplete");
    return EXIT_RUN;
}

/* A run that SIGTERM ended must not look complete. Ctrl-C counts as success, because the user ended the run on
 * purpose. */
static int finish_run(int code)
{
    code = finish_output(code);
    if (code != EXIT_FINE || lb_stop_asked != SIGTERM)
        return code;
    fputs("loadbench: stopped by SIGTERM: the result covers only what was measured until then\n", stderr);
    return EXIT_RUN;
}

static int print_help_options(void)
{
    char *loader = stk_loader_options_help();

    if (!loader) {
        fputs("loadbench: out of memory\n", stderr);
        return EXIT_RUN;
    }
    fputs("Keys of a config file. Sizes: 64MiB, 1.5GB (k M G T = 1000^n, Ki Mi Gi Ti = 1024^n). Times: 1.5s, 20ms.\n\n",
          stdout);
    fputs(loader, stdout);
    stk_text_free(loader);
    fputc('\n', stdout);
    stki_sections_help(lb_sections, stdout);
    return finish_output(EXIT_FINE);
}

static int finish_show(stk_status status, const stk_error *err)
{
    return status == STK_OK ? finish_output(EXIT_FINE) : complain(err, status == STK_E_CONFIG ? EXIT_USE : EXIT_RUN);
}

static int run_accelerators(const struct lb_config *config, const struct lb_args *args)
{
    struct lb_require *requirements;
    bool passed = false;
    stk_error err;
    stk_status status = lb_require_read_all(args->required, args->require_count, &requirements, &err);

    if (status == STK_OK)
        status = lb_accelerators(config, args->accelerators, requirements, args->require_count, args->json, stdout,
                                 &passed, &err);
    stki_free(requirements);
    if (status != STK_OK)
        return complain(&err, err.status == STK_E_CONFIG ? EXIT_USE : EXIT_RUN);
    return finish_run(passed ? EXIT_FINE : EXIT_RUN);
}

static int use_config(const struct lb_args *args)
{
    struct lb_config config;
    stk_error err;
    int code = EXIT_FINE;

    if (lb_is_kept_result(args->file)) {
        stki_fail(&err, STK_E_CONFIG,
                  "%s is a saved result: it can only be used with --compare, --require and --report", args->file);
        return complain(&err, EXIT_USE);
    }
    if (lb_config_open(args->file, args->sets, args->set_count, args->digest, &config, &err) != STK_OK)
        code = complain(&err, err.status == STK_E_MEMORY ? EXIT_RUN : EXIT_USE);
    else if (args->action == LB_SHOW_CONFIG)
        code = lb_config_show(&config, stdout, &err) == STK_OK ? finish_output(EXIT_FINE) : complain(&err, EXIT_RUN);
    else if (args->action == LB_EXPLAIN)
        code = finish_show(lb_explain(&config, stdout, &err), &err);
    else if (args->action == LB_PREVIEW)
        code = finish_show(lb_preview(&config, args->picture, stdout, &err), &err);
    else if (args->action == LB_ACCELERATORS)
        code = run_accelerators(&config, args);
    lb_config_close(&config);
    return code;
}

/* Runs one or more configs. */
static int run(const struct lb_args *args)
{
    struct lb_study study;
    stk_error err;
    int code;

    if (lb_study_open(args, &study, &err) != STK_OK) {
        lb_study_fini(&study);
        return complain(&err, err.status == STK_E_MEMORY ? EXIT_RUN : EXIT_USE);
    }
    code = lb_study_run(&study);
    lb_study_fini(&study);
    return code == EXIT_FINE ? finish_run(code) : finish_output(code);
}

/* Fails early if stdout is closed. Also reserves file descriptors 0 and 2, so that a file opened later does not reuse
 * them and receive messages. */
static bool has_output(void)
{
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);

    int fd;

    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY)
        return true;
    fputs("loadbench: standard output is closed, so the result cannot be printed\n", stderr);
    return false;
}

static int make_data(const struct lb_args *args)
{
    stk_error err;

    if (lb_make(args->file, args->sets, args->set_count, args->force, stdout, &err) != STK_OK)
        return complain(&err, err.status == STK_E_CONFIG ? EXIT_USE : EXIT_RUN);
    return finish_output(EXIT_FINE);
}

static int measure_transfer(const struct lb_args *args)
{
    stk_error err;

    if (lb_transfer(args->device, args->json, stdout, &err) != STK_OK)
        return complain(&err, err.status == STK_E_CONFIG ? EXIT_USE : EXIT_RUN);
    return finish_run(EXIT_FINE);
}

static int act(const struct lb_args *args)
{
    switch ((enum lb_action)args->action) {
    case LB_HELP:
        lb_args_help(stdout);
        return finish_output(EXIT_FINE);
    case LB_VERSION:
        printf("loadbench %s\n", stk_version());
        return finish_output(EXIT_FINE);
    case LB_HELP_OPTIONS:
        return print_help_options();
    case LB_MAKE:
        return make_data(args);
    case LB_TRANSFER:
        return measure_transfer(args);
    case LB_RUN:
        return run(args);
    case LB_SHOW_CONFIG:
    case LB_PARSE_ONLY:
    case LB_EXPLAIN:
    case LB_PREVIEW:
    case LB_ACCELERATORS:
        break;
    }
    return use_config(args);
}

int lb_main(int argc, char **argv, struct lb_source *source)
{
    struct lb_args args;
    struct before before;
    stk_error err;
    int code;

    if (lb_args_read(argc, argv, &args, &err) != STK_OK ||
        (args.debug && stki_log_enable(args.debug, &err) != STK_OK)) {
        lb_args_fini(&args);
        return complain(&err, EXIT_USE);
    }
    args.source = source;
    if (source && args.action != LB_RUN && args.action <= LB_ACCELERATORS) {
        lb_args_fini(&args);
        stki_fail(&err, STK_E_CONFIG, "%s is not a config, so this action does not apply to it", argv[1]);
        return complain(&err, EXIT_USE);
    }
    if (!has_output()) {
        lb_args_fini(&args);
        return EXIT_RUN;
    }
    setvbuf(stdout, output, _IOFBF, sizeof output);
    catch_signals(&before);
    code = act(&args);
    put_back(&before);
    lb_args_fini(&args);
    return code;
}
