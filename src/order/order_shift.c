/* order_shift.c: see order_shift.h. */
#include "order_shift.h"
#include "allocate.h"
#include "error.h"
#include "permutation.h"
#include "philox.h"

struct stki_shift {
    int64_t count;
    int64_t stride;
    uint64_t seed;
    struct shard {
        int64_t window, start; /* numbers of its first window and first start, across all shards */
        int64_t starts;
    } * shards; /* followed by an entry for the end */
};

int64_t stki_shift_windows(int64_t starts, int64_t stride)
{
    return starts >= stride ? (starts - stride) / stride + 1 : starts > 0;
}

stk_status stki_shift_create(const stki_order_starts *starts, uint64_t seed, stki_shift **out, stk_error *err)
{
    stki_shift *s = stki_zalloc(sizeof *s);

    if (s)
        s->shards = stki_zalloc_array(starts->group_count + 1, sizeof *s->shards);
    if (!s || !s->shards) {
        stki_free(s);
        return stki_fail_memory(err, (starts->group_count + 1) * (int64_t)sizeof *s->shards, "the offsets of windows");
    }
    s->count = starts->group_count;
    s->stride = starts->stride;
    s->seed = seed;
    for (int64_t i = 0; i < s->count; i++) {
        s->shards[i].starts = starts->starts[i];
        s->shards[i + 1].start = s->shards[i].start + starts->starts[i];
        s->shards[i + 1].window = s->shards[i].window + stki_shift_windows(starts->starts[i], s->stride);
    }
    *out = s;
    return STK_OK;
}

void stki_shift_destroy(stki_shift *s)
{
    if (!s)
        return;
    stki_free(s->shards);
    stki_free(s);
}

static int64_t shard_of(const stki_shift *s, int64_t window)
{
    int64_t low = 0, high = s->count - 1;

    while (low < high) { /* the last shard that begins at or before the window */
        int64_t middle = low + (high - low + 1) / 2;

        if (s->shards[middle].window <= window)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

void stki_shift_apply(const stki_shift *s, int64_t epoch, stki_position *positions, int64_t count)
{
    uint64_t key = stki_order_key(s->seed, (uint64_t)epoch);
    int64_t offset = 0;
    int64_t last = -1;

    for (int64_t i = 0; i < count; i++) {
        int64_t number = shard_of(s, positions[i].sample);
        const struct shard *shard = &s->shards[number];
        int64_t range = shard->starts < s->stride ? shard->starts : s->stride;

        if (number != last)
            offset = (int64_t)stki_philox_below(key, STKI_KEY_SHIFT, (uint64_t)number, (uint64_t)range);
        last = number;
        positions[i].sample = shard->start + offset + (positions[i].sample - shard->window) * s->stride;
    }
}
