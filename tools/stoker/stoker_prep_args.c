/* stoker_prep_args.c: see stoker_prep_args.h. --help and "did you mean" are generated from a single table of options.
 */
#include "stoker_prep_args.h"
#include "allocate.h"
#include "args.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

enum { OPTIONS = 16, MOST_WORKERS = 1024 };

struct texts {
    const char *tasks, *workers, *jobs, *launcher;
};

static void options_of(struct st_prep_args *a, struct texts *t, struct arg_option *options)
{
    const struct arg_option table[OPTIONS] = {
        {"--set", "KEY=VALUE", "change one key of the job, such as output.path=b.beton; may be repeated", NULL, a->sets,
         &a->set_count},
        {"--dry-run", NULL, "print what would be done, with the predicted size and time, and exit", &a->dry_run, NULL,
         NULL},
        {"--show-config", NULL, "print the job after includes, variables and --set, and exit", &a->show_config, NULL,
         NULL},
        {"--force", NULL, "replace existing output once the new output is complete", &a->force, NULL, NULL},
        {"--restart", NULL, "discard the pieces of an earlier, unfinished run", &a->restart, NULL, NULL},
        {"--task", "i/N", "run only this task of the job, i from 0 to N - 1", NULL, &a->task, NULL},
        {"--tasks", "N", "number of tasks, if the launcher sets only the index of the task", NULL, &t->tasks, NULL},
        {"--launcher", "auto|none",
         "auto (default): read the task from the environment variables of launchers and schedulers; none: ignore them",
         NULL, &t->launcher, NULL},
        {"--merge", NULL, "only join the pieces written by the tasks", &a->merge, NULL, NULL},
        {"--workers", "N", "number of worker threads; the same as --set prep.num_workers=N", NULL, &t->workers, NULL},
        {"--jobs", "N", "the same as --workers", NULL, &t->jobs, NULL},
        {"--no-space-check", NULL, "start even if there seems to be too little disk space", &a->no_space_check, NULL,
         NULL},
        {"--json-progress", NULL, "print progress and result to stdout as JSON Lines", &a->json_progress, NULL, NULL},
        {"--quiet", NULL, "print errors only", &a->quiet, NULL, NULL},
        {"--help", NULL, "print this text", &a->help, NULL, NULL},
        {"--help-options", NULL, "print every key of a job", &a->help_options, NULL, NULL},
    };

    memcpy(options, table, sizeof table);
}

void st_prep_args_help(void)
{
    struct st_prep_args none = {0};
    struct texts texts = {0};
    struct arg_option options[OPTIONS];

    options_of(&none, &texts, options);
    fputs("Usage: stoker prep JOB.yaml [--set KEY=VALUE]... [OPTIONS]\n"
          "\n"
          "Runs the preparation job of JOB.yaml: reads, transforms, encodes, and writes one file or many shards.\n"
          "Files get their final names only when all of them are complete. To resume an interrupted run, repeat the\n"
          "same command.\n"
          "\n"
          "  stoker prep train.yaml --dry-run\n"
          "  stoker prep train.yaml --workers=16\n"
          "  mpirun -n 4 stoker prep train.yaml\n"
          "  stoker prep train.yaml --task 2/8; ...; stoker prep train.yaml --merge\n"
          "\n",
          stdout);
    arg_help(options, OPTIONS, 20, stdout);
    fputs("\nExit status: 0 success (of the job, or of this task's share), 1 the data or the run failed, 2 the command "
          "or\n"
          "the job is wrong, 130 or 143 stopped by Ctrl-C or SIGTERM: the same command resumes.\n",
          stdout);
}

static stk_status read_workers(struct st_prep_args *a, const char *option, const char *text, stk_error *err)
{
    long long workers;
    stk_status status = arg_number(option, text, 0, MOST_WORKERS, &workers, err);

    if (status != STK_OK)
        return status;
    a->workers_set = stki_format("prep.num_workers=%lld", workers);
    if (!a->workers_set)
        return stki_fail_memory(err, 64, "the command line");
    a->sets[a->set_count++] = a->workers_set;
    return STK_OK;
}

static stk_status read_texts(struct st_prep_args *a, const struct texts *t, stk_error *err)
{
    stk_status status = STK_OK;

    if (t->launcher && strcmp(t->launcher, "auto") != 0 && strcmp(t->launcher, "none") != 0)
        return stki_fail(err, STK_E_CONFIG, "--launcher: found \"%s\", expected auto or none", t->launcher);
    a->ignore_launcher = t->launcher && strcmp(t->launcher, "none") == 0;
    if (t->tasks)
        status = arg_number("--tasks", t->tasks, 1, 1 << 30, &a->tasks, err);
    if (status == STK_OK && t->workers && t->jobs)
        return stki_fail(err, STK_E_CONFIG, "--workers and --jobs are the same option: use only one of them");
    if (status == STK_OK && t->workers)
        status = read_workers(a, "--workers", t->workers, err);
    if (status == STK_OK && t->jobs)
        status = read_workers(a, "--jobs", t->jobs, err);
    return status;
}

/* Rejects options that exclude each other, and says why. */
static stk_status check_together(const struct st_prep_args *a, stk_error *err)
{
    if (a->merge && a->task)
        return stki_fail(err, STK_E_CONFIG, "--merge joins all tasks, --task runs one: use only one of them");
    if (a->merge && a->restart)
        return stki_fail(err, STK_E_CONFIG, "--restart would discard the pieces that --merge joins");
    if (a->dry_run && (a->merge || a->restart || a->json_progress))
        return stki_fail(err, STK_E_CONFIG, "--dry-run and %s are mutually exclusive",
                         a->merge     ? "--merge"
                         : a->restart ? "--restart"
                                      : "--json-progress");
    if (a->dry_run && a->show_config)
        return stki_fail(err, STK_E_CONFIG,
                         "--dry-run and --show-config both stop before the run: use only one of them");
    if (a->quiet && a->json_progress)
        return stki_fail(err, STK_E_CONFIG, "--quiet and --json-progress contradict each other: use only one of them");
    if (!a->file)
        return stki_fail(err, STK_E_CONFIG, "missing job; see --help");
    return STK_OK;
}

stk_status st_prep_args_read(int argc, char **argv, struct st_prep_args *out, stk_error *err)
{
    struct arg_option options[OPTIONS];
    struct texts texts = {0};
    int words = 0;
    stk_status status;

    memset(out, 0, sizeof *out);
    out->sets = stki_zalloc_array(argc + 2, sizeof *out->sets);
    if (!out->sets)
        return stki_fail_memory(err, argc, "the command line");
    options_of(out, &texts, options);
    status = arg_read(argc, argv, options, OPTIONS, NULL, &out->file, 1, &words, err);
    if (status == STK_OK)
        status = read_texts(out, &texts, err);
    if (status == STK_OK && !out->help && !out->help_options)
        status = check_together(out, err);
    return status;
}

void st_prep_args_fini(struct st_prep_args *args)
{
    stki_free(args->workers_set);
    stki_free(args->sets);
}
