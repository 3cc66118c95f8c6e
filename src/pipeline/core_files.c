/* core_files.c: see core_files.h. A file that several fields read is opened once. The names of the first named field's
 * files are kept until all fields of the data set have been opened, so that the others can be paired with them
 * (pairs.h). */
#include "core_files.h"
#include "allocate.h"
#include "container.h"
#include "digest.h"
#include "dtype.h"
#include "error.h"
#include "files.h"
#include "format.h"
#include "pairs.h"
#include "segments.h"
#include "text_check.h"
#include "token_source.h"
#include <string.h>

stk_status stki_shards_add(stki_shards *all, stki_reader *reader, stk_error *err)
{
    stki_reader **readers = stki_resize(all->readers, (all->count + 1) * (int64_t)sizeof *readers);

    if (!readers) {
        stki_reader_destroy(reader);
        return stki_fail_memory(err, (all->count + 1) * (int64_t)sizeof *readers, "a field's files");
    }
    all->readers = readers;
    readers[all->count++] = reader;
    return STK_OK;
}

stk_dtype stki_core_integers(const stki_field_config *asked)
{
    stk_dtype dtype = asked->dtype;
    enum stki_category category;

    for (int i = 0; asked->transforms && i < asked->transforms->count; i++) {
        const stki_node *step = asked->transforms->items[i], *cast = stki_node_get(step, "cast");

        if (cast && cast->text && asked->dtype == STK_DTYPE_NONE)
            dtype = stk_dtype_find(cast->text);
        else if (!cast && !stki_node_get(step, "reshape") && !stki_node_get(step, "squeeze"))
            return STK_DTYPE_NONE;
    }
    category = stki_dtype_category(dtype);
    if (asked->classes.node || (category != STKI_CATEGORY_WHOLE && category != STKI_CATEGORY_BOOL))
        return STK_DTYPE_NONE;
    return dtype;
}

/* ---- containers ---- */

/* The capacity of the array of containers is a power of two. The hash table has twice as many entries: an index plus 1,
 * or 0 if the entry is free. */
static int container_room(int count)
{
    int room = count > 0 ? 16 : 0;

    while (room < count)
        room *= 2;
    return room;
}

/* Returns the entry at which linear probing for a path starts. Probing ends at the first free entry. */
static uint64_t place_of(const stki_core *core, const char *path)
{
    return stki_digest_64(path, (int64_t)strlen(path)) & (uint64_t)(2 * container_room(core->container_count) - 1);
}

static uint64_t next_place(const stki_core *core, uint64_t place)
{
    return (place + 1) & (uint64_t)(2 * container_room(core->container_count) - 1);
}

/* Returns an open container with all members and the same options, which the caller can use as it is, or NULL. In that
 * case *like is an open container of the same file and format, or NULL. */
static stki_container *container_before(const stki_core *core, const char *path, const stki_reader_opts *opts,
                                        const stki_container **like)
{
    *like = NULL;
    if (core->container_count == 0)
        return NULL;
    for (uint64_t k = place_of(core, path); core->container_places[k] > 0; k = next_place(core, k)) {
        const struct stki_open_container *open = &core->containers[core->container_places[k] - 1];

        if (open->arranged || strcmp(open->container->path, path) != 0 || !stki_text_equal(open->format, opts->format))
            continue;
        if (!open->container->partial && stki_source_equal(open->source, opts->source))
            return open->container;
        *like = *like ? *like : open->container;
    }
    return NULL;
}

static void place_container(stki_core *core, int number)
{
    uint64_t k = place_of(core, core->containers[number].container->path);

    while (core->container_places[k] > 0)
        k = next_place(core, k);
    core->container_places[k] = number + 1;
}

/* Grows the tables if they are full. */
static stk_status grow_containers(stki_core *core, stk_error *err)
{
    const int64_t room = container_room(core->container_count + 1);
    struct stki_open_container *containers;
    int *places;

    if (room == container_room(core->container_count))
        return STK_OK;
    containers = stki_resize(core->containers, room * (int64_t)sizeof *containers);
    core->containers = containers ? containers : core->containers;
    places = containers ? stki_zalloc_array(2 * room, sizeof *places) : NULL;
    if (!places)
        return stki_fail_memory(err, room * (int64_t)sizeof *containers, "open files");
    stki_free(core->container_places);
    core->container_places = places;
    return STK_OK;
}

