/* hdf5_dense.c: reads the links or attributes of an object that has too many of them for its header. They are objects
 * in a fractal heap. A version 2 B-tree, whose keys are hashes of their names, locates them. The same kind of tree is
 * also one of the chunk indexes. See hdf5_parse.h.
 *
 *     tree (III.A.2): BTHD, u8 0, u8 type, u32 node bytes, u16 record bytes, u16 depth, u8, u8, u64 root, u16 its
 *         records, u64 all records, u32 checksum
 *     node: BTIN or BTLF, u8 0, u8 type, records; BTIN: then u64 child, its records, and above the lowest level all
 *         records below it, in as many bytes as the largest number needs; u32 checksum
 *     record of type 5, links: u32 hash, 7 bytes heap id; of type 8, attributes: 8 bytes heap id, u8 flags, u32, u32
 *         hash; of types 10 and 11, chunks: hdf5_index.c
 *     heap (III.G): FRHP, u8 0, u16 id bytes, u16 filter bytes, u8 flags, u32 largest managed object, …, 110: u16
 *         width, u64 first block bytes, u64 largest direct block, u16 bits of an offset, u16, u64 root, u16 rows of
 *         the root, u32 checksum
 *     indirect block: FHIB, u8 0, u64 heap, offset, u64 blocks in rows of `width`, u32 checksum; rows 0 and 1 have
 *         blocks of the first size, and the size doubles with each following row; blocks larger than the largest
 *         direct block are again indirect blocks
 *     direct block: FHDB, u8 0, u64 heap, offset, u32 checksum if flags & 2 (of the block with zeros here), objects;
 *         offsets of objects count from the first byte of the block
 *     heap id: u8 version and type (0: managed), offset, length */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "hdf5_parse.h"
#include <string.h>

enum {
    MAX_DEPTH = 16,
    TREE_BYTES = 38,
    HEAP_BYTES = 146,
    PREFIX = 6, /* bytes of a tree node before its records, which are followed by a checksum */
    MAX_NODE = 1 << 20,
    MAX_ROW = 48,
    MAX_WIDTH = 256,
    SUMMED_BLOCKS = 2, /* heap flag */
    SHARED = 2         /* message flag */
};

/* Signatures of the blocks of a heap. */
static const char direct[] = "FHDB", indirect[] = "FHIB";

struct block {
    uint64_t address;
    int64_t bytes;
    unsigned char *data;
};

struct dense {
    const stki_hdf5_super *super;
    stki_hdf5_object_visit *visit;
    stki_hdf5_record_visit *visit_record; /* NULL: the records refer to objects in the heap */
    void *context;
    const uint32_t *hash; /* hash of the requested name; NULL: all */

    /* the tree */
    int type, record_bytes, depth; /* record_bytes 0: unknown until the tree is opened */
    int64_t node_bytes;
    int count_bytes;            /* size of the field for the number of records in a node */
    int below_bytes[MAX_DEPTH]; /* size of the field for the number of records below a node, by level */
    int64_t most[MAX_DEPTH];    /* maximum number of records in a node, by level */
    int64_t left;               /* number of records that may still be read, limited by the size of the file */
    int64_t bytes_left; /* number of object bytes that may still be read, limited by the size of the file, because
                           several records may refer to one object */

    /* the heap */
    uint64_t heap;
    int flags, offset_bytes, length_bytes, width, rows;
    uint64_t first, largest, root;
    struct block *blocks; /* direct and indirect blocks read so far, sorted by address */
    int64_t block_count, block_room, loaded;
};

static stk_status corrupt(const struct dense *d, uint64_t address, const char *what, stk_error *err)
{
    return stki_hdf5_corrupt(d->super, address, what, err);
}

/* Returns the number of bytes needed to store values up to `most`. */
static int bytes_for(uint64_t most)
{
    int bytes = 1;

    for (; most > 0xFF; most >>= 8)
        bytes++;
    return bytes;
}

static bool is_power(uint64_t x)
{
    return x > 0 && (x & (x - 1)) == 0;
}

/* ---- the heap ---- */

