/* order.h: which sample stands at which position, as a pure function: nothing is stored that an epoch number and a seed
 * do not give again. Ranks and workers only slice the positions. Positions of an epoch are [0, stki_order_length). Any
 * thread. */
#ifndef STKI_ORDER_H
#define STKI_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_ORDER_VERSION = 1 }; /* grows when the same seed would give another order; saved states hold it */

enum stki_order_kind { STKI_ORDER_SEQUENTIAL, STKI_ORDER_RANDOM, STKI_ORDER_BLOCK, STKI_ORDER_WEIGHTED };
/* When an epoch over several data sets ends: before the first of them begins again, or when each has been used up. */
enum stki_mixture_stop { STKI_STOP_FIRST, STKI_STOP_ALL };
enum { STKI_MAX_SOURCES = 256 };

/* One position's answer. `draw` is the global position that keys the random transforms, so that a sample which comes
 * twice is not augmented twice alike. */
typedef struct stki_position {
    int32_t source;         /* which of several data sets */
    int32_t unused;         /* 0 */
    int64_t sample;         /* counted through all of them */
    int64_t offset, length; /* 0, -1: the whole sample */
    int64_t draw;
} stki_position;

/* One of several data sets. */
typedef struct stki_order_source {
    const char *name; /* for messages */
    int64_t count;    /* samples */
    double weight;
    const int64_t *indices; /* a subset of its samples, its own numbers; copied; NULL: all */
    int64_t index_count;
} stki_order_source;

/* Windows whose offsets differ from epoch to epoch (order_shift.h): each shard has so many starts, of which a window is
 * taken every `stride`. */
typedef struct stki_order_starts {
    int64_t group_count;
    const int64_t *starts; /* copied */
    int64_t stride;
} stki_order_starts;

/* What the bucketed order asks about a sample: the length that it is sorted by; -1: not known (its row will fail). */
typedef int64_t stki_order_length_of(void *context, int64_t sample);

typedef struct stki_order_opts {
    enum stki_order_kind kind;
    int64_t count; /* samples of the data set */
    uint64_t seed;
    const int64_t *indices; /* a subset, applied first; copied; NULL: all */
    int64_t index_count;
    int64_t length; /* WEIGHTED, SEQUENTIAL, RANDOM: positions of an epoch; 0: as many as there are samples. The epochs
                       of the last two then go on where the one before ended, as in a mixture of one data set. */
    /* BLOCK: samples [unit_first[u], unit_first[u + 1]) are best read together; unit_count + 1 numbers, copied. Of a
     * subset, neighbours in its list that share a unit are one. */
    const int64_t *unit_first;
    int64_t unit_count, window; /* window: units that are shuffled together, at least 1 */
    bool in_order;              /* BLOCK: only the units are shuffled; the samples of one follow each other */
    const double *weights;      /* WEIGHTED: of each of the `count` samples */
    /* SEQUENTIAL, RANDOM: a mixture (order_mixture.h); `count` is then the sum of theirs, indices and index_count are
     * not used. */
    const stki_order_source *sources;
    int source_count;
    enum stki_mixture_stop stop;
    /* Bucketing (order_bucket.h): bucket_window global batches of bucket_batch positions are sorted together. 0: none.
     */
    int64_t bucket_window, bucket_batch;
    stki_order_length_of *length_of;
    void *length_context;
    /* NULL: none. `count` is then the number of windows, and so are the counts of sources; positions hold starts. */
    const stki_order_starts *starts;
    uint64_t data_digest; /* of what else decides which samples there are (packing), for the fingerprint */
} stki_order_opts;

typedef struct stki_order stki_order;

/* STK_E_RANGE: an index outside the data set, naming its place, or weights that are none. STK_E_UNSUPPORTED: parts that
 * do not go together, by name. */
stk_status stki_order_create(const stki_order_opts *opts, stki_order **out, stk_error *err);
void stki_order_destroy(stki_order *order);
int64_t stki_order_length(const stki_order *order);
/* Positions of an epoch that a source of a mixture has. */
int64_t stki_order_share(const stki_order *order, int source);
/* Positions [first, first + n) of an epoch; all must be inside [0, length). What needs a table (random up to 65,536
 * positions, block, buckets) builds it on first use; a few are kept. Never fails as yet. */
stk_status stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                           stk_error *err);
/* For those who go through the epochs in turn, of which there are `epochs`: positions [first, first + n) are out;
 * builds a part of the table that is needed next, such that it is complete in time. */
void stki_order_ahead(const stki_order *order, int64_t epoch, int64_t first, int64_t n, int64_t epochs);
/* Whether the table of a position of an epoch, if it needs one, is built. */
bool stki_order_is_ready(const stki_order *order, int64_t epoch, int64_t position);

/* Everything that an order depends on. Equal in all parts: the same samples at the same positions. Each part is a hash,
 * 0 where there is nothing of its kind, so that a difference can be named. */
typedef struct stki_order_print {
    uint64_t whole; /* of all below */
    uint64_t seed;
    int64_t length;   /* positions of an epoch */
    uint32_t version; /* STKI_ORDER_VERSION */
    uint32_t kind;    /* enum stki_order_kind */
    uint64_t samples; /* how many, of each source */
    uint64_t subset;  /* indices, of each source */
    uint64_t weights; /* of samples, or of the sources of a mixture and its stop rule */
    uint64_t blocks;  /* units and window of `block` */
    uint64_t buckets; /* window and batch of bucketing */
    uint64_t data;    /* data_digest, and where windows begin */
} stki_order_print;

void stki_order_fingerprint(const stki_order *order, stki_order_print *out);

/* ---- batches: (epoch, step, rank, world_size) -> positions, design 5 ---- */

enum stki_last_batch { STKI_LAST_PARTIAL, STKI_LAST_DROP, STKI_LAST_PAD };

typedef struct stki_batching {
    int64_t length;       /* positions of an epoch, n */
    int64_t global_batch; /* B */
    int64_t rank, world_size;
    enum stki_last_batch last;
} stki_batching;

typedef struct stki_batch_rows {
    int64_t rows;      /* of this rank, padding included; may be 0 under `partial` */
    int64_t valid;     /* rows that are not padding: they come first */
    int64_t first;     /* position of row 0; row r < valid is first + r; padded row r is (first + r) mod length */
    int64_t first_row; /* number of row 0 among the rows of all ranks */
} stki_batch_rows;

int64_t stki_batching_steps(const stki_batching *batching);    /* of an epoch; the same on every rank */
int64_t stki_batching_max_rows(const stki_batching *batching); /* largest batch of this rank */
stki_batch_rows stki_batching_rows(const stki_batching *batching, int64_t step);

#endif
