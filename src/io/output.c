/* output.c: see output.h. If the final path is a regular file or does not exist, a temporary file is written next to it
 * and renamed. A device is written in place, and all errors are checked, so that writing to /dev/full fails.
 *
 * Appended bytes are collected in a list of parts, which a single writev writes. Short runs are copied into the buffer,
 * where adjacent ones are merged; borrowed runs are only referenced. */
#include "output.h"
#include "allocate.h"
#include "checked.h"
#include "counter.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    BUFFER = 256 << 10,
    PARTS = 256,
    LEND_LEAST = 16 << 10, /* shorter runs are copied, which is cheaper than a separate part */
    WAITING_MOST = 2 << 20 /* borrowed bytes are flushed while they are still in the cache */
};

struct stki_output {
    char *path;
    char *temporary; /* NULL: the file is written in place */
    bool held;       /* the owner manages the temporary file */
    bool fresh;      /* the folder has not been synced since the file was created */
    int fd;
    int64_t flushed; /* file offset of the first part */
    int64_t waiting; /* total number of bytes in all parts */
    int64_t used;    /* number of bytes used in `buffer` */
    int part_count;
    bool lent; /* a part refers to memory of the caller */
    struct iovec parts[PARTS];
    _Atomic int failed; /* errno of a failed write: nothing more is written, and commit fails too; 0: none */
    char buffer[BUFFER];
};

static stk_status fail_earlier(stki_output *o, stk_error *err)
{
    return stki_fail_errno(err, o->failed, o->path, "an earlier write failed");
}

static stk_status fail_write(stki_output *o, int64_t count, stk_error *err)
{
    o->failed = errno;
    return stki_fail_errno(err, o->failed, o->path, "cannot write %" PRId64 " bytes", count);
}

static stk_status write_all(stki_output *o, const void *bytes, int64_t count, int64_t at, stk_error *err)
{
    const char *from = bytes;

    while (count > 0) {
        ssize_t n = pwrite(o->fd, from, (size_t)count, at);
        if (n < 0 && errno != EINTR)
            return fail_write(o, count, err);
        if (n > 0) {
            from += n;
            count -= n;
            at += n;
        }
    }
    return STK_OK;
}

/* Removes the first `count` bytes from the parts, starting at part `first`. Returns the first part that is not
 * empty. */
static int skip_written(struct iovec *parts, int first, size_t count)
{
    while (count > 0 && count >= parts[first].iov_len)
        count -= parts[first++].iov_len;
    if (count > 0) {
        parts[first].iov_base = (char *)parts[first].iov_base + count;
        parts[first].iov_len -= count;
    }
    return first;
}

static stk_status write_parts(stki_output *o, stk_error *err)
{
    int64_t left = o->waiting, at = o->flushed;
    int first = 0;

    while (left > 0) {
        ssize_t n = pwritev(o->fd, o->parts + first, o->part_count - first, (off_t)at);
        if (n < 0 && errno != EINTR)
            return fail_write(o, left, err);
        if (n > 0) {
            first = skip_written(o->parts, first, (size_t)n);
            left -= n;
            at += n;
        }
    }
    return STK_OK;
}

static stk_status flush(stki_output *o, stk_error *err)
{
    stk_status status = write_parts(o, err);

    o->flushed += o->waiting;
    o->waiting = o->used = o->part_count = 0;
    o->lent = false;
    return status;
}

stk_status stki_sync_folder_of(const char *path, stk_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    stk_status status = STK_OK;
    int fd;

    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) && errno != EINVAL)) /* some file systems cannot sync a folder */
        status = stki_fail_errno(err, errno, path, "cannot sync its folder");
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* ---- opening ---- */

static stk_status open_in_place(stki_output *o, stk_error *err)
{
    o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (o->fd < 0)
        return stki_fail_errno(err, errno, o->path, "cannot open for writing");
    if (lseek(o->fd, 0, SEEK_SET) < 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){o->path, -1, -1, "a file or device that is not seekable", "a seekable one"},
                            "cannot write");
    return STK_OK;
}

