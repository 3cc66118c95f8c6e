/* host_stream.c: see host_stream.h. The queue is a ring buffer of records: a header followed by its job. A record never
 * wraps around the end of the ring (a header without work fills the rest), and a full ring is copied to one of twice
 * the size, so that nothing is allocated in the steady state. The thread copies a job out of the ring before it runs
 * it. */
#include "host_stream.h"
#include "clock.h"
#include "error.h"
#include <inttypes.h>
#include <string.h>

enum { FIRST_ROOM = 4096, UNIT = 16 };

typedef struct header {
    _Alignas(UNIT) stki_host_work work; /* run NULL: fills the end of the ring */
    int64_t bytes;                      /* including this header */
} header;

_Static_assert(sizeof(header) % UNIT == 0, "jobs follow their header and must be aligned for any type");

/* ---- all streams ---- */

/* Streams of all host devices. A fork holds the lock, so that the child can use the list; it skips the parent's
 * streams.
 */
static stki_mutex list_lock = {PTHREAD_MUTEX_INITIALIZER};
static stki_host_stream *list; /* guarded by list_lock */
static int64_t numbers;        /* guarded by list_lock */

static void hold_over_forks(void)
{
    static stki_fork_hold hold;

    stki_fork_hold_add(&hold, &list_lock);
}

void stki_host_streams_init(void)
{
    static stki_once once = STKI_ONCE;

    stki_run_once(&once, hold_over_forks);
}

static void list_add(stki_host_stream *stream)
{
    stki_lock(&list_lock);
    stream->number = ++numbers;
    stream->next = list;
    list = stream;
    stki_unlock(&list_lock);
}

static void list_remove(stki_host_stream *stream)
{
    stki_lock(&list_lock);
    for (stki_host_stream **at = &list; *at; at = &(*at)->next) {
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    }
    stki_unlock(&list_lock);
}

/* Returns a new reference to the device's stream with the smallest number above `number`; NULL: there are no more. */
static stki_host_stream *list_after(const stk_device *device, int64_t number)
{
    stki_host_stream *found = NULL;

    stki_lock(&list_lock);
    for (stki_host_stream *at = list; at; at = at->next)
        if (at->device == device && at->generation == stki_fork_generation() && at->number > number &&
            (!found || at->number < found->number))
            found = at;
    if (found)
        stki_ref(&found->refs);
    stki_unlock(&list_lock);
    return found;
}

static void release(stki_host_stream *stream)
{
    if (!stki_unref(&stream->refs))
        return;
    stki_cond_fini(&stream->changed);
    stki_cond_fini(&stream->passed);
    stki_mutex_fini(&stream->lock);
    stki_free(stream->ring);
    stki_free(stream);
}

/* ---- the ring ---- */

static header *header_at(char *ring, int64_t room, int64_t position)
{
    return (header *)(void *)(ring + position % room);
}

