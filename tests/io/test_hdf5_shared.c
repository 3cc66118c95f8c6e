/* Tests of HDF5 structures in which many entries refer to the same bytes, so that a small file would require unlimited
 * work or memory. Reading must end with an error once more has been read than a file of its size can contain. */
#include "allocate.h"
#include "cmocka_all.h"
#include "hdf5_index.h"
#include "hdf5_parse.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOT = 96 };

static stk_error err;

/* ---- making files ---- */

struct maker {
    unsigned char *bytes;
    int64_t at, room;
};

static void put(struct maker *m, uint64_t value, int bytes)
{
    assert_true(m->at + bytes <= m->room);
    for (int i = 0; i < bytes; i++)
        m->bytes[m->at++] = (unsigned char)(value >> 8 * i);
}

static void put_text(struct maker *m, const char *text)
{
    while (*text)
        put(m, (unsigned char)*text++, 1);
}

static struct maker begin(int64_t size)
{
    struct maker m = {calloc(1, (size_t)size), 0, size};

    assert_non_null(m.bytes);
    put_text(&m, "\x89HDF\r\n\x1a\n");
    put(&m, UINT64_C(0x0008080000000000), 8);
    put(&m, 4, 2), put(&m, 16, 2), put(&m, 0, 4);
    put(&m, 0, 8), put(&m, UINT64_MAX, 8), put(&m, (uint64_t)size, 8), put(&m, UINT64_MAX, 8);
    put(&m, 0, 8), put(&m, ROOT, 8);
    m.at = ROOT;
    return m;
}

/* Begins a version 1 object header with `bytes` bytes of messages, which follow. */
static void put_header(struct maker *m, int messages, int bytes)
{
    put(m, 1, 2), put(m, (uint64_t)messages, 2), put(m, 1, 4), put(m, (uint64_t)bytes, 4), put(m, 0, 4);
}

static void put_message(struct maker *m, int type, int bytes)
{
    put(m, (uint64_t)type, 2), put(m, (uint64_t)bytes, 2), put(m, 0, 4);
}

static stki_file file_of(const struct maker *m)
{
    return (stki_file){.path = (char *)(uintptr_t) "shared.h5", .fd = -1, .map = m->bytes, .size = m->room};
}

static stki_hdf5_super super_of(const stki_file *file)
{
    return (stki_hdf5_super){
        .file = file, .plain = true, .unsummed = true, .root = ROOT, .leaf_k = 32767, .internal_k = 32767};
}

struct seen {
    int64_t objects, bytes;
};

static stk_status on_link(void *context, const stki_hdf5_link *link, stk_error *error)
{
    struct seen *seen = context;

    (void)error;
    seen->objects++;
    seen->bytes += (int64_t)(strlen(link->name) + (link->target ? strlen(link->target) : 0));
    return STK_OK;
}

static stk_status on_object(void *context, stki_hdf5_cursor object, stk_error *error)
{
    struct seen *seen = context;

    (void)error;
    seen->objects++;
    seen->bytes += object.left;
    return STK_OK;
}

/* ---- old groups ---- */

enum { TREE = 1024, HEAP = 256, LOW = 4096 };

static void put_group(struct maker *m, uint64_t tree, uint64_t heap_bytes, uint64_t names)
{
    put_header(m, 1, 24);
    put_message(m, STKI_HDF5_SYMBOL_TABLE, 16);
    put(m, tree, 8), put(m, HEAP, 8);
    m->at = HEAP;
    put_text(m, "HEAP");
    put(m, 0, 4), put(m, heap_bytes, 8), put(m, UINT64_MAX, 8), put(m, names, 8);
}

static void put_tree(struct maker *m, int level, int entries, uint64_t child, uint64_t last)
{
    put_text(m, "TREE");
    put(m, (uint64_t)level << 8, 2), put(m, (uint64_t)entries, 2), put(m, UINT64_MAX, 8), put(m, UINT64_MAX, 8);
    for (int i = 0; i < entries; i++)
        put(m, 0, 8), put(m, child, 8);
    put(m, last, 8);
}

