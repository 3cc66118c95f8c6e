/* filter.c: see filter.h. Rules on labels are applied before those on sizes, in one pass over the samples in the order
 * of the list of indices or of the data set. A rule is only checked for samples kept by the previous ones. Labels are
 * read from the samples. Sizes are provided by the reader, which takes them from headers. If the samples are unmodified
 * image files, height and width are read from each header here. */
#include "filter.h"
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "nearest_word.h"
#include "selection.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* `filter.label` */
typedef struct stki_label_rule {
    const char *field;
    const stki_node *keep, *drop; /* one of the two */
    /* Set when the data set is opened. */
    int64_t *numbers; /* sorted */
    int64_t number_count;
    bool texts; /* labels are strings, which are compared with those of the list */
} stki_label_rule;

/* `filter.size` */
typedef struct stki_size_rule {
    const char *field;
    int64_t min_height, max_height, min_width, max_width, min_bytes, max_bytes, min_length, max_length; /* -1: any */
} stki_size_rule;

typedef struct stki_filter_step {
    const stki_node *node;
    bool is_label;
    stki_label_rule label;
    stki_size_rule size;
    const stki_field *source; /* set when the data set is opened */
    bool from_bytes;          /* samples are image files: height and width are read from their headers */
    stki_filter_rule *counts;
} stki_filter_step;

enum stki_filter_answer { STKI_FILTER_STAYS, STKI_FILTER_GOES, STKI_FILTER_UNKNOWN };

#define MOST (INT64_C(1) << 50)
static const char *const any_words[] = {"any", NULL};

static const stki_option label_rows[] = {
    STKI_STRING(stki_label_rule, field, "label", "The field, with one integer or one string per sample",
                .examples = STKI_EXAMPLES("label", "other")),
    STKI_NODE(stki_label_rule, keep, "Keep samples with one of these labels: numbers, or class names",
              .examples = STKI_EXAMPLES("[1, 2]", "[3]")),
    STKI_NODE(stki_label_rule, drop, "Remove samples with one of these labels", .instead_of = "keep",
              .examples = STKI_EXAMPLES("[1, 2]", "[3]")),
};
static const stki_option_table label_table = STKI_OPTION_TABLE("prep.filter.label", label_rows);

#define LIMIT(member, unit, help) STKI_INT_WORDS(stki_size_rule, member, any, 0, MOST, any_words, -1, unit, help)
#define LIMIT_BYTES(member, help) STKI_SIZE_WORDS(stki_size_rule, member, any, 0, INT64_MAX, any_words, -1, help)

static const stki_option size_rows[] = {
    STKI_STRING(stki_size_rule, field, "image", "The field whose samples are measured",
                .examples = STKI_EXAMPLES("image", "other")),
    LIMIT(min_height, "pixels", "Minimum height of an image"),
    LIMIT(max_height, "pixels", "Maximum height of an image"),
    LIMIT(min_width, "pixels", "Minimum width of an image"),
    LIMIT(max_width, "pixels", "Maximum width of an image"),
    LIMIT_BYTES(min_bytes,
                "Minimum size of a sample, in bytes: of the file with decode: none, otherwise of the decoded values"),
    LIMIT_BYTES(max_bytes, "Maximum size of a sample, in bytes"),
    LIMIT(min_length, "", "Minimum length of a ragged sample"),
    LIMIT(max_length, "", "Maximum length of a ragged sample"),
};
static const stki_option_table size_table = STKI_OPTION_TABLE("prep.filter.size", size_rows);

typedef struct filter_section {
    const stki_node *label, *size;
} filter_section;

static const stki_option filter_rows[] = {
    STKI_NODE(filter_section, label, "By label: {field, keep} or {field, drop}, or a list of them", .flags = STKI_GIVEN,
              .inner = &label_table),
    STKI_NODE(filter_section, size, "By size, read from headers: {field, min_height, …}, or a list of them",
              .flags = STKI_GIVEN, .inner = &size_table),
};
const stki_option_table stki_filter_table = STKI_OPTION_TABLE("prep.filter", filter_rows);

static stk_status check_list(const stki_node *list, stk_error *err)
{
    if (list->kind != STKI_NODE_LIST || list->count == 0)
        return stki_fail_value(err, list, "a list of numbers or names, such as [3, 7]");
    for (int i = 0; i < list->count; i++)
        if (list->items[i]->kind != STKI_NODE_SCALAR || stki_node_is_null(list->items[i]))
            return stki_fail_value(err, list->items[i], "a number or a name");
    return STK_OK;
}

