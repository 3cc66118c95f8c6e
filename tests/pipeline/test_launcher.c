/* Tests of rank and world_size from the options and from the environment variables of launchers. */
#include "loader_test.h"
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
                                            "MPI_LOCALNRANKS",
                                            "LOCAL_RANK",
                                            "OMPI_COMM_WORLD_LOCAL_RANK",
                                            "MV2_COMM_WORLD_LOCAL_RANK",
                                            "MPI_LOCALRANKID",
                                            "SLURM_LOCALID",
                                            "SLURM_PROCID",
                                            "SLURM_NTASKS",
                                            "SLURM_STEP_NUM_TASKS",
                                            "SLURM_NTASKS_PER_NODE",
                                            "SLURM_STEP_ID",
                                            "SLURM_STEPID",
                                            "ENVIRONMENT",
                                            "MASTER_ADDR"};

static void clear_environment(void)
{
    for (size_t i = 0; i < sizeof all_variables / sizeof all_variables[0]; i++)
        unsetenv(all_variables[i]);
}

/* Sets these variables, "A=1 B=2", and unsets all others. */
static void set_environment(const char *assignments)
{
    char text[256], *rest = text;

    clear_environment();
    snprintf(text, sizeof text, "%s", assignments);
    for (char *word; (word = strsep(&rest, " "));) {
        char *equals = strchr(word, '=');

        if (!equals)
            continue;
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static stk_status read_ranks(const char *loader_keys, stki_ranks *out, stk_error *err)
{
    stki_document *document;
    stki_loader_config *config;
    char text[512];
    stk_status status;

    snprintf(text, sizeof text, "{dataset: {fields: {x: {synthetic: {count: 8}}}}, loader: {%s}}", loader_keys);
    assert_int_equal(stki_document_parse(text, (int64_t)strlen(text), "text", NULL, &document, err), STK_OK);
    status = stki_config_read(document, NULL, &config, err);
    if (status != STK_OK)
        return status;
    *out = config->ranks;
    assert_int_equal(config->rank, out->rank);
    assert_int_equal(config->world_size, out->world_size);
    stki_config_destroy(config);
    return STK_OK;
}

static void launchers_are_found(void **state)
{
    static const struct {
        const char *environment, *source;
        int64_t rank, world_size, local_size, local_rank; /* local_rank plus 1; 0: unknown */
    } cases[] = {
        {"", "alone", 0, 1, 0, 0},
        {"RANK=3 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 LOCAL_RANK=2", "torchrun", 3, 8, 4, 3},
        {"RANK=3 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 SLURM_LOCALID=1", "torchrun", 3, 8, 4, 0},
        {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0",
         "Open MPI", 1, 2, 2, 1},
        {"MV2_COMM_WORLD_RANK=1 MV2_COMM_WORLD_SIZE=3 MV2_COMM_WORLD_LOCAL_RANK=1", "MVAPICH", 1, 3, 0, 2},
        {"PMI_RANK=5 PMI_SIZE=6 MPI_LOCALNRANKS=3 MPI_LOCALRANKID=2", "MPICH", 5, 6, 3, 3},
        {"SLURM_PROCID=7 SLURM_NTASKS=9 SLURM_LOCALID=4", "Slurm", 7, 9, 0, 5},
        {"SLURM_PROCID=1 SLURM_NTASKS=9 SLURM_STEP_NUM_TASKS=2 SLURM_NTASKS_PER_NODE=2(x3)", "Slurm", 1, 2, 0},
        /* A batch script is one process, whatever its allocation. A process that srun starts from it is a task. */
        {"SLURM_PROCID=0 SLURM_NTASKS=4 ENVIRONMENT=BATCH", "alone", 0, 1, 0},
        {"SLURM_PROCID=2 SLURM_NTASKS=4 ENVIRONMENT=BATCH SLURM_STEP_ID=0", "Slurm", 2, 4, 0},
        /* If srun starts one torchrun per machine, or mpirun runs in an allocation, the inner launcher wins. */
        {"RANK=9 WORLD_SIZE=16 SLURM_PROCID=1 SLURM_NTASKS=2", "torchrun", 9, 16, 0},
        {"OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=0 SLURM_NTASKS=2", "Open MPI", 5, 8, 0},
        /* A single variable does not indicate a launcher. */
        {"RANK=3", "alone", 0, 1, 0},
        {"WORLD_SIZE=3 PMI_RANK=0 PMI_SIZE=1", "MPICH", 0, 1, 0},
        {"RANK= WORLD_SIZE=", "alone", 0, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_ranks ranks;
        stk_error err;

        set_environment(cases[i].environment);
        assert_ok(read_ranks("batch_size: 1", &ranks, &err));
        assert_string_equal(ranks.source, cases[i].source);
        assert_int_equal(ranks.rank, cases[i].rank);
        assert_int_equal(ranks.world_size, cases[i].world_size);
        assert_int_equal(ranks.local_size, cases[i].local_size);
        assert_int_equal(ranks.local_rank, cases[i].local_rank - 1);
        assert_int_equal(ranks.data_rank, cases[i].rank);
        assert_int_equal(ranks.data_world_size, cases[i].world_size);
    }
    clear_environment();
}

static void options_and_launcher_must_agree(void **state)
{
    static const struct {
        const char *environment, *keys, *says; /* NULL: no error; rank and world_size are expected */
        int64_t rank, world_size;
        const char *source;
    } cases[] = {
        {"", "rank: 2, world_size: 4", NULL, 2, 4, "options"},
        {"", "world_size: 4", NULL, 0, 4, "options"},
        {"", "rank: 1", "found rank 1 of world_size 1, expected 0 to 0", 0, 0, NULL},
        {"RANK=2 WORLD_SIZE=4", "rank: 2, world_size: 4", NULL, 2, 4, "torchrun"},
        {"RANK=2 WORLD_SIZE=4", "world_size: 4", NULL, 2, 4, "torchrun"},
        {"RANK=2 WORLD_SIZE=4", "rank: auto, world_size: auto", NULL, 2, 4, "torchrun"},
        {"RANK=2 WORLD_SIZE=4", "rank: 1, world_size: 4",
         "loader.rank: found 1, but torchrun sets 2 (RANK in the environment)", 0, 0, NULL},
        {"RANK=2 WORLD_SIZE=4", "world_size: 1",
         "loader.world_size: found 1, but torchrun sets 4 (WORLD_SIZE in the environment): remove it, or set launcher: "
         "none",
         0, 0, NULL},
        {"RANK=2 WORLD_SIZE=4", "rank: 1, world_size: 2, launcher: none", NULL, 1, 2, "options"},
        {"RANK=2 WORLD_SIZE=4", "launcher: none", NULL, 0, 1, "alone"},
        {"RANK=4 WORLD_SIZE=4", "batch_size: 1", "RANK and WORLD_SIZE in the environment: found rank 4 of 4", 0, 0,
         NULL},
        {"RANK=x WORLD_SIZE=4", "batch_size: 1", "RANK in the environment: found \"x\", expected 0 or more", 0, 0,
         NULL},
        {"RANK=0 WORLD_SIZE=0", "batch_size: 1", "WORLD_SIZE in the environment: found \"0\"", 0, 0, NULL},
        {"RANK=0 WORLD_SIZE=99999999999999999999", "batch_size: 1", "WORLD_SIZE in the environment", 0, 0, NULL},
        {"RANK=x WORLD_SIZE=4", "launcher: none", NULL, 0, 1, "alone"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stki_ranks ranks;
        stk_error err;

        set_environment(cases[i].environment);
        if (cases[i].says) {
            assert_status(read_ranks(cases[i].keys, &ranks, &err), STK_E_CONFIG);
            assert_says(cases[i].says);
            continue;
        }
        assert_ok(read_ranks(cases[i].keys, &ranks, &err));
        assert_int_equal(ranks.rank, cases[i].rank);
        assert_int_equal(ranks.world_size, cases[i].world_size);
        assert_string_equal(ranks.source, cases[i].source);
    }
    clear_environment();
}

/* The groups of ranks that read the same data, listed by hand: tensor parallel groups are neighbors, pipeline stages
 * are blocks. */
static void replication(void **state)
{
    static const struct {
        int64_t world_size, replication, blocks, data_world_size;
        int64_t data_ranks[8];
    } cases[] = {
        {8, 1, 1, 8, {0, 1, 2, 3, 4, 5, 6, 7}}, {8, 2, 1, 4, {0, 0, 1, 1, 2, 2, 3, 3}},
        {8, 1, 2, 4, {0, 1, 2, 3, 0, 1, 2, 3}}, {8, 2, 2, 2, {0, 0, 1, 1, 0, 0, 1, 1}},
        {8, 4, 2, 1, {0, 0, 0, 0, 0, 0, 0, 0}}, {6, 3, 1, 2, {0, 0, 0, 1, 1, 1}},
    };
    stki_ranks ranks;
    stk_error err;
    char keys[128];

    (void)state;
    clear_environment();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int64_t rank = 0; rank < cases[i].world_size; rank++) {
            snprintf(keys, sizeof keys, "rank: %d, world_size: %d, replication: %d, replication_blocks: %d", (int)rank,
                     (int)cases[i].world_size, (int)cases[i].replication, (int)cases[i].blocks);
            assert_ok(read_ranks(keys, &ranks, &err));
            assert_int_equal(ranks.data_world_size, cases[i].data_world_size);
            assert_int_equal(ranks.data_rank, cases[i].data_ranks[rank]);
        }
    assert_status(read_ranks("world_size: 8, replication: 3", &ranks, &err), STK_E_CONFIG);
    assert_says("found 8 ranks, expected a multiple of replication (3) times replication_blocks (1)");
    assert_status(read_ranks("world_size: 8, replication: 4, replication_blocks: 4", &ranks, &err), STK_E_CONFIG);
    assert_says("found 8 ranks, expected a multiple of replication (4) times replication_blocks (4)");
}

/* The loader reports the source of the rank. Ranks that replicate each other get the same batches, and the groups
 * together deliver the data set. */
static void a_loader_reports_its_ranks(void **state)
{
    int seen[10] = {0};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;

    (void)state;
    field.name = "x";
    field.synthetic = "{count: 10, shape: [4]}";
    opts.fields = &field;
    opts.field_count = 1;
    opts.batch_size = 2;
    opts.replication = 2;
    opts.num_workers = STK_WORKERS_INLINE;
    for (int rank = 0; rank < 4; rank++) {
        char environment[64];

        snprintf(environment, sizeof environment, "RANK=%d WORLD_SIZE=4", rank);
        set_environment(environment);
        assert_ok(stk_loader_open(&opts, &loader, &err));
        assert_non_null(strstr(stk_loader_options_json(loader), "\"source\": \"torchrun\""));
        assert_non_null(strstr(stk_loader_options_json(loader), "\"data_world_size\": 2"));
        assert_non_null(strstr(stk_loader_options_json(loader), "\"num_workers\": 0,"));
        assert_int_equal(stk_loader_note_count(loader), 1);
        assert_non_null(strstr(stk_loader_note(loader, 0), "of 4: torchrun (RANK, WORLD_SIZE in the environment)"));
        while (stk_loader_next(loader, &batch, &err) == STK_OK) {
            for (int64_t r = 0; r < stk_batch_rows(batch); r++)
                seen[stk_batch_indices(batch)[r]]++;
            stk_batch_release(batch);
        }
        stk_loader_destroy(loader);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(seen[i], 2);
    /* In C, rank 0 with a world_size is an explicit rank, which must also agree. */
    opts.world_size = 4;
    assert_status(stk_loader_open(&opts, &loader, &err), STK_E_CONFIG);
    assert_says("options: loader.rank: found 0, but torchrun sets 3");
    opts.launcher = STK_LAUNCHER_NONE;
    assert_ok(stk_loader_open(&opts, &loader, &err));
    assert_non_null(strstr(stk_loader_options_json(loader), "\"source\": \"options\""));
    stk_loader_destroy(loader);
    clear_environment();
}

/* Lightning's launcher sets LOCAL_RANK and WORLD_SIZE; programs with torch.multiprocessing.spawn set only the address.
 * Their ranks are options, which the Python package reads from torch.distributed. */
static void torch_variables_of_this_machine(void **state)
{
    static const char eight[] = "rank: 3, world_size: 8";
    static const struct {
        const char *environment, *keys;
        int64_t local_size, local_rank; /* local_rank plus 1; 0: unknown */
    } cases[] = {
        {"MASTER_ADDR=127.0.0.1 WORLD_SIZE=8 LOCAL_RANK=3 NODE_RANK=0", eight, 8, 4},
        {"MASTER_ADDR=localhost", eight, 8, 0},
        {"MASTER_ADDR=::1", eight, 8, 0},
        /* Other machines may also have ranks. */
        {"MASTER_ADDR=10.0.0.1 WORLD_SIZE=8 LOCAL_RANK=1 NODE_RANK=1", eight, 0, 2},
        {"LOCAL_RANK=1", eight, 0, 2},
        {"RANK=3 WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 LOCAL_RANK=3", "batch_size: 1", 8, 4}, /* DeepSpeed */
        {"RANK=3 WORLD_SIZE=8 MASTER_ADDR=127.0.0.1 LOCAL_WORLD_SIZE=4", "batch_size: 1", 4, 0},
        {"SLURM_PROCID=3 SLURM_NTASKS=8 LOCAL_RANK=1 MASTER_ADDR=node7", "batch_size: 1", 0, 0},
        {"MASTER_ADDR=127.0.0.1 LOCAL_RANK=3", "rank: 3, world_size: 8, launcher: none", 0, 0},
        {"MASTER_ADDR=127.0.0.1 LOCAL_RANK=0", "world_size: 1", 0, 0},
    };
    stki_ranks ranks;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_environment(cases[i].environment);
        assert_ok(read_ranks(cases[i].keys, &ranks, &err));
        assert_int_equal(ranks.local_size, cases[i].local_size);
        assert_int_equal(ranks.local_rank, cases[i].local_rank - 1);
    }
    set_environment("LOCAL_RANK=x");
    assert_status(read_ranks(eight, &ranks, &err), STK_E_CONFIG);
    assert_says("LOCAL_RANK in the environment: found \"x\", expected 0 or more");
    clear_environment();
}

static void workers_are_divided(void **state)
{
    stki_ranks ranks = {.local_size = 0};

    (void)state;
    assert_int_equal(stki_ranks_workers(&ranks), stki_cpu_count());
    ranks.local_size = 1000000;
    assert_int_equal(stki_ranks_workers(&ranks), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_found),
        cmocka_unit_test(options_and_launcher_must_agree),
        cmocka_unit_test(replication),
        cmocka_unit_test(a_loader_reports_its_ranks),
        cmocka_unit_test(torch_variables_of_this_machine),
        cmocka_unit_test(workers_are_divided),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