/* 200 links with short names to one target of 1000 bytes (rejected), or to 200 targets of one byte (accepted). */
static void test_soft_targets(void **state)
{
    (void)state;
    for (int longer = 0; longer < 2; longer++) {
        enum { LINKS = 200, LONG = 1000, NAMES = 2048 + 8 + 40 * LINKS, TARGETS = 8 + 8 * LINKS };
        struct maker m = begin(NAMES + TARGETS + LONG + 8);
        const stki_file file = file_of(&m);
        const stki_hdf5_super super = super_of(&file);
        struct seen seen = {0};
        stk_status status;

        put_group(&m, TREE, TARGETS + LONG + 8, NAMES);
        m.at = TREE;
        put_tree(&m, 0, 1, 2048, 8 * LINKS);
        m.at = 2048;
        put_text(&m, "SNOD");
        put(&m, 1, 2), put(&m, LINKS, 2);
        for (uint64_t i = 0; i < LINKS; i++) {
            put(&m, 8 + 8 * i, 8), put(&m, 0, 8), put(&m, 2, 4), put(&m, 0, 4);
            put(&m, longer ? TARGETS : 8 + 8 * i + 6, 4), put(&m, 0, 12 - 8), put(&m, 0, 8);
        }
        m.at = NAMES + 8;
        for (int i = 0; i < LINKS; i++) {
            char name[16];

            snprintf(name, sizeof name, "n%04d", i);
            put_text(&m, name);
            put(&m, 0, 1), put(&m, 't', 1), put(&m, 0, 1);
        }
        memset(m.bytes + NAMES + TARGETS, 't', LONG);
        status = stki_hdf5_links_visit(&super, ROOT, NULL, on_link, &seen, &err);
        assert_int_equal(status, longer ? STK_E_CORRUPT : STK_OK);
        assert_true(longer ? seen.bytes <= m.room : seen.objects == LINKS && seen.bytes == 6 * LINKS);
        free(m.bytes);
    }
}

/* Two levels of 200 entries that all lead to the same empty node: 40000 visits. */
static void test_empty_nodes(void **state)
{
    enum { ENTRIES = 200, NODE = 24 + 16 * ENTRIES + 8 };
    struct maker m = begin(LOW + 2 * NODE);
    const stki_file file = file_of(&m);
    const stki_hdf5_super super = super_of(&file);
    struct seen seen = {0};

    (void)state;
    put_group(&m, LOW + NODE, 256, 512);
    m.at = TREE;
    put_text(&m, "SNOD");
    put(&m, 1, 2), put(&m, 0, 2);
    m.at = LOW;
    for (int level = 0; level < 2; level++)
        put_tree(&m, level, ENTRIES, level > 0 ? (uint64_t)(LOW + (level - 1) * NODE) : TREE, 0);
    assert_int_equal(stki_hdf5_links_visit(&super, ROOT, NULL, on_link, &seen, &err), STK_E_CORRUPT);
    assert_int_equal(seen.objects, 0);
    free(m.bytes);
}

/* ---- fractal heaps ---- */

enum { FRHP = 512, BTHD = 768, LEAF = 1024, RECORDS = 500, LEAF_BYTES = 6 + 11 * RECORDS + 4 };

/* All records refer to `length` bytes at offset 32 of a heap with this root. */
static void put_heap(struct maker *m, uint64_t block, int width, int rows, uint64_t root, uint64_t length)
{
    m->at = FRHP;
    put_text(m, "FRHP");
    put(m, 0, 1), put(m, 7, 2), put(m, 0, 3), put(m, block - 1, 4);
    m->at = FRHP + 110;
    put(m, (uint64_t)width, 2), put(m, block, 8), put(m, block, 8), put(m, 24, 2), put(m, 0, 2), put(m, root, 8);
    put(m, (uint64_t)rows, 2);
    m->at = BTHD;
    put_text(m, "BTHD");
    put(m, 0, 1), put(m, STKI_HDF5_LINKS_BY_NAME, 1), put(m, LEAF_BYTES, 4), put(m, 11, 2), put(m, 0, 2), put(m, 0, 2);
    put(m, LEAF, 8), put(m, RECORDS, 2), put(m, RECORDS, 8);
    m->at = LEAF;
    put_text(m, "BTLF");
    put(m, 0, 1), put(m, STKI_HDF5_LINKS_BY_NAME, 1);
    for (int i = 0; i < RECORDS; i++)
        put(m, 0, 5), put(m, 32, 3), put(m, length, block > 1 << 16 ? 3 : 2), put(m, 0, block > 1 << 16 ? 0 : 1);
    m->at += 4;
}

