/* order_mixture.c: see order_mixture.h. Permutations are evaluated most efficiently for many indices at once, but a
 * batch has few samples of each source, so the permutations of all sources are evaluated together. */
#include "order_mixture.h"
#include "allocate.h"
#include "bisect.h"
#include "error.h"
#include "order_random.h"
#include "permutation.h"
#include "philox.h"
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 512 };

__extension__ typedef __int128 wide;

struct source {
    int64_t first;          /* number of its first sample in the concatenation of all sources */
    int64_t count;          /* n_d */
    int64_t share;          /* c_d */
    uint64_t seed;          /* seed of its own permutations */
    const int64_t *indices; /* a subset of its samples, or NULL; points into stki_mixture.indices */
};

struct stki_mixture {
    int count;
    int64_t length;
    bool shuffled;
    stki_random_order *outer; /* NULL: the identity */
    struct source *sources;
    int64_t *begin; /* count + 1 prefix sums of the shares */
    int64_t *indices;
};

/* ---- shares ---- */

void stki_mixture_counts(const int64_t *weights, int count, int64_t length, int64_t *counts)
{
    wide sum = 0, rest[STKI_MAX_SOURCES];
    int64_t left = length;

    for (int d = 0; d < count; d++)
        sum += weights[d];
    for (int d = 0; d < count; d++) {
        counts[d] = (int64_t)((wide)length * weights[d] / sum);
        rest[d] = (wide)length * weights[d] % sum;
        left -= counts[d];
    }
    for (; left > 0; left--) { /* fewer than the number of sources */
        int best = 0;

        for (int d = 1; d < count; d++)
            if (rest[d] > rest[best])
                best = d;
        counts[best]++;
        rest[best] = -1;
    }
}

/* Converts weights to integers: multiplies them by the power of ten that gives the largest one 15 digits. */
static stk_status whole_weights(const stki_order_source *sources, int count, int64_t *out, stk_error *err)
{
    double power = 1, largest = 0;

    for (int d = 0; d < count; d++) {
        if (!(sources[d].weight >= 0) || sources[d].weight > 1e15)
            return stki_fail(err, STK_E_RANGE, "data set %s: weight: found %g, expected 0 to 1e15", sources[d].name,
                             sources[d].weight);
        largest = sources[d].weight > largest ? sources[d].weight : largest;
    }
    if (largest < 1e-200)
        return stki_fail(err, STK_E_RANGE, "the largest weight of the %d data sets: found %g, expected 1e-200 to 1e15",
                         count, largest);
    while (largest * power < 1e14)
        power *= 10;
    for (int d = 0; d < count; d++) {
        double scaled = rint(sources[d].weight * power);

        if (sources[d].weight > 0 && scaled < 1)
            return stki_fail(err, STK_E_RANGE, "data set %s: weight: found %g, too small relative to the largest, %g",
                             sources[d].name, sources[d].weight, largest);
        out[d] = (int64_t)scaled;
    }
    return STK_OK;
}

/* n / (weight / sum), rounded up for `all_exhausted`. A result within a millionth of an integer is treated as that
 * integer, because weights such as 1/3 are truncated decimals. */
static wide length_for(wide n, wide sum, wide weight, enum stki_mixture_stop stop)
{
    wide whole = n * sum / weight, part = n * sum % weight * 1000000;

    if (stop == STKI_STOP_ALL)
        return part > weight ? whole + 1 : whole;
    return part >= weight * 999999 ? whole + 1 : whole;
}

static stk_status choose_length(const stki_order_source *sources, const int64_t *counts, const int64_t *weights,
                                int count, enum stki_mixture_stop stop, int64_t *length, stk_error *err)
{
    wide sum = 0, chosen = -1;

    for (int d = 0; d < count; d++)
        sum += weights[d];
    for (int d = 0; d < count; d++) {
        wide its;

        if (weights[d] == 0)
            continue;
        if (counts[d] == 0)
            return stki_fail(err, STK_E_EMPTY, "data set %s has no samples, but a weight of %g", sources[d].name,
                             sources[d].weight);
        its = length_for(counts[d], sum, weights[d], stop);
        if (chosen < 0 || (stop == STKI_STOP_ALL ? its > chosen : its < chosen))
            chosen = its;
    }
    if (*length > 0)
        return STK_OK;
    if (chosen > INT64_MAX / 2)
        return stki_fail(err, STK_E_LIMIT, "an epoch over %d data sets has more than 2^62 positions", count);
    *length = (int64_t)chosen;
    return STK_OK;
}

/* ---- create ---- */

