/* io_files.h: files for tests: a directory for each program, and .npy files from a header text. */
#ifndef STKT_IO_FILES_H
#define STKT_IO_FILES_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char stkt_dir[64];

static inline int stkt_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

static inline void stkt_dir_remove(void)
{
    if (stkt_dir[0])
        (void)nftw(stkt_dir, stkt_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of `name` in this program's directory, which is created on first use and removed at exit. Returns one of 8
 * rotating buffers. */
static inline const char *stkt_path(const char *name)
{
    static char paths[8][256];
    static unsigned next;
    char *path = paths[next++ % 8];

    if (!stkt_dir[0]) {
        strcpy(stkt_dir, "/tmp/stoker-test-XXXXXX");
        if (!mkdtemp(stkt_dir)) {
            perror("mkdtemp");
            exit(1);
        }
        atexit(stkt_dir_remove);
    }
    snprintf(path, sizeof paths[0], "%s/%s", stkt_dir, name);
    return path;
}

static inline void stkt_write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    if (!file || (count > 0 && fwrite(bytes, 1, count, file) != count) || fclose(file)) {
        perror(path);
        exit(1);
    }
}

static inline void stkt_append_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "ab");

    if (!file || (count > 0 && fwrite(bytes, 1, count, file) != count) || fclose(file)) {
        perror(path);
        exit(1);
    }
}

/* Writes an .npy file of this version whose header is exactly `text`, without padding, followed by the data. */
static inline void stkt_write_npy_raw(const char *path, int major, const char *text, size_t text_bytes,
                                      const void *data, size_t bytes)
{
    unsigned char head[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)major, 0};

    for (int i = 0; i < 4; i++)
        head[8 + i] = (unsigned char)(text_bytes >> (8 * i));
    stkt_write_file(path, head, major == 1 ? 10 : 12);
    stkt_append_file(path, text, text_bytes);
    stkt_append_file(path, data, bytes);
}

/* Writes a version 1 file whose header is padded so that the data starts at a multiple of `align`. */
static inline void stkt_write_npy(const char *path, const char *descr, const char *order, const char *shape,
                                  size_t align, const void *data, size_t bytes)
{
    char text[8192];
    size_t length =
        (size_t)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, order, shape);

    while ((10 + length + 1) % align)
        text[length++] = ' ';
    text[length++] = '\n';
    stkt_write_npy_raw(path, 1, text, length, data, bytes);
}

static inline int64_t stkt_file_bytes(const char *path)
{
    struct stat st;

    return stat(path, &st) ? -1 : st.st_size;
}

#endif
