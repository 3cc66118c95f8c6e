/* stki-threads */
/* A process is killed at random moments and restarted until it finishes. The last checkpoint must contain every sample
 * of every epoch exactly once. A checkpoint is one file with the loader's position and the samples seen so far, which
 * stand in for the weights of a training run. */
#include "loader_test.h"
#include "test_random.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 301, EPOCHS = 3 };

typedef struct checkpoint {
    int64_t state_bytes;
    uint8_t state[STK_STATE_MAX];
    int64_t count;
    int32_t seen[COUNT * EPOCHS]; /* epoch * COUNT + sample */
} checkpoint;

static bool read_checkpoint(const char *path, checkpoint *to)
{
    FILE *file = fopen(path, "rb");
    bool good;

    if (!file)
        return false;
    good = fread(to, sizeof *to, 1, file) == 1;
    fclose(file);
    return good;
}

static bool write_checkpoint(const char *path, const checkpoint *from)
{
    char beside[600];
    FILE *file;
    bool good;

    snprintf(beside, sizeof beside, "%s.tmp", path);
    file = fopen(beside, "wb");
    if (!file)
        return false;
    good = fwrite(from, sizeof *from, 1, file) == 1;
    return fclose(file) == 0 && good && rename(beside, path) == 0;
}

/* The training process. Returns its exit status. */
static int train(const char *path, int workers)
{
    static checkpoint now;
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    memset(&now, 0, sizeof now);
    if (stkt_open(
            &loader,
            "{dataset: {fields: {x: {synthetic: {count: 301, shape: [16], read_time: 50us, form: scratch}}}}, loader: "
            "{batch_size: 8, order: random, seed: 12, num_epochs: 3, num_workers: %d, prefetch: 5}}",
            workers) != STK_OK)
        return 2;
    if (read_checkpoint(path, &now) && stk_loader_restore(loader, now.state, now.state_bytes, NULL) != STK_OK)
        return 3;
    for (int i = 1; (status = stk_loader_next(loader, &batch, NULL)) == STK_OK; i++) {
        for (int64_t r = 0; r < stk_batch_rows(batch); r++) {
            if (now.count == COUNT * EPOCHS)
                return 4;
            now.seen[now.count++] = (int32_t)(stk_batch_epoch(batch) * COUNT + stk_batch_indices(batch)[r]);
        }
        stk_batch_release(batch);
        if (i % 4 == 0 && (stk_loader_save(loader, now.state, sizeof now.state, &now.state_bytes, NULL) != STK_OK ||
                           !write_checkpoint(path, &now)))
            return 5;
    }
    if (stk_loader_save(loader, now.state, sizeof now.state, &now.state_bytes, NULL) != STK_OK ||
        !write_checkpoint(path, &now))
        return 6;
    stk_loader_destroy(loader);
    return status == STK_END ? 0 : 7;
}

static void killed_and_started_again(void **state)
{
    char dir[512], path[560];
    uint64_t random = 5;
    int64_t most_us = 4000;
    int status = -1, killed = 0;

    (void)state;
    snprintf(dir, sizeof dir, "%s", stkt_make_dir());
    snprintf(path, sizeof path, "%s/checkpoint", dir);
    for (int turn = 0; turn < 200; turn++) {
        pid_t child;

        fflush(NULL);
        child = fork();
        if (child == 0)
            _exit(train(path, turn % 4));
        assert_true(child > 0);
        stki_sleep_ns(1000 * stkt_random_in(&random, 1000, most_us));
        most_us += 500 + most_us / 20; /* so that the test finishes on any machine */
        (void)kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status))
            break;
        assert_int_equal(WTERMSIG(status), SIGKILL);
        killed++;
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    print_message("killed %d times\n", killed);
    {
        static checkpoint last;
        static uint8_t times[COUNT * EPOCHS];

        assert_true(read_checkpoint(path, &last));
        assert_int_equal(last.count, COUNT * EPOCHS);
        for (int64_t i = 0; i < last.count; i++) {
            assert_in_range(last.seen[i], i / COUNT * COUNT, i / COUNT * COUNT + COUNT - 1);
            times[last.seen[i]]++;
        }
        for (int i = 0; i < COUNT * EPOCHS; i++)
            assert_int_equal(times[i], 1);
    }
    stkt_remove_dir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_and_started_again)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
