/* watch.h: detects mapped files that change while a tile reads them. Each worker has a stki_watch, which records the
 * files that the current tile uses and checks each of them at the end of the tile, so that no bytes of a changed file
 * are delivered.
 *
 * A change that has already been detected has set a flag, which costs nothing to read. A system call for size, time and
 * inode is too expensive if tiles take tens of microseconds and read from many files, so a worker spends at most 1 % of
 * its time on such calls and skips the rest. A change that is missed is found by a later tile that uses the same file.
 * The first thousand calls, and the first 10 ms of calls, are always allowed. */
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
    uint8_t seen[STKI_WATCH_SEEN]; /* indexed by a hash of the file's address: the number of the entry of `used` that
                                      may be that file */
    int64_t asked, spent_ns;       /* totals since the worker started */
} stki_watch;

/* Starts a tile of rows of worker->batch. */
void stki_watch_begin(struct stki_worker *worker, int64_t first, int64_t last);
/* Records that sample `index` of the plan's field comes from this reader. `sample` is the result of its read, or NULL
 * if the sample's address was computed from reader->base. Call before stki_reader_done. If the table is full, this
 * checks the files recorded so far and removes them, so their bytes must already have been consumed. */
void stki_watch_use(struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader, int64_t index,
                    const stk_tensor *sample);
/* Whether the table is full, so that recording another file would check and remove the others. */
bool stki_watch_is_full(const struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader);
/* Ends the tile and fails its rows that come from changed files. */
void stki_watch_end(struct stki_worker *worker);

#endif
