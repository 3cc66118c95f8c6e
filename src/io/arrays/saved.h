/* saved.h: the list of arrays written so far, for formats that describe all arrays in one place. */
#ifndef STKI_SAVED_H
#define STKI_SAVED_H

#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_saved {
    char *name;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t waits_at, bytes, begin; /* for formats that move the data: its temporary offset, size and final offset */
} stki_saved;

typedef struct stki_saved_list {
    stki_saved *items;
    int64_t count, room;
    /* size of a row and number of rows of the array being written, which is the last item */
    int64_t row_bytes, rows;
    bool scalar;
} stki_saved_list;

/* Starts an array; the arguments are as in stki_writer_ops.begin. Rows must have fewer than 32 axes. */
stk_status stki_saved_begin(stki_saved_list *list, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, stk_error *err);
/* Adds `count` rows; returns their size in bytes. stki_writer_append has checked for overflow. */
int64_t stki_saved_append(stki_saved_list *list, int64_t count);
/* Ends the array, whose number of rows is now known. */
stki_saved *stki_saved_end(stki_saved_list *list);
void stki_saved_fini(stki_saved_list *list);

#endif
