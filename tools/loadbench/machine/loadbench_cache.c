/* loadbench_cache.c: uses mincore on a mapping that is never accessed, and posix_fadvise after a sync. Pages that are
 * mapped by a process, and pages of in-memory file systems, stay cached despite the advice, so residency is checked
 * afterwards. */
#include "loadbench_cache.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "loadbench_machine.h"
#include "loadbench_stop.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 32, MOST_ASKED = 4096, SOON_ASKED = 256 };
#define WINDOW_BYTES \
    (INT64_C(1) << 26) /* bytes checked per call (a vector of 16 KiB), because address space may be limited */
#define SOON_BYTES (INT64_C(16) << 30) /* this many bytes, and SOON_ASKED files, are checked even after a signal */
#define READ_BYTES (INT64_C(4) << 20)

const char *const lb_cache_words[] = {"as-is", "warm", "cold", NULL};

/* ---- list of files ---- */

static stk_status add_file(struct lb_files *files, const char *path, int64_t bytes, stk_error *err)
{
    const stk_status status =
        stki_grow(&files->paths, &files->room, files->count + 1, sizeof *files->paths, "the list of files", err);
    if (status != STK_OK)
        return status;
    char *copy = stki_strdup(path);
    if (!copy)
        return stki_fail_memory(err, (int64_t)strlen(path), "a path");
    files->paths[files->count++] = copy;
    files->bytes += bytes;
    return STK_OK;
}

static stk_status add(struct lb_files *files, const char *path, int depth, stk_error *err)
{
    struct stat about;
    stk_status status = STK_OK;

    if (stat(path, &about) != 0)
        return STK_OK;
    if (S_ISREG(about.st_mode))
        return add_file(files, path, about.st_size, err);
    if (!S_ISDIR(about.st_mode) || depth == MOST_DEPTH)
        return STK_OK;
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && status == STK_OK && !lb_stop_asked && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.')
            continue;
        char *inside = stki_format("%s/%s", path, entry->d_name);
        status = inside ? add(files, inside, depth + 1, err) : stki_fail_memory(err, 256, "a path");
        stki_free(inside);
    }
    if (folder)
        closedir(folder);
    return status;
}

stk_status lb_files_add(struct lb_files *files, const char *path, stk_error *err)
{
    files->others = files->others || access(path, F_OK) != 0;
    return add(files, path, 0, err);
}

void lb_files_fini(struct lb_files *files)
{
    for (int64_t i = 0; i < files->count; i++)
        stki_free(files->paths[i]);
    stki_free(files->paths);
    memset(files, 0, sizeof *files);
}

/* ---- residency ---- */

double lb_residency_share(const struct lb_residency *residency)
{
    return residency->bytes > 0 ? (double)residency->resident_bytes / (double)residency->bytes : 1;
}

/* Whether mincore's result is reliable for this file. */
static bool may_know(const struct stat *about, const char *path)
{
    return about->st_uid == geteuid() || faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

static stk_status count_window(int descriptor, const char *path, int64_t offset, int64_t bytes, unsigned char *pages,
                               struct lb_residency *out, stk_error *err)
{
    const int64_t page = sysconf(_SC_PAGESIZE), count = (bytes + page - 1) / page;
    void *map = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, descriptor, offset);

    if (map == MAP_FAILED && errno == ENOMEM) { /* a run must not fail only because the residency is unknown */
        out->known = false;
        snprintf(out->why, sizeof out->why, "%.200s: too little address space to map it (ulimit -v)", path);
        return STK_OK;
    }
    if (map == MAP_FAILED)
        return stki_fail_errno(err, errno, path, "mapping it to find out which pages are in memory");
    const int failed = mincore(map, (size_t)bytes, pages) != 0 ? errno : 0;
    munmap(map, (size_t)bytes);
    if (failed)
        return stki_fail_errno(err, failed, path, "finding out which pages are in memory");
    out->bytes += count * page;
    for (int64_t i = 0; i < count; i++)
        out->resident_bytes += pages[i] & 1 ? page : 0;
    return STK_OK;
}

