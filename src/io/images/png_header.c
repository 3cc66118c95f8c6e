/* png_header.c: parses the chunks of a PNG image up to its pixels.
 *
 *     89 50 4E 47 0D 0A 1A 0A     signature
 *     LL LL LL LL TT TT TT TT …   a chunk: length of the data (big-endian), type, data, CRC of type and data
 *
 * IHDR is the first chunk; IDAT chunks contain the pixels. CRCs are not checked here, because the decoder checks
 * them. */
#include "png_header.h"
#include "checked.h"
#include "error.h"
#include "exif.h"
#include <inttypes.h>
#include <string.h>

enum { SIGNATURE = 8, FRAME = 12 /* length, type and CRC */, IHDR = 13, GRAY = 0, RGB = 2, PALETTE = 3, ALPHA = 4 };

static const char signature[SIGNATURE + 1] = "\x89PNG\r\n\x1a\n";

static int64_t number(const uint8_t *at)
{
    return (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static stk_status fail(stk_error *err, stk_status status, int64_t offset, const char *found, const char *expected,
                       const char *what)
{
    return stki_fail_at(err, status, (stki_place){NULL, -1, offset, found, expected}, "%s", what);
}

static bool bits_fit(int bits, int type)
{
    switch (type) {
    case GRAY:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
    case PALETTE:
        return bits == 1 || bits == 2 || bits == 4 || bits == 8;
    case RGB:
    case GRAY | ALPHA:
    case RGB | ALPHA:
        return bits == 8 || bits == 16;
    default:
        return false;
    }
}

/* Parses the data of IHDR, at offset 16: width, height, bits, type, compression, filter, interlace. */
static stk_status read_ihdr(const uint8_t *data, stki_png_header *out, stk_error *err)
{
    int bits = data[8], type = data[9];

    out->width = number(data);
    out->height = number(data + 4);
    if (out->width < 1 || out->width > INT32_MAX || out->height < 1 || out->height > INT32_MAX)
        return fail(err, STK_E_CORRUPT, 16, STKI_TEXT("%" PRId64 "x%" PRId64, out->width, out->height),
                    "a height and width of 1 to 2147483647", "invalid image size");
    if (!bits_fit(bits, type))
        return fail(err, STK_E_CORRUPT, 24, STKI_TEXT("%d bits, type %d", bits, type),
                    "a valid combination of bit depth and color type", "invalid pixel format");
    if (data[10] != 0 || data[11] != 0 || data[12] > 1)
        return fail(err, STK_E_UNSUPPORTED, 26, STKI_TEXT("%d, %d, %d", data[10], data[11], data[12]), "0, 0, 0 or 1",
                    "unsupported compression, filter or interlace method");
    out->bits = bits;
    out->palette = type == PALETTE;
    out->channels = (type & RGB && type != PALETTE ? 3 : 1) + (type & ALPHA ? 1 : 0);
    out->interlaced = data[12] == 1;
    return STK_OK;
}

stk_status stki_png_read_header(const void *bytes, int64_t count, stki_png_header *out, stk_error *err)
{
    const uint8_t *head = bytes;
    int64_t at = SIGNATURE, length;
    bool has_exif = false;
    stk_status status;

    *out = (stki_png_header){.orientation = 1};
    if (memcmp(head, signature, (size_t)(count < SIGNATURE ? count : SIGNATURE)) != 0)
        return fail(err, STK_E_CORRUPT, 0, "another signature", "the PNG signature", "not a PNG image");
    for (;; at += FRAME + length) {
        if (!stki_inside(at, 8, count))
            return fail(err, STK_E_TRUNCATED, at, STKI_TEXT("%" PRId64 " bytes", count), NULL,
                        "the image ends before its pixels");
        length = number(head + at);
        if (length > INT32_MAX)
            return fail(err, STK_E_CORRUPT, at, STKI_TEXT("%" PRId64, length), "at most 2147483647",
                        "invalid chunk length");
        if ((at == SIGNATURE) != (memcmp(head + at + 4, "IHDR", 4) == 0))
            return fail(err, STK_E_CORRUPT, at + 4, at == SIGNATURE ? "another chunk" : "a second IHDR",
                        "IHDR as the first chunk, once", "invalid chunk order");
        if (!memcmp(head + at + 4, "IDAT", 4))
            return STK_OK;
        if (!memcmp(head + at + 4, "IEND", 4))
            return fail(err, STK_E_CORRUPT, at + 4, "IEND", "IDAT", "the image has no pixels");
        if (at == SIGNATURE && length != IHDR)
            return fail(err, STK_E_CORRUPT, at, STKI_TEXT("%" PRId64, length), "13", "wrong IHDR length");
        if (!stki_inside(at, FRAME + length, count))
            return fail(err, STK_E_TRUNCATED, at, STKI_TEXT("%" PRId64 " bytes", count), NULL,
                        "the image ends in its header");
        if (at == SIGNATURE) {
            status = read_ihdr(head + at + 8, out, err);
            if (status != STK_OK)
                return status;
        } else if (!has_exif && !memcmp(head + at + 4, "eXIf", 4)) {
            has_exif = true;
            out->orientation = stki_exif_orientation(head + at + 8, length);
        }
    }
}

/* Deflate compresses by a factor of at most 1032. Each row has one more byte, for its filter. */
int64_t stki_png_least_bytes(const stki_png_header *header)
{
    int64_t row, all;

    if (!stki_mul(header->width, (int64_t)header->bits * header->channels, &row) ||
        !stki_mul(row / 8 + 1, header->height, &all))
        return INT64_MAX;
    return all / 1032;
}
