/* tar_write.h: writes tar archives member by member to an output, as Python's tarfile does by default: ustar headers,
 * and pax records before members whose names are longer than 100 bytes or not ASCII, or whose sizes have more than 11
 * octal digits. Times and owners are 0, so that identical members produce identical archives. Not thread-safe. */
#ifndef STKI_TAR_WRITE_H
#define STKI_TAR_WRITE_H

#include "output.h"

/* Checks that readers can recover the key from KEY.EXTENSION: its last part has no dot, and it is not an absolute path,
 * has no "..", and is not a name that WebDataset treats as metadata. `record` is for messages. */
stk_status stki_tar_check_key(const char *key, const char *path, int64_t record, stk_error *err);
/* Checks that readers return the extension unchanged: it is in lower case, has no slash and at most 231 bytes. */
stk_status stki_tar_check_extension(const char *extension, const char *path, stk_error *err);

/* Returns the size of a member in the archive, including its header and padding. `name_bytes`: length of
 * KEY.EXTENSION. */
int64_t stki_tar_member_bytes(int64_t name_bytes, bool ascii, int64_t size);
/* Returns the size of an archive whose members have this total size. */
int64_t stki_tar_archive_bytes(int64_t members);
/* Writes the header of member KEY.EXTENSION with `size` bytes. */
stk_status stki_tar_put_header(stki_output *output, const char *key, const char *extension, int64_t size,
                               stk_error *err);
/* Writes the padding after a member. */
stk_status stki_tar_put_tail(stki_output *output, stk_error *err);
/* Writes the end of the archive: two blocks of zeros, then padding to a multiple of 10,240 bytes. */
stk_status stki_tar_put_end(stki_output *output, stk_error *err);

#endif
