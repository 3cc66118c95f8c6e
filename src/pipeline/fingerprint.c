/* fingerprint.c: by what a saved position knows the data set, the order and the transforms again. Only what opening has
 * found out is looked at, no sample is read: names, sizes, counts, types and shapes of files, not what is in them, so
 * that a data set may move to another folder. Of the names of the images of a folder at most NAMES are looked at,
 * evenly spread. */
#include "core.h"
#include "source.h"
#include <stdlib.h>
#include <string.h>

enum { NAMES = 65536 };

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void add_shape(stki_u128 *print, int ndim, const int64_t *shape)
{
    stki_fingerprint_number(print, ndim);
    stki_fingerprint_bytes(print, shape, ndim * (int64_t)sizeof *shape);
}

/* The names of files that are samples, as they stand behind the reader's own path. */
static void add_names(stki_u128 *print, const stki_reader *reader)
{
    int64_t step = reader->count / NAMES + 1;
    size_t own = strlen(reader->path);
    char buffer[STKI_RECORD_PATH];

    for (int64_t i = 0; i < reader->count; i += step) {
        const char *path = stki_reader_path(reader, i, buffer);

        stki_fingerprint_text(print, strncmp(path, reader->path, own) == 0 ? path + own : base_name(path));
    }
}

static void add_shard(stki_u128 *print, const stki_reader *reader)
{
    stki_fingerprint_text(print, reader->ops->format);
    stki_fingerprint_text(print, base_name(reader->path));
    stki_fingerprint_number(print, reader->count);
    stki_fingerprint_number(print, reader->file_bytes);
    if (reader->ops->path)
        add_names(print, reader);
}

static void add_json(stki_u128 *print, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;

    stki_fingerprint_text(print, text);
    free(text);
    json_decref(json);
}

/* Options of the formats, as they are written. */
static void add_given(stki_u128 *print, const stki_source *source)
{
    for (int g = 0; source && g < source->count; g++)
        for (int i = 0; !source->groups[g]->takes && i < source->parts[g].table->count; i++)
            if (source->parts[g].seen[i] && source->parts[g].table->rows[i].effect == STKI_ON_SAMPLES) {
                const char *name = source->parts[g].table->rows[i].name;

                stki_fingerprint_text(print, name);
                add_json(print, stki_node_json(stki_node_get(source->map, name)));
            }
}

/* What the config says about reading that makes other samples of the same file. */
static void add_source(stki_u128 *print, const stki_field_config *field)
{
    const stki_reader_opts *source = &field->source;
    const int64_t numbers[] = {source->alias_dtype,
                               source->axis,
                               source->window_length,
                               source->window_stride,
                               source->cf,
                               source->decode.gray,
                               source->decode.upright,
                               source->decode.fast + 2 * source->decode.none,
                               source->decode.accept_warnings,
                               field->sample_per_file};

    stki_fingerprint_bytes(print, numbers, sizeof numbers);
    stki_fingerprint_text(print, source->name);
    add_given(print, source->source);
    if (source->text_unit != STKI_TEXT_LINES || source->key) {
        stki_fingerprint_number(print, source->text_unit);
        stki_fingerprint_text(print, source->separator);
        stki_fingerprint_text(print, source->key);
    }
    if (source->listed != STKI_LISTED_NOTHING || source->labels || source->delimiter) {
        stki_fingerprint_number(print, source->listed);
        stki_fingerprint_number(print, source->delimiter);
        add_json(print, source->labels ? stki_node_json(source->labels) : NULL);
    }
    if (field->synthetic) {
        stki_synthetic_opts made;

        if (stki_config_synthetic(field->synthetic, &made, NULL) == STK_OK) {
            const int64_t facts[] = {made.seed, made.min_length, made.distinct};

            stki_fingerprint_bytes(print, facts, sizeof facts);
        }
    }
}

