/* hdf5_index.c: see hdf5_index.h. A layout message of version 1 to 3 refers to a version 1 B-tree; one of version 4
 * states the kind of its index:
 *
 *     layout 3: u8 3, u8 2, u8 D, u64 address, u32 x D chunk dimensions, the last one is the element size
 *     node:     TREE, u8 1, u8 level, u16 entries, two u64; then per entry u32 stored bytes, u32 filter mask, u64 x D
 *               first element, u64 child
 *     layouts 1 and 2: u8 version, u8 D, u8 2, 5 bytes, u64 address, u32 x D chunk dimensions as above
 *     layout 4: u8 4, u8 2, u8 flags, u8 D, u8 e, D dimensions of e bytes, u8 kind, its parameters, u64 address
 *         1 single chunk: with flags & 2 first u64 stored bytes, u32 mask
 *         2 implicit: all chunks are consecutive
 *         3 fixed array: u8; the address leads to FAHD, u8, u8 client, u8 entry bytes, u8 page bits, u64 entries, u64
 *           block; the block is FADB, u8, u8, u64 header; more entries than a page holds: a bitmap of pages (highest
 *           bit first) and a checksum, then pages of entries with a checksum each; otherwise the entries
 *         an entry: u64 address; for filtered chunks also the stored bytes in (entry bytes - 12) bytes and u32 mask
 *         4 extensible array: 5 bytes; the address leads to EAHD, u8, u8 client, u8 entry bytes, u8 bits of an index,
 *           u8 entries of the index block, u8 of the smallest data block, u8 data blocks of the smallest super block,
 *           u8 page bits, u64 x 4, u64 largest index + 1, u64, u64 index block
 *           index block: EAIB, u8, u8, u64 header, entries, u64 data blocks, u64 super blocks
 *           super block: EASB, u8, u8, u64 header, offset, a bitmap of the pages of its data blocks, u64 data blocks;
 *           number s has 2^(s/2) of them, each 2^((s+1)/2) times as large as the smallest; the addresses of the data
 *           blocks of the first super blocks are in the index block itself
 *           data block: EADB, u8, u8, u64 header, offset, entries; or a checksum and pages, as in a fixed array
 *         5 version 2 B-tree: u32 node bytes, u8, u8; its records (hdf5_dense.c) are of type 10: u64 address, u64 x
 *           (D - 1) place in the grid; or, for filtered chunks, of type 11: u64 address, stored bytes in the rest of
 *           the record, u32 mask, place
 *     implicit indexes and fixed arrays number the chunks over the grid of the largest shape; so do extensible arrays,
 *     with the unlimited axis first
 *
 * Every loop is bounded by what a file of this size can contain, so that cyclic indexes are detected. */
#include "hdf5_index.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 32, BUFFER = 8192 };

struct walk {
    const stki_file *file;
    const stki_hdf5_grid *grid;
    stki_hdf5_table *table;
    int64_t base;
    int64_t largest_per[STK_MAX_DIMS]; /* number of chunks along each axis of the largest shape */
    int endless; /* the unlimited axis of an extensible array, which is numbered first; -1: none */
    int64_t entries_left;
    bool unsorted;
};

static stk_status corrupt(const struct walk *w, int64_t offset, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){w->file->path, -1, offset, NULL, NULL}, "chunk index: %s",
                        what);
}

static stk_status unsupported(const struct walk *w, int64_t offset, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){w->file->path, -1, offset, NULL, NULL}, "chunk index: %s",
                        what);
}

/* ---- the grid and the table ---- */

stk_status stki_hdf5_grid_measure(stki_hdf5_grid *grid, const char *path, stk_error *err)
{
    bool fits = true;

    grid->count = 1;
    grid->chunk_bytes = grid->item_bytes;
    for (int i = 0; i < grid->ndim; i++) {
        grid->per[i] = grid->shape[i] / grid->chunk[i] + (grid->shape[i] % grid->chunk[i] != 0);
        fits = fits && stki_mul(grid->count, grid->per[i], &grid->count) &&
               stki_mul(grid->chunk_bytes, grid->chunk[i], &grid->chunk_bytes);
    }
    if (!fits)
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){path, -1, -1, NULL, NULL},
                            "the number of chunks, or the size of one in bytes, does not fit in 63 bits");
    return STK_OK;
}

void stki_hdf5_table_fini(stki_hdf5_table *table)
{
    stki_free(table->chunks);
    *table = (stki_hdf5_table){0};
}

