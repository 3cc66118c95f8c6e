/* Tests of the allocator: counting by kind, alignment, huge pages, growing arrays, and allocations that fail on
 * request. */
#include "allocate.h"
#include "faults.h"
#include "grow.h"
#include "stk_test.h"
#include <malloc.h>
#include <string.h>

static stki_memory_stats stats_of(enum stki_memory_kind kind)
{
    stki_memory_stats stats;

    stki_memory_read(kind, &stats);
    return stats;
}

static void assert_back_to(const stki_memory_stats *before, enum stki_memory_kind kind)
{
    stki_memory_stats now = stats_of(kind);

    assert_int_equal(now.bytes, before->bytes);
    assert_int_equal(now.blocks, before->blocks);
}

static void small_blocks_are_zeroed_and_counted(void **state)
{
    stki_memory_stats before = stats_of(STKI_MEM_HOST), now;
    unsigned char *block = stki_zalloc(1000), zero[1000] = {0};
    int64_t usable = (int64_t)malloc_usable_size(block);

    (void)state;
    assert_memory_equal(block, zero, 1000);
    now = stats_of(STKI_MEM_HOST);
    assert_int_equal(now.bytes - before.bytes, usable);
    assert_int_equal(now.blocks - before.blocks, 1);
    assert_int_equal(now.total_allocations - before.total_allocations, 1);
    assert_true(now.peak_bytes >= now.bytes && now.largest_bytes >= usable);
    stki_free(block);
    assert_back_to(&before, STKI_MEM_HOST);
    assert_int_equal(stats_of(STKI_MEM_HOST).total_allocations, now.total_allocations);
    stki_free(NULL);
    block = stki_zalloc(0);
    assert_non_null(block);
    stki_free(block);
    assert_null(stki_zalloc(-1));
    assert_back_to(&before, STKI_MEM_HOST);
}

static void arrays_do_not_overflow(void **state)
{
    stki_memory_stats before = stats_of(STKI_MEM_HOST);
    void *array = stki_zalloc_array(10, 16);

    (void)state;
    assert_true(malloc_usable_size(array) >= 160);
    stki_free(array);
    assert_null(stki_zalloc_array(INT64_MAX / 2, 4));
    assert_null(stki_zalloc_array(-1, 4));
    assert_null(stki_zalloc_array(4, -1));
    assert_null(stki_zalloc_array(-4, -4));
    assert_back_to(&before, STKI_MEM_HOST);
}

static void resizing_keeps_content_and_counts(void **state)
{
    stki_memory_stats before = stats_of(STKI_MEM_HOST);
    char *block = stki_resize(NULL, 10), *moved;

    (void)state;
    memcpy(block, "123456789", 10);
    assert_int_equal(stats_of(STKI_MEM_HOST).blocks - before.blocks, 1);
    block = stki_resize(block, 100000);
    assert_string_equal(block, "123456789");
    assert_int_equal(stats_of(STKI_MEM_HOST).blocks - before.blocks, 1);
    assert_int_equal(stats_of(STKI_MEM_HOST).bytes - before.bytes, (int64_t)malloc_usable_size(block));
    stki_memory_fail_at(1);
    moved = stki_resize(block, 200000);
    assert_null(moved);
    assert_string_equal(block, "123456789"); /* as with realloc, the old block stays valid */
    assert_null(stki_resize(block, -1));
    stki_free(block);
    assert_back_to(&before, STKI_MEM_HOST);
}

static void texts(void **state)
{
    stki_memory_stats before = stats_of(STKI_MEM_HOST);
    char *copy = stki_strdup("hello"), *made = stki_format("%s-%03d", copy, 7), *empty = stki_strdup("");

    (void)state;
    assert_string_equal(copy, "hello");
    assert_string_equal(made, "hello-007");
    assert_string_equal(empty, "");
    stki_free(copy);
    stki_free(made);
    stki_free(empty);
    stki_memory_fail_at(1);
    assert_null(stki_strdup("x"));
    stki_memory_fail_at(1);
    assert_null(stki_format("%d", 1));
    assert_back_to(&before, STKI_MEM_HOST);
}

static void check_blocks(const stki_allocator *allocator, enum stki_memory_kind kind, int64_t least_alignment)
{
    static const int64_t alignments[] = {0, 1, 8, 64, 4096, 1 << 16, 4 << 20};
    static const int64_t sizes[] = {0, 1, 63, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20};
    stki_memory_stats before = stats_of(kind);
    size_t a, s;

    for (a = 0; a < sizeof alignments / sizeof alignments[0]; a++)
        for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            char *block = stki_block_alloc(allocator, sizes[s], alignments[a]);
            int64_t alignment = alignments[a] > least_alignment ? alignments[a] : least_alignment;

            assert_non_null(block);
            assert_int_equal((int64_t)((uintptr_t)block & (uintptr_t)(alignment - 1)), 0);
            memset(block, 0xa5, (size_t)sizes[s]);
            assert_int_equal(stats_of(kind).bytes - before.bytes, sizes[s]);
            assert_int_equal(stats_of(kind).blocks - before.blocks, 1);
            stki_block_free(allocator, block, sizes[s], alignments[a]);
            assert_back_to(&before, kind);
        }
    assert_null(stki_block_alloc(allocator, -1, 64));
    assert_null(stki_block_alloc(allocator, INT64_MAX, 64));
    assert_null(stki_block_alloc(allocator, 64, 48));
    assert_null(stki_block_alloc(allocator, 64, -64));
    stki_memory_fail_at(1);
    assert_null(stki_block_alloc(allocator, 64, 64));
    stki_block_free(allocator, NULL, 64, 64);
    assert_back_to(&before, kind);
}

