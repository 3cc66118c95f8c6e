/* writer.h: files of named arrays, written one array after the other. Every such format implements the table; the
 * functions below it check what all formats check, and call the table. The public face is dataset.h. A writer belongs
 * to one thread at a time.
 */
#ifndef STKI_WRITER_H
#define STKI_WRITER_H

#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_writer stki_writer;

typedef struct stki_writer_opts {
    int level;             /* deflate 1 to 9; 0: none */
    int64_t chunk_rows;    /* HDF5: samples a chunk; 0: contiguous without compression, else chosen */
    int threads;           /* that compress; 0: as many as there are processors */
    bool alias;            /* dtypes that the format cannot name are written as raw bytes (npy, npz) */
    const char *temporary; /* the file's name while it is made, which it keeps (stki_output_hold); NULL: a name beside
                              `path`, and it is renamed. Not for npy and raw */
} stki_writer_opts;

typedef struct stki_writer_ops {
    const char *format;
    /* Begins array `name` of rows of this dtype and shape. rows: how many will come; -1: as many as are appended
     * (refused where the format must know). row_ndim -1: one number, shape (). */
    stk_status (*begin)(stki_writer *writer, const char *name, stk_dtype dtype, int row_ndim, const int64_t *row_shape,
                        int64_t rows, stk_error *err);
    /* Whole rows, C order, little-endian. */
    stk_status (*append)(stki_writer *writer, const void *rows, int64_t count, stk_error *err);
    stk_status (*end)(stki_writer *writer, stk_error *err);    /* of the array */
    stk_status (*commit)(stki_writer *writer, stk_error *err); /* frees */
    void (*abort)(stki_writer *writer);                        /* frees */
} stki_writer_ops;

struct stki_writer {
    const stki_writer_ops *ops;
    /* What writer.c keeps; formats zero it. */
    bool writing;      /* an array is begun */
    stk_status failed; /* nothing more is written, commit fails too */
    int64_t row_bytes, rows, rows_wanted;
    int64_t chunk_rows; /* HDF5: of arrays that are begun from now on; opts.chunk_rows at first */
    char **names;       /* of the arrays so far: a hash table of `name_room` places */
    int64_t name_count, name_room;
};

/* STK_E_BAD_ARG: out of turn; a name that is no UTF-8, or that is there already. */
stk_status stki_writer_begin(stki_writer *writer, const char *name, stk_dtype dtype, int row_ndim,
                             const int64_t *row_shape, int64_t rows, stk_error *err);
stk_status stki_writer_append(stki_writer *writer, const void *rows, int64_t count, stk_error *err);
/* STK_E_BAD_SHAPE: fewer rows came than were announced. */
stk_status stki_writer_end(stki_writer *writer, stk_error *err);
/* One whole tensor of any strides, through begin, append and end. */
stk_status stki_writer_add(stki_writer *writer, const char *name, const stk_tensor *tensor, stk_error *err);
/* Both free the writer. After a failure of any call, refused arguments included, commit fails too, and leaves nothing:
 * an array would be missing. */
stk_status stki_writer_commit(stki_writer *writer, stk_error *err);
void stki_writer_abort(stki_writer *writer); /* NULL is fine */

#endif
