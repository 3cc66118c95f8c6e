/* prep_file.c: see prep_file.h. Uses open file description locks (F_OFD_SETLK): they belong to the descriptor, so they
 * are not released when another part of the process opens and closes the file; they end with the process, and network
 * file systems support them. */
#include "prep_file.h"
#include "allocate.h"
#include "error.h"
#include "file.h"
#include "output.h"
#include "path.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { SMALL_FILE = 1 << 30, HASHED_AT_ONCE = 256 << 10 };

stk_status stki_prep_read_file(const char *path, char **text, int64_t *bytes, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    *bytes = file->size;
    *text = NULL;
    if (file->size >= SMALL_FILE)
        status = stki_fail_at(err, STK_E_LIMIT, (stki_place){path, -1, -1, "1 GiB or more", "less than 1 GiB"},
                              "size of a file that is read as a whole");
    else if (!(*text = stki_zalloc(file->size + 1)))
        status = stki_fail_memory(err, file->size, path);
    if (status == STK_OK)
        status = stki_file_read(file, 0, *text, *bytes, err);
    if (status != STK_OK) {
        stki_free(*text);
        *text = NULL; /* callers also free *text on failure */
    }
    stki_file_close(file);
    return status;
}

stk_status stki_prep_read_json(const char *path, json_t **out, stk_error *err)
{
    json_error_t where;
    char *text;
    int64_t bytes;
    stk_status status = stki_prep_read_file(path, &text, &bytes, err);

    if (status != STK_OK)
        return status;
    *out = json_loadb(text, (size_t)bytes, 0, &where);
    stki_free(text);
    return *out ? STK_OK
                : stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, where.position, where.text, "JSON"},
                               "cannot read");
}

char *stki_prep_relative(const char *folder, const char *path)
{
    const char *name = stki_base_name(path);
    char *of = stki_folder_of(path), *from = realpath(*folder ? folder : ".", NULL);
    char *to = of ? realpath(of, NULL) : NULL, *up = NULL, *relative = NULL;
    size_t common = 0;
    int steps = 0;

    for (size_t i = 0; from && to; i++) { /* counts common leading components */
        const bool ends = (from[i] == '/' || !from[i]) && (to[i] == '/' || !to[i]);

        common = ends ? i : common;
        if (from[i] != to[i] || !from[i])
            break;
    }
    for (const char *rest = from ? from + common : ""; *rest; rest++)
        steps += *rest == '/' && rest[1];
    up = from && to ? stki_zalloc(3 * (int64_t)steps + 1) : NULL;
    for (int i = 0; up && i < steps; i++)
        memcpy(up + 3 * (size_t)i, "../", 3);
    if (up) {
        const char *rest = to + common + (to[common] == '/');

        relative = stki_format("%s%s%s%s", up, rest, *rest ? "/" : "", name);
    } else if (of && !(from && to)) {
        relative = stki_strdup(path);
    }
    stki_free(up);
    stki_free(of);
    free(from);
    free(to);
    return relative;
}

const char *stki_prep_name_within(const char *input, const char *path)
{
    const size_t own = strlen(input), folder = (size_t)(stki_base_name(input) - input);

    return strncmp(path, input, own) == 0 ? path + own : strncmp(path, input, folder) == 0 ? path + folder : path;
}

stk_status stki_prep_write_final(const char *path, const char *text, int64_t bytes, stk_error *err)
{
    char *temporary = stki_format("%s.tmp", path);
    stki_output *output;
    stk_status status = temporary ? stki_output_hold(path, temporary, -1, &output, err)
                                  : stki_fail_memory(err, (int64_t)strlen(path), path);

    if (status == STK_OK) {
        status = stki_output_end(output, stki_output_append(output, text, bytes, err), err);
        if (status == STK_OK && rename(temporary, path) != 0)
            status = stki_fail_errno(err, errno, path, "cannot be renamed");
        if (status != STK_OK)
            (void)unlink(temporary);
        else
            status = stki_sync_folder_of(path, err); /* the file is kept, as in stki_output_commit */
    }
    stki_free(temporary);
    return status;
}

stk_status stki_prep_write_json(const char *path, const json_t *json, stk_error *err)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_SORT_KEYS);
    stk_status status = text ? stki_output_text(path, text, err) : stki_fail_memory(err, 256, path);

    free(text);
    return status;
}

/* ---- locks ---- */