static stk_status open_heap(struct dense *d, stk_error *err)
{
    unsigned char head[HEAP_BYTES];
    uint64_t managed;
    int bits, limit;
    stk_status status = stki_hdf5_copy(d->super, d->heap, head, sizeof head, "a fractal heap", err);

    if (status != STK_OK)
        return status;
    d->flags = head[9];
    managed = stki_hdf5_number(head + 10, 4);
    d->width = (int)stki_hdf5_number(head + 110, 2);
    d->first = stki_hdf5_number(head + 112, 8);
    d->largest = stki_hdf5_number(head + 120, 8);
    bits = (int)stki_hdf5_number(head + 128, 2);
    d->root = stki_hdf5_number(head + 132, 8);
    d->rows = (int)stki_hdf5_number(head + 140, 2);
    if (memcmp(head, "FRHP", 4) != 0 || head[4] != 0 || !is_power((uint64_t)d->width) || !is_power(d->first) ||
        !is_power(d->largest) || d->first > d->largest || d->largest > 1 << 24 || d->width > MAX_WIDTH || bits < 8 ||
        bits > 48 || d->rows > MAX_ROW || managed == 0)
        return corrupt(d, d->heap, "not a fractal heap", err);
    if (stki_hdf5_number(head + 7, 2) != 0)
        return stki_hdf5_unsupported(d->super, d->heap, "a fractal heap with filters", err);
    if (!stki_hdf5_sum_fits(d->super, head, sizeof head))
        return corrupt(d, d->heap, "the checksum of a fractal heap is wrong", err);
    d->offset_bytes = (bits + 7) / 8;
    limit = (stki_hdf5_log2(d->largest) + 7) / 8;
    d->length_bytes = bytes_for(managed) < limit ? bytes_for(managed) : limit;
    return (int)stki_hdf5_number(head + 5, 2) >= 1 + d->offset_bytes + d->length_bytes
               ? STK_OK
               : corrupt(d, d->heap, "the object IDs of a fractal heap are too short", err);
}

static bool block_sum_fits(const struct dense *d, struct block *block, const char *mark)
{
    unsigned char *at = block->data + 5 + 8 + d->offset_bytes;
    uint32_t sum;

    if (!strcmp(mark, indirect))
        return stki_hdf5_sum_fits(d->super, block->data, block->bytes);
    if (!(d->flags & SUMMED_BLOCKS) || d->super->unsummed)
        return true;
    sum = (uint32_t)stki_hdf5_number(at, 4);
    memset(at, 0, 4);
    return stki_hdf5_sum(block->data, block->bytes) == sum;
}

static stk_status load_block(struct dense *d, int64_t at, uint64_t address, int64_t bytes, const char *mark,
                             stk_error *err)
{
    struct block block = {address, bytes, NULL};
    stk_status status;

    if ((d->loaded += bytes) > d->super->file->size)
        return corrupt(d, address, "a fractal heap has more blocks than fit in the file", err);
    status = stki_grow(&d->blocks, &d->block_room, d->block_count + 1, sizeof *d->blocks, "a fractal heap", err);
    if (status != STK_OK)
        return status;
    block.data = stki_zalloc(bytes);
    if (!block.data)
        return stki_fail_memory(err, bytes, "a fractal heap");
    memmove(d->blocks + at + 1, d->blocks + at, (size_t)(d->block_count - at) * sizeof *d->blocks);
    d->blocks[at] = block;
    d->block_count++;
    status = stki_hdf5_copy(d->super, address, block.data, bytes, "a block of a fractal heap", err);
    if (status != STK_OK)
        return status;
    if (bytes < 5 + 8 + d->offset_bytes + 4 || memcmp(block.data, mark, 4) != 0 || block.data[4] != 0 ||
        stki_hdf5_number(block.data + 5, 8) != d->heap)
        return corrupt(d, address, "not a block of this fractal heap", err);
    return block_sum_fits(d, &block, mark)
               ? STK_OK
               : corrupt(d, address, "the checksum of a block of a fractal heap is wrong", err);
}

