/* tar_build.h: builds tar archives block by block. */
#ifndef STKT_TAR_BUILD_H
#define STKT_TAR_BUILD_H

#include "io_files.h"

struct stkt_tar {
    unsigned char *bytes;
    size_t size, room;
};

static inline unsigned char *stkt_tar_grow(struct stkt_tar *t, size_t more)
{
    if (t->size + more > t->room) {
        t->room = 2 * (t->size + more);
        t->bytes = realloc(t->bytes, t->room);
    }
    memset(t->bytes + t->size, 0, more);
    t->size += more;
    return t->bytes + t->size - more;
}

static inline void stkt_tar_sum(unsigned char *header)
{
    unsigned sum = 0;

    memset(header + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += header[i];
    snprintf((char *)header + 148, 8, "%06o", sum & 0777777);
}

/* Appends a header of this type and its data. */
static inline void stkt_tar_put(struct stkt_tar *t, char type, const char *name, const void *data, size_t size)
{
    unsigned char *header = stkt_tar_grow(t, 512), *body;

    memcpy(header, name, strlen(name) < 100 ? strlen(name) : 100);
    snprintf((char *)header + 124, 12, "%011o", (unsigned)size);
    header[156] = (unsigned char)type;
    memcpy(header + 257, "ustar\00000", 8);
    stkt_tar_sum(header);
    body = stkt_tar_grow(t, (size + 511) / 512 * 512);
    if (size > 0)
        memcpy(body, data, size);
}

static inline void stkt_tar_file(struct stkt_tar *t, const char *name, const char *text)
{
    stkt_tar_put(t, '0', name, text, strlen(text));
}

/* Appends the two final blocks of zeros, writes the file and frees the buffer. */
static inline void stkt_tar_write(struct stkt_tar *t, const char *path)
{
    stkt_tar_grow(t, 1024);
    stkt_write_file(path, t->bytes, t->size);
    free(t->bytes);
    *t = (struct stkt_tar){0};
}

#endif
