/* image_scan.c: finds the image files of a folder tree. Folders are visited in the order of their paths with a stack.
 * This yields nearly sorted names, which are then sorted if necessary, so the order does not depend on readdir. A
 * folder that is its own ancestor (through a link) is skipped. */
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "image_set.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 64, MOST_FOLDERS = 1 << 22 };

struct folder {
    char *path;            /* relative to the root, with a trailing slash; "" for the root */
    int64_t parent, klass; /* -1: none */
    int depth;
    dev_t device;
    ino_t inode;
};

struct scan {
    stki_image_set *set;
    struct folder *folders; /* all folders seen; ancestors are needed until the end */
    int64_t count, room;
    int64_t *stack, waiting, stack_room;
    stk_error *err;
};

static void scan_fini(struct scan *scan)
{
    for (int64_t i = 0; i < scan->count; i++)
        stki_free(scan->folders[i].path);
    stki_free(scan->folders);
    stki_free(scan->stack);
}

/* ---- the stack ---- */

static stk_status add_folder(struct scan *scan, int64_t parent, const char *name)
{
    struct folder *folder;
    stk_status status;

    if (scan->count == MOST_FOLDERS)
        return stki_fail_at(scan->err, STK_E_LIMIT,
                            (stki_place){scan->set->root, -1, -1, STKI_TEXT("more than %d", MOST_FOLDERS),
                                         STKI_TEXT("at most %d", MOST_FOLDERS)},
                            "too many folders (do links form cycles?)");
    status = stki_grow(&scan->folders, &scan->room, scan->count + 1, sizeof *folder, "the names of folders", scan->err);
    if (status != STK_OK)
        return status;
    folder = &scan->folders[scan->count];
    *folder = (struct folder){.parent = parent, .klass = -1};
    folder->path = parent < 0 ? stki_strdup("") : stki_format("%s%s/", scan->folders[parent].path, name);
    if (!folder->path)
        return stki_fail_memory(scan->err, (int64_t)strlen(name), "the name of a folder");
    if (parent >= 0) {
        folder->depth = scan->folders[parent].depth + 1;
        folder->klass = scan->folders[parent].klass;
    }
    scan->count++;
    return STK_OK;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct folder *)a)->path, ((const struct folder *)b)->path);
}

/* Pushes folders [first, count), with the first one on top. */
static stk_status push_folders(struct scan *scan, int64_t first)
{
    stk_status status = stki_grow(&scan->stack, &scan->stack_room, scan->waiting + scan->count - first,
                                  sizeof *scan->stack, "the names of folders", scan->err);

    for (int64_t i = scan->count - 1; status == STK_OK && i >= first; i--)
        scan->stack[scan->waiting++] = i;
    return status;
}

/* ---- one folder ---- */

static bool inside_itself(const struct scan *scan, int64_t number)
{
    const struct folder *folder = &scan->folders[number];

    for (int64_t up = folder->parent; up >= 0; up = scan->folders[up].parent)
        if (scan->folders[up].device == folder->device && scan->folders[up].inode == folder->inode)
            return true;
    return false;
}

static unsigned char kind_of(int fd, const struct dirent *entry)
{
    struct stat stat;

    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return entry->d_type;
    if (fstatat(fd, entry->d_name, &stat, 0))
        return DT_UNKNOWN; /* a dangling or inaccessible link */
    return S_ISDIR(stat.st_mode) ? DT_DIR : S_ISREG(stat.st_mode) ? DT_REG : DT_UNKNOWN;
}

static stk_status take_entry(struct scan *scan, int64_t number, int fd, const struct dirent *entry)
{
    const char *name = entry->d_name;
    unsigned char kind;

    if (!strcmp(name, ".") || !strcmp(name, ".."))
        return STK_OK;
    if (name[0] == '.') {
        scan->set->hidden++;
        return STK_OK;
    }
    kind = kind_of(fd, entry);
    if (kind == DT_DIR)
        return add_folder(scan, number, name);
    if (!stki_image_name(name)) {
        scan->set->others += kind == DT_REG;
        scan->set->broken += kind != DT_REG;
        return STK_OK;
    }
    /* The entry is added even if it is not a file, so that a dangling link is an error when it is read rather than
     * silently skipped. */
    return stki_image_set_add(scan->set, scan->folders[number].path, name, scan->folders[number].klass, scan->err);
}

