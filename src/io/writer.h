/* writer.h: writes files of named arrays, one array at a time. Every such format implements stki_writer_ops; the
 * functions below make the common checks and call it. The public functions are in dataset.h. Not thread-safe. */
#ifndef STKI_WRITER_H
#define STKI_WRITER_H

#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_writer stki_writer;

typedef struct stki_writer_opts {
    int level;             /* deflate level 1 to 9; 0: none */
    int64_t chunk_rows;    /* HDF5: samples per chunk; 0: contiguous if uncompressed, otherwise automatic */
    int threads;           /* compression threads; 0: number of processors */
    bool alias;            /* dtypes that the format cannot name are written as raw bytes (npy, npz) */
    const char *temporary; /* name under which the file is written and which it keeps (stki_output_hold); NULL: the file
                              is written next to `path` and renamed. Ignored by npy and raw */
} stki_writer_opts;

typedef struct stki_writer_ops {
    const char *format;
    /* Starts array `name` with rows of this dtype and shape. rows: the number of rows; -1: unknown, which formats that
     * need it reject. row_ndim -1: a scalar with shape (). */
    stk_status (*begin)(stki_writer *writer, const char *name, stk_dtype dtype, int row_ndim, const int64_t *row_shape,
                        int64_t rows, stk_error *err);
    /* Appends whole rows in C order, little-endian. */
    stk_status (*append)(stki_writer *writer, const void *rows, int64_t count, stk_error *err);
    stk_status (*end)(stki_writer *writer, stk_error *err);    /* ends the array */
    stk_status (*commit)(stki_writer *writer, stk_error *err); /* also frees the writer */
    void (*abort)(stki_writer *writer);                        /* frees the writer */
} stki_writer_ops;

struct stki_writer {
    const stki_writer_ops *ops;
    /* The members below are the state of writer.c. Formats initialize them with zeros. */
    bool writing;      /* an array has been started but not ended */
    stk_status failed; /* after a failure, nothing more is written and commit fails */
    int64_t row_bytes, rows, rows_wanted;
    int64_t chunk_rows; /* HDF5: applies to arrays that are started after it is set; initially opts.chunk_rows */
    char **names;       /* names of the arrays so far: a hash table with `name_room` slots */
    int64_t name_count, name_room;
};

/* Starts an array. STK_E_BAD_ARG: the order of calls is wrong, or the name is not valid UTF-8 or already exists. */
stk_status stki_writer_begin(stki_writer *writer, const char *name, stk_dtype dtype, int row_ndim,
                             const int64_t *row_shape, int64_t rows, stk_error *err);
stk_status stki_writer_append(stki_writer *writer, const void *rows, int64_t count, stk_error *err);
/* Ends the array. STK_E_BAD_SHAPE: fewer rows were appended than declared. */
stk_status stki_writer_end(stki_writer *writer, stk_error *err);
/* Writes a whole tensor, of any strides, with begin, append and end. */
stk_status stki_writer_add(stki_writer *writer, const char *name, const stk_tensor *tensor, stk_error *err);
/* Both free the writer. After a failure of any call, including rejected arguments, commit fails too and leaves no file,
 * because an array would be missing. */
stk_status stki_writer_commit(stki_writer *writer, stk_error *err);
void stki_writer_abort(stki_writer *writer); /* NULL is allowed */

#endif
