/* file_list.c: see files.h. glob(3) sorts by locale, so the names are sorted here. */
#include "allocate.h"
#include "error.h"
#include "files.h"
#include "foreign_file.h"
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

stk_status stki_file_list_add_file(stki_file_list *list, const char *path, stk_error *err)
{
    int64_t n = list->count;
    char *copy;

    if ((n & (n - 1)) == 0) { /* the capacity is the next power of two */
        char **paths = stki_resize(list->paths, (n ? 2 * n : 1) * (int64_t)sizeof *paths);

        if (!paths)
            return stki_fail_memory(err, 2 * n * (int64_t)sizeof *paths, "a list of files");
        list->paths = paths;
    }
    copy = stki_strdup(path);
    if (!copy)
        return stki_fail_memory(err, (int64_t)strlen(path) + 1, "a list of files");
    list->paths[list->count++] = copy;
    return STK_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Fails because glob could not read a folder. If the folder before the first wildcard does not exist, names it. */
static stk_status fail_folder(const char *pattern, const char *because, stk_error *err)
{
    int length = (int)strcspn(pattern, "*?[");
    char folder[PATH_MAX];

    while (length > 0 && pattern[length] != '/')
        length--;
    snprintf(folder, sizeof folder, "%.*s", length, pattern);
    if (length > 0 && access(folder, F_OK) != 0)
        return stki_fail_errno(err, errno, pattern, "cannot open the folder %s%s%s%s", folder, because[0] ? " (" : "",
                               because, because[0] ? ")" : "");
    return stki_fail_at(err, STK_E_IO, (stki_place){pattern, -1, -1, NULL, NULL},
                        "a folder in the pattern cannot be read");
}

static stk_status add_matches(stki_file_list *list, const char *pattern, stk_error *err)
{
    glob_t found;
    int result = glob(pattern, GLOB_NOSORT | GLOB_ERR, NULL, &found);
    const char *because = stki_file_missing_because(pattern);
    stk_status status = STK_OK;

    if (result == GLOB_NOSPACE) {
        status = stki_fail_memory(err, 0, "a list of files");
    } else if (result == GLOB_ABORTED) {
        status = fail_folder(pattern, because, err);
    } else if (result == GLOB_NOMATCH) {
        status =
            stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){pattern, -1, -1, NULL, NULL},
                         "no file matches the pattern%s%s%s", because[0] ? " (" : "", because, because[0] ? ")" : "");
    } else {
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, compare);
        for (size_t i = 0; i < found.gl_pathc && status == STK_OK; i++)
            status = stki_file_list_add_file(list, found.gl_pathv[i], err);
    }
    if (result == 0)
        globfree(&found);
    return status;
}

stk_status stki_file_list_add(stki_file_list *list, const char *path, stk_error *err)
{
    return strpbrk(path, "*?[") && access(path, F_OK) ? add_matches(list, path, err)
                                                      : stki_file_list_add_file(list, path, err);
}

void stki_file_list_fini(stki_file_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free(list->paths[i]);
    stki_free(list->paths);
    *list = (stki_file_list){0};
}
