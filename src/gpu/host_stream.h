/* host_stream.h: streams of the host device. A stream is a thread with a queue of work. Work is a function and a small
 * struct, which is copied into the queue. A position in a stream is the number of work items queued so far, so an event
 * is just two numbers, and reusing or destroying it needs no notification. If work fails, its stream fails permanently:
 * later work is skipped, and queries of the stream, or of an event recorded after the failure, return the error once
 * the stream no longer accesses memory. A stream that waits for an event recorded after the failure
 * fails with the same error. */
#ifndef STKI_HOST_STREAM_H
#define STKI_HOST_STREAM_H

#include "device_table.h"
#include "host_device.h"
#include "thread.h"

/* Maximum size of a work item's struct, bytes. */
enum { STKI_HOST_JOB_MAX = 4096 };

typedef struct stki_host_work {
    /* Runs in the stream's thread, or in the calling thread if the stream is NULL. */
    stk_status (*run)(void *job, stk_error *err);
    void (*drop)(void *job); /* called instead of run in a stream that has failed; NULL: nothing to free */
} stki_host_work;

/* Queues work; `job` is copied. With a NULL stream it is complete before the call returns. After a failure, nothing is
 * queued; the error may come from earlier work. `out_position`, which may be NULL, receives the position after the
 * work. */
stk_status stki_host_submit(stk_device *device, stk_stream *stream, const stki_host_work *work, const void *job,
                            int64_t job_bytes, int64_t *out_position, stk_error *err);

/* ---- streams ---- */

typedef struct stki_host_stream {
    /* constant after creation */
    stk_device *device;
    int64_t generation; /* fork generation: a child process has the struct but not the thread */
    int64_t number;     /* unique in the process */

    stki_counter refs;             /* references: the handle, the thread and every mark */
    struct stki_host_stream *next; /* guarded by the lock of the list */

    stki_mutex lock; /* guards everything below */
    stki_cond changed, passed;
    char *ring;
    int64_t room, head,
        tail; /* bytes; head and tail only increase; their offset in the ring is the remainder modulo `room` */
    int64_t queued, done; /* total numbers of work items */
    int64_t failed_at;    /* number of the item that failed; 0: none */
    stk_error error;
    int waiting; /* number of threads waiting for `passed` */
    bool closing;
} stki_host_stream;

/* The caller's handle. Destroying it frees it immediately, even if the stream is still in use, so that sanitizers
 * detect a later use, which would fail on a GPU. */
typedef struct stki_host_handle {
    stk_stream stream; /* must be first */
    stki_host_stream *queue;
} stki_host_handle;

static inline stki_host_stream *stki_host_stream_of(stk_stream *stream) /* NULL: none */
{
    return stream ? ((stki_host_handle *)(void *)stream)->queue : NULL;
}

/* Call before the first stream is created. */
void stki_host_streams_init(void);
stk_status stki_host_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err);
void stki_host_stream_destroy(stk_device *device, stk_stream *stream);
stk_status stki_host_stream_query(stk_device *device, stk_stream *stream, stk_error *err);
/* Waits for all work in every stream of the device, including destroyed ones. Returns the first error. */
stk_status stki_host_synchronize(stk_device *device, stk_error *err);

/* ---- positions in streams ---- */

typedef struct stki_host_mark {
    stki_host_stream *stream; /* NULL: already passed. Otherwise the mark holds a reference. */
    int64_t position;
} stki_host_mark;

void stki_host_mark_retain(const stki_host_mark *mark);
void stki_host_mark_release(const stki_host_mark *mark);
stk_status stki_host_mark_query(const stki_host_mark *mark, stk_error *err); /* STK_AGAIN: not yet */
stk_status stki_host_mark_wait(const stki_host_mark *mark, stk_error *err);
/* Makes work queued in `stream` from now on wait for the mark. */
stk_status stki_host_stream_wait_mark(stk_stream *stream, const stki_host_mark *mark, stk_error *err);

/* ---- events (host_event.c) ---- */

stk_status stki_host_stream_wait(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err);
stk_status stki_host_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err);
void stki_host_event_destroy(stk_device *device, stk_event *event);
stk_status stki_host_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err);
stk_status stki_host_event_query(stk_device *device, stk_event *event, stk_error *err);
stk_status stki_host_event_wait(stk_device *device, stk_event *event, stk_error *err);
stk_status stki_host_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                   stk_error *err);

#endif