static stk_status open_container(stki_core *core, const char *path, const stki_reader_opts *opts, stki_container **out,
                                 stk_error *err)
{
    const int count = core->container_count;
    stk_status status = stki_container_open(path, opts, out, err);

    if (status != STK_OK)
        return status;
    if ((status = grow_containers(core, err)) != STK_OK) {
        stki_container_release(*out);
        return status;
    }
    core->containers[core->container_count++] = (struct stki_open_container){opts->format, opts->source, *out, false};
    for (int i = container_room(count) < container_room(count + 1) ? 0 : count; i <= count; i++)
        place_container(core, i);
    return STK_OK;
}

static stk_status container_of(stki_core *core, const char *path, const stki_reader_opts *opts, stki_container **out,
                               stk_error *err)
{
    stki_reader_opts own = *opts;
    stk_status status;

    *out = container_before(core, path, opts, &own.like);
    if (*out)
        return STK_OK;
    own.together = core->together;
    own.together_count = core->together_count;
    status = open_container(core, path, &own, out, err);
    for (int i = 0; status == STK_OK && i < (*out)->warning_count; i++)
        stki_config_note(core->config, "%s: %s", path, (*out)->warnings[i]);
    return status;
}

void stki_core_forget_containers(stki_core *core)
{
    while (core->container_count > 0)
        stki_container_release(core->containers[--core->container_count].container);
    stki_free(core->containers);
    stki_free(core->container_places);
    core->containers = NULL;
    core->container_places = NULL;
}

static bool same_paths(const stki_field_config *a, const stki_field_config *b)
{
    int i = 0;

    while (i < a->path_count && i < b->path_count && strcmp(a->paths[i], b->paths[i]) == 0)
        i++;
    return i == a->path_count && i == b->path_count;
}

/* Collects the options of all fields that read the same files as this field, the first one to do so. */
static stk_status find_together(stki_core *core, int source, const stki_field_config *field,
                                const stki_reader_opts *opts, const stki_file_list *list, stk_error *err)
{
    const stki_loader_config *config = core->config;
    const stki_field_config *fields = config->dataset_count > 0 ? config->datasets[source].fields : config->fields;
    const stki_container *like = NULL;

    core->together_count = 0;
    if (config->field_count < 2 || list->count == 0 || container_before(core, list->paths[0], opts, &like) || like)
        return STK_OK;
    core->together = stki_zalloc_array(config->field_count, sizeof *core->together);
    if (!core->together)
        return stki_fail_memory(err, config->field_count * (int64_t)sizeof *core->together, "fields");
    for (int i = 0; i < config->field_count; i++)
        if (!fields[i].synthetic && !fields[i].derived && stki_text_equal(fields[i].source.format, opts->format) &&
            same_paths(&fields[i], field)) {
            core->together[core->together_count] = fields[i].source;
            core->together[core->together_count].integers = stki_core_integers(&config->fields[i]);
            core->together[core->together_count++].prefer = fields[i].name;
        }
    return STK_OK;
}

static void forget_together(stki_core *core)
{
    stki_free(core->together);
    core->together = NULL;
    core->together_count = 0;
}

/* ---- names ---- */

/* The names of the first field of a data set that has names. Those of the other fields are paired with them. */
typedef struct stki_source_names {
    stki_names samples, shards;
    int number, first; /* number of the field that `shards` belongs to, and the index of that field's first reader */
    int paired;        /* the last field whose shards were paired by name with `shards`; 0: none */
} source_names;

static stk_status names_of_source(stki_core *core, int source, source_names **out, stk_error *err)
{
    const int count = core->source_count > 0 ? core->source_count : 1;

    if (!core->names) {
        core->names = stki_zalloc_array(count, sizeof(source_names));
        if (!core->names)
            return stki_fail_memory(err, count * (int64_t)sizeof(source_names), "the names of files");
    }
    *out = &core->names[source];
    return STK_OK;
}

void stki_core_forget_names(stki_core *core)
{
    source_names *names = core->names;

    for (int i = 0; names && i < (core->source_count > 0 ? core->source_count : 1); i++) {
        stki_names_fini(&names[i].samples);
        stki_names_fini(&names[i].shards);
    }
    stki_free(names);
    core->names = NULL;
}

/* Takes ownership of the names: the first ones are kept, all others are freed. */
static void keep_names(stki_names *first, stki_names *names)
{
    if (!first->field) {
        *first = *names;
        *names = (stki_names){0};
    }
    stki_names_fini(names);
}

static stki_pair_config *pair_of(stki_core *core, int source)
{
    return core->config->dataset_count > 0 ? &core->config->datasets[source].pair : &core->config->pair;
}

