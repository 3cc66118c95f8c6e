/* hdf5_filter.c: reverses the filters of a chunk, starting with the last one. The output size of each step is known in
 * advance: there is at most one compressing filter, and every other filter keeps the size or adds a checksum of 4
 * bytes. */
#include "hdf5_filter.h"
#include "checked.h"
#include "error.h"
#include "read_clock.h"
#include "thread.h"
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

enum { CHECKSUM = 4, WORK_ALIGNMENT = 64 };

/* ---- inflate ---- */

/* Each thread has its own decompressor, which is created at its first chunk and freed when the thread exits. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_decompressor(void *decompressor)
{
    libdeflate_free_decompressor(decompressor);
}

static void make_key(void)
{
    (void)pthread_key_create(&key, end_decompressor);
}

static struct libdeflate_decompressor *decompressor(void)
{
    struct libdeflate_decompressor *mine;

    pthread_once(&once, make_key);
    mine = pthread_getspecific(key);
    if (!mine) {
        mine = libdeflate_alloc_decompressor();
        if (mine && pthread_setspecific(key, mine)) {
            libdeflate_free_decompressor(mine);
            mine = NULL;
        }
    }
    return mine;
}

/* Returns NULL if the zlib stream ends at the last byte and decompresses to exactly `room` bytes; otherwise a message.
 * "out of memory" stands for STK_E_MEMORY. Sets *found and *expected to the sizes that differ; -1: unknown. */
static const char *inflate_stream(const void *from, int64_t bytes, void *to, int64_t room, int64_t *found,
                                  int64_t *expected)
{
    struct libdeflate_decompressor *mine = decompressor();
    size_t used = 0, made = 0;

    *found = *expected = -1;
    if (!mine)
        return "out of memory";
    switch (libdeflate_zlib_decompress_ex(mine, from, (size_t)bytes, to, (size_t)room, &used, &made)) {
    case LIBDEFLATE_SUCCESS:
        *found = made < (size_t)room ? (int64_t)made : (int64_t)used;
        *expected = made < (size_t)room ? room : bytes;
        return made < (size_t)room   ? "the stream decompresses to fewer bytes than the chunk has"
               : *found == *expected ? NULL
                                     : "the stream is shorter than the stored chunk";
    case LIBDEFLATE_INSUFFICIENT_SPACE:
        *expected = room;
        return "the stream decompresses to more bytes than the chunk has";
    default:
        return "the stream is damaged";
    }
}

/* ---- fletcher32 and LZF ---- */

uint32_t stki_hdf5_fletcher32(const void *bytes, int64_t count)
{
    const unsigned char *at = bytes;
    uint32_t one = 0, two = 0;
    int64_t words = count / 2;

    while (words > 0) { /* 360 words is the largest block whose sums cannot overflow 32 bits */
        int64_t many = words < 360 ? words : 360;

        words -= many;
        for (; many > 0; many--, at += 2) {
            one += (uint32_t)at[0] << 8 | at[1];
            two += one;
        }
        one = (one & 0xFFFF) + (one >> 16);
        two = (two & 0xFFFF) + (two >> 16);
    }
    if (count % 2) {
        one += (uint32_t)at[0] << 8;
        two += one;
        one = (one & 0xFFFF) + (one >> 16);
        two = (two & 0xFFFF) + (two >> 16);
    }
    one = (one & 0xFFFF) + (one >> 16);
    two = (two & 0xFFFF) + (two >> 16);
    return two << 16 | one;
}

bool stki_hdf5_lzf(const void *from, int64_t bytes, void *to, int64_t room)
{
    const unsigned char *in = from, *end = in + bytes;
    unsigned char *out = to, *limit = out + room;

    while (in < end) {
        int64_t control = *in++, length, distance;

        if (control < 32) { /* literals */
            length = control + 1;
            if (length > end - in || length > limit - out)
                return false;
            memcpy(out, in, (size_t)length);
            in += length;
            out += length;
            continue;
        }
        length = control >> 5;
        if (length == 7) {
            if (in == end)
                return false;
            length += *in++;
        }
        if (in == end)
            return false;
        length += 2;
        distance = ((control & 31) << 8 | *in++) + 1;
        if (distance > out - (unsigned char *)to || length > limit - out)
            return false;
        for (; length > 0; length--, out++) /* source and destination may overlap */
            *out = out[-distance];
    }
    return out == limit;
}

