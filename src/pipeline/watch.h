/* watch.h: were the mapped files behind a tile still what was opened when its bytes were taken? One of these belongs to
 * each worker: it notes the files that the running tile uses and asks for each of them at the tile's end, so that
 * nothing of a changed file is delivered.
 *
 * The guard's mark is free. Asking the system for size, time and inode is not, where tiles take tens of microseconds
 * and draw from many files, so a worker spends at most a hundredth of its time on that and leaves out what is beyond;
 * what was left out is found by one of the next tiles that use the file. The first thousand times, and 10 ms, are
 * always allowed.
 */
#ifndef STKI_WATCH_H
#define STKI_WATCH_H

#include "plan.h"
#include "slot.h"

struct stki_file;
struct stki_worker;

enum { STKI_WATCH_FILES = 64, STKI_WATCH_SEEN = 64 };

typedef struct stki_watch {
    /* the running tile */
    int64_t first, last; /* its rows */
    int count;
    struct stki_use {
        const stki_field_plan *plan;
        const stki_reader *reader;
        struct stki_file *file; /* retained where it is one sample's own */
        int64_t sample;
    } used[STKI_WATCH_FILES];
    uint8_t seen[STKI_WATCH_SEEN]; /* by a file's address: which of `used` may be that file; found again at once */
    int64_t asked, spent_ns;       /* since the worker began */
} stki_watch;

/* A tile of rows of worker->batch begins. */
void stki_watch_begin(struct stki_worker *worker, int64_t first, int64_t last);
/* Sample `index` of the plan's field comes from this reader; `sample` is what it read, or NULL where it was taken from
 * reader->base. Before stki_reader_done. Where there is no room left, the files that were noted before are asked: what
 * is taken of them must be done with by then. */
void stki_watch_use(struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader, int64_t index,
                    const stk_tensor *sample);
/* Would noting one more file ask the others? */
bool stki_watch_is_full(const struct stki_worker *worker, const stki_field_plan *plan, const stki_reader *reader);
/* Fails the tile's rows that are of a changed file. */
void stki_watch_end(struct stki_worker *worker);

#endif
