/* Tests of the GPU for `device: cuda` and for pinned memory in a process started by a launcher, on the simulated CUDA,
 * and of the NUMA node of pinned memory. Contexts are never destroyed, so the order of the tests matters. */
#include "loader_test.h"
#include "numa.h"
#include "sim_cuda.h"
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static stk_error err;

static stk_status open_on(stk_loader **out, const char *device, const char *more)
{
    *out = NULL;
    return stkt_open(
        out,
        "{dataset: {fields: {x: {synthetic: {count: 64, shape: [10], dtype: u8}}}}, loader: {batch_size: 8,"
        " num_workers: 1, device: %s, %s}}",
        device, more);
}

static void start_as(const char *local_rank)
{
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    if (local_rank)
        setenv("LOCAL_RANK", local_rank, 1);
    else
        unsetenv("LOCAL_RANK");
}

static bool says(stk_loader *loader, const char *text)
{
    for (int i = 0; i < stk_loader_note_count(loader); i++)
        if (strstr(stk_loader_note(loader, i), text))
            return true;
    return strstr(stk_loader_options_json(loader), text) != NULL;
}

/* Creates a tree like sysfs with two nodes; GPU 1 is near node 0, which every machine has. */
static void make_tree(void)
{
    static const char *const folders[] = {
        "",     "/devices", "/devices/system",  "/devices/system/node",          "/devices/system/node/node1",
        "/bus", "/bus/pci", "/bus/pci/devices", "/bus/pci/devices/0000:41:00.0", "/bus/pci/devices/0000:ab:00.0",
    };
    static char root[512];
    char path[700];

    snprintf(root, sizeof root, "%s", stkt_make_dir());
    for (size_t i = 1; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0777), 0);
    }
    for (int i = 0; i < 2; i++) {
        FILE *file;

        snprintf(path, sizeof path, "%s%s/numa_node", root, folders[8 + i]);
        file = fopen(path, "w");
        assert_non_null(file);
        fprintf(file, "%d\n", i ? 7 : 0);
        fclose(file);
    }
    stki_numa_sysfs = root;
}

static void nodes_are_read(void **state)
{
    (void)state;
    make_tree();
    assert_int_equal(stki_numa_node_of_pci("0000:41:00.0"), 0);
    assert_int_equal(stki_numa_node_of_pci("0000:AB:00.0"), 7);
    assert_int_equal(stki_numa_node_of_pci("0000:40:00.0"), -1);
    assert_int_equal(stki_numa_node_of_pci(""), -1);
}

static int policy_now(void)
{
    int mode = -1;

    return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) ? -1 : mode;
}

static void pinned_memory_is_the_ranks_and_near_it(void **state)
{
    stk_loader *loader;
    stki_numa_policy policy;
    const int before = policy_now();

    (void)state;
    start_as("1");
    assert_ok(open_on(&loader, "cpu", "pin_memory: true"));
    assert_true(says(loader, "for copies to cuda:1"));
    assert_int_equal(sim_count().contexts[0], 0);
    assert_int_equal(sim_count().contexts[1], 1);
    stki_numa_prefer(0, &policy); /* if the kernel permits it */
    stki_numa_restore(&policy);
    if (policy.changed) {
        assert_int_equal(sim_count().pinned_policy, 1);
        assert_int_equal(sim_count().pinned_nodes, 1);
    }
    assert_int_equal(policy_now(), before);
    stk_loader_destroy(loader);
}

static void cuda_is_the_gpu_of_the_local_rank(void **state)
{
    stk_loader *loader;

    (void)state;
    start_as("1");
    assert_ok(open_on(&loader, "cuda", "prefetch: 2"));
    assert_true(says(loader, "\"device\": \"cuda:1\""));
    assert_true(says(loader, "LOCAL_RANK in the environment"));
    stk_loader_destroy(loader);
    assert_int_equal(sim_count().contexts[0], 0);
}

static void more_ranks_than_gpus_is_an_error_that_names_both(void **state)
{
    stk_loader *loader = NULL;

    (void)state;
    start_as("2");
    memset(&err, 0, sizeof err);
    assert_int_equal(stk_loader_open_text("{dataset: {fields: {x: {synthetic: {count: 64, shape: [10], dtype: u8}}}},"
                                          " loader: {batch_size: 8, device: cuda}}",
                                          NULL, NULL, 0, &loader, &err),
                     STK_E_DEVICE);
    assert_says("LOCAL_RANK is 2");
    assert_says("2 GPUs are visible");
    assert_int_equal(sim_count().contexts[0], 0);
}

static void without_a_local_rank_it_is_the_first(void **state)
{
    stk_loader *loader;

    (void)state;
    start_as("1"); /* only one GPU is visible: its own, whatever its number on the machine */
    sim_set_visible(1);
    assert_ok(open_on(&loader, "cuda", "prefetch: 2"));
    assert_true(says(loader, "\"device\": \"cuda:0\""));
    stk_loader_destroy(loader);
    sim_set_visible(SIM_GPUS);
    assert_ok(open_on(&loader, "cuda", "launcher: none"));
    assert_true(says(loader, "\"device\": \"cuda:0\""));
    stk_loader_destroy(loader);
    start_as(NULL);
    assert_ok(open_on(&loader, "cuda", "prefetch: 2"));
    assert_true(says(loader, "\"device\": \"cuda:0\""));
    stk_loader_destroy(loader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_read),
        cmocka_unit_test(pinned_memory_is_the_ranks_and_near_it),
        cmocka_unit_test(cuda_is_the_gpu_of_the_local_rank),
        cmocka_unit_test(more_ranks_than_gpus_is_an_error_that_names_both),
        cmocka_unit_test(without_a_local_rank_it_is_the_first),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    if (stki_numa_sysfs[0] && strcmp(stki_numa_sysfs, "/sys") != 0)
        stkt_remove_dir(stki_numa_sysfs);
    return failed;
}
