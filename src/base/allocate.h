/* allocate.h: all memory of the library is allocated through these functions, which count it by kind. Thread-safe. */
#ifndef STKI_ALLOCATE_H
#define STKI_ALLOCATE_H

#include "counter.h"
#include <stddef.h>
#include <stdint.h>
#include <stoker/status.h>

enum stki_memory_kind {
    STKI_MEM_HOST,   /* internal structures and tensors in ordinary memory */
    STKI_MEM_SLOT,   /* batch slots */
    STKI_MEM_PINNED, /* page-locked memory */
    STKI_MEM_DEVICE, /* memory of an accelerator */
    STKI_MEM_KINDS
};

/* An allocator of aligned blocks. `free` is called with the same size and alignment as `alloc`. Thread-safe. */
typedef struct stki_allocator {
    const char *name;
    enum stki_memory_kind kind;
    void *(*alloc)(const struct stki_allocator *self, int64_t bytes, int64_t alignment); /* NULL: out of memory */
    void (*free)(const struct stki_allocator *self, void *block, int64_t bytes, int64_t alignment);
    void *context;
} stki_allocator;

extern const stki_allocator stki_heap;       /* posix_memalign; used if the allocator is NULL */
extern const stki_allocator stki_slot_heap;  /* posix_memalign, counted as STKI_MEM_SLOT */
extern const stki_allocator stki_huge_pages; /* 2 MiB aligned, MADV_HUGEPAGE, zeroed; counted as STKI_MEM_SLOT */

/* NULL: out of memory, or the alignment is not a power of two. Blocks are at least 64-byte aligned. Free a block with
 * the size and alignment with which it was allocated. */
void *stki_block_alloc(const stki_allocator *allocator, int64_t bytes, int64_t alignment);
void stki_block_free(const stki_allocator *allocator, void *block, int64_t bytes, int64_t alignment);
/* Requests huge pages for every complete huge page inside `block`; the rest stays in ordinary pages. */
void stki_block_prefer_huge(void *block, int64_t bytes);

/* Allocate small blocks on the heap, zeroed and counted with their malloc_usable_size. stki_free(NULL) is allowed. */
void *stki_zalloc(int64_t bytes);
void *stki_zalloc_array(int64_t count, int64_t bytes_each); /* also NULL if the product overflows */
void *stki_resize(void *block, int64_t bytes);              /* like realloc; new bytes are uninitialized */
char *stki_strdup(const char *text);
char *stki_format(const char *format, ...) STK_PRINTF(1, 2);
void stki_free(void *block);

typedef struct stki_memory_stats {
    int64_t bytes, peak_bytes, blocks, largest_bytes, total_allocations;
} stki_memory_stats;

/* The counters that stki_memory_stats reads; each device has its own set. */
typedef struct stki_memory_counters {
    stki_counter bytes, peak, blocks, largest, total, reserved;
} stki_memory_counters;

/* Adds `bytes` and `blocks`, negative for a release. */
void stki_counters_note(stki_memory_counters *counters, int64_t bytes, int64_t blocks);
void stki_counters_read(const stki_memory_counters *counters, stki_memory_stats *out);

void stki_memory_read(enum stki_memory_kind kind, stki_memory_stats *out);
void stki_memory_reset_peak(enum stki_memory_kind kind);
/* Counts device and pinned memory, which the allocators above do not provide. */
void stki_memory_note(enum stki_memory_kind kind, int64_t bytes, int64_t blocks);

#endif
