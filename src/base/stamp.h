/* stamp.h: what a file is at open, told from outside: size, time of writing, inode. Whoever reads it through a library
 * that takes missing bytes for zeros asks afterwards whether it still is that. Any thread. */
#ifndef STKI_STAMP_H
#define STKI_STAMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_stamp {
    int64_t size, mtime_ns;
    uint64_t device, inode;
} stki_stamp;

/* The path from the root, since the working directory may change. Free by stki_free. *out NULL with STK_OK: there is
 * no way to say where the working directory is. */
stk_status stki_stamp_path(const char *path, char **out, stk_error *err);
stk_status stki_stamp_take(const char *path, stki_stamp *out, stk_error *err);
/* "N bytes written at TIME UTC", in `buffer`. */
const char *stki_stamp_text(char *buffer, int size, int64_t bytes, int64_t mtime_ns);
/* Does the path lead to that file or folder now, by whatever name or link? */
bool stki_stamp_is_of(const stki_stamp *stamp, const char *path);
/* Do both lead to one that is there? */
bool stki_is_one_file(const char *a, const char *b);
/* Positive: no file has that name any more. STK_E_TRUNCATED: it is shorter. STK_E_CORRUPT: written to, or replaced by
 * another file. `name` is that of the file in the message. */
stk_status stki_stamp_check(const stki_stamp *stamp, const char *path, const char *name, int64_t record,
                            stk_error *err);

/* The same of an open file. `itself`: only that it is that file, which somebody may write to. */
stk_status stki_stamp_check_open(const stki_stamp *stamp, int fd, bool itself, const char *name, int64_t record,
                                 stk_error *err);

#endif
