/* Fuzz target: arbitrary bytes as a JPEG image out of which restart intervals are cut. The result must not be longer
 * than the image, must contain the box, must be an image of the announced size, and must have the pixels of the whole
 * image. Both are decoded with plain upsampling, because smoothing uses pixels beyond the edges. */
#include "allocate.h"
#include "fuzz.h"
#include "jpeg_cut.h"
#include "jpeg_decode.h"
#include <string.h>

enum { MOST_PIXELS = 1 << 18 };

static uint8_t *pixels_of(const uint8_t *data, int64_t size, int64_t height, int64_t width)
{
    const stki_jpeg_how how = {.stored_height = height,
                               .stored_width = width,
                               .scale = 1,
                               .plain_upsampling = true,
                               .accept_warnings = true,
                               .height = height,
                               .width = width};
    uint8_t *pixels = malloc((size_t)(height * width * 3)), *rows4 = malloc((size_t)width * 4);
    int64_t warnings;
    stk_error err;

    if (stki_jpeg_decode(data, size, &how, pixels, width * 3, rows4, &warnings, &err) != STK_OK) {
        free(pixels);
        pixels = NULL;
    }
    free(rows4);
    return pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_jpeg_header header, made_header;
    stki_jpeg_box wanted, box;
    uint8_t *to, *whole, *part;
    int64_t made = 0;
    uint64_t key;
    stk_error err;

    if (stki_jpeg_read_header(data, (int64_t)size, &header, &err) != STK_OK ||
        header.height * header.width > MOST_PIXELS)
        return 0;
    key = (uint64_t)size * 977 + data[size / 2];
    box.top = (int64_t)(key % (uint64_t)header.height);
    box.left = (int64_t)(key / 7 % (uint64_t)header.width);
    box.height = 1 + (int64_t)(key / 5 % (uint64_t)(header.height - box.top));
    box.width = 1 + (int64_t)(key / 3 % (uint64_t)(header.width - box.left));
    wanted = box;
    to = malloc(size);
    if (!stki_jpeg_cut(data, (int64_t)size, &header, &box, to, &made)) {
        DEMAND(!memcmp(&box, &wanted, sizeof box));
        free(to);
        return 0;
    }
    DEMAND(made <= (int64_t)size);
    DEMAND(box.top <= wanted.top && box.top + box.height >= wanted.top + wanted.height);
    DEMAND(box.left <= wanted.left && box.left + box.width >= wanted.left + wanted.width);
    DEMAND(box.top + box.height <= header.height && box.left + box.width <= header.width);
    DEMAND(stki_jpeg_read_header(to, made, &made_header, &err) == STK_OK);
    DEMAND(made_header.height == box.height && made_header.width == box.width);
    DEMAND(made_header.restart == header.restart && made_header.components == header.components);
    whole = pixels_of(data, (int64_t)size, header.height, header.width);
    part = whole ? pixels_of(to, made, box.height, box.width) : NULL;
    DEMAND(!whole == !part);
    for (int64_t y = 0; whole && y < box.height; y++)
        DEMAND(!memcmp(part + y * box.width * 3, whole + ((box.top + y) * header.width + box.left) * 3,
                       (size_t)box.width * 3));
    free(whole);
    free(part);
    free(to);
    return 0;
}
