/* task.c: see task.h. The task number comes from the first of three sources that has one: the user's options, the
 * launcher of this process, and the scheduler that started the launcher (a Slurm array, an indexed Job). Later sources
 * are checked even if an earlier one has given a number, because several processes that all act as task 0 would not be
 * noticed until much later. */
#include "task.h"
#include "error.h"
#include "launcher.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TASKS (INT64_C(1) << 30)

/* Returns NULL if the variable is not set or empty. */
static const char *variable(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static bool read_whole(const char *text, const char **end, int64_t *out)
{
    char *stop;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoll(text, &stop, 10);
    *end = stop;
    return !errno;
}

static stk_status read_variable(const char *name, int64_t least, int64_t *out, stk_error *err)
{
    const char *text = variable(name), *end = "";

    if (!text)
        return stki_fail(err, STK_E_CONFIG, "%s is not in the environment; --launcher=none ignores the environment",
                         name);
    if (!read_whole(text, &end, out) || *end || *out < least || *out > MOST_TASKS)
        return stki_fail(err, STK_E_CONFIG,
                         "%s in the environment: found \"%s\", expected %" PRId64
                         " or more; --launcher=none ignores the environment",
                         name, text, least);
    return STK_OK;
}

/* ---- options ---- */

static stk_status read_task(const char *text, stki_task *out, stk_error *err)
{
    const char *end = "";

    out->source = "--task";
    if (read_whole(text, &end, &out->task) && *end == '/' && read_whole(end + 1, &end, &out->tasks) && !*end &&
        out->tasks >= 1 && out->tasks <= MOST_TASKS && out->task < out->tasks)
        return STK_OK;
    return stki_fail(err, STK_E_CONFIG, "--task: found \"%s\", expected i/N with i from 0 to N - 1, such as 0/4", text);
}

/* ---- schedulers ---- */

/* The elements of an array are first, first + step, …; for a list such as 1,4,9, only their number is known. */
static stk_status read_slurm_array(stki_task *out, stk_error *err)
{
    int64_t id, first = 0, last, count, step = 1;
    stk_status status;

    if ((status = read_variable("SLURM_ARRAY_TASK_ID", 0, &id, err)) != STK_OK ||
        (status = read_variable("SLURM_ARRAY_TASK_MIN", 0, &first, err)) != STK_OK ||
        (status = read_variable("SLURM_ARRAY_TASK_MAX", 0, &last, err)) != STK_OK ||
        (variable("SLURM_ARRAY_TASK_STEP") &&
         (status = read_variable("SLURM_ARRAY_TASK_STEP", 1, &step, err)) != STK_OK))
        return status;
    count = (last - first) / step + 1;
    if (variable("SLURM_ARRAY_TASK_COUNT") &&
        (status = read_variable("SLURM_ARRAY_TASK_COUNT", 1, &count, err)) != STK_OK)
        return status;
    if (last < first || (last - first) % step != 0 || (last - first) / step + 1 != count)
        return stki_fail(err, STK_E_CONFIG,
                         "the Slurm array has %" PRId64 " elements from %" PRId64 " to %" PRId64 " in steps of %" PRId64
                         " (SLURM_ARRAY_TASK_*), which is a list in which the position of this task is unknown: submit "
                         "--array=0-%" PRId64 ", or use --task i/N and --launcher=none",
                         count, first, last, step, count - 1);
    if (id < first || id > last || (id - first) % step != 0)
        return stki_fail(err, STK_E_CONFIG,
                         "SLURM_ARRAY_TASK_ID in the environment: found %" PRId64 ", expected one of %" PRId64
                         " to %" PRId64 " in steps of %" PRId64 "; --launcher=none ignores the environment",
                         id, first, last, step);
    out->task = (id - first) / step;
    out->tasks = count;
    out->source = "Slurm array";
    snprintf(out->why, sizeof out->why, "SLURM_ARRAY_TASK_ID=%" PRId64 " of %" PRId64 " to %" PRId64, id, first, last);
    return STK_OK;
}

/* An indexed Job provides the index of this pod, but not the number of pods. */
static stk_status read_indexed_job(int64_t tasks, stki_task *out, stk_error *err)
{
    stk_status status = read_variable("JOB_COMPLETION_INDEX", 0, &out->task, err);

    if (status != STK_OK)
        return status;
    if (!tasks)
        return stki_fail(err, STK_E_CONFIG,
                         "JOB_COMPLETION_INDEX says that this is task %" PRId64
                         " of an indexed Job, but not the number of tasks: add --tasks=N, the Job's spec.completions, "
                         "or use --launcher=none to do everything here",
                         out->task);
    if (out->task >= tasks)
        return stki_fail(err, STK_E_CONFIG,
                         "JOB_COMPLETION_INDEX in the environment: found %" PRId64 ", expected 0 to %" PRId64
                         ": --tasks=%" PRId64 " is less than the Job's spec.completions",
                         out->task, tasks - 1, tasks);
    out->tasks = tasks;
    out->source = "Kubernetes";
    snprintf(out->why, sizeof out->why, "JOB_COMPLETION_INDEX=%" PRId64 ", --tasks=%" PRId64, out->task, tasks);
    return STK_OK;
}

/* `out->tasks` 0: no scheduler. */
static stk_status ask_scheduler(int64_t tasks, stki_task *out, stk_error *err)
{
    if (variable("SLURM_ARRAY_TASK_ID"))
        return read_slurm_array(out, err);
    if (variable("JOB_COMPLETION_INDEX"))
        return read_indexed_job(tasks, out, err);
    return STK_OK;
}

/* ---- all sources ---- */

static void take_launch(const stki_launcher_ranks *launch, stki_task *out)
{
    out->task = launch->rank;
    out->tasks = launch->world_size;
    out->source = launch->name;
    snprintf(out->why, sizeof out->why, "%s=%" PRId64 ", %s=%" PRId64, launch->rank_variable, launch->rank,
             launch->size_variable, launch->world_size);
}

/* Combines the ranks within an element of a Slurm array: the ranks of an element follow those of the previous elements.
 */
static void multiply(const stki_launcher_ranks *launch, stki_task *array)
{
    const size_t used = strlen(array->why);

    array->task = array->task * launch->world_size + launch->rank;
    array->tasks *= launch->world_size;
    snprintf(array->why + used, sizeof array->why - used, "; %s=%" PRId64 " of %" PRId64, launch->rank_variable,
             launch->rank, launch->world_size);
}

/* `out->tasks` 0: started without a launcher or scheduler. */
static stk_status ask_environment(int64_t tasks, stki_task *out, stk_error *err)
{
    stki_launcher_ranks launch;
    stk_status status = stki_launch_find(&launch, err);

    if (status != STK_OK)
        return status;
    if (!launch.name || launch.world_size == 1 || variable("SLURM_ARRAY_TASK_ID")) {
        status = ask_scheduler(tasks, out, err);
        if (status == STK_OK && out->tasks && launch.name && launch.world_size > 1)
            multiply(&launch, out);
        if (status != STK_OK || out->tasks || !launch.name)
            return status;
    } else if (variable("JOB_COMPLETION_INDEX")) {
        return stki_fail(err, STK_E_CONFIG,
                         "both %s (%s=%" PRId64 ", %s=%" PRId64
                         ") and Kubernetes (JOB_COMPLETION_INDEX=%s) give a task number: use --task i/N and "
                         "--launcher=none, such as --task $%s/$%s",
                         launch.name, launch.rank_variable, launch.rank, launch.size_variable, launch.world_size,
                         variable("JOB_COMPLETION_INDEX"), launch.rank_variable, launch.size_variable);
    }
    take_launch(&launch, out);
    return STK_OK;
}

static stk_status check_agreement(const stki_task *said, int64_t tasks, const stki_task *launched, stk_error *err)
{
    if (said->tasks && (said->task != launched->task || said->tasks != launched->tasks))
        return stki_fail(err, STK_E_CONFIG,
                         "--task: found %" PRId64 "/%" PRId64 ", but %s says %" PRId64 "/%" PRId64
                         " (%s): remove --task, or add --launcher=none",
                         said->task, said->tasks, launched->source, launched->task, launched->tasks, launched->why);
    if (tasks && tasks != launched->tasks)
        return stki_fail(err, STK_E_CONFIG,
                         "--tasks: found %" PRId64 ", but %s says %" PRId64
                         " (%s): remove --tasks, or add --launcher=none and --task",
                         tasks, launched->source, launched->tasks, launched->why);
    return STK_OK;
}

static stk_status check_said(const stki_task *said, int64_t tasks, stk_error *err)
{
    if (said->tasks && tasks && tasks != said->tasks)
        return stki_fail(err, STK_E_CONFIG, "--tasks: found %" PRId64 ", but --task says %" PRId64 "/%" PRId64, tasks,
                         said->task, said->tasks);
    if (!said->tasks && tasks > 1)
        return stki_fail(
            err, STK_E_CONFIG,
            "--tasks=%" PRId64
            " sets the number of tasks, but no launcher in the environment sets the index: use --task i/%" PRId64,
            tasks, tasks);
    return STK_OK;
}

stk_status stki_task_find(const stki_task_opts *opts, stki_task *out, stk_error *err)
{
    stki_task said = {0}, launched = {0};
    stk_status status = opts->task ? read_task(opts->task, &said, err) : STK_OK;

    *out = (stki_task){.tasks = 1, .source = "alone"};
    if (status == STK_OK && !opts->ignore_launcher)
        status = ask_environment(opts->tasks ? opts->tasks : said.tasks, &launched, err);
    if (status == STK_OK)
        status =
            launched.tasks ? check_agreement(&said, opts->tasks, &launched, err) : check_said(&said, opts->tasks, err);
    if (status != STK_OK)
        return status;
    if (launched.tasks)
        *out = launched;
    else if (said.tasks)
        *out = said;
    return STK_OK;
}
