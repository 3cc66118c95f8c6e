/* png_make.h: PNG images for tests, written without a library: all pixel formats, interlaced or not, stored without
 * compression. */
#ifndef STKT_PNG_MAKE_H
#define STKT_PNG_MAKE_H

#include "jpeg_make.h"

typedef struct stkt_png {
    int width, height;
    int bits, type; /* 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGB and alpha */
    bool interlaced;
    int orientation; /* 0: no eXIf chunk */
    int cut_pixels;  /* number of bytes missing at the end of the pixels */
} stkt_png;

static inline uint32_t stkt_png_crc(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~UINT32_C(0);

    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? UINT32_C(0xEDB88320) : 0);
    }
    return ~crc;
}

static inline void stkt_png_big(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static inline void stkt_png_chunk(stkt_bytes *file, const char *type, const uint8_t *data, size_t count)
{
    uint8_t *at;

    file->data = realloc(file->data, file->size + count + 12);
    at = file->data + file->size;
    stkt_png_big(at, (uint32_t)count);
    memcpy(at + 4, type, 4);
    if (count)
        memcpy(at + 8, data, count);
    stkt_png_big(at + 8 + count, stkt_png_crc(at + 4, count + 4));
    file->size += count + 12;
}

static inline int stkt_png_channels(const stkt_png *o)
{
    return (o->type == 2 || o->type == 6 ? 3 : 1) + (o->type & 4 ? 1 : 0);
}

/* The stored value of a channel. */
static inline uint32_t stkt_png_value(const stkt_png *o, int y, int x, int c)
{
    return ((uint32_t)(y * 7919 + x * 104729 + c * 1299709) * 2654435761u) >> (32 - o->bits);
}

static inline uint8_t stkt_png_palette(uint32_t index, int c)
{
    return (uint8_t)(index * 37 + (uint32_t)c * 91 + 5);
}

/* The value that a decoder must return for it. */
static inline uint8_t stkt_png_expected(const stkt_png *o, int y, int x, int c)
{
    uint32_t value = stkt_png_value(o, y, x, o->type == 2 || o->type == 6 ? c : 0);

    if (o->type == 3)
        return stkt_png_palette(value, c);
    return (uint8_t)(o->bits == 16 ? value >> 8 : value * 255 / ((1u << o->bits) - 1));
}

/* Appends the rows of the pixels (y0 + i dy, x0 + k dx), each after a filter byte of 0. */
static inline size_t stkt_png_rows(const stkt_png *o, uint8_t *to, int y0, int x0, int dy, int dx)
{
    int channels = stkt_png_channels(o);
    size_t used = 0;

    for (int y = y0; y < o->height && x0 < o->width; y += dy) {
        unsigned bit = 0;
        to[used++] = 0;
        for (int x = x0; x < o->width; x += dx)
            for (int c = 0; c < channels; c++) {
                uint32_t value = stkt_png_value(o, y, x, c);
                if (o->bits == 16)
                    to[used++] = (uint8_t)(value >> 8);
                if (o->bits >= 8) {
                    to[used++] = (uint8_t)value;
                    continue;
                }
                if (bit == 0)
                    to[used++] = 0;
                to[used - 1] = (uint8_t)(to[used - 1] | value << (8 - (unsigned)o->bits - bit));
                bit = (bit + (unsigned)o->bits) % 8;
            }
    }
    return used;
}

static inline size_t stkt_png_pixels(const stkt_png *o, uint8_t *to)
{
    static const int passes[7][4] = {{0, 0, 8, 8}, {0, 4, 8, 8}, {4, 0, 8, 4}, {0, 2, 4, 4},
                                     {2, 0, 4, 2}, {0, 1, 2, 2}, {1, 0, 2, 1}};
    size_t used = 0;

    if (!o->interlaced)
        return stkt_png_rows(o, to, 0, 0, 1, 1);
    for (int p = 0; p < 7; p++)
        used += stkt_png_rows(o, to + used, passes[p][0], passes[p][1], passes[p][2], passes[p][3]);
    return used;
}

/* A zlib stream of stored blocks. */
static inline size_t stkt_png_store(const uint8_t *from, size_t count, uint8_t *to)
{
    uint32_t a = 1, b = 0;
    size_t used = 2;

    to[0] = 0x78;
    to[1] = 0x01;
    for (size_t at = 0; at < count || at == 0;) {
        size_t n = count - at < 65535 ? count - at : 65535;
        to[used++] = at + n == count;
        to[used++] = (uint8_t)n;
        to[used++] = (uint8_t)(n >> 8);
        to[used++] = (uint8_t)~n;
        to[used++] = (uint8_t)(~n >> 8);
        memcpy(to + used, from + at, n);
        used += n;
        at += n ? n : 1;
    }
    for (size_t i = 0; i < count; i++) {
        a = (a + from[i]) % 65521;
        b = (b + a) % 65521;
    }
    stkt_png_big(to + used, b << 16 | a);
    return used + 4;
}

static inline stkt_bytes stkt_png_make(const stkt_png *o)
{
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
    size_t most = ((size_t)o->width * 8 + 9) * ((size_t)o->height + 8) * 2 + 1000, count, stored;
    stkt_bytes file = {malloc(8), 8};
    uint8_t *pixels = malloc(most), *packed = malloc(most + most / 1000 + 100), head[13] = {0}, palette[768];

    memcpy(file.data, signature, 8);
    stkt_png_big(head, (uint32_t)o->width);
    stkt_png_big(head + 4, (uint32_t)o->height);
    head[8] = (uint8_t)o->bits;
    head[9] = (uint8_t)o->type;
    head[12] = o->interlaced;
    stkt_png_chunk(&file, "IHDR", head, 13);
    if (o->type == 3) {
        for (uint32_t i = 0; i < 256; i++)
            for (int c = 0; c < 3; c++)
                palette[3 * i + (uint32_t)c] = stkt_png_palette(i, c);
        stkt_png_chunk(&file, "PLTE", palette, (size_t)3 << o->bits);
    }
    if (o->orientation) {
        uint8_t exif[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, (uint8_t)o->orientation,
                          0,   0,   0, 0,  0, 0};
        stkt_png_chunk(&file, "eXIf", exif, sizeof exif);
    }
    count = stkt_png_pixels(o, pixels);
    stored = stkt_png_store(pixels, count, packed) - (size_t)o->cut_pixels;
    stkt_png_chunk(&file, "IDAT", packed, stored / 2); /* in two chunks, as large images have them */
    stkt_png_chunk(&file, "IDAT", packed + stored / 2, stored - stored / 2);
    stkt_png_chunk(&file, "IEND", NULL, 0);
    free(pixels);
    free(packed);
    return file;
}

#endif
