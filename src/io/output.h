/* output.h: a file that is being written. It appears under its final name only when everything is written, synced and
 * checked; until then it is NAME.tmp.PID.N beside it, removed on any failure. A device (/dev/full) is written in place.
 * Ordinary writes, never a mapping, so that a full disk is an error here and no signal. One thread at a time, but for
 * stki_output_write_at, which any number of threads may call at once.
 */
#ifndef STKI_OUTPUT_H
#define STKI_OUTPUT_H

#include <stdbool.h>
#include <stoker/status.h>

typedef struct stki_output stki_output;

stk_status stki_output_create(const char *path, stki_output **out, stk_error *err);
/* The name it will have, for messages, and the one it has now (for a library that writes by itself). */
const char *stki_output_path(const stki_output *output);
const char *stki_output_temporary(const stki_output *output);
/* At the end of what was appended; buffered. */
stk_status stki_output_append(stki_output *output, const void *bytes, int64_t count, stk_error *err);
/* Zeros up to a multiple of `alignment`. */
stk_status stki_output_pad(stki_output *output, int64_t alignment, stk_error *err);
int64_t stki_output_position(const stki_output *output); /* of the next append */
/* Anywhere; not buffered. Appending goes on where it was. */
stk_status stki_output_write_at(stki_output *output, int64_t offset, const void *bytes, int64_t count, stk_error *err);
/* Appending goes on at `offset`. */
stk_status stki_output_seek(stki_output *output, int64_t offset, stk_error *err);
/* Flushes, syncs, renames; frees the output in any case. After any failed write it fails too. */
stk_status stki_output_commit(stki_output *output, stk_error *err);
void stki_output_abort(stki_output *output); /* NULL is fine */

/* Tests: the n-th call of a kind from now fails with an errno. */
enum stki_output_call {
    STKI_OUTPUT_WRITE,
    STKI_OUTPUT_SYNC,
    STKI_OUTPUT_CLOSE,
    STKI_OUTPUT_RENAME,
    STKI_OUTPUT_SYNC_DIRECTORY,
    STKI_OUTPUT_CALLS
};
void stki_output_test_fail(enum stki_output_call call, int64_t n, int error_number);

#endif
