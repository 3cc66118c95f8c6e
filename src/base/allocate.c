/* allocate.c: see allocate.h. */
#include "allocate.h"
#include "checked.h"
#include "counter.h"
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE (INT64_C(2) << 20)

static stki_memory_counters kinds[STKI_MEM_KINDS];

void stki_counters_note(stki_memory_counters *counters, int64_t bytes, int64_t blocks)
{
    int64_t now = atomic_fetch_add_explicit(&counters->bytes, bytes, memory_order_relaxed) + bytes;

    stki_count(&counters->blocks, blocks);
    if (blocks > 0) {
        stki_count(&counters->total, blocks);
        stki_count_max(&counters->peak, now);
        stki_count_max(&counters->largest, bytes);
    }
}

void stki_counters_read(const stki_memory_counters *counters, stki_memory_stats *out)
{
    *out = (stki_memory_stats){
        .bytes = stki_counted(&counters->bytes),
        .peak_bytes = stki_counted(&counters->peak),
        .blocks = stki_counted(&counters->blocks),
        .largest_bytes = stki_counted(&counters->largest),
        .total_allocations = stki_counted(&counters->total),
    };
}

void stki_memory_note(enum stki_memory_kind kind, int64_t bytes, int64_t blocks)
{
    stki_counters_note(&kinds[kind], bytes, blocks);
}

void stki_memory_read(enum stki_memory_kind kind, stki_memory_stats *out)
{
    stki_counters_read(&kinds[kind], out);
}

void stki_memory_reset_peak(enum stki_memory_kind kind)
{
    stki_count_set(&kinds[kind].peak, stki_counted(&kinds[kind].bytes));
}

static void *heap_alloc(const stki_allocator *self, int64_t bytes, int64_t alignment)
{
    void *block = NULL;

    (void)self;
    return posix_memalign(&block, (size_t)(alignment < 64 ? 64 : alignment), (size_t)(bytes ? bytes : 1)) ? NULL
                                                                                                          : block;
}

static void heap_free(const stki_allocator *self, void *block, int64_t bytes, int64_t alignment)
{
    (void)self, (void)bytes, (void)alignment;
    free(block);
}

/* Blocks with huge pages are mapped, not allocated from the heap: on heap pages, madvise would stay in effect after the
 * block is freed. In addition, munmap returns the memory to the system immediately. */
static int64_t huge_bytes(int64_t bytes)
{
    return stki_round_up(bytes ? bytes : 1, HUGE_PAGE);
}

void stki_block_prefer_huge(void *block, int64_t bytes)
{
    (void)madvise(block, (size_t)bytes, MADV_HUGEPAGE);
}

static void *huge_alloc(const stki_allocator *self, int64_t bytes, int64_t alignment)
{
    int64_t wanted = huge_bytes(bytes), align = alignment < HUGE_PAGE ? HUGE_PAGE : alignment, before, behind;
    char *mapping = mmap(NULL, (size_t)(wanted + align), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *block;

    (void)self;
    if (mapping == MAP_FAILED)
        return NULL;
    before = (int64_t)(-(uintptr_t)mapping & (uintptr_t)(align - 1));
    behind = align - before;
    block = mapping + before;
    if (before)
        (void)munmap(mapping, (size_t)before);
    (void)munmap(block + wanted, (size_t)behind); /* align is at least a page, so before < align */
    stki_block_prefer_huge(block, wanted);
    return block;
}

static void huge_free(const stki_allocator *self, void *block, int64_t bytes, int64_t alignment)
{
    (void)self, (void)alignment;
    (void)munmap(block, (size_t)huge_bytes(bytes));
}

const stki_allocator stki_heap = {.name = "heap", .kind = STKI_MEM_HOST, .alloc = heap_alloc, .free = heap_free};
const stki_allocator stki_slot_heap = {.name = "heap", .kind = STKI_MEM_SLOT, .alloc = heap_alloc, .free = heap_free};
const stki_allocator stki_huge_pages = {.name = "huge", .kind = STKI_MEM_SLOT, .alloc = huge_alloc, .free = huge_free};

void *stki_block_alloc(const stki_allocator *allocator, int64_t bytes, int64_t alignment)
{
    void *block;

    if (!allocator)
        allocator = &stki_heap;
    if (bytes < 0 || bytes > INT64_MAX / 2 || alignment < 0 || (alignment & (alignment - 1)))
        return NULL;
    block = allocator->alloc(allocator, bytes, alignment);
    if (block)
        stki_memory_note(allocator->kind, bytes, 1);
    return block;
}

void stki_block_free(const stki_allocator *allocator, void *block, int64_t bytes, int64_t alignment)
{
    if (!block)
        return;
    if (!allocator)
        allocator = &stki_heap;
    stki_memory_note(allocator->kind, -bytes, -1);
    allocator->free(allocator, block, bytes, alignment);
}

void *stki_zalloc(int64_t bytes)
{
    void *block;

    if (bytes < 0)
        return NULL;
    block = calloc(1, (size_t)(bytes ? bytes : 1));
    if (block)
        stki_memory_note(STKI_MEM_HOST, (int64_t)malloc_usable_size(block), 1);
    return block;
}

void *stki_zalloc_array(int64_t count, int64_t bytes_each)
{
    int64_t bytes;

    return count >= 0 && bytes_each >= 0 && stki_mul(count, bytes_each, &bytes) ? stki_zalloc(bytes) : NULL;
}

void *stki_resize(void *block, int64_t bytes)
{
    int64_t before = block ? (int64_t)malloc_usable_size(block) : 0;
    void *moved;

    if (bytes < 0)
        return NULL;
    moved = realloc(block, (size_t)(bytes ? bytes : 1));
    if (moved) {
        if (block)
            stki_memory_note(STKI_MEM_HOST, -before, -1);
        stki_memory_note(STKI_MEM_HOST, (int64_t)malloc_usable_size(moved), 1);
    }
    return moved;
}

char *stki_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = stki_zalloc((int64_t)bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

char *stki_format(const char *format, ...)
{
    va_list args;
    int length;
    char *text;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = length < 0 ? NULL : stki_zalloc((int64_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void stki_free(void *block)
{
    if (!block)
        return;
    stki_memory_note(STKI_MEM_HOST, -(int64_t)malloc_usable_size(block), -1);
    free(block);
}

void stk_text_free(char *text)
{
    stki_free(text);
}
