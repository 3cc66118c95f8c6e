/* field_classes.c: see field_classes.h. */
#include "field_classes.h"
#include "allocate.h"
#include "class_file.h"
#include "dtype.h"
#include "error.h"
#include "files.h"
#include "first_steps.h"
#include "row_maker.h"
#include "storage.h"
#include "tensor_internal.h"
#include "text_json.h"
#include "token_source.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAMES_SHOWN = 3 };

void stki_field_classes_fini(stki_field_classes *classes)
{
    stki_classes_fini(&classes->names);
    stki_free(classes->list);
    stki_free(classes->origin);
}

/* ---- opening shards ---- */

void stki_class_shards_fini(stki_class_shards *shards)
{
    for (int i = 0; i < shards->count; i++) {
        stki_classes_fini(&shards->shards[i].names);
        stki_reader_destroy(shards->shards[i].texts);
        stki_container_release(shards->shards[i].container);
        stki_free(shards->shards[i].path);
    }
    stki_free(shards->shards);
    stki_free(shards->inferred);
}

/* Appends a shard, zeroed except for its number and path. */
static stk_status add_shard(stki_class_shards *shards, int number, const char *path, stki_class_shard **out,
                            stk_error *err)
{
    const int64_t bytes = (shards->count + 1) * (int64_t)sizeof *shards->shards;
    stki_class_shard *list = stki_resize(shards->shards, bytes);
    char *copy = list ? stki_strdup(path) : NULL;

    shards->shards = list ? list : shards->shards;
    if (!copy)
        return stki_fail_memory(err, bytes, "the shards of a field");
    *out = &list[shards->count++];
    **out = (stki_class_shard){.number = number, .path = copy};
    return STK_OK;
}

/* Opens a reader that returns the shard's numbers, which change until the field's table is complete. */
static stk_status numbers_reader(stki_class_shard *shard, int64_t count, const char *format,
                                 const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    stki_array array = {.dtype = STK_I64, .ndim = 1, .shape = {count}, .strides = {8}};
    stk_status status = stk_storage_create(NULL, count > 0 ? 8 * count : 8, &array.memory, err);

    if (status != STK_OK)
        return status;
    shard->numbers = stk_storage_data(array.memory);
    shard->count = count;
    status = stki_array_reader(&array, format, shard->path, opts, out, err);
    stki_array_release(&array);
    if (status == STK_OK)
        (*out)->held_bytes += 8 * count;
    return status;
}

/* Verifies all samples, because checksums cover the numbers in the file and these are about to change. */
static stk_status check_sums(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                             stk_error *err)
{
    stki_scratch scratch;
    stki_reader *reader;
    stk_status status = stki_container_reader(container, member, opts, &reader, err);

    if (status != STK_OK)
        return status;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        stk_tensor sample;

        status = reader->ops->read(reader, i, NULL, &scratch, &sample, err);
        if (status == STK_OK)
            stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return status;
}

/* Opens labels that are numbers with names in the file. */
static stk_status open_named(stki_class_shards *shards, const stki_class_column *column,
                             const stki_container *container, const stki_reader_opts *opts, int number,
                             stki_reader **out, stk_error *err)
{
    stki_class_shard *shard = NULL;
    stk_status status = add_shard(shards, number, container->path, &shard, err);

    if (status == STK_OK)
        status = stki_classes_add_all(&shard->names, column->names, err);
    if (status == STK_OK)
        shard->container = stki_container_retain(container);
    if (status == STK_OK)
        status = numbers_reader(shard, column->count, container->ops->format, opts, out, err);
    if (status == STK_OK && column->count > 0)
        memcpy(shard->numbers, column->numbers, (size_t)column->count * sizeof *shard->numbers);
    return status;
}

/* Opens labels that are texts, and numbers them. */
static stk_status open_texts(stki_class_shards *shards, const stki_container *container, const stki_reader_opts *opts,
                             int number, stki_reader **reader, stk_error *err)
{
    stki_reader *texts = *reader;
    stki_class_shard *shard = NULL;
    stk_status status = add_shard(shards, number, container->path, &shard, err);

    *reader = NULL;
    if (status != STK_OK) {
        stki_reader_destroy(texts);
        return status;
    }
    shard->texts = texts;
    status = numbers_reader(shard, texts->count, container->ops->format, opts, reader, err);
    if (status == STK_OK && (status = stki_classes_of_texts(texts, &shard->names, shard->numbers, err)) != STK_OK) {
        stki_reader_destroy(*reader);
        *reader = NULL;
    }
    return status;
}

