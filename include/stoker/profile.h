/* profile.h: where memory and time go. Three things, from cheap to dear:
 *
 *   accounting   bytes and blocks by device and kind of memory: always on
 *   profile      calls, time and bytes allocated of each operation: while it is switched on
 *   recording    for each storage made meanwhile who made it, where, and who holds it: while it is switched on
 *
 * Switched off, profile and recording cost one test of a flag an operation. Any thread may call anything here; the
 * texts are freed with stk_text_free.
 */
#ifndef STOKER_PROFILE_H
#define STOKER_PROFILE_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- accounting -------------------------------------------------------------------------------------------------- */

typedef struct stk_memory_row {
    const char *device; /* "cpu", "cuda:0"; static */
    const char *kind;   /* "host": tensors and bookkeeping, "slot": batches, "pinned": page-locked; "device": memory of
                           an accelerator. Static */
    int64_t allocated_bytes; /* in use now */
    int64_t reserved_bytes;  /* taken from the system or driver, in use or kept for later */
    int64_t peak_bytes;      /* the most that was in use at once */
    int64_t blocks;          /* in use now */
    int64_t largest_bytes;   /* of one block, ever */
    int64_t allocations;     /* ever */
} stk_memory_row;

/* Fills up to `max` rows; returns how many there are. */
STK_API int stk_memory_read(stk_memory_row *rows, int max);
/* Peaks start again from what is in use now. */
STK_API void stk_memory_reset_peaks(void);
/* The same as a table for people. */
STK_API stk_status stk_memory_summary(char **out, stk_error *err);

/* ---- profile ----------------------------------------------------------------------------------------------------- */

typedef struct stk_profile_row {
    const char *name;        /* "clone"; static */
    int64_t calls, time_ns;  /* the operations inside it included */
    int64_t own_ns;          /* without them */
    int64_t allocated_bytes; /* of storages that it made, the operations inside it included */
} stk_profile_row;

typedef enum stk_profile_order {
    STK_PROFILE_BY_TIME = 0, /* own time, most first */
    STK_PROFILE_BY_CALLS = 1,
    STK_PROFILE_BY_BYTES = 2,
    STK_PROFILE_BY_NAME = 3
} stk_profile_order;

/* Counts go on from where they were; reset sets them to 0. */
STK_API void stk_profile_start(void);
STK_API void stk_profile_stop(void);
STK_API void stk_profile_reset(void);
/* Fills up to `max` rows of operations that were called; returns how many there are. */
STK_API int stk_profile_read(stk_profile_order order, stk_profile_row *rows, int max);
STK_API stk_status stk_profile_summary(stk_profile_order order, char **out, stk_error *err);

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* From now on every new storage is remembered until it goes. Starting again forgets the earlier ones; so does stop. */
STK_API void stk_memory_record_start(void);
STK_API void stk_memory_record_stop(void);

/* What this thread makes from now on carries this text (its first 63 bytes) until it is taken off again. Up to 16 texts
 * lie on each other, the last one counts. They are copied. */
STK_API void stk_tag_push(const char *tag);
STK_API void stk_tag_pop(void);
/* "file.c:120" */
#define STK_TAG_HERE() stk_tag_push(STK_TAG_TEXT_(__FILE__, __LINE__))
#define STK_TAG_TEXT_(file, line) STK_TAG_JOIN_(file, line)
#define STK_TAG_JOIN_(file, line) file ":" #line

/* A tensor through which a storage is held. */
typedef struct stk_holder {
    const char *operation; /* that made it: "slice"; static */
    char tag[64];
    int64_t references; /* itself, and copies that were retained */
    stk_dtype dtype;
    int32_t ndim;
    int64_t offset_bytes; /* of its first element in the storage */
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
} stk_holder;

/* Fills up to `max` holders of a storage that was made while recording; returns how many are known. References that
 * were taken by stk_storage_retain have no tensor: stk_storage_refs may count more than the holders together. */
STK_API int stk_storage_holders(const stk_storage *storage, stk_holder *holders, int max);

/* The storages that were made since the start of the recording and are still there, one line each and one a holder;
 * `*out_count` of them. Empty when there are none, or nothing is recorded. */
STK_API stk_status stk_memory_leaks(char **out, int64_t *out_count, stk_error *err);
/* Everything of this header as JSON: memory, operations, and while recording the storages with their holders. */
STK_API stk_status stk_memory_snapshot(char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
