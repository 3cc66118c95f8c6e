/* order_bucket.c: see order_bucket.h. A window is built in stages, each of which can be interrupted and resumed at any
 * sample: gather its positions and their lengths, radix sort by length from the least significant digit (each pass
 * counts the digits of the next one), and put the result in the order of the batches. */
#include "order_bucket.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "order_tables.h"
#include "permutation.h"
#include "philox.h"
#include <string.h>

enum { BLOCK = 256, DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS };

struct sample {
    int64_t number;
    int32_t source;
};

struct entry {
    int64_t length;
    struct sample sample;
};

enum stage { GATHER, SORT, PLACE };

/* State of the table being built. */
struct building {
    int64_t epoch, first, n; /* positions [first, first + n) of the epoch */
    int64_t whole;           /* number of batches, excluding the partial one at the end */
    stki_permutation permutation;
    enum stage stage;
    int64_t at; /* positions that the current stage has processed */
    int shift;  /* bit offset of the current digit */
    int64_t longest;
    int64_t place[DIGITS]; /* destination of the next entry with each digit */
    int64_t count[DIGITS]; /* counts of the next pass's digits */
    struct entry *from, *to;
};

struct stki_buckets {
    int64_t length, batch, positions; /* positions per epoch, per batch, per full window */
    uint64_t windows;                 /* windows per epoch */
    bool shuffled;
    uint64_t seed;
    stki_order_length_of *length_of;
    void *length_context;
    stki_order_underlying *underlying;
    const void *context;
    stki_tables keys;      /* epoch * windows + window */
    struct sample *memory; /* memory of the tables: `positions` entries each, in final order */
    struct entry *entries; /* scratch space for sorting one: 2 * positions entries */
    struct building building;
};

static stki_table_build build;

stk_status stki_buckets_create(const stki_order_opts *opts, int64_t length, stki_order_underlying *underlying,
                               const void *context, stki_buckets **out, stk_error *err)
{
    stki_buckets *b = stki_zalloc(sizeof *b);

    if (!b)
        return stki_fail_memory(err, sizeof *b, "buckets");
    stki_tables_init(&b->keys, build, b);
    b->length = length;
    b->batch = opts->bucket_batch;
    b->shuffled = opts->kind != STKI_ORDER_SEQUENTIAL;
    b->seed = opts->seed;
    b->length_of = opts->length_of;
    b->length_context = opts->length_context;
    b->underlying = underlying;
    b->context = context;
    if (!stki_mul(opts->bucket_batch, opts->bucket_window, &b->positions) || b->positions > length)
        b->positions = length;
    b->windows = (uint64_t)((length - 1) / b->positions + 1);
    b->entries = stki_zalloc_array(b->positions, 2 * (int64_t)sizeof *b->entries);
    b->memory = stki_zalloc_array(b->positions, STKI_TABLES * (int64_t)sizeof *b->memory);
    if (b->entries && b->memory) {
        *out = b;
        return STK_OK;
    }
    stki_buckets_destroy(b);
    return stki_fail_memory(err, length * (int64_t)sizeof(struct entry), "a window of buckets");
}

void stki_buckets_destroy(stki_buckets *b)
{
    if (!b)
        return;
    stki_free(b->memory);
    stki_free(b->entries);
    stki_tables_fini(&b->keys);
    stki_free(b);
}

/* ---- building ---- */

static int digit(int64_t length, int shift)
{
    return (int)(length >> shift & (DIGITS - 1));
}

static void start(stki_buckets *b, uint64_t key)
{
    struct building *w = &b->building;
    const uint64_t window = key % b->windows;

    w->epoch = (int64_t)(key / b->windows);
    w->first = (int64_t)window * b->positions;
    w->n = b->length - w->first < b->positions ? b->length - w->first : b->positions;
    w->whole = w->n / b->batch;
    w->stage = GATHER;
    w->at = w->longest = 0;
    w->from = b->entries;
    w->to = b->entries + b->positions;
    memset(w->count, 0, sizeof w->count);
    if (w->whole > 0 && b->shuffled) { /* the keyed bijection that permutes the whole batches */
        stki_philox drawn = stki_philox_draw(stki_order_key(b->seed, (uint64_t)w->epoch), STKI_KEY_BUCKETS, 0);

        stki_permutation_init(&w->permutation, (uint64_t)drawn.word[1] << 32 | drawn.word[0], window,
                              (uint64_t)w->whole);
    }
}