stk_status stki_class_shard_open(stki_class_shards *shards, const stki_field_config *asked,
                                 const stki_field_config *field, const stki_container *container, int64_t member,
                                 const stki_reader_opts *opts, int number, stki_reader **out, stk_error *err)
{
    const stki_member *of = &container->members[member];
    stki_class_column column;
    stk_status status;

    *out = NULL;
    if (container->ops->classes && (asked->classes.node || of->status == STK_OK) &&
        container->ops->classes(container, member, &column)) {
        status = stki_source_check_member(opts, container, member, err);
        if (status == STK_OK && opts->sums)
            status = check_sums(container, member, opts, err);
        return status == STK_OK ? open_named(shards, &column, container, opts, number, out, err) : status;
    }
    status = stki_token_source_open(field, container, member, opts, out, err);
    if (status != STK_OK || !asked->classes.node)
        return status;
    if (stki_classes_are_texts(*out))
        return open_texts(shards, container, opts, number, out, err);
    if (!of->inferred || shards->inferred || (shards->inferred = stki_strdup(container->path)))
        return STK_OK;
    stki_reader_destroy(*out);
    return stki_fail_memory(err, (int64_t)strlen(container->path), container->path);
}

/* ---- the field's table ---- */

typedef struct settling {
    stki_core *core;
    const stki_field_config *config; /* the field as configured in the first data set, which applies to all data sets */
    stki_field_classes *classes;
    stki_class_shards *shards;
    stki_reader *const *readers;
    int reader_count;
    const int *first;
    /* number of samples of unknown classes that were left out, or that got the configured number */
    int64_t left_out, renamed;
    stki_classes unknown; /* their names */
} settling;

static stk_status set_origin(stki_field_classes *classes, char *origin, stk_error *err)
{
    classes->origin = origin;
    return origin ? STK_OK : stki_fail_memory(err, 64, "the origin of classes");
}

/* Makes a table of all names that occur, sorted. */
static stk_status take_all(settling *s, stk_error *err)
{
    stki_classes *names = &s->classes->names;
    stk_status status = STK_OK;

    for (int i = 0; i < s->shards->count && status == STK_OK; i++)
        status = stki_classes_add_all(names, &s->shards->shards[i].names, err);
    if (status == STK_OK)
        status = stki_classes_sort(names, err);
    return status == STK_OK ? set_origin(s->classes, stki_strdup("sorted"), err) : status;
}

static stk_status take_list(settling *s, stk_error *err)
{
    const stki_node *list = s->config->classes.list;
    stk_status status = STK_OK;

    for (int i = 0; i < list->count && status == STK_OK; i++)
        status = stki_classes_add(&s->classes->names, list->items[i]->text, NULL, err);
    return status == STK_OK ? set_origin(s->classes, stki_strdup("as listed"), err) : status;
}

static bool is_manifest(const char *path)
{
    const size_t length = strlen(path);

    return length > 5 && strcmp(path + length - 5, ".json") == 0;
}

static stk_status take_path(settling *s, const char *path, bool *ordered, stk_error *err)
{
    const stki_field_config *config = s->config;
    stki_reader_opts opts;

    if (is_manifest(path)) {
        *ordered = true;
        return stki_classes_of_manifest(path, config->source.name, config->name, &s->classes->names, err);
    }
    memcpy(&opts, &config->source, sizeof opts);
    opts.prefer = config->name;
    return stki_classes_of_path(path, &opts, &s->classes->names, ordered, err);
}

