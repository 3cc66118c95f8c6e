/* tar_write.h: tar archives member by member onto an output, as Python's tarfile writes them by default: ustar headers,
 * and pax records before members whose names are longer than 100 bytes or no ASCII, or whose sizes have more than 11
 * octal digits. Times and owners are 0, so that equal members give equal archives. One thread at a time.
 */
#ifndef STKI_TAR_WRITE_H
#define STKI_TAR_WRITE_H

#include "output.h"

/* A key that readers find again in KEY.EXTENSION: its last part has no dot; no absolute path, no "..", no name that
 * WebDataset takes for a note. `record` stands in messages. */
stk_status stki_tar_check_key(const char *key, const char *path, int64_t record, stk_error *err);
/* An extension that readers give back as it is: lower case, no slash, at most 231 bytes. */
stk_status stki_tar_check_extension(const char *extension, const char *path, stk_error *err);

/* Bytes of a member in the archive, what stands before and behind its `size` bytes among them. `name_bytes`: of
 * KEY.EXTENSION. */
int64_t stki_tar_member_bytes(int64_t name_bytes, bool ascii, int64_t size);
/* The bytes of an archive whose members have so many together. */
int64_t stki_tar_archive_bytes(int64_t members);
/* What stands before the `size` bytes of member KEY.EXTENSION. */
stk_status stki_tar_put_header(stki_output *output, const char *key, const char *extension, int64_t size,
                               stk_error *err);
/* What stands behind them. */
stk_status stki_tar_put_tail(stki_output *output, stk_error *err);
/* The end of the archive: two blocks of zeros, filled up to 10,240 bytes. */
stk_status stki_tar_put_end(stki_output *output, stk_error *err);

#endif
