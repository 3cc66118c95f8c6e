/* shuffle.c: the patterns of fast.h. */
#include "fast.h"
#include <string.h>

static void init(stki_shuffle *shuffle, int vector_bytes, int size)
{
    memset(shuffle, 0, sizeof *shuffle);
    shuffle->size = size;
    shuffle->lanes = vector_bytes / size;
}

/* Element `lane` of output `k` is element `at` of input `input`. */
static void choose(stki_shuffle *shuffle, int k, int lane, int input, int at)
{
    uint64_t place = (uint64_t)at;

    shuffle->own[k][input] |= UINT64_C(1) << lane;
    memcpy(shuffle->pick[k] + lane * shuffle->size, &place, (size_t)shuffle->size); /* little-endian, like vectors */
}

void stki_shuffle_interleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride)
{
    init(shuffle, vector_bytes, size);
    shuffle->inputs = shuffle->outputs = channels;
    shuffle->in_stride = plane_stride;
    shuffle->in_step = vector_bytes;
    shuffle->out_stride = vector_bytes;
    shuffle->out_step = (int64_t)channels * vector_bytes;
    for (int e = 0; e < channels * shuffle->lanes; e++)
        choose(shuffle, e / shuffle->lanes, e % shuffle->lanes, e % channels, e / channels);
}

void stki_shuffle_deinterleave(stki_shuffle *shuffle, int vector_bytes, int size, int channels, int64_t plane_stride)
{
    init(shuffle, vector_bytes, size);
    shuffle->inputs = shuffle->outputs = channels;
    shuffle->in_stride = vector_bytes;
    shuffle->in_step = (int64_t)channels * vector_bytes;
    shuffle->out_stride = plane_stride;
    shuffle->out_step = vector_bytes;
    for (int e = 0; e < channels * shuffle->lanes; e++)
        choose(shuffle, e % channels, e / channels, e / shuffle->lanes, e % shuffle->lanes);
}

void stki_shuffle_every(stki_shuffle *shuffle, int vector_bytes, int size, int step)
{
    int apart = step < 0 ? -step : step, last;

    init(shuffle, vector_bytes, size);
    last = (shuffle->lanes - 1) * apart;
    shuffle->inputs = last / shuffle->lanes + 1;
    shuffle->outputs = 1;
    shuffle->in_stride = vector_bytes;
    shuffle->in_step = (int64_t)step * vector_bytes;
    shuffle->out_stride = shuffle->out_step = vector_bytes;
    /* With a negative step, vectors end with the first element, so that excess bytes are beyond the last element. */
    shuffle->in_start = step < 0 ? size - (int64_t)shuffle->inputs * vector_bytes : 0;
    for (int lane = 0; lane < shuffle->lanes; lane++) {
        int e = step < 0 ? shuffle->inputs * shuffle->lanes - 1 - lane * apart : lane * apart;
        choose(shuffle, 0, lane, e / shuffle->lanes, e % shuffle->lanes);
    }
}

int64_t stki_shuffle_groups(const stki_shuffle *shuffle, int64_t count)
{
    int64_t step, reach, read;

    if (shuffle->outputs > 1)
        return count / shuffle->lanes; /* all elements that are read are used */
    step = shuffle->in_step / shuffle->in_stride;
    step = step < 0 ? -step : step;
    reach = (count - 1) * step + 1;
    read = (int64_t)shuffle->inputs * shuffle->lanes;
    return reach < read ? 0 : (reach - read) / (step * shuffle->lanes) + 1;
}
