/* output.h: a file that is being written. It appears under its final name only when everything is written, synced and
 * checked; until then it is NAME.tmp.PID.N beside it, removed on any failure. A device (/dev/full) is written in place.
 * Ordinary writes, never a mapping, so that a full disk is an error here and no signal. One thread at a time, but for
 * stki_output_write_at and stki_output_sync, which any number of threads may call at once.
 *
 * A held output lies under a name that its owner gave it and keeps that name: commit does not rename it and abort does
 * not remove it, so that work can go on after a crash from what was written before a stated place.
 */
#ifndef STKI_OUTPUT_H
#define STKI_OUTPUT_H

#include <stdbool.h>
#include <stoker/status.h>

typedef struct stki_output stki_output;

stk_status stki_output_create(const char *path, stki_output **out, stk_error *err);
/* A held one, under the name `temporary`; `path` is the name it will get, and stands in messages. keep -1: it
 * starts empty. Else the file must be there with `keep` bytes or more (STK_E_TRUNCATED); it is cut to them, and
 * appending goes on behind them. */
stk_status stki_output_hold(const char *path, const char *temporary, int64_t keep, stki_output **out, stk_error *err);
/* A new one: held where there is a `temporary`, else (NULL) as create makes it. */
stk_status stki_output_begin(const char *path, const char *temporary, stki_output **out, stk_error *err);
/* The name it will have, for messages, and the one it has now (for a library that writes by itself). */
const char *stki_output_path(const stki_output *output);
const char *stki_output_temporary(const stki_output *output);
/* At the end of what was appended; buffered. */
stk_status stki_output_append(stki_output *output, const void *bytes, int64_t count, stk_error *err);
/* The same, but long bytes are not copied: they are borrowed until stki_output_settle returns. */
stk_status stki_output_lend(stki_output *output, const void *bytes, int64_t count, stk_error *err);
/* Nothing is borrowed any more. Short bytes may still wait in the buffer. */
stk_status stki_output_settle(stki_output *output, stk_error *err);
/* All that was appended is in the system's hands: it outlives the process. */
stk_status stki_output_flush(stki_output *output, stk_error *err);
/* What was flushed before the call is on the disk. Any thread, also beside one that writes. */
stk_status stki_output_sync(stki_output *output, stk_error *err);
/* Zeros up to a multiple of `alignment`. */
stk_status stki_output_pad(stki_output *output, int64_t alignment, stk_error *err);
int64_t stki_output_position(const stki_output *output); /* of the next append */
/* Anywhere; not buffered. Appending goes on where it was. */
stk_status stki_output_write_at(stki_output *output, int64_t offset, const void *bytes, int64_t count, stk_error *err);
/* These bytes become zeros, where the file has them; a hole if the file system makes one. */
stk_status stki_output_clear(stki_output *output, int64_t offset, int64_t count, stk_error *err);
/* Appending goes on at `offset`. */
stk_status stki_output_seek(stki_output *output, int64_t offset, stk_error *err);
/* Flushes, syncs, renames unless held; frees the output in any case. After any failed write it fails too. */
stk_status stki_output_commit(stki_output *output, stk_error *err);
void stki_output_abort(stki_output *output); /* NULL is fine */
/* A whole file of this text and a newline, from create to commit. */
stk_status stki_output_text(const char *path, const char *text, stk_error *err);

#endif
