/* sink_columns.h: one file per array: .npy and raw files. A data set with one array is the file at the job's path; with
 * several, the files are NAME.PART.EXTENSION. */
#ifndef STKI_SINK_COLUMNS_H
#define STKI_SINK_COLUMNS_H

#include "sink.h"

/* `header`: each file has an .npy header. The other functions are used by the tables of sink_npy.c and sink_raw.c. */
stk_status stki_columns_check(const stki_sink_opts *opts, bool header, stk_error *err);
int64_t stki_columns_measure(const stki_sink_opts *opts, bool header, const stki_sink_value *values, int64_t count,
                             stki_sink_size *size);
char *stki_columns_name(const stki_sink_opts *opts, int index);
stk_status stki_columns_open(const stki_sink_ops *ops, const stki_sink_opts *opts, bool header, const json_t *mark,
                             stki_sink **out, stk_error *err);
stk_status stki_columns_append(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err);
stk_status stki_columns_mark(stki_sink *sink, json_t **out, stk_error *err);
stk_status stki_columns_sync(stki_sink *sink, stk_error *err);
stk_status stki_columns_finish(stki_sink *sink, stk_error *err);
bool stki_columns_settled(const stki_sink *sink);
int stki_columns_files(const stki_sink *sink, stki_sink_file *out, int room);
void stki_columns_destroy(stki_sink *sink);

#endif
