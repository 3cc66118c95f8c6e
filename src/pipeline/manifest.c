/* manifest.c: see manifest.h. */
#include "manifest.h"
#include "allocate.h"
#include "error.h"
#include "path.h"
#include "stamp.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static stk_status corrupt(const char *path, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, NULL, NULL},
                        "not the manifest of a preparation job: %s", what);
}

/* Sets the path of a listed file, whose name is relative to the manifest's folder. Names that refer to files outside
 * that folder are rejected. */
static stk_status resolve(const char *manifest, stki_manifest_file *file, stk_error *err)
{
    if (!*file->name || *file->name == '/' || strcmp(file->name, "..") == 0 || strncmp(file->name, "../", 3) == 0 ||
        strstr(file->name, "/../"))
        return corrupt(manifest, "a part's path is outside its folder", err);
    file->path = stki_beside(manifest, file->name);
    return file->path ? STK_OK : stki_fail_memory(err, (int64_t)strlen(file->name), "a path");
}

static bool read_sum(const json_t *item, uint64_t *out)
{
    const char *text = json_string_value(json_object_get(item, "xxh3"));
    char *end;

    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *out = strtoull(text, &end, 16);
    return true;
}

static stk_status read_file(const char *manifest, const json_t *item, stki_manifest_file *file, stk_error *err)
{
    const json_t *rows = json_object_get(item, "rows"), *bytes = json_object_get(item, "bytes");

    file->name = json_string_value(json_object_get(item, "path"));
    file->rows = json_integer_value(rows);
    file->bytes = json_integer_value(bytes);
    if (!file->name || !json_is_integer(rows) || !json_is_integer(bytes) || file->rows < 0 || file->bytes < 0 ||
        !read_sum(item, &file->xxh3))
        return corrupt(manifest, "a part lacks one of path, rows, bytes and xxh3", err);
    return resolve(manifest, file, err);
}

static stk_status read_files(stki_manifest *list, stk_error *err)
{
    const json_t *parts = json_object_get(list->manifest, "parts");
    const char *fingerprint = json_string_value(json_object_get(list->manifest, "fingerprint"));
    const size_t count = json_array_size(parts);
    char found[STKI_U128_TEXT], expected[STKI_U128_TEXT];
    stki_u128 computed;

    if (count == 0 || count > INT32_MAX || !fingerprint || !stki_u128_read(fingerprint, &list->fingerprint))
        return corrupt(list->path, "it has no parts or no fingerprint", err);
    list->files = stki_zalloc_array((int64_t)count, sizeof *list->files);
    if (!list->files)
        return stki_fail_memory(err, (int64_t)(count * sizeof *list->files), "parts");
    for (size_t i = 0; i < count; i++) {
        stk_status status = read_file(list->path, json_array_get(parts, i), &list->files[list->count++], err);

        if (status != STK_OK)
            return status;
    }
    computed = stki_manifest_fingerprint(list->files, list->count);
    if (!stki_u128_equal(computed, list->fingerprint))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){list->path, -1, -1, stki_u128_text(computed, found),
                                         stki_u128_text(list->fingerprint, expected)},
                            "its fingerprint does not match its parts, so the manifest was modified");
    return STK_OK;
}

stk_status stki_manifest_open(const char *path, stki_manifest *out, stk_error *err)
{
    json_error_t json_error;
    struct stat facts;
    FILE *file;
    stk_status status;

    *out = (stki_manifest){.path = stki_strdup(path)};
    if (!out->path)
        return stki_fail_memory(err, (int64_t)strlen(path), "a path");
    file = fopen(path, "rbe");
    if (!file || fstat(fileno(file), &facts) != 0)
        status = stki_fail_errno(err, errno, path, "cannot open the manifest");
    else if (!S_ISREG(facts.st_mode))
        status = stki_fail(err, STK_E_CORRUPT, "%s: not a regular file, expected a manifest, NAME.manifest.json", path);
    else if (!(out->manifest = json_loadf(file, JSON_REJECT_DUPLICATES, &json_error)))
        status = stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, json_error.line, -1, NULL, NULL},
                              "invalid JSON: %s", json_error.text);
    else
        status = read_files(out, err);
    if (file)
        fclose(file);
    if (status != STK_OK)
        stki_manifest_fini(out);
    return status;
}

void stki_manifest_fini(stki_manifest *list)
{
    for (int i = 0; i < list->count; i++)
        stki_free(list->files[i].path);
    stki_free(list->files);
    stki_free(list->path);
    json_decref(list->manifest);
    *list = (stki_manifest){0};
}

stki_u128 stki_manifest_fingerprint(const stki_manifest_file *files, int count)
{
    stki_u128 print = {0};

    for (int i = 0; i < count; i++) {
        stki_fingerprint_text(&print, files[i].name);
        stki_fingerprint_number(&print, files[i].rows);
        stki_fingerprint_number(&print, files[i].bytes);
        stki_fingerprint_number(&print, (int64_t)files[i].xxh3);
    }
    return print;
}

static stk_status check_one(const stki_manifest *list, const stki_manifest_file *file, stk_error *err)
{
    struct stat facts;

    if (stat(file->path, &facts) != 0)
        return stki_fail_errno(err, errno, file->path, "listed in %s", list->path);
    if (!S_ISREG(facts.st_mode) || facts.st_size != file->bytes)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){file->path, -1, -1, STKI_TEXT("%" PRId64 " bytes", (int64_t)facts.st_size),
                                         STKI_TEXT("%" PRId64 " bytes", file->bytes)},
                            "not the file that %s lists", list->path);
    return STK_OK;
}

stk_status stki_manifest_check(const stki_manifest *list, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < list->count && status == STK_OK; i++)
        status = check_one(list, &list->files[i], err);
    return status;
}

bool stki_manifest_fits(const stki_manifest *list, const char *path)
{
    stki_stamp file;
    struct stat facts;

    if (stki_stamp_take(path, &file, NULL) != STK_OK || stat(path, &facts) != 0)
        return false;
    for (int i = 0; i < list->count; i++)
        if (list->files[i].bytes == facts.st_size &&
            strcmp(stki_base_name(list->files[i].name), stki_base_name(path)) == 0 &&
            stki_stamp_is_of(&file, list->files[i].path))
            return true;
    return false;
}

/* Lists may be long, so entries with the same file name are compared first. The second pass finds links with other
 * names. */
stk_status stki_manifest_has(const stki_manifest *list, const char *path, stk_error *err)
{
    stki_stamp file;

    if (stki_stamp_take(path, &file, NULL) != STK_OK)
        return stki_fail_errno(err, errno, path, "cannot be compared with %s", list->path);
    for (int links = 0; links < 2; links++)
        for (int i = 0; i < list->count; i++)
            if ((strcmp(stki_base_name(list->files[i].name), stki_base_name(path)) == 0) != links &&
                stki_stamp_is_of(&file, list->files[i].path))
                return STK_OK;
    return stki_fail(err, STK_E_MISMATCH, "%s: not listed in %s, which lists %d file%s (%s%s)", path, list->path,
                     list->count, list->count == 1 ? "" : "s", list->files[0].name, list->count > 1 ? ", …" : "");
}
