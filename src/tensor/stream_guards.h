/* stream_guards.h: which work of its users still uses some memory: an event behind the last use in each stream. The
 * memory may be written again when all of them have passed. Any thread may add; the others are for whoever gives the
 * memory out again, once nobody adds any more.
 */
#ifndef STKI_STREAM_GUARDS_H
#define STKI_STREAM_GUARDS_H

#include "device_table.h"
#include "thread.h"

typedef struct stki_stream_guards {
    stki_mutex lock;
    struct stki_stream_guard *guards; /* events stay for the next time; grows with the streams that use it at once */
    int count, room;                  /* recorded; made */
} stki_stream_guards;

void stki_guards_init(stki_stream_guards *guards);
/* The events must have passed, or nobody must need them. */
void stki_guards_fini(stki_stream_guards *guards);

/* Behind all that is queued in `stream`, which must be a stream of a device and may be one that the library only holds
 * (stream.h). Where no event can be recorded, it waits for the stream. The error is that of the stream. */
stk_status stki_guards_add(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* What is queued in `stream` from now on comes behind all guards. */
stk_status stki_guards_wait_in(stki_stream_guards *guards, stk_stream *stream, stk_error *err);
/* Waits for all guards. STK_E_TIMEOUT: one has not passed in that time. Any other error means that its stream has
 * failed and does not touch memory any more; it is passed over. */
stk_status stki_guards_wait(stki_stream_guards *guards, int64_t timeout_ns, stk_error *err);
/* There are none any more. */
void stki_guards_clear(stki_stream_guards *guards);

static inline bool stki_guards_any(const stki_stream_guards *guards)
{
    return guards->count > 0;
}

#endif
