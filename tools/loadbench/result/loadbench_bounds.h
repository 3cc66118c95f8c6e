/* loadbench_bounds.h: every limit of this machine, expressed as the samples/s that it alone would allow for this
 * loader, so that limits can be compared. The loader's rate is compared with the lowest limit that applies. */
#ifndef LOADBENCH_BOUNDS_H
#define LOADBENCH_BOUNDS_H

#include "codec_limit.h"
#include "loadbench_limit_read.h"
#include "loadbench_statistics.h"

struct lb_result;

/* Measured once, after all repeats. */
struct lb_once {
    bool measured;
    struct lb_read_limit read;
    struct codec_limit decode, inflate;
};

enum lb_bound_kind {
    LB_BOUND_MEMORY,       /* gather: bytes read and written */
    LB_BOUND_WRITE,        /* bytes written */
    LB_BOUND_CACHED,       /* reading from the page cache */
    LB_BOUND_DISK,         /* reading from the device */
    LB_BOUND_DECODE,       /* libjpeg-turbo alone */
    LB_BOUND_INFLATE,      /* libdeflate alone, decompressing each chunk as often as the run did */
    LB_BOUND_INFLATE_ONCE, /* the same with each chunk decompressed once; only if the run decompressed some again */
    LB_BOUND_BUS,          /* pinned copies to the device */
    LB_BOUND_STEP,         /* steps of the consumer */
    LB_BOUND_KINDS
};
extern const char *const lb_bound_words[];

struct lb_bound {
    enum lb_bound_kind kind;
    double samples_per_s; /* rate that this limit alone allows */
    double share_percent; /* percentage of it that was reached, median of the repeats */
    bool applies;         /* false: irrelevant to this run, such as the disk if data came from memory */
    double unpacked;      /* for LB_BOUND_INFLATE: mean decompressions per chunk; otherwise 0 */
    char basis[192];      /* "31.2 GB/s read and written, 72 bytes per sample" */
};

/* Writes the measured bounds in ascending order and returns their number. */
int lb_result_bounds(const struct lb_result *result, struct lb_bound *out);
/* Returns the lowest bound that applies, or NULL. */
const struct lb_bound *lb_bound_binding(const struct lb_bound *bounds, int count);

/* Explains why more than 100 % of a limit was reached; "" if it was not, or only within the measurement error. */
const char *lb_bound_excess(const struct lb_bound *binding, bool quiet);

/* Fills result->once; if something cannot be measured, the reason is stored instead. */
void lb_once_measure(struct lb_result *result);

#endif
