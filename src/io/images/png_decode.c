/* png_decode.c: decodes one image with libspng, row by row, so that rows above a part need no memory and rows below it
 * are not inflated. Interlaced images are decoded as a whole. libspng uses the library's allocator. */
#include "png_decode.h"
#include "allocate.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

#include <spng.h>
#include <zlib.h>

enum {
    MOST_CHUNK_BYTES = 64 << 20, /* limit for a chunk other than IDAT, and for all such chunks that libspng keeps */
    SIGNATURE = 8,               /* bytes */
    CHUNK_AROUND = 12            /* bytes of a chunk besides its data: length, type, CRC */
};

/* Set when an allocation fails, because zlib inside libspng reports that as a broken stream. */
static _Thread_local bool out_of_memory;

static void *note(void *block)
{
    out_of_memory = out_of_memory || !block;
    return block;
}

static void *allocate(size_t bytes)
{
    return note(stki_zalloc((int64_t)bytes));
}

static void *reallocate(void *block, size_t bytes)
{
    return note(stki_resize(block, (int64_t)bytes));
}

static void *allocate_array(size_t count, size_t bytes)
{
    return note(stki_zalloc_array((int64_t)count, (int64_t)bytes));
}

static stk_status class_of(int code)
{
    switch (code) {
    case SPNG_IO_EOF:
        return STK_E_TRUNCATED;
    case SPNG_ECHUNK_LIMITS:
        return STK_E_LIMIT;
    default:
        return STK_E_CORRUPT;
    }
}

