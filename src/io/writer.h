/* writer.h: files of named arrays, written one array after the other. Every such format implements this table; the
 * public face is dataset.h. A writer belongs to one thread at a time.
 */
#ifndef STKI_WRITER_H
#define STKI_WRITER_H

#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_writer stki_writer;

typedef struct stki_writer_opts {
    int level;          /* deflate 1 to 9; 0: none */
    int64_t chunk_rows; /* HDF5: samples a chunk; 0: contiguous without compression, else chosen */
    int threads;        /* that compress; 0: as many as there are processors */
    bool alias;         /* dtypes that the format cannot name are written as raw bytes (npy, npz) */
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
};

/* One whole tensor of any strides, through begin, append and end. */
stk_status stki_writer_add(stki_writer *writer, const char *name, const stk_tensor *tensor, stk_error *err);

stk_status stki_npz_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_pt_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_safetensors_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_hdf5_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);

#endif
