/* pt.h: .pt and .pth files as torch.save writes them: zip archives of a pickle and storages, and the legacy format. */
#ifndef STKI_PT_H
#define STKI_PT_H

#include "container.h"

/* Whether this is an archive whose first member is one of torch's, or the legacy format (pt_legacy.h). */
bool stki_pt_matches(const char *head, int64_t length);
stk_status stki_pt_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Opens the container over an open file. Takes ownership of the file, even on failure. */
stk_status stki_pt_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
