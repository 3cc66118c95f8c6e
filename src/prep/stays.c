/* stays.c: see stays.h. */
#include "stays.h"
#include "error.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static stk_status add(json_t *stays, const char *field, const char *why, int64_t count, stk_error *err)
{
    json_t *of_field = json_object_get(stays, field);
    int failed = 0;

    if (!of_field) {
        of_field = json_object();
        failed = json_object_set_new(stays, field, of_field);
    }
    count += json_integer_value(json_object_get(of_field, why));
    if (failed || json_object_set_new(of_field, why, json_integer((json_int_t)count)) != 0)
        return stki_fail_memory(err, 256, "a count of rows");
    return STK_OK;
}

stk_status stki_stays_count(json_t *stays, const stki_sink_field *fields, int field_count,
                            const stki_sink_value *values, int64_t rows, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < rows * field_count && status == STK_OK; i++)
        if (values[i].stays)
            status = add(stays, fields[i % field_count].name, values[i].stays, 1, err);
    return status;
}

stk_status stki_stays_merge(json_t *stays, const json_t *more, stk_error *err)
{
    const char *field, *why;
    json_t *of_field, *count;
    stk_status status = STK_OK;

    json_object_foreach((json_t *)(uintptr_t)more, field, of_field)
    {
        json_object_foreach(of_field, why, count)
        {
            if (status == STK_OK)
                status = add(stays, field, why, json_integer_value(count), err);
        }
    }
    return status;
}

const char *stki_stays_text(const json_t *of_field, int64_t *count, char *text, size_t size)
{
    const char *why;
    json_t *n;

    *count = 0;
    text[0] = '\0';
    json_object_foreach((json_t *)(uintptr_t)of_field, why, n)
    {
        const size_t used = strlen(text);

        snprintf(text + used, size - used, "%s%" PRId64 " %s", used ? ", " : "", (int64_t)json_integer_value(n), why);
        *count += json_integer_value(n);
    }
    return text;
}
