/* Tests of the number of a task and of all tasks, from the command line and from the environment of launchers and
 * schedulers, including sources that disagree. */
#include "stk_test.h"
#include "task.h"
#include <stdlib.h>

static const char *const all_variables[] = {"RANK",
                                            "WORLD_SIZE",
                                            "LOCAL_WORLD_SIZE",
                                            "OMPI_COMM_WORLD_RANK",
                                            "OMPI_COMM_WORLD_SIZE",
                                            "OMPI_COMM_WORLD_LOCAL_SIZE",
                                            "MV2_COMM_WORLD_RANK",
                                            "MV2_COMM_WORLD_SIZE",
                                            "PMI_RANK",
                                            "PMI_SIZE",
                                            "SLURM_PROCID",
                                            "SLURM_NTASKS",
                                            "SLURM_STEP_NUM_TASKS",
                                            "SLURM_STEP_ID",
                                            "SLURM_STEPID",
                                            "SLURM_ARRAY_TASK_ID",
                                            "SLURM_ARRAY_TASK_MIN",
                                            "SLURM_ARRAY_TASK_MAX",
                                            "SLURM_ARRAY_TASK_STEP",
                                            "SLURM_ARRAY_TASK_COUNT",
                                            "JOB_COMPLETION_INDEX",
                                            "ENVIRONMENT"};

/* Sets exactly these variables, "A=1 B=2". */
static void set_environment(const char *text)
{
    char copy[512], *save = NULL;

    for (size_t i = 0; i < sizeof all_variables / sizeof all_variables[0]; i++)
        unsetenv(all_variables[i]);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');

        *equals = 0;
        setenv(word, equals + 1, 1);
    }
}

#define ARRAY(id, min, max, step, count)                                                   \
    "SLURM_ARRAY_TASK_ID=" #id " SLURM_ARRAY_TASK_MIN=" #min " SLURM_ARRAY_TASK_MAX=" #max \
    " SLURM_ARRAY_TASK_STEP=" #step " SLURM_ARRAY_TASK_COUNT=" #count

