/* batching.c: maps the positions of an epoch to the batches of the ranks. Step s covers the positions [sB, min((s +
 * 1)B, n)), and rank r of W takes rows floor(m r / W) to floor(m (r + 1) / W) of the step, where m is B or, with
 * `partial`, the number of positions in the step. This is pure arithmetic without state, so the cost is the same for
 * any step, rank and world size. */
#include "order.h"
#include <assert.h>

/* floor(rows * part / parts) for 0 <= part <= parts; the product may need 126 bits. */
static int64_t share(int64_t rows, int64_t part, int64_t parts)
{
    __extension__ typedef __int128 wide;

    return (int64_t)((wide)rows * part / parts);
}

static int64_t share_rows(int64_t rows, int64_t rank, int64_t world_size)
{
    return share(rows, rank + 1, world_size) - share(rows, rank, world_size);
}

static void check(const stki_batching *batching)
{
    assert(batching->length >= 0 && batching->global_batch >= 1);
    assert(batching->rank >= 0 && batching->rank < batching->world_size);
    (void)batching;
}

int64_t stki_batching_steps(const stki_batching *batching)
{
    int64_t full;

    check(batching);
    full = batching->length / batching->global_batch;
    if (batching->last == STKI_LAST_DROP)
        return full;
    return full + (batching->length % batching->global_batch != 0);
}

/* With `partial`, the smaller last step can give a rank one row more than a full step: 2 rows over 5 ranks are 0 0 1 0
 * 1, 3 rows are 0 1 0 1 1. */
int64_t stki_batching_max_rows(const stki_batching *batching)
{
    int64_t full, rest, full_rows, rest_rows;

    check(batching);
    full = batching->length / batching->global_batch;
    rest = batching->length % batching->global_batch;
    full_rows = share_rows(batching->global_batch, batching->rank, batching->world_size);
    rest_rows = share_rows(rest, batching->rank, batching->world_size);
    if (rest == 0 || batching->last == STKI_LAST_DROP)
        return full > 0 ? full_rows : 0;
    if (batching->last == STKI_LAST_PAD)
        return full_rows;
    return full > 0 && full_rows > rest_rows ? full_rows : rest_rows;
}

stki_batch_rows stki_batching_rows(const stki_batching *batching, int64_t step)
{
    int64_t start, left, rows, low, high;

    check(batching);
    assert(step >= 0 && step < stki_batching_steps(batching));
    start = step * batching->global_batch;
    left = batching->length - start;
    rows = batching->last == STKI_LAST_PARTIAL && left < batching->global_batch ? left : batching->global_batch;
    low = share(rows, batching->rank, batching->world_size);
    high = share(rows, batching->rank + 1, batching->world_size);
    if (low >= left) /* only padding: the first row is at (start + low) mod length, and start + left equals length */
        return (stki_batch_rows){
            .rows = high - low, .valid = 0, .first = (low - left) % batching->length, .first_row = low};
    return (stki_batch_rows){
        .rows = high - low, .valid = (high < left ? high : left) - low, .first = start + low, .first_row = low};
}