static stk_status open_beside(stki_output *o, stk_error *err)
{
    static stki_counter serial;

    do {
        stki_free(o->temporary);
        o->temporary = stki_format("%s.tmp.%ld.%" PRId64, o->path, (long)getpid(),
                                   atomic_fetch_add_explicit(&serial, 1, memory_order_relaxed));
        if (!o->temporary)
            return stki_fail_memory(err, (int64_t)strlen(o->path) + 32, o->path);
        o->fd = open(o->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (o->fd < 0 && errno == EEXIST);
    if (o->fd < 0) {
        stk_status status = stki_fail_errno(err, errno, o->path, "cannot create %s", o->temporary);
        stki_free(o->temporary); /* there is nothing to remove */
        o->temporary = NULL;
        return status;
    }
    return STK_OK;
}

static stk_status open_output(stki_output *o, stk_error *err)
{
    struct stat st;
    bool there = !stat(o->path, &st);

    if (there && S_ISDIR(st.st_mode))
        return stki_fail_at(err, STK_E_IO, (stki_place){o->path, -1, -1, "a directory", "a file name"}, "cannot write");
    return there && !S_ISREG(st.st_mode) ? open_in_place(o, err) : open_beside(o, err);
}

/* Closes the file, removes it unless it is held, and frees the object. */
static void discard(stki_output *o)
{
    if (o->fd >= 0)
        (void)close(o->fd);
    if (o->temporary && !o->held)
        (void)unlink(o->temporary);
    stki_free(o->temporary);
    stki_free(o->path);
    stki_free(o);
}

static stk_status create(const char *path, stki_output **out, stk_error *err)
{
    stki_output *o = stki_zalloc(sizeof *o);

    if (!o)
        return stki_fail_memory(err, sizeof *o, path);
    o->fd = -1;
    o->path = stki_strdup(path);
    if (!o->path) {
        discard(o);
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    }
    *out = o;
    return STK_OK;
}

static stk_status open_held(stki_output *o, int64_t keep, stk_error *err)
{
    struct stat st;

    o->fd = open(o->temporary, O_RDWR | O_CLOEXEC | (keep < 0 ? O_CREAT | O_TRUNC : 0), 0666);
    if (o->fd < 0 || fstat(o->fd, &st))
        return stki_fail_errno(err, errno, o->temporary, "cannot %s", keep < 0 ? "create" : "open");
    o->fresh = keep < 0;
    if (keep < 0)
        return STK_OK;
    if (st.st_size < keep)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){o->temporary, -1, -1, STKI_TEXT("%" PRId64 " bytes", (int64_t)st.st_size),
                                         STKI_TEXT("at least the %" PRId64 " that were written", keep)},
                            "the unfinished file was truncated by another process");
    if (ftruncate(o->fd, (off_t)keep))
        return stki_fail_errno(err, errno, o->temporary, "cannot truncate to %" PRId64 " bytes", keep);
    o->flushed = keep;
    return STK_OK;
}

stk_status stki_output_hold(const char *path, const char *temporary, int64_t keep, stki_output **out, stk_error *err)
{
    stki_output *o;
    stk_status status = create(path, &o, err);

    if (status != STK_OK)
        return status;
    o->held = true;
    o->temporary = stki_strdup(temporary);
    status = o->temporary ? open_held(o, keep, err) : stki_fail_memory(err, (int64_t)strlen(temporary) + 1, temporary);
    if (status != STK_OK)
        discard(o);
    else
        *out = o;
    return status;
}

stk_status stki_output_create(const char *path, stki_output **out, stk_error *err)
{
    stki_output *o;
    stk_status status = create(path, &o, err);

    if (status != STK_OK)
        return status;
    status = open_output(o, err);
    if (status != STK_OK)
        discard(o);
    else
        *out = o;
    return status;
}

stk_status stki_output_begin(const char *path, const char *temporary, stki_output **out, stk_error *err)
{
    return temporary ? stki_output_hold(path, temporary, -1, out, err) : stki_output_create(path, out, err);
}

const char *stki_output_path(const stki_output *output)
{
    return output->path;
}

const char *stki_output_temporary(const stki_output *output)
{
    return output->temporary ? output->temporary : output->path;
}

/* ---- writing ---- */

int64_t stki_output_position(const stki_output *output)
{
    return output->flushed + output->waiting;
}

static stk_status check_append(stki_output *o, int64_t count, stk_error *err)
{
    int64_t end;

    if (o->failed)
        return fail_earlier(o, err);
    if (count < 0 || !stki_add(stki_output_position(o), count, &end))
        return stki_fail_at(err, STK_E_BAD_SHAPE,
                            (stki_place){o->path, -1, -1, STKI_TEXT("%" PRId64 " more bytes", count),
                                         "a file size that fits in 63 bits"},
                            "cannot append");
    return STK_OK;
}

/* Adds a part. There must be a free one. */
static void add_part(stki_output *o, const void *bytes, int64_t count)
{
    o->parts[o->part_count++] = (struct iovec){(void *)(uintptr_t)bytes, (size_t)count};
    o->waiting += count;
}

/* Copies bytes into the buffer. There must be room in the buffer and a free part. */
static void copy_part(stki_output *o, const void *bytes, int64_t count)
{
    struct iovec *last = o->part_count ? &o->parts[o->part_count - 1] : NULL;
    char *to = o->buffer + o->used;

    memcpy(to, bytes, (size_t)count);
    o->used += count;
    if (last && (char *)last->iov_base + last->iov_len == to) {
        last->iov_len += (size_t)count;
        o->waiting += count;
    } else {
        add_part(o, to, count);
    }
}

stk_status stki_output_append(stki_output *o, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status = check_append(o, count, err);

    if (status == STK_OK && (count > BUFFER - o->used || o->part_count == PARTS))
        status = flush(o, err);
    if (status == STK_OK && count > BUFFER) {
        status = write_all(o, bytes, count, o->flushed, err);
        o->flushed += count;
    } else if (status == STK_OK && count > 0) {
        copy_part(o, bytes, count);
    }
    return status;
}

