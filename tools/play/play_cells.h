/* play_cells.h: a storage as cells of the tensor's element size: for each cell, when and how often the tensor reads it
 * in row-major order. */
#ifndef STOKER_PLAY_CELLS_H
#define STOKER_PLAY_CELLS_H

#include <stdbool.h>
#include <stoker/tensor.h>

enum { PL_VALUE_BYTES = 48 };

struct pl_entry {
    int64_t first; /* row-major index of the first element that reads it, -1: not read */
    int64_t times; /* number of reads, summed over the entry's cells */
};

struct pl_cells {
    int64_t cell_count;
    int64_t read_count;      /* distinct cells read; -1: too many elements to iterate */
    int64_t cells_per_entry; /* 1: an entry for each cell */
    int64_t entry_count;
    struct pl_entry *entries;
};

/* Creates one entry per cell if there are at most `most` cells, otherwise at most `groups` entries with equal numbers
 * of cells. */
stk_status pl_cells_of(const stk_tensor *tensor, int64_t most, int64_t groups, struct pl_cells *out, stk_error *err);
void pl_cells_fini(struct pl_cells *cells);

/* Write the value of a cell, or of the element at an index, to `buffer` (PL_VALUE_BYTES) and return it. Integers are
 * exact, other numbers have three digits. */
const char *pl_cell_value(const stk_tensor *tensor, int64_t cell, char *buffer);
const char *pl_element_value(const stk_tensor *tensor, const int64_t *index, char *buffer);

#endif
