/* stki-threads, stki-long: ten thousand loops that are left early, in one loader and in ten thousand loaders, must not
 * accumulate threads, descriptors or memory (row W34). */
#include "allocate.h"
#include "loader_test.h"
#include <dirent.h>
#include <unistd.h>

enum { TIMES = 10000, WARM = 200 };

static int64_t entries(const char *path)
{
    DIR *dir = opendir(path);
    int64_t count = 0;

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* VmRSS in bytes. */
static int64_t resident(void)
{
    long long pages = 0, skipped;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lld %lld", &skipped, &pages), 2);
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

typedef struct footprint {
    int64_t threads, descriptors, resident;
    stki_memory_stats host, slots;
} footprint;

static footprint take(void)
{
    footprint now = {
        .threads = entries("/proc/self/task"), .descriptors = entries("/proc/self/fd"), .resident = resident()};

    stki_memory_read(STKI_MEM_HOST, &now.host);
    stki_memory_read(STKI_MEM_SLOT, &now.slots);
    return now;
}

static void check(const footprint *before, const footprint *after)
{
    print_message("%lld threads, %lld descriptors, %lld bytes counted, %lld resident (%lld before)\n",
                  (long long)after->threads, (long long)after->descriptors, (long long)after->host.bytes,
                  (long long)after->resident, (long long)before->resident);
    assert_int_equal(after->threads, before->threads);
    assert_int_equal(after->descriptors, before->descriptors);
    assert_true(after->host.bytes <= before->host.bytes + 4096);
    assert_int_equal(after->slots.bytes, before->slots.bytes);
    assert_true(after->resident <= before->resident + (INT64_C(16) << 20)); /* heap overhead */
}

#define FILES                                                                                                    \
    "{dataset: {fields: {image: {path: " STKT_TESTS_DIR "/data/digits_images.npy, transforms: [{scale: 0.5}]}, " \
    "label: {path: " STKT_TESTS_DIR "/data/digits_labels.npy}}}, loader: {batch_size: 32, order: random, "       \
    "num_epochs: 0, num_workers: 3%s}}"

static void in_one_loader(void **state)
{
    stk_loader *loader;
    footprint before = {0};
    stk_batch *batch;
    stk_error err;

    (void)state;
    assert_int_equal(stkt_open(&loader, FILES, ""), STK_OK);
    for (int epoch = 0; epoch < TIMES; epoch++) {
        for (int i = 0; i < epoch % 5; i++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            assert_int_equal(stk_batch_epoch(batch), epoch);
            assert_int_equal(stk_batch_step(batch), i);
            stk_batch_release(batch);
        }
        assert_ok(stk_loader_seek(loader, epoch + 1, 0, &err));
        if (epoch == WARM)
            before = take();
        if (epoch == TIMES - 1) {
            footprint after = take();

            check(&before, &after);
        }
    }
    stk_loader_destroy(loader);
}

static void in_many_loaders(void **state)
{
    footprint before = {0};

    (void)state;
    for (int i = 0; i < TIMES; i++) {
        stk_loader *loader;
        stk_batch *batch, *held = NULL;
        stk_error err;

        assert_int_equal(stkt_open(&loader, FILES,
                                   i % 7 == 0    ? ", access: pread"
                                   : i % 11 == 0 ? ", device: host"
                                                 : ""),
                         STK_OK);
        for (int k = 0; k < i % 4; k++) {
            assert_ok(stk_loader_next(loader, &batch, &err));
            if (k == 1)
                held = batch; /* outlives the loader */
            else
                stk_batch_release(batch);
        }
        if (i % 3 == 0)
            assert_ok(stk_loader_close(loader, &err));
        stk_loader_destroy(loader);
        stk_batch_release(held);
        if (i == WARM)
            before = take();
        if (i == TIMES - 1) {
            footprint after = take();

            check(&before, &after);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_one_loader), cmocka_unit_test(in_many_loaders)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