/* Returns the index of the first chunk whose number is at least `number`; table->count: there is none. */
static int64_t table_from(const stki_hdf5_table *table, int64_t number)
{
    int64_t low = 0, high = table->count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (table->chunks[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const stki_hdf5_chunk *stki_hdf5_table_find(const stki_hdf5_table *table, int64_t number)
{
    int64_t at = number; /* the index of the chunk, if no earlier chunk is missing */

    if (at < 0 || at >= table->count || table->chunks[at].number != number)
        at = table_from(table, number);
    return at < table->count && table->chunks[at].number == number ? &table->chunks[at] : NULL;
}

enum { FIRST_CHUNKS = 1024 };

/* Allocates room for more chunks, or for all chunks of a small grid at once. */
static stk_status make_room(struct walk *w, stk_error *err)
{
    stki_hdf5_table *table = w->table;
    int64_t more = table->capacity                 ? table->capacity * 2
                   : w->grid->count < FIRST_CHUNKS ? w->grid->count
                                                   : FIRST_CHUNKS;
    stki_hdf5_chunk *chunks = stki_resize(table->chunks, more * (int64_t)sizeof *chunks);

    if (!chunks)
        return stki_fail_memory(err, more * (int64_t)sizeof *chunks, "a table of chunks");
    table->chunks = chunks;
    table->capacity = more;
    return STK_OK;
}

static stk_status add(struct walk *w, int64_t number, uint64_t address, uint64_t bytes, uint32_t mask, stk_error *err)
{
    stki_hdf5_table *table = w->table;
    stki_hdf5_chunk *chunk;
    int64_t at;

    if (table->count >= w->file->size) /* a chunk or its entry takes at least one byte */
        return corrupt(w, -1, "more chunks than fit in the file", err);
    if (table->count == table->capacity) {
        stk_status status = make_room(w, err);
        if (status != STK_OK)
            return status;
    }
    chunk = &table->chunks[table->count++];
    chunk->number = number;
    chunk->address = address <= INT64_MAX && stki_add(w->base, (int64_t)address, &at) ? at : INT64_MAX;
    chunk->bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
    chunk->mask = mask;
    w->unsorted = w->unsorted || (table->count > 1 && chunk[-1].number >= number);
    return STK_OK;
}

/* Returns bytes of the file, in the mapping or in `buffer`. */
static stk_status look(const struct walk *w, int64_t at, int64_t bytes, unsigned char *buffer,
                       const unsigned char **out, stk_error *err)
{
    bool mapped = w->file->map && stki_inside(at, bytes, w->file->size);

    *out = mapped ? (const unsigned char *)w->file->map + at : buffer;
    return mapped ? STK_OK : stki_file_read(w->file, at, buffer, bytes, err);
}

/* Fails if there are more entries than fit in the file. */
static stk_status count_entries(struct walk *w, int64_t count, int64_t offset, stk_error *err)
{
    if (count > w->entries_left)
        return corrupt(w, offset, "more entries than fit in the file", err);
    w->entries_left -= count;
    return STK_OK;
}

/* Releases unused capacity. */
static void trim(stki_hdf5_table *table)
{
    stki_hdf5_chunk *chunks;

    if (table->capacity / 2 <= table->count || table->count == 0)
        return;
    chunks = stki_resize(table->chunks, table->count * (int64_t)sizeof *chunks);
    if (chunks) {
        table->chunks = chunks;
        table->capacity = table->count;
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = ((const stki_hdf5_chunk *)a)->number, y = ((const stki_hdf5_chunk *)b)->number;

    return (x > y) - (x < y);
}

static stk_status sort(struct walk *w, stk_error *err)
{
    stki_hdf5_table *table = w->table;

    if (!w->unsorted)
        return STK_OK;
    qsort(table->chunks, (size_t)table->count, sizeof *table->chunks, by_number);
    for (int64_t i = 1; i < table->count; i++)
        if (table->chunks[i - 1].number == table->chunks[i].number)
            return corrupt(w, -1, "a chunk is listed twice", err);
    return STK_OK;
}

/* ---- version 1 B-tree ---- */

struct node {
    int64_t at;
    int level, entries, next;
};

/* Returns the number of the chunk whose first element is `first`; -1: it is outside the current shape; -2: no chunk
 * begins there. */
static int64_t number_of(const struct walk *w, const unsigned char *first)
{
    const stki_hdf5_grid *grid = w->grid;
    int64_t number = 0;
    bool outside = false;

    for (int i = 0; i < grid->ndim; i++) {
        uint64_t element = stki_hdf5_number(first + 8 * i, 8);

        if (element % (uint64_t)grid->chunk[i])
            return -2;
        outside = outside || element >= (uint64_t)grid->shape[i];
        if (!outside)
            number = number * grid->per[i] + (int64_t)(element / (uint64_t)grid->chunk[i]);
    }
    return outside ? -1 : number;
}

static stk_status open_node(struct walk *w, uint64_t address, int level, struct node *out, stk_error *err)
{
    unsigned char head[24];
    int entry_bytes = 8 + 8 * (w->grid->ndim + 1) + 8;
    int64_t at;
    stk_status status = stki_hdf5_place(w->file, w->base, address, 24, "chunk index: a B-tree node", &at, err);

    if (status == STK_OK)
        status = stki_file_read(w->file, at, head, 24, err);
    if (status == STK_OK)
        status = count_entries(w, 1, at, err);
    if (status != STK_OK)
        return status;
    if (memcmp(head, "TREE", 4) || head[4] != 1)
        return corrupt(w, at, "not a B-tree node of chunks", err);
    *out = (struct node){at + 24, head[5], (int)stki_hdf5_number(head + 6, 2), 0};
    if (level >= 0 && out->level != level)
        return corrupt(w, at + 5, "the level of a B-tree node does not match its parent", err);
    if (out->level >= MAX_DEPTH)
        return corrupt(w, at + 5, "a B-tree is deeper than 32 levels", err);
    if (!stki_inside(out->at, (int64_t)out->entries * entry_bytes, w->file->size))
        return corrupt(w, at + 6, "a B-tree node extends beyond the end of the file", err);
    return STK_OK;
}

static stk_status add_leaf(struct walk *w, const unsigned char *entry, int64_t offset, stk_error *err)
{
    int64_t number = number_of(w, entry + 8);
    stk_status status = count_entries(w, 1, offset, err);

    if (status != STK_OK)
        return status;
    if (number == -2)
        return corrupt(w, offset + 8, "no chunk begins at this element", err);
    if (number == -1)
        return STK_OK; /* left over from a larger shape */
    return add(w, number, stki_hdf5_number(entry + 8 + 8 * (w->grid->ndim + 1), 8), stki_hdf5_number(entry, 4),
               (uint32_t)stki_hdf5_number(entry + 4, 4), err);
}

static stk_status walk_tree(struct walk *w, uint64_t root, stk_error *err)
{
    unsigned char buffer[BUFFER];
    const unsigned char *entries;
    struct node stack[MAX_DEPTH];
    int depth = 1, entry_bytes = 8 + 8 * (w->grid->ndim + 1) + 8;
    stk_status status = open_node(w, root, -1, &stack[0], err);

    while (status == STK_OK && depth > 0) {
        struct node *node = &stack[depth - 1];
        int many = node->level > 0 ? 1 : BUFFER / entry_bytes;
        int64_t at = node->at + (int64_t)node->next * entry_bytes;

        many = many < node->entries - node->next ? many : node->entries - node->next;
        if (many == 0) {
            depth--;
            continue;
        }
        node->next += many;
        status = look(w, at, (int64_t)many * entry_bytes, buffer, &entries, err);
        if (status != STK_OK)
            break;
        if (node->level > 0) { /* levels decrease strictly, so the stack is large enough */
            status = open_node(w, stki_hdf5_number(entries + entry_bytes - 8, 8), node->level - 1, &stack[depth], err);
            depth++;
            continue;
        }
        for (int i = 0; i < many && status == STK_OK; i++)
            status = add_leaf(w, entries + i * entry_bytes, at + (int64_t)i * entry_bytes, err);
    }
    return status;
}

/* ---- indexes numbered over the largest grid ---- */

static stk_status measure_largest(struct walk *w, int64_t *total, stk_error *err)
{
    const stki_hdf5_grid *grid = w->grid;

    *total = 1;
    for (int i = 0; i < grid->ndim; i++) {
        if (i == w->endless)
            continue;
        if (grid->largest[i] < grid->shape[i])
            return corrupt(w, -1, "the index cannot grow, but the data set can", err);
        w->largest_per[i] = grid->largest[i] / grid->chunk[i] + (grid->largest[i] % grid->chunk[i] != 0);
        if (!stki_mul(*total, w->largest_per[i], total))
            return corrupt(w, -1, "more chunks than fit in 63 bits", err);
    }
    return STK_OK;
}

/* Converts a chunk number in the grid of the largest shape to one in the current grid; -1: it is outside the current
 * grid. */
static int64_t current_number(const struct walk *w, int64_t index)
{
    int64_t at[STK_MAX_DIMS], number = 0;

    for (int i = w->grid->ndim - 1; i >= 0; i--) {
        if (i == w->endless)
            continue;
        at[i] = index % w->largest_per[i];
        index /= w->largest_per[i];
    }
    if (w->endless >= 0)
        at[w->endless] = index;
    for (int i = 0; i < w->grid->ndim; i++) {
        if (at[i] >= w->grid->per[i])
            return -1;
        number = number * w->grid->per[i] + at[i];
    }
    return number;
}

static stk_status walk_implicit(struct walk *w, uint64_t address, stk_error *err)
{
    int64_t total, bytes, at;
    stk_status status = measure_largest(w, &total, err);

    if (status != STK_OK)
        return status;
    if (w->grid->filtered || !stki_mul(total, w->grid->chunk_bytes, &bytes))
        return corrupt(w, -1, "an implicit index of filtered chunks, or of too many chunks", err);
    status = stki_hdf5_place(w->file, w->base, address, bytes, "chunk index: the range of all chunks", &at, err);
    for (int64_t i = 0; i < total && status == STK_OK; i++) {
        int64_t number = current_number(w, i);
        if (number >= 0)
            status =
                add(w, number, address + (uint64_t)(i * w->grid->chunk_bytes), (uint64_t)w->grid->chunk_bytes, 0, err);
    }
    return status;
}

struct array {
    int client, entry_bytes;
    int64_t entries, page_entries, at; /* offset of the first entry, or of the page bitmap */
};

static stk_status open_array(struct walk *w, uint64_t address, struct array *out, bool *empty, stk_error *err)
{
    unsigned char head[28], mark[4];
    int64_t at;
    uint64_t entries;
    stk_status status = stki_hdf5_place(w->file, w->base, address, 28, "chunk index: a fixed array", &at, err);

    if (status == STK_OK)
        status = stki_file_read(w->file, at, head, 28, err);
    if (status != STK_OK)
        return status;
    if (memcmp(head, "FAHD", 4) || head[4] != 0 || head[5] > 1 || head[7] > 40)
        return corrupt(w, at, "not a fixed array of chunks", err);
    entries = stki_hdf5_number(head + 8, 8);
    *out = (struct array){
        .client = head[5], .entry_bytes = head[6], .entries = (int64_t)entries, .page_entries = INT64_C(1) << head[7]};
    if (out->client != (w->grid->filtered ? 1 : 0) ||
        (out->client ? out->entry_bytes < 13 || out->entry_bytes > 20 : out->entry_bytes != 8))
        return corrupt(w, at + 5, "the entries of a fixed array have the wrong size", err);
    *empty = stki_hdf5_number(head + 16, 8) == STKI_HDF5_UNDEFINED;
    if (*empty)
        return STK_OK;
    if (entries > (uint64_t)(w->file->size / out->entry_bytes))
        return corrupt(w, at + 8, "a fixed array has more entries than fit in the file", err);
    status = stki_hdf5_place(w->file, w->base, stki_hdf5_number(head + 16, 8), 14,
                             "chunk index: the block of a fixed array", &at, err);
    if (status == STK_OK)
        status = stki_file_read(w->file, at, mark, 4, err);
    if (status == STK_OK && memcmp(mark, "FADB", 4))
        status = corrupt(w, at, "not a block of a fixed array", err);
    out->at = at + 14;
    return status;
}

static stk_status add_entries(struct walk *w, const struct array *a, int64_t first, int64_t count, int64_t at,
                              stk_error *err)
{
    unsigned char buffer[BUFFER];
    const unsigned char *entries;
    stk_status status = STK_OK;

    for (int64_t done = 0, many; done < count && status == STK_OK; done += many) {
        many = BUFFER / a->entry_bytes < count - done ? BUFFER / a->entry_bytes : count - done;
        status = look(w, at + done * a->entry_bytes, many * a->entry_bytes, buffer, &entries, err);
        for (int64_t i = 0; i < many && status == STK_OK; i++) {
            const unsigned char *entry = entries + i * a->entry_bytes;
            uint64_t address = stki_hdf5_number(entry, 8);
            int64_t number = address == STKI_HDF5_UNDEFINED ? -1 : current_number(w, first + done + i);

            if (number < 0)
                continue;
            if (a->client)
                status = add(w, number, address, stki_hdf5_number(entry + 8, a->entry_bytes - 12),
                             (uint32_t)stki_hdf5_number(entry + a->entry_bytes - 4, 4), err);
            else
                status = add(w, number, address, (uint64_t)w->grid->chunk_bytes, 0, err);
        }
    }
    return status;
}

static stk_status walk_pages(struct walk *w, const struct array *a, stk_error *err)
{
    int64_t pages = (a->entries + a->page_entries - 1) / a->page_entries;
    int64_t page_bytes = a->page_entries * a->entry_bytes + 4, at = a->at + (pages + 7) / 8 + 4;
    stk_status status = STK_OK;

    for (int64_t page = 0; page < pages && status == STK_OK; page++, at += page_bytes) {
        int64_t first = page * a->page_entries, many = a->entries - first;
        unsigned char used;

        many = many < a->page_entries ? many : a->page_entries;
        status = stki_file_read(w->file, a->at + page / 8, &used, 1, err);
        if (status == STK_OK && (used & (0x80 >> page % 8))) /* otherwise no entry of the page was written */
            status = add_entries(w, a, first, many, at, err);
    }
    return status;
}

static stk_status walk_array(struct walk *w, uint64_t address, stk_error *err)
{
    struct array a;
    int64_t total;
    bool empty = false;
    stk_status status = measure_largest(w, &total, err);

    if (status == STK_OK)
        status = open_array(w, address, &a, &empty, err);
    if (status != STK_OK || empty)
        return status;
    if (a.entries != total)
        return corrupt(w, a.at, "the length of a fixed array differs from the number of chunks", err);
    return a.entries > a.page_entries ? walk_pages(w, &a, err) : add_entries(w, &a, 0, a.entries, a.at, err);
}

/* ---- extensible arrays ---- */

struct extensible {
    struct array entries;
    int64_t in_index, least, set;  /* entries in the index block and in the smallest data block; largest index + 1 */
    int data_blocks, super_blocks; /* number of each kind of block in the index block */
    int first_super;               /* number of the first super block */
    int offset_bytes;
};

static stk_status open_extensible(struct walk *w, uint64_t address, struct extensible *e, uint64_t *block,
                                  stk_error *err)
{
    unsigned char head[72];
    int bits, pointers;
    int64_t at;
    stk_status status = stki_hdf5_place(w->file, w->base, address, 72, "chunk index: an extensible array", &at, err);

    if (status == STK_OK)
        status = stki_file_read(w->file, at, head, 72, err);
    if (status != STK_OK)
        return status;
    bits = head[7];
    pointers = head[10];
    *e = (struct extensible){
        .entries = {.client = head[5], .entry_bytes = head[6], .page_entries = INT64_C(1) << (head[11] & 31)},
        .in_index = head[8],
        .least = head[9],
        .set = (int64_t)stki_hdf5_number(head + 44, 8),
        .offset_bytes = (bits + 7) / 8};
    *block = stki_hdf5_number(head + 60, 8);
    if (memcmp(head, "EAHD", 4) != 0 || head[4] != 0 || head[5] > 1 || head[11] > 31 || bits < 1 || bits > 62 ||
        e->least < 1 || (e->least & (e->least - 1)) || pointers < 2 || (pointers & (pointers - 1)) ||
        stki_hdf5_log2((uint64_t)e->least) > bits || e->set < 0 || e->entries.client != (w->grid->filtered ? 1 : 0) ||
        (e->entries.client ? e->entries.entry_bytes < 13 || e->entries.entry_bytes > 20 : e->entries.entry_bytes != 8))
        return corrupt(w, at, "not an extensible array of chunks", err);
    e->data_blocks = 2 * (pointers - 1);
    e->first_super = 2 * stki_hdf5_log2((uint64_t)pointers);
    e->super_blocks = 1 + bits - stki_hdf5_log2((uint64_t)e->least) - e->first_super;
    e->super_blocks = e->super_blocks > 0 ? e->super_blocks : 0;
    return STK_OK;
}

/* Checks the signature and size of a block and sets *at to its offset in the file. */
static stk_status find_marked(struct walk *w, uint64_t address, const char *mark, int64_t bytes, int64_t *at,
                              stk_error *err)
{
    char found[4];
    stk_status status = stki_hdf5_place(w->file, w->base, address, bytes, "chunk index: a block of an array", at, err);

    if (status == STK_OK)
        status = stki_file_read(w->file, *at, found, 4, err);
    if (status == STK_OK && memcmp(found, mark, 4) != 0)
        status = corrupt(w, *at, "not a block of an extensible array", err);
    return status == STK_OK ? count_entries(w, 1, *at, err) : status;
}

/* Counts entries as well as blocks, because several addresses may refer to the same block. */
static stk_status add_new_entries(struct walk *w, const struct array *a, int64_t first, int64_t count, int64_t at,
                                  stk_error *err)
{
    const stk_status status = count_entries(w, count, at, err);

    return status == STK_OK ? add_entries(w, a, first, count, at, err) : status;
}

/* Reads entries [first, first + count) from a data block. If the block has pages, `pages` is the offset of a bitmap in
 * which the block's bits start at number `bit`. */
static stk_status walk_data_block(struct walk *w, const struct extensible *e, uint64_t address, int64_t first,
                                  int64_t count, int64_t pages, int64_t bit, stk_error *err)
{
    const int64_t page = e->entries.page_entries, head = 14 + e->offset_bytes;
    int64_t at;
    stk_status status;

    if (address == STKI_HDF5_UNDEFINED)
        return STK_OK;
    if (count > w->file->size / e->entries.entry_bytes)
        return corrupt(w, -1, "a data block has more entries than fit in the file", err);
    status = find_marked(w, address, "EADB", head, &at, err);
    if (status != STK_OK)
        return status;
    if (count <= page)
        return add_new_entries(w, &e->entries, first, count, at + head, err);
    if (pages < 0)
        return corrupt(w, at, "the index block refers to a data block with pages", err);
    at += head + 4;
    for (int64_t i = 0; i < count / page && status == STK_OK; i++, at += page * e->entries.entry_bytes + 4) {
        unsigned char used;

        status = stki_file_read(w->file, pages + (bit + i) / 8, &used, 1, err);
        if (status == STK_OK && (used & (0x80 >> (bit + i) % 8)))
            status = add_new_entries(w, &e->entries, first + i * page, page, at, err);
    }
    return status;
}

/* Visits the data blocks of super block `number`; `first` is the index of its first entry. */
static stk_status walk_super_block(struct walk *w, const struct extensible *e, uint64_t address, int number,
                                   int64_t first, stk_error *err)
{
    const int64_t blocks = INT64_C(1) << number / 2, count = e->least << (number + 1) / 2,
                  page = e->entries.page_entries;
    const int64_t bitmap = count > page ? (count / page + 7) / 8 : 0, head = 14 + e->offset_bytes;
    int64_t at;
    stk_status status;

    if (address == STKI_HDF5_UNDEFINED)
        return STK_OK;
    if (blocks > w->file->size / 8 || bitmap > w->file->size / blocks)
        return corrupt(w, -1, "a super block has more blocks than fit in the file", err);
    status = find_marked(w, address, "EASB", head + blocks * (bitmap + 8), &at, err);
    for (int64_t i = 0; i < blocks && status == STK_OK && first + i * count < e->set; i++) {
        unsigned char entry[8];

        status = stki_file_read(w->file, at + head + blocks * bitmap + i * 8, entry, 8, err);
        if (status == STK_OK)
            status = walk_data_block(w, e, stki_hdf5_number(entry, 8), first + i * count, count, at + head,
                                     i * (count / page), err);
    }
    return status;
}

/* Visits the blocks to which the index block refers, in the order of their entries. Super block numbers are below 63,
 * so nothing overflows. */
static stk_status walk_blocks(struct walk *w, const struct extensible *e, int64_t at, stk_error *err)
{
    int64_t first = e->in_index;
    stk_status status = STK_OK;

    for (int s = 0; s < e->first_super + e->super_blocks && status == STK_OK && first < e->set; s++) {
        const int64_t blocks = INT64_C(1) << s / 2, count = e->least << (s + 1) / 2;
        unsigned char entry[8];

        for (int64_t i = 0; s < e->first_super && i < blocks && status == STK_OK; i++, at += 8) {
            status = stki_file_read(w->file, at, entry, 8, err);
            if (status == STK_OK)
                status = walk_data_block(w, e, stki_hdf5_number(entry, 8), first + i * count, count, -1, 0, err);
        }
        if (s >= e->first_super && status == STK_OK) {
            status = stki_file_read(w->file, at, entry, 8, err);
            at += 8;
            if (status == STK_OK)
                status = walk_super_block(w, e, stki_hdf5_number(entry, 8), s, first, err);
        }
        if (!stki_add(first, blocks * count, &first))
            break;
    }
    return status;
}

static stk_status walk_extensible(struct walk *w, uint64_t address, stk_error *err)
{
    struct extensible e;
    uint64_t block = STKI_HDF5_UNDEFINED;
    int64_t total, at, entries;
    stk_status status = STK_OK;

    for (int i = 0; i < w->grid->ndim; i++) {
        if (w->grid->largest[i] >= 0)
            continue;
        if (w->endless >= 0)
            return corrupt(w, -1, "an extensible array for two unlimited axes", err);
        w->endless = i;
    }
    if (w->endless < 0)
        return corrupt(w, -1, "an extensible array for a data set that cannot grow", err);
    status = measure_largest(w, &total, err);
    for (int i = 0; i < w->grid->ndim && status == STK_OK; i++)
        if (i != w->endless && w->largest_per[i] < 1)
            return STK_OK; /* there are no chunks */
    if (status == STK_OK)
        status = open_extensible(w, address, &e, &block, err);
    if (status != STK_OK || block == STKI_HDF5_UNDEFINED)
        return status;
    entries = e.in_index * e.entries.entry_bytes;
    status = find_marked(w, block, "EAIB", 14 + entries + 8 * ((int64_t)e.data_blocks + e.super_blocks) + 4, &at, err);
    if (status == STK_OK)
        status = add_entries(w, &e.entries, 0, e.in_index, at + 14, err);
    return status == STK_OK ? walk_blocks(w, &e, at + 14 + entries, err) : status;
}

/* ---- version 2 B-trees ---- */

static stk_status add_record(void *context, const unsigned char *record, int bytes, stk_error *err)
{
    struct walk *w = context;
    const int axes = w->grid->ndim, sized = w->grid->filtered ? bytes - 12 - 8 * axes : 0;
    const unsigned char *place = record + bytes - 8 * axes;
    int64_t number = 0;

    if (w->grid->filtered ? sized < 1 || sized > 8 : bytes != 8 + 8 * axes)
        return corrupt(w, -1, "the records of a version 2 B-tree have the wrong size", err);
    for (int i = 0; i < axes; i++) {
        const uint64_t at = stki_hdf5_number(place + 8 * i, 8);

        if (at >= (uint64_t)w->grid->per[i])
            return STK_OK; /* left over from a larger shape */
        number = number * w->grid->per[i] + (int64_t)at;
    }
    return add(w, number, stki_hdf5_number(record, 8),
               sized ? stki_hdf5_number(record + 8, sized) : (uint64_t)w->grid->chunk_bytes,
               sized ? (uint32_t)stki_hdf5_number(place - 4, 4) : 0, err);
}

static stk_status walk_second_tree(struct walk *w, uint64_t address, stk_error *err)
{
    const stki_hdf5_super super = {.file = w->file, .base = w->base};

    return stki_hdf5_tree_visit(&super, address,
                                w->grid->filtered ? STKI_HDF5_FILTERED_CHUNKS : STKI_HDF5_UNFILTERED_CHUNKS, add_record,
                                w, err);
}

static stk_status walk_single(struct walk *w, const unsigned char *at, int flags, stk_error *err)
{
    uint64_t bytes = (uint64_t)w->grid->chunk_bytes, address;
    uint32_t mask = 0;

    if (flags & 2) {
        bytes = stki_hdf5_number(at, 8);
        mask = (uint32_t)stki_hdf5_number(at + 8, 4);
        at += 12;
    }
    if (w->grid->count > 1 || (!!(flags & 2)) != w->grid->filtered)
        return corrupt(w, -1, "a single-chunk index for several chunks, or with the wrong filter flag", err);
    address = stki_hdf5_number(at, 8);
    return address == STKI_HDF5_UNDEFINED || w->grid->count == 0 ? STK_OK : add(w, 0, address, bytes, mask, err);
}

/* ---- layout messages ---- */

static stk_status check_dimensions(const struct walk *w, const stki_hdf5_layout *layout, int dims, int at, int each,
                                   stk_error *err)
{
    const stki_hdf5_grid *grid = w->grid;

    if (each < 1 || each > 8 || dims != grid->ndim + 1 || at + dims * each > layout->length)
        return corrupt(w, layout->place, "the rank of the layout differs from that of the data set", err);
    for (int i = 0; i < dims; i++)
        if (stki_hdf5_number(layout->bytes + at + i * each, each) !=
            (uint64_t)(i < grid->ndim ? grid->chunk[i] : grid->item_bytes))
            return corrupt(w, layout->place + at + i * each,
                           "the chunk shape of the layout differs from that of the data set", err);
    return STK_OK;
}

/* Reads layouts 1 to 3, which differ in the positions of their members. */
static stk_status walk_third(struct walk *w, const stki_hdf5_layout *layout, stk_error *err)
{
    const bool third = layout->bytes[0] == 3;
    uint64_t address = stki_hdf5_number(layout->bytes + (third ? 3 : 8), 8);
    stk_status status = check_dimensions(w, layout, layout->bytes[third ? 2 : 1], third ? 11 : 16, 4, err);

    if (status != STK_OK || address == STKI_HDF5_UNDEFINED)
        return status;
    return walk_tree(w, address, err);
}

static stk_status walk_fourth(struct walk *w, const stki_hdf5_layout *layout, stk_error *err)
{
    int flags = layout->bytes[2], dims = layout->bytes[3], each = layout->bytes[4], at = 5 + dims * each, kind;
    const unsigned char *from;
    stk_status status = check_dimensions(w, layout, dims, 5, each, err);

    if (status != STK_OK)
        return status;
    from = layout->bytes + at + 1; /* at most 33 dimensions of 8 bytes */
    kind = layout->bytes[at];
    if (at + 1 + (kind == 1 && (flags & 2) ? 20 : kind == 3 ? 9 : kind == 4 ? 13 : kind == 5 ? 14 : 8) > layout->length)
        return corrupt(w, layout->place, "the layout message is truncated", err);
    switch (kind) {
    case 1:
        return walk_single(w, from, flags, err);
    case 2:
    case 3: {
        uint64_t address = stki_hdf5_number(from + (kind == 3), 8);
        if (address == STKI_HDF5_UNDEFINED)
            return STK_OK;
        return kind == 2 ? walk_implicit(w, address, err) : walk_array(w, address, err);
    }
    case 4: {
        uint64_t address = stki_hdf5_number(from + 5, 8);
        return address == STKI_HDF5_UNDEFINED ? STK_OK : walk_extensible(w, address, err);
    }
    case 5: {
        uint64_t address = stki_hdf5_number(from + 6, 8);
        return address == STKI_HDF5_UNDEFINED ? STK_OK : walk_second_tree(w, address, err);
    }
    default:
        return unsupported(w, layout->place, "unknown kind of index", err);
    }
}

/* Returns the last dimension in the layout, which is the size of an element. If it is missing or out of range, returns
 * 1, and check_dimensions fails later. */
static int64_t item_bytes_of(const stki_hdf5_layout *layout)
{
    const int version = layout->bytes[0],
              dims = layout->bytes[version < 3    ? 1
                                   : version == 3 ? 2
                                                  : 3],
              each = version == 4 ? layout->bytes[4] : 4,
              at = (version < 3    ? 16
                    : version == 3 ? 11
                                   : 5) +
                   (dims - 1) * each;
    const bool inside = dims > 0 && each >= 1 && each <= 8 && at + each <= layout->length;
    const uint64_t bytes = inside ? stki_hdf5_number(layout->bytes + at, each) : 0;

    return bytes > 0 && bytes <= INT32_MAX ? (int64_t)bytes : 1;
}

stk_status stki_hdf5_index_read(const stki_file *file, uint64_t header, const stki_hdf5_grid *grid,
                                stki_hdf5_table *table, stk_error *err)
{
    stki_hdf5_layout layout = {.length = 0};
    stki_hdf5_grid measured;
    struct walk w = {.file = file, .grid = grid, .table = table, .endless = -1, .entries_left = file->size / 8 + 1};
    stk_status status = stki_hdf5_layout_read(file, header, &layout, err);

    *table = (stki_hdf5_table){0};
    if (status != STK_OK)
        return status;
    w.base = layout.base;
    if (layout.length < 12 || layout.bytes[0] < 1 || layout.bytes[0] > 4 ||
        layout.bytes[layout.bytes[0] < 3 ? 2 : 1] != 2)
        return unsupported(&w, layout.place, "the layout is not chunked, or its version is unknown", err);
    if (grid->item_bytes == 0) {
        measured = *grid;
        measured.item_bytes = item_bytes_of(&layout);
        status = stki_hdf5_grid_measure(&measured, file->path, err);
        w.grid = &measured;
    }
    if (status == STK_OK)
        status = layout.bytes[0] == 4 ? walk_fourth(&w, &layout, err) : walk_third(&w, &layout, err);
    if (status == STK_OK)
        status = sort(&w, err);
    if (status != STK_OK)
        stki_hdf5_table_fini(table);
    else
        trim(table);
    return status;
}
