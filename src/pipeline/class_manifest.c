/* class_manifest.c: class names from the manifests of preparation jobs (docs/reference/prep.md). Uses the manifest that
 * the config names for a data set, or else NAME.manifest.json next to a file NAME.npy, NAME-00003.tar, NAME.FIELD.npy
 * and so on, provided that it lists the file with its actual size. */
#include "allocate.h"
#include "core.h"
#include "dtype.h"
#include "error.h"
#include "field_classes.h"
#include "path.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHARD_DIGITS = 5 };

#define MANIFEST ".manifest.json"

/* ---- the table in a manifest ---- */

static const json_t *field_named(const json_t *fields, const char *name)
{
    for (size_t i = 0; name && i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        const char *found = json_string_value(json_object_get(field, "name"));

        if (found && strcmp(found, name) == 0)
            return field;
    }
    return NULL;
}

/* Returns the length of the name without "-00003" at its end. */
static int without_number(const char *name, int length)
{
    int at = length;

    while (at > 0 && isdigit((unsigned char)name[at - 1]))
        at--;
    return length - at >= SHARD_DIGITS && at > 1 && name[at - 1] == '-' ? at - 1 : length;
}

/* Returns FIELD if the file is NAME.FIELD.npy or NAME-00003.FIELD.npy next to NAME.manifest.json. NULL: the file holds
 * all fields. */
static const json_t *field_of_file(const json_t *fields, const char *manifest, const char *file)
{
    const char *stem = stki_base_name(manifest), *base = stki_base_name(file), *end = strstr(stem, MANIFEST);
    const char *dot = strrchr(base, '.');

    for (size_t i = 0; end && dot && i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        const char *name = json_string_value(json_object_get(field, "name"));
        const int length = (int)(dot - base), own = name ? (int)strlen(name) + 1 : length,
                  rest = own < length ? length - own : 0;

        if (rest > 0 && base[rest] == '.' && memcmp(base + rest + 1, name, (size_t)own - 1) == 0 &&
            (rest == end - stem || without_number(base, rest) == end - stem) &&
            memcmp(base, stem, (size_t)(end - stem)) == 0)
            return field;
    }
    return NULL;
}

/* Returns the class names of a field in the manifest: the one named by the member, or else by the file name, or else by
 * the loader's field, or else the only one. NULL: there is no such field, or it has no class names. */
static const json_t *classes_in(const stki_manifest *list, const char *file, const char *member, const char *name)
{
    const json_t *fields = json_object_get(list->manifest, "fields"), *field = field_named(fields, member);

    field = field || !file ? field : field_of_file(fields, list->path, file);
    field = field ? field : field_named(fields, name);
    field = field || json_array_size(fields) != 1 ? field : json_array_get(fields, 0);
    return json_object_get(field, "classes");
}

static stk_status read_names(const char *path, const json_t *list, stki_classes *out, stk_error *err)
{
    stk_status status = STK_OK;

    for (size_t i = 0; i < json_array_size(list) && status == STK_OK; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        int64_t number = -1;

        if (name && *name)
            status = stki_classes_add(out, name, &number, err);
        if (status == STK_OK && number != (int64_t)i)
            status =
                stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, -1, name ? name : "no text", "distinct names"},
                             "classes of a field");
    }
    return status;
}

stk_status stki_classes_of_manifest(const char *path, const char *member, const char *field, stki_classes *out,
                                    stk_error *err)
{
    stki_manifest list;
    stk_status status = stki_manifest_open(path, &list, err);
    const json_t *classes;

    if (status != STK_OK)
        return status;
    classes = classes_in(&list, NULL, member, field);
    status = json_array_size(classes) > 0 ? read_names(path, classes, out, err)
                                          : stki_fail_at(err, STK_E_NOT_FOUND, (stki_place){path, -1, -1, NULL, NULL},
                                                         "no class names for field %s", field);
    stki_manifest_fini(&list);
    return status;
}

/* ---- next to the file ---- */

/* The manifest that was opened last. It is cached because consecutive shards usually share one. */
typedef struct beside {
    char *path; /* of the manifest; NULL: none yet */
    bool there;
    stki_manifest list;
} beside;

static void beside_fini(beside *b)
{
    stki_manifest_fini(&b->list);
    stki_free(b->path);
}

