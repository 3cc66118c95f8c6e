/* zip_build.h: builds zip archives for tests, valid or damaged. A struct has the fields of a member's two records; a
 * test sets those that matter, including wrong values. */
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
} stkt_zip; /* initialized with {0} */

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
    size_t bytes;  /* stored bytes */
    uint64_t size; /* unpacked size; 0: equal to `bytes` */
    uint32_t crc;  /* 0: computed from the data, for stored members */
    unsigned method, flags, disk;
    size_t local_extra; /* length of padding with zeros in the local header */
    int wide;           /* 1, 2: sizes are all ones, with (1) or without (2) a zip64 field in the directory */
    uint64_t lie_compressed, lie_offset; /* if not 0, the directory has these values instead of the true ones */
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
    stkt_zip_number(zip, 4, 0xABABABAB); /* deliberately wrong: readers must use the directory */
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

/* Appends the directory and the end record. `before` is the number of bytes before the archive, which offsets do not
 * include. */
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

/* Raw deflate stream of `bytes`; the caller frees it. */
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
