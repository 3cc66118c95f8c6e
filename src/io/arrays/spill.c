/* spill.c: see spill.h. */
#include "spill.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "output.h"
#include "path.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 256 << 10 };

struct stki_spill {
    char *beside;
    int fd;
    int64_t flushed, used;
    _Atomic int sync_errno; /* error of a failed sync, after which the state of earlier writes is unknown, so nothing
                               more is written */
    char buffer[BUFFER];
};

/* On file systems without O_TMPFILE, creates a temporary file and unlinks it immediately. */
static int open_in(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char *name;

    if (fd >= 0)
        return fd;
    name = stki_format("%s/stoker-XXXXXX", folder);
    fd = name ? mkostemp(name, O_CLOEXEC) : -1;
    if (fd >= 0)
        (void)unlink(name);
    stki_free(name);
    return fd;
}

static int open_beside(const char *path)
{
    const char *other = getenv("TMPDIR");
    struct stat st;
    char *folder;
    int fd = -1;

    if (stat(path, &st) || S_ISREG(st.st_mode)) {
        folder = stki_folder_of(path);
        fd = folder ? open_in(folder) : -1;
        stki_free(folder);
    }
    return fd >= 0 ? fd : open_in(other && *other ? other : "/tmp");
}

static stk_status create(const char *beside, stki_spill **out, stk_error *err)
{
    stki_spill *s = stki_zalloc(sizeof *s);

    if (!s)
        return stki_fail_memory(err, sizeof *s, beside);
    s->fd = -1;
    s->beside = stki_strdup(beside);
    if (!s->beside) {
        stki_spill_destroy(s);
        return stki_fail_memory(err, (int64_t)strlen(beside) + 1, beside);
    }
    *out = s;
    return STK_OK;
}

stk_status stki_spill_create(const char *beside, stki_spill **out, stk_error *err)
{
    stki_spill *s;
    stk_status status = create(beside, &s, err);

    if (status != STK_OK)
        return status;
    s->fd = open_beside(beside);
    if (s->fd >= 0) {
        *out = s;
        return STK_OK;
    }
    status = stki_fail_errno(err, errno, beside, "cannot create a temporary file");
    stki_spill_destroy(s);
    return status;
}

static stk_status open_held(stki_spill *s, int64_t keep, stk_error *err)
{
    struct stat st;

    s->fd = open(s->beside, O_RDWR | O_CLOEXEC | (keep < 0 ? O_CREAT | O_TRUNC : 0), 0666);
    if (s->fd < 0 || fstat(s->fd, &st))
        return stki_fail_errno(err, errno, s->beside, "cannot %s", keep < 0 ? "create" : "open");
    if (keep < 0)
        return STK_OK;
    if (st.st_size < keep)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){s->beside, -1, -1, STKI_TEXT("%" PRId64 " bytes", (int64_t)st.st_size),
                                         STKI_TEXT("at least the %" PRId64 " that were written", keep)},
                            "the unfinished file was truncated by another process");
    if (ftruncate(s->fd, (off_t)keep))
        return stki_fail_errno(err, errno, s->beside, "cannot truncate to %" PRId64 " bytes", keep);
    s->flushed = keep;
    return STK_OK;
}

stk_status stki_spill_hold(const char *name, int64_t keep, stki_spill **out, stk_error *err)
{
    stki_spill *s;
    stk_status status = create(name, &s, err);

    if (status != STK_OK)
        return status;
    status = open_held(s, keep, err);
    if (status != STK_OK)
        stki_spill_destroy(s);
    else
        *out = s;
    return status;
}

static stk_status write_all(stki_spill *s, const char *from, int64_t count, stk_error *err)
{
    while (count > 0) {
        ssize_t n = pwrite(s->fd, from, (size_t)count, s->flushed);

        if (n < 0 && errno != EINTR)
            return stki_fail_errno(err, errno, s->beside, "cannot write %" PRId64 " bytes of temporary data", count);
        n = n > 0 ? n : 0;
        from += n;
        count -= n;
        s->flushed += n;
    }
    return STK_OK;
}

static stk_status flush(stki_spill *s, stk_error *err)
{
    stk_status status = s->sync_errno ? stki_fail_errno(err, s->sync_errno, s->beside, "an earlier sync failed")
                                      : write_all(s, s->buffer, s->used, err);

    s->used = 0;
    return status;
}

stk_status stki_spill_append(stki_spill *s, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status = count > BUFFER - s->used ? flush(s, err) : STK_OK;

    if (status != STK_OK)
        return status;
    if (count > BUFFER)
        return write_all(s, bytes, count, err);
    if (count > 0)
        memcpy(s->buffer + s->used, bytes, (size_t)count);
    s->used += count;
    return STK_OK;
}

stk_status stki_spill_flush(stki_spill *s, stk_error *err)
{
    return flush(s, err);
}

stk_status stki_spill_sync(stki_spill *s, stk_error *err)
{
    if (fdatasync(s->fd) == 0)
        return STK_OK;
    s->sync_errno = errno;
    return stki_fail_errno(err, s->sync_errno, s->beside, "cannot sync");
}

int64_t stki_spill_bytes(const stki_spill *s)
{
    return s->flushed + s->used;
}

stk_status stki_spill_read(stki_spill *s, int64_t offset, void *to, int64_t count, stk_error *err)
{
    stk_status status = flush(s, err);

    for (int64_t done = 0; status == STK_OK && done < count;) {
        ssize_t n = pread(s->fd, (char *)to + done, (size_t)(count - done), offset + done);

        if (n == 0)
            return stki_fail_at(err, STK_E_TRUNCATED, (stki_place){s->beside, -1, -1, NULL, NULL},
                                "the temporary data was truncated by another process");
        if (n < 0 && errno != EINTR)
            return stki_fail_errno(err, errno, s->beside, "cannot read the temporary data");
        done += n > 0 ? n : 0;
    }
    return status;
}

void stki_spill_destroy(stki_spill *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        (void)close(s->fd);
    stki_free(s->beside);
    stki_free(s);
}