static stki_u128 of_dataset(const stki_core *core)
{
    stki_u128 print = {0};

    for (int i = 0; i < core->dataset->field_count; i++) {
        const stki_field *field = &core->dataset->fields[i];

        stki_fingerprint_text(&print, field->name);
        stki_fingerprint_number(&print, field->dtype);
        stki_fingerprint_number(&print, field->variable);
        add_shape(&print, field->ndim, field->shape);
        add_source(&print, &core->config->fields[i]);
        for (int d = 1; d < core->config->dataset_count; d++)
            add_source(&print, &core->config->datasets[d].fields[i]);
        stki_fingerprint_number(&print, field->shard_count);
        for (int k = 0; k < field->shard_count; k++)
            add_shard(&print, field->shards[k]);
    }
    return print;
}

static uint64_t half(uint64_t hash)
{
    return (hash ^ hash >> 32) & UINT32_MAX;
}

/* Half of each of four hashes, so that a difference can be named (resume.c): subset, weights, blocks, all else. */
static stki_u128 of_order(const stki_core *core)
{
    stki_order_print parts;
    uint64_t rest[3];

    stki_order_fingerprint(core->order, &parts);
    rest[0] = parts.samples, rest[1] = parts.buckets, rest[2] = parts.data;
    return (stki_u128){half(parts.subset) | half(parts.weights) << 32,
                       half(parts.blocks) | half(stki_digest_64(rest, sizeof rest)) << 32};
}

/* Steps that are folded into the coefficients, which are compared instead: written otherwise they may be the same. */
static bool is_folded(const char *operation)
{
    static const char *const folded[] = {"normalize", "scale", "quantize", "cast"};

    for (size_t i = 0; i < sizeof folded / sizeof folded[0]; i++)
        if (strcmp(operation, folded[i]) == 0)
            return true;
    return false;
}

/* Every other step as it is written, and whether it came behind arithmetic. */
static void add_steps(stki_u128 *print, const stki_node *transforms)
{
    bool behind = false;

    for (int i = 0; transforms && transforms->kind == STKI_NODE_LIST && i < transforms->count; i++) {
        const stki_node *step = transforms->items[i];
        const char *operation = step->kind == STKI_NODE_MAP && step->count == 1 ? step->keys[0] : "";

        if (is_folded(operation)) {
            behind = true;
            continue;
        }
        stki_fingerprint_number(print, behind);
        add_json(print, stki_node_json(step));
    }
}

static void add_fold(stki_u128 *print, const stki_fold *fold)
{
    stki_fingerprint_number(print, fold->arithmetic);
    stki_fingerprint_number(print, fold->quantized);
    stki_fingerprint_number(print, fold->zero_point);
    for (int64_t c = 0; fold->arithmetic && c < fold->channels; c++) {
        float pair[2] = {(float)fold->a[c], (float)fold->b[c]};

        stki_fingerprint_bytes(print, pair, sizeof pair);
    }
    for (int c = 0; c < fold->erase.before_count; c++) { /* where among the folded steps the erasing stands */
        float pair[2] = {(float)fold->erase.before_a[c], (float)fold->erase.before_b[c]};

        stki_fingerprint_bytes(print, pair, sizeof pair);
    }
}

static stki_u128 of_transforms(const stki_core *core)
{
    stki_u128 print = {0};

    for (int i = 0; i < core->plan_count; i++) {
        const stki_field_plan *plan = &core->plans[i];
        stki_row_form form;

        stki_plan_form(plan, &form);
        stki_fingerprint_text(&print, plan->name);
        stki_fingerprint_number(&print, form.dtype);
        stki_fingerprint_number(&print, form.layout);
        stki_fingerprint_number(&print, plan->own_shapes ? 2 : plan->ragged);
        add_shape(&print, plan->own_shapes ? 0 : plan->ndim, form.shape); /* how much room there is says nothing */
        add_steps(&print, core->config->fields[i].transforms);
        stki_fingerprint_number(&print, plan->pad.padded);
        if (plan->fold)
            add_fold(&print, plan->fold);
    }
    return print;
}

void stki_state_prints(const stki_core *core, stki_state *out)
{
    out->dataset = of_dataset(core);
    out->order_print = of_order(core);
    out->transforms = of_transforms(core);
}