/* Finds the block with this signature and size. Each block is read and checked only once. */
static stk_status find_block(struct dense *d, uint64_t address, int64_t bytes, const char *mark,
                             const unsigned char **out, stk_error *err)
{
    int64_t low = 0, high = d->block_count;
    stk_status status = STK_OK;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (d->blocks[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == d->block_count || d->blocks[low].address != address)
        status = load_block(d, low, address, bytes, mark, err);
    if (status != STK_OK)
        return status;
    if (d->blocks[low].bytes != bytes || memcmp(d->blocks[low].data, mark, 4) != 0)
        return corrupt(d, address, "two blocks of a fractal heap overlap", err);
    *out = d->blocks[low].data;
    return STK_OK;
}

/* Returns bytes [at, at + length) of a direct block. */
static stk_status from_block(struct dense *d, uint64_t address, uint64_t bytes, uint64_t at, uint64_t length,
                             stki_hdf5_cursor *out, stk_error *err)
{
    const unsigned char *data;
    stk_status status;

    if (at >= bytes || length > bytes - at)
        return corrupt(d, address, "an object of a fractal heap crosses the end of its block", err);
    status = find_block(d, address, (int64_t)bytes, direct, &data, err);
    if (status == STK_OK)
        *out = (stki_hdf5_cursor){data + at, (int64_t)length, false};
    return status;
}

static stk_status entry_of(struct dense *d, uint64_t block, int rows, int64_t index, uint64_t *out, stk_error *err)
{
    const int head = 5 + 8 + d->offset_bytes;
    const int64_t bytes = head + (int64_t)rows * d->width * 8 + 4;
    const unsigned char *data;
    stk_status status = bytes <= MAX_NODE ? find_block(d, block, bytes, indirect, &data, err)
                                          : corrupt(d, block, "a block of a fractal heap is too large", err);

    if (status == STK_OK)
        *out = stki_hdf5_number(data + head + index * 8, 8);
    return status;
}

static stk_status find_object(struct dense *d, const unsigned char *id, stki_hdf5_cursor *out, stk_error *err)
{
    uint64_t offset = stki_hdf5_number(id + 1, d->offset_bytes), block = d->root, base = 0;
    const uint64_t length = stki_hdf5_number(id + 1 + d->offset_bytes, d->length_bytes);
    int rows = d->rows;

    if (id[0] != 0)
        return stki_hdf5_unsupported(d->super, d->heap, "a huge or a tiny object of a fractal heap", err);
    if (rows == 0)
        return from_block(d, block, d->first, offset, length, out, err);
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        uint64_t row_at = 0, bytes = d->first;
        int row = 0;
        stk_status status;

        while (row < rows && offset - base - row_at >= bytes * (uint64_t)d->width) {
            row_at += bytes * (uint64_t)d->width;
            bytes = d->first << row++;
        }
        if (row == rows)
            break;
        status = entry_of(d, block, rows, row * d->width + (int64_t)((offset - base - row_at) / bytes), &block, err);
        if (status != STK_OK)
            return status;
        base += row_at + (offset - base - row_at) / bytes * bytes;
        if (bytes <= d->largest)
            return from_block(d, block, bytes, offset - base, length, out, err);
        rows = stki_hdf5_log2(bytes) - stki_hdf5_log2(d->first * (uint64_t)d->width) + 1;
        if (rows < 1)
            break;
    }
    return corrupt(d, block, "an offset outside a fractal heap", err);
}

/* ---- the tree ---- */

