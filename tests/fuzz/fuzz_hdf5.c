/* Fuzz target: arbitrary bytes as an HDF5 file whose chunk index is read. The input begins with the values that libhdf5
 * would have provided: u8 axes (1 to 4), u8 bytes of an item, u8 filtered, u8 unused, u32 address of the object header;
 * then for each of 4 axes u16 size, u16 chunk, u16 largest size (65535: unlimited). The rest is the file.
 *
 * On failure, the status must be one that a damaged file can cause, and the table must be empty. On success, the table
 * must list distinct chunks of the grid in order, at most one for each byte of the file, and a lookup must find these
 * and no others. */
#include "allocate.h"
#include "fuzz.h"
#include "hdf5_index.h"
#include <string.h>

enum { AXES = 4, PREFIX = 8 + 6 * AXES };

static bool read_grid(const uint8_t *data, stki_hdf5_grid *grid)
{
    *grid = (stki_hdf5_grid){.ndim = 1 + data[0] % AXES, .item_bytes = 1 + data[1] % 64, .filtered = data[2] & 1};
    for (int i = 0; i < grid->ndim; i++) {
        const uint8_t *axis = data + 8 + 6 * i;

        grid->shape[i] = (int64_t)stki_hdf5_number(axis, 2);
        grid->chunk[i] = 1 + (int64_t)stki_hdf5_number(axis + 2, 2);
        grid->largest[i] = (int64_t)stki_hdf5_number(axis + 4, 2);
        if (grid->largest[i] == 65535)
            grid->largest[i] = -1;
    }
    return stki_hdf5_grid_measure(grid, "f", NULL) == STK_OK;
}

static void check_table(const stki_hdf5_table *table, const stki_hdf5_grid *grid, int64_t size)
{
    int64_t last = -1;

    for (int64_t i = 0; i < table->count; i++) {
        const stki_hdf5_chunk *chunk = &table->chunks[i];

        DEMAND(chunk->number > last && chunk->number < grid->count);
        DEMAND(chunk->address >= 0);
        DEMAND(stki_hdf5_table_find(table, chunk->number) == chunk);
        if (chunk->number > last + 1)
            DEMAND(!stki_hdf5_table_find(table, last + 1));
        last = chunk->number;
    }
    DEMAND(!stki_hdf5_table_find(table, -1) && !stki_hdf5_table_find(table, last + 1));
    DEMAND(table->count <= size); /* a chunk or its entry takes at least one byte */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stki_hdf5_table table;
    stki_hdf5_grid grid;
    stki_memory_stats before, after;
    stki_file file = {.path = (char *)(uintptr_t) "some/file.h5", .fd = -1};
    uint8_t *bytes;
    stk_status status;

    if (size < PREFIX || !read_grid(data, &grid))
        return 0;
    file.size = (int64_t)(size - PREFIX);
    bytes = malloc(size - PREFIX + 1); /* of exactly this size, so that sanitizers detect out-of-bounds accesses */
    bytes = realloc(bytes, size - PREFIX ? size - PREFIX : 1);
    memcpy(bytes, data + PREFIX, size - PREFIX);
    file.map = bytes;
    memset(&table, 0x5A, sizeof table);
    stki_memory_read(STKI_MEM_HOST, &before);
    status = stki_hdf5_index_read(&file, stki_hdf5_number(data + 4, 4), &grid, &table, NULL);
    DEMAND(status == STK_OK || status == STK_E_CORRUPT || status == STK_E_UNSUPPORTED || status == STK_E_TRUNCATED);
    if (status)
        DEMAND(!table.chunks && table.count == 0);
    else
        check_table(&table, &grid, file.size);
    stki_hdf5_table_fini(&table);
    stki_memory_read(STKI_MEM_HOST, &after);
    DEMAND(before.blocks == after.blocks);
    free(bytes);
    return 0;
}
