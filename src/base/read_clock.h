/* read_clock.h: what a worker's time in readers went into. The stages (order, read, convert) are timed where they begin
 * and end; inside a read the work that is not waiting is timed where they happen, deep in formats
 * that know nothing of workers. So the clocks in force are the thread's: a worker sets them while it runs a tile, and
 * elsewhere nothing is counted.
 *
 * A clock costs two readings of the time, about 50 ns. Decoding an image or a chunk hides that; a call of a user's
 * function may not, so that short calls are timed one in sixteen, and count sixteenfold. */
#ifndef STKI_READ_CLOCK_H
#define STKI_READ_CLOCK_H

#include "clock.h"
#include "counter.h"

enum stki_read_work {
    STKI_READ_DECODE,  /* images */
    STKI_READ_INFLATE, /* deflated or otherwise packed data, and waiting for another thread that unpacks them */
    STKI_READ_CALL,    /* transforms of the user's own */
    STKI_READ_COUNT,
    STKI_READ_WAIT = STKI_READ_COUNT /* for descriptors: only reported as what runs, no clock */
};

/* What a thread had used when its work began. */
typedef struct stki_paging {
    int64_t waits, cpu_ns; /* pages that had to come, and times it gave the processor away */
    bool watched;
} stki_paging;

/* Written by one thread, read by anybody. */
typedef struct stki_read_clocks {
    stki_counter ns[STKI_READ_COUNT];
    stki_counter page_ns;                      /* off the processor until a page of a mapped file had come */
    stki_counter unpacked_bytes, wanted_bytes; /* of packed chunks: what they gave, and what samples took of it */
    int skip, weight;           /* of STKI_READ_CALL: calls that are not timed, and what the next one counts for */
    int watch;                  /* pieces of work that are still watched for pages */
    stki_paging paging;         /* of the work that runs */
    _Atomic int running;        /* the work that runs, + 1; 0: none */
    stki_counter running_since; /* ns; written before `running` */
} stki_read_clocks;

/* Of the calling thread from now on; NULL: none. */
void stki_read_clocks_set(stki_read_clocks *clocks);

/* Around such work. begin returns 0 where nothing is counted. `maps`: it may touch mapped files; what it waits for
 * their pages is not counted as its own. */
int64_t stki_read_work_begin(enum stki_read_work work, bool maps);
void stki_read_work_end(enum stki_read_work work, int64_t began);
/* The same for what may be short and comes often. */
int64_t stki_read_call_begin(void);
void stki_read_call_end(int64_t began);

/* A file cannot be opened as long as the process has no descriptors. */
void stki_read_waits(bool waits);

/* A packed chunk was unpacked and gave so many bytes; a sample took so many out of packed chunks, whether they had been
 * unpacked for it or were still there. The first by the second is how often each chunk is unpacked. */
void stki_read_unpacked(int64_t bytes);
void stki_read_wanted(int64_t bytes);

/* Around work that touches mapped files and may wait for the disk in it. Looking costs two calls into the system, so
 * that work is watched only while it takes long: a page that has to come from a disk makes it so. */
void stki_paging_look(stki_paging *out);
int64_t stki_paging_waited(const stki_paging *before, int64_t wall_ns);

static inline void stki_paging_begin(const stki_read_clocks *clocks, stki_paging *out)
{
    out->watched = clocks->watch > 0;
    if (out->watched)
        stki_paging_look(out);
}

/* The work took so long. Returns what of it was waiting for pages, counted. */
static inline int64_t stki_paging_end(stki_read_clocks *clocks, const stki_paging *before, int64_t wall_ns)
{
    enum { LONG_NS = 50000, STAY = 16 };
    int64_t waited = 0;

    if (before->watched) {
        waited = stki_paging_waited(before, wall_ns);
        stki_count(&clocks->page_ns, waited);
    }
    if (wall_ns >= LONG_NS)
        clocks->watch = STAY;
    else if (clocks->watch > 0)
        clocks->watch--;
    return waited;
}

#endif