void stki_core_note_pairs(stki_core *core)
{
    for (int d = 0; d == 0 || d < core->config->dataset_count; d++) {
        char *unused = stki_pair_unused(pair_of(core, d));

        if (unused && core->config->dataset_count > 0)
            stki_config_note(core->config, "data set %s: %s", core->config->datasets[d].name, unused);
        else if (unused)
            stki_config_note(core->config, "dataset.%s", unused);
        stki_free(unused);
    }
}

static stk_status pair(stki_core *core, int source, stki_names *first, stki_names *names, stki_paired *out,
                       stk_error *err)
{
    stk_status status;

    *out = (stki_paired){0};
    if (!first->field)
        return STK_OK;
    status = stki_pair_names(pair_of(core, source), first, names, out, err);
    if (out->note)
        stki_config_note(core->config, "%s", out->note);
    stki_free(out->note);
    out->note = NULL;
    if (out->order) {
        stki_fingerprint_number(&core->pairing, source);
        stki_fingerprint_text(&core->pairing, names->field);
        stki_fingerprint_bytes(&core->pairing, out->order, names->count * (int64_t)sizeof *out->order);
    }
    return status;
}

/* ---- lists of files ---- */

static stk_status list_files(const stki_field_config *field, stki_names *out, stk_error *err)
{
    stk_status status = STK_OK;

    out->field = field->name;
    out->list = stki_zalloc(sizeof *out->list);
    if (!out->list)
        return stki_fail_memory(err, sizeof *out->list, "a list of files");
    for (int i = 0; i < field->path_count && status == STK_OK; i++) {
        const int64_t before = out->list->count;
        stki_named_part part = {.place = field->paths[i], .folder = -1}, *last;

        status = stki_file_list_add(out->list, field->paths[i], err);
        if (status != STK_OK)
            break;
        part.count = out->list->count - before;
        part.listed = part.count == 1 && strcmp(out->list->paths[before], field->paths[i]) == 0;
        part.pattern = part.listed ? NULL : field->paths[i];
        last = out->part_count > 0 ? &out->parts[out->part_count - 1] : NULL;
        if (last && last->listed && part.listed) {
            last->count++;
            out->count++;
        } else {
            status = stki_names_add(out, &part, err);
        }
    }
    return status;
}

static stk_status arrange_list(stki_file_list *list, const int64_t *order, stk_error *err)
{
    char **paths = stki_zalloc_array(list->count, sizeof *paths);

    if (!paths)
        return stki_fail_memory(err, list->count * (int64_t)sizeof *paths, "a list of files");
    for (int64_t i = 0; i < list->count; i++)
        paths[i] = list->paths[order[i]];
    memcpy(list->paths, paths, (size_t)list->count * sizeof *paths);
    stki_free(paths);
    return STK_OK;
}

/* Reorders the files to match those that they are paired with. */
static stk_status pair_list(stki_core *core, int source, stki_names *first, stki_names *files, bool *by_name,
                            stk_error *err)
{
    stki_paired paired;
    stk_status status = pair(core, source, first, files, &paired, err);

    if (status == STK_OK && paired.order)
        status = arrange_list(files->list, paired.order, err);
    *by_name = paired.by_name;
    stki_free(paired.order);
    return status;
}

/* ---- shards ---- */

/* The opened containers and members of a field, before its readers are made. */
typedef struct opening {
    stki_container **containers;
    int64_t *members;
    int64_t count;
} opening;

static stk_status open_containers(stki_core *core, const stki_file_list *list, const stki_reader_opts *opts,
                                  opening *out, stk_error *err)
{
    stk_status status = STK_OK;

    out->containers = stki_zalloc_array(list->count, sizeof(stki_container *));
    out->members = stki_zalloc_array(list->count, sizeof *out->members);
    if (!out->containers || !out->members)
        return stki_fail_memory(err, list->count * (int64_t)sizeof *out->members, "a list of files");
    for (; out->count < list->count && status == STK_OK; out->count += status == STK_OK)
        if ((status = container_of(core, list->paths[out->count], opts, &out->containers[out->count], err)) == STK_OK)
            status = stki_container_find(out->containers[out->count], opts, &out->members[out->count], err);
    return status;
}

