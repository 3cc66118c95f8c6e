/* play_cells.c: iterates over a tensor in row-major order and records the cell of each element. */
#include "play_cells.h"
#include "allocate.h"
#include "error.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define MOST_STEPS ((int64_t)1 << 26) /* limit on elements: an expanded tensor can have any number */

/* Increments the index and updates `byte`; false after the last one. */
static bool next_index(const stk_tensor *tensor, int64_t *index, int64_t *byte)
{
    for (int i = tensor->ndim - 1; i >= 0; i--) {
        *byte += tensor->strides[i];
        if (++index[i] < tensor->shape[i])
            return true;
        *byte -= tensor->strides[i] * tensor->shape[i];
        index[i] = 0;
    }
    return false;
}

static void walk(const stk_tensor *tensor, struct pl_cells *cells, uint8_t *seen)
{
    int64_t index[STK_MAX_DIMS] = {0}, byte = stk_tensor_offset_bytes(tensor), order = 0;
    int64_t size = stk_dtype_size(tensor->dtype);

    if (stk_tensor_numel(tensor) == 0)
        return;
    do {
        int64_t cell = byte / size;
        struct pl_entry *entry = &cells->entries[cell / cells->cells_per_entry];
        if (entry->first < 0)
            entry->first = order;
        entry->times++;
        cells->read_count += !(seen[cell / 8] >> (cell % 8) & 1);
        seen[cell / 8] |= (uint8_t)(1u << (cell % 8));
        order++;
    } while (next_index(tensor, index, &byte));
}

stk_status pl_cells_of(const stk_tensor *tensor, int64_t most, int64_t groups, struct pl_cells *out, stk_error *err)
{
    struct pl_cells cells = {.cell_count = stk_storage_bytes(tensor->storage) / stk_dtype_size(tensor->dtype)};
    uint8_t *seen;

    cells.cells_per_entry = cells.cell_count <= most ? 1 : (cells.cell_count + groups - 1) / groups;
    cells.entry_count = (cells.cell_count + cells.cells_per_entry - 1) / cells.cells_per_entry;
    cells.entries = stki_zalloc_array(cells.entry_count + 1, sizeof *cells.entries);
    seen = stki_zalloc(cells.cell_count / 8 + 1);
    if (!cells.entries || !seen) {
        stki_free(cells.entries);
        stki_free(seen);
        return stki_fail_memory(err, cells.cell_count / 8, "a drawing");
    }
    for (int64_t i = 0; i < cells.entry_count; i++)
        cells.entries[i].first = -1;
    if (stk_tensor_numel(tensor) <= MOST_STEPS)
        walk(tensor, &cells, seen);
    else
        cells.read_count = -1;
    stki_free(seen);
    *out = cells;
    return STK_OK;
}

void pl_cells_fini(struct pl_cells *cells)
{
    stki_free(cells->entries);
    memset(cells, 0, sizeof *cells);
}

static void real_text(double value, char *buffer, size_t size)
{
    if (isnan(value))
        snprintf(buffer, size, "nan");
    else if (value == rint(value) && fabs(value) < 1e6)
        snprintf(buffer, size, "%.0f", value);
    else
        snprintf(buffer, size, "%.3g", value);
}

static void scalar_text(stk_scalar value, char *buffer)
{
    char imaginary[PL_VALUE_BYTES / 3];

    switch (value.kind) {
    case STK_SCALAR_BOOL:
        snprintf(buffer, PL_VALUE_BYTES, value.as.b ? "true" : "false");
        break;
    case STK_SCALAR_INT:
        snprintf(buffer, PL_VALUE_BYTES, "%" PRId64, value.as.i);
        break;
    case STK_SCALAR_UINT:
        snprintf(buffer, PL_VALUE_BYTES, "%" PRIu64, value.as.u);
        break;
    case STK_SCALAR_REAL:
        real_text(value.as.f, buffer, PL_VALUE_BYTES);
        break;
    case STK_SCALAR_COMPLEX:
        real_text(value.as.c[0], buffer, PL_VALUE_BYTES / 2);
        real_text(value.as.c[1], imaginary, sizeof imaginary);
        snprintf(buffer + strlen(buffer), PL_VALUE_BYTES - strlen(buffer), "%s%sj",
                 signbit(value.as.c[1]) && !isnan(value.as.c[1]) ? "" : "+", imaginary);
        break;
    }
}

const char *pl_element_value(const stk_tensor *tensor, const int64_t *index, char *buffer)
{
    stk_scalar value;

    buffer[0] = 0;
    if (stk_tensor_get(tensor, tensor->ndim, index, &value, NULL) == STK_OK)
        scalar_text(value, buffer);
    return buffer;
}

const char *pl_cell_value(const stk_tensor *tensor, int64_t cell, char *buffer)
{
    stk_tensor one;

    buffer[0] = 0;
    if (stk_tensor_from_storage(tensor->storage, cell * stk_dtype_size(tensor->dtype), tensor->dtype, 0, NULL, NULL,
                                &one, NULL) == STK_OK) {
        pl_element_value(&one, NULL, buffer);
        stk_tensor_release(&one);
    }
    return buffer;
}
