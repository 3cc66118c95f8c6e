/* jpeg_make.h: JPEG images for tests, of every kind that libjpeg can write, and their pixels decoded by plain calls to
 * libjpeg. */
#ifndef STKT_JPEG_MAKE_H
#define STKT_JPEG_MAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

typedef struct stkt_jpeg {
    int width, height;
    int channels;         /* 1, 3 or 4; 0: 3 */
    J_COLOR_SPACE stored; /* in the file; JCS_UNKNOWN: libjpeg's choice */
    int h, v;             /* sampling factors of the first component (0: 1); the others have 1 */
    bool progressive, dc_only, arithmetic;
    int restart;           /* restart interval in MCUs */
    int quality;           /* 0: 90 */
    const uint8_t *pixels; /* NULL: a generated pattern with edges and noise */
} stkt_jpeg;

typedef struct stkt_bytes {
    uint8_t *data;
    size_t size;
} stkt_bytes;

static inline uint8_t stkt_jpeg_pixel(int y, int x, int c)
{
    uint32_t noise = (uint32_t)(y * 7919 + x * 104729 + c * 1299709) * 2654435761u;

    return (uint8_t)((((x / 5 + y / 3 + c) & 1) ? 170 : 60) + (int)(noise >> 27) + (x * (c + 1) + y * (3 - c)) % 50);
}

static inline stkt_bytes stkt_jpeg_make(const stkt_jpeg *o)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned long size = 0;
    unsigned char *data = NULL;
    int channels = o->channels ? o->channels : 3;
    uint8_t *row = malloc((size_t)o->width * (size_t)channels);
    jpeg_scan_info scan = {.comps_in_scan = channels, .component_index = {0, 1, 2, 3}};

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = (JDIMENSION)o->width;
    c.image_height = (JDIMENSION)o->height;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&c);
    if (o->stored != JCS_UNKNOWN)
        jpeg_set_colorspace(&c, o->stored);
    jpeg_set_quality(&c, o->quality ? o->quality : 90, TRUE);
    for (int i = 0; i < channels; i++) {
        c.comp_info[i].h_samp_factor = i == 0 && o->h ? o->h : 1;
        c.comp_info[i].v_samp_factor = i == 0 && o->v ? o->v : 1;
    }
    if (o->progressive)
        jpeg_simple_progression(&c);
    if (o->dc_only) {
        c.scan_info = &scan;
        c.num_scans = 1;
    }
    c.arith_code = o->arithmetic;
    c.restart_interval = (unsigned)o->restart;
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < o->height; y++) {
        for (int x = 0; x < o->width; x++)
            for (int i = 0; i < channels; i++)
                row[x * channels + i] =
                    o->pixels ? o->pixels[(y * o->width + x) * channels + i] : stkt_jpeg_pixel(y, x, i);
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(row);
    return (stkt_bytes){data, size};
}

/* Decodes the whole image with libjpeg's defaults; `space` is JCS_RGB, JCS_GRAYSCALE or JCS_CMYK. */
static inline uint8_t *stkt_jpeg_plain(stkt_bytes file, J_COLOR_SPACE space, int scale, bool fast)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    uint8_t *all, *row;

    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file.data, file.size);
    jpeg_read_header(&d, TRUE);
    d.out_color_space = space;
    d.scale_num = 1;
    d.scale_denom = (unsigned)scale;
    d.dct_method = fast ? JDCT_IFAST : JDCT_ISLOW;
    d.do_fancy_upsampling = !fast;
    jpeg_start_decompress(&d);
    all = row = malloc((size_t)d.output_width * (size_t)d.output_height * (size_t)d.output_components);
    while (d.output_scanline < d.output_height) {
        jpeg_read_scanlines(&d, &row, 1);
        row += d.output_width * (unsigned)d.output_components;
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return all;
}

/* The offset of the first segment with this marker (of its FF byte), or -1. */
static inline long stkt_jpeg_find(stkt_bytes file, int marker)
{
    size_t at = 2;

    while (at + 4 <= file.size && file.data[at] == 0xFF && file.data[at + 1] != 0xDA) {
        if (file.data[at + 1] == marker)
            return (long)at;
        at += 2 + (size_t)(file.data[at + 2] << 8 | file.data[at + 3]);
    }
    return marker == 0xDA ? (long)at : -1;
}

/* A copy in which `remove` bytes at `at` are replaced by `count` others. */
static inline stkt_bytes stkt_bytes_edit(stkt_bytes from, size_t at, size_t remove, const void *bytes, size_t count)
{
    stkt_bytes to = {malloc(from.size - remove + count + 1), from.size - remove + count};

    memcpy(to.data, from.data, at);
    if (count)
        memcpy(to.data + at, bytes, count);
    memcpy(to.data + at + count, from.data + at + remove, from.size - at - remove);
    return to;
}

static inline stkt_bytes stkt_bytes_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    stkt_bytes bytes = {NULL, 0};

    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    bytes.size = (size_t)ftell(file);
    bytes.data = malloc(bytes.size + 1);
    rewind(file);
    if (fread(bytes.data, 1, bytes.size, file) != bytes.size)
        exit(1);
    fclose(file);
    return bytes;
}

#endif