/* Opens the container again with its samples reordered, because other fields may use the original order. */
static stk_status arrange_container(stki_core *core, const stki_reader_opts *opts, const stki_names *names, int number,
                                    const int64_t *order, stki_container **container, stk_error *err)
{
    const stki_named_part *part = &names->parts[number];
    int64_t *own = stki_zalloc_array(part->count, sizeof *own);
    stk_status status = own ? STK_OK : stki_fail_memory(err, part->count * (int64_t)sizeof *own, "pairing by name");

    for (int64_t i = 0; i < part->count && status == STK_OK; i++) {
        own[i] = order[part->first + i] - part->first;
        if (own[i] < 0 || own[i] >= part->count)
            status = stki_fail(err, STK_E_UNSUPPORTED,
                               "field %s: its folders do not correspond to those of the field with which it is paired "
                               "by name: give both fields the same number of folders, with the same file names in each",
                               names->field);
    }
    if (status == STK_OK && (status = open_container(core, part->container->path, opts, container, err)) == STK_OK) {
        core->containers[core->container_count - 1].arranged = true;
        status = (*container)->ops->arrange(*container, own, err);
    }
    stki_free(own);
    return status;
}

/* Pairs the samples of containers that have a name for each sample: folders and lists of images. */
static stk_status pair_samples(stki_core *core, int source, stki_names *first, const stki_reader_opts *opts,
                               const char *field, opening *o, stk_error *err)
{
    stki_names names = {.field = field};
    stki_paired paired = {0};
    stk_status status = STK_OK;

    for (int64_t i = 0; i < o->count; i++)
        if (o->containers[i]->named == 0)
            return STK_OK;
    for (int64_t i = 0; i < o->count && status == STK_OK; i++) {
        status = stki_names_add(&names,
                                &(stki_named_part){.place = o->containers[i]->path,
                                                   .count = o->containers[i]->named,
                                                   .listed = o->containers[i]->listed,
                                                   .container = o->containers[i],
                                                   .folder = o->containers[i]->listed ? -1 : 0},
                                err);
        if (status == STK_OK)
            (void)stki_container_retain(o->containers[i]);
    }
    if (status == STK_OK)
        status = pair(core, source, first, &names, &paired, err);
    for (int i = 0; i < names.part_count && paired.order && status == STK_OK; i++)
        status = arrange_container(core, opts, &names, i, paired.order, &o->containers[i], err);
    stki_free(paired.order);
    if (status == STK_OK)
        keep_names(first, &names);
    else
        stki_names_fini(&names);
    return status;
}

static stk_status open_shards(stki_core *core, int source, const stki_field_config *field, stki_names *first,
                              const stki_file_list *list, const stki_reader_opts *opts, stki_shards *all,
                              stk_error *err)
{
    opening o = {0};
    stk_status status = open_containers(core, list, opts, &o, err);

    if (status == STK_OK)
        status = pair_samples(core, source, first, opts, field->name, &o, err);
    for (int64_t i = 0; i < o.count && status == STK_OK; i++) {
        stki_reader *reader;

        status = stki_class_shard_open(&all->classes, all->asked, field, o.containers[i], o.members[i], opts,
                                       all->count, &reader, err);
        if (status == STK_OK)
            status = stki_shards_add(all, reader, err);
    }
    stki_free(o.containers);
    stki_free(o.members);
    return status;
}

stk_status stki_core_check_partners(const stki_core *core, int source, int number, const stki_shards *all, int from,
                                    stk_error *err)
{
    const source_names *names = core->names ? &core->names[source] : NULL;
    const stki_field *other;

    if (!names || number == 0 || names->paired != number)
        return STK_OK;
    other = &core->dataset->fields[names->number];
    for (int i = from; i < all->count && names->first + i - from < other->shard_count; i++) {
        const stki_reader *shard = all->readers[i], *partner = other->shards[names->first + i - from];

        if (shard->count != partner->count)
            return stki_fail_at(err, STK_E_MISMATCH,
                                (stki_place){shard->path, -1, -1, STKI_TEXT("%lld samples", (long long)shard->count),
                                             STKI_TEXT("%lld as %s", (long long)partner->count, partner->path)},
                                "fields %s and %s are paired by name (dataset.pair: position pairs the samples of all "
                                "shards in their order)",
                                other->name, core->config->fields[number].name);
    }
    return STK_OK;
}

/* ---- files of one sample ---- */

/* An unreadable file that is a single text sample is an error in that sample, unless it is the only file or no file can
 * be read. */