static int64_t padded(int64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

/* Returns the number of bytes to skip at the end of the ring; 0 if a record of `bytes` fits there. */
static int64_t rest(int64_t room, int64_t tail, int64_t bytes)
{
    int64_t left = room - tail % room;

    return left < bytes ? left : 0;
}

static bool fits(int64_t room, int64_t head, int64_t tail, int64_t bytes)
{
    return room > 0 && tail + rest(room, tail, bytes) + bytes - head <= room;
}

/* Returns the address for a record of `bytes`. If the end of the ring is shorter than a header, it is skipped without
 * one. */
static void *put_piece(char *ring, int64_t room, int64_t *tail, int64_t bytes)
{
    int64_t fill = rest(room, *tail, bytes);
    void *piece;

    if (fill >= (int64_t)sizeof(header))
        *header_at(ring, room, *tail) = (header){.bytes = fill};
    piece = ring + (*tail + fill) % room;
    *tail += fill + bytes;
    return piece;
}

/* Returns the record at *head, after skipping the unused end of the ring. */
static header *first_piece(char *ring, int64_t room, int64_t *head)
{
    int64_t left = room - *head % room;

    if (left < (int64_t)sizeof(header))
        *head += left;
    else if (!header_at(ring, room, *head)->work.run)
        *head += header_at(ring, room, *head)->bytes;
    return header_at(ring, room, *head);
}

static stk_status grow(stki_host_stream *stream, int64_t bytes, stk_error *err)
{
    int64_t room = stream->room ? 2 * stream->room : FIRST_ROOM, head = stream->head, tail = 0;
    char *ring;

    while (room - (stream->tail - stream->head) < 2 * bytes)
        room *= 2;
    ring = stki_resize(NULL, room);
    if (!ring)
        return stki_fail_memory(err, room, "work queued in a stream of the host device");
    while (head < stream->tail) {
        header *piece = first_piece(stream->ring, stream->room, &head);
        memcpy(put_piece(ring, room, &tail, piece->bytes), piece, (size_t)piece->bytes);
        head += piece->bytes;
    }
    stki_free(stream->ring);
    stream->ring = ring;
    stream->room = room;
    stream->head = 0;
    stream->tail = tail;
    return STK_OK;
}

/* ---- the thread ---- */

/* Waits for the next record and copies its header and job out of the ring. False: the stream is closed and empty. */
static bool take(stki_host_stream *stream, header *piece, void *job)
{
    header *first;

    while (stream->head == stream->tail) {
        if (stream->closing)
            return false;
        (void)stki_wait(&stream->changed, &stream->lock, INT64_MAX);
    }
    first = first_piece(stream->ring, stream->room, &stream->head);
    *piece = *first;
    memcpy(job, first + 1, (size_t)piece->bytes - sizeof *first);
    stream->head += piece->bytes;
    return true;
}

static stk_status run_piece(const header *piece, void *job, bool has_failed, stk_error *err)
{
    if (!has_failed)
        return piece->work.run(job, err);
    if (piece->work.drop)
        piece->work.drop(job);
    return STK_OK;
}

static void finish_job(stki_host_stream *stream, stk_status status, const stk_error *error)
{
    stream->done++;
    if (status != STK_OK && !stream->failed_at) {
        stream->failed_at = stream->done;
        if (error->status == status)
            stream->error = *error;
        else /* the job failed without a message */
            (void)stki_fail(&stream->error, status, "%s: work in a stream failed", stream->device->name);
    }
    if (stream->waiting)
        stki_wake_all(&stream->passed);
}

static void stream_main(void *context)
{
    stki_host_stream *stream = context;
    _Alignas(UNIT) char job[STKI_HOST_JOB_MAX];
    stk_error error;
    header piece;

    stki_lock(&stream->lock);
    while (take(stream, &piece, job)) {
        const bool has_failed = stream->failed_at != 0;
        stk_status status;
        stki_unlock(&stream->lock);
        error.status = STK_OK;
        status = run_piece(&piece, job, has_failed, &error);
        stki_lock(&stream->lock);
        finish_job(stream, status, &error);
    }
    stki_unlock(&stream->lock);
    list_remove(stream);
    release(stream);
}

/* ---- streams ---- */

stk_status stki_host_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err)
{
    stki_host_handle *handle = stki_zalloc(sizeof *handle);
    stki_host_stream *stream = stki_zalloc(sizeof *stream);
    stki_thread *thread;
    stk_status status;

    (void)urgent;
    if (!stream || !handle) {
        stki_free(handle);
        stki_free(stream);
        return stki_fail_memory(err, sizeof *stream, "a stream");
    }
    handle->stream.device = stream->device = device;
    handle->queue = stream;
    stream->generation = stki_fork_generation();
    stki_count_set(&stream->refs, 2);
    stki_mutex_init(&stream->lock);
    stki_cond_init(&stream->changed);
    stki_cond_init(&stream->passed);
    list_add(stream);
    status = stki_thread_start(&thread, "stoker-host", stream_main, stream, err);
    if (status != STK_OK) {
        list_remove(stream);
        release(stream);
        release(stream);
        stki_free(handle);
        return status;
    }
    stki_thread_abandon(thread); /* it exits by itself after the stream has been destroyed */
    *out = &handle->stream;
    return STK_OK;
}

static bool inherited(const stki_host_stream *stream)
{
    return stream->generation != stki_fork_generation();
}

static stk_status refuse_inherited(const stki_host_stream *stream, stk_error *err)
{
    return stki_fail(err, STK_E_FORKED,
                     "the stream of %s was created before the fork; its thread runs only in the parent",
                     stream->device->name);
}

void stki_host_stream_destroy(stk_device *device, stk_stream *handle)
{
    stki_host_stream *stream = stki_host_stream_of(handle);

    (void)device;
    if (inherited(stream)) /* the lock may have been held by a thread that does not exist in the child */
        return;
    stki_lock(&stream->lock);
    stream->closing = true;
    stki_wake_all(&stream->changed);
    stki_unlock(&stream->lock);
    release(stream);
    stki_free(handle);
}

static stk_status sticky(const stki_host_stream *stream, stk_error *err)
{
    if (err)
        *err = stream->error;
    return stream->error.status;
}

stk_status stki_host_stream_query(stk_device *device, stk_stream *handle, stk_error *err)
{
    stki_host_stream *stream = stki_host_stream_of(handle);
    stk_status status = STK_OK;

    (void)device;
    if (inherited(stream))
        return refuse_inherited(stream, err);
    stki_lock(&stream->lock);
    if (stream->done < stream->queued)
        status = STK_AGAIN;
    else if (stream->failed_at)
        status = sticky(stream, err);
    stki_unlock(&stream->lock);
    return status;
}

/* ---- queuing ---- */

static stk_status run_inline(const stki_host_work *work, const void *job, int64_t job_bytes, stk_error *err)
{
    _Alignas(UNIT) char copy[STKI_HOST_JOB_MAX];

    memcpy(copy, job, (size_t)job_bytes);
    return work->run(copy, err);
}