static stk_status read_label(stki_filter_step *step, stk_error *err)
{
    stki_label_rule *rule = &step->label;
    stk_status status;

    stki_options_defaults(&label_table, rule);
    status = stki_options_read(&label_table, step->node, rule, NULL, err);
    if (status != STK_OK)
        return status;
    rule->keep = stki_node_is_null(rule->keep) ? NULL : rule->keep;
    rule->drop = stki_node_is_null(rule->drop) ? NULL : rule->drop;
    if (!rule->keep && !rule->drop)
        return stki_fail_node(err, step->node, "expected one of keep and drop");
    return check_list(rule->keep ? rule->keep : rule->drop, err);
}

static stk_status check_range(const stki_node *node, const char *what, int64_t low, int64_t high, stk_error *err)
{
    if (low >= 0 && high >= 0 && low > high)
        return stki_fail_node(err, node, "min_%s is above max_%s: no sample can remain", what, what);
    return STK_OK;
}

static stk_status read_size(stki_filter_step *step, stk_error *err)
{
    stki_size_rule *rule = &step->size;
    const stki_node *node = step->node;
    stk_status status;

    stki_options_defaults(&size_table, rule);
    if ((status = stki_options_read(&size_table, node, rule, NULL, err)) != STK_OK ||
        (status = check_range(node, "height", rule->min_height, rule->max_height, err)) != STK_OK ||
        (status = check_range(node, "width", rule->min_width, rule->max_width, err)) != STK_OK ||
        (status = check_range(node, "bytes", rule->min_bytes, rule->max_bytes, err)) != STK_OK ||
        (status = check_range(node, "length", rule->min_length, rule->max_length, err)) != STK_OK)
        return status;
    if (rule->min_height < 0 && rule->max_height < 0 && rule->min_width < 0 && rule->max_width < 0 &&
        rule->min_bytes < 0 && rule->max_bytes < 0 && rule->min_length < 0 && rule->max_length < 0)
        return stki_fail_node(err, node, "expected a limit: min_height, max_bytes, min_length, …");
    return STK_OK;
}

static stk_status add(const stki_node *node, bool is_label, stki_filter_step *steps, int *count, stk_error *err)
{
    stki_filter_step *step = &steps[*count];

    if (*count == STKI_FILTER_RULES)
        return stki_fail_node(err, node, "more than %d rules", STKI_FILTER_RULES);
    if (node->kind != STKI_NODE_MAP)
        return stki_fail_value(err, node, is_label ? "{field: label, keep: [...]}" : "{field: image, min_height: 64}");
    *step = (stki_filter_step){.node = node, .is_label = is_label};
    ++*count;
    return is_label ? read_label(step, err) : read_size(step, err);
}

static stk_status add_all(const stki_node *node, bool is_label, stki_filter_step *steps, int *count, stk_error *err)
{
    stk_status status = STK_OK;

    if (stki_node_is_null(node))
        return STK_OK;
    if (node->kind != STKI_NODE_LIST)
        return add(node, is_label, steps, count, err);
    for (int i = 0; i < node->count && status == STK_OK; i++)
        status = add(node->items[i], is_label, steps, count, err);
    return status;
}

/* Reads the steps of a filter, labels first. */
static stk_status read_steps(const stki_node *filter, stki_filter_step *steps, int *count, stk_error *err)
{
    filter_section section = {0};
    stk_status status;

    *count = 0;
    if (stki_node_is_null(filter))
        return STK_OK;
    if (filter->kind != STKI_NODE_MAP)
        return stki_fail_value(err, filter, "{label: {...}} or {size: {...}}");
    status = stki_options_read(&stki_filter_table, filter, &section, NULL, err);
    if (status == STK_OK)
        status = add_all(section.label, true, steps, count, err);
    return status == STK_OK ? add_all(section.size, false, steps, count, err) : status;
}

/* ---- labels ---- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static stk_status no_such_class(const stki_node *node, const stki_field_classes *classes, stk_error *err)
{
    const int64_t count = classes->names.count;
    const char *near = stki_nearest_word(node->text, classes->list, (int)count);

    return near ? stki_fail_node(err, node, "found %s, which is not one of the %" PRId64 " classes; did you mean %s?",
                                 node->text, count, near)
                : stki_fail_node(err, node, "found %s, which is not one of the %" PRId64 " classes (%s, …)", node->text,
                                 count, classes->list[0]);
}

/* Converts a class name to its number, or parses a number. */
static stk_status number_of(const stki_node *node, const stki_field_classes *classes, int64_t *out, stk_error *err)
{
    *out = stki_classes_find(&classes->names, node->text);
    if (*out >= 0 || (!node->quoted && stki_node_int(node, out, NULL) == STK_OK))
        return STK_OK;
    if (classes->names.count == 0)
        return stki_fail_value(err, node, "a number: the labels have no class names");
    return no_such_class(node, classes, err);
}

