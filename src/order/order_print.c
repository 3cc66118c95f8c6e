/* order_print.c: hashes of everything that an order depends on (XXH3-64 of the numbers as little-endian 64-bit words).
 * Computed once, at creation, while the lists are available. */
#include "order_print.h"
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

uint64_t stki_order_hash(uint64_t seed, const void *bytes, int64_t count)
{
    return XXH3_64bits_withSeed(bytes, (size_t)count, seed);
}

static uint64_t hash_words(uint64_t seed, const void *words, int64_t count)
{
    return stki_order_hash(seed, words, count * (int64_t)sizeof(uint64_t));
}

static uint64_t chain(uint64_t hash, uint64_t word)
{
    return hash_words(hash, &word, 1);
}

static uint64_t chain_double(uint64_t hash, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return chain(hash, bits);
}

static void print_sources(const stki_order_opts *opts, stki_order_print *out)
{
    out->weights = chain(0, (uint64_t)opts->stop);
    for (int d = 0; d < opts->source_count; d++) {
        const stki_order_source *s = &opts->sources[d];

        out->samples = chain(out->samples, (uint64_t)s->count);
        out->weights = chain_double(out->weights, s->weight);
        if (s->indices)
            out->subset = hash_words(chain(out->subset, (uint64_t)d), s->indices, s->index_count);
    }
}

void stki_order_print_make(const stki_order_opts *opts, int64_t length, stki_order_print *out)
{
    *out = (stki_order_print){
        .seed = opts->seed,
        .length = length,
        .version = STKI_ORDER_VERSION,
        .kind = opts->kind,
        .data = opts->data_digest,
    };
    if (opts->source_count > 0) {
        print_sources(opts, out);
    } else {
        out->samples = chain(0, (uint64_t)opts->count);
        if (opts->indices)
            out->subset = hash_words(1, opts->indices, opts->index_count);
    }
    if (opts->kind == STKI_ORDER_WEIGHTED)
        out->weights = hash_words(2, opts->weights, opts->count);
    if (opts->kind == STKI_ORDER_BLOCK)
        out->blocks = hash_words(opts->in_order ? 0 : (uint64_t)opts->window, opts->unit_first, opts->unit_count + 1);
    if (opts->bucket_window > 0)
        out->buckets = chain(chain(3, (uint64_t)opts->bucket_window), (uint64_t)opts->bucket_batch);
    if (opts->starts)
        out->data = hash_words(chain(out->data, (uint64_t)opts->starts->stride), opts->starts->starts,
                               opts->starts->group_count);
    out->whole = hash_words(0, &out->seed, (int64_t)((sizeof *out - offsetof(stki_order_print, seed)) / 8));
}
