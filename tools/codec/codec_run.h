/* codec_run.h: several threads repeatedly decompress items in memory for a given time. */
#ifndef CODEC_RUN_H
#define CODEC_RUN_H

#include "codec_limit.h"
#include <stdbool.h>

struct codec_item {
    void *bytes; /* owned */
    int64_t count;
    int64_t unpacked; /* decompressed size */
};

struct codec_items {
    struct codec_item items[CODEC_ITEMS];
    int count;
    int64_t packed_bytes, largest; /* largest decompressed size */
};

/* How a thread decompresses items. `state` is returned by `begin`, once per thread. `unpack` returns false if an item
 * cannot be decompressed. */
struct codec_kind {
    void *(*begin)(void); /* returns NULL if out of memory */
    bool (*unpack)(void *state, const struct codec_item *item, void *to);
    void (*end)(void *state);
};

/* Sets *items_per_s and out->bytes_per_s to the median of three measurements, and sets out->items and
 * out->packed_bytes. All are 0 if the measurement was stopped. */
stk_status codec_time(const struct codec_items *items, const struct codec_kind *kind, const struct codec_ask *ask,
                      double *items_per_s, struct codec_limit *out, stk_error *err);
/* Returns the effective value of ask->most_bytes. */
int64_t codec_most_bytes(const struct codec_ask *ask);
/* Returns whether the caller requested a stop; if so, sets out->missing. */
bool codec_stopped(const struct codec_ask *ask, struct codec_limit *out);
/* Adds a copy of the bytes. */
stk_status codec_items_add(struct codec_items *items, const void *bytes, int64_t count, int64_t unpacked,
                           stk_error *err);
void codec_items_fini(struct codec_items *items);

#endif
