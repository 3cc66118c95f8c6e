/* stream_guards.h: tracks the streams whose work still uses a block of memory: one mark after the last use in each
 * stream. The memory may be overwritten once the streams have passed all marks. Any thread may add guards; the other
 * functions may be called only by the thread that reuses the memory, after the last guard has been added. */
#ifndef STKI_STREAM_GUARDS_H
#define STKI_STREAM_GUARDS_H

#include "device_table.h"
#include "thread.h"

typedef struct stki_stream_guards {
    stki_mutex lock;
    struct stki_stream_guard *guards; /* with reusable events; grows with the number of streams in use at once */
    int count, room;                  /* guards in use; guards allocated */
    bool stuck; /* work in a stream could be neither marked nor waited for: the guards never pass */
} stki_stream_guards;

void stki_guards_init(stki_stream_guards *guards);
/* Frees the guards, which must have passed or no longer matter. */
void stki_guards_fini(stki_stream_guards *guards);

/* Adds a guard after all work queued in `stream`, a device stream whose handle may already have been destroyed
 * (stream.h). Does not block unless a small allocation fails. Returns errors of the stream, but even then adds the
 * guard. */
stk_status stki_guards_add(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* Makes work queued in `stream` from now on wait for all guards. */
stk_status stki_guards_wait_in(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* Waits for all guards, `timeout_ns` in total. STK_E_TIMEOUT: one has not passed. Errors of their streams are ignored:
 * a failed stream no longer accesses memory. */
stk_status stki_guards_wait(stki_stream_guards *guards, int64_t timeout_ns, stk_error *err);
/* Removes all guards. */
void stki_guards_clear(stki_stream_guards *guards);

static inline bool stki_guards_any(const stki_stream_guards *guards)
{
    return guards->count > 0 || guards->stuck;
}

#endif
