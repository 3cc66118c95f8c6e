/* npy.h: what .npy files offer beyond the reader table. */
#ifndef STKI_NPY_H
#define STKI_NPY_H

#include "container.h"

/* The whole array of a file as one tensor, of any number of axes, 0 included. It is read-only, keeps its file open and
 * mapped through its storage until the last reference goes, and is flagged STK_TENSOR_SWAPPED where the file is
 * big-endian. Where the file can't be mapped (or opts ask for pread) it is a copy in memory. A bool file may hold bytes
 * other than 0 and 1: each is true, and copies and casts make it 1. `opts` may be NULL. */
stk_status stki_npy_open_array(const char *path, const stki_reader_opts *opts, stk_tensor *out, stk_error *err);
stk_status stki_npy_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err);
stk_status stki_npy_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