static void put_block(struct maker *m, const char *mark)
{
    put_text(m, mark);
    put(m, 0, 1), put(m, FRHP, 8), put(m, 0, 3);
}

static void test_one_object(void **state)
{
    enum { BLOCK = 1 << 17 };
    struct maker m = begin(LEAF + LEAF_BYTES + BLOCK);
    const stki_file file = file_of(&m);
    const stki_hdf5_super super = super_of(&file);
    struct seen seen = {0};

    (void)state;
    put_heap(&m, BLOCK, 4, 0, LEAF + LEAF_BYTES, BLOCK - 64);
    put_block(&m, "FHDB");
    assert_int_equal(stki_hdf5_dense_visit(&super, FRHP, BTHD, STKI_HDF5_LINKS_BY_NAME, NULL, on_object, &seen, &err),
                     STK_E_CORRUPT);
    assert_int_equal(seen.objects, 1); /* two of them are larger than the file */
    free(m.bytes);
}

/* An indirect block of 8 rows of 256 entries is read once, not for each of the 500 records. */
static void test_indirect_block(void **state)
{
    enum { BLOCK = 512, ROWS = 8, WIDTH = 256, AT = LEAF + LEAF_BYTES, INDIRECT = 16 + 8 * ROWS * WIDTH + 4 };
    struct maker m = begin(AT + INDIRECT + BLOCK);
    const stki_file file = file_of(&m);
    const stki_hdf5_super super = super_of(&file);
    struct seen seen = {0};
    stki_memory_stats before, after;

    (void)state;
    put_heap(&m, BLOCK, WIDTH, ROWS, AT, 16);
    put_block(&m, "FHIB");
    for (int i = 0; i < ROWS * WIDTH; i++)
        put(&m, AT + INDIRECT, 8);
    m.at += 4;
    put_block(&m, "FHDB");
    stki_memory_read(STKI_MEM_HOST, &before);
    assert_int_equal(stki_hdf5_dense_visit(&super, FRHP, BTHD, STKI_HDF5_LINKS_BY_NAME, NULL, on_object, &seen, &err),
                     STK_OK);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(seen.objects, RECORDS);
    assert_true(after.total_allocations - before.total_allocations < 20);
    free(m.bytes);
}

/* An indirect block below the root whose size is too small for a single row. */
static void test_no_rows(void **state)
{
    enum { BLOCK = 512, WIDTH = 256, ROWS = 4, AT = LEAF + LEAF_BYTES, INDIRECT = 16 + 8 * ROWS * WIDTH + 4 };
    struct maker m = begin(AT + INDIRECT);
    const stki_file file = file_of(&m);
    const stki_hdf5_super super = super_of(&file);
    struct seen seen = {0};

    (void)state;
    put_heap(&m, BLOCK, WIDTH, ROWS, AT, 16);
    /* in row 2, whose blocks of 1024 bytes are larger than the largest direct block */
    for (int i = 0; i < RECORDS; i++) {
        m.at = LEAF + 6 + 11 * i + 5;
        put(&m, 2 * BLOCK * WIDTH + 32, 3);
    }
    m.at = AT;
    put_block(&m, "FHIB");
    for (int i = 0; i < ROWS * WIDTH; i++)
        put(&m, AT, 8);
    assert_int_equal(stki_hdf5_dense_visit(&super, FRHP, BTHD, STKI_HDF5_LINKS_BY_NAME, NULL, on_object, &seen, &err),
                     STK_E_CORRUPT);
    assert_int_equal(seen.objects, 0);
    free(m.bytes);
}

