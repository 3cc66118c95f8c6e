/* hdf5_reader.h: samples of HDF5 data sets that are not plain arrays in a file. */
#ifndef STKI_HDF5_READER_H
#define STKI_HDF5_READER_H

#include "array.h"
#include "chunk_cache.h"
#include "hdf5_dataset.h"
#include "hdf5_written.h"

/* Returns the whole data set as an array. `file`: the data set's file if it is already open, or NULL. */
stk_status stki_hdf5_array_of(stki_hdf5_dataset *dataset, stki_file *file, const stki_reader_opts *opts,
                              stki_array *out, stk_error *err);
/* Fails with STK_E_LIMIT if `bytes` exceeds source.memory_limit. `what` names the data in the message, for example "one
 * sample". */
stk_status stki_hdf5_check_limit(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, int64_t bytes,
                                 const char *what, stk_error *err);
/* Creates a reader in which each data set whose path matches the pattern is one sample. Samples are sorted by path. */
stk_status stki_hdf5_groups_reader(stki_hdf5_file *file, const char *pattern, const stki_reader_opts *opts,
                                   stki_reader **out, stk_error *err);
/* Whether the name is a pattern. */
bool stki_hdf5_is_pattern(const char *name);
/* Creates a reader of samples along opts->axis of a chunked data set, which are read without the library. */
stk_status stki_hdf5_chunked_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err);
/* Creates a reader of samples of any data set, which are read through the library. */
stk_status stki_hdf5_library_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err);
/* Creates a reader in which each element of a one-dimensional data set is one sample. The elements must have varying
 * length (type.varying). */
stk_status stki_hdf5_values_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                   stk_error *err);
/* Wraps `inner` (takes ownership, even on failure) and applies the NetCDF/CF attributes of the data set: value *
 * scale_factor + add_offset in double precision, NaN if the stored value is _FillValue. The result is f64 if the data
 * set has f64, or 32-bit or 64-bit integers, otherwise f32. With only _Unsigned, the same bytes become integers of the
 * opposite signedness. A data set without such attributes is unchanged. STK_E_UNSUPPORTED: an attribute that violates
 * the conventions. */
stk_status stki_hdf5_cf_reader(const stki_hdf5_dataset *dataset, stki_reader *inner, stki_reader **out, stk_error *err);
/* Like stki_hdf5_cf_reader, for a whole array, whose contents are replaced. On failure, the array is unchanged. */
stk_status stki_hdf5_cf_array(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_array *array,
                              stk_error *err);
/* Returns the resulting dtype and whether values are computed (false: the stored bytes are delivered). */
stk_status stki_hdf5_cf_look(const stki_hdf5_dataset *dataset, stk_dtype *dtype, bool *computes, stk_error *err);

/* The geometry of the samples in a data set. */
typedef struct stki_hdf5_samples {
    int axis;
    int64_t count, step;          /* sample i starts at element i * step of the axis */
    int64_t length[STK_MAX_DIMS]; /* size of a sample along each axis of the data set */
    bool window;                  /* the sample keeps the axis */
} stki_hdf5_samples;

/* Sets *out and, in `base`, the count, the shape of a sample, row-major strides and max_bytes. STK_E_CONFIG: there is
 * no such axis. STK_E_UNSUPPORTED: the data set is a scalar, or the axis is inside an array type. */
stk_status stki_hdf5_samples_of(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_hdf5_samples *out,
                                stki_reader *base, stk_error *err);

/* Finds the elements along `axis` that have been written so far, for any data set that is read through the library. The
 * sources of a virtual data set must have been checked. *table: the stored chunks; empty if the data set is not chunked
 * or its chunks are unknown. STK_E_CORRUPT: the chunk index is inconsistent. */
stk_status stki_hdf5_dataset_written(const stki_hdf5_dataset *dataset, int axis, stki_hdf5_written *out,
                                     stki_hdf5_table *table, stk_error *err);
/* Implements stki_reader_ops.filled_until for these samples. */
int64_t stki_hdf5_filled_until(const stki_hdf5_samples *samples, const stki_hdf5_written *written, int64_t index);
/* Implements stki_reader_ops.fails_until for a sample `index` with a chunk that cannot be decoded. */
int64_t stki_hdf5_band_end(const stki_hdf5_samples *samples, const stki_hdf5_grid *grid, int64_t index);

/* For tests: the counters of a chunked reader. `direct`: number of chunks decoded without the cache. */
typedef struct stki_hdf5_counts {
    stki_chunk_counts cache;
    int64_t direct;
} stki_hdf5_counts;
bool stki_hdf5_reader_counts(const stki_reader *reader,
                             stki_hdf5_counts *out); /* returns false if the reader is not a chunked one */

#endif
