/* file.c: see file.h. A file is either mapped as a whole, because the data offsets of formats are not multiples of the
 * page size, or read with pread, which uses no file position and therefore needs no lock. The bounds checks of all
 * readers rely on the size that fstat returns here.
 *
 * Mapped files in sequential order get no advice, because the kernel's own readahead is faster. In random order, and
 * for positional reads in any order, advice is what makes cold reads fast (see bench_cold.c).
 *
 * Residency in the page cache is checked before advice is given, because advice on resident pages visits every one of
 * them. For mapped files, the check uses mincore, which reports every page as resident unless the caller owns the file
 * or may write to it. If the caller may not, a limited number of files keep their descriptor and are probed with a
 * non-blocking read; the others are assumed not to be resident.
 *
 * Descriptors (descriptor.h) and mappings (map_room.h) are limited. A file beyond these limits is opened again for each
 * read. */
#include "file.h"
#include "allocate.h"
#include "checked.h"
#include "clock.h"
#include "counter.h"
#include "descriptor.h"
#include "error.h"
#include "foreign_file.h"
#include "map_room.h"
#include "stamp.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PROBE_PAGES = 4,
    MERGE_GAP = 16 << 10 /* ranges closer than this are merged, because reading the gap is cheaper */
};

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
                            : "something else";
}

static stk_status fail_open(const char *path, int error_number, stk_error *err)
{
    const char *because;

    if (error_number == ENXIO) /* the error of open(2) for a socket */
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, -1, "a socket or a device without a driver", "a regular file"},
                            "cannot be read");
    because = error_number == ENOENT ? stki_file_missing_because(path) : "";
    return stki_fail_errno(err, error_number, path, "cannot open%s%s%s", because[0] ? " (" : "", because,
                           because[0] ? ")" : "");
}

enum { OPEN_FLAGS = O_NONBLOCK | O_NOCTTY };

static stk_status open_regular(stki_file *file, stk_error *err)
{
    struct stat stat;

    file->fd = stki_descriptor_open(file->path, OPEN_FLAGS);
    if (file->fd < 0)
        return fail_open(file->path, errno, err);
    if (fstat(file->fd, &stat))
        return stki_fail_errno(err, errno, file->path, "cannot get the size");
    if (!S_ISREG(stat.st_mode))
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){file->path, -1, -1, kind_of(stat.st_mode), "a regular file"},
                            "cannot be read");
    file->size = stat.st_size;
    file->mtime_ns = stat.st_mtim.tv_sec * INT64_C(1000000000) + stat.st_mtim.tv_nsec;
    file->device = stat.st_dev;
    file->inode = stat.st_ino;
    return STK_OK;
}

static const char *map_note(int error_number)
{
    return error_number == ENOMEM ? "mmap failed (no address space left), so the file is read with pread"
           : error_number == ENODEV
               ? "mmap failed (the file system does not support it), so the file is read with pread"
           : error_number == EACCES ? "mmap failed (not allowed), so the file is read with pread"
                                    : "mmap failed, so the file is read with pread";
}

static int64_t page_start(int64_t offset, int64_t *page)
{
    *page = sysconf(_SC_PAGESIZE);
    return offset & ~(*page - 1);
}

static bool mincore_tells(const stki_file *file)
{
    struct stat stat;

    return geteuid() == 0 || (!fstat(file->fd, &stat) && stat.st_uid == geteuid()) ||
           !faccessat(AT_FDCWD, file->path, W_OK, AT_EACCESS);
}

static void map_whole(stki_file *file, enum stki_access access)
{
    void *map;

    if (!stki_map_room_take()) {
        file->note = "the process has too many mappings (vm.max_map_count), so the file is read with pread";
        return;
    }
    map = mmap(NULL, (size_t)file->size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED) {
        file->note = map_note(errno);
        stki_map_room_give();
        return;
    }
    if (access != STKI_ACCESS_UNGUARDED)
        file->guard = stki_guard_add(map, file->size);
    if (access != STKI_ACCESS_UNGUARDED && !file->guard) {
        (void)munmap(map, (size_t)file->size);
        stki_map_room_give();
        file->note = "not enough memory to guard the mapping, so the file is read with pread";
        return;
    }
    (void)madvise(map, (size_t)file->size, file->pattern == STKI_PATTERN_SEQUENTIAL ? MADV_SEQUENTIAL : MADV_RANDOM);
    file->map = map;
    file->access = "mmap";
    file->optional = true;
    file->blind = !mincore_tells(file);
}