/* ---- the pipeline ---- */

static bool compresses(int id)
{
    return id == STKI_HDF5_DEFLATE || id == STKI_HDF5_LZF;
}

bool stki_hdf5_pipeline_known(const stki_hdf5_pipeline *pipeline)
{
    int compressing = 0;

    for (int k = 0; k < pipeline->count; k++) {
        int id = pipeline->filters[k].id;

        if (!compresses(id) && id != STKI_HDF5_SHUFFLE && id != STKI_HDF5_FLETCHER32)
            return false;
        compressing += compresses(id);
    }
    return compressing <= 1;
}

bool stki_hdf5_pipeline_plain(const stki_hdf5_pipeline *pipeline, uint32_t mask)
{
    for (int k = 0; k < pipeline->count; k++)
        if (!(mask >> k & 1) && (pipeline->filters[k].id != STKI_HDF5_SHUFFLE || pipeline->filters[k].value > 1))
            return false;
    return true;
}

/* Returns the number of bytes for the elements and all checksums, rounded up to whole cache lines. */
static int64_t step_room(const stki_hdf5_pipeline *pipeline)
{
    return stki_round_up(pipeline->chunk_bytes + CHECKSUM * STKI_HDF5_MAX_FILTERS, WORK_ALIGNMENT);
}

int64_t stki_hdf5_pipeline_room(const stki_hdf5_pipeline *pipeline)
{
    return pipeline->count > 0 ? 2 * step_room(pipeline) : 0;
}

struct decoding {
    const stki_hdf5_pipeline *pipeline;
    uint32_t mask;
    int64_t before[STKI_HDF5_MAX_FILTERS]; /* input size of filter k when the chunk was written */
    const char *bytes;                     /* current data */
    int64_t count;
    char *to, *work;
    int moves; /* remaining steps that need a separate output */
    int turn;
    const char *path;
    int64_t offset;
};

static bool skipped(const struct decoding *d, int k)
{
    return d->mask >> k & 1;
}

static bool moves_bytes(const struct decoding *d, int k)
{
    const stki_hdf5_filter *filter = &d->pipeline->filters[k];

    return !skipped(d, k) && (compresses(filter->id) || (filter->id == STKI_HDF5_SHUFFLE && filter->value > 1));
}

/* found, expected: numbers of bytes; -1: unknown. */
static stk_status fail(const struct decoding *d, int64_t found, int64_t expected, const char *filter, const char *what,
                       stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){d->path, -1, d->offset, found < 0 ? NULL : STKI_TEXT("%" PRId64 " bytes", found),
                                     expected < 0 ? NULL : STKI_TEXT("%" PRId64 " bytes", expected)},
                        "invalid chunk: %s: %s", filter, what);
}

/* Returns the output of the next step. The last step writes to the destination, unless its result still has a checksum.
 */
static char *next_place(struct decoding *d, int64_t bytes)
{
    if (--d->moves == 0 && bytes == d->pipeline->chunk_bytes)
        return d->to;
    return d->work + (d->turn++ % 2) * step_room(d->pipeline);
}

static stk_status unpack(struct decoding *d, int k, stk_error *err)
{
    int64_t room = d->before[k], found, expected;
    char *to = next_place(d, room);
    const char *what;

    if (d->pipeline->filters[k].id == STKI_HDF5_LZF) {
        if (!stki_hdf5_lzf(d->bytes, d->count, to, room))
            return fail(d, -1, room, "lzf", "the stream is damaged or has the wrong decompressed size", err);
    } else {
        what = inflate_stream(d->bytes, d->count, to, room, &found, &expected);
        if (what)
            return fail(d, found, expected, "deflate", what, err);
    }
    d->bytes = to;
    d->count = room;
    return STK_OK;
}

