/* loadbench_bounds.h: every limit of this machine as the samples/s that it alone would allow this loader, so
 * that they can be put in order. The lowest one that applies is what the loader is measured against. */
#ifndef LOADBENCH_BOUNDS_H
#define LOADBENCH_BOUNDS_H

#include "codec_limit.h"
#include "loadbench_limit_read.h"
#include "loadbench_statistics.h"

struct lb_result;

/* What is measured once, when all repeats are over. */
struct lb_once {
    bool measured;
    struct lb_read_limit read;
    struct codec_limit decode, inflate;
};

enum lb_bound_kind {
    LB_BOUND_MEMORY,       /* gather: bytes read and written */
    LB_BOUND_WRITE,        /* bytes written */
    LB_BOUND_CACHED,       /* reading out of the page cache */
    LB_BOUND_DISK,         /* reading from the device */
    LB_BOUND_DECODE,       /* libjpeg-turbo alone */
    LB_BOUND_INFLATE,      /* libdeflate alone, each chunk as often as the run unpacked it */
    LB_BOUND_INFLATE_ONCE, /* the same if each chunk were unpacked once; only where it is not so */
    LB_BOUND_BUS,          /* pinned copies to the device */
    LB_BOUND_STEP,         /* the consumer's own steps */
    LB_BOUND_KINDS
};
extern const char *const lb_bound_words[];

struct lb_bound {
    enum lb_bound_kind kind;
    double samples_per_s; /* that this limit alone allows */
    double share_percent; /* of it that was reached, median of the repeats */
    bool applies;         /* false: this run did not depend on it, the disk when the data came from memory */
    double unpacked;      /* of LB_BOUND_INFLATE: how often each chunk was unpacked; else 0 */
    char basis[192];      /* "31.2 GB/s read and written, 72 bytes a sample" */
};

/* Those that were measured, the lowest first; returns how many. */
int lb_result_bounds(const struct lb_result *result, struct lb_bound *out);
/* The lowest that applies, or NULL. */
const struct lb_bound *lb_bound_binding(const struct lb_bound *bounds, int count);

/* Why more than all of a limit was reached; "" where it was not, but for what two measurements differ by anyway. */
const char *lb_bound_excess(const struct lb_bound *binding, bool quiet);

/* Everything that lb_once has; what cannot be measured says why. */
void lb_once_measure(struct lb_result *result);

#endif