static bool gives_up(struct lb_residency *out)
{
    if (!lb_stop_asked || (out->asked < SOON_ASKED && out->bytes < SOON_BYTES))
        return false;
    out->known = false;
    snprintf(out->why, sizeof out->why, "%s", LB_STOPPED);
    return true;
}

stk_status lb_residency_of(int descriptor, const char *path, int64_t offset, int64_t bytes, struct lb_residency *out,
                           stk_error *err)
{
    const int64_t page = sysconf(_SC_PAGESIZE), most = bytes < WINDOW_BYTES ? bytes : WINDOW_BYTES;
    struct stat about;
    unsigned char *pages;
    stk_status status = STK_OK;

    out->asked++;
    if (fstat(descriptor, &about) != 0)
        return stki_fail_errno(err, errno, path, "querying its size");
    if (bytes <= 0)
        return STK_OK;
    if (!may_know(&about, path)) {
        out->known = false;
        snprintf(out->why, sizeof out->why, "%.170s: this user neither owns it nor can write to it", path);
        return STK_OK;
    }
    pages = stki_zalloc((most + page - 1) / page);
    if (!pages)
        return stki_fail_memory(err, most / page, "the list of resident pages");
    for (int64_t at = 0; at < bytes && status == STK_OK && out->known && !gives_up(out); at += WINDOW_BYTES)
        status = count_window(descriptor, path, offset + at, bytes - at < WINDOW_BYTES ? bytes - at : WINDOW_BYTES,
                              pages, out, err);
    stki_free(pages);
    return status;
}

stk_status lb_residency_read(const struct lb_files *files, struct lb_residency *out, stk_error *err)
{
    const int64_t step = (files->count + MOST_ASKED - 1) / MOST_ASKED;
    stk_status status = STK_OK;

    *out = (struct lb_residency){.known = true, .files = files->count};
    for (int64_t i = 0; i < files->count && status == STK_OK && out->known; i += step) {
        if (gives_up(out))
            break;
        const int descriptor = open(files->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat about;
        if (descriptor >= 0 && fstat(descriptor, &about) == 0)
            status = lb_residency_of(descriptor, files->paths[i], 0, about.st_size, out, err);
        if (descriptor >= 0)
            close(descriptor);
    }
    if (files->others) {
        out->known = false;
        snprintf(out->why, sizeof out->why, "the config does not name the data files directly");
    } else if (files->count == 0) {
        out->known = false;
        snprintf(out->why, sizeof out->why, "the data is not in files");
    }
    return status;
}

/* ---- loading and evicting ---- */

static stk_status read_whole(const char *path, void *buffer, stk_error *err)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = 1;

    if (descriptor < 0)
        return stki_fail_errno(err, errno, path, "opening");
    while (got > 0 && !lb_stop_asked)
        got = read(descriptor, buffer, (size_t)READ_BYTES);
    const int failed = got < 0 ? errno : 0;
    close(descriptor);
    return failed ? stki_fail_errno(err, failed, path, "reading it into memory") : STK_OK;
}

stk_status lb_cache_fill(const struct lb_files *files, stk_error *err)
{
    const int64_t room = lb_memory_available();
    void *buffer;
    stk_status status = STK_OK;

    if (files->bytes > room)
        return stki_fail(err, STK_E_LIMIT,
                         "--cache=warm: %.1f GB of data does not fit in %.1f GB of free memory; use --cache=as-is",
                         (double)files->bytes / 1e9, (double)room / 1e9);
    buffer = stki_zalloc(READ_BYTES);
    if (!buffer)
        return stki_fail_memory(err, READ_BYTES, "reading the data into memory");
    for (int64_t i = 0; i < files->count && status == STK_OK && !lb_stop_asked; i++)
        status = read_whole(files->paths[i], buffer, err);
    stki_free(buffer);
    return status == STK_OK && lb_stop_asked ? STK_END : status;
}

