/* hdf5_reader.h: samples of HDF5 data sets that are no plain arrays in a file. */
#ifndef STKI_HDF5_READER_H
#define STKI_HDF5_READER_H

#include "array.h"
#include "chunk_cache.h"
#include "hdf5_dataset.h"

/* The whole of it. `file`: the data set's own, if it is open already; or NULL. */
stk_status stki_hdf5_array_of(stki_hdf5_dataset *dataset, stki_file *file, const stki_reader_opts *opts,
                              stki_array *out, stk_error *err);
/* STK_E_LIMIT: more than opts->memory_limit. */
stk_status stki_hdf5_check_limit(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, int64_t bytes,
                                 const char *what, stk_error *err);
/* Every data set whose path fits the pattern is one sample, in the order of their paths. */
stk_status stki_hdf5_groups_reader(stki_hdf5_file *file, const char *pattern, const stki_reader_opts *opts,
                                   stki_reader **out, stk_error *err);
/* Is it a pattern at all? */
bool stki_hdf5_is_pattern(const char *name);
/* Samples along opts->axis of a chunked data set, past the library. */
stk_status stki_hdf5_chunked_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err);
/* Samples of any data set, through the library. */
stk_status stki_hdf5_library_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                    stk_error *err);
/* Elements of different lengths (type.varying) of a data set of one axis, each a sample. */
stk_status stki_hdf5_values_reader(stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_reader **out,
                                   stk_error *err);
/* Takes over `inner` (also when it fails): its samples with the NetCDF/CF attributes of the data set applied, as
 * numbers: value * scale_factor + add_offset in double precision, NaN where the stored value is _FillValue. f64 where
 * the data set holds f64 or whole numbers of 32 or 64 bits, else f32. With _Unsigned alone the same bytes are integers
 * of the other sign. A data set without such attributes stays as it is. STK_E_UNSUPPORTED: an attribute that is not
 * what the conventions say. */
stk_status stki_hdf5_cf_reader(const stki_hdf5_dataset *dataset, stki_reader *inner, stki_reader **out, stk_error *err);
/* The same for the whole of it: replaces what `array` holds. When this fails it is as it was. */
stk_status stki_hdf5_cf_array(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_array *array,
                              stk_error *err);
/* The dtype that both give, and whether the values are computed (false: they are the stored bytes). */
stk_status stki_hdf5_cf_look(const stki_hdf5_dataset *dataset, stk_dtype *dtype, bool *computes, stk_error *err);

/* Where the samples lie along the axes of a data set. */
typedef struct stki_hdf5_samples {
    int axis;
    int64_t count, step;          /* sample i begins at element i * step of the axis */
    int64_t length[STK_MAX_DIMS]; /* of one sample along each axis of the data set */
    bool window;                  /* the axis stays in the sample */
} stki_hdf5_samples;

/* Fills samples, and in `base` the count and the shape of one sample, row-major strides and max_bytes.
 * STK_E_UNSUPPORTED, STK_E_RANGE: no such axis, or one inside an array type. */
stk_status stki_hdf5_samples_of(const stki_hdf5_dataset *dataset, const stki_reader_opts *opts, stki_hdf5_samples *out,
                                stki_reader *base, stk_error *err);

/* `filled_until` of a data set of which no element was written. */
int64_t stki_hdf5_all_filled(const stki_reader *base, int64_t index);

/* Tests: what the chunks of a chunked reader cost. `direct` were decoded past the cache, `library` asked of it. */
typedef struct stki_hdf5_counts {
    stki_chunk_counts cache;
    int64_t direct, library;
    bool walked; /* the table was read from the file, the library is not asked */
} stki_hdf5_counts;
bool stki_hdf5_reader_counts(const stki_reader *reader, stki_hdf5_counts *out); /* false: no chunked reader */

#endif
