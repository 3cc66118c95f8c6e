/* views.c: see views.h. */
#include "views.h"
#include "allocate.h"
#include "error.h"
#include <string.h>

static bool is_free(const stki_field_config *fields, int field_count, const char *name, const stki_node *self)
{
    for (int i = 0; i < field_count; i++) {
        const stki_node *views = fields[i].views;

        if (strcmp(fields[i].name, name) == 0)
            return false;
        for (int k = 0; views && k < views->count; k++)
            if (views->items[k] != self && strcmp(views->keys[k], name) == 0)
                return false;
    }
    return true;
}

/* Reads [start, stop]. If stop is null, the range extends to the end. */
static stk_status read_range(const stki_node *node, int64_t *start, int64_t *stop, bool *open, stk_error *err)
{
    stk_status status;

    if (node->kind != STKI_NODE_LIST || node->count != 2)
        return stki_fail_value(err, node, "a range [start, stop] along the first axis, such as [0, -1] or [1, null]");
    *start = *stop = 0;
    *open = stki_node_is_null(node->items[1]);
    status = stki_node_is_null(node->items[0]) ? STK_OK : stki_node_int(node->items[0], start, err);
    return status != STK_OK || *open ? status : stki_node_int(node->items[1], stop, err);
}

stk_status stki_views_check(const stki_field_config *fields, int field_count, stk_error *err)
{
    for (int i = 0; i < field_count; i++) {
        const stki_node *views = fields[i].views;

        if (!views)
            continue;
        if (views->kind != STKI_NODE_MAP)
            return stki_fail_value(err, views, "a map of ranges, such as {inputs: [0, -1], targets: [1, null]}");
        for (int k = 0; k < views->count; k++) {
            int64_t start, stop;
            bool open;
            stk_status status = read_range(views->items[k], &start, &stop, &open, err);

            if (status != STK_OK)
                return status;
            if (!*views->keys[k] || strchr(views->keys[k], '.'))
                return stki_fail_key(err, views->items[k], "found the name \"%s\", expected letters, digits, _ and -",
                                     views->keys[k]);
            if (!is_free(fields, field_count, views->keys[k], views->items[k]))
                return stki_fail_key(err, views->items[k], "a field or view with that name already exists");
        }
    }
    return STK_OK;
}

/* Converts a view to a range of an axis of `length`. The range may be empty, reversed or out of bounds. */
static void resolve(const stki_view *view, int64_t length, int64_t *first, int64_t *end)
{
    *first = view->start < 0 ? view->start + length : view->start;
    *end = view->open ? length : view->stop < 0 ? view->stop + length : view->stop;
}

static stk_status make(const stki_field_plan *plan, int number, const stki_node *node, const char *name, stki_view *out,
                       stk_error *err)
{
    int64_t first, end;
    stk_status status;

    *out = (stki_view){.name = name, .plan = number};
    status = read_range(node, &out->start, &out->stop, &out->open, err);
    if (status != STK_OK)
        return status;
    if (plan->ndim == 0 || !plan->tensors[0].viewed)
        return stki_fail_key(err, node, "found a view of field %s, whose rows have %s", plan->name,
                             plan->ndim == 0 ? "no axis" : "different lengths (pad makes them equal)");
    resolve(out, plan->shape[0], &first, &end);
    if ((first < 0 || end > plan->shape[0] || first > end) && !plan->varies)
        return stki_fail_value(err, node, "a range inside the %lld elements of a row of field %s",
                               (long long)plan->shape[0], plan->name);
    return STK_OK;
}

/* Returns the ranges configured for a field. Those of a packed field also apply to its segments and positions. */
static const stki_node *ranges_of(const stki_field_plan *plans, const stki_field_plan *plan, const char **ending)
{
    static const char *const endings[] = {".segments", ".positions"};

    *ending = plan->config->derived ? endings[plan->config->derived_part] : "";
    return plan->config->derived ? plans[plan->config->derived_from].config->views : plan->config->views;
}

stk_status stki_views_make(const stki_field_plan *plans, int plan_count, stki_view **out, int *count, stk_error *err)
{
    const char *ending;
    const stki_node *map;
    int total = 0;
    stki_view *views;
    stk_status status = STK_OK;

    *count = 0;
    for (int i = 0; i < plan_count; i++) {
        map = ranges_of(plans, &plans[i], &ending);
        total += map ? map->count : 0;
    }
    if (total == 0)
        return STK_OK;
    views = *out = stki_zalloc_array(total, sizeof *views);
    if (!views)
        return stki_fail_memory(err, total * (int64_t)sizeof *views, "views");
    for (int i = 0; i < plan_count && status == STK_OK; i++) {
        map = ranges_of(plans, &plans[i], &ending);
        for (int k = 0; map && k < map->count && status == STK_OK; k++) {
            status = make(&plans[i], i, map->items[k], map->keys[k], &views[*count], err);
            views[(*count)++].ending = ending;
        }
    }
    return status;
}

/* Rows padded to the longest one of the batch may be shorter than a range, which is then clipped, as in Python. */
void stki_view_apply(const stki_view *view, stk_tensor *tensor)
{
    int64_t length = tensor->shape[1], first, end;

    resolve(view, length, &first, &end);
    first = first < 0 ? 0 : first > length ? length : first;
    end = end < first ? first : end > length ? length : end;
    tensor->data = (char *)tensor->data + first * tensor->strides[1];
    tensor->shape[1] = end - first;
}
