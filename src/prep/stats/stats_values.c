/* stats_values.c: see stats_values.h. */
#include "stats_values.h"
#include "allocate.h"
#include "error.h"
#include <stdlib.h>

enum { FIRST_PLACES = 64 };

void stki_values_fini(stki_values *values)
{
    stki_free(values->place);
    *values = (stki_values){0};
}

static stki_value_count *find(const stki_values *values, int64_t value)
{
    const uint64_t mask = (uint64_t)values->places - 1;
    uint64_t at = (uint64_t)value * UINT64_C(0x9e3779b97f4a7c15);

    for (at = (at ^ at >> 32) & mask; values->place[at].count && values->place[at].value != value;)
        at = (at + 1) & mask;
    return &values->place[at];
}

static stk_status grow(stki_values *values, stk_error *err)
{
    stki_values larger = {.places = values->places ? 2 * values->places : FIRST_PLACES, .used = values->used};

    larger.place = stki_zalloc_array(larger.places, sizeof *larger.place);
    if (!larger.place)
        return stki_fail_memory(err, larger.places * (int64_t)sizeof *larger.place, "counts of classes");
    for (int64_t i = 0; i < values->places; i++)
        if (values->place[i].count)
            *find(&larger, values->place[i].value) = values->place[i];
    stki_free(values->place);
    *values = larger;
    return STK_OK;
}

stk_status stki_values_add(stki_values *values, int64_t value, int64_t count, stk_error *err)
{
    stki_value_count *place;
    stk_status status;

    if (count == 0)
        return STK_OK;
    if (2 * (values->used + 1) > values->places && (status = grow(values, err)) != STK_OK)
        return status;
    place = find(values, value);
    if (!place->count) {
        if (values->used == STKI_VALUES_MOST)
            return stki_fail(err, STK_E_LIMIT,
                             "more than %d different values, too many for classes; remove classes: true",
                             STKI_VALUES_MOST);
        values->used++;
        place->value = value;
    }
    place->count += count;
    return STK_OK;
}

stk_status stki_values_merge(stki_values *into, const stki_values *from, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < from->places && status == STK_OK; i++)
        status = stki_values_add(into, from->place[i].value, from->place[i].count, err);
    return status;
}

static int by_value(const void *a, const void *b)
{
    const stki_value_count *p = a, *q = b;

    return p->value < q->value ? -1 : p->value > q->value;
}

stk_status stki_values_list(const stki_values *values, stki_value_count **out, stk_error *err)
{
    stki_value_count *list = stki_zalloc_array(values->used ? values->used : 1, sizeof *list);
    int64_t n = 0;

    if (!list)
        return stki_fail_memory(err, values->used * (int64_t)sizeof *list, "counts of classes");
    for (int64_t i = 0; i < values->places; i++)
        if (values->place[i].count)
            list[n++] = values->place[i];
    qsort(list, (size_t)n, sizeof *list, by_value);
    *out = list;
    return STK_OK;
}
