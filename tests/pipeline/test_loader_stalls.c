/* stki-threads */
/* Tests of the report about the workers of a stalled loader: their stage, file, record, step and time. The test blocks
 * a transform, and a missing page of a mapped file, whose SIGBUS handler waits. */
#include "io_files.h"
#include "loader_handle.h"
#include "loader_test.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>

static sem_t inside, go_on;

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

/* The worker has been in the stage since `entered`, and the report must not give a longer time than since `before`. */
static void look(const stk_loader *loader, stki_doing *doing, int64_t before, int64_t entered)
{
    const int64_t coarse_ns = 20000000; /* possible lag of a coarse clock */
    int64_t now;

    do {
        now = stki_now_ns();
        stki_worker_look(&loader->core->workers[0], doing);
        assert_true(doing->ns + coarse_ns >= now - entered);
        assert_true(doing->ns - coarse_ns <= stki_now_ns() - before);
    } while (doing->ns < 2 * coarse_ns);
}

static stk_status hold(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                       stk_error *err)
{
    (void)context, (void)err;
    if (call->sample == 5) {
        sem_post(&inside);
        wait_for(&go_on);
    }
    memcpy(out->data, in->data, (size_t)stk_tensor_nbytes(out));
    return STK_OK;
}

/* Sample 5 belongs to step 1. The calls before it are short, so its own call may not have been timed. */
static void a_transform_that_does_not_return(void **state)
{
    stk_transform transform = STK_TRANSFORM_INIT;
    stk_error err;

    (void)state;
    transform.name = "hold";
    transform.run = hold;
    assert_ok(stk_transform_register(&transform, &err));
    for (int device = 0; device < 2; device++) {
        const int64_t before = stki_now_ns();
        stk_loader *loader;
        stk_batch *batch;
        stki_doing doing;
        long long step = -1;
        const char *at;

        assert_ok(stkt_open(&loader,
                            "{dataset: {fields: {x: {synthetic: {count: 40, shape: [4], dtype: u8}, transforms: "
                            "[{call: hold}]}}}, loader: {batch_size: 4, num_workers: 1%s}}",
                            device ? ", device: host" : ""));
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
        wait_for(&inside);
        look(loader, &doing, before, stki_now_ns());
        assert_int_equal(doing.stage, STKI_STAGE_READ);
        assert_int_equal(doing.part, STKI_READ_CALL);
        assert_int_equal(doing.record, 5);
        assert_status(stk_loader_next_timeout(loader, 1000000, &batch, &err), STK_E_TIMEOUT);
        at = strstr(err.message, "step ");
        assert_true(at && sscanf(at, "step %lld", &step) == 1);
        assert_int_equal(step, 1);
        sem_post(&go_on);
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
        do
            stki_worker_look(&loader->core->workers[0], &doing);
        while (doing.part == STKI_READ_CALL && doing.record == 5);
        stk_loader_destroy(loader);
    }
}

/* The SIGBUS handler uses only functions that are safe there: sem_post is async-signal-safe, and sem_wait only makes
 * system calls. */
static void on_missing_page(int number, siginfo_t *info, void *context)
{
    const uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);

    (void)number, (void)context;
    sem_post(&inside);
    wait_for(&go_on);
    if (mmap((void *)page, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        _exit(98);
}

/* Two files of 8 rows of two pages each; the second file ends before its row 6. */
static void a_page_that_does_not_arrive(void **state)
{
    enum { ROWS = 8, ROW_BYTES = 8192 };
    static unsigned char rows[ROWS * ROW_BYTES];
    struct sigaction action = {.sa_sigaction = on_missing_page, .sa_flags = SA_SIGINFO}, old;
    const char *second = stkt_path("b.npy");
    const int64_t before = stki_now_ns();
    struct stat st;
    stk_loader *loader;
    stk_batch *batch;
    stki_doing doing;
    stk_error err;

    (void)state;
    stkt_write_npy(stkt_path("a.npy"), "|u1", "False", "(8, 8192)", 64, rows, sizeof rows);
    stkt_write_npy(second, "|u1", "False", "(8, 8192)", 64, rows, sizeof rows);
    assert_int_equal(stat(second, &st), 0);
    assert_int_equal(sigaction(SIGBUS, &action, &old), 0);
    assert_ok(stkt_open(&loader,
                        "{dataset: {fields: {x: {path: ['%s', '%s']}}}, loader: {batch_size: 2, num_workers: 1, "
                        "prefetch: 2, order: sequential, sigbus_guard: false}}",
                        stkt_path("a.npy"), second));
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(truncate(second, st.st_size - 2 * ROW_BYTES), 0);
    for (int step = 0; step < 6; step++) { /* rows 2 to 13; the next one blocks */
        stk_batch_release(batch);
        assert_ok(stk_loader_next(loader, &batch, &err));
    }
    stk_batch_release(batch);
    wait_for(&inside);
    look(loader, &doing, before, stki_now_ns());
    assert_int_equal(doing.stage, STKI_STAGE_MAPPED);
    assert_string_equal(doing.path, second);
    assert_int_equal(doing.record, 6);
    for (int page = 0; page < 6; page++) /* more posts than are needed */
        sem_post(&go_on);
    assert_ok(stk_loader_next(loader, &batch, &err));
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    sigaction(SIGBUS, &old, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transform_that_does_not_return),
        cmocka_unit_test(a_page_that_does_not_arrive),
    };

    assert_true(sem_init(&inside, 0, 0) == 0 && sem_init(&go_on, 0, 0) == 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
