/* writers.h: creates writers of any format in the table of writers.c. */
#ifndef STKI_WRITERS_H
#define STKI_WRITERS_H

#include "writer.h"

/* Creates a writer. `format`: "npy", "npz", …; NULL: determined by the extension of `path`. */
stk_status stki_writer_create(const char *path, const char *format, const stki_writer_opts *opts, stki_writer **out,
                              stk_error *err);

#endif
