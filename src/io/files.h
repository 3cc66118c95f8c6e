/* files.h: lists of files: patterns, and files that are one sample each. */
#ifndef STKI_FILES_H
#define STKI_FILES_H

#include "container.h"

typedef struct stki_file_list {
    char **paths; /* owned */
    int64_t count;
} stki_file_list;

/* Adds `path`; where no file has this name and it is a pattern (*, ?, [...]), all files it matches, sorted bytewise.
 * STK_E_NOT_FOUND: a pattern that matches nothing. */
stk_status stki_file_list_add(stki_file_list *list, const char *path, stk_error *err);
/* Adds `path` as it is, whether or not there is such a file. */
stk_status stki_file_list_add_file(stki_file_list *list, const char *path, stk_error *err);
void stki_file_list_fini(stki_file_list *list);

/* Sample i is the whole array (or opts->name's) of file i. Shapes may differ in axis 0 or more: then every file's
 * header is read here, in several threads where there are many. Files are opened when they are read; the last few stay
 * open. Samples come row-major and in native byte order, as views of the file where it holds them so.
 *
 * A file that cannot be read, or has another dtype or number of axes than the first file that can, fails when its
 * sample is read; the reader's note counts such files. If none can be read, this fails with the error of the first. The
 * list is copied; `open` opens a file. */
stk_status stki_files_open(const stki_file_list *list, stki_open_fn *open, const stki_reader_opts *opts,
                           stki_reader **out, stk_error *err);
/* One sample of text that fails with `error` whenever it is read. */
stk_status stki_unreadable_text(const char *path, const stk_error *error, stki_reader **out, stk_error *err);
/* Is it the file that is at fault, rather than the configuration or the state of the process? */
bool stki_file_is_at_fault(stk_status status);

#endif
