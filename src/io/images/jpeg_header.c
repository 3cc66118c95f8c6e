/* jpeg_header.c: parses the segments of a JPEG image up to its first scan.
 *
 *     FF D8                       start
 *     FF MM LL LL …               a segment: marker, length (with its own two bytes, big-endian), data
 *
 * Any number of FF bytes may precede a marker. The data of a segment is never searched for markers, because a
 * thumbnail in APP1 is a whole JPEG image. As in libjpeg, stray bytes between segments are skipped; the decoder warns
 * about them. */
#include "jpeg_header.h"
#include "checked.h"
#include "error.h"
#include "exif.h"
#include <inttypes.h>
#include <string.h>

enum {
    SOF0 = 0xC0,
    DHT = 0xC4,
    JPG = 0xC8,
    DAC = 0xCC,
    SOF15 = 0xCF,
    RST0 = 0xD0,
    RST7 = 0xD7,
    SOI = 0xD8,
    EOI = 0xD9,
    SOS = 0xDA,
    DRI = 0xDD,
    APP1 = 0xE1,
    TEM = 0x01
};

struct walk {
    const uint8_t *bytes;
    int64_t count, at;
    stki_jpeg_header *out;
    bool framed, has_exif;
    stk_error *err;
};

static stk_status fail(const struct walk *walk, stk_status status, int64_t offset, const char *found,
                       const char *expected, const char *what)
{
    return stki_fail_at(walk->err, status, (stki_place){NULL, -1, offset, found, expected}, "%s", what);
}

static stk_status fail_end(const struct walk *walk, const char *what)
{
    return fail(walk, STK_E_TRUNCATED, walk->at, STKI_TEXT("%" PRId64 " bytes", walk->count), NULL, what);
}

/* Advances past the next marker. */
static stk_status next_marker(struct walk *walk, int *marker)
{
    const uint8_t *bytes = walk->bytes;

    for (;;) {
        while (walk->at < walk->count && bytes[walk->at] != 0xFF)
            walk->at++;
        while (walk->at < walk->count && bytes[walk->at] == 0xFF)
            walk->at++;
        if (walk->at >= walk->count)
            return fail_end(walk, "the image ends before its pixels");
        *marker = bytes[walk->at++];
        if (*marker != 0)
            return STK_OK;
    }
}