static stk_status open_label(stki_filter_step *step, const stki_core *core, stk_error *err)
{
    stki_label_rule *rule = &step->label;
    const stki_node *list = rule->keep ? rule->keep : rule->drop;
    const stki_field *field = step->source;
    const stki_field_classes *classes = &core->classes[field - core->dataset->fields];
    int64_t elements = 1;

    for (int i = 0; i < field->ndim; i++)
        elements *= field->shape[i];
    rule->texts = field->dtype == STK_U8 && field->ndim == 1 && field->variable;
    if (rule->texts)
        return STK_OK;
    if (elements != 1 || field->variable || field->dtype == STK_C64 || field->dtype == STK_C128)
        return stki_fail_node(
            err, step->node,
            "field %s has samples of %s %s, expected one number or a string: specify a field of labels", field->name,
            stk_dtype_name(field->dtype), STKI_SHAPE(field->ndim, field->shape));
    rule->numbers = stki_zalloc_array(list->count, sizeof *rule->numbers);
    if (!rule->numbers)
        return stki_fail_memory(err, list->count * (int64_t)sizeof *rule->numbers, "labels");
    for (int i = 0; i < list->count; i++) {
        stk_status status = number_of(list->items[i], classes, &rule->numbers[i], err);

        if (status != STK_OK)
            return status;
    }
    rule->number_count = list->count;
    qsort(rule->numbers, (size_t)list->count, sizeof *rule->numbers, by_number);
    return STK_OK;
}

static bool has_text(const stki_node *list, const stk_tensor *label)
{
    for (int i = 0; i < list->count; i++)
        if ((int64_t)strlen(list->items[i]->text) == label->shape[0] &&
            memcmp(list->items[i]->text, label->data, (size_t)label->shape[0]) == 0)
            return true;
    return false;
}

static bool has_number(const stki_label_rule *rule, const stk_tensor *label)
{
    static const int64_t none[STK_MAX_DIMS] = {0};
    double number;
    int64_t whole;

    stki_copy_strided(&number, STK_F64, none, label->data, label->dtype, label->strides,
                      (label->flags & STK_TENSOR_SWAPPED) != 0, 0, none);
    if (!(number >= -0x1p53 && number <= 0x1p53))
        return false;
    whole = (int64_t)number;
    return (double)whole == number &&
           bsearch(&whole, rule->numbers, (size_t)rule->number_count, sizeof whole, by_number) != NULL;
}

static stk_status ask_label(const stki_label_rule *rule, const stki_reader *shard, int64_t within,
                            stki_scratch *scratch, enum stki_filter_answer *out, stk_error *err)
{
    stk_tensor label;
    bool listed;
    stk_status status = shard->ops->read(shard, within, NULL, scratch, &label, err);

    *out = STKI_FILTER_UNKNOWN;
    if (status != STK_OK)
        return status == STK_E_MEMORY ? status : STK_OK;
    listed = rule->texts ? has_text(rule->keep ? rule->keep : rule->drop, &label) : has_number(rule, &label);
    stki_reader_done(shard, &label);
    *out = listed == (rule->keep != NULL) ? STKI_FILTER_STAYS : STKI_FILTER_GOES;
    return STK_OK;
}

/* ---- sizes ---- */

static bool wants_pixels(const stki_size_rule *rule)
{
    return rule->min_height >= 0 || rule->max_height >= 0 || rule->min_width >= 0 || rule->max_width >= 0;
}

static stk_status open_size(stki_filter_step *step, stk_error *err)
{
    const stki_size_rule *rule = &step->size;
    const stki_field *field = step->source;
    const bool bytes = field->dtype == STK_U8 && field->ndim == 1 && field->variable;

    if (wants_pixels(rule) && !field->shards[0]->image && !bytes)
        return stki_fail_node(err, step->node, "field %s has no images: height and width cannot be limited",
                              field->name);
    if ((rule->min_length >= 0 || rule->max_length >= 0) && (!field->variable || field->shards[0]->image))
        return stki_fail_node(err, step->node, "field %s has no ragged samples", field->name);
    step->from_bytes = wants_pixels(rule) && bytes;
    return STK_OK;
}

static bool is_within(int64_t value, int64_t low, int64_t high)
{
    return (low < 0 || value >= low) && (high < 0 || value <= high);
}

