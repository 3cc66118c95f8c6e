/* stamp.h: the identity of a file when it was opened: size, modification time, inode. Some libraries substitute zeros
 * for missing bytes; code that reads a file through them checks afterwards that the file is unchanged. Thread-safe. */
#ifndef STKI_STAMP_H
#define STKI_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_stamp {
    int64_t size, mtime_ns;
    uint64_t device, inode;
} stki_stamp;

/* The absolute path, because the working directory may change. The caller frees *out with stki_free. *out is NULL with
 * STK_OK if the working directory cannot be determined. */
stk_status stki_stamp_path(const char *path, char **out, stk_error *err);
stk_status stki_stamp_take(const char *path, stki_stamp *out, stk_error *err);
/* Writes "N bytes written at TIME UTC" to `buffer`. */
const char *stki_stamp_text(char *buffer, int size, int64_t bytes, int64_t mtime_ns);
/* Whether the path now refers to that file or folder, by any name or link. */
bool stki_stamp_is_of(const stki_stamp *stamp, const char *path);
/* Whether both paths refer to the same existing file. */
bool stki_is_one_file(const char *a, const char *b);
/* Checks that the file is unchanged. A positive status: there is no longer a file with that name. STK_E_TRUNCATED: it
 * is shorter. STK_E_CORRUPT: it was modified, or replaced by another file. `name`: the file's name in the message. */
stk_status stki_stamp_check(const stki_stamp *stamp, const char *path, const char *name, int64_t record,
                            stk_error *err);

/* Like stki_stamp_check, for an open file. If `itself`, it only checks that the file is the same one; it may have been
 * modified. */
stk_status stki_stamp_check_open(const stki_stamp *stamp, int fd, bool itself, const char *name, int64_t record,
                                 stk_error *err);

#endif