static stk_status fail_folder(struct scan *scan, int64_t number, int error_number, const char *what)
{
    const char *path = scan->folders[number].path;
    char *whole = stki_format("%s%s%s", scan->set->root, path[0] ? "/" : "", path);
    stk_status status = stki_fail_errno(scan->err, error_number, whole ? whole : path, "%s", what);

    stki_free(whole);
    return status;
}

static stk_status open_folder(struct scan *scan, int64_t number, DIR **out)
{
    struct folder *folder = &scan->folders[number];
    char *path = stki_format("%s/%s", scan->set->root, folder->path);
    struct stat stat;
    int fd;

    if (!path)
        return stki_fail_memory(scan->err, (int64_t)strlen(folder->path), "the name of a folder");
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    stki_free(path);
    *out = NULL;
    if (fd < 0)
        return fail_folder(scan, number, errno, "cannot open the folder");
    if (fstat(fd, &stat)) {
        stk_status status = fail_folder(scan, number, errno, "cannot read the folder");
        close(fd);
        return status;
    }
    folder->device = stat.st_dev;
    folder->inode = stat.st_ino;
    if (inside_itself(scan, number) || folder->depth > MOST_DEPTH) {
        scan->set->loops++;
        close(fd);
        return STK_OK;
    }
    *out = fdopendir(fd);
    if (!*out) {
        close(fd);
        return stki_fail_memory(scan->err, 0, "reading a folder");
    }
    return STK_OK;
}

static stk_status read_entries(struct scan *scan, int64_t number, DIR *dir)
{
    stk_status status = STK_OK;

    while (status == STK_OK) {
        const struct dirent *entry;

        errno = 0;
        entry = readdir(dir);
        if (!entry)
            return errno ? fail_folder(scan, number, errno, "cannot read the folder") : STK_OK;
        status = take_entry(scan, number, dirfd(dir), entry);
    }
    return status;
}

/* ---- order ---- */

struct named {
    const char *name;
    int64_t at, label;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static bool is_sorted(const stki_image_set *set, int64_t first)
{
    for (int64_t i = first + 1; i < set->count; i++)
        if (strcmp(stki_image_set_name(set, i - 1), stki_image_set_name(set, i)) > 0)
            return false;
    return true;
}

static stk_status sort_names(stki_image_set *set, int64_t first, stk_error *err)
{
    int64_t count = set->count - first;
    struct named *list;

    if (is_sorted(set, first))
        return STK_OK;
    list = stki_zalloc_array(count, sizeof *list);
    if (!list)
        return stki_fail_memory(err, count * (int64_t)sizeof *list, "sorting the names of images");
    for (int64_t i = 0; i < count; i++)
        list[i] = (struct named){stki_image_set_name(set, first + i), set->name_at[first + i], set->labels[first + i]};
    qsort(list, (size_t)count, sizeof *list, by_name);
    for (int64_t i = 0; i < count; i++) {
        set->name_at[first + i] = list[i].at;
        set->labels[first + i] = list[i].label;
    }
    stki_free(list);
    return STK_OK;
}

/* ---- classes ---- */

/* Makes a class of each subfolder of the root, numbered in the order of their names. At this point, these are all
 * folders except the first; the trailing slash is not part of the name. */
static stk_status make_classes(struct scan *scan)
{
    stki_classes *classes = &scan->set->classes;
    stk_status status = STK_OK;

    for (int turn = 0; turn < 2 && status == STK_OK; turn++) {
        for (int64_t i = 1; i < scan->count && status == STK_OK; i++) {
            struct folder *folder = &scan->folders[i];
            char *slash = folder->path + strlen(folder->path) - 1;

            *slash = '\0';
            if (turn == 0)
                status = stki_classes_add(classes, folder->path, NULL, scan->err);
            else
                folder->klass = stki_classes_find(classes, folder->path);
            *slash = '/';
        }
        if (turn == 0 && status == STK_OK)
            status = stki_classes_sort(classes, scan->err);
    }
    return status;
}

static void forget_classes(stki_image_set *set)
{
    stki_classes_fini(&set->classes);
    stki_free(set->labels);
    set->labels = NULL;
}

static stk_status count_empty_classes(stki_image_set *set, stk_error *err)
{
    char *used = stki_zalloc(set->classes.count);

    if (!used)
        return stki_fail_memory(err, set->classes.count, "classes");
    set->empty_classes = set->classes.count;
    for (int64_t i = 0; i < set->count; i++) {
        set->empty_classes -= !used[set->labels[i]];
        used[set->labels[i]] = 1;
    }
    stki_free(used);
    return STK_OK;
}

/* Keeps only the images in class folders if there are any; otherwise the folder is flat, without labels. */
static stk_status settle_classes(stki_image_set *set, stk_error *err)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < set->count; i++)
        kept += set->labels[i] >= 0;
    if (kept == 0) {
        forget_classes(set);
        return STK_OK;
    }
    set->outside = set->count - kept;
    kept = 0;
    for (int64_t i = 0; i < set->count; i++)
        if (set->labels[i] >= 0) {
            set->name_at[kept] = set->name_at[i];
            set->labels[kept++] = set->labels[i];
        }
    set->count = kept;
    return count_empty_classes(set, err);
}

