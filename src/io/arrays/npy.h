/* npy.h: .npy files. */
#ifndef STKI_NPY_H
#define STKI_NPY_H

#include "container.h"

/* Opens an .npy file as a container with one member. The array keeps its file open and mapped, and is flagged
 * STK_TENSOR_SWAPPED if the file is big-endian. A bool file may contain bytes other than 0 and 1, which mean true;
 * copies and casts convert them to 1. */
stk_status stki_npy_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
