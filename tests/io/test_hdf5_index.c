/* Tests of the table of chunks that is read from the file, against what libhdf5 reports for each chunk, and of files in
 * which each single byte is changed. */
#include "allocate.h"
#include "cmocka_all.h"
#include "hdf5_files.h"
#include "hdf5_index.h"
#include "io_files.h"

static stk_error err;

typedef struct walked {
    stki_hdf5_grid grid;
    uint64_t header;
    stki_hdf5_table table;
    stk_status status;
} walked;

static void describe(const stkt_hdf5 *h, hid_t x, walked *w)
{
    H5O_info_t info;

    STKT_MUST(H5Oget_info2(x, &info, H5O_INFO_BASIC));
    w->header = info.addr;
    w->grid =
        (stki_hdf5_grid){.ndim = h->rank, .item_bytes = (int64_t)H5Tget_size(h->type), .filtered = h->filters > 0};
    for (int i = 0; i < h->rank; i++) {
        w->grid.shape[i] = (int64_t)h->shape[i];
        w->grid.chunk[i] = (int64_t)h->chunk[i];
        w->grid.largest[i] = h->largest[i] == H5S_UNLIMITED ? -1 : (int64_t)h->largest[i];
    }
    assert_int_equal(stki_hdf5_grid_measure(&w->grid, "f", &err), STK_OK);
}

/* Each chunk that libhdf5 lists must be in the table, and no other. */
static void compare(const stkt_hdf5 *h, hid_t x, const walked *w)
{
    hid_t space = H5Dget_space(x);
    hsize_t count = 0;
    int64_t inside = 0;

    STKT_MUST(H5Dget_num_chunks(x, space, &count));
    for (hsize_t n = 0; n < count; n++) {
        hsize_t first[4];
        unsigned mask;
        haddr_t address;
        hsize_t bytes;
        int64_t number = 0;
        bool outside = false;
        const stki_hdf5_chunk *chunk;

        STKT_MUST(H5Dget_chunk_info(x, space, n, first, &mask, &address, &bytes));
        for (int i = 0; i < h->rank; i++) {
            outside = outside || first[i] >= h->shape[i];
            number = number * w->grid.per[i] + (int64_t)(first[i] / h->chunk[i]);
        }
        if (outside)
            continue;
        chunk = stki_hdf5_table_find(&w->table, number);
        if (!chunk)
            fail_msg("%s: chunk %d is missing", h->about, (int)number);
        /* Up to 1.14.3, libhdf5 does not include the user block. */
        assert_true(chunk->address == (int64_t)address || chunk->address == (int64_t)address + h->user_block);
        assert_int_equal(chunk->bytes, bytes);
        assert_int_equal(chunk->mask, mask);
        inside++;
    }
    assert_int_equal(w->table.count, inside);
    STKT_MUST(H5Sclose(space));
}

static void test_against_library(void **state)
{
    const char *path = stkt_path("index.h5");
    int compared = 0, refused = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        stkt_hdf5 h;
        walked w = {.status = STK_OK};
        stki_file *f;

        stkt_hdf5_make(path, seed, &h);
        if (h.layout == H5D_CHUNKED && !h.refused) {
            hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), x = H5Dopen2(file, "x", H5P_DEFAULT);

            describe(&h, x, &w);
            assert_int_equal(stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_RANDOM, &f, &err), STK_OK);
            w.status = stki_hdf5_index_read(f, w.header, &w.grid, &w.table, &err);
            if (!w.status)
                compare(&h, x, &w);
            else if (w.status != STK_E_UNSUPPORTED)
                fail_msg("%s: %s", h.about, err.message);
            compared += !w.status;
            refused += w.status != STK_OK;
            stki_hdf5_table_fini(&w.table);
            stki_file_close(f);
            STKT_MUST(H5Dclose(x));
            STKT_MUST(H5Fclose(file));
        }
        STKT_MUST(H5Tclose(h.type));
    }
    assert_true(compared > 80 && refused == 0);
}

/* Whatever value a byte has, reading ends with a table or an error and stays inside the file. */
static void test_every_byte_changed(void **state)
{
    const char *path = stkt_path("changed.h5");
    int files = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 60 && files < 12; seed++) {
        stkt_hdf5 h;
        walked w = {.status = STK_OK};
        stki_file *f, changed;
        char *bytes;

        stkt_hdf5_make(path, seed, &h);
        if (h.layout != H5D_CHUNKED) {
            STKT_MUST(H5Tclose(h.type));
            continue;
        }
        {
            hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), x = H5Dopen2(file, "x", H5P_DEFAULT);
            describe(&h, x, &w);
            STKT_MUST(H5Dclose(x));
            STKT_MUST(H5Fclose(file));
        }
        files++;
        assert_int_equal(stki_file_open(path, STKI_ACCESS_MMAP, STKI_PATTERN_RANDOM, &f, &err), STK_OK);
        bytes = malloc((size_t)f->size);
        memcpy(bytes, f->map, (size_t)f->size);
        changed = *f;
        changed.map = bytes;
        for (int64_t at = 0; at < f->size; at++)
            for (int way = 0; way < 2; way++) {
                char was = bytes[at];

                bytes[at] = (char)(way ? 0xFF : was ^ 1);
                w.status = stki_hdf5_index_read(&changed, w.header, &w.grid, &w.table, &err);
                assert_true(w.status == STK_OK || w.status == STK_E_CORRUPT || w.status == STK_E_UNSUPPORTED ||
                            w.status == STK_E_TRUNCATED);
                stki_hdf5_table_fini(&w.table);
                bytes[at] = was;
            }
        free(bytes);
        stki_file_close(f);
        STKT_MUST(H5Tclose(h.type));
    }
    assert_int_equal(files, 12);
}

static void test_grid(void **state)
{
    stki_hdf5_grid grid = {.ndim = 2, .shape = {7, 0}, .chunk = {3, 5}, .item_bytes = 4};

    (void)state;
    assert_int_equal(stki_hdf5_grid_measure(&grid, "f", &err), STK_OK);
    assert_int_equal(grid.per[0], 3);
    assert_int_equal(grid.count, 0);
    assert_int_equal(grid.chunk_bytes, 60);
    grid.shape[0] = grid.shape[1] = INT64_MAX;
    assert_int_equal(stki_hdf5_grid_measure(&grid, "f", &err), STK_E_LIMIT);
    grid.shape[0] = grid.shape[1] = 1;
    grid.chunk[0] = INT64_MAX;
    assert_int_equal(stki_hdf5_grid_measure(&grid, "f", &err), STK_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_library),
        cmocka_unit_test(test_every_byte_changed),
        cmocka_unit_test(test_grid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