static void advise_pattern(const stki_file *file, int fd)
{
    (void)posix_fadvise(fd, 0, 0, file->pattern == STKI_PATTERN_SEQUENTIAL ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
}

/* Keeps the descriptor if it is needed (there is no mapping, or mincore does not report residency) and the limit allows
 * it; otherwise closes it. */
static void settle_descriptor(stki_file *file)
{
    if ((!file->map || file->blind) && stki_descriptor_keep(file->optional)) {
        file->blind = false;
        if (!file->map)
            advise_pattern(file, file->fd);
        return;
    }
    (void)close(file->fd);
    file->fd = -1;
}

stk_status stki_file_open(const char *path, enum stki_access access, enum stki_pattern pattern, stki_file **out,
                          stk_error *err)
{
    stki_file *file = stki_zalloc(sizeof *file);
    stk_status status;

    if (!file)
        return stki_fail_memory(err, sizeof *file, path);
    stki_count_set(&file->refs, 1);
    file->fd = -1;
    file->pattern = pattern;
    file->access = "pread";
    file->path = stki_strdup(path);
    if (!file->path) {
        stki_file_close(file);
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, path);
    }
    status = open_regular(file, err);
    if (status == STK_OK)
        status = stki_stamp_path(file->path, &file->from_root, err);
    if (status != STK_OK) {
        if (file->fd >= 0)
            (void)close(file->fd);
        file->fd = -1; /* already closed, and not counted yet */
        stki_file_close(file);
        return status;
    }
    file->watched = stki_access_watches(access);
    if (access != STKI_ACCESS_PREAD && access != STKI_ACCESS_UNWATCHED && file->size > 0)
        map_whole(file, access);
    settle_descriptor(file);
    *out = file;
    return STK_OK;
}

stki_file *stki_file_retain(const stki_file *file)
{
    stki_file *counted = (stki_file *)(uintptr_t)file;

    stki_ref(&counted->refs);
    return counted;
}

void stki_file_close(stki_file *file)
{
    if (!file || !stki_unref(&file->refs))
        return;
    stki_guard_remove(file->guard);
    if (file->map) {
        (void)munmap((void *)(uintptr_t)file->map, (size_t)file->size);
        stki_map_room_give();
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
        stki_descriptor_kept_no_more(file->optional);
    }
    stki_file_close(file->beside);
    stki_free(file->from_root);
    stki_free(file->path);
    stki_free(file);
}

/* Returns the file's descriptor, or opens one temporarily after checking that the path still refers to the same file.
 */
static stk_status borrow(const stki_file *file, int *fd, stk_error *err)
{
    const stki_stamp stamp = {file->size, file->mtime_ns, file->device, file->inode};
    stk_status status;

    *fd = file->fd;
    if (*fd >= 0)
        return STK_OK;
    *fd = stki_descriptor_open(file->from_root ? file->from_root : file->path, OPEN_FLAGS);
    if (*fd < 0)
        return stki_fail_errno(err, errno, file->path, "cannot reopen");
    status = stki_stamp_check_open(&stamp, *fd, !file->watched, file->path, -1, err);
    if (status != STK_OK)
        (void)close(*fd);
    else
        advise_pattern(file, *fd);
    return status;
}

static void give_back(const stki_file *file, int fd)
{
    if (fd != file->fd)
        (void)close(fd);
}

static stk_status fail_cut(const stki_file *file, int64_t offset, int64_t bytes, int64_t got, stk_error *err)
{
    return stki_fail_at(
        err, STK_E_TRUNCATED,
        (stki_place){file->path, -1, offset, STKI_TEXT("%" PRId64, got), STKI_TEXT("%" PRId64 " bytes", bytes)},
        "the file is truncated");
}

static stk_status read_all(const stki_file *file, int fd, int64_t offset, void *to, int64_t bytes, stk_error *err)
{
    int64_t got = 0;

    while (got < bytes) {
        ssize_t n = pread(fd, (char *)to + got, (size_t)(bytes - got), offset + got);

        if (n == 0) /* the file was truncated after it was opened */
            return fail_cut(file, offset, bytes, got, err);
        if (n < 0 && errno != EINTR) {
            stk_status status = stki_fail_errno(
                err, errno, file->path, "offset %" PRId64 ": cannot read %" PRId64 " bytes", offset + got, bytes - got);
            if (err)
                err->offset = offset + got;
            return status;
        }
        got += n > 0 ? n : 0;
    }
    return STK_OK;
}

stk_status stki_file_read(const stki_file *file, int64_t offset, void *to, int64_t bytes, stk_error *err)
{
    stk_status status;
    int fd;

    if (!stki_inside(offset, bytes, file->size))
        return fail_cut(file, offset, bytes, offset < file->size ? file->size - offset : 0, err);
    if (file->map) {
        memcpy(to, (const char *)file->map + offset, (size_t)bytes);
        return stki_file_known_changed(file) ? stki_file_intact_in(file, &(stki_range){offset, bytes}, 1, -1, err)
                                             : STK_OK;
    }
    if (bytes == 0)
        return STK_OK;
    if ((status = borrow(file, &fd, err)) != STK_OK)
        return status;
    status = read_all(file, fd, offset, to, bytes, err);
    give_back(file, fd);
    return status;
}

/* Tries to read one byte without waiting for the disk. */
static bool byte_resident(const stki_file *file, int64_t offset)
{
    char byte;
    struct iovec into = {&byte, 1};

    return preadv2(file->fd, &into, 1, offset, RWF_NOWAIT) >= 0 || errno != EAGAIN;
}

