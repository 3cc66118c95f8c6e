/* sink_arrays.h: files with several named arrays that are written one after the other (writer.h): npz, HDF5, pt,
 * safetensors. Fields become arrays as described in field_arrays.h. These formats are written as a whole, without
 * marks.
 */
#ifndef STKI_SINK_ARRAYS_H
#define STKI_SINK_ARRAYS_H

#include "sink.h"

typedef struct stki_arrays_opts {
    int level;          /* compression level; 0: none */
    int64_t chunk_rows; /* HDF5: rows per chunk of arrays with one row per sample; 0: automatic */
} stki_arrays_opts;

/* Checks that the fields can be stored as .npy members (`npy`), or as arrays with up to 32 axes and any dtype except
 * `except`. */
stk_status stki_arrays_check(const stki_sink_opts *opts, bool npy, stk_dtype except, stk_error *err);
/* `each`: maximum size of an array's headers, without its name, which is counted twice. */
int64_t stki_arrays_measure(const stki_sink_opts *opts, int64_t each, const stki_sink_value *values, int64_t count,
                            stki_sink_size *size);
/* Like packed of sink.h. `shuffled`: bytes of equal significance are grouped first. */
int64_t stki_arrays_packed(int level, bool shuffled, const stki_sink_field *field, const void *bytes, int64_t size);
stk_status stki_arrays_open(const stki_sink_ops *ops, const stki_sink_opts *opts, const stki_arrays_opts *own,
                            stki_sink **out, stk_error *err);
stk_status stki_arrays_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err);
stk_status stki_arrays_finish(stki_sink *sink, stk_error *err);
int stki_arrays_files(const stki_sink *sink, stki_sink_file *out, int room);
void stki_arrays_destroy(stki_sink *sink);

#endif