static stk_status open_tree(struct dense *d, uint64_t address, uint64_t *root, int *records, stk_error *err)
{
    unsigned char head[TREE_BYTES];
    int64_t below;
    stk_status status = stki_hdf5_copy(d->super, address, head, sizeof head, "a version 2 B-tree", err);

    if (status != STK_OK)
        return status;
    d->node_bytes = (int64_t)stki_hdf5_number(head + 6, 4);
    d->depth = (int)stki_hdf5_number(head + 12, 2);
    *root = stki_hdf5_number(head + 16, 8);
    *records = (int)stki_hdf5_number(head + 24, 2);
    if (d->record_bytes == 0)
        d->record_bytes = (int)stki_hdf5_number(head + 10, 2);
    if (memcmp(head, "BTHD", 4) != 0 || head[4] != 0 || head[5] != d->type || d->record_bytes < 1 ||
        stki_hdf5_number(head + 10, 2) != (uint64_t)d->record_bytes || d->depth >= MAX_DEPTH || d->node_bytes < 64 ||
        d->node_bytes > MAX_NODE || !stki_hdf5_sum_fits(d->super, head, sizeof head))
        return corrupt(d, address, "not a version 2 B-tree, or its checksum is wrong", err);
    d->most[0] = below = (d->node_bytes - PREFIX - 4) / d->record_bytes;
    d->count_bytes = bytes_for((uint64_t)below);
    for (int level = 1; level <= d->depth; level++) {
        const int pointer = 8 + d->count_bytes + d->below_bytes[level - 1];

        d->most[level] = (d->node_bytes - PREFIX - 4 - pointer) / (d->record_bytes + pointer);
        if (d->most[level] < 1 || !stki_mul(below, d->most[level] + 1, &below) ||
            !stki_add(below, d->most[level], &below))
            return corrupt(d, address, "a version 2 B-tree is too deep", err);
        d->below_bytes[level] = bytes_for((uint64_t)below);
    }
    return STK_OK;
}

struct node {
    unsigned char *data;
    int level, records, next; /* next: index of the next child and record to visit */
};

static stk_status open_node(struct dense *d, uint64_t address, int level, uint64_t records, struct node *out,
                            stk_error *err)
{
    const int pointer = level > 0 ? 8 + d->count_bytes + d->below_bytes[level - 1] : 0;
    int64_t bytes;
    stk_status status;

    *out = (struct node){0};
    if (records == 0 || records > (uint64_t)d->most[level] || d->left-- <= 0)
        return corrupt(d, address, "a node of a version 2 B-tree has the wrong number of records", err);
    bytes = PREFIX + (int64_t)records * d->record_bytes + (level > 0 ? ((int64_t)records + 1) * pointer : 0) + 4;
    *out = (struct node){stki_zalloc(bytes), level, (int)records, 0};
    if (!out->data)
        return stki_fail_memory(err, bytes, "a node of a tree");
    status = stki_hdf5_copy(d->super, address, out->data, bytes, "a node of a version 2 B-tree", err);
    if (status == STK_OK && (memcmp(out->data, level > 0 ? "BTIN" : "BTLF", 4) != 0 || out->data[4] != 0 ||
                             out->data[5] != d->type || !stki_hdf5_sum_fits(d->super, out->data, bytes)))
        status = corrupt(d, address, "not a node of a version 2 B-tree, or its checksum is wrong", err);
    return status;
}

static const unsigned char *record_of(const struct dense *d, const struct node *node, int i)
{
    return node->data + PREFIX + (int64_t)i * d->record_bytes;
}

static uint32_t hash_of(const struct dense *d, const struct node *node, int i)
{
    return (uint32_t)stki_hdf5_number(
        record_of(d, node, i) + (d->type == STKI_HDF5_LINKS_BY_NAME ? 0 : d->record_bytes - 4), 4);
}

static stk_status take_record(struct dense *d, const struct node *node, int i, stk_error *err)
{
    stki_hdf5_cursor object;
    stk_status status;

    if (d->left-- <= 0)
        return corrupt(d, d->heap, "more records than fit in the file", err);
    if (d->visit_record)
        return d->visit_record(d->context, record_of(d, node, i), d->record_bytes, err);
    if (d->hash && hash_of(d, node, i) != *d->hash)
        return STK_OK;
    if (d->type == STKI_HDF5_ATTRIBUTES_BY_NAME && (record_of(d, node, i)[8] & SHARED))
        return stki_hdf5_unsupported(d->super, d->heap, "a shared attribute", err);
    status = find_object(d, record_of(d, node, i) + (d->type == STKI_HDF5_LINKS_BY_NAME ? 4 : 0), &object, err);
    if (status == STK_OK && (d->bytes_left -= object.left) < 0)
        status = corrupt(d, d->heap, "the objects of a fractal heap are larger than the file", err);
    return status == STK_OK ? d->visit(d->context, object, err) : status;
}