static void blocks_of_the_heap(void **state)
{
    (void)state;
    check_blocks(&stki_heap, STKI_MEM_HOST, 64);
    check_blocks(NULL, STKI_MEM_HOST, 64);
    check_blocks(&stki_slot_heap, STKI_MEM_SLOT, 64);
}

static void blocks_of_huge_pages(void **state)
{
    char *block, *other;
    int64_t i;

    (void)state;
    check_blocks(&stki_huge_pages, STKI_MEM_SLOT, 2 << 20);
    block = stki_block_alloc(&stki_huge_pages, 3 << 20, 64);
    other = stki_block_alloc(&stki_huge_pages, 3 << 20, 64);
    for (i = 0; i < 3 << 20; i += 4096)
        assert_int_equal(block[i], 0);
    memset(block, 1, 3 << 20);
    memset(other, 2, 3 << 20);
    assert_int_equal(block[(3 << 20) - 1], 1);
    stki_block_free(&stki_huge_pages, block, 3 << 20, 64);
    assert_int_equal(other[0], 2);
    stki_block_free(&stki_huge_pages, other, 3 << 20, 64);
}

static void peaks(void **state)
{
    stki_memory_stats before, now;
    void *one, *two;

    (void)state;
    stki_memory_reset_peak(STKI_MEM_SLOT);
    before = stats_of(STKI_MEM_SLOT);
    assert_int_equal(before.peak_bytes, before.bytes);
    one = stki_block_alloc(&stki_huge_pages, 1000, 64);
    two = stki_block_alloc(&stki_huge_pages, 500, 64);
    stki_block_free(&stki_huge_pages, one, 1000, 64);
    now = stats_of(STKI_MEM_SLOT);
    assert_int_equal(now.peak_bytes - before.bytes, 1500);
    assert_int_equal(now.bytes - before.bytes, 500);
    stki_memory_reset_peak(STKI_MEM_SLOT);
    assert_int_equal(stats_of(STKI_MEM_SLOT).peak_bytes - before.bytes, 500);
    stki_block_free(&stki_huge_pages, two, 500, 64);
}

static void memory_of_devices_is_counted(void **state)
{
    stki_memory_stats before = stats_of(STKI_MEM_DEVICE), now;

    (void)state;
    stki_memory_note(STKI_MEM_DEVICE, 300, 1);
    stki_memory_note(STKI_MEM_DEVICE, 200, 1);
    stki_memory_note(STKI_MEM_DEVICE, -300, -1);
    now = stats_of(STKI_MEM_DEVICE);
    assert_int_equal(now.bytes - before.bytes, 200);
    assert_int_equal(now.blocks - before.blocks, 1);
    assert_int_equal(now.total_allocations - before.total_allocations, 2);
    assert_int_equal(now.largest_bytes, 300);
    assert_int_equal(stats_of(STKI_MEM_PINNED).total_allocations, 0);
    stki_memory_note(STKI_MEM_DEVICE, -200, -1);
}

static void the_nth_allocation_fails_once(void **state)
{
    int n, i;

    (void)state;
    for (n = 1; n <= 5; n++) {
        stki_memory_fail_at(n);
        for (i = 1; i <= 8; i++) {
            void *block = i % 2 ? stki_zalloc(8) : stki_block_alloc(NULL, 8, 64);

            assert_int_equal(block == NULL, i == n);
            if (i % 2)
                stki_free(block);
            else
                stki_block_free(NULL, block, 8, 64);
        }
    }
    stki_memory_fail_at(1);
    stki_memory_fail_at(0);
    stki_free(stki_zalloc(8));
}

/* The capacity doubles. If memory is short or the size does not fit in 64 bits, nothing changes. */
static void arrays_grow_by_doubling(void **state)
{
    int64_t *array = NULL, *before, room = 0;
    stk_error err;

    (void)state;
    for (int64_t i = 0; i < 100; i++) {
        assert_ok(stki_grow(&array, &room, i + 1, sizeof *array, "numbers", &err));
        assert_true(room > i && room <= 4 + 2 * i);
        array[i] = i;
    }
    before = array;
    stki_memory_fail_at(1);
    assert_status(stki_grow(&array, &room, room + 1, sizeof *array, "numbers", &err), STK_E_MEMORY);
    stki_memory_fail_at(0);
    assert_status(stki_grow(&array, &room, INT64_MAX / 8 + 1, sizeof *array, "numbers", &err), STK_E_MEMORY);
    assert_status(stki_grow(&array, &room, INT64_MAX, 1, "numbers", &err), STK_E_MEMORY);
    assert_ptr_equal(array, before);
    assert_int_equal(room, 128);
    for (int64_t i = 0; i < 100; i++)
        assert_int_equal(array[i], i);
    stki_free(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks_are_zeroed_and_counted),
        cmocka_unit_test(arrays_do_not_overflow),
        cmocka_unit_test(resizing_keeps_content_and_counts),
        cmocka_unit_test(arrays_grow_by_doubling),
        cmocka_unit_test(texts),
        cmocka_unit_test(blocks_of_the_heap),
        cmocka_unit_test(blocks_of_huge_pages),
        cmocka_unit_test(peaks),
        cmocka_unit_test(memory_of_devices_is_counted),
        cmocka_unit_test(the_nth_allocation_fails_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
