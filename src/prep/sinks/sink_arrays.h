/* sink_arrays.h: files of several named arrays, written one array after the other (writer.h): npz, HDF5, pt,
 * safetensors. A field becomes the arrays that field_arrays.h says. They are written in one go.
 */
#ifndef STKI_SINK_ARRAYS_H
#define STKI_SINK_ARRAYS_H

#include "sink.h"

typedef struct stki_arrays_opts {
    int level;          /* of compression, 0: none */
    int64_t chunk_rows; /* HDF5, of the arrays that have a row a sample; 0: chosen */
} stki_arrays_opts;

/* Can .npy members (`npy`), or arrays of 32 axes and any dtype but `except`, hold these fields? */
stk_status stki_arrays_check(const stki_sink_opts *opts, bool npy, stk_dtype except, stk_error *err);
/* `each`: bytes that an array's header and name take at most, but for the name twice. */
int64_t stki_arrays_measure(const stki_sink_opts *opts, int64_t each, const stki_sink_value *values, int64_t count,
                            stki_sink_size *size);
/* As packed of sink.h. `shuffled`: bytes of equal significance are put together first. */
int64_t stki_arrays_packed(int level, bool shuffled, const stki_sink_field *field, const void *bytes, int64_t size);
stk_status stki_arrays_open(const stki_sink_ops *ops, const stki_sink_opts *opts, const stki_arrays_opts *own,
                            stki_sink **out, stk_error *err);
stk_status stki_arrays_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err);
stk_status stki_arrays_finish(stki_sink *sink, stk_error *err);
int stki_arrays_files(const stki_sink *sink, stki_sink_file *out, int room);
void stki_arrays_destroy(stki_sink *sink);

#endif
