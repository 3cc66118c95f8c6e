/* beton_build.h: writes .beton files byte by byte, with allocations in any order and any fault, for the tests of the
 * reader. It follows the description of the format and does not use the library's writer. */
#ifndef STKT_BETON_BUILD_H
#define STKT_BETON_BUILD_H

#include "io_files.h"

struct stkt_beton {
    unsigned char *bytes;
    int64_t size, room; /* size of the rows and pages so far */
    int64_t fields, page, samples, row, rows_at, data, used;
    uint64_t (*entries)[3];
    int64_t entry_count, entry_room;
};

static inline void stkt_beton_reserve(struct stkt_beton *b, int64_t size)
{
    if (size > b->room) {
        b->bytes = realloc(b->bytes, (size_t)(2 * size));
        memset(b->bytes + b->room, 0, (size_t)(2 * size - b->room));
        b->room = 2 * size;
    }
    if (size > b->size)
        b->size = size;
}

/* Begins a file whose samples have rows of `row` bytes; descriptors follow by stkt_beton_field. */
static inline void stkt_beton_begin(struct stkt_beton *b, int fields, int64_t page, int64_t samples, int64_t row)
{
    uint16_t head[2] = {2, (uint16_t)fields};
    uint32_t page_bytes = (uint32_t)page;

    *b = (struct stkt_beton){.fields = fields, .page = page, .samples = samples, .row = row};
    b->rows_at = 24 + 1041 * fields;
    b->data = (b->rows_at + row * samples + page - 1) / page * page;
    stkt_beton_reserve(b, b->rows_at + row * samples);
    memcpy(b->bytes, head, 4);
    memcpy(b->bytes + 4, &page_bytes, 4);
    memcpy(b->bytes + 8, &samples, 8);
}

static inline void stkt_beton_field(struct stkt_beton *b, int index, int kind, const char *name, int ndim,
                                    const int64_t *shape, const char *text)
{
    unsigned char *at = b->bytes + 24 + 1041 * index;
    uint64_t length = text ? strlen(text) : 0;

    at[0] = (unsigned char)kind;
    memcpy(at + 1, name, strlen(name));
    if (ndim > 0)
        memcpy(at + 17, shape, sizeof *shape * (size_t)ndim);
    memcpy(at + 17 + 256, &length, 8);
    if (text)
        memcpy(at + 17 + 264, text, strlen(text));
}

static inline unsigned char *stkt_beton_row(struct stkt_beton *b, int64_t sample)
{
    return b->bytes + b->rows_at + sample * b->row;
}

static inline void stkt_beton_entry(struct stkt_beton *b, uint64_t sample, uint64_t pointer, uint64_t size)
{
    if (b->entry_count == b->entry_room) {
        b->entry_room = b->entry_room ? 2 * b->entry_room : 16;
        b->entries = realloc(b->entries, (size_t)b->entry_room * sizeof *b->entries);
    }
    b->entries[b->entry_count][0] = sample;
    b->entries[b->entry_count][1] = pointer;
    b->entries[b->entry_count++][2] = size;
}

/* Appends bytes to the current page, or to the next one if they do not fit, without an entry in the allocation table.
 * Returns the pointer. */
static inline uint64_t stkt_beton_put(struct stkt_beton *b, const void *bytes, int64_t size)
{
    int64_t at;

    if (b->used % b->page + size > b->page)
        b->used = (b->used / b->page + 1) * b->page;
    at = b->data + b->used;
    stkt_beton_reserve(b, at + (size > 0 ? size : 1));
    if (size > 0)
        memcpy(b->bytes + at, bytes, (size_t)size);
    b->used += size;
    return (uint64_t)at;
}

/* Appends bytes and their entry in the allocation table, for a region of a sample. */
static inline uint64_t stkt_beton_region(struct stkt_beton *b, int64_t sample, const void *bytes, int64_t size)
{
    uint64_t pointer = stkt_beton_put(b, bytes, size);

    stkt_beton_entry(b, (uint64_t)sample, pointer, (uint64_t)size);
    return pointer;
}

static inline void stkt_beton_write(struct stkt_beton *b, const char *path)
{
    int64_t table = b->rows_at + b->row * b->samples;

    if (b->used > 0) {
        table = b->data + (b->used + b->page - 1) / b->page * b->page;
        stkt_beton_reserve(b, table);
    }
    memcpy(b->bytes + 16, &table, 8);
    stkt_write_file(path, b->bytes, (size_t)table);
    stkt_append_file(path, b->entries, (size_t)b->entry_count * sizeof *b->entries);
}

static inline void stkt_beton_free(struct stkt_beton *b)
{
    free(b->bytes);
    free(b->entries);
    *b = (struct stkt_beton){0};
}

#endif
