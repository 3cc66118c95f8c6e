/* watch.h: detects mapped files that change while a tile reads them. Each worker has one stki_watch: it records the
 * files that the running tile uses and checks each at the end of the tile, so that no bytes of a changed file are
 * delivered.
 *
 * Reading the guard's flag costs nothing. A system call for size, time and inode is too expensive if tiles take tens of
 * microseconds and read from many files, so a worker spends at most 1 % of its time on such calls and skips the rest. A
 * change that is missed is found by a later tile that uses the same file. The first thousand checks, and the first 10
 * ms, are always allowed.
 */
#ifndef STKI_WATCH_H
#define STKI_WATCH_H

#include "plan.h"
#include "slot.h"

struct stki_file;
struct stki_worker;

enum { STKI_WATCH_FILES = 64, STKI_WATCH_SEEN = 64 };

typedef struct stki_watch {
    /* the current tile */
    int64_t first, last; /* its rows */
    int count;
    struct stki_use {
        const stki_field_plan *plan;
        const stki_reader *reader;
        struct stki_file *file; /* retained if it belongs to a single sample */
        int64_t sample;
    } used[STKI_WATCH_FILES];
    uint8_t seen[STKI_WATCH_SEEN]; /* indexed by a hash of the file's address: which entry of `used` may be that file */
    int64_t asked, spent_ns;       /* totals since the worker started */
} stki_watch;

/* Starts a tile of rows of worker->batch. */
void stki_watch_begin(struct stki_worker *worker, int64_t first, int64_t last);
/* Records that sample `index` of the plan's field comes from this reader; `sample` is what it read, or NULL if it was
 * taken from reader->base. Call before stki_reader_done. If the table is full, the files recorded so far are checked
 * and dropped: bytes taken from them must have been consumed by then. */
void stki_watch_use(struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader, int64_t index,
                    const stk_tensor *sample);
/* Whether recording one more file would first check and drop the others. */
bool stki_watch_is_full(const struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader);
/* Ends the tile and fails its rows that come from changed files. */
void stki_watch_end(struct stki_worker *worker);

#endif
