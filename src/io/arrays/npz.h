/* npz.h: .npz files, zip archives of .npy members. */
#ifndef STKI_NPZ_H
#define STKI_NPZ_H

#include "container.h"

/* Whether this is an empty archive, or one whose first member is an .npy file. */
bool stki_npz_matches(const char *head, int64_t length);
stk_status stki_npz_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Opens the container over an open file. Takes ownership of the file, even on failure. */
stk_status stki_npz_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
