/* writers.h: a writer of any format; writers.c has the table. */
#ifndef STKI_WRITERS_H
#define STKI_WRITERS_H

#include "writer.h"

/* `format` is "npy", "npz", …, or NULL: by the ending of `path`. */
stk_status stki_writer_create(const char *path, const char *format, const stki_writer_opts *opts, stki_writer **out,
                              stk_error *err);

#endif
