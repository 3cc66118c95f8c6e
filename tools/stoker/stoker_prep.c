/* stoker_prep.c: `stoker prep JOB.yaml`: runs a preparation job, or one task's share of it.
 *
 *     args    the command line
 *     show    progress during the run: a live line, lines of a log, or JSON Lines
 *     report  the plan (--dry-run) and the result
 *
 * Exit status: 0 done, 1 the data or the run failed, 2 the command or the job is wrong; 128 + the signal's number if
 * stopped by a signal, as in shells. */
#include "error.h"
#include "stoker_prep_args.h"
#include "stoker_prep_report.h"
#include "stoker_prep_show.h"
#include "stoker_tool.h"
#include "task.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- signals ---- */

static stk_prep *volatile running; /* set before the handlers are installed */
static volatile sig_atomic_t stop_asked;

static void ask_to_stop(int signal_number)
{
    stop_asked = signal_number;
    stk_prep_cancel(running);
}

/* The first signal requests an orderly stop; a second one of the same kind kills the program. Even then, only the
 * unfinished piece is lost, and the next run computes it again. */
static void catch_signals(stk_prep *job)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = ask_to_stop, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)}, before;

    running = job;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* set by nohup, for example */
            sigaction(numbers[i], &action, NULL);
}

/* Called before the job is destroyed, so that a late signal cannot access it. */
static void let_signals_go(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    running = NULL;
}

/* ---- command ---- */

static int code_of(stk_status status)
{
    return status == STK_E_CONFIG || status == STK_E_BAD_ARG || status == STK_E_RANGE ? STOKER_USE : STOKER_FAILED;
}

static int print_text(char *text, int fallback)
{
    if (!text) {
        fputs("stoker prep: out of memory\n", stderr);
        return STOKER_FAILED;
    }
    fputs(text, stdout);
    stk_text_free(text);
    return stoker_finish_output("prep", fallback);
}

static int help_options(void)
{
    fputs("Keys of a job. Sizes: 64MiB, 1.5GB (k M G T = 1000^n, Ki Mi Gi Ti = 1024^n). The keys of "
          "`dataset`\nare those of a loader; `loadbench --help-options` lists them.\n\n",
          stdout);
    return print_text(stk_prep_options_help(), STOKER_FINE);
}

static int refuse_damaged(void *context, const stk_error *err)
{
    (void)context;
    return stoker_complain("prep", err, STOKER_FAILED);
}

static int dry_run(stk_prep *job, const struct st_prep_args *args, const stki_task *task)
{
    stk_error err;
    stk_status status = st_prep_report_plan(job, args->file, task, &err);

    return status == STK_OK ? stoker_finish_output("prep", STOKER_FINE)
                            : stoker_complain("prep", &err, code_of(status));
}

static int run(stk_prep *job, struct st_prep_show *show, const struct st_prep_args *args)
{
    stk_error err;
    stk_status status;
    int code = STOKER_FINE;

    st_prep_show_begin(show);
    catch_signals(job);
    status = stk_prep_run(job, &err);
    let_signals_go();
    st_prep_show_end(show);
    if (status == STK_E_CANCELLED && stop_asked)
        code = 128 + (int)stop_asked;
    else if (status != STK_OK)
        code = code_of(status);
    if (args->json_progress)
        st_prep_report_json(job, status, code, &err);
    else if (status == STK_OK && !args->quiet)
        st_prep_report_text(job, show);
    if (status == STK_E_CANCELLED)
        st_prep_report_stopped(job, (int)stop_asked);
    else if (status != STK_OK)
        (void)stoker_complain("prep", &err, code);
    return stoker_finish_output("prep", code);
}

static int open_and_act(const struct st_prep_args *args, const stki_task *task)
{
    struct st_prep_show show;
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    stk_prep *job;
    stk_error err;
    int code;

    st_prep_show_init(&show, task, args->json_progress, args->quiet);
    opts.task = task->task;
    opts.tasks = task->tasks;
    opts.merge = args->merge;
    opts.force = args->force;
    opts.restart = args->restart;
    opts.no_space_check = args->no_space_check;
    if (args->dry_run)
        stoker_begin_apart(refuse_damaged, NULL);
    if (!args->dry_run && !args->quiet) {
        opts.progress = st_prep_show_progress;
        opts.progress_context = &show;
    }
    if (stk_prep_open_file(args->file, args->sets, args->set_count, &opts, &job, &err) != STK_OK)
        return stoker_complain("prep", &err, err.status == STK_E_MEMORY ? STOKER_FAILED : STOKER_USE);
    if (args->show_config)
        code = print_text(stk_prep_job_text(job), STOKER_FINE);
    else if (args->dry_run)
        code = dry_run(job, args, task);
    else
        code = run(job, &show, args);
    stk_prep_destroy(job);
    return code;
}

/* --merge ignores the environment, because it runs once and not per task. */
static stk_status find_task(const struct st_prep_args *args, stki_task *out, stk_error *err)
{
    const stki_task_opts opts = {args->task, args->tasks, args->ignore_launcher || args->merge};
    stk_status status;

    if (args->merge && args->tasks)
        return stki_fail(err, STK_E_CONFIG, "--merge does not accept --tasks: it joins the pieces of all tasks");
    status = stki_task_find(&opts, out, err);
    if (status == STK_OK && out->tasks > 1 && (args->force || args->restart))
        return stki_fail(err, STK_E_CONFIG,
                         "%s with %lld tasks (%s): a task that starts late would discard the work of others; remove "
                         "%s before starting the tasks",
                         args->force ? "--force" : "--restart", (long long)out->tasks, out->source,
                         args->force ? "the old output" : "the work folder");
    return status;
}

int stoker_prep(int argc, char **argv)
{
    struct st_prep_args args;
    stki_task task;
    stk_error err;
    stk_status status = st_prep_args_read(argc, argv, &args, &err);
    int code;

    if (status == STK_OK && args.help) {
        st_prep_args_help();
        code = stoker_finish_output("prep", STOKER_FINE);
    } else if (status == STK_OK && args.help_options) {
        code = help_options();
    } else if (status != STK_OK || (status = find_task(&args, &task, &err)) != STK_OK) {
        code = stoker_complain("prep", &err, STOKER_USE);
    } else {
        code = open_and_act(&args, &task);
    }
    st_prep_args_fini(&args);
    return code;
}
