/* saved.h: the arrays that a writer of several has written so far, for formats that say what they hold in one place. */
#ifndef STKI_SAVED_H
#define STKI_SAVED_H

#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_saved {
    char *name;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t waits_at, bytes, begin; /* of formats whose data moves: where it waits, its length, its place in the file */
} stki_saved;

typedef struct stki_saved_list {
    stki_saved *items;
    int64_t count, room;
    /* of the array that is being written, the last of the items */
    int64_t row_bytes, rows;
    bool scalar;
} stki_saved_list;

/* Begins an array as stki_writer_ops.begin has it; fewer than 32 axes a row. */
stk_status stki_saved_begin(stki_saved_list *list, const char *name, stk_dtype dtype, int row_ndim,
                            const int64_t *row_shape, stk_error *err);
/* `count` more rows; returns their bytes. The sums were checked by stki_writer_append. */
int64_t stki_saved_append(stki_saved_list *list, int64_t count);
/* The array's shape is known now. */
stki_saved *stki_saved_end(stki_saved_list *list);
void stki_saved_fini(stki_saved_list *list);

#endif
