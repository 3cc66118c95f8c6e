/* host_stream.h: streams of the host device. A stream is a thread and the queue of work in front of it. Work is a
 * function and a small struct for it, which is copied into the queue; a place in a stream is how much had been queued
 * by then, so an event is two numbers and nobody has to be told when it is used again or destroyed.
 *
 * Work that fails makes its stream fail for good: what is queued behind it is passed over, and whoever asks the stream,
 * or an event behind the failure, is told of it once the stream has stopped touching memory. A stream that waits for
 * such an event fails with the same error.
 */
#ifndef STKI_HOST_STREAM_H
#define STKI_HOST_STREAM_H

#include "device_table.h"
#include "host_device.h"
#include "thread.h"

/* The largest struct that work may come with, bytes. */
enum { STKI_HOST_JOB_MAX = 4096 };

typedef struct stki_host_work {
    /* In the stream's thread, or the caller's where the stream is NULL. */
    stk_status (*run)(void *job, stk_error *err);
    void (*drop)(void *job); /* instead of run, in a stream that has failed; NULL: nothing to let go of */
} stki_host_work;

/* Queues work; `job` is copied. A NULL stream: it is done before the call returns. After a failure nothing is queued;
 * the error may be that of earlier work. `out_position`, which may be NULL, is the place behind it. */
stk_status stki_host_submit(stk_device *device, stk_stream *stream, const stki_host_work *work, const void *job,
                            int64_t job_bytes, int64_t *out_position, stk_error *err);

/* ---- streams ---- */

typedef struct stki_host_stream {
    /* fixed after create */
    stk_device *device;
    int64_t generation; /* of forks: a child has the struct but not the thread */
    int64_t number;     /* grows with each stream of the process */

    stki_counter refs;             /* the handle, the thread, and every mark */
    struct stki_host_stream *next; /* guarded by the lock of the list */

    stki_mutex lock; /* guards the rest */
    stki_cond changed, passed;
    char *ring;
    int64_t room, head, tail; /* bytes; head and tail run freely, the place is their remainder by `room` */
    int64_t queued, done;     /* pieces of work ever */
    int64_t failed_at;        /* number of the piece that failed; 0: none */
    stk_error error;
    int waiting; /* threads that wait for `passed` */
    bool closing;
} stki_host_stream;

/* What the caller has. It is gone as soon as it is destroyed, whatever the stream still holds, so that a later use
 * shows under a sanitizer as it would on a GPU. */
typedef struct stki_host_handle {
    stk_stream stream; /* must be first */
    stki_host_stream *queue;
} stki_host_handle;

static inline stki_host_stream *stki_host_stream_of(stk_stream *stream) /* NULL: none */
{
    return stream ? ((stki_host_handle *)(void *)stream)->queue : NULL;
}

/* Before the first stream. */
void stki_host_streams_init(void);
stk_status stki_host_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err);
void stki_host_stream_destroy(stk_device *device, stk_stream *stream);
stk_status stki_host_stream_query(stk_device *device, stk_stream *stream, stk_error *err);
/* Waits for all that is queued in every stream of the device, destroyed ones included. The error is the first one. */
stk_status stki_host_synchronize(stk_device *device, stk_error *err);

/* ---- places in streams ---- */

typedef struct stki_host_mark {
    stki_host_stream *stream; /* NULL: passed. Otherwise the mark holds a reference. */
    int64_t position;
} stki_host_mark;

void stki_host_mark_retain(const stki_host_mark *mark);
void stki_host_mark_release(const stki_host_mark *mark);
stk_status stki_host_mark_query(const stki_host_mark *mark, stk_error *err); /* STK_AGAIN: not yet */
/* What is queued in `stream` from now on comes after the mark. */
stk_status stki_host_stream_wait_mark(stk_stream *stream, const stki_host_mark *mark, stk_error *err);

/* ---- events (host_event.c) ---- */

stk_status stki_host_stream_wait(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err);
stk_status stki_host_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err);
void stki_host_event_destroy(stk_device *device, stk_event *event);
stk_status stki_host_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err);
stk_status stki_host_event_query(stk_device *device, stk_event *event, stk_error *err);
stk_status stki_host_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                   stk_error *err);

#endif