static void unshuffle(struct decoding *d, int k)
{
    int64_t size = d->pipeline->filters[k].value, elements = d->count / size;
    char *to = next_place(d, d->count);

    stki_hdf5_unshuffle(to, d->bytes, elements, size);
    memcpy(to + elements * size, d->bytes + elements * size, (size_t)(d->count - elements * size));
    d->bytes = to;
}

/* Checks and removes a fletcher32 checksum. Also accepts those of very old libraries, which swapped the bytes of each
 * half. */
static stk_status check_sum(struct decoding *d, int k, stk_error *err)
{
    uint32_t sum, old, stored = 0;
    const unsigned char *at;

    if (d->count < CHECKSUM)
        return fail(d, d->count, d->before[k] + CHECKSUM, "fletcher32", "the data is too short for the checksum", err);
    d->count -= CHECKSUM;
    at = (const unsigned char *)d->bytes + d->count;
    for (int i = 0; i < CHECKSUM; i++)
        stored |= (uint32_t)at[i] << 8 * i;
    sum = stki_hdf5_fletcher32(d->bytes, d->count);
    old = (sum & 0x00FF00FF) << 8 | (sum >> 8 & 0x00FF00FF);
    if (stored != sum && stored != old)
        return stki_fail_at(
            err, STK_E_CORRUPT,
            (stki_place){d->path, -1, d->offset, STKI_TEXT("%08" PRIx32, stored), STKI_TEXT("%08" PRIx32, sum)},
            "invalid chunk: fletcher32: the checksum is wrong");
    return STK_OK;
}

/* Computes the input size of each filter when the chunk was written. The sizes after the compressing filter are
 * unknown, but are needed only for checksums. */
static void plan(struct decoding *d)
{
    int64_t bytes = d->pipeline->chunk_bytes;

    for (int k = 0; k < d->pipeline->count; k++) {
        d->before[k] = bytes;
        if (!skipped(d, k) && d->pipeline->filters[k].id == STKI_HDF5_FLETCHER32)
            bytes += CHECKSUM;
        d->moves += moves_bytes(d, k);
    }
}

static stk_status decode(const stki_hdf5_pipeline *pipeline, uint32_t mask, const void *stored, int64_t bytes, void *to,
                         void *work, const char *path, int64_t offset, stk_error *err)
{
    struct decoding d = {.pipeline = pipeline,
                         .mask = mask,
                         .bytes = stored,
                         .count = bytes,
                         .to = to,
                         .work = work,
                         .path = path,
                         .offset = offset};
    stk_status status = STK_OK;

    plan(&d);
    for (int k = pipeline->count - 1; k >= 0 && status == STK_OK; k--) {
        int id = pipeline->filters[k].id;

        if (skipped(&d, k))
            continue;
        if (compresses(id)) {
            status = unpack(&d, k, err);
            continue;
        }
        if (id == STKI_HDF5_FLETCHER32)
            status = check_sum(&d, k, err);
        else if (moves_bytes(&d, k)) {
            if (d.count > step_room(pipeline))
                return fail(&d, d.count, pipeline->chunk_bytes, "shuffle", "more bytes than the chunk has", err);
            unshuffle(&d, k);
        }
    }
    if (status != STK_OK)
        return status;
    if (d.count != pipeline->chunk_bytes)
        return fail(&d, d.count, pipeline->chunk_bytes, "filters", "the output has the wrong size", err);
    if (d.bytes != to)
        memcpy(to, d.bytes, (size_t)d.count);
    return STK_OK;
}

stk_status stki_hdf5_decode(const stki_hdf5_pipeline *pipeline, uint32_t mask, const void *stored, int64_t bytes,
                            void *to, void *work, const char *path, int64_t offset, stk_error *err)
{
    const int64_t began = stki_read_work_begin(STKI_READ_INFLATE, true);
    const stk_status status = decode(pipeline, mask, stored, bytes, to, work, path, offset, err);

    stki_read_work_end(STKI_READ_INFLATE, began);
    return status;
}