static stk_status queue(stki_host_stream *stream, const stki_host_work *work, const void *job, int64_t job_bytes,
                        int64_t *out_position, stk_error *err)
{
    int64_t bytes = (int64_t)sizeof(header) + padded(job_bytes);
    header *piece;

    if (stream->failed_at)
        return sticky(stream, err);
    if (!fits(stream->room, stream->head, stream->tail, bytes)) {
        stk_status status = grow(stream, bytes, err);
        if (status != STK_OK)
            return status;
    }
    piece = put_piece(stream->ring, stream->room, &stream->tail, bytes);
    *piece = (header){.work = *work, .bytes = bytes};
    memcpy(piece + 1, job, (size_t)job_bytes);
    stream->queued++;
    if (out_position)
        *out_position = stream->queued;
    stki_wake_all(&stream->changed);
    return STK_OK;
}

stk_status stki_host_submit(stk_device *device, stk_stream *handle, const stki_host_work *work, const void *job,
                            int64_t job_bytes, int64_t *out_position, stk_error *err)
{
    stki_host_stream *stream = stki_host_stream_of(handle);
    stk_status status;

    if (job_bytes > STKI_HOST_JOB_MAX)
        return stki_fail(err, STK_E_LIMIT, "%s: a job of %" PRId64 " bytes is larger than the maximum of %d bytes",
                         device->name, job_bytes, STKI_HOST_JOB_MAX);
    if (!handle)
        return run_inline(work, job, job_bytes, err);
    if (handle->device != device)
        return stki_fail(err, STK_E_BAD_DEVICE, "work for %s cannot be queued in a stream of %s", device->name,
                         handle->device->name);
    if (inherited(stream))
        return refuse_inherited(stream, err);
    stki_lock(&stream->lock);
    status = queue(stream, work, job, job_bytes, out_position, err);
    stki_unlock(&stream->lock);
    return status;
}

/* ---- positions in streams ---- */

void stki_host_mark_retain(const stki_host_mark *mark)
{
    if (mark->stream)
        stki_ref(&mark->stream->refs);
}

void stki_host_mark_release(const stki_host_mark *mark)
{
    if (mark->stream && !inherited(mark->stream))
        release(mark->stream);
}

static stk_status mark_status(const stki_host_mark *mark, stk_error *err)
{
    if (mark->stream->done < mark->position)
        return STK_AGAIN;
    if (mark->stream->failed_at && mark->stream->failed_at <= mark->position)
        return sticky(mark->stream, err);
    return STK_OK;
}

stk_status stki_host_mark_query(const stki_host_mark *mark, stk_error *err)
{
    stk_status status;

    if (!mark->stream)
        return STK_OK;
    if (inherited(mark->stream))
        return refuse_inherited(mark->stream, err);
    stki_lock(&mark->stream->lock);
    status = mark_status(mark, err);
    stki_unlock(&mark->stream->lock);
    return status;
}

/* Waits only for work that was queued before this call, so there can be no deadlock. */
stk_status stki_host_mark_wait(const stki_host_mark *mark, stk_error *err)
{
    stki_host_stream *stream = mark->stream;
    stk_status status;

    if (!stream)
        return STK_OK;
    if (inherited(stream))
        return refuse_inherited(stream, err);
    stki_lock(&stream->lock);
    stream->waiting++;
    while ((status = mark_status(mark, err)) == STK_AGAIN)
        (void)stki_wait(&stream->passed, &stream->lock, INT64_MAX);
    stream->waiting--;
    stki_unlock(&stream->lock);
    return status;
}

static stk_status run_wait(void *job, stk_error *err)
{
    stki_host_mark *mark = job;
    stk_status status = stki_host_mark_wait(mark, err);

    stki_host_mark_release(mark);
    return status;
}

static void drop_wait(void *job)
{
    stki_host_mark_release(job);
}

stk_status stki_host_stream_wait_mark(stk_stream *stream, const stki_host_mark *mark, stk_error *err)
{
    static const stki_host_work wait = {.run = run_wait, .drop = drop_wait};
    stk_status status = stki_host_mark_query(mark, err);

    if (status == STK_OK || status == STK_E_FORKED || mark->stream == stki_host_stream_of(stream))
        return mark->stream == stki_host_stream_of(stream) ? STK_OK : status;
    stki_host_mark_retain(mark);
    status = stki_host_submit(stream->device, stream, &wait, mark, sizeof *mark, NULL, err);
    if (status != STK_OK)
        stki_host_mark_release(mark);
    return status;
}

stk_status stki_host_synchronize(stk_device *device, stk_error *err)
{
    stki_host_stream *stream;
    stk_status first = STK_OK;
    int64_t number = 0;

    while ((stream = list_after(device, number)) != NULL) {
        stki_host_mark all = {.stream = stream};
        stk_status status;
        number = stream->number;
        stki_lock(&stream->lock);
        all.position = stream->queued;
        stki_unlock(&stream->lock);
        status = stki_host_mark_wait(&all, first != STK_OK ? NULL : err);
        first = first != STK_OK ? first : status;
        release(stream);
    }
    return first;
}
