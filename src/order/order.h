/* order.h: maps positions to samples, as a pure function of seed and epoch: no state is stored. Ranks and workers take
 * slices of the positions. The positions of an epoch are [0, stki_order_length). Thread-safe. */
#ifndef STKI_ORDER_H
#define STKI_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

enum { STKI_ORDER_VERSION = 1 }; /* stored in saved states; increment it when any order changes */

enum stki_order_kind { STKI_ORDER_SEQUENTIAL, STKI_ORDER_RANDOM, STKI_ORDER_BLOCK, STKI_ORDER_WEIGHTED };
/* When an epoch over several data sets ends: when the first of them has been used up, or when all have. */
enum stki_mixture_stop { STKI_STOP_FIRST, STKI_STOP_ALL };
enum { STKI_MAX_SOURCES = 256 };

/* The sample at a position. `draw` is the global position that keys the random transforms, so that a repeated sample
 * gets different augmentations. */
typedef struct stki_position {
    int32_t source;         /* number of the data set */
    int32_t unused;         /* 0 */
    int64_t sample;         /* numbered across all data sets */
    int64_t offset, length; /* 0, -1: the whole sample */
    int64_t draw;
} stki_position;

/* One of several data sets. */
typedef struct stki_order_source {
    const char *name; /* for messages */
    int64_t count;    /* samples */
    double weight;
    const int64_t *indices; /* a subset, numbered within this data set; copied; NULL: all */
    int64_t index_count;
} stki_order_source;

/* Windows whose offsets vary from epoch to epoch (order_shift.h): each shard has `starts` possible starts and one
 * window per `stride` of them. */
typedef struct stki_order_starts {
    int64_t group_count;
    const int64_t *starts; /* copied */
    int64_t stride;
} stki_order_starts;

/* Callback of the bucketed order: returns the length by which a sample is sorted; -1: unknown (its row will fail). */
typedef int64_t stki_order_length_of(void *context, int64_t sample);

typedef struct stki_order_opts {
    enum stki_order_kind kind;
    int64_t count; /* samples of the data set */
    uint64_t seed;
    const int64_t *indices; /* a subset, applied first; copied; NULL: all */
    int64_t index_count;
    int64_t length; /* WEIGHTED, SEQUENTIAL, RANDOM: positions per epoch; 0: the number of samples. If it is set,
                       SEQUENTIAL and RANDOM continue in each epoch where the previous one ended, as in a mixture of one
                       data set. */
    /* BLOCK: samples [unit_first[u], unit_first[u + 1]) are best read together; unit_count + 1 numbers, copied. In a
     * subset, consecutive entries of the same unit form one unit. */
    const int64_t *unit_first;
    int64_t unit_count, window; /* window: units shuffled together, at least 1 */
    bool in_order;              /* BLOCK: shuffle only the units and keep the samples of each in order */
    const double *weights;      /* WEIGHTED: a weight for each of the `count` samples */
    /* SEQUENTIAL, RANDOM: a mixture (order_mixture.h). `count` is then the sum of the sources' counts; indices and
     * index_count are ignored. */
    const stki_order_source *sources;
    int source_count;
    enum stki_mixture_stop stop;
    /* Bucketing (order_bucket.h): bucket_window global batches of bucket_batch positions are sorted together. 0: no
     * bucketing. */
    int64_t bucket_window, bucket_batch;
    stki_order_length_of *length_of;
    void *length_context;
    /* Windows whose offsets vary by epoch; NULL: none. If set, `count` and the counts of the sources are numbers of
     * windows, and a position holds the start of its window. */
    const stki_order_starts *starts;
    uint64_t data_digest; /* digest of everything else that determines the samples (packing), for the fingerprint */
} stki_order_opts;

typedef struct stki_order stki_order;

/* STK_E_RANGE: an index is out of range (the message contains its position), or a weight is invalid. STK_E_UNSUPPORTED:
 * options are incompatible; the message names them. */
stk_status stki_order_create(const stki_order_opts *opts, stki_order **out, stk_error *err);
void stki_order_destroy(stki_order *order);
int64_t stki_order_length(const stki_order *order);
/* Number of positions per epoch that belong to a source of a mixture. */
int64_t stki_order_share(const stki_order *order, int source);
/* Evaluates positions [first, first + n) of an epoch; all must be in [0, length). Orders that need a table (random up
 * to 65,536 positions, block, buckets) build it on first use and keep a few. Currently never fails. */
stk_status stki_order_eval(const stki_order *order, int64_t epoch, int64_t first, int64_t n, stki_position *out,
                           stk_error *err);
/* Builds part of the table that is needed next, so that it is complete in time. For callers that process the `epochs`
 * epochs in sequence; call it after positions [first, first + n) have been taken. */
void stki_order_ahead(const stki_order *order, int64_t epoch, int64_t first, int64_t n, int64_t epochs);
/* Returns whether the position can be evaluated without building a table first. */
bool stki_order_is_ready(const stki_order *order, int64_t epoch, int64_t position);

/* Everything that an order depends on. Two orders with equal fingerprints have the same samples at the same positions.
 * The parts are compared separately, so that a message can name the one that differs; unused hashes are 0. */
typedef struct stki_order_print {
    uint64_t whole; /* hash of all members below */
    uint64_t seed;
    int64_t length;   /* positions per epoch */
    uint32_t version; /* STKI_ORDER_VERSION */
    uint32_t kind;    /* enum stki_order_kind */
    uint64_t samples; /* number of samples in each source */
    uint64_t subset;  /* index list of each source */
    uint64_t weights; /* weights of samples, or of a mixture's sources with its stop rule */
    uint64_t blocks;  /* units and window of `block` */
    uint64_t buckets; /* window and batch of bucketing */
    uint64_t data;    /* data_digest and the starts of windows */
} stki_order_print;

void stki_order_fingerprint(const stki_order *order, stki_order_print *out);

/* ---- batches: (epoch, step, rank, world_size) -> positions ---- */

enum stki_last_batch { STKI_LAST_PARTIAL, STKI_LAST_DROP, STKI_LAST_PAD };

typedef struct stki_batching {
    int64_t length;       /* n: positions per epoch */
    int64_t global_batch; /* B */
    int64_t rank, world_size;
    enum stki_last_batch last;
} stki_batching;

typedef struct stki_batch_rows {
    int64_t rows;      /* rows of this rank, including padding; may be 0 with `partial` */
    int64_t valid;     /* rows that are not padding; they come first */
    int64_t first;     /* position of row 0; row r < valid is first + r; padded row r is (first + r) mod length */
    int64_t first_row; /* index of row 0 among the rows of all ranks */
} stki_batch_rows;

int64_t stki_batching_steps(const stki_batching *batching);    /* per epoch; the same on every rank */
int64_t stki_batching_max_rows(const stki_batching *batching); /* rows in this rank's largest batch */
stki_batch_rows stki_batching_rows(const stki_batching *batching, int64_t step);

#endif
