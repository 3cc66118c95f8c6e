/* file_intact.c: is a mapped file still what it was when it was opened? See file.h. The path is asked, not a
 * descriptor: mapped files hold none, and a file that took the place of another is found only so. */
#include "error.h"
#include "file.h"
#include <inttypes.h>
#include <sys/stat.h>
#include <time.h>

static int64_t mtime_of(const struct stat *st)
{
    return st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
}

static bool same_file(const stki_file *file, const struct stat *st)
{
    return st->st_dev == file->device && st->st_ino == file->inode;
}

static const char *written_text(char *buffer, int size, int64_t bytes, int64_t mtime_ns)
{
    time_t seconds = (time_t)(mtime_ns / 1000000000);
    char when[32] = "";
    struct tm tm;

    if (gmtime_r(&seconds, &tm))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
    return stki_text(buffer, size, "%" PRId64 " bytes written at %s.%09d UTC", bytes, when,
                     (int)(mtime_ns % 1000000000));
}

static stk_status fail_changed(const stki_file *file, const struct stat *now, int64_t record, stk_error *err)
{
    char found[96], expected[96];

    if (!same_file(file, now))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){file->path, record, -1,
                                         STKI_TEXT("another file (inode %llu) of %lld bytes",
                                                   (unsigned long long)now->st_ino, (long long)now->st_size),
                                         STKI_TEXT("inode %" PRIu64 " of %" PRId64 " bytes", file->inode, file->size)},
                            "the file changed while it was open");
    if (now->st_size < file->size)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){file->path, record, -1, STKI_TEXT("%lld", (long long)now->st_size),
                                         STKI_TEXT("%" PRId64 " bytes", file->size)},
                            "the file was cut while it was open");
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){file->path, record, -1,
                                     written_text(found, sizeof found, now->st_size, mtime_of(now)),
                                     written_text(expected, sizeof expected, file->size, file->mtime_ns)},
                        "the file changed while it was open");
}

bool stki_file_known_changed(const stki_file *file)
{
    return stki_guard_broken(file->guard) || atomic_load_explicit(&file->changed, memory_order_relaxed) ||
           (file->beside && stki_file_known_changed(file->beside));
}

stk_status stki_file_intact(const stki_file *file, int64_t record, stk_error *err)
{
    stki_file *shared = (stki_file *)(uintptr_t)file; /* what is written here is made for many threads */
    stk_status status = STK_OK;
    struct stat now;

    if (!file->guard)
        return STK_OK;
    if (file->watched && !stat(file->watched, &now) &&
        (!same_file(file, &now) || now.st_size != file->size || mtime_of(&now) != file->mtime_ns)) {
        atomic_store_explicit(&shared->changed, true, memory_order_relaxed);
        return fail_changed(file, &now, record, err);
    }
    if (file->beside)
        status = stki_file_intact(file->beside, record, err);
    if (status || !stki_file_known_changed(file))
        return status;
    return stki_fail_at(err, STK_E_IO,
                        (stki_place){file->path, record, -1, "a bus error (SIGBUS)",
                                     STKI_TEXT("%" PRId64 " bytes that can be read", file->size)},
                        "a page of the mapped file is not there");
}
