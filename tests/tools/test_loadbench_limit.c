/* stki-threads */
/* Tests of the measurement of the machine's limit: its copies must be correct, and it must measure what it claims to
 * measure. */
#include "allocate.h"
#include "faults.h"
#include "loadbench_copy.h"
#include "loadbench_limit.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Returns whether all memory allocated by the measurement was freed. */
static bool nothing_held(void)
{
    stki_memory_stats stats;

    stki_memory_read(STKI_MEM_SLOT, &stats);
    return stats.bytes == 0 && stats.blocks == 0;
}

static void copies_copy(void **state)
{
    static unsigned char from[1024], to[1024];
    const lb_copy copies[] = {lb_copy_plain, lb_copy_streaming()};

    (void)state;
    for (int i = 0; i < 1024; i++)
        from[i] = (unsigned char)(i * 7 + 1);
    for (int way = 0; way < 2; way++)
        for (int64_t bytes = 0; copies[way] && bytes < 200; bytes++)
            for (int offset = 0; offset < 70; offset += 3) {
                memset(to, 0xee, sizeof to);
                copies[way](to + 64 + offset, from + offset % 5, bytes);
                lb_copy_fence();
                for (int i = 0; i < 1024; i++) {
                    const int at = i - 64 - offset;
                    const bool inside = at >= 0 && at < bytes;
                    assert_int_equal(to[i], inside ? from[offset % 5 + at] : 0xee);
                }
            }
}

/* The measurement of writes must write every byte of the target and none around it, and leave the source unchanged. */
static void writes_write(void **state)
{
    static unsigned char to[1024];
    const lb_copy writes[] = {lb_write_plain, lb_write_streaming()};

    (void)state;
    for (int way = 0; way < 2; way++)
        for (int64_t bytes = 0; writes[way] && bytes < 200; bytes++)
            for (int offset = 0; offset < 70; offset += 3) {
                memset(to, 0xee, sizeof to);
                writes[way](to + 64 + offset, NULL, bytes);
                lb_copy_fence();
                for (int i = 0; i < 1024; i++)
                    assert_int_equal(to[i], i >= 64 + offset && i < 64 + offset + bytes ? 3 : 0xee);
            }
}

static struct lb_limit measure(struct lb_limit_ask ask)
{
    struct lb_limit limit;
    stk_error err;

    ask.time_ns = 2000000;
    ask.block_bytes = 16 << 20;
    assert_int_equal(lb_limit_measure(&ask, &limit, &err), STK_OK);
    assert_true(limit.memcpy.bytes_per_s > 1e6);
    assert_true(limit.gather.bytes_per_s > 1e6);
    assert_true(limit.write.bytes_per_s > 1e6);
    assert_non_null(limit.memcpy.way);
    assert_non_null(limit.write.way);
    assert_non_null(limit.gather.way);
    return limit;
}

static void from_memory(void **state)
{
    const struct lb_limit limit = measure((struct lb_limit_ask){
        .threads = 2, .row_bytes = 3072, .row_count = 1000, .slot_bytes = 1 << 20, .random = true});

    (void)state;
    assert_false(limit.from_file);
    assert_true(limit.random);
    assert_int_equal(limit.threads, 2);
    assert_int_equal(limit.row_bytes, 3072);
    assert_int_equal(limit.source_bytes, 3072 * 1000);
    assert_int_equal(limit.target_bytes, 1 << 20);
    assert_true(nothing_held());
}

static void from_the_file(void **state)
{
    char path[] = "/tmp/stoker_limit_XXXXXX";
    const int fd = mkstemp(path);
    char row[1000] = "x";

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, row, 128), 128);
    for (int i = 0; i < 50; i++)
        assert_int_equal(write(fd, row, sizeof row), sizeof row);
    close(fd);
    const struct lb_limit limit = measure(
        (struct lb_limit_ask){.threads = 1, .row_bytes = 1000, .row_count = 50, .slot_bytes = 64000, .path = path});
    assert_true(limit.from_file);
    assert_int_equal(limit.source_bytes, 50000);
    unlink(path);
}

/* With a file that is only on disk, the disk would be measured. */
static void not_from_a_cold_file(void **state)
{
    char path[] = "stoker_limit_XXXXXX"; /* in the current folder, because /tmp may be in memory, which is never cold */
    const int fd = mkstemp(path);
    const int64_t bytes = 1 << 20;
    unsigned char pages[256] = {0};
    int resident = 0;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(write(fd, "x", 1), 1);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(mincore(map, (size_t)bytes, pages), 0);
    munmap(map, (size_t)bytes);
    close(fd);
    for (int i = 0; i < 256; i++)
        resident += pages[i] & 1;
    const struct lb_limit limit =
        measure((struct lb_limit_ask){.threads = 1, .row_bytes = 4096, .row_count = 9, .slot_bytes = 9, .path = path});
    unlink(path);
    if (resident == 256)
        skip(); /* this file system always keeps it in memory */
    assert_false(limit.from_file);
}

static void unusual_sizes(void **state)
{
    (void)state;
    assert_false(measure((struct lb_limit_ask){.path = "/nowhere/at/all", .row_bytes = 10, .threads = 1}).from_file);
    assert_int_equal(measure((struct lb_limit_ask){.threads = 0}).threads, 1);
    /* a row that is larger than all slots together, and more threads than rows */
    const struct lb_limit limit =
        measure((struct lb_limit_ask){.threads = 3, .row_bytes = 1 << 22, .row_count = 1, .slot_bytes = 100});
    assert_int_equal(limit.target_bytes, 3 << 22);
}

static void no_memory(void **state)
{
    const struct lb_limit_ask ask = {
        .threads = 1, .row_bytes = 64, .row_count = 10, .slot_bytes = 640, .time_ns = 1000, .block_bytes = 1 << 20};
    int64_t n = 1;

    (void)state;
    for (;; n++) {
        struct lb_limit limit;
        stk_error err;
        stki_memory_fail_at(n);
        const stk_status status = lb_limit_measure(&ask, &limit, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_true(nothing_held());
    }
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_copy),   cmocka_unit_test(writes_write),         cmocka_unit_test(from_memory),
        cmocka_unit_test(from_the_file), cmocka_unit_test(not_from_a_cold_file), cmocka_unit_test(unusual_sizes),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