static stk_status open_texts(stki_core *core, const stki_field_config *field, const stki_file_list *list,
                             const stki_reader_opts *opts, stki_shards *all, stk_error *err)
{
    stk_error first = {0};
    int64_t unreadable = 0;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < list->count && status == STK_OK; i++) {
        stki_container *container;
        stki_reader *reader;
        int64_t member;
        stk_error error;

        if ((status = container_of(core, list->paths[i], opts, &container, &error)) == STK_OK &&
            (status = stki_container_find(container, opts, &member, &error)) == STK_OK)
            status = stki_class_shard_open(&all->classes, all->asked, field, container, member, opts, all->count,
                                           &reader, &error);
        if (stki_file_is_at_fault(status)) {
            if (unreadable++ == 0)
                first = error;
            status = stki_unreadable_text(list->paths[i], &error, &reader, &error);
        }
        if (status == STK_OK)
            status = stki_shards_add(all, reader, &error);
        if (status != STK_OK && err)
            *err = error;
    }
    if (status != STK_OK || unreadable == 0)
        return status;
    if (unreadable == list->count) {
        if (err)
            *err = first;
        return first.status;
    }
    stki_config_note(core->config, "dataset.fields.%s: %lld of %lld files cannot be read; the first error: %s",
                     field->name, (long long)unreadable, (long long)list->count, first.message);
    return STK_OK;
}

/* Opens image files, each of which is one sample of any size. An error in a file affects only its sample. */
static stk_status open_images(const stki_field_config *field, const stki_file_list *list, const stki_reader_opts *opts,
                              stki_shards *all, stk_error *err)
{
    stki_container *container;
    stki_reader *reader;
    int64_t member;
    stk_status status = stki_container_open_images(list->paths, list->count, opts, &container, err);

    if (status != STK_OK)
        return status;
    if ((status = stki_container_find(container, opts, &member, err)) == STK_OK)
        status = stki_token_source_open(field, container, member, opts, &reader, err);
    stki_container_release(container);
    return status == STK_OK ? stki_shards_add(all, reader, err) : status;
}

/* Splits files that are one sample each into windows, or, if opts->window_length is 0, into their rows, from which
 * windows are then built. */
static stk_status open_segments(const stki_field_config *field, const stki_reader_opts *opts, stki_reader *files,
                                stki_reader **out, stk_error *err)
{
    const stki_window *window = &field->window;
    const bool in_place = opts->window_length > 0;

    return stki_segments_open(
        files,
        &(stki_segments_opts){.length = opts->window_length,
                              .dilation = window->dilation,
                              .step = opts->window_stride,
                              .missing = in_place ? 1 : stki_window_span(window->length, window->dilation)},
        out, err);
}

static stk_status open_arrays(const stki_field_config *field, const stki_file_list *list, const stki_reader_opts *opts,
                              stki_shards *all, stk_error *err)
{
    stki_reader *reader;
    stk_status status = stki_files_open(list, stki_container_open, opts, &reader, err);

    if (status == STK_OK && field->window.length > 0)
        status = open_segments(field, opts, reader, &reader, err);
    return status == STK_OK ? stki_shards_add(all, reader, err) : status;
}

stk_status stki_core_open_files(stki_core *core, int source, int number, const stki_field_config *field,
                                const stki_reader_opts *opts, stki_shards *all, stk_error *err)
{
    const bool texts = stki_container_whole_texts(opts);
    const int before = all->count;
    stki_names files = {0};
    source_names *names;
    bool images, named, by_name = false;
    stk_status status = names_of_source(core, source, &names, err);

    if (status != STK_OK || (status = list_files(field, &files, err)) != STK_OK) {
        stki_names_fini(&files);
        return status;
    }
    images = !opts->format && !opts->sums && stki_container_of_images(files.list->paths, files.list->count);
    files.shards = !(field->sample_per_file || texts || images);
    named = files.count > 1 || !files.parts[0].listed;
    if (named)
        status = pair_list(core, source, files.shards ? &names->shards : &names->samples, &files, &by_name, err);
    if (status == STK_OK)
        status = find_together(core, source, field, opts, files.list, err);
    if (status == STK_OK)
        status = field->sample_per_file ? open_arrays(field, files.list, opts, all, err)
                 : texts                ? open_texts(core, field, files.list, opts, all, err)
                 : images               ? open_images(field, files.list, opts, all, err)
                                        : open_shards(core, source, field, &names->samples, files.list, opts, all, err);
    forget_together(core);
    if (files.shards && by_name)
        names->paired = number;
    if (status == STK_OK && named && files.shards && !names->shards.field) {
        names->number = number;
        names->first = before;
    }
    if (status == STK_OK && named)
        keep_names(files.shards ? &names->shards : &names->samples, &files);
    stki_names_fini(&files);
    return status;
}
