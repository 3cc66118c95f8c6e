/* loadbench_figure.c: see loadbench_figure.h. */
#include "loadbench_figure.h"
#include <stdio.h>
#include <string.h>

const void *lb_figure_member(const struct lb_figure *figure, const void *owner)
{
    return (const char *)owner + figure->offset;
}

int64_t lb_figure_integer(const struct lb_figure *figure, const void *owner)
{
    const void *member = lb_figure_member(figure, owner);

    switch (figure->type) {
    case LB_INT64:
        return *(const int64_t *)member;
    case LB_INT:
        return *(const int *)member;
    case LB_UINT32:
        return *(const uint32_t *)member;
    case LB_BOOL:
        return *(const bool *)member;
    default:
        return 0;
    }
}

static double in_unit(double value, enum lb_figure_unit unit)
{
    switch (unit) {
    case LB_PERCENT:
        return 100 * value;
    case LB_NS_AS_US:
        return value / 1e3;
    case LB_NS_AS_MS:
        return value / 1e6;
    case LB_NS_AS_S:
        return value / 1e9;
    case LB_BYTES_AS_MB:
        return value < 0 ? -1 : value / 1e6;
    default:
        return value;
    }
}

double lb_figure_value(const struct lb_figure *figure, const void *owner)
{
    const void *member = lb_figure_member(figure, owner);
    const char *bytes = owner;
    double value;

    if (figure->of)
        value = figure->of(owner);
    else if (figure->type == LB_DOUBLE)
        value = *(const double *)member;
    else if (figure->type == LB_SUMMARY)
        value = ((const struct lb_summary *)member)->median;
    else
        value = (double)(lb_figure_integer(figure, owner) +
                         (figure->plus ? *(const int64_t *)(const void *)(bytes + figure->plus) : 0));
    value = in_unit(value, figure->unit);
    if (!figure->over)
        return value;
    return lb_ratio(value, (double)*(const int64_t *)(const void *)(bytes + figure->over) / figure->over_unit);
}

const char *lb_figure_text(const struct lb_figure *figure, const void *owner)
{
    if (figure->words)
        return figure->words[lb_figure_integer(figure, owner)];
    return figure->type == LB_TEXT   ? lb_figure_member(figure, owner)
           : figure->type == LB_WORD ? *(const char *const *)lb_figure_member(figure, owner)
                                     : NULL;
}

bool lb_figure_is_there(const struct lb_figure *figure, const void *owner)
{
    switch (figure->when) {
    case LB_IF_POSITIVE:
        return lb_figure_value(figure, owner) > 0;
    case LB_IF_NOT_NEGATIVE:
        return lb_figure_value(figure, owner) >= 0;
    case LB_IF_TEXT:
        return lb_figure_text(figure, owner)[0] != '\0';
    case LB_IF_KNOWN:
        return *(const bool *)owner;
    case LB_IF_UNKNOWN:
        return !*(const bool *)owner;
    case LB_IF_KNOWN_NOT_NEGATIVE:
        return *(const bool *)owner && lb_figure_value(figure, owner) >= 0;
    default:
        return true;
    }
}

double lb_figure_scale(const struct lb_figure *figure, double value, char *label, int size)
{
    const char *const mb = strstr(figure->label, "MB");
    const bool bytes = value < 1e-4, small = mb && value > 0 && value < 0.1;

    if (small)
        snprintf(label, (size_t)size, "%.*s%s%s", (int)(mb - figure->label), figure->label, bytes ? "B" : "kB", mb + 2);
    else
        snprintf(label, (size_t)size, "%s", figure->label);
    return !small ? 1 : bytes ? 1e6 : 1e3;
}
