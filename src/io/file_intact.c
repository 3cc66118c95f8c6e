/* file_intact.c: checks whether a file has changed since it was opened. See file.h. It uses the path instead of a
 * descriptor: mapped files have no descriptor, and only the path shows that a file was replaced. The result is the same
 * for mapped and read files. */
#include "error.h"
#include "file.h"
#include "stamp.h"
#include <inttypes.h>

bool stki_file_known_changed(const stki_file *file)
{
    return stki_guard_broken(file->guard) || atomic_load_explicit(&file->changed, memory_order_relaxed) ||
           (file->beside && stki_file_known_changed(file->beside));
}

static bool is_bad(const stki_file *file, const stki_range *ranges, int count)
{
    bool bad = false;

    for (int i = 0; i < count && !bad; i++)
        bad = stki_guard_bad(file->guard, (const char *)file->map + ranges[i].offset, ranges[i].bytes);
    return count > 0 ? bad : stki_guard_broken(file->guard);
}

/* Without ranges, the whole file is checked. */
stk_status stki_file_intact_in(const stki_file *file, const stki_range *ranges, int count, int64_t record,
                               stk_error *err)
{
    stki_file *shared = (stki_file *)(uintptr_t)file; /* only thread-safe members are modified */
    stk_status status = STK_OK;

    if (!file->watched && !file->guard)
        return STK_OK;
    if (file->watched && file->from_root) {
        const stki_stamp stamp = {file->size, file->mtime_ns, file->device, file->inode};

        status = stki_stamp_check(&stamp, file->from_root, file->path, record, err);
        if (status == STK_END && file->fd >= 0) /* the file was deleted, but is still open */
            status = stki_stamp_check_open(&stamp, file->fd, false, file->path, record, err);
        if (status < 0) {
            atomic_store_explicit(&shared->changed, true, memory_order_relaxed);
            return status;
        }
        status = STK_OK;
    }
    if (file->beside)
        status = stki_file_intact(file->beside, record, err);
    if (status != STK_OK)
        return status;
    if (atomic_load_explicit(&file->changed, memory_order_relaxed))
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, record, -1, NULL, NULL},
                            "the file was changed and restored while it was open");
    if (!is_bad(file, ranges, count))
        return STK_OK;
    return stki_fail_at(err, STK_E_IO,
                        (stki_place){file->path, record, count > 0 ? ranges[0].offset : -1, "a bus error (SIGBUS)",
                                     STKI_TEXT("%" PRId64 " bytes that can be read", file->size)},
                        "a page of the mapped file is missing");
}

stk_status stki_file_intact(const stki_file *file, int64_t record, stk_error *err)
{
    return stki_file_intact_in(file, NULL, 0, record, err);
}

stk_status stki_reader_intact(const stki_reader *reader, int64_t index, stk_error *err)
{
    stki_range ranges[STKI_PLACES];
    const int count =
        reader->place && stki_guard_broken(reader->file->guard) ? reader->place(reader->placer, index, ranges) : 0;

    return stki_file_intact_in(reader->file, ranges, count, index, err);
}