stk_status lb_cache_drop(const struct lb_files *files, stk_error *err)
{
    struct lb_residency left;
    stk_status status;

    if (files->others)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "--cache=cold: the config does not name the data files directly (a list of images, "
                         "a name without its extension), so they cannot be evicted");
    if (files->count == 0)
        return stki_fail(err, STK_E_UNSUPPORTED, "--cache=cold: the data is not in files, so it cannot be evicted");
    for (int64_t i = 0; i < files->count; i++) {
        const int descriptor = open(files->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0)
            return stki_fail_errno(err, errno, files->paths[i], "opening it to evict it from memory");
        (void)fdatasync(descriptor); /* dirty pages cannot be evicted, so they are synced; read-only files have none */
        (void)posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        close(descriptor);
        if (lb_stop_asked)
            return STK_END;
    }
    status = lb_residency_read(files, &left, err);
    if (status != STK_OK)
        return status;
    if (!left.known)
        return stki_fail(err, STK_E_UNSUPPORTED, "--cache=cold: cannot determine whether the data was evicted: %s",
                         left.why);
    if (lb_residency_share(&left) > LB_COLD_SHARE)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "--cache=cold: %.0f %% of the data is still in memory after eviction (the file system is in "
                         "memory, or another process has it mapped): the run would not be cold; use --cache=as-is",
                         100 * lb_residency_share(&left));
    return STK_OK;
}

/* ---- restoring ---- */

/* Returns one byte per page of an open file, to be freed with stki_free; NULL: the file is empty, or residency is
 * unknown. */
static unsigned char *read_pages(int descriptor, int64_t *count)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    struct stat about;

    if (fstat(descriptor, &about) != 0 || about.st_size == 0)
        return NULL;
    *count = (about.st_size + page - 1) / page;
    unsigned char *pages = stki_zalloc(*count);
    void *map = pages ? mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
    const bool known = map != MAP_FAILED && mincore(map, (size_t)about.st_size, pages) == 0;

    if (map != MAP_FAILED)
        munmap(map, (size_t)about.st_size);
    if (known)
        return pages;
    stki_free(pages);
    return NULL;
}

stk_status lb_pages_note(const struct lb_files *files, struct lb_pages *out, stk_error *err)
{
    *out = (struct lb_pages){.files = files};
    if (files->count == 0 || files->count > LB_PAGES_FILES || files->bytes > LB_PAGES_BYTES)
        return STK_OK;
    out->resident = stki_zalloc_array(files->count, sizeof *out->resident);
    if (!out->resident)
        return stki_fail_memory(err, files->count * (int64_t)sizeof *out->resident, "the list of resident pages");
    for (int64_t i = 0; i < files->count; i++) {
        const int descriptor = open(files->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (descriptor < 0)
            continue;
        out->resident[i].pages = read_pages(descriptor, &out->resident[i].count);
        close(descriptor);
    }
    return STK_OK;
}

static void put_file_back(int descriptor, const struct lb_file_pages *before)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    int64_t count = 0;
    unsigned char *now = read_pages(descriptor, &count);

    if (count > before->count)
        count = before->count;
    for (int64_t i = 0; now && i < count; i++) {
        const int64_t first = i;
        while (i < count && (now[i] & 1) && !(before->pages[i] & 1))
            i++;
        if (i > first)
            (void)posix_fadvise(descriptor, first * page, (i - first) * page, POSIX_FADV_DONTNEED);
    }
    stki_free(now);
}

void lb_pages_put_back(struct lb_pages *pages)
{
    for (int64_t i = 0; pages->resident && i < pages->files->count; i++) {
        const int descriptor =
            pages->resident[i].pages ? open(pages->files->paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        if (descriptor >= 0) {
            put_file_back(descriptor, &pages->resident[i]);
            close(descriptor);
        }
        stki_free(pages->resident[i].pages);
    }
    stki_free(pages->resident);
    *pages = (struct lb_pages){0};
}
