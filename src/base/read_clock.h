/* read_clock.h: a breakdown of the time a worker spends in readers. The stages (order, read, convert) are timed where
 * they begin and end. Within a read, CPU work is timed where it happens, deep in format code that has no access to the
 * worker. The current clocks are therefore thread-local: a worker sets them while it runs a tile; elsewhere nothing is
 * counted.
 *
 * Timing costs two clock readings, about 50 ns. That is negligible for decoding an image or a chunk, but not always for
 * a user function, so only one in sixteen short calls is timed, with weight sixteen. */
#ifndef STKI_READ_CLOCK_H
#define STKI_READ_CLOCK_H

#include "clock.h"
#include "counter.h"

enum stki_read_work {
    STKI_READ_DECODE,  /* images */
    STKI_READ_INFLATE, /* decompressing data, including waiting for another thread that does it */
    STKI_READ_CALL,    /* custom transforms */
    STKI_READ_COUNT,
    STKI_READ_WAIT =
        STKI_READ_COUNT /* waiting for a file descriptor: reported as the current activity, but not timed */
};

/* A thread's counters at the start of a work item. */
typedef struct stki_paging {
    int64_t waits; /* major page faults and voluntary context switches */
    int64_t cpu_ns;
    bool watched; /* false: the counters were not read */
} stki_paging;

/* Written by one thread, read by any. */
typedef struct stki_read_clocks {
    stki_counter ns[STKI_READ_COUNT];
    stki_counter page_ns; /* blocked on page faults in mapped files */
    stki_counter unpacked_bytes,
        wanted_bytes;           /* compressed chunks: bytes that decompression produced, and bytes that samples used */
    int skip, weight;           /* for STKI_READ_CALL: calls to skip, and the weight of the next timed one */
    int watch;                  /* how many of the next work items are watched for page faults */
    stki_paging paging;         /* counters at the start of the current work item */
    _Atomic int running;        /* the current work (enum stki_read_work) + 1; 0: none */
    stki_counter running_since; /* ns; written before `running` */
} stki_read_clocks;

/* Sets the clocks of the calling thread; NULL: none. */
void stki_read_clocks_set(stki_read_clocks *clocks);

/* Call before and after a work item. stki_read_work_begin returns 0 if nothing is counted. `maps`: the work may touch
 * mapped files; time blocked on their pages is not counted as work. */
int64_t stki_read_work_begin(enum stki_read_work work, bool maps);
void stki_read_work_end(enum stki_read_work work, int64_t began);
/* Like stki_read_work_begin and stki_read_work_end, for frequent calls that may be short. */
int64_t stki_read_call_begin(void);
void stki_read_call_end(int64_t began);

/* Marks the thread as waiting, or no longer waiting, for a file descriptor. */
void stki_read_waits(bool waits);

/* Add the decompressed size of a chunk, and the number of decompressed bytes that a sample used, whether its chunk was
 * just decompressed or was cached. The quotient of the two totals shows how often each chunk is decompressed. */
void stki_read_unpacked(int64_t bytes);
void stki_read_wanted(int64_t bytes);

/* For work that touches mapped files and may block on the disk: read the counters, and compute the time blocked since
 * then. Reading the counters before and after costs two system calls, so work items are watched only after one of them
 * took a long time, as happens when pages come from a disk. */
void stki_paging_look(stki_paging *out);
int64_t stki_paging_waited(const stki_paging *before, int64_t wall_ns);

static inline void stki_paging_begin(const stki_read_clocks *clocks, stki_paging *out)
{
    out->watched = clocks->watch > 0;
    if (out->watched)
        stki_paging_look(out);
}

/* Ends work that took `wall_ns`. Counts and returns the part of it that was spent waiting for pages. */
static inline int64_t stki_paging_end(stki_read_clocks *clocks, const stki_paging *before, int64_t wall_ns)
{
    enum { LONG_NS = 50000, STAY = 16 };
    int64_t waited = 0;

    if (before->watched) {
        waited = stki_paging_waited(before, wall_ns);
        stki_count_own(&clocks->page_ns, waited);
    }
    if (wall_ns >= LONG_NS)
        clocks->watch = STAY;
    else if (clocks->watch > 0)
        clocks->watch--;
    return waited;
}

#endif