static void gather(stki_buckets *b, int64_t end)
{
    struct building *w = &b->building;
    stki_position before[BLOCK];

    while (w->at < end) {
        const int64_t n = end - w->at < BLOCK ? end - w->at : BLOCK;

        b->underlying(b->context, w->epoch, w->first + w->at, n, before);
        for (int64_t i = 0; i < n; i++) {
            const int64_t length = b->length_of(b->length_context, before[i].sample) + 1; /* unknown (-1) becomes 0 */

            w->from[w->at + i] = (struct entry){length, {before[i].sample, before[i].source}};
            w->longest = length > w->longest ? length : w->longest;
            w->count[digit(length, 0)]++;
        }
        w->at += n;
    }
}

/* Runs part of one pass of a stable LSD radix sort. It also counts the digits of the next pass, so that each pass reads
 * the entries once. */
static void sort(struct building *w, int64_t end)
{
    const int next = w->shift + DIGIT_BITS < 64 ? w->shift + DIGIT_BITS : w->shift;

    for (; w->at < end; w->at++) {
        const struct entry *entry = &w->from[w->at];

        w->to[w->place[digit(entry->length, w->shift)]++] = *entry;
        w->count[digit(entry->length, next)]++;
    }
}

static void place(const stki_buckets *b, struct building *w, struct sample *out, int64_t end)
{
    while (w->at < end) {
        const int64_t batch = w->at / b->batch, row = w->at % b->batch;
        int64_t n = b->batch - row < end - w->at ? b->batch - row : end - w->at;
        uint64_t sorted = (uint64_t)batch;

        if (batch < w->whole && b->shuffled)
            stki_permutation_map(&w->permutation, &sorted, 1);
        for (const struct entry *from = w->from + (int64_t)sorted * b->batch + row; n > 0; n--)
            out[w->at++] = from++->sample;
    }
}

/* Returns the number of passes left after the current one. Until all lengths have been gathered, the longest one is
 * unknown, and the usual number is returned. */
static int64_t passes_left(const struct building *w)
{
    int64_t passes = 0;

    if (w->stage == GATHER)
        return 3;
    for (int shift = w->shift; w->stage == SORT && shift < 64 && w->longest >> shift > 0; shift += DIGIT_BITS)
        passes++;
    return passes;
}

/* Starts the next pass after the current one has covered the whole window. */
static void next_pass(struct building *w)
{
    int64_t sum = 0;

    if (w->stage == SORT) {
        struct entry *keep = w->from;

        w->from = w->to;
        w->to = keep;
        w->shift += DIGIT_BITS;
    } else {
        w->shift = 0;
    }
    w->at = 0;
    w->stage = w->shift < 64 && w->longest >> w->shift > 0 ? SORT : PLACE;
    for (int d = 0; d < DIGITS; d++) {
        w->place[d] = sum;
        sum += w->count[d];
        w->count[d] = 0;
    }
}

static int64_t build(void *context, int number, uint64_t key, bool fresh, int64_t units)
{
    stki_buckets *b = context;
    struct building *w = &b->building;

    if (fresh)
        start(b, key);
    for (;;) {
        const int64_t part = units < w->n - w->at ? units : w->n - w->at;

        units -= part;
        if (w->stage == GATHER)
            gather(b, w->at + part);
        else if (w->stage == SORT)
            sort(w, w->at + part);
        else
            place(b, w, b->memory + number * b->positions, w->at + part);
        if (w->at < w->n || w->stage == PLACE)
            return w->n - w->at + passes_left(w) * w->n;
        next_pass(w);
    }
}

/* ---- reading ---- */

static uint64_t key_of(const stki_buckets *b, int64_t epoch, int64_t position)
{
    return (uint64_t)epoch * b->windows + (uint64_t)(position / b->positions);
}

void stki_buckets_eval(stki_buckets *b, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    for (int64_t done = 0, part; done < n; done += part) {
        const int64_t at = (first + done) % b->positions;
        const int number = stki_tables_acquire(&b->keys, key_of(b, epoch, first + done));
        const struct sample *samples = b->memory + number * b->positions + at;

        part = n - done < b->positions - at ? n - done : b->positions - at;
        for (int64_t i = 0; i < part; i++)
            out[done + i] = (stki_position){
                .source = samples[i].source, .sample = samples[i].number, .length = -1, .draw = first + done + i};
        stki_tables_release(&b->keys, number);
    }
}

void stki_buckets_ahead(stki_buckets *b, int64_t epoch, int64_t taken, int64_t n, bool last)
{
    const int64_t window = (taken - 1) / b->positions, first = window * b->positions;
    const int64_t size = b->length - first < b->positions ? b->length - first : b->positions;

    if (!last || first + size < b->length)
        stki_tables_ahead(&b->keys, key_of(b, epoch, first), key_of(b, epoch, 0), taken - first, n, size);
}

bool stki_buckets_is_ready(const stki_buckets *b, int64_t epoch, int64_t position)
{
    return stki_tables_have(&b->keys, key_of(b, epoch, position));
}
