/* fingerprint.c: the lines (option_print.h) by which a saved position is compared: options that affect samples
 * according to their tables, and facts found when the data was opened. Those facts are names, sizes, counts, types and
 * shapes of files; no sample is read, and a data set may be moved to another folder. For a folder of images, at most
 * NAMES evenly spaced names are used. */
#include "core.h"
#include "option_print.h"
#include "path.h"
#include <inttypes.h>
#include <string.h>

enum { NAMES = 65536, PATH_BYTES = 512 };

/* ---- facts found at open ---- */

static void add_shape(stki_u128 *print, int ndim, const int64_t *shape)
{
    stki_fingerprint_number(print, ndim);
    stki_fingerprint_bytes(print, shape, ndim * (int64_t)sizeof *shape);
}

/* Adds the names of files that are samples, relative to the reader's path. */
static void add_names(stki_u128 *print, const stki_reader *reader)
{
    int64_t step = reader->count / NAMES + 1;
    size_t own = strlen(reader->path);
    char buffer[STKI_RECORD_PATH];

    for (int64_t i = 0; i < reader->count; i += step) {
        const char *path = stki_reader_path(reader, i, buffer);

        stki_fingerprint_text(print, strncmp(path, reader->path, own) == 0 ? path + own : stki_base_name(path));
    }
}

static void add_shard(stki_u128 *print, const stki_reader *reader)
{
    stki_fingerprint_text(print, reader->ops->format);
    stki_fingerprint_text(print, stki_base_name(reader->path));
    stki_fingerprint_number(print, reader->count);
    stki_fingerprint_number(print, reader->file_bytes);
    if (reader->ops->path)
        add_names(print, reader);
}

static void print_files(stki_print *print, const stki_field *field, const char *path)
{
    stki_u128 hash = {0};
    int64_t samples = 0;
    char text[STKI_U128_TEXT];

    stki_fingerprint_number(&hash, field->dtype);
    stki_fingerprint_number(&hash, field->variable);
    add_shape(&hash, field->ndim, field->shape);
    for (int k = 0; k < field->shard_count; k++) {
        add_shard(&hash, field->shards[k]);
        samples += field->shards[k]->count;
    }
    stki_print_text(print, "files", path, "%d with %" PRId64 " samples, %s", field->shard_count, samples,
                    stki_u128_text(hash, text));
}

/* Adds dtype, layout and shape of the delivered rows. The capacity for images with their own shapes is not compared. */
static void print_rows(stki_print *print, const stki_field_plan *plan, const char *path)
{
    stki_row_form form;
    char text[256];
    int used;

    stki_plan_form(plan, &form);
    used = snprintf(text, sizeof text, "%s %s %s", stk_dtype_name(form.dtype), stki_layout_name(form.layout),
                    plan->rows->word);
    for (int i = 0; i < plan->ndim && !plan->rows->has_shapes; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %" PRId64, form.shape[i]);
    stki_print_text(print, "fields", path, "%s", text);
}

/* Folded steps are compared by their coefficients, because different notations can have the same result. */
static void print_fold(stki_print *print, const stki_fold *fold, const char *path)
{
    stki_u128 hash = {0};
    char text[STKI_U128_TEXT];

    if (!fold || (!fold->arithmetic && fold->erase.before_count == 0))
        return;
    stki_fingerprint_number(&hash, fold->quantized);
    stki_fingerprint_number(&hash, fold->zero_point);
    for (int64_t c = 0; fold->arithmetic && c < fold->channels; c++) {
        float pair[2] = {(float)fold->a[c], (float)fold->b[c]};

        stki_fingerprint_bytes(&hash, pair, sizeof pair);
    }
    for (int c = 0; c < fold->erase.before_count; c++) { /* the folded arithmetic before erasing */
        float pair[2] = {(float)fold->erase.before_a[c], (float)fold->erase.before_b[c]};

        stki_fingerprint_bytes(&hash, pair, sizeof pair);
    }
    stki_print_text(print, "transforms", path, "coefficients %s", stki_u128_text(hash, text));
}

/* Adds all other steps as written in the config, and whether they follow arithmetic. */
static void print_steps(stki_print *print, const stki_node *transforms, const char *above)
{
    bool behind = false;
    int number = 0;

    for (int i = 0; transforms && transforms->kind == STKI_NODE_LIST && i < transforms->count; i++) {
        const stki_node *step = transforms->items[i];
        char path[PATH_BYTES + 96]; /* room for `above` plus a suffix */

        if (step->kind == STKI_NODE_MAP && step->count == 1 && stki_fold_takes(step->keys[0])) {
            behind = true;
            continue;
        }
        snprintf(path, sizeof path, "%s.%s%d", above, behind ? "behind arithmetic." : "", number++);
        stki_print_json(print, "", "transforms", path, stki_node_json(step));
    }
}

static void print_order(stki_print *print, const stki_core *core)
{
    bool mixed = core->config->dataset_count > 0;
    stki_order_print order;

    stki_order_fingerprint(core->order, &order);
    const struct {
        const char *name, *path;
        uint64_t hash;
    } parts[] = {
        {"split", "loader.split or indices", order.subset},
        {"weights", mixed ? "datasets.weight or loader.mixture_stop" : "loader.weights", order.weights},
        {"loader", "loader.block_window or block_rows", order.blocks},
        {"loader", "loader.bucket_by or bucket_window", order.buckets},
        {"loader", "loader: samples of each data set", order.samples},
        {"loader", "loader: packing or offsets of windows", order.data},
    };

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].hash)
            stki_print_text(print, parts[i].name, parts[i].path, "%016" PRIx64, parts[i].hash);
}