/* Makes a table of the names in one file, in the order of the file, or of those in several files, sorted. */
static stk_status take_list_of_files(settling *s, const stki_file_list *files, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < files->count && status == STK_OK; i++) {
        bool ordered;

        status = take_path(s, files->paths[i], &ordered, err);
        if (status == STK_OK && ordered && files->count > 1)
            status = stki_fail_node(err, s->config->classes.node,
                                    "%s defines the order of its names, so it cannot be combined with other files",
                                    files->paths[i]);
    }
    if (status == STK_OK && files->count > 1)
        status = stki_classes_sort(&s->classes->names, err);
    return status == STK_OK
               ? set_origin(s->classes,
                            stki_format("from %s%s", files->paths[0], files->count > 1 ? " and others" : ""), err)
               : status;
}

static stk_status take_files(settling *s, stk_error *err)
{
    const stki_class_config *from = &s->config->classes;
    stki_file_list files = {0};
    stk_status status = STK_OK;

    for (int i = 0; i < from->path_count && status == STK_OK; i++)
        status = stki_file_list_add(&files, from->paths[i], err);
    if (status == STK_OK && from->node->kind == STKI_NODE_SCALAR && access(files.paths[0], F_OK) != 0)
        status = stki_fail_value(err, from->node, "sorted, a list of names, or the path of an existing file or folder");
    if (status == STK_OK)
        status = take_list_of_files(s, &files, err);
    stki_file_list_fini(&files);
    return status;
}

static stk_status make_table(settling *s, stk_error *err)
{
    switch (s->config->classes.from) {
    case STKI_CLASSES_LISTED:
        return take_list(s, err);
    case STKI_CLASSES_FILES:
        return take_files(s, err);
    case STKI_CLASSES_DEFAULT:
    case STKI_CLASSES_SORTED:
        break;
    }
    return take_all(s, err);
}

/* ---- new numbers ---- */

/* Returns the name in the table that differs only in case; NULL: none. */
static const char *spelled_otherwise(const stki_classes *names, const char *name)
{
    for (int64_t i = 0; i < names->count; i++)
        if (strcasecmp(stki_classes_name(names, i), name) == 0)
            return stki_classes_name(names, i);
    return NULL;
}

/* Returns the path of the sample's own file if its container names the samples, otherwise that of the shard. The caller
 * frees it with stki_free. */
static char *path_of(const stki_class_shard *shard, int64_t sample)
{
    const stki_container *container = shard->container;
    char name[PATH_MAX];

    return container && sample < container->named && container->ops->name(container, sample, name, sizeof name)
               ? stki_format("%s/%s", shard->path, name)
               : stki_strdup(shard->path);
}

static stk_status fail_unknown(const settling *s, const stki_class_shard *shard, int64_t sample, const char *name,
                               stk_error *err)
{
    const stki_classes *names = &s->classes->names;
    const char *near = spelled_otherwise(names, name), *first = names->count > 0 ? stki_classes_name(names, 0) : "none";
    char where[STKI_READER_WHERE] = "", expected[sizeof err->expected], *path = path_of(shard, sample);

    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(shard->path), "a path");
    stki_text(expected, sizeof expected, "a name in source.classes, which has %" PRId64 " (%s%.40s%s", names->count,
              near ? "did you mean " : "", near ? near : first,
              near               ? "?)"
              : names->count > 1 ? ", …)"
                                 : ")");
    if (shard->texts)
        stki_reader_where(shard->texts, sample, where);
    stki_fail_at(
        err, STK_E_MISMATCH, (stki_place){path, sample, -1, NULL, NULL},
        "%sclass: found %.80s, expected %s; unknown_class: skip leaves out such samples, unknown_class: NUMBER "
        "assigns them to that class",
        where, name, expected);
    if (err) {
        stki_text(err->found, sizeof err->found, "%s", name);
        stki_text(err->expected, sizeof err->expected, "%s", expected);
    }
    stki_free(path);
    return STK_E_MISMATCH;
}

/* Flags a sample as excluded. `sample` is numbered across all data sets. The first field to exclude samples allocates
 * the flags. All fields have the same number of samples, or opening fails later. */
static stk_status note_left_out(const settling *s, int64_t sample, stk_error *err)
{
    stki_core *core = s->core;
    int64_t count = 0;

    if (!core->left_out) {
        for (int i = 0; i < s->reader_count; i++)
            count += s->readers[i]->count;
        core->left_out = stki_zalloc(count);
        core->left_out_room = count;
        if (!core->left_out)
            return stki_fail_memory(err, count, "the excluded samples");
    }
    if (sample < core->left_out_room)
        core->left_out[sample] = 1;
    return STK_OK;
}