/* Whether names with the requested hash may be below child `i`. */
static bool may_be_below(const struct dense *d, const struct node *node, int i)
{
    return !d->hash ||
           ((i == 0 || hash_of(d, node, i - 1) <= *d->hash) && (i == node->records || hash_of(d, node, i) >= *d->hash));
}

static stk_status open_child(struct dense *d, const struct node *node, int i, struct node *out, stk_error *err)
{
    const unsigned char *child =
        record_of(d, node, node->records) + (int64_t)i * (8 + d->count_bytes + d->below_bytes[node->level - 1]);

    return open_node(d, stki_hdf5_number(child, 8), node->level - 1, stki_hdf5_number(child + 8, d->count_bytes), out,
                     err);
}

/* Visits child, record, child, record, …, child. Levels decrease from node to node, so the stack is large enough. */
static stk_status walk(struct dense *d, uint64_t root, int records, stk_error *err)
{
    struct node stack[MAX_DEPTH];
    int depth = 0;
    stk_status status = open_node(d, root, d->depth, (uint64_t)records, &stack[depth++], err);

    while (depth > 0 && status == STK_OK) {
        struct node *node = &stack[depth - 1];
        const int i = node->next++;

        if (node->level > 0 && i > node->records) {
            stki_free(stack[--depth].data);
            continue;
        }
        if (node->level == 0) {
            for (int k = 0; k < node->records && status == STK_OK; k++)
                status = take_record(d, node, k, err);
            stki_free(stack[--depth].data);
            continue;
        }
        if (i > 0)
            status = take_record(d, node, i - 1, err);
        if (status == STK_OK && may_be_below(d, node, i)) {
            status = open_child(d, node, i, &stack[depth], err);
            depth++;
        }
    }
    while (depth > 0)
        stki_free(stack[--depth].data);
    return status;
}

stk_status stki_hdf5_dense_visit(const stki_hdf5_super *super, uint64_t heap, uint64_t tree, int type, const char *name,
                                 stki_hdf5_object_visit *visit, void *context, stk_error *err)
{
    const uint32_t hash = name ? stki_hdf5_sum(name, (int64_t)strlen(name)) : 0;
    struct dense d = {.super = super,
                      .visit = visit,
                      .context = context,
                      .hash = name ? &hash : NULL,
                      .type = type,
                      .record_bytes = type == STKI_HDF5_LINKS_BY_NAME ? 11 : 17,
                      .left = super->file->size / 4 + 1,
                      .bytes_left = super->file->size,
                      .heap = heap};
    uint64_t root = 0;
    int records = 0;
    stk_status status = open_heap(&d, err);

    if (status == STK_OK && d.offset_bytes + d.length_bytes + 1 > (type == STKI_HDF5_LINKS_BY_NAME ? 7 : 8))
        status = corrupt(&d, heap, "the object IDs of a fractal heap are too long", err);
    if (status == STK_OK)
        status = open_tree(&d, tree, &root, &records, err);
    if (status == STK_OK && records > 0)
        status = walk(&d, root, records, err);
    for (int64_t i = 0; i < d.block_count; i++)
        stki_free(d.blocks[i].data);
    stki_free(d.blocks);
    return status;
}

stk_status stki_hdf5_tree_visit(const stki_hdf5_super *super, uint64_t tree, int type, stki_hdf5_record_visit *visit,
                                void *context, stk_error *err)
{
    struct dense d = {.super = super,
                      .visit_record = visit,
                      .context = context,
                      .type = type,
                      .left = super->file->size / 4 + 1,
                      .heap = tree};
    uint64_t root = 0;
    int records = 0;
    stk_status status = open_tree(&d, tree, &root, &records, err);

    return status == STK_OK && records > 0 ? walk(&d, root, records, err) : status;
}