static int64_t number(const uint8_t *bytes)
{
    return (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Returns the approximate offset of the damage: the first chunk that is truncated or has a wrong CRC, or else the first
 * chunk of pixels. */
static int64_t broken_at(const uint8_t *bytes, int64_t count)
{
    int64_t pixels = 0;

    for (int64_t at = SIGNATURE; at < count;) {
        const int64_t length = count - at < CHUNK_AROUND ? count : number(bytes + at);

        if (length > count - at - CHUNK_AROUND ||
            crc32(0, bytes + at + 4, (uInt)length + 4) != (uLong)number(bytes + at + 8 + length))
            return at;
        if (pixels == 0 && !memcmp(bytes + at + 4, "IDAT", 4))
            pixels = at;
        if (!memcmp(bytes + at + 4, "IEND", 4))
            break;
        at += length + CHUNK_AROUND;
    }
    return pixels > 0 ? pixels : count;
}

static stk_status fail(int code, const void *bytes, int64_t count, stk_error *err)
{
    if (out_of_memory || code == SPNG_EMEM)
        return stki_fail(err, STK_E_MEMORY, "libspng: %s", spng_strerror(SPNG_EMEM));
    return stki_fail_at(err, class_of(code),
                        (stki_place){NULL, -1, broken_at(bytes, count), spng_strerror(code), "a valid PNG image"},
                        "libspng cannot decode the image");
}

static void to_gray(const uint8_t *from, uint8_t *to, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, from += 3)
        to[i] = (uint8_t)((from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 32768) >> 16);
}

/* Unpacks samples of at most 8 bits; the first one is in the highest bits. */
static void unpack(const uint8_t *from, uint8_t *to, int64_t pixels, int bits)
{
    const int mask = (1 << bits) - 1, each = 8 / bits;

    for (int64_t i = 0; i < pixels; i++)
        to[i] = (uint8_t)(from[i / each] >> (8 - bits - i % each * bits) & mask);
}

/* Stores 16-bit samples without alpha. A single stored channel is repeated for RGB. */
static void keep_deep(const uint8_t *from, uint8_t *to, int64_t pixels, int in, int out)
{
    for (int64_t i = 0; i < pixels; i++, from += 2 * in)
        for (int c = 0; c < out; c++, to += 2)
            memcpy(to, from + (in >= 3 ? 2 * c : 0), 2);
}

static int64_t stored_row(const stki_png_header *header)
{
    return (header->width * header->bits * (header->palette ? 1 : header->channels) + 7) / 8;
}

static int64_t row_of(const stki_png_header *header, const stki_png_how *how) /* in bytes, as returned by libspng */
{
    return how->index || how->deep ? stored_row(header) : header->width * 3;
}

static bool is_narrowed(const stki_png_how *how)
{
    return how->gray || how->deep;
}

static int64_t result_row(const stki_png_header *header, const stki_png_how *how) /* bytes */
{
    return header->width * (how->gray ? 1 : 3) << how->deep;
}

static int format_of(const stki_png_how *how)
{
    return how->index || how->deep ? SPNG_FMT_PNG : SPNG_FMT_RGB8;
}

/* Converts a row from libspng's format to the requested one. */
static void narrow(const stki_png_header *header, const stki_png_how *how, const uint8_t *from, uint8_t *to)
{
    if (how->index)
        unpack(from, to, header->width, header->bits);
    else if (how->deep)
        keep_deep(from, to, header->width, header->channels, how->gray ? 1 : 3);
    else
        to_gray(from, to, header->width);
}

/* Decodes the next row, whose number is `y`; `into` has room for it. */
static int decode_row(spng_ctx *ctx, const stki_png_header *header, const stki_png_how *how, int64_t y, uint8_t *into)
{
    int code = spng_decode_row(ctx, into, (size_t)row_of(header, how));

    return code == SPNG_EOI && y == header->height - 1 ? 0 : code;
}

static int decode_rows(spng_ctx *ctx, const stki_png_header *header, const stki_png_how *how, uint8_t *to,
                       uint8_t *room)
{
    int64_t row_bytes = result_row(header, how);
    int code = spng_decode_image(ctx, NULL, 0, format_of(how), SPNG_DECODE_PROGRESSIVE);

    for (int64_t y = 0; y < how->top + how->height && !code; y++) {
        uint8_t *row = to + (y < how->top ? 0 : y - how->top) * row_bytes;

        code = decode_row(ctx, header, how, y, is_narrowed(how) ? room : row);
        if (is_narrowed(how) && y >= how->top && !code)
            narrow(header, how, room, row);
    }
    return code;
}

static int decode_whole(spng_ctx *ctx, const stki_png_header *header, const stki_png_how *how, uint8_t *to,
                        uint8_t *room)
{
    const int64_t row = row_of(header, how);
    int code;

    if (how->index) /* libspng only sets bits of packed samples, so they must be 0 at the start */
        memset(room, 0, (size_t)(row * header->height));
    code = spng_decode_image(ctx, is_narrowed(how) ? room : to, (size_t)(row * header->height), format_of(how), 0);

    for (int64_t y = 0; is_narrowed(how) && y < header->height && !code; y++)
        narrow(header, how, room + y * row, to + y * result_row(header, how));
    return code;
}

int64_t stki_png_room(const stki_png_header *header, const stki_png_how *how)
{
    return !is_narrowed(how) ? 0 : row_of(header, how) * (header->interlaced ? header->height : 1);
}

static int decode(spng_ctx *ctx, const void *bytes, int64_t count, const stki_png_header *header,
                  const stki_png_how *how, uint8_t *to, uint8_t *room)
{
    struct spng_ihdr ihdr;
    int code = spng_set_png_buffer(ctx, bytes, (size_t)count);

    if (!code)
        code = spng_set_chunk_limits(ctx, MOST_CHUNK_BYTES, MOST_CHUNK_BYTES);
    if (!code)
        code = spng_get_ihdr(ctx, &ihdr);
    if (!code && (ihdr.width != (uint32_t)header->width || ihdr.height != (uint32_t)header->height))
        code = SPNG_EIHDR_SIZE;
    if (!code && header->interlaced)
        code = decode_whole(ctx, header, how, to, room);
    else if (!code)
        code = decode_rows(ctx, header, how, to, room);
    if (!code && how->top + how->height == header->height)
        code = spng_decode_chunks(ctx); /* reads the remaining chunks, up to IEND */
    return code;
}

stk_status stki_png_decode(const void *bytes, int64_t count, const stki_png_header *header, const stki_png_how *how,
                           uint8_t *to, uint8_t *room, stk_error *err)
{
    struct spng_alloc alloc = {allocate, reallocate, allocate_array, stki_free};
    spng_ctx *ctx;
    int code;

    out_of_memory = false;
    ctx = spng_ctx_new2(&alloc, 0);
    if (!ctx)
        return stki_fail_memory(err, 0, "a PNG decoder");
    code = decode(ctx, bytes, count, header, how, to, room);
    spng_ctx_free(ctx);
    return code ? fail(code, bytes, count, err) : STK_OK;
}