static stk_status copy_indices(stki_mixture *m, const stki_order_source *sources, stk_error *err)
{
    int64_t total = 0, at = 0;

    for (int d = 0; d < m->count; d++)
        total += sources[d].indices ? sources[d].index_count : 0;
    if (total == 0)
        return STK_OK;
    m->indices = stki_zalloc_array(total, sizeof *m->indices);
    if (!m->indices)
        return stki_fail_memory(err, total * (int64_t)sizeof *m->indices, "subsets of data sets");
    for (int d = 0; d < m->count; d++) {
        if (!sources[d].indices)
            continue;
        memcpy(m->indices + at, sources[d].indices, (size_t)sources[d].index_count * sizeof *m->indices);
        m->sources[d].indices = m->indices + at;
        at += sources[d].index_count;
    }
    return STK_OK;
}

static stk_status fill(stki_mixture *m, const stki_order_source *sources, enum stki_mixture_stop stop, uint64_t seed,
                       stk_error *err)
{
    int64_t weights[STKI_MAX_SOURCES], counts[STKI_MAX_SOURCES], shares[STKI_MAX_SOURCES], first = 0;
    stk_status status = whole_weights(sources, m->count, weights, err);

    for (int d = 0; d < m->count; d++)
        counts[d] = sources[d].indices ? sources[d].index_count : sources[d].count;
    if (status != STK_OK ||
        (status = choose_length(sources, counts, weights, m->count, stop, &m->length, err)) != STK_OK ||
        (status = copy_indices(m, sources, err)) != STK_OK)
        return status;
    stki_mixture_counts(weights, m->count, m->length, shares);
    for (int d = 0; d < m->count; d++) {
        stki_philox drawn = stki_philox_draw(seed, STKI_KEY_SOURCE, (uint64_t)d);
        struct source *s = &m->sources[d];

        s->first = first;
        s->count = counts[d];
        s->share = shares[d];
        s->seed = (uint64_t)drawn.word[1] << 32 | drawn.word[0];
        first += sources[d].count;
        m->begin[d + 1] = m->begin[d] + s->share;
    }
    return m->shuffled ? stki_random_order_create(m->length, seed, &m->outer, err) : STK_OK;
}

stk_status stki_mixture_create(const stki_order_source *sources, int count, enum stki_mixture_stop stop, int64_t length,
                               bool shuffled, uint64_t seed, stki_mixture **out, stk_error *err)
{
    stki_mixture *m;
    stk_status status;

    if (count < 1 || count > STKI_MAX_SOURCES)
        return stki_fail(err, STK_E_LIMIT, "found %d data sets, expected 1 to %d", count, STKI_MAX_SOURCES);
    m = stki_zalloc(sizeof *m);
    if (!m)
        return stki_fail_memory(err, sizeof *m, "a mixture");
    m->count = count;
    m->length = length;
    m->shuffled = shuffled;
    m->sources = stki_zalloc_array(count, sizeof *m->sources);
    m->begin = stki_zalloc_array(count + 1, sizeof *m->begin);
    status = m->sources && m->begin ? fill(m, sources, stop, seed, err)
                                    : stki_fail_memory(err, count * (int64_t)sizeof *m->sources, "a mixture");
    if (status != STK_OK)
        stki_mixture_destroy(m);
    else
        *out = m;
    return status;
}

void stki_mixture_destroy(stki_mixture *m)
{
    if (!m)
        return;
    stki_random_order_destroy(m->outer);
    stki_free(m->sources);
    stki_free(m->begin);
    stki_free(m->indices);
    stki_free(m);
}

int64_t stki_mixture_length(const stki_mixture *m)
{
    return m->length;
}

int64_t stki_mixture_share(const stki_mixture *m, int source)
{
    return m->sources[source].share;
}

/* ---- evaluation ---- */

/* Returns the source whose range contains q: the last non-empty one that begins at or before q. */
static int source_of(const stki_mixture *m, int64_t q)
{
    int source = 0;

    if (m->count > 16)
        return (int)stki_bisect(m->begin, 0, m->count - 1, q);
    for (int d = 1; d < m->count; d++) /* branch-free, because the outcome is unpredictable */
        source += q >= m->begin[d];
    return source;
}

/* The positions of one source, and the value of J (order_mixture.h) at which the source starts in this epoch. */
typedef struct group {
    int source;
    uint64_t pass0;  /* epoch * c_d as pass number … */
    int64_t offset0; /* … and offset in the pass */
    uint16_t *places;
    int64_t *j;
    int count;
} group;

/* Pending values of several passes, possibly of different sources, which are permuted together. */
typedef struct waiting {
    stki_permutations set;
    int sources[STKI_PERMUTATIONS_MOST]; /* the source of each permutation */
    int count;
    uint64_t values[BLOCK];
    uint8_t which[BLOCK];
    uint16_t places[BLOCK];
} waiting;

