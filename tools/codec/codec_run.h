/* codec_run.h: items that lie in memory are unpacked again and again by several threads for a time. */
#ifndef CODEC_RUN_H
#define CODEC_RUN_H

#include "codec_limit.h"
#include <stdbool.h>

struct codec_item {
    void *bytes; /* owned */
    int64_t count;
    int64_t unpacked; /* bytes of it */
};

struct codec_items {
    struct codec_item items[CODEC_ITEMS];
    int count;
    int64_t packed_bytes, largest; /* unpacked bytes of the largest */
};

/* One thread's work: false where an item cannot be unpacked. `state` is what `begin` made for this thread. */
struct codec_kind {
    void *(*begin)(void); /* NULL: no memory */
    bool (*unpack)(void *state, const struct codec_item *item, void *to);
    void (*end)(void *state);
};

/* Items and unpacked bytes a second, the middle of three; fills out->items and packed_bytes too. All 0 where it was
 * asked to end. */
stk_status codec_time(const struct codec_items *items, const struct codec_kind *kind, const struct codec_ask *ask,
                      double *items_per_s, struct codec_limit *out, stk_error *err);
/* Of all items together. */
int64_t codec_most_bytes(const struct codec_ask *ask);
/* Was it asked to end? Then out->missing says so. */
bool codec_stopped(const struct codec_ask *ask, struct codec_limit *out);
/* A copy of the bytes. */
stk_status codec_items_add(struct codec_items *items, const void *bytes, int64_t count, int64_t unpacked,
                           stk_error *err);
void codec_items_fini(struct codec_items *items);

#endif
