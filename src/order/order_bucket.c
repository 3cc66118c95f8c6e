/* order_bucket.c: see order_bucket.h. */
#include "order_bucket.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "permutation.h"
#include "philox.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

enum { TABLES = 3, DIGIT = 8 };

struct table {
    bool filled;
    int64_t epoch, window, last_use;
    stki_position *positions; /* of the window, in their final order */
};

struct entry {
    int64_t length, place;
};

struct stki_buckets {
    int64_t length, batch, positions; /* of an epoch, of a batch, of a whole window */
    bool shuffled;
    uint64_t seed;
    stki_order_length_of *length_of;
    void *length_context;
    stki_order_beneath *beneath;
    const void *context;
    /* guarded by lock */
    stki_mutex lock;
    int64_t uses;
    struct table tables[TABLES];
    struct entry *entries; /* while a table is built: twice as many as positions, to sort */
    stki_position *before;
};

stk_status stki_buckets_create(const stki_order_opts *opts, int64_t length, stki_order_beneath *beneath,
                               const void *context, stki_buckets **out, stk_error *err)
{
    stki_buckets *b = stki_zalloc(sizeof *b);
    bool ok;

    if (!b)
        return stki_fail_memory(err, sizeof *b, "buckets");
    stki_mutex_init(&b->lock);
    b->length = length;
    b->batch = opts->bucket_batch;
    b->shuffled = opts->kind != STKI_ORDER_SEQUENTIAL;
    b->seed = opts->seed;
    b->length_of = opts->length_of;
    b->length_context = opts->length_context;
    b->beneath = beneath;
    b->context = context;
    if (!stki_mul(opts->bucket_batch, opts->bucket_window, &b->positions) || b->positions > length)
        b->positions = length;
    b->entries = stki_zalloc_array(b->positions, 2 * (int64_t)sizeof *b->entries);
    b->before = stki_zalloc_array(b->positions, sizeof *b->before);
    ok = b->entries && b->before;
    for (int i = 0; i < TABLES; i++) {
        b->tables[i].positions = stki_zalloc_array(b->positions, sizeof *b->before);
        ok = ok && b->tables[i].positions;
    }
    if (ok) {
        *out = b;
        return STK_OK;
    }
    (void)stki_fail_memory(err, b->positions * (int64_t)sizeof *b->before, "a window of buckets");
    stki_buckets_destroy(b);
    return STK_E_MEMORY;
}

void stki_buckets_destroy(stki_buckets *b)
{
    if (!b)
        return;
    for (int i = 0; i < TABLES; i++)
        stki_free(b->tables[i].positions);
    stki_free(b->entries);
    stki_free(b->before);
    stki_mutex_fini(&b->lock);
    stki_free(b);
}

/* Sorts by length; equal ones stay in the order of their places. By digits of a few bits, from the lowest. The result
 * is in one of the two. */
static const struct entry *sort(struct entry *entries, struct entry *other, int64_t n, int64_t longest)
{
    for (int shift = 0; shift < 64 && longest >> shift > 0; shift += DIGIT) {
        int64_t begin[1 << DIGIT] = {0}, at = 0;
        struct entry *keep = entries;

        for (int64_t i = 0; i < n; i++)
            begin[entries[i].length >> shift & ((1 << DIGIT) - 1)]++;
        for (int d = 0; d < 1 << DIGIT; d++) {
            int64_t its = begin[d];

            begin[d] = at;
            at += its;
        }
        for (int64_t i = 0; i < n; i++)
            other[begin[entries[i].length >> shift & ((1 << DIGIT) - 1)]++] = entries[i];
        entries = other;
        other = keep;
    }
    return entries;
}

/* The keyed bijection that puts the whole batches of a window in their order. */
static void permutation_of(const stki_buckets *b, int64_t epoch, int64_t window, int64_t batches,
                           stki_permutation *permutation)
{
    stki_philox drawn = stki_philox_draw(stki_order_key(b->seed, (uint64_t)epoch), STKI_KEY_BUCKETS, 0);

    stki_permutation_init(permutation, (uint64_t)drawn.word[1] << 32 | drawn.word[0], (uint64_t)window,
                          (uint64_t)batches);
}

static void build(stki_buckets *b, struct table *table, int64_t epoch, int64_t window)
{
    int64_t first = window * b->positions, left = b->length - first;
    int64_t n = left < b->positions ? left : b->positions, whole = n / b->batch;
    int64_t longest = 0;
    stki_permutation permutation;
    const struct entry *entries;

    b->beneath(b->context, epoch, first, n, b->before);
    for (int64_t i = 0; i < n; i++) {
        int64_t length = b->length_of(b->length_context, b->before[i].sample) + 1; /* from 0 on */

        b->entries[i] = (struct entry){length, i};
        longest = length > longest ? length : longest;
    }
    entries = sort(b->entries, b->entries + b->positions, n, longest);
    if (whole > 0 && b->shuffled)
        permutation_of(b, epoch, window, whole, &permutation);
    for (int64_t batch = 0; batch * b->batch < n; batch++) {
        uint64_t sorted = (uint64_t)batch;

        if (batch < whole && b->shuffled)
            stki_permutation_map(&permutation, &sorted, 1);
        for (int64_t r = 0; r < b->batch && batch * b->batch + r < n; r++) {
            stki_position *out = &table->positions[batch * b->batch + r];

            *out = b->before[entries[(int64_t)sorted * b->batch + r].place];
            out->draw = first + batch * b->batch + r;
        }
    }
    table->epoch = epoch;
    table->window = window;
    table->filled = true;
}

/* Built in place of the one unused for longest. Called with the lock held. */
static const struct table *table_of(stki_buckets *b, int64_t epoch, int64_t window)
{
    struct table *found = &b->tables[0];

    for (int i = 0; i < TABLES; i++) {
        struct table *table = &b->tables[i];

        if (table->filled && table->epoch == epoch && table->window == window) {
            table->last_use = ++b->uses;
            return table;
        }
        if (table->last_use < found->last_use)
            found = table;
    }
    build(b, found, epoch, window);
    found->last_use = ++b->uses;
    return found;
}

void stki_buckets_eval(stki_buckets *b, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    stki_lock(&b->lock);
    for (int64_t done = 0; done < n;) {
        int64_t window = (first + done) / b->positions, at = (first + done) % b->positions;
        int64_t part = n - done < b->positions - at ? n - done : b->positions - at;

        memcpy(out + done, table_of(b, epoch, window)->positions + at, (size_t)part * sizeof *out);
        done += part;
    }
    stki_unlock(&b->lock);
}
