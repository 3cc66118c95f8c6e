/* image_load.c: reads an image file with open, fstat, pread and close. For files of about 100 KB, reading is cheaper
 * than mapping, which causes page faults and whose munmap interrupts all threads. In addition, a truncated file is then
 * an error rather than a signal. */
#include "image_load.h"
#include "allocate.h"
#include "descriptor.h"
#include "error.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEAD_BYTES = 4096 };

struct source {
    const char *path;
    int64_t record;
    int fd;
    int64_t size;
    stk_error *err;
};

static stk_status fail(const struct source *source, stk_status status, const char *found, const char *expected,
                       const char *what)
{
    return stki_fail_at(source->err, status, (stki_place){source->path, source->record, -1, found, expected}, "%s",
                        what);
}

static stk_status fail_errno(const struct source *source, int error_number, const char *what)
{
    return stki_fail_record(source->err, stki_fail_errno(source->err, error_number, source->path, "%s", what),
                            source->record);
}

static stk_status fail_kind(const struct source *source, mode_t mode)
{
    return fail(source, STK_E_UNSUPPORTED, S_ISDIR(mode) ? "a directory" : "a special file", "a regular file",
                "cannot be read");
}

static stk_status open_source(struct source *source)
{
    struct stat stat;

    source->fd = stki_descriptor_open(source->path, O_NONBLOCK | O_NOCTTY);
    if (source->fd < 0)
        return fail_errno(source, errno, "cannot open");
    if (fstat(source->fd, &stat))
        return fail_errno(source, errno, "cannot get the size");
    if (!S_ISREG(stat.st_mode))
        return fail_kind(source, stat.st_mode);
    source->size = stat.st_size;
    return STK_OK;
}

static void close_source(const struct source *source)
{
    if (source->fd >= 0)
        (void)close(source->fd);
}

static stk_status read_source(const struct source *source, void *to, int64_t bytes)
{
    int64_t got = 0;

    while (got < bytes) {
        ssize_t n = pread(source->fd, (char *)to + got, (size_t)(bytes - got), got);

        if (n < 0 && errno != EINTR)
            return fail_errno(source, errno, "cannot read");
        if (n == 0) /* the file was truncated after the fstat */
            return fail(source, STK_E_TRUNCATED, STKI_TEXT("%" PRId64, got), STKI_TEXT("%" PRId64 " bytes", bytes),
                        "the file is truncated");
        got += n > 0 ? n : 0;
    }
    return STK_OK;
}

stk_status stki_image_load(stki_decoder *decoder, const char *path, int64_t record, const void **bytes, int64_t *count,
                           stk_error *err)
{
    struct source source = {.path = path, .record = record, .err = err};
    void *room = NULL;
    stk_status status = open_source(&source);

    if (status == STK_OK)
        status = stki_decoder_room(decoder, source.size, &room, err);
    if (status == STK_OK)
        status = read_source(&source, room, source.size);
    close_source(&source);
    *bytes = room;
    *count = source.size;
    return status;
}

stk_status stki_image_load_size(const char *path, int64_t record, int64_t *bytes, stk_error *err)
{
    const struct source source = {.path = path, .record = record, .fd = -1, .err = err};
    struct stat found;

    if (stat(path, &found))
        return fail_errno(&source, errno, "cannot get the size");
    if (!S_ISREG(found.st_mode))
        return fail_kind(&source, found.st_mode);
    *bytes = found.st_size;
    return STK_OK;
}

static stk_status shape_of(const struct source *source, const void *bytes, int64_t count, const stki_decode_opts *opts,
                           int64_t shape[3])
{
    stk_status status = stki_image_shape(bytes, count, opts, shape, source->err);

    return stki_fail_place(source->err, status, source->path, source->record, NULL);
}

/* Reads the whole file, because thumbnails and profiles can precede the image size. */
static stk_status shape_from_all(const struct source *source, const stki_decode_opts *opts, int64_t shape[3])
{
    void *all = stki_zalloc(source->size);
    stk_status status = all ? STK_OK : stki_fail_memory(source->err, source->size, "an image");

    if (status == STK_OK)
        status = read_source(source, all, source->size);
    if (status == STK_OK)
        status = shape_of(source, all, source->size, opts, shape);
    stki_free(all);
    return status;
}

stk_status stki_image_load_shape(const char *path, int64_t record, const stki_decode_opts *opts, int64_t shape[3],
                                 stk_error *err)
{
    struct source source = {.path = path, .record = record, .err = err};
    char head[HEAD_BYTES];
    stk_status status = open_source(&source);
    int64_t count = source.size < HEAD_BYTES ? source.size : HEAD_BYTES;

    if (status == STK_OK)
        status = read_source(&source, head, count);
    if (status == STK_OK)
        status = shape_of(&source, head, count, opts, shape);
    if (status == STK_E_TRUNCATED && count < source.size)
        status = shape_from_all(&source, opts, shape);
    close_source(&source);
    return status;
}

bool stki_image_load_is_cut(const char *path, const stki_decode_opts *opts)
{
    struct source source = {.path = path, .record = -1, .err = NULL};
    char head[STKI_PNG_HEAD_BYTES];
    const bool opened = open_source(&source) == STK_OK;
    const int64_t count = source.size < STKI_PNG_HEAD_BYTES ? source.size : STKI_PNG_HEAD_BYTES;
    const bool cut = opened && read_source(&source, head, count) == STK_OK && stki_image_is_cut(head, count, opts);

    if (opened)
        close_source(&source);
    return cut;
}

bool stki_image_load_ahead(const char *path)
{
    struct stat stat;
    char byte;
    struct iovec into = {&byte, 1};
    bool resident = true;
    int fd = stki_descriptor_try(path, O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        return true; /* the read will report the error */
    if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_size > 0) {
        resident = preadv2(fd, &into, 1, stat.st_size - 1, RWF_NOWAIT) >= 0 || errno != EAGAIN;
        if (!resident)
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    }
    (void)close(fd);
    return resident;
}
