/* jpeg_cut.c: see jpeg_cut.h. With a restart interval of n, the encoder resets its state after every n MCUs (the unit
 * of compression, 8 x 8 pixels or, with subsampling, up to 32 x 32): it pads the last byte, writes a marker and
 * restarts its predictors. An interval can therefore be moved into another image with the same tables:
 *
 *     FF D8  tables, frame header, FF DD restart interval, FF DA scan header
 *     interval 0  FF D0  interval 1  FF D1  …  interval 8  FF D0  …  last interval  FF D9
 *
 * A rectangle of MCUs is kept. If a row of MCUs is a multiple of the interval, the rectangle consists of some intervals
 * of some rows; otherwise, it consists of all intervals between two rows that start with an interval. The size in the
 * frame header is reduced. At the right and bottom edges of the image, it is the exact remaining size instead of whole
 * MCUs, because upsampling treats the last pixels differently. Markers are renumbered. Segments that do not affect
 * pixels (EXIF, ICC profiles, comments) are dropped.
 *
 * Inside an interval, FF is always followed by 00, so markers are found by searching for FF. The search covers the
 * whole file, because a missing or additional marker means that data was lost, and positions are only known if all
 * markers are present. */
#include "jpeg_cut.h"
#include <string.h>

enum {
    SOF0 = 0xC0, /* baseline */
    SOF1 = 0xC1, /* extended; sequential with Huffman codes, like baseline */
    DHT = 0xC4,
    RST0 = 0xD0,
    EOI = 0xD9,
    SOS = 0xDA,
    DQT = 0xDB,
    DRI = 0xDD,
    APP0 = 0xE0,  /* JFIF */
    APP14 = 0xEE, /* Adobe; defines the meaning of the components, like JFIF */
    APP15 = 0xEF,
    COM = 0xFE
};

