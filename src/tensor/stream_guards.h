/* stream_guards.h: which work of its users still uses some memory: a mark behind the last use in each stream. The
 * memory may be written again when the streams have passed all of them. Any thread may add; the other functions are for
 * the thread that reuses the memory, once nobody adds any more.
 */
#ifndef STKI_STREAM_GUARDS_H
#define STKI_STREAM_GUARDS_H

#include "device_table.h"
#include "thread.h"

typedef struct stki_stream_guards {
    stki_mutex lock;
    struct stki_stream_guard *guards; /* with events that are used again; grows with the streams used at once */
    int count, room;                  /* in use; made */
    bool stuck;                       /* a stream could neither be remembered nor waited for: never passed */
} stki_stream_guards;

void stki_guards_init(stki_stream_guards *guards);
/* The guards must have passed, or not be needed. */
void stki_guards_fini(stki_stream_guards *guards);

/* Behind all that is queued in `stream`, a stream of a device, which may be one that only the library holds (stream.h).
 * Does not block, unless there is no memory for a few bytes. An error of the stream is returned; the guard is there. */
stk_status stki_guards_add(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* Work that is queued in `stream` from now on runs after all guards. */
stk_status stki_guards_wait_in(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* Waits for all guards, for that long altogether. STK_E_TIMEOUT: one has not passed. Errors of their streams are not
 * returned: a failed stream does not touch memory any more. */
stk_status stki_guards_wait(stki_stream_guards *guards, int64_t timeout_ns, stk_error *err);
/* Removes all guards. */
void stki_guards_clear(stki_stream_guards *guards);

static inline bool stki_guards_any(const stki_stream_guards *guards)
{
    return guards->count > 0 || guards->stuck;
}

#endif