/* Whether STEM.manifest.json is a manifest that lists the file. Any other file of that name is ignored. */
static stk_status look(beside *b, const char *stem, int length, const char *file, bool *found, stk_error *err)
{
    char *path = stki_format("%.*s" MANIFEST, length, stem);

    *found = false;
    if (!path)
        return stki_fail_memory(err, length, "a path");
    if ((b->path && strcmp(b->path, path) == 0) || access(path, F_OK) != 0) {
        *found = b->path && strcmp(b->path, path) == 0 && b->there && stki_manifest_fits(&b->list, file);
        stki_free(path);
        return STK_OK;
    }
    beside_fini(b);
    *b = (beside){.path = path};
    b->there = stki_manifest_open(path, &b->list, NULL) == STK_OK;
    *found = b->there && stki_manifest_fits(&b->list, file);
    return STK_OK;
}

/* Tries the stems of the file's name: of a.b-00003.c.npy, a.b-00003.c, a.b-00003, a.b and a. */
static stk_status find_beside(beside *b, const char *file, bool *found, stk_error *err)
{
    const char *base = stki_base_name(file);
    stk_status status = STK_OK;

    *found = false;
    for (int length = (int)strlen(base) - 1; length > 0 && !*found && status == STK_OK; length--) {
        const int shorter = without_number(base, length), before = (int)(base - file);

        if (base[length] != '.')
            continue;
        status = look(b, file, before + length, file, found, err);
        if (status == STK_OK && !*found && shorter < length)
            status = look(b, file, before + shorter, file, found, err);
    }
    return status;
}

/* ---- a field's files ---- */

static bool is_class_number(const stki_reader *reader)
{
    return reader->ndim == 0 && !reader->variable && stki_dtype_category(reader->dtype) == STKI_CATEGORY_WHOLE;
}

/* Two tables are compatible if one is a prefix of the other; the longer one is kept. */
static stk_status merge(const char *field, stki_classes *out, char **origin, stki_classes *more, const char *path,
                        stk_error *err)
{
    const int64_t common = more->count < out->count ? more->count : out->count;

    for (int64_t i = 0; i < common; i++)
        if (strcmp(stki_classes_name(out, i), stki_classes_name(more, i)) != 0)
            return stki_fail_at(
                err, STK_E_MISMATCH, (stki_place){path, -1, -1, stki_classes_name(more, i), stki_classes_name(out, i)},
                "field %s: class %lld differs from the one %s: the files number their classes differently; "
                "prepare them with the same source.classes",
                field, (long long)i, *origin);
    if (more->count > out->count) {
        stki_free(*origin);
        stki_classes_fini(out);
        *out = *more;
        *more = (stki_classes){0};
        *origin = stki_format("from %s", path);
    }
    return *origin ? STK_OK : stki_fail_memory(err, 64, "the origin of classes");
}

/* Finds the table of one file. The manifest that the config names for the data set takes precedence. */
static stk_status of_file(const stki_field_config *config, const stki_manifest *own, beside *b,
                          const stki_reader *reader, stki_classes *out, char **origin, bool *named, stk_error *err)
{
    const stki_manifest *list = own->count > 0 ? own : &b->list;
    stki_classes more = {0};
    const json_t *classes;
    bool found = own->count > 0;
    stk_status status = found ? STK_OK : find_beside(b, reader->path, &found, err);

    *named = false;
    if (status != STK_OK || !found)
        return status;
    classes = classes_in(list, reader->path, config->source.name, config->name);
    if (json_array_size(classes) == 0)
        return STK_OK;
    *named = true;
    status = read_names(list->path, classes, &more, err);
    if (status == STK_OK)
        status = merge(config->name, out, origin, &more, list->path, err);
    stki_classes_fini(&more);
    return status;
}

stk_status stki_classes_of_manifests(const stki_core *core, int field, const stki_class_shards *shards,
                                     stki_reader *const *readers, int reader_count, const int *first, stki_classes *out,
                                     char **origin, bool *plain, stk_error *err)
{
    beside b = {0};
    int d = 0, named = 0;
    stk_status status = STK_OK;

    for (int i = 0; i < reader_count && status == STK_OK; i++) {
        bool has_names = named < shards->count && shards->shards[named].number == i;

        while (d + 1 < core->list_count && first[d + 1] <= i)
            d++;
        named += has_names;
        if (!has_names && is_class_number(readers[i]))
            status = of_file(core->source_count > 0 ? &core->config->datasets[d].fields[field]
                                                    : &core->config->fields[field],
                             &core->lists[d], &b, readers[i], out, origin, &has_names, err);
        if (plain)
            plain[i] = !has_names;
    }
    beside_fini(&b);
    return status;
}
