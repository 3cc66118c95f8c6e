/* profile.h: profiling of memory and time, from the cheapest to the most expensive:
 *
 *   accounting   bytes and blocks by device and kind of memory; always on
 *   profile      calls, time and allocated bytes of each operation; while switched on
 *   recording    for each storage created, its operation, tag and holders; while switched on
 *
 * While switched off, profile and recording cost one test of a flag per operation. Any thread may call any function
 * here. Texts are freed with stk_text_free.
 */
#ifndef STOKER_PROFILE_H
#define STOKER_PROFILE_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- accounting ---- */

typedef struct stk_memory_row {
    const char *device; /* "cpu", "cuda:0"; static */
    const char *kind;   /* "host": tensors and bookkeeping; "slot": batches; "pinned": page-locked memory; "device":
                           memory of an accelerator. Static */
    int64_t allocated_bytes; /* bytes in use now */
    int64_t reserved_bytes;  /* bytes taken from the system or driver, in use or kept for reuse */
    int64_t peak_bytes;      /* maximum number of bytes in use at the same time */
    int64_t blocks;          /* number of blocks in use now */
    int64_t largest_bytes;   /* bytes of the largest block so far */
    int64_t allocations;     /* number of allocations since the process started */
} stk_memory_row;

/* Fills up to `max` rows; returns the total number of rows. */
STK_API int stk_memory_read(stk_memory_row *rows, int max);
/* Resets the peaks to the bytes in use now. */
STK_API void stk_memory_reset_peaks(void);
/* The rows of stk_memory_read as a text table. */
STK_API stk_status stk_memory_summary(char **out, stk_error *err);

/* ---- profile ---- */

typedef struct stk_profile_row {
    const char *name;        /* "clone"; static */
    int64_t calls, time_ns;  /* number of calls, and their time including nested operations */
    int64_t own_ns;          /* the same time without nested operations */
    int64_t allocated_bytes; /* bytes of the storages that the operation created, including nested operations */
} stk_profile_row;

typedef enum stk_profile_order {
    STK_PROFILE_BY_TIME = 0, /* by own time, descending */
    STK_PROFILE_BY_CALLS = 1,
    STK_PROFILE_BY_BYTES = 2,
    STK_PROFILE_BY_NAME = 3
} stk_profile_order;

/* stk_profile_start continues the counts of an earlier profile; stk_profile_reset sets them to 0. */
STK_API void stk_profile_start(void);
STK_API void stk_profile_stop(void);
STK_API void stk_profile_reset(void);
/* Fills up to `max` rows of operations that were called; returns the total number of such operations. */
STK_API int stk_profile_read(stk_profile_order order, stk_profile_row *rows, int max);
STK_API stk_status stk_profile_summary(stk_profile_order order, char **out, stk_error *err);

/* ---- recording ---- */

/* Keeps a record of every storage created from now on, until it is freed. Starting the recording again, or stopping it,
 * discards the records. */
STK_API void stk_memory_record_start(void);
STK_API void stk_memory_record_stop(void);

/* Storages that this thread creates carry this tag (its first 63 bytes, copied) until it is popped. Up to 16 tags can
 * be nested; the innermost applies. */
STK_API void stk_tag_push(const char *tag);
STK_API void stk_tag_pop(void);
/* Pushes the source location of the call as a tag: "file.c:120". */
#define STK_TAG_HERE() stk_tag_push(STK_TAG_TEXT_(__FILE__, __LINE__))
#define STK_TAG_TEXT_(file, line) STK_TAG_JOIN_(file, line)
#define STK_TAG_JOIN_(file, line) file ":" #line

/* A tensor through which a storage is held. */
typedef struct stk_holder {
    const char *operation; /* the operation that created it: "slice"; static */
    char tag[64];          /* the tag of the thread that created it; "" if it had none */
    int64_t references;    /* number of references to the storage: the tensor's own and those of its retained copies */
    stk_dtype dtype;
    int32_t ndim;
    int64_t offset_bytes; /* byte offset of its first element in the storage */
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
} stk_holder;

/* Fills up to `max` holders of a storage created while recording; returns the total number of known holders. References
 * taken with stk_storage_retain have no tensor, so stk_storage_refs may exceed the sum of the holders. */
STK_API int stk_storage_holders(const stk_storage *storage, stk_holder *holders, int max);

/* Lists the storages created since recording started that are still alive, with one line for each storage and one for
 * each of its holders. `*out_count` is the number of storages. The text is empty if there are none or recording is off.
 */
STK_API stk_status stk_memory_leaks(char **out, int64_t *out_count, stk_error *err);
/* All of the above as JSON: memory, operations and, while recording, the storages with their holders. */
STK_API stk_status stk_memory_snapshot(char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