static stk_status take_unknown(settling *s, const stki_class_shard *shard, int64_t sample, int64_t before,
                               stk_error *err)
{
    const int64_t unknown = s->config->classes.unknown;
    const char *name = stki_classes_name(&shard->names, shard->numbers[sample]);
    stk_status status;

    if (unknown == STKI_UNKNOWN_ERROR)
        return fail_unknown(s, shard, sample, name, err);
    status = stki_classes_add(&s->unknown, name, NULL, err);
    if (status == STK_OK && unknown == STKI_UNKNOWN_SKIP)
        status = note_left_out(s, before + sample, err);
    s->left_out += unknown == STKI_UNKNOWN_SKIP;
    s->renamed += unknown != STKI_UNKNOWN_SKIP;
    return status;
}

/* `before`: number of samples in the previous shards. */
static stk_status renumber(settling *s, stki_class_shard *shard, int64_t before, stk_error *err)
{
    const int64_t unknown = s->config->classes.unknown == STKI_UNKNOWN_SKIP ? -1 : s->config->classes.unknown,
                  count = shard->names.count;
    int64_t *map = stki_zalloc_array(count + 1, sizeof *map);
    bool same = true;
    stk_status status = map ? STK_OK : stki_fail_memory(err, count * (int64_t)sizeof *map, "the numbers of classes");

    for (int64_t i = 0; map && i < count; i++) {
        map[i] = stki_classes_find(&s->classes->names, stki_classes_name(&shard->names, i));
        same = same && map[i] == i;
    }
    for (int64_t k = 0; !same && k < shard->count && status == STK_OK; k++) {
        const int64_t number = map[shard->numbers[k]];

        if (number < 0)
            status = take_unknown(s, shard, k, before, err);
        shard->numbers[k] = number < 0 ? unknown : number;
    }
    stki_free(map);
    return status;
}

static stk_status renumber_all(settling *s, stk_error *err)
{
    int64_t before = 0;
    stk_status status = STK_OK;

    for (int i = 0, next = 0; i < s->reader_count && next < s->shards->count && status == STK_OK; i++) {
        stki_class_shard *shard = &s->shards->shards[next];

        if (shard->number == i) {
            if (s->config->classes.unknown == STKI_UNKNOWN_SKIP && s->readers[i]->count != shard->count)
                return stki_fail_node(err, s->config->classes.node,
                                      "unknown_class: skip and window are mutually exclusive");
            status = renumber(s, shard, before, err);
            next++;
        }
        before += s->readers[i]->count;
    }
    return status;
}

static void say_unknown(const settling *s)
{
    char names[160] = "";
    size_t used = 0;

    for (int64_t i = 0; i < s->unknown.count && i < NAMES_SHOWN && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", i ? ", " : "",
                                 stki_classes_name(&s->unknown, i));
    if (s->unknown.count == 0)
        return;
    if (s->left_out > 0)
        stki_config_fact(s->core->config,
                         "%s: unknown_class: skip leaves out %" PRId64 " sample%s of %" PRId64 " class%s (%s%s)",
                         s->config->name, s->left_out, s->left_out == 1 ? "" : "s", s->unknown.count,
                         s->unknown.count == 1 ? "" : "es", names, s->unknown.count > NAMES_SHOWN ? ", …" : "");
    else
        stki_config_fact(s->core->config,
                         "%s: %" PRId64 " sample%s of %" PRId64 " class%s (%s%s) that are not in source.classes get "
                         "the number %" PRId64,
                         s->config->name, s->renamed, s->renamed == 1 ? "" : "s", s->unknown.count,
                         s->unknown.count == 1 ? "" : "es", names, s->unknown.count > NAMES_SHOWN ? ", …" : "",
                         s->config->classes.unknown);
}

/* ---- the table and the files ---- */

