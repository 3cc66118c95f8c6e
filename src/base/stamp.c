/* stamp.c: see stamp.h. */
#include "stamp.h"
#include "allocate.h"
#include "error.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

stk_status stki_stamp_path(const char *path, char **out, stk_error *err)
{
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);

    *out = NULL;
    if (*path != '/' && !here)
        return STK_OK;
    *out = stki_format("%s%s%s", here ? here : "", here ? "/" : "", path);
    free(here);
    return *out ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
}

static int64_t mtime_of(const struct stat *st)
{
    return st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

static bool same_file(const stki_stamp *file, const struct stat *st)
{
    return st->st_dev == file->device && st->st_ino == file->inode;
}

const char *stki_stamp_text(char *buffer, int size, int64_t bytes, int64_t mtime_ns)
{
    time_t seconds = (time_t)(mtime_ns / 1000000000);
    char when[32] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    return stki_text(buffer, size, "%" PRId64 " bytes written at %s.%09d UTC", bytes, when,
                     (int)(mtime_ns % 1000000000));
}

static stk_status fail_changed(const stki_stamp *file, const struct stat *now, const char *name, int64_t record,
                               stk_error *err)
{
    char found[96], expected[96];

    if (!same_file(file, now))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){name, record, -1,
                                         STKI_TEXT("another file (inode %llu) of %lld bytes",
                                                   (unsigned long long)now->st_ino, (long long)now->st_size),
                                         STKI_TEXT("inode %" PRIu64 " of %" PRId64 " bytes", file->inode, file->size)},
                            "the file changed while it was open");
    if (now->st_size < file->size)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){name, record, -1, STKI_TEXT("%lld", (long long)now->st_size),
                                         STKI_TEXT("%" PRId64 " bytes", file->size)},
                            "the file was truncated while it was open");
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){name, record, -1,
                                     stki_stamp_text(found, sizeof found, now->st_size, mtime_of(now)),
                                     stki_stamp_text(expected, sizeof expected, file->size, file->mtime_ns)},
                        "the file changed while it was open");
}

stk_status stki_stamp_take(const char *path, stki_stamp *out, stk_error *err)
{
    struct stat st;

    if (stat(path, &st))
        return stki_fail_errno(err, errno, path, "cannot get the size");
    *out = (stki_stamp){st.st_size, mtime_of(&st), st.st_dev, st.st_ino};
    return STK_OK;
}

bool stki_stamp_is_of(const stki_stamp *stamp, const char *path)
{
    struct stat now;

    return stat(path, &now) == 0 && same_file(stamp, &now);
}

bool stki_is_one_file(const char *a, const char *b)
{
    stki_stamp stamp;

    return stki_stamp_take(a, &stamp, NULL) == STK_OK && stki_stamp_is_of(&stamp, b);
}

stk_status stki_stamp_check_open(const stki_stamp *stamp, int fd, bool itself, const char *name, int64_t record,
                                 stk_error *err)
{
    struct stat now;

    if (fstat(fd, &now))
        return stki_fail_errno(err, errno, name, "cannot get the size");
    if (same_file(stamp, &now) && (itself || (now.st_size == stamp->size && mtime_of(&now) == stamp->mtime_ns)))
        return STK_OK;
    return fail_changed(stamp, &now, name, record, err);
}

stk_status stki_stamp_check(const stki_stamp *stamp, const char *path, const char *name, int64_t record, stk_error *err)
{
    struct stat now;

    if (stat(path, &now))
        return STK_END;
    if (same_file(stamp, &now) && now.st_size == stamp->size && mtime_of(&now) == stamp->mtime_ns)
        return STK_OK;
    return fail_changed(stamp, &now, name, record, err);
}
