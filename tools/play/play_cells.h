/* play_cells.h: a storage as cells, and which of them a tensor reads, when. A cell is as large as an element of
 * the tensor.
 */
#ifndef STOKER_PLAY_CELLS_H
#define STOKER_PLAY_CELLS_H

#include <stdbool.h>
#include <stoker/tensor.h>

enum { PL_VALUE_BYTES = 48 };

struct pl_entry {
    int64_t first; /* row-major number of the element that reads it first, -1: not read */
    int64_t times; /* how often it is read; for an entry of many cells, by all of them together */
};

struct pl_cells {
    int64_t cell_count;
    int64_t read_count;      /* different cells that are read; -1: too many elements to walk over */
    int64_t cells_per_entry; /* 1: each cell by itself */
    int64_t entry_count;
    struct pl_entry *entries;
};

/* Cells by themselves if there are at most `most`, else `groups` entries or fewer for as many cells each. */
stk_status pl_cells_of(const stk_tensor *tensor, int64_t most, int64_t groups, struct pl_cells *out, stk_error *err);
void pl_cells_fini(struct pl_cells *cells);

/* The number in a cell, and at an index, short: whole numbers as they are, others to three digits. */
const char *pl_cell_value(const stk_tensor *tensor, int64_t cell, char *buffer);
const char *pl_element_value(const stk_tensor *tensor, const int64_t *index, char *buffer);

#endif