/* `classes` was given, but a file has numbers instead of names. */
static stk_status fail_numbers(const settling *s, stk_error *err)
{
    if (s->shards->inferred)
        return stki_fail_at(err, STK_E_CONFIG, (stki_place){s->shards->inferred, -1, -1, "only integers", NULL},
                            "source.classes of field %s applies to names, but these labels are numbers: remove "
                            "classes, or (CSV) set source: {dtype: uint8} to read the cells as names",
                            s->config->name);
    return stki_fail_at(err, STK_E_CONFIG,
                        (stki_place){s->readers[0]->path, -1, -1, stk_dtype_long_name(s->readers[0]->dtype), NULL},
                        "source.classes of field %s applies to class folders and texts: remove it", s->config->name);
}

/* Plain numbers in a field that also has names must be numbers in the table. Errors of samples that cannot be read are
 * reported later. */
static stk_status check_plain(const settling *s, const stki_reader *reader, stk_error *err)
{
    static const int64_t none[STK_MAX_DIMS] = {0};
    const int64_t count = s->classes->names.count;
    stki_scratch scratch;
    stk_status status = STK_OK;

    if (reader->ndim > 0 || reader->variable || stki_first_steps_call(s->config->transforms))
        return STK_OK;
    stki_scratch_init(&scratch);
    for (int64_t i = 0; i < reader->count && status == STK_OK; i++) {
        stk_tensor sample;
        double number;
        char path[STKI_RECORD_PATH];

        if (reader->ops->read(reader, i, NULL, &scratch, &sample, NULL) != STK_OK)
            continue;
        stki_copy_strided(&number, STK_F64, none, sample.data, sample.dtype, none,
                          (sample.flags & STK_TENSOR_SWAPPED) != 0, 0, none);
        stki_reader_done(reader, &sample);
        if (!(number >= 0 && number < (double)count) && number != (double)s->config->classes.unknown)
            status = stki_fail_at(err, STK_E_MISMATCH,
                                  (stki_place){stki_reader_path(reader, i, path), i, -1, STKI_TEXT("%.17g", number),
                                               STKI_TEXT("0 to %" PRId64 ", a class of the table", count - 1)},
                                  "field %s: other files name %" PRId64
                                  " classes, so the numbers in this file must be numbers of these classes",
                                  s->config->name, count);
    }
    stki_scratch_fini(&scratch);
    return status;
}

static stk_status check_all_plain(const settling *s, const bool *plain, stk_error *err)
{
    const char *first = NULL;
    stk_status status = STK_OK;

    for (int i = 0; i < s->reader_count && status == STK_OK; i++)
        if (plain[i] && s->readers[i]->count > 0) {
            first = first ? first : s->readers[i]->path;
            status = check_plain(s, s->readers[i], err);
        }
    if (status == STK_OK && first)
        stki_config_note(
            s->core->config,
            "%s: the class numbers in %s have no names and do not change, but other files have names: check "
            "that this file numbers the classes 0: %.40s%s%.40s (%s)",
            s->config->name, first, stki_classes_name(&s->classes->names, 0),
            s->classes->names.count > 1 ? ", 1: " : "",
            s->classes->names.count > 1 ? stki_classes_name(&s->classes->names, 1) : "", s->classes->origin);
    return status;
}

/* Uses the manifests' names for labels that are not renumbered. If the field also has a table, the two must agree. */
static stk_status use_manifests(settling *s, stk_error *err)
{
    stki_field_classes *classes = s->classes;
    stki_classes found = {0};
    char *origin = NULL;
    int64_t i = 0;
    const int field = (int)(classes - s->core->classes);
    bool *plain = classes->assigned ? stki_zalloc_array(s->reader_count, sizeof *plain) : NULL;
    stk_status status;

    if (classes->assigned && !plain)
        return stki_fail_memory(err, s->reader_count * (int64_t)sizeof *plain, "the files of a field");
    status = stki_classes_of_manifests(s->core, field, s->shards, s->readers, s->reader_count, s->first, &found,
                                       &origin, plain, err);

    if (status == STK_OK && found.count > 0 && !classes->assigned) {
        classes->names = found;
        classes->origin = origin;
        return STK_OK;
    }
    while (status == STK_OK && i < found.count && i < classes->names.count &&
           strcmp(stki_classes_name(&found, i), stki_classes_name(&classes->names, i)) == 0)
        i++;
    if (status == STK_OK && i < found.count)
        status = stki_fail_at(
            err, STK_E_MISMATCH,
            (stki_place){origin, -1, -1, STKI_TEXT("class %" PRId64 ": %s", i, stki_classes_name(&found, i)),
                         i < classes->names.count ? stki_classes_name(&classes->names, i) : "no such class"},
            "other files of field %s number the classes differently (%s); for files with names, set source: "
            "{classes: {from: …}} to this manifest",
            s->config->name, classes->origin);
    if (status == STK_OK && plain && classes->names.count > 0)
        status = check_all_plain(s, plain, err);
    stki_classes_fini(&found);
    stki_free(origin);
    stki_free(plain);
    return status;
}

