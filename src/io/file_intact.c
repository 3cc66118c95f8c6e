/* file_intact.c: is a file still what it was when it was opened? See file.h. The path is asked, not a descriptor:
 * mapped files hold none, and a file that took the place of another is found only so. The answer is the same whether
 * the file is mapped or read, though a descriptor would still lead to the file that was replaced. */
#include "error.h"
#include "file.h"
#include "stamp.h"
#include <inttypes.h>

bool stki_file_known_changed(const stki_file *file)
{
    return stki_guard_broken(file->guard) || atomic_load_explicit(&file->changed, memory_order_relaxed) ||
           (file->beside && stki_file_known_changed(file->beside));
}

stk_status stki_file_intact(const stki_file *file, int64_t record, stk_error *err)
{
    stki_file *shared = (stki_file *)(uintptr_t)file; /* what is written here is made for many threads */
    stk_status status = STK_OK;

    if (!file->watched && !file->guard)
        return STK_OK;
    if (file->watched && file->from_root) {
        const stki_stamp stamp = {file->size, file->mtime_ns, file->device, file->inode};

        status = stki_stamp_check(&stamp, file->from_root, file->path, record, err);
        if (status == STK_END && file->fd >= 0) /* deleted, but not closed */
            status = stki_stamp_check_open(&stamp, file->fd, false, file->path, record, err);
        if (status < 0) {
            atomic_store_explicit(&shared->changed, true, memory_order_relaxed);
            return status;
        }
        status = STK_OK;
    }
    if (file->beside)
        status = stki_file_intact(file->beside, record, err);
    if (status || !stki_file_known_changed(file))
        return status;
    if (!stki_guard_broken(file->guard))
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, record, -1, NULL, NULL},
                            "the file changed while it was open, and back");
    return stki_fail_at(err, STK_E_IO,
                        (stki_place){file->path, record, -1, "a bus error (SIGBUS)",
                                     STKI_TEXT("%" PRId64 " bytes that can be read", file->size)},
                        "a page of the mapped file is not there");
}