/* ---- whole tree ---- */

static stk_status scan_folder(struct scan *scan, int64_t number)
{
    int64_t first = scan->count, first_name = scan->set->count;
    DIR *dir;
    stk_status status = open_folder(scan, number, &dir);

    if (status != STK_OK || !dir)
        return status;
    status = read_entries(scan, number, dir);
    closedir(dir);
    if (status == STK_OK && number == 0)
        status = make_classes(scan);
    if (status != STK_OK)
        return status;
    qsort(scan->folders + first, (size_t)(scan->count - first), sizeof *scan->folders, by_path);
    status = push_folders(scan, first);
    return status != STK_OK ? status : sort_names(scan->set, first_name, scan->err);
}

static stk_status scan_all(struct scan *scan)
{
    stk_status status = add_folder(scan, -1, "");

    if (status == STK_OK)
        status = push_folders(scan, 0);
    while (status == STK_OK && scan->waiting > 0)
        status = scan_folder(scan, scan->stack[--scan->waiting]);
    if (status == STK_OK)
        status = sort_names(scan->set, 0, scan->err);
    return status != STK_OK ? status : settle_classes(scan->set, scan->err);
}

static stk_status scan_root(struct scan *scan)
{
    const stk_status status = add_folder(scan, -1, "");

    return status != STK_OK ? status : scan_folder(scan, 0);
}

static stk_status run_scan(const char *folder, stk_status (*scan_some)(struct scan *scan), stki_image_set *out,
                           stk_error *err)
{
    struct scan scan = {.set = out, .err = err};
    size_t length = strlen(folder);
    stk_status status;

    *out = (stki_image_set){0};
    while (length > 1 && folder[length - 1] == '/')
        length--;
    out->root = stki_format("%.*s", (int)length, folder);
    status = out->root ? scan_some(&scan) : stki_fail_memory(err, (int64_t)length, "the name of a folder");
    scan_fini(&scan);
    return status;
}

stk_status stki_image_set_classes(const char *folder, stki_classes *out, stk_error *err)
{
    stki_image_set set;
    stk_status status = run_scan(folder, scan_root, &set, err);

    if (status == STK_OK && set.classes.count == 0)
        status =
            stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){folder, -1, -1, "no subfolders", "one subfolder per class"},
                         "the folder has no class folders");
    if (status == STK_OK)
        status = stki_classes_add_all(out, &set.classes, err);
    stki_image_set_fini(&set);
    return status;
}

stk_status stki_image_set_scan(const char *folder, stki_image_set *out, stk_error *err)
{
    stk_status status = run_scan(folder, scan_all, out, err);

    if (status == STK_OK && out->count == 0)
        status = stki_fail_at(
            err, STK_E_NOT_FOUND,
            (stki_place){folder, -1, -1,
                         STKI_TEXT("other files: %" PRId64 ", hidden files: %" PRId64 ", broken links: %" PRId64,
                                   out->others, out->hidden, out->broken),
                         ".jpg, .jpeg or .png files"},
            "no images in the folder");
    if (status != STK_OK)
        stki_image_set_fini(out);
    return status;
}
