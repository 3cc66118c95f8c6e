/* loadbench_range.c: see loadbench_range.h. Numbers of a range may have a unit of the config language. All values are
 * written in the unit of the first number. */
#include "loadbench_range.h"
#include "allocate.h"
#include "error.h"
#include "node_scalar.h"
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    double value; /* the number, in its unit */
    char unit[8];
    enum stki_unit kind; /* must be the same for all numbers of a range */
    double factor;       /* value of one unit */
    bool whole;          /* written as an integer */
};

/* Parses one number with its unit from `text` up to `end`. */
static bool read_number(const char *text, const char *end, struct number *out)
{
    char *rest;
    const char *at = text + (*text == '-');

    if (at >= end || !(isdigit((unsigned char)*at) || *at == '.'))
        return false;
    out->value = strtod(text, &rest);
    out->whole = !memchr(text, '.', (size_t)(rest - text));
    if (rest > end) /* in "2..8", strtod consumes the first dot */
        rest = (char *)(uintptr_t)end;
    if (!stki_scalar_unit(rest, (size_t)(end - rest), &out->kind, &out->factor))
        return false;
    snprintf(out->unit, sizeof out->unit, "%.*s", (int)(end - rest), rest);
    return isfinite(out->value);
}

static stk_status keep(struct lb_range *out, const char *text, size_t length, const char *option, stk_error *err)
{
    if (out->count == LB_RANGE_VALUES)
        return stki_fail(err, STK_E_CONFIG, "%s: %s has more than %d values", option, out->key, LB_RANGE_VALUES);
    out->values[out->count] = stki_format("%.*s", (int)length, text);
    if (!out->values[out->count])
        return stki_fail_memory(err, (int64_t)length, "a value");
    out->count++;
    return STK_OK;
}

static stk_status keep_number(struct lb_range *out, double value, const struct number *like, const char *option,
                              stk_error *err)
{
    char text[64];

    snprintf(text, sizeof text, "%.12g%s", value, like->unit);
    return keep(out, text, strlen(text), option, err);
}

struct steps {
    struct number from, to, by;
    bool times;
};

static stk_status fail_range(const char *option, const char *item, size_t length, const char *what, stk_error *err)
{
    return stki_fail(err, STK_E_CONFIG, "%s: %.*s: %s (ranges are 1..8, 2..8+2 or 64..1024*2)", option, (int)length,
                     item, what);
}

/* Reads "a..b", "a..b+step" or "a..b*factor". `dots`: position of the two dots. */
static stk_status read_steps(const char *option, const char *item, size_t length, const char *dots, struct steps *out,
                             stk_error *err)
{
    const char *end = item + length, *second = dots + 2, *by = second;

    while (by < end && *by != '+' && *by != '*')
        by++;
    if (!read_number(item, dots, &out->from) || !read_number(second, by, &out->to))
        return fail_range(option, item, length, "expected numbers before and after the two dots", err);
    out->times = by < end && *by == '*';
    out->by = out->from;
    out->by.value = 1;
    out->by.whole = true;
    if (by < end && !read_number(by + 1, end, &out->by))
        return fail_range(option, item, length, "expected a number after + or *", err);
    if (out->from.kind != out->to.kind ||
        (!out->times && out->by.kind != STKI_UNIT_NONE && out->by.kind != out->from.kind) ||
        (out->times && out->by.kind != STKI_UNIT_NONE && by < end))
        return fail_range(option, item, length, "its numbers have different units", err);
    if (out->times ? out->by.value <= 1 : out->by.value <= 0)
        return fail_range(option, item, length,
                          out->times ? "the factor must be larger than 1" : "the step must be larger than 0", err);
    if (out->times && out->from.value <= 0)
        return fail_range(option, item, length, "a range with a factor must start above 0", err);
    return STK_OK;
}

static stk_status keep_range(struct lb_range *out, const char *option, const char *item, size_t length,
                             const char *dots, stk_error *err)
{
    struct steps s;
    stk_status status = read_steps(option, item, length, dots, &s, err);

    if (status != STK_OK)
        return status;
    const double last = s.to.value * s.to.factor / s.from.factor;
    const double step = s.by.kind == STKI_UNIT_NONE ? s.by.value : s.by.value * s.by.factor / s.from.factor;

    if (s.from.value > last)
        return fail_range(option, item, length, "it ends below its start", err);
    for (int i = 0; status == STK_OK; i++) { /* computed from the start each time, so that errors do not accumulate */
        const double value = s.times ? s.from.value * pow(step, i) : s.from.value + step * i;
        if (value > last * (1 + 1e-12))
            return STK_OK;
        status = keep_number(out, s.from.whole && s.by.whole && fabs(value - rint(value)) < 1e-6 ? rint(value) : value,
                             &s.from, option, err);
    }
    return status;
}

/* Finds the two dots of a range. NULL: it is a plain value, which may contain two dots ("../data.npy"). */
static const char *points_of(const char *item, size_t length)
{
    const char *at = item + (*item == '-');

    while (at < item + length && (isalnum((unsigned char)*at) || (*at == '.' && at[1] != '.')))
        at++;
    return at > item && at + 1 < item + length && at[0] == '.' && at[1] == '.' &&
                   isdigit((unsigned char)item[*item == '-'])
               ? at
               : NULL;
}

static stk_status keep_item(struct lb_range *out, const char *option, const char *item, size_t length, stk_error *err)
{
    const char *dots = points_of(item, length);

    if (length == 0)
        return stki_fail(err, STK_E_CONFIG, "%s: %s: a value is missing before, after or between commas", option,
                         out->key);
    return dots ? keep_range(out, option, item, length, dots, err) : keep(out, item, length, option, err);
}

/* Returns the length up to the next comma outside brackets and quotes. */
static size_t item_length(const char *text)
{
    int depth = 0;
    char quote = 0;
    size_t at = 0;

    for (; text[at] && (text[at] != ',' || depth > 0 || quote); at++)
        if (quote)
            quote = text[at] == quote ? (char)0 : quote;
        else if (text[at] == '"' || text[at] == '\'')
            quote = text[at];
        else if (text[at] == '[' || text[at] == '{')
            depth++;
        else if ((text[at] == ']' || text[at] == '}') && depth > 0)
            depth--;
    return at;
}

stk_status lb_range_read(const char *option, const char *text, struct lb_range *out, stk_error *err)
{
    const char *equals = strchr(text, '='), *at;
    stk_status status = STK_OK;

    memset(out, 0, sizeof *out);
    if (!equals || equals == text || equals[1] == '\0')
        return stki_fail(err, STK_E_CONFIG, "%s: found \"%s\", expected KEY=VALUES such as loader.num_workers=1,2,4",
                         option, text);
    out->key = stki_format("%.*s", (int)(equals - text), text);
    out->values = stki_zalloc_array(LB_RANGE_VALUES, sizeof *out->values);
    if (!out->key || !out->values)
        return stki_fail_memory(err, LB_RANGE_VALUES, "the values of a sweep");
    for (at = equals + 1; status == STK_OK;) {
        const size_t length = item_length(at);
        status = keep_item(out, option, at, length, err);
        at += length;
        if (*at == '\0')
            break;
        at++;
    }
    return status;
}

void lb_range_fini(struct lb_range *range)
{
    for (int i = 0; i < range->count; i++)
        stki_free(range->values[i]);
    stki_free(range->values);
    stki_free(range->key);
    memset(range, 0, sizeof *range);
}