/* Adds the field's table of classes, regardless of how the config specifies it. */
static void print_classes(stki_print *print, const stki_field_classes *classes, const char *path)
{
    stki_u128 hash = {0};
    char text[STKI_U128_TEXT];

    if (!classes->assigned)
        return;
    for (int64_t i = 0; i < classes->names.count; i++)
        stki_fingerprint_text(&hash, stki_classes_name(&classes->names, i));
    stki_print_text(print, "source", path, "%" PRId64 " names, %s", classes->names.count, stki_u128_text(hash, text));
}

/* ---- options ---- */

/* If failed samples are skipped or replaced, options that decide which samples fail are compared too. */
static void print_policy(stki_print *print, int on_error, const char *path)
{
    print->failures = on_error != STK_ON_ERROR_FAIL;
    if (!print->failures)
        return;
    stki_print_text(print, "on_error", path, "%s", stki_config_words("on_error")[on_error]);
    print->lines[print->count - 1].failure = true;
}

static void print_fields(stki_print *print, const stki_field_config *fields, int count, const char *above)
{
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];

        snprintf(path, sizeof path, "%s.fields.%s", above, fields[i].name);
        if (!fields[i].derived)
            stki_print_map(print, &stki_field_table, fields[i].node, path);
    }
}

static void print_options(stki_print *print, const stki_loader_config *config)
{
    if (config->dataset_count == 0) {
        print_policy(print, config->on_error, "loader.on_error");
        print_fields(print, config->fields, config->field_count, "dataset");
    }
    for (int d = 0; d < config->dataset_count; d++) {
        const stki_dataset_config *dataset = &config->datasets[d];
        char path[PATH_BYTES], above[32];

        snprintf(above, sizeof above, "datasets.%d", d);
        snprintf(path, sizeof path, "%s.on_error", above);
        print_policy(print, dataset->on_error < 0 ? config->on_error : dataset->on_error, path);
        print_fields(print, dataset->fields, dataset->field_count, above);
    }
}

/* Adds the reordering of files that are paired with those of another field. */
static void print_pairing(stki_print *print, const stki_core *core)
{
    char text[STKI_U128_TEXT];

    if (core->pairing.low || core->pairing.high)
        stki_print_text(print, "pair", core->config->dataset_count ? "datasets.pair" : "dataset.pair", "%s",
                        stki_u128_text(core->pairing, text));
}

static void print_field(const stki_core *core, int number, stki_print *print)
{
    const stki_field_plan *plan = &core->plans[number];
    char above[PATH_BYTES], path[PATH_BYTES + 32];

    snprintf(above, sizeof above, "%s.fields.%s", core->config->dataset_count ? "datasets" : "dataset", plan->name);
    snprintf(path, sizeof path, "%s.files", above);
    print_files(print, &core->dataset->fields[number], path);
    snprintf(path, sizeof path, "%s.source.classes", above);
    print_classes(print, &core->classes[number], path);
    snprintf(path, sizeof path, "%s.rows", above);
    print_rows(print, plan, path);
    snprintf(path, sizeof path, "%s.transforms", above);
    print_steps(print, core->config->fields[number].transforms, path);
    print_fold(print, stki_plan_of_sample(plan)->fold, path);
}

stk_status stki_core_print(const stki_core *core, stki_print *print, stk_error *err)
{
    print_order(print, core);
    print_options(print, core->config);
    print_pairing(print, core);
    for (int i = 0; i < core->plan_count; i++)
        print_field(core, i, print);
    return stki_print_end(print, err);
}

stki_u128 stki_core_fingerprint(const stki_core *core, const char *section)
{
    stki_u128 hash = {0};

    for (int i = 0; i < core->print.count; i++)
        if (!core->print.lines[i].failure && strncmp(core->print.lines[i].path, section, strlen(section)) == 0) {
            stki_fingerprint_text(&hash, core->print.lines[i].path);
            stki_fingerprint_text(&hash, core->print.lines[i].value);
        }
    return hash;
}