/* Reads height and width from an image's header. */
static stk_status look_inside(const stki_reader *shard, int64_t within, stki_scratch *scratch, int64_t size[2],
                              stk_error *err)
{
    const stki_decode_opts opts = {.max_bytes = INT64_MAX};
    stki_image_info info;
    stk_tensor sample;
    stk_status status = shard->ops->read(shard, within, NULL, scratch, &sample, err);

    if (status != STK_OK)
        return status;
    status = stki_image_info_of(sample.data, sample.shape[0], &opts, &info, err);
    stki_reader_done(shard, &sample);
    if (status == STK_OK) {
        size[0] = info.height;
        size[1] = info.width;
    }
    return status;
}

static stk_status ask_size(const stki_filter_step *step, const stki_reader *shard, int64_t within,
                           stki_scratch *scratch, enum stki_filter_answer *out, stk_error *err)
{
    const stki_size_rule *rule = &step->size;
    int64_t shape[STK_MAX_DIMS], size[2] = {0}, bytes = stk_dtype_size(shard->dtype);
    stk_status status = stki_reader_shape(shard, within, shape, err);

    if (status == STK_OK && step->from_bytes)
        status = look_inside(shard, within, scratch, size, err);
    *out = STKI_FILTER_UNKNOWN;
    if (status != STK_OK)
        return status == STK_E_MEMORY ? status : STK_OK;
    for (int i = 0; i < shard->ndim; i++)
        bytes *= shape[i];
    if (shard->image) {
        size[0] = shape[0];
        size[1] = shape[1];
    }
    *out = is_within(bytes, rule->min_bytes, rule->max_bytes) &&
                   is_within(size[0], rule->min_height, rule->max_height) &&
                   is_within(size[1], rule->min_width, rule->max_width) &&
                   is_within(shard->ndim > 0 ? shape[0] : 0, rule->min_length, rule->max_length)
               ? STKI_FILTER_STAYS
               : STKI_FILTER_GOES;
    return STK_OK;
}

/* ---- both ---- */

/* Looks up a step's field in the open data set. */
static stk_status open_step(stki_filter_step *step, const stki_core *core, stk_error *err)
{
    const char *name = step->is_label ? step->label.field : step->size.field;
    const stki_field *field = stki_dataset_field(core->dataset, name);

    if (!field) {
        char words[256];
        const char *names[32];
        int count = 0;

        for (; count < core->dataset->field_count && count < 32; count++)
            names[count] = core->dataset->fields[count].name;
        return stki_fail_node(err, step->node, "field: found %s, expected %s", name,
                              stki_word_list(names, count, words, sizeof words));
    }
    step->source = field;
    snprintf(step->counts->name, sizeof step->counts->name, "%s of field %.40s", step->is_label ? "label" : "size",
             field->name);
    return step->is_label ? open_label(step, core, err) : open_size(step, err);
}

/* accepts a zeroed step */
static void fini_step(stki_filter_step *step)
{
    stki_free(step->label.numbers);
}

/* The only error is STK_E_MEMORY. */
static stk_status ask_step(const stki_filter_step *step, int64_t sample, stki_scratch *scratch,
                           enum stki_filter_answer *out, stk_error *err)
{
    int64_t within;
    const stki_reader *shard = stki_field_locate(step->source, sample, &within);

    return step->is_label ? ask_label(&step->label, shard, within, scratch, out, err)
                          : ask_size(step, shard, within, scratch, out, err);
}

enum { LOOK_UP_EVERY = 256 };

typedef struct filter {
    stki_filter_step steps[STKI_FILTER_RULES];
    int count;
    stki_scratch scratch;
    stki_filter_counts *counts;
} filter;

stk_status stki_filter_check(const stki_node *node, stk_error *err)
{
    stki_filter_step steps[STKI_FILTER_RULES];
    int count;

    return read_steps(node, steps, &count, err);
}

static stk_status ask_all(filter *f, int64_t sample, bool *stays, stk_error *err)
{
    *stays = true;
    for (int i = 0; i < f->count; i++) {
        enum stki_filter_answer answer;
        stk_status status = ask_step(&f->steps[i], sample, &f->scratch, &answer, err);

        if (status != STK_OK)
            return status;
        f->counts->rules[i].not_known += answer == STKI_FILTER_UNKNOWN;
        if (answer == STKI_FILTER_GOES) {
            f->counts->rules[i].dropped++;
            *stays = false;
            return STK_OK;
        }
    }
    return STK_OK;
}