static void put(const stki_mixture *m, int source, int place, uint64_t image, int64_t first, stki_position *out)
{
    const struct source *s = &m->sources[source];

    out[place] = (stki_position){
        .source = source,
        .sample = s->first + (s->indices ? s->indices[image] : (int64_t)image),
        .length = -1,
        .draw = first + place,
    };
}

static void flush(const stki_mixture *m, waiting *w, int64_t first, stki_position *out)
{
    if (m->shuffled)
        stki_permutations_map(&w->set, w->which, w->values, w->count);
    for (int i = 0; i < w->count; i++)
        put(m, w->sources[w->which[i]], w->places[i], w->values[i], first, out);
    w->set.count = 0;
    w->count = 0;
}

/* Adds a pass, flushing the set if it is full; returns its number in the set. */
static uint8_t begin_pass(const stki_mixture *m, int source, uint64_t pass, waiting *w, int64_t first,
                          stki_position *out)
{
    const struct source *s = &m->sources[source];
    stki_permutation permutation;

    if (m->shuffled)
        stki_permutation_init(&permutation, s->seed, pass, (uint64_t)s->count);
    else
        permutation = (stki_permutation){.n = (uint64_t)s->count};
    if (!stki_permutations_add(&w->set, &permutation)) {
        flush(m, w, first, out);
        (void)stki_permutations_add(&w->set, &permutation); /* cannot fail, because the set is empty */
    }
    w->sources[w->set.count - 1] = source;
    return (uint8_t)(w->set.count - 1);
}

/* Evaluates the group's positions pass by pass: usually there is one pass, or two if a pass ends within the epoch. */
static void eval_group(const stki_mixture *m, group *g, waiting *w, int64_t first, stki_position *out)
{
    const int64_t count = m->sources[g->source].count;
    int left = g->count;

    while (left > 0) {
        int64_t pass = (g->offset0 + g->j[0]) / count, low = pass * count - g->offset0;
        uint8_t number = begin_pass(m, g->source, g->pass0 + (uint64_t)pass, w, first, out);
        int taken = w->count, kept = 0;

        for (int i = 0; i < left; i++) {
            int64_t within = g->j[i] - low;
            bool its = within >= 0 && within < count;

            w->places[taken] = g->places[i];
            w->values[taken] = (uint64_t)within;
            w->which[taken] = number;
            g->places[kept] = g->places[i];
            g->j[kept] = g->j[i];
            taken += its;
            kept += !its;
        }
        w->count = taken;
        left = kept;
    }
}

static void eval_block(const stki_mixture *m, int64_t epoch, int64_t first, int n, stki_position *out)
{
    uint64_t q[BLOCK];
    uint16_t source[BLOCK], places[BLOCK], begin[STKI_MAX_SOURCES + 1] = {0};
    int64_t j[BLOCK];
    waiting w;

    if (m->outer)
        stki_random_order_run(m->outer, epoch, first, n, q);
    for (int i = 0; i < n; i++) {
        if (!m->outer)
            q[i] = (uint64_t)(first + i);
        source[i] = (uint16_t)source_of(m, (int64_t)q[i]);
        begin[source[i] + 1]++;
    }
    for (int d = 0; d < m->count; d++)
        begin[d + 1] = (uint16_t)(begin[d + 1] + begin[d]);
    for (int i = 0; i < n; i++) {
        int d = source[i], at = begin[d]++; /* afterwards, begin[d] is the end of source d's range */

        places[at] = (uint16_t)i;
        j[at] = (int64_t)q[i] - m->begin[d];
    }
    w.set.count = w.count = 0;
    for (int d = 0, from = 0; d < m->count; from = begin[d++]) {
        const struct source *s = &m->sources[d];
        group g = {.source = d, .places = places + from, .j = j + from, .count = begin[d] - from};
        wide start = (wide)epoch * s->share;

        if (g.count == 0)
            continue;
        g.pass0 = (uint64_t)(start / s->count);
        g.offset0 = (int64_t)(start % s->count);
        eval_group(m, &g, &w, first, out);
    }
    flush(m, &w, first, out);
}

void stki_mixture_eval(const stki_mixture *m, int64_t epoch, int64_t first, int64_t n, stki_position *out)
{
    for (int64_t done = 0, part; done < n; done += part) {
        part = n - done < BLOCK ? n - done : BLOCK;
        eval_block(m, epoch, first + done, (int)part, out + done);
    }
}

void stki_mixture_ahead(const stki_mixture *m, int64_t epoch, int64_t taken, int64_t n)
{
    if (m->outer)
        stki_random_order_ahead(m->outer, epoch, taken, n);
}

bool stki_mixture_is_ready(const stki_mixture *m, int64_t epoch)
{
    return !m->outer || stki_random_order_is_ready(m->outer, epoch);
}