bool stki_prep_lock_stands(int fd, const char *path)
{
    struct stat here, there;

    return fstat(fd, &here) == 0 && stat(path, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

/* Returns 0 or an errno. */
static int set_lock(int fd, int kind)
{
    struct flock lock = {.l_type = (short)kind, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

static stk_status fail_lock(const char *path, int error, stk_error *err)
{
    if (error == EAGAIN || error == EACCES)
        return stki_fail_at(err, STK_E_BUSY, (stki_place){path, -1, -1, NULL, NULL},
                            "another process is working on this part of the job; wait until it ends");
    return stki_fail_errno(err, error, path, "cannot lock (the file system must support locks)");
}

static stk_status take_lock(const char *path, int kind, int *out, stk_error *err)
{
    int fd, error;

    do {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
            return stki_fail_errno(err, errno, path, "cannot open");
        error = set_lock(fd, kind);
        if (!error && stki_prep_lock_stands(fd, path)) {
            *out = fd;
            return STK_OK;
        }
        (void)close(fd);
    } while (!error);
    return fail_lock(path, error, err);
}

stk_status stki_prep_lock_again(int fd, bool exclusive, const char *path, stk_error *err)
{
    const int error = set_lock(fd, exclusive ? F_WRLCK : F_RDLCK);

    return error ? fail_lock(path, error, err) : STK_OK;
}

stk_status stki_prep_lock_file(const char *path, int *fd, stk_error *err)
{
    return take_lock(path, F_WRLCK, fd, err);
}

stk_status stki_prep_share_file(const char *path, int *fd, stk_error *err)
{
    return take_lock(path, F_RDLCK, fd, err);
}

/* ---- folders ---- */

stk_status stki_prep_make_folder(const char *path, stk_error *err)
{
    struct stat st;

    if (mkdir(path, 0777) == 0)
        return stki_sync_folder_of(path, err);
    if (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return STK_OK;
    return stki_fail_errno(err, errno, path, "cannot create the folder");
}

static stk_status remove_last(const char *path, const char *last, stk_error *err)
{
    char *inner = stki_format("%s/%s", path, last);
    stk_status status = STK_OK;

    if (!inner)
        return stki_fail_memory(err, 256, path);
    if (unlink(inner) != 0 && errno != ENOENT)
        status = stki_fail_errno(err, errno, inner, "cannot remove");
    stki_free(inner);
    return status;
}

stk_status stki_prep_remove_folder(const char *path, const char *last, stk_error *err)
{
    DIR *folder = opendir(path);
    stk_status status = STK_OK;
    struct dirent *entry;

    if (!folder)
        return errno == ENOENT ? STK_OK : stki_fail_errno(err, errno, path, "cannot read the folder");
    while (status == STK_OK && (entry = readdir(folder)) != NULL) {
        char *inner;
        struct stat st;

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            (last && strcmp(entry->d_name, last) == 0))
            continue;
        inner = stki_format("%s/%s", path, entry->d_name);
        if (!inner)
            status = stki_fail_memory(err, 256, path);
        else if (lstat(inner, &st) == 0 && S_ISDIR(st.st_mode))
            status = stki_prep_remove_folder(inner, NULL, err);
        else if (unlink(inner) != 0 && errno != ENOENT)
            status = stki_fail_errno(err, errno, inner, "cannot remove");
        stki_free(inner);
    }
    (void)closedir(folder);
    if (status == STK_OK && last)
        status = remove_last(path, last, err);
    if (status == STK_OK && rmdir(path) != 0 && errno != ENOENT)
        status = stki_fail_errno(err, errno, path, "cannot remove the folder");
    return status;
}

bool stki_prep_folder_is_empty(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry;
    int count = 0;

    if (!folder)
        return false;
    while ((entry = readdir(folder)) != NULL)
        count++;
    (void)closedir(folder);
    return count == 2; /* . and .. */
}

bool stki_prep_exists(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0;
}

int64_t stki_prep_file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* ---- digests ---- */

stk_status stki_prep_digest_file(const char *path, uint64_t *out, int64_t *bytes, stk_error *err)
{
    stki_file *file;
    XXH3_state_t *state = XXH3_createState();
    char *buffer = stki_zalloc(HASHED_AT_ONCE);
    stk_status status = state && buffer ? stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err)
                                        : stki_fail_memory(err, HASHED_AT_ONCE, path);

    if (status == STK_OK) {
        XXH3_64bits_reset(state);
        for (int64_t at = 0; at < file->size && status == STK_OK; at += HASHED_AT_ONCE) {
            int64_t n = file->size - at < HASHED_AT_ONCE ? file->size - at : HASHED_AT_ONCE;

            status = stki_file_read(file, at, buffer, n, err);
            if (status == STK_OK)
                XXH3_64bits_update(state, buffer, (size_t)n);
        }
        *out = XXH3_64bits_digest(state);
        *bytes = file->size;
        stki_file_close(file);
    }
    XXH3_freeState(state);
    stki_free(buffer);
    return status;
}