static stk_status choose(filter *f, const stki_core *core, const _Atomic bool *cancelled, uint8_t *stays,
                         stk_error *err)
{
    const stki_loader_config *config = core->config;

    for (int64_t i = 0; i < f->counts->before; i++) {
        const int64_t sample = config->index_list ? config->index_list[i] : i;
        bool stay;
        stk_status status;

        if (i % LOOK_UP_EVERY == 0 && cancelled && atomic_load_explicit(cancelled, memory_order_relaxed))
            return stki_fail(err, STK_E_CANCELLED, "the job was stopped; run it again to resume");
        if (sample < 0 || sample >= core->dataset->count)
            return stki_fail(err, STK_E_RANGE,
                             "index %" PRId64 " of the subset: found %" PRId64 ", expected 0 to %" PRId64, i, sample,
                             core->dataset->count - 1);
        status = ask_all(f, stki_dataset_sample(core->dataset, sample), &stay, err);
        if (status != STK_OK)
            return status;
        stays[i] = stay;
        f->counts->after += stay;
    }
    return STK_OK;
}

static stk_status nothing_stays(const filter *f, stk_error *err)
{
    char all[400] = "";
    size_t used = 0;

    for (int i = 0; i < f->count && used < sizeof all; i++) {
        char one[160];

        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? "; " : "",
                                 stki_filter_text(&f->counts->rules[i], f->counts->before, one, sizeof one));
    }
    return stki_fail(err, STK_E_EMPTY, "prep.filter: no sample remains: %s", all);
}

static stk_status narrow(stki_loader_config *config, const uint8_t *stays, const stki_filter_counts *counts,
                         stk_error *err)
{
    int64_t *list = stki_zalloc_array(counts->after, sizeof *list), n = 0;

    if (!list)
        return stki_fail_memory(err, counts->after * (int64_t)sizeof *list, "the remaining samples");
    for (int64_t i = 0; i < counts->before; i++)
        if (stays[i])
            list[n++] = config->index_list ? config->index_list[i] : i;
    stki_free(config->index_list);
    config->index_list = list;
    config->index_count = n;
    return STK_OK;
}

static stk_status open_steps(filter *f, const stki_core *core, stk_error *err)
{
    stk_status status = STK_OK;

    f->counts->rule_count = f->count;
    for (int i = 0; i < f->count && status == STK_OK; i++) {
        f->steps[i].counts = &f->counts->rules[i];
        status = open_step(&f->steps[i], core, err);
    }
    return status;
}

stk_status stki_filter_apply(const stki_node *node, stki_core *core, const _Atomic bool *cancelled,
                             stki_filter_counts *out, stk_error *err)
{
    stki_loader_config *config = core->config;
    filter f = {.counts = out};
    uint8_t *stays = NULL;
    stk_status status;

    *out = (stki_filter_counts){0};
    status = read_steps(node, f.steps, &f.count, err);
    if (status != STK_OK || f.count == 0)
        return status;
    config->leaves_out = true;
    if (config->dataset_count > 0)
        return stki_fail_key(err, node, "cannot be used with several data sets: filter each of them in its own job");
    stki_scratch_init(&f.scratch);
    out->before = config->index_list ? config->index_count : core->dataset->count;
    status = open_steps(&f, core, err);
    if (status == STK_OK && !(stays = stki_zalloc(out->before ? out->before : 1)))
        status = stki_fail_memory(err, out->before, "the remaining samples");
    if (status == STK_OK)
        status = choose(&f, core, cancelled, stays, err);
    if (status == STK_OK)
        status = out->after > 0 ? narrow(config, stays, out, err) : nothing_stays(&f, err);
    for (int i = 0; i < f.count; i++)
        fini_step(&f.steps[i]);
    stki_scratch_fini(&f.scratch);
    stki_free(stays);
    return status;
}

const char *stki_filter_text(const stki_filter_rule *rule, int64_t before, char *buffer, int size)
{
    if (rule->not_known > 0)
        snprintf(buffer, (size_t)size,
                 "%s: removed %" PRId64 " of %" PRId64 " samples (and kept %" PRId64 " that could not be read)",
                 rule->name, rule->dropped, before, rule->not_known);
    else
        snprintf(buffer, (size_t)size, "%s: removed %" PRId64 " of %" PRId64 " samples", rule->name, rule->dropped,
                 before);
    return buffer;
}

json_t *stki_filter_json(const stki_filter_counts *counts)
{
    json_t *rules = json_array();

    for (int i = 0; rules && i < counts->rule_count; i++)
        json_array_append_new(rules, json_pack("{s:s, s:I, s:I}", "rule", counts->rules[i].name, "left_out",
                                               (json_int_t)counts->rules[i].dropped, "not_readable",
                                               (json_int_t)counts->rules[i].not_known));
    return rules ? json_pack("{s:I, s:I, s:o}", "samples", (json_int_t)counts->before, "stay",
                             (json_int_t)counts->after, "rules", rules)
                 : NULL;
}
