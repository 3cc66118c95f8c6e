/* zip_build.h: zip archives for tests, byte by byte and wrong on purpose. Each member has the parts of its two records
 * in a struct; a test fills in what matters, and changes what it wants wrong. */
#ifndef STKT_ZIP_BUILD_H
#define STKT_ZIP_BUILD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct stkt_zip {
    unsigned char *bytes;
    size_t count, room;
    unsigned char directory[1 << 16];
    size_t directory_count;
    int members;
} stkt_zip; /* starts as {0} */

static inline void stkt_zip_bytes(stkt_zip *zip, const void *bytes, size_t count)
{
    if (zip->count + count > zip->room) {
        zip->room = 2 * (zip->count + count);
        zip->bytes = realloc(zip->bytes, zip->room);
        if (!zip->bytes)
            abort();
    }
    if (count)
        memcpy(zip->bytes + zip->count, bytes, count);
    zip->count += count;
}

static inline void stkt_put(unsigned char **at, int bytes, uint64_t number)
{
    for (int i = 0; i < bytes; i++)
        *(*at)++ = (unsigned char)(number >> (8 * i));
}

static inline void stkt_zip_number(stkt_zip *zip, int bytes, uint64_t number)
{
    unsigned char buffer[8], *at = buffer;

    stkt_put(&at, bytes, number);
    stkt_zip_bytes(zip, buffer, (size_t)bytes);
}

typedef struct stkt_zip_member {
    const char *name, *local_name; /* NULL: name */
    size_t name_bytes;             /* 0: strlen */
    const void *data;
    size_t bytes;  /* stored */
    uint64_t size; /* unpacked; 0: as `bytes` */
    uint32_t crc;  /* 0: of the data, for stored members */
    unsigned method, flags, disk;
    size_t local_extra;                  /* zeros of padding in the local header */
    int wide;                            /* 1: sizes in a zip64 field of the directory; 2: all ones without it */
    uint64_t lie_compressed, lie_offset; /* not 0: what the directory says instead */
} stkt_zip_member;

static inline void stkt_zip_entry(stkt_zip *zip, const stkt_zip_member *m, uint64_t header)
{
    unsigned char *at = zip->directory + zip->directory_count;
    size_t name = m->name_bytes ? m->name_bytes : strlen(m->name);
    uint64_t size = m->size ? m->size : m->bytes, compressed = m->lie_compressed ? m->lie_compressed : m->bytes;
    uint32_t crc = m->crc ? m->crc : (uint32_t)crc32(0, m->data, (uInt)m->bytes);

    header = m->lie_offset ? m->lie_offset : header;
    stkt_put(&at, 4, 0x02014B50);
    stkt_put(&at, 2, 20);
    stkt_put(&at, 2, 20);
    stkt_put(&at, 2, m->flags);
    stkt_put(&at, 2, m->method);
    stkt_put(&at, 4, 0);
    stkt_put(&at, 4, crc);
    stkt_put(&at, 4, m->wide ? 0xFFFFFFFF : compressed);
    stkt_put(&at, 4, m->wide ? 0xFFFFFFFF : size);
    stkt_put(&at, 2, name);
    stkt_put(&at, 2, m->wide == 1 ? 20 : 0);
    stkt_put(&at, 2, 0);
    stkt_put(&at, 2, m->disk);
    stkt_put(&at, 2, 0);
    stkt_put(&at, 4, 0);
    stkt_put(&at, 4, header);
    memcpy(at, m->name, name);
    at += name;
    if (m->wide == 1) {
        stkt_put(&at, 2, 1);
        stkt_put(&at, 2, 16);
        stkt_put(&at, 8, size);
        stkt_put(&at, 8, compressed);
    }
    zip->directory_count = (size_t)(at - zip->directory);
    zip->members++;
}

static inline void stkt_zip_add(stkt_zip *zip, const stkt_zip_member *m)
{
    const char *name = m->local_name ? m->local_name : m->name;
    size_t name_bytes = m->name_bytes && !m->local_name ? m->name_bytes : strlen(name);
    uint64_t header = zip->count;

    stkt_zip_number(zip, 4, 0x04034B50);
    stkt_zip_number(zip, 2, 20);
    stkt_zip_number(zip, 2, m->flags);
    stkt_zip_number(zip, 2, m->method);
    stkt_zip_number(zip, 4, 0);
    stkt_zip_number(zip, 4, 0xABABABAB); /* the directory counts */
    stkt_zip_number(zip, 4, 0xFFFFFFFF);
    stkt_zip_number(zip, 4, 0xFFFFFFFF);
    stkt_zip_number(zip, 2, name_bytes);
    stkt_zip_number(zip, 2, m->local_extra);
    stkt_zip_bytes(zip, name, name_bytes);
    for (size_t i = 0; i < m->local_extra; i++)
        stkt_zip_number(zip, 1, 0);
    stkt_zip_bytes(zip, m->data, m->bytes);
    stkt_zip_entry(zip, m, header);
}

/* Directory and end record; `before` bytes were put in front of the archive, which offsets do not count. */
static inline void stkt_zip_end(stkt_zip *zip, size_t before, const char *comment)
{
    size_t at = zip->count - before;

    stkt_zip_bytes(zip, zip->directory, zip->directory_count);
    stkt_zip_number(zip, 4, 0x06054B50);
    stkt_zip_number(zip, 4, 0);
    stkt_zip_number(zip, 2, (uint64_t)zip->members);
    stkt_zip_number(zip, 2, (uint64_t)zip->members);
    stkt_zip_number(zip, 4, zip->directory_count);
    stkt_zip_number(zip, 4, at);
    stkt_zip_number(zip, 2, strlen(comment));
    stkt_zip_bytes(zip, comment, strlen(comment));
}

/* Raw deflate of `bytes`; the caller frees. */
static inline void *stkt_deflate(const void *bytes, size_t count, size_t *packed_bytes)
{
    z_stream stream = {0};
    size_t room = count + count / 100 + 1024;
    unsigned char *packed = malloc(room);

    if (!packed || deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)count;
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    *packed_bytes = stream.total_out;
    (void)deflateEnd(&stream);
    return packed;
}

#endif
