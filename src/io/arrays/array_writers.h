/* array_writers.h: the writers (writer.h) of the formats in this folder. `opts` may be NULL. */
#ifndef STKI_ARRAY_WRITERS_H
#define STKI_ARRAY_WRITERS_H

#include "writer.h"

stk_status stki_npy_array_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_npz_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_pt_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_safetensors_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
stk_status stki_raw_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);

#endif