struct cut {
    const uint8_t *from, *from_end;
    uint8_t *to;
    uint8_t *size;                                /* address of the image size in the copied frame header */
    int64_t mcu_height, mcu_width, rows, columns; /* size of an MCU in pixels; size of the image in MCUs */
    int64_t interval, count;                      /* MCUs per interval; intervals of the image */
    /* The image is divided into lines of a_line intervals each. A line is a row of MCUs if that is a multiple of the
     * interval, and otherwise one interval. Intervals [first, end) of lines [first_line, end_line) are kept. */
    int64_t a_line, first_line, end_line, first, end;
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* ---- which intervals ---- */

static void measure(struct cut *cut, const stki_jpeg_header *header)
{
    const bool alone =
        header->components == 1; /* in that case an MCU is one block, regardless of the sampling factors */

    cut->mcu_height = alone ? 8 : 8 * header->max_v;
    cut->mcu_width = alone ? 8 : 8 * header->max_h;
    cut->rows = divide_up(header->height, cut->mcu_height);
    cut->columns = divide_up(header->width, cut->mcu_width);
    cut->interval = header->restart;
    cut->count = divide_up(cut->rows * cut->columns, cut->interval);
}

static void extend(int64_t *start, int64_t *length, int64_t step, int64_t size)
{
    const int64_t first = *start / step * step, end = divide_up(*start + *length, step) * step;

    *start = first;
    *length = (end < size ? end : size) - first;
}

/* Extends the box to whole intervals. Returns false if this would not be cheaper than decoding the whole image. */
static bool choose(struct cut *cut, const stki_jpeg_header *header, stki_jpeg_box *box)
{
    const bool divided = cut->columns % cut->interval == 0;
    const int64_t step =
        cut->interval / common_divisor(cut->interval, cut->columns); /* distance between rows that start an interval */
    const int64_t row = step * cut->mcu_height, column = cut->interval * cut->mcu_width;

    extend(&box->top, &box->height, row, header->height);
    if (divided) {
        extend(&box->left, &box->width, column, header->width);
        cut->a_line = cut->columns / cut->interval;
        cut->first_line = box->top / cut->mcu_height;
        cut->end_line = divide_up(box->top + box->height, cut->mcu_height);
        cut->first = box->left / column;
        cut->end = divide_up(box->left + box->width, column);
    } else {
        box->left = 0;
        box->width = header->width;
        cut->a_line = cut->end = 1;
        cut->first_line = box->top / cut->mcu_height * cut->columns / cut->interval;
        cut->end_line = divide_up(divide_up(box->top + box->height, cut->mcu_height) * cut->columns, cut->interval);
    }
    return box->top > 0 || box->width < header->width;
}

/* ---- the header ---- */

static void put(struct cut *cut, const uint8_t *bytes, int64_t count)
{
    memcpy(cut->to, bytes, (size_t)count);
    cut->to += count;
}

static void put_size(const struct cut *cut, const stki_jpeg_box *box)
{
    cut->size[0] = (uint8_t)(box->height >> 8);
    cut->size[1] = (uint8_t)box->height;
    cut->size[2] = (uint8_t)(box->width >> 8);
    cut->size[3] = (uint8_t)box->width;
}

/* Handles a segment of `length` bytes after its marker. Returns false if the segment is not known to be harmless. */
static bool take_segment(struct cut *cut, int marker, int64_t length)
{
    static const uint8_t ff = 0xFF;
    const bool is_frame = marker == SOF0 || marker == SOF1;

    if ((marker > APP0 && marker < APP14) || marker == APP15 || marker == COM)
        return true;
    if (!is_frame && marker != DHT && marker != DQT && marker != DRI && marker != SOS && marker != APP0 &&
        marker != APP14)
        return false;
    put(cut, &ff, 1);
    *cut->to++ = (uint8_t)marker;
    if (is_frame && length >= 7)
        cut->size = cut->to + 3;
    put(cut, cut->from, length);
    return true;
}

/* Copies everything up to the first interval. Fails on stray bytes between segments, because the decoder must warn
 * about them. */
static bool copy_header(struct cut *cut, int components)
{
    int marker = 0;

    put(cut, cut->from, 2);
    cut->from += 2;
    while (marker != SOS) {
        int64_t length;

        if (cut->from == cut->from_end || *cut->from != 0xFF)
            return false;
        while (cut->from < cut->from_end && *cut->from == 0xFF)
            cut->from++;
        if (cut->from_end - cut->from < 4)
            return false;
        marker = *cut->from++;
        length = cut->from[0] << 8 | cut->from[1];
        if (length < 3 || length > cut->from_end - cut->from || (marker == SOS && cut->from[2] != components) ||
            !take_segment(cut, marker, length))
            return false;
        cut->from += length;
    }
    return cut->size != NULL;
}

/* ---- intervals ---- */

/* Finds the FF of the next marker, skipping FF 00 and fill bytes; NULL: none. */
static const uint8_t *next_marker(const uint8_t *at, const uint8_t *end)
{
    while (at < end && (at = memchr(at, 0xFF, (size_t)(end - at))) && end - at > 1) {
        if (at[1] != 0 && at[1] != 0xFF)
            return at;
        at += at[1] == 0 ? 2 : 1;
    }
    return NULL;
}

/* Copies the intervals to keep. Returns false if the marker after an interval is missing or wrong. */
static bool copy_intervals(struct cut *cut)
{
    int64_t line = 0, place = 0;
    int kept = 0;

    for (int64_t i = 0; i < cut->count; i++) {
        const uint8_t *marker = next_marker(cut->from, cut->from_end);
        const int expected = i + 1 < cut->count ? RST0 + (int)(i & 7) : EOI;

        if (!marker || marker[1] != expected)
            return false;
        if (line >= cut->first_line && line < cut->end_line && place >= cut->first && place < cut->end) {
            put(cut, cut->from, marker + 1 - cut->from);
            *cut->to++ = (uint8_t)(RST0 + (kept++ & 7));
        }
        cut->from = marker + 2;
        if (++place == cut->a_line) {
            place = 0;
            line++;
        }
    }
    cut->to[-1] = EOI;
    return true;
}

bool stki_jpeg_cut(const void *bytes, int64_t count, const stki_jpeg_header *header, stki_jpeg_box *box, uint8_t *to,
                   int64_t *made)
{
    struct cut cut = {.from = bytes, .from_end = (const uint8_t *)bytes + count, .to = to};
    stki_jpeg_box whole = *box;

    if (header->restart == 0)
        return false;
    measure(&cut, header);
    if (!choose(&cut, header, &whole) || !copy_header(&cut, header->components))
        return false;
    put_size(&cut, &whole);
    if (!copy_intervals(&cut))
        return false;
    *box = whole;
    *made = cut.to - to;
    return true;
}