/* ---- extensible arrays ---- */

/* A super block whose 2^k entries refer to one data block of 128 * 2^k entries. `page_bits` 31: the block has no
 * pages. */
static void test_data_blocks(void **state)
{
    enum {
        K = 5,
        BLOCKS = 1 << K,
        COUNT = 128 << K,
        BITS = 7 + 2 * K,
        DATASET = ROOT,
        EAHD = 1024,
        EAIB = 2048,
        EASB = 4096,
        HEAD = 14 + (BITS + 7) / 8,
        EADB = EASB + HEAD + 8 * BLOCKS + 4
    };
    stki_hdf5_grid grid = {
        .ndim = 1, .shape = {INT64_C(1) << 40}, .largest = {-1}, .chunk = {1}, .item_bytes = 1, .filtered = false};

    (void)state;
    assert_int_equal(stki_hdf5_grid_measure(&grid, "shared.h5", &err), STK_OK);
    for (int way = 0; way < 4; way++) { /* with and without chunks, in blocks with and without pages */
        const int page_bits = way & 2 ? 8 : 31, pages = way & 2 ? COUNT >> page_bits : 0;
        const int bitmaps = BLOCKS * ((pages + 7) / 8);
        struct maker m = begin(EADB + bitmaps + HEAD + 8 * COUNT + 4 * (pages + 1));
        const stki_file file = file_of(&m);
        stki_hdf5_table table;

        put_header(&m, 1, 32);
        put_message(&m, STKI_HDF5_LAYOUT, 24);
        put(&m, UINT64_C(0x0401010102000204), 8), put(&m, BITS, 1), put(&m, 0, 1), put(&m, 128, 1), put(&m, 2, 1);
        put(&m, (uint64_t)page_bits, 1), put(&m, EAHD, 8);
        m.at = EAHD;
        put_text(&m, "EAHD");
        put(&m, 0, 2), put(&m, 8, 1), put(&m, BITS, 1), put(&m, 0, 1), put(&m, 128, 1), put(&m, 2, 1);
        put(&m, (uint64_t)page_bits, 1);
        m.at = EAHD + 44;
        put(&m, UINT64_C(1) << 40, 8), put(&m, 0, 8), put(&m, EAIB, 8);
        m.at = EAIB;
        put_text(&m, "EAIB");
        put(&m, 0, 2), put(&m, EAHD, 8);
        for (int s = 0; s < 2 + 1 + BITS - 7 - 2; s++)
            put(&m, s == 2 * K ? EASB : UINT64_MAX, 8);
        m.at = EASB;
        put_text(&m, "EASB");
        put(&m, 0, 2), put(&m, EAHD, 8), put(&m, 0, HEAD - 14);
        memset(m.bytes + m.at, 0xFF, (size_t)bitmaps);
        m.at += bitmaps;
        for (int i = 0; i < BLOCKS; i++)
            put(&m, (uint64_t)(EADB + bitmaps), 8);
        m.at = EADB + bitmaps;
        put_text(&m, "EADB");
        put(&m, 0, 2), put(&m, EAHD, 8), put(&m, 0, HEAD - 14);
        memset(m.bytes + m.at, way & 1 ? 0xFF : 0x01, (size_t)(m.room - m.at));
        assert_int_equal(stki_hdf5_index_read(&file, DATASET, &grid, &table, &err), STK_E_CORRUPT);
        assert_non_null(strstr(err.message, "than fit in the file"));
        assert_int_equal(table.count, 0);
        free(m.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soft_targets),   cmocka_unit_test(test_empty_nodes), cmocka_unit_test(test_one_object),
        cmocka_unit_test(test_indirect_block), cmocka_unit_test(test_no_rows),     cmocka_unit_test(test_data_blocks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
