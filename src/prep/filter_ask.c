/* filter_ask.c: a rule and a sample. Labels are read, sizes taken from the reader, which knows them from headers; only
 * the height and width of images that are kept as files are looked up here, in the file's own header. */
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "filter_rules.h"
#include "nearest_word.h"
#include "selection.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static stk_status no_such_class(const stki_node *node, const stki_field_classes *classes, stk_error *err)
{
    const int64_t count = classes->names.count;
    const char *near = stki_nearest_word(node->text, classes->list, (int)count);

    return near ? stki_fail_node(err, node, "found %s, which is none of the %" PRId64 " classes; did you mean %s?",
                                 node->text, count, near)
                : stki_fail_node(err, node, "found %s, which is none of the %" PRId64 " classes (%s, …)", node->text,
                                 count, classes->list[0]);
}

/* A class by its name, or a number. */
static stk_status number_of(const stki_node *node, const stki_field_classes *classes, int64_t *out, stk_error *err)
{
    *out = stki_classes_find(&classes->names, node->text);
    if (*out >= 0 || (!node->quoted && stki_node_int(node, out, NULL) == STK_OK))
        return STK_OK;
    if (classes->names.count == 0)
        return stki_fail_value(err, node, "a number: the labels have no names of classes");
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
        return stki_fail_node(err, step->node,
                              "field %s has samples of %s %s, expected one number or a text: name a field of labels",
                              field->name, stk_dtype_name(field->dtype), STKI_SHAPE(field->ndim, field->shape));
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

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

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
        return stki_fail_node(err, step->node, "field %s has no images, whose height and width could be limited",
                              field->name);
    if ((rule->min_length >= 0 || rule->max_length >= 0) && (!field->variable || field->shards[0]->image))
        return stki_fail_node(err, step->node, "field %s has no samples of varying length", field->name);
    step->from_bytes = wants_pixels(rule) && bytes;
    return STK_OK;
}

static bool is_within(int64_t value, int64_t low, int64_t high)
{
    return (low < 0 || value >= low) && (high < 0 || value <= high);
}

/* Height and width in an image's own header. */
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

/* ---- both -------------------------------------------------------------------------------------------------------- */

stk_status stki_filter_step_open(stki_filter_step *step, const stki_core *core, stk_error *err)
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

void stki_filter_step_fini(stki_filter_step *step)
{
    stki_free(step->label.numbers);
}

stk_status stki_filter_ask(const stki_filter_step *step, int64_t sample, stki_scratch *scratch,
                           enum stki_filter_answer *out, stk_error *err)
{
    int64_t within;
    const stki_reader *shard = stki_field_locate(step->source, sample, &within);

    return step->is_label ? ask_label(&step->label, shard, within, scratch, out, err)
                          : ask_size(step, shard, within, scratch, out, err);
}