stk_status stki_output_lend(stki_output *o, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status;

    if (count < LEND_LEAST)
        return stki_output_append(o, bytes, count, err);
    status = check_append(o, count, err);
    if (status == STK_OK && o->part_count == PARTS)
        status = flush(o, err);
    if (status != STK_OK)
        return status;
    add_part(o, bytes, count);
    o->lent = true;
    return o->waiting < WAITING_MOST ? STK_OK : flush(o, err);
}

stk_status stki_output_settle(stki_output *o, stk_error *err)
{
    return o->lent ? flush(o, err) : STK_OK;
}

stk_status stki_output_flush(stki_output *o, stk_error *err)
{
    return o->failed ? fail_earlier(o, err) : flush(o, err);
}

/* Syncs the folder, because the name of a held file must survive a crash. */
static stk_status sync_name(stki_output *o, stk_error *err)
{
    stk_status status = o->held && o->fresh ? stki_sync_folder_of(o->temporary, err) : STK_OK;

    o->fresh = o->fresh && status != STK_OK;
    return status;
}

stk_status stki_output_sync(stki_output *o, stk_error *err)
{
    stk_status status;

    if (o->failed)
        return fail_earlier(o, err);
    if (fdatasync(o->fd)) {
        o->failed = errno;
        return stki_fail_errno(err, o->failed, o->path, "cannot sync");
    }
    status = sync_name(o, err);
    if (status != STK_OK)
        o->failed = EIO;
    return status;
}

stk_status stki_output_pad(stki_output *o, int64_t alignment, stk_error *err)
{
    static const char zeros[4096];
    int64_t position = stki_output_position(o), missing = (alignment - position % alignment) % alignment;
    stk_status status = STK_OK;

    while (missing > 0 && status == STK_OK) {
        int64_t n = missing < (int64_t)sizeof zeros ? missing : (int64_t)sizeof zeros;

        status = stki_output_append(o, zeros, n, err);
        missing -= n;
    }
    return status;
}

stk_status stki_output_write_at(stki_output *o, int64_t offset, const void *bytes, int64_t count, stk_error *err)
{
    return o->failed ? fail_earlier(o, err) : write_all(o, bytes, count, offset, err);
}

static stk_status write_zeros(stki_output *o, int64_t offset, int64_t count, stk_error *err)
{
    static const char zeros[64 << 10];
    stk_status status = STK_OK;

    for (int64_t done = 0, n; done < count && status == STK_OK; done += n) {
        n = count - done < (int64_t)sizeof zeros ? count - done : (int64_t)sizeof zeros;
        status = write_all(o, zeros, n, offset + done, err);
    }
    return status;
}

stk_status stki_output_clear(stki_output *o, int64_t offset, int64_t count, stk_error *err)
{
    struct stat st;

    if (o->failed)
        return fail_earlier(o, err);
    if (fstat(o->fd, &st))
        return stki_fail_errno(err, errno, o->path, "cannot get the size");
    count = st.st_size - offset < count ? st.st_size - offset : count;
    if (count <= 0 || !fallocate(o->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)count))
        return STK_OK;
    return write_zeros(o, offset, count, err);
}

stk_status stki_output_seek(stki_output *o, int64_t offset, stk_error *err)
{
    stk_status status = o->failed ? fail_earlier(o, err) : flush(o, err);

    if (status == STK_OK)
        o->flushed = offset;
    return status;
}

/* ---- commit ---- */

static stk_status finish_bytes(stki_output *o, stk_error *err)
{
    stk_status status = flush(o, err);

    if (status == STK_OK && fsync(o->fd) && (o->temporary || errno != EINVAL))
        status = stki_fail_errno(err, errno, o->path, "cannot sync");
    if (status == STK_OK)
        status = sync_name(o, err);
    if (close(o->fd) && status == STK_OK)
        status = stki_fail_errno(err, errno, o->path, "cannot close");
    o->fd = -1;
    return status;
}

static stk_status put_in_place(stki_output *o, stk_error *err)
{
    if (rename(o->temporary, o->path))
        return stki_fail_errno(err, errno, o->path, "cannot rename %s to this name", o->temporary);
    stki_free(o->temporary);
    o->temporary = NULL;
    return stki_sync_folder_of(o->path, err); /* the file is kept, because the one it replaced is gone */
}

stk_status stki_output_commit(stki_output *o, stk_error *err)
{
    stk_status status = o->failed ? fail_earlier(o, err) : finish_bytes(o, err);

    if (status == STK_OK && o->temporary && !o->held)
        status = put_in_place(o, err);
    discard(o);
    return status;
}

void stki_output_abort(stki_output *o)
{
    if (o)
        discard(o);
}

stk_status stki_output_end(stki_output *o, stk_status status, stk_error *err)
{
    if (status == STK_OK)
        return stki_output_commit(o, err);
    stki_output_abort(o);
    return status;
}

stk_status stki_output_text(const char *path, const char *text, stk_error *err)
{
    stki_output *output = NULL;
    stk_status status = stki_output_create(path, &output, err);

    if (status != STK_OK)
        return status;
    status = stki_output_append(output, text, (int64_t)strlen(text), err);
    if (status == STK_OK)
        status = stki_output_append(output, "\n", 1, err);
    return stki_output_end(output, status, err);
}