static void test_sources(void **state)
{
    static const struct {
        const char *environment, *said;
        int64_t tasks_said;
        int64_t task, tasks;
        const char *source;
    } cases[] = {
        {"", NULL, 0, 0, 1, "alone"},
        {"", "2/5", 0, 2, 5, "--task"},
        {"", "2/5", 5, 2, 5, "--task"},
        {"", NULL, 1, 0, 1, "alone"},
        {"RANK=3 WORLD_SIZE=8", NULL, 0, 3, 8, "torchrun"},
        {"RANK=3 WORLD_SIZE=8", "3/8", 0, 3, 8, "torchrun"},
        {"RANK=3 WORLD_SIZE=8", NULL, 8, 3, 8, "torchrun"},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4", NULL, 0, 1, 4, "Open MPI"},
        {"PMI_RANK=0 PMI_SIZE=2", NULL, 0, 0, 2, "MPICH"},
        {"SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_STEP_ID=0", NULL, 0, 5, 6, "Slurm"},
        /* an allocation of 6 tasks whose batch script is one process */
        {"SLURM_PROCID=0 SLURM_NTASKS=6 ENVIRONMENT=BATCH", NULL, 0, 0, 1, "alone"},
        {ARRAY(0, 0, 3, 1, 4), NULL, 0, 0, 4, "Slurm array"},
        {ARRAY(3, 0, 3, 1, 4), NULL, 0, 3, 4, "Slurm array"},
        {ARRAY(7, 5, 9, 2, 3), NULL, 0, 1, 3, "Slurm array"},
        {ARRAY(9, 5, 9, 2, 3), "2/3", 3, 2, 3, "Slurm array"},
        {"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=4", NULL, 0, 1, 4, "Slurm array"},
        {ARRAY(1, 0, 3, 1, 4) " SLURM_PROCID=0 SLURM_NTASKS=2 ENVIRONMENT=BATCH", NULL, 0, 1, 4, "Slurm array"},
        {ARRAY(1, 0, 3, 1, 4) " SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0", NULL, 0, 1, 4, "Slurm array"},
        {ARRAY(2, 0, 3, 1, 4) " SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_STEP_ID=0", NULL, 0, 5, 8, "Slurm array"},
        {ARRAY(2, 0, 3, 1, 4) " OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3", "8/12", 12, 8, 12, "Slurm array"},
        {"JOB_COMPLETION_INDEX=3", NULL, 4, 3, 4, "Kubernetes"},
        {"JOB_COMPLETION_INDEX=3", "3/4", 0, 3, 4, "Kubernetes"},
        {"JOB_COMPLETION_INDEX=3 RANK=0 WORLD_SIZE=1", NULL, 4, 3, 4, "Kubernetes"},
        {"RANK=0 WORLD_SIZE=1", NULL, 0, 0, 1, "torchrun"},
        {"RANK= WORLD_SIZE= JOB_COMPLETION_INDEX=", NULL, 0, 0, 1, "alone"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const stki_task_opts opts = {.task = cases[i].said, .tasks = cases[i].tasks_said};
        stki_task task;
        stk_error err;

        set_environment(cases[i].environment);
        assert_ok(stki_task_find(&opts, &task, &err));
        assert_string_equal(task.source, cases[i].source);
        assert_int_equal(task.task, cases[i].task);
        assert_int_equal(task.tasks, cases[i].tasks);
        assert_int_equal(*task.why != 0, strcmp(task.source, "alone") != 0 && strcmp(task.source, "--task") != 0);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *environment, *said;
        int64_t tasks_said;
        const char *message;
    } cases[] = {
        {"", "4/4", 0, "--task: found \"4/4\", expected i/N"},
        {"", "1", 0, "expected i/N"},
        {"", "-1/4", 0, "expected i/N"},
        {"", "1/", 0, "expected i/N"},
        {"", "1/4x", 0, "expected i/N"},
        {"", "/4", 0, "expected i/N"},
        {"", "", 0, "expected i/N"},
        {"", "0/0", 0, "expected i/N"},
        {"", "0/99999999999999999999", 0, "expected i/N"},
        {"", "1/4", 5, "--tasks: found 5, but --task says 1/4"},
        {"", NULL, 4, "no launcher in the environment sets the index"},
        {"RANK=1 WORLD_SIZE=4", "0/4", 0, "--task: found 0/4, but torchrun says 1/4 (RANK=1, WORLD_SIZE=4)"},
        {"RANK=1 WORLD_SIZE=4", NULL, 5, "--tasks: found 5, but torchrun says 4"},
        {"RANK=one WORLD_SIZE=4", NULL, 0, "RANK in the environment"},
        {ARRAY(4, 1, 9, 1, 3), NULL, 0,
         "which is a list in which the position of this task is unknown: submit --array=0-2"},
        {ARRAY(2, 1, 9, 4, 3), NULL, 0, "SLURM_ARRAY_TASK_ID in the environment: found 2, expected one of 1 to 9"},
        {ARRAY(x, 1, 9, 4, 3), NULL, 0, "SLURM_ARRAY_TASK_ID in the environment: found \"x\""},
        {ARRAY(1, 1, 9, 0, 3), NULL, 0, "SLURM_ARRAY_TASK_STEP in the environment: found \"0\""},
        {ARRAY(1, 9, 1, 1, 3), NULL, 0, "a list in which"},
        {"SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=1", NULL, 0, "SLURM_ARRAY_TASK_MAX is not in the environment"},
        {ARRAY(1, 0, 3, 1, 4), "0/4", 0, "but Slurm array says 1/4"},
        {"JOB_COMPLETION_INDEX=3", NULL, 0, "add --tasks=N, the Job's spec.completions"},
        {"JOB_COMPLETION_INDEX=3", NULL, 3, "found 3, expected 0 to 2"},
        {"JOB_COMPLETION_INDEX=1 RANK=1 WORLD_SIZE=4", NULL, 0, "both torchrun (RANK=1, WORLD_SIZE=4) and Kubernetes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const stki_task_opts opts = {.task = cases[i].said, .tasks = cases[i].tasks_said};
        stki_task task;
        stk_error err;

        set_environment(cases[i].environment);
        assert_status(stki_task_find(&opts, &task, &err), STK_E_CONFIG);
        if (!strstr(err.message, cases[i].message))
            fail_msg("\"%s\" is not in: %s", cases[i].message, err.message);
    }
}

static void test_environment_left_alone(void **state)
{
    const stki_task_opts alone = {.ignore_launcher = true}, said = {.ignore_launcher = true, .task = "1/3"};
    stki_task task;
    stk_error err;

    (void)state;
    set_environment("RANK=1 WORLD_SIZE=4 JOB_COMPLETION_INDEX=7 SLURM_ARRAY_TASK_ID=x");
    assert_ok(stki_task_find(&alone, &task, &err));
    assert_int_equal(task.tasks, 1);
    assert_string_equal(task.source, "alone");
    assert_ok(stki_task_find(&said, &task, &err));
    assert_int_equal(task.task, 1);
    assert_int_equal(task.tasks, 3);
    set_environment("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources), cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_environment_left_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
