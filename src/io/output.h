/* output.h: writes a file, which gets its final name only after everything has been written, synced and checked. Until
 * then it is named NAME.tmp.PID.N and is in the same folder; it is removed on failure. A device, such as /dev/full, is
 * written in place. Uses ordinary writes and never a mapping, so that a full disk is an error instead of a signal. Not
 * thread-safe except stki_output_write_at and stki_output_sync, which any number of threads may call at once.
 *
 * A held output keeps a name given by its owner: commit does not rename it and abort does not remove it, so that work
 * can be resumed at a known offset after a crash. */
#ifndef STKI_OUTPUT_H
#define STKI_OUTPUT_H

#include <stdbool.h>
#include <stoker/status.h>

typedef struct stki_output stki_output;

stk_status stki_output_create(const char *path, stki_output **out, stk_error *err);
/* Opens a held output under the name `temporary`. `path`: its later name, for messages. keep -1: starts with an empty
 * file. Otherwise the file is truncated to `keep` bytes, and appending continues there; STK_E_TRUNCATED: it is
 * shorter. */
stk_status stki_output_hold(const char *path, const char *temporary, int64_t keep, stki_output **out, stk_error *err);
/* Creates an empty held output if `temporary` is not NULL; otherwise the same as stki_output_create. */
stk_status stki_output_begin(const char *path, const char *temporary, stki_output **out, stk_error *err);
/* Return the final name, for messages, and the current name, for a library that writes the file itself. */
const char *stki_output_path(const stki_output *output);
const char *stki_output_temporary(const stki_output *output);
/* Appends bytes through the buffer. */
stk_status stki_output_append(stki_output *output, const void *bytes, int64_t count, stk_error *err);
/* Like stki_output_append, but long runs of bytes are not copied: they must remain valid until stki_output_settle
 * returns. */
stk_status stki_output_lend(stki_output *output, const void *bytes, int64_t count, stk_error *err);
/* Writes all borrowed bytes. Short runs may remain in the buffer. */
stk_status stki_output_settle(stki_output *output, stk_error *err);
/* Passes all appended bytes to the operating system, so that they survive the process. */
stk_status stki_output_flush(stki_output *output, stk_error *err);
/* Waits until everything flushed before the call is on disk. Can be called from any thread, even while another thread
 * writes. */
stk_status stki_output_sync(stki_output *output, stk_error *err);
/* Appends zeros up to the next multiple of `alignment`. */
stk_status stki_output_pad(stki_output *output, int64_t alignment, stk_error *err);
int64_t stki_output_position(const stki_output *output); /* offset of the next append */
/* Writes at any offset, unbuffered. Does not affect the position for appending. */
stk_status stki_output_write_at(stki_output *output, int64_t offset, const void *bytes, int64_t count, stk_error *err);
/* Replaces existing bytes with zeros, or with a hole if the file system supports holes. */
stk_status stki_output_clear(stki_output *output, int64_t offset, int64_t count, stk_error *err);
/* Sets the position for appending. */
stk_status stki_output_seek(stki_output *output, int64_t offset, stk_error *err);
/* Flushes, syncs and, unless held, renames; frees the output in any case. Fails after any failed write. If only the
 * sync of the folder after the rename fails, the file is kept: it is complete, but its name might not survive a crash.
 */
stk_status stki_output_commit(stki_output *output, stk_error *err);
void stki_output_abort(stki_output *output); /* NULL is allowed */
/* Commits the output if `status`, that of its contents, is STK_OK; otherwise aborts it and returns `status`. */
stk_status stki_output_end(stki_output *output, stk_status status, stk_error *err);
/* Syncs the folder of a file, so that a new name survives a crash. */
stk_status stki_sync_folder_of(const char *path, stk_error *err);
/* Writes a whole file that contains this text and a newline. */
stk_status stki_output_text(const char *path, const char *text, stk_error *err);

#endif
