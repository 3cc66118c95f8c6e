/* filter_read.c: the rules of a filter as they are written. */
#include "error.h"
#include "filter_rules.h"
#include <string.h>

#define MOST (INT64_C(1) << 50)
static const char *const any_words[] = {"any", NULL};

static const stki_option label_rows[] = {
    STKI_STRING(stki_label_rule, field, "label", "The field, one whole number a sample, or a text",
                .examples = STKI_EXAMPLES("label", "other")),
    STKI_NODE(stki_label_rule, keep, "Samples with one of these stay: numbers, or names of classes",
              .examples = STKI_EXAMPLES("[1, 2]", "[3]")),
    STKI_NODE(stki_label_rule, drop, "Samples with one of these go", .instead_of = "keep",
              .examples = STKI_EXAMPLES("[1, 2]", "[3]")),
};
static const stki_option_table label_table = STKI_OPTION_TABLE("prep.filter.label", label_rows);

#define LIMIT(member, unit, help) STKI_INT_WORDS(stki_size_rule, member, any, 0, MOST, any_words, -1, unit, help)
#define LIMIT_BYTES(member, help) STKI_SIZE_WORDS(stki_size_rule, member, any, 0, INT64_MAX, any_words, -1, help)

static const stki_option size_rows[] = {
    STKI_STRING(stki_size_rule, field, "image", "The field whose samples are measured",
                .examples = STKI_EXAMPLES("image", "other")),
    LIMIT(min_height, "pixels", "Images: lower ones go"),
    LIMIT(max_height, "pixels", "Images: higher ones go"),
    LIMIT(min_width, "pixels", "Images: narrower ones go"),
    LIMIT(max_width, "pixels", "Images: wider ones go"),
    LIMIT_BYTES(min_bytes, "Samples of fewer bytes go: of the file with decode: none, else of the decoded values"),
    LIMIT_BYTES(max_bytes, "Samples of more bytes go"),
    LIMIT(min_length, "", "Samples of varying length: shorter ones go"),
    LIMIT(max_length, "", "Samples of varying length: longer ones go"),
};
static const stki_option_table size_table = STKI_OPTION_TABLE("prep.filter.size", size_rows);

typedef struct filter_section {
    const stki_node *label, *size;
} filter_section;

static const stki_option filter_rows[] = {
    STKI_NODE(filter_section, label, "By a field of labels: {field, keep} or {field, drop}, or a list of them",
              .flags = STKI_GIVEN, .inner = &label_table),
    STKI_NODE(filter_section, size,
              "By the size of a field's samples: {field, min_height, …}, or a list of them; read from headers alone",
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
        return stki_fail_node(err, node, "min_%s is above max_%s: nothing could stay", what, what);
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

stk_status stki_filter_read(const stki_node *filter, stki_filter_step *steps, int *count, stk_error *err)
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