static stk_status list_names(stki_field_classes *classes, stk_error *err)
{
    const int64_t count = classes->names.count;

    if (count == 0)
        return STK_OK;
    classes->list = stki_zalloc_array(count, sizeof *classes->list);
    if (!classes->list)
        return stki_fail_memory(err, count * (int64_t)sizeof *classes->list, "the class names");
    for (int64_t i = 0; i < count; i++)
        classes->list[i] = stki_classes_name(&classes->names, i);
    return STK_OK;
}

stk_status stki_classes_settle(stki_core *core, int field, stki_class_shards *shards, stki_reader *const *readers,
                               int reader_count, const int *first, stk_error *err)
{
    settling s = {.core = core,
                  .config = &core->config->fields[field],
                  .classes = &core->classes[field],
                  .shards = shards,
                  .readers = readers,
                  .reader_count = reader_count,
                  .first = first};
    stk_status status = STK_OK;

    if (s.config->classes.node && (shards->inferred || shards->count == 0))
        return fail_numbers(&s, err);
    if (shards->count > 0) {
        s.classes->assigned = true;
        status = make_table(&s, err);
        if (status == STK_OK)
            status = renumber_all(&s, err);
        if (status == STK_OK)
            say_unknown(&s);
    }
    if (status == STK_OK)
        status = use_manifests(&s, err);
    if (status == STK_OK)
        status = list_names(s.classes, err);
    stki_classes_fini(&s.unknown);
    return status;
}

/* ---- excluded samples ---- */

/* Removes the flagged samples of [first, first + count). *list is replaced by a new list that the caller owns. A list
 * with a number out of range is left unchanged, because all lists are checked later. */
static stk_status narrow(const stki_core *core, int64_t first, int64_t count, int64_t **list, int64_t *list_count,
                         stk_error *err)
{
    const int64_t before = *list ? *list_count : count;
    int64_t *stay, n = 0;

    for (int64_t i = 0; *list && i < before; i++)
        if ((*list)[i] < 0 || (*list)[i] >= count)
            return STK_OK;
    stay = stki_zalloc_array(before + 1, sizeof *stay);
    if (!stay)
        return stki_fail_memory(err, before * (int64_t)sizeof *stay, "the remaining samples");
    for (int64_t i = 0; i < before; i++) {
        const int64_t sample = *list ? (*list)[i] : i;

        if (!core->left_out[first + sample])
            stay[n++] = sample;
    }
    stki_free(*list);
    *list = stay;
    *list_count = n;
    return n > 0 || core->config->allow_empty
               ? STK_OK
               : stki_fail(err, STK_E_EMPTY, "unknown_class: skip removes all %" PRId64 " samples", before);
}

stk_status stki_classes_leave_out(stki_core *core, stk_error *err)
{
    stki_loader_config *config = core->config;
    stk_status status = STK_OK;

    for (int i = 0; i < config->field_count; i++)
        config->leaves_out = config->leaves_out || config->fields[i].classes.unknown == STKI_UNKNOWN_SKIP;
    if (!core->left_out)
        return STK_OK;
    if (core->over_samples)
        return stki_fail(
            err, STK_E_CONFIG,
            "unknown_class: skip and window are mutually exclusive: samples inside windows would be excluded");
    if (core->source_count == 0)
        status = config->dataset_count == 1
                     ? narrow(core, 0, core->dataset->count, &config->datasets[0].index_list,
                              &config->datasets[0].index_count, err)
                     : narrow(core, 0, core->dataset->count, &config->index_list, &config->index_count, err);
    for (int d = 0; d < core->source_count && status == STK_OK; d++) {
        const struct stki_core_source *source = &core->sources[d];

        if (memchr(core->left_out + source->first, 1, (size_t)source->count))
            status = narrow(core, source->first, source->count, &config->datasets[d].index_list,
                            &config->datasets[d].index_count, err);
    }
    stki_free(core->left_out);
    core->left_out = NULL;
    return status;
}