bool stki_file_resident(const stki_file *file, int64_t offset, int64_t bytes)
{
    int64_t page, first = page_start(offset, &page), pages;
    unsigned char in_core[PROBE_PAGES];

    if (bytes <= 0 || !stki_inside(offset, bytes, file->size))
        return true;
    if (file->fd >= 0)
        return byte_resident(file, offset) && byte_resident(file, offset + bytes - 1);
    if (!file->map || file->blind)
        return false;
    pages = (offset + bytes - first + page - 1) / page;
    pages = pages < PROBE_PAGES ? pages : PROBE_PAGES;
    memset(in_core, 1, sizeof in_core);
    if (mincore((char *)(uintptr_t)file->map + first, (size_t)(pages * page), in_core))
        return true;
    for (int64_t i = 0; i < pages; i++)
        if (!(in_core[i] & 1))
            return false;
    return true;
}

void stki_file_advise(const stki_file *file, int64_t offset, int64_t bytes)
{
    int64_t page, first = page_start(offset, &page);
    int fd = file->fd;

    if (bytes <= 0 || !stki_inside(offset, bytes, file->size))
        return;
    if (file->map) {
        (void)madvise((char *)(uintptr_t)file->map + first, (size_t)(offset + bytes - first), MADV_WILLNEED);
        return;
    }
    if (fd < 0 && (fd = stki_descriptor_try(file->from_root ? file->from_root : file->path, OPEN_FLAGS)) < 0)
        return;
    (void)posix_fadvise(fd, first, offset + bytes - first, POSIX_FADV_WILLNEED);
    give_back(file, fd);
}

void stki_file_will_need(const stki_file *file, int64_t offset, int64_t bytes)
{
    if (!stki_file_resident(file, offset, bytes))
        stki_file_advise(file, offset, bytes);
}

bool stki_file_is_local(const stki_file *file)
{
    static const uint32_t local[] = {
        0xEF53,     0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, /* ext2 to ext4, xfs, btrfs, f2fs, zfs */
        0x01021994, 0x858458F6, 0x794C7630,                         /* tmpfs, ramfs, overlay */
    };
    struct statfs system;

    if (statfs(file->path, &system))
        return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((uint32_t)system.f_type == local[i])
            return true;
    return false;
}

static uint64_t scatter(int64_t x)
{
    return ((uint64_t)x * UINT64_C(0x9E3779B97F4A7C15)) >> 33;
}

static stki_residency *residency_of(const stki_file *file)
{
    return (stki_residency *)(uintptr_t)&file->residency;
}

/* Checks a few pages of one sample; sample and pages are chosen by a hash of the first index. */
static bool one_is_resident(const stki_file *file, const stki_file_rows *rows, const int64_t *indices, int64_t count)
{
    uint64_t any = scatter(indices[0]);
    int64_t probed = PROBE_PAGES * sysconf(_SC_PAGESIZE), skipped = 0;

    if (rows->bytes > probed)
        skipped = (int64_t)(scatter((int64_t)any) % (uint64_t)(rows->bytes - probed));
    return stki_file_resident(file, rows->offset + indices[any % (uint64_t)count] * rows->stride + skipped,
                              rows->bytes - skipped);
}

static bool advice_due(const stki_file *file, int64_t now)
{
    return !(file->map && file->pattern == STKI_PATTERN_SEQUENTIAL) && stki_residency_due(&file->residency, now);
}

void stki_file_will_need_rows(const stki_file *file, const stki_file_rows *rows, const int64_t *indices, int64_t count)
{
    const int64_t now = stki_coarse_ns();
    int64_t start = 0, end = 0;

    if (count <= 0 || rows->bytes <= 0 || !advice_due(file, now) ||
        !stki_residency_found(residency_of(file), one_is_resident(file, rows, indices, count), now))
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = rows->offset + indices[i] * rows->stride;

        if (i > 0 && at >= start && at <= end + MERGE_GAP) {
            end = at + rows->bytes > end ? at + rows->bytes : end;
            continue;
        }
        stki_file_advise(file, start, end - start);
        start = at;
        end = at + rows->bytes;
    }
    stki_file_advise(file, start, end - start);
}

bool stki_file_advice_due(const stki_file *file)
{
    return advice_due(file, stki_coarse_ns());
}

void stki_file_will_need_ranges(const stki_file *file, const stki_range *ranges, int64_t count)
{
    const int64_t now = stki_coarse_ns();
    int64_t start = 0, end = 0;
    bool resident;

    if (count <= 0 || !advice_due(file, now))
        return;
    resident = stki_file_resident(file, ranges[scatter(ranges[0].offset) % (uint64_t)count].offset, 1);
    if (!stki_residency_found(residency_of(file), resident, now))
        return;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = ranges[i].offset, behind = at + ranges[i].bytes;

        if (i > 0 && at >= start && at <= end + MERGE_GAP) {
            end = behind > end ? behind : end;
            continue;
        }
        stki_file_advise(file, start, end - start);
        start = at;
        end = behind;
    }
    stki_file_advise(file, start, end - start);
}