static bool is_frame(int marker)
{
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

static const char *frame_special(int marker)
{
    switch (marker & 0x0F) {
    case 3:
    case 11:
        return "lossless compression";
    case 5:
    case 6:
    case 13:
    case 14:
        return "hierarchical frames";
    case 7:
    case 15:
        return "hierarchical lossless frames";
    default:
        return NULL;
    }
}

static stk_status read_components(struct walk *walk, const uint8_t *data)
{
    stki_jpeg_header *out = walk->out;
    int smallest_h = 5, smallest_v = 5;

    for (int i = 0; i < out->components; i++) {
        int h = data[6 + 3 * i + 1] >> 4, v = data[6 + 3 * i + 1] & 15;

        if (h < 1 || h > 4 || v < 1 || v > 4)
            return fail(walk, STK_E_CORRUPT, walk->at + 8 + 3 * i + 1, STKI_TEXT("%d x %d", h, v), "1 to 4",
                        "invalid sampling factors");
        out->max_h = h > out->max_h ? h : out->max_h;
        out->max_v = v > out->max_v ? v : out->max_v;
        smallest_h = h < smallest_h ? h : smallest_h;
        smallest_v = v < smallest_v ? v : smallest_v;
    }
    out->subsampled = smallest_h < out->max_h || smallest_v < out->max_v;
    return STK_OK;
}

/* Parses a frame header: bits, height, width, number of components and, for each component, its ID, sampling factors
 * and table. */
static stk_status read_frame(struct walk *walk, int marker, const uint8_t *data, int64_t length)
{
    stki_jpeg_header *out = walk->out;
    int64_t at = walk->at + 2;

    if (walk->framed)
        return fail(walk, STK_E_CORRUPT, at, "a second frame header", "only one", "inconsistent header");
    if (length < 6)
        return fail(walk, STK_E_CORRUPT, at, STKI_TEXT("%" PRId64 " bytes", length), "at least 6",
                    "the frame header is too short");
    out->special = frame_special(marker);
    if (!out->special && data[0] != 8)
        out->special = data[0] == 12 ? "12 bits per sample" : "other than 8 bits per sample";
    out->frame_offset = at;
    out->height = data[1] << 8 | data[2];
    out->width = data[3] << 8 | data[4];
    out->components = data[5];
    out->progressive = (marker & 3) == 2;
    out->arithmetic = marker > DHT + 4;
    if (out->width == 0)
        return fail(walk, STK_E_CORRUPT, at + 3, "width 0", "1 to 65535", "invalid image size");
    if (out->height == 0)
        return fail(walk, STK_E_UNSUPPORTED, at + 1, "height 0 (stored after the pixels, DNL)", "1 to 65535",
                    "unsupported image size");
    if (out->components == 0 || length != 6 + 3 * out->components)
        return fail(walk, STK_E_CORRUPT, at + 5, STKI_TEXT("%d in %" PRId64 " bytes", out->components, length),
                    "6 bytes, and 3 per component", "invalid number of components");
    if (out->components != 1 && out->components != 3 && out->components != 4)
        return fail(walk, STK_E_UNSUPPORTED, at + 5, STKI_TEXT("%d", out->components),
                    "1 (gray), 3 (color) or 4 (CMYK)", "unsupported number of components");
    walk->framed = true;
    return read_components(walk, data);
}

static void read_exif(struct walk *walk, const uint8_t *data, int64_t length)
{
    if (walk->has_exif || length < 6 || memcmp(data, "Exif\0", 6) != 0)
        return;
    walk->has_exif = true;
    walk->out->orientation = stki_exif_orientation(data + 6, length - 6);
}

/* Reads one segment; walk->at is just after its marker. */
static stk_status read_segment(struct walk *walk, int marker)
{
    const uint8_t *data = walk->bytes + walk->at + 2;
    int64_t length;
    stk_status status = STK_OK;

    if (!stki_inside(walk->at, 2, walk->count))
        return fail_end(walk, "the image ends in its header");
    length = walk->bytes[walk->at] << 8 | walk->bytes[walk->at + 1];
    if (length < 2)
        return fail(walk, STK_E_CORRUPT, walk->at, STKI_TEXT("%" PRId64, length), "at least 2",
                    "invalid segment length");
    if (!stki_inside(walk->at, length, walk->count))
        return fail_end(walk, "the image ends in its header");
    if (is_frame(marker))
        status = read_frame(walk, marker, data, length - 2);
    else if (marker == APP1)
        read_exif(walk, data, length - 2);
    else if (marker == DRI && length == 4)
        walk->out->restart = data[0] << 8 | data[1];
    walk->at += length;
    return status;
}

stk_status stki_jpeg_look(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err)
{
    struct walk walk = {.bytes = bytes, .count = count, .at = 2, .out = out, .err = err};
    stk_status status;
    int marker;

    *out = (stki_jpeg_header){.orientation = 1};
    if (count < 2)
        return fail_end(&walk, "the image ends in its header");
    if (walk.bytes[0] != 0xFF || walk.bytes[1] != SOI)
        return fail(&walk, STK_E_CORRUPT, 0, STKI_TEXT("%02x %02x", walk.bytes[0], walk.bytes[1]), "ff d8",
                    "not a JPEG image");
    for (;;) {
        status = next_marker(&walk, &marker);
        if (status != STK_OK)
            return status;
        if (marker == SOS)
            break;
        if (marker == EOI || marker == SOI)
            return fail(&walk, STK_E_CORRUPT, walk.at - 2, marker == EOI ? "its end" : "a second start", "a scan",
                        "the image has no pixels");
        if (marker == TEM || (marker >= RST0 && marker <= RST7))
            continue; /* markers without a length */
        status = read_segment(&walk, marker);
        if (status != STK_OK)
            return status;
    }
    if (!walk.framed)
        return fail(&walk, STK_E_CORRUPT, walk.at - 2, "a scan", "a frame header before it", "the image has no size");
    out->scan_offset = walk.at - 2;
    return STK_OK;
}

stk_status stki_jpeg_read_header(const void *bytes, int64_t count, stki_jpeg_header *out, stk_error *err)
{
    stk_status status = stki_jpeg_look(bytes, count, out, err);

    if (status != STK_OK || !out->special)
        return status;
    return stki_fail_at(
        err, STK_E_UNSUPPORTED,
        (stki_place){NULL, -1, out->frame_offset, out->special, "baseline or progressive, of 8 bits per sample"},
        "unsupported kind of JPEG image (encode it again)");
}

/* Each block takes at least one bit in some scan, except with arithmetic coding, which can use less. */
int64_t stki_jpeg_least_bytes(const stki_jpeg_header *header)
{
    int64_t down = (header->height + 8 * header->max_v - 1) / (8 * header->max_v);
    int64_t across = (header->width + 8 * header->max_h - 1) / (8 * header->max_h);

    return header->arithmetic ? 0 : down * across / 8;
}
