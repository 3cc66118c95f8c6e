/* files.h: lists of files, patterns, and files that are one sample each. */
#ifndef STKI_FILES_H
#define STKI_FILES_H

#include "container.h"

typedef struct stki_file_list {
    char **paths; /* owned */
    int64_t count;
} stki_file_list;

/* Adds `path`. If it does not exist and is a pattern (*, ?, [...]), adds all matching files instead, sorted bytewise.
 * STK_E_NOT_FOUND: a pattern without matches. */
stk_status stki_file_list_add(stki_file_list *list, const char *path, stk_error *err);
/* Adds `path` without interpreting it, whether or not it exists. */
stk_status stki_file_list_add_file(stki_file_list *list, const char *path, stk_error *err);
void stki_file_list_fini(stki_file_list *list);

/* Creates a reader in which sample i is the whole array (or the member opts->name) of file i. Shapes may differ, in
 * which case this function reads the headers of all files, with several threads if there are many files. A file is
 * opened when its sample is read; the most recently used files are kept open. Samples are row-major in native byte
 * order, as views of the file if it stores them that way.
 *
 * A file that cannot be read, or that differs from the first readable file in dtype or number of axes, fails when its
 * sample is read; the reader's note counts such files. If no file can be read, fails with the error of the first one.
 * The list is copied. `open` is called to open a file. */
stk_status stki_files_open(const stki_file_list *list, stki_open_fn *open, const stki_reader_opts *opts,
                           stki_reader **out, stk_error *err);
/* Creates a reader of one text sample; reading it always fails with `error`. */
stk_status stki_unreadable_text(const char *path, const stk_error *error, stki_reader **out, stk_error *err);
/* Whether the status is an error in the file, rather than in the config or the state of the process. */
bool stki_file_is_at_fault(stk_status status);

#endif