/* ---- rows ---- */

static bool holds(stk_dtype dtype, int64_t number)
{
    static const int64_t none[1] = {0};
    double there = (double)number, back = 0;
    _Alignas(16) uint8_t element[16];

    stki_copy_strided(element, dtype, none, &there, STK_F64, none, false, 0, none);
    stki_copy_strided(&back, STK_F64, none, element, dtype, none, false, 0, none);
    return back == there;
}

stk_status stki_classes_check_rows(const stki_core *core, int field, stk_error *err)
{
    const stki_field_config *config = &core->config->fields[field];
    const stki_field_plan *plan = &core->plans[field];
    const int64_t count = core->classes[field].names.count, unknown = config->classes.unknown;

    if (count == 0 || plan->rows->measured || config->transforms)
        return STK_OK;
    if (core->classes[field].assigned && unknown != STKI_UNKNOWN_ERROR && unknown != STKI_UNKNOWN_SKIP &&
        !holds(plan->dtype, unknown))
        return stki_fail(err, STK_E_CONFIG,
                         "dataset.fields.%s.source.unknown_class: found %" PRId64 ", which %s cannot represent",
                         config->name, unknown, stk_dtype_name(plan->dtype));
    /* If a floating-point type represents a number and the next smaller one exactly, it represents all smaller ones. */
    if (!holds(plan->dtype, count - 1) || (count > 1 && !holds(plan->dtype, count - 2)))
        return stki_fail(err, STK_E_CONFIG,
                         "dataset.fields.%s.dtype: found %s, expected a type that can represent the numbers of %" PRId64
                         " classes, 0 to %" PRId64,
                         config->name, stk_dtype_name(plan->dtype), count, count - 1);
    return STK_OK;
}

/* ---- queries ---- */

json_t *stki_classes_json(const stki_classes *classes)
{
    json_t *list = json_array();

    for (int64_t i = 0; list && i < classes->count; i++)
        json_array_append_new(list, stki_text_json(stki_classes_name(classes, i)));
    return list;
}

const stki_classes *stki_classes_of_rows(const stki_core *core, int field)
{
    const stki_field_plan *plan = &core->plans[field];

    if (core->classes[field].names.count == 0 || plan->ndim != 0 || plan->rows->measured || plan->config->transforms ||
        plan->maker->pairs || stki_dtype_category(plan->dtype) != STKI_CATEGORY_WHOLE)
        return NULL;
    return &core->classes[field].names;
}

void stki_classes_report(const stki_core *core, int field, json_t *report)
{
    const stki_classes *classes = stki_classes_of_rows(core, field);
    json_t *map = json_object_get(report, "classes"), *found = json_object_get(map, "values"),
           *found_counts = json_object_get(map, "counts"), *values, *counts, *names;
    json_int_t next = 0; /* class */

    if (!classes || !map)
        return;
    values = json_array();
    counts = json_array();
    names = json_array();
    for (size_t i = 0; i < json_array_size(found) || next < classes->count;) {
        const bool ended = i == json_array_size(found);
        json_int_t value = ended ? next : json_integer_value(json_array_get(found, i));

        if (next < classes->count && (ended || value > next)) { /* no row is of this class */
            value = next;
            json_array_append_new(counts, json_integer(0));
        } else {
            json_array_append(counts, json_array_get(found_counts, i++));
        }
        next += value == next;
        json_array_append_new(values, json_integer(value));
        json_array_append_new(names, value >= 0 && value < classes->count
                                         ? stki_text_json(stki_classes_name(classes, value))
                                         : json_null());
    }
    (void)json_object_set_new(map, "values", values);
    (void)json_object_set_new(map, "counts", counts);
    (void)json_object_set_new(map, "names", names);
}
