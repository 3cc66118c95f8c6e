/* stats_observe.c: statistics as observers of a job (observe.h), one for each field in `stats`. Rows of a statistics
 * block (stats_tally.h) that are not contiguous in one call are first copied together. */
#include "allocate.h"
#include "error.h"
#include "nearest_word.h"
#include "observe.h"
#include "stats_options.h"
#include <stdlib.h>
#include <string.h>

typedef struct stats_observer {
    stki_observer base;
    stki_tally_form form;
    stki_stats_opts opts;
    const char *name;
} stats_observer;

struct stki_seen {
    stki_tally *tally;
    stki_bytes waiting; /* pending rows of `block`, which may continue in the next call */
    int64_t block, waiting_rows;
};

static const stki_observer_ops ops;

static const stats_observer *of(const stki_observer *observer)
{
    return (const stats_observer *)observer;
}

static stk_status begin(const stki_observer *observer, stki_seen **out, stk_error *err)
{
    stki_seen *seen = stki_zalloc(sizeof *seen);
    stk_status status;

    if (!seen)
        return stki_fail_memory(err, sizeof *seen, "statistics");
    status = stki_tally_create(&of(observer)->form, stki_isa(), &seen->tally, err);
    if (status != STK_OK) {
        stki_free(seen);
        return status;
    }
    *out = seen;
    return STK_OK;
}

static void drop(const stki_observer *observer, stki_seen *seen)
{
    (void)observer;
    if (!seen)
        return;
    stki_tally_destroy(seen->tally);
    stki_bytes_fini(&seen->waiting);
    stki_free(seen);
}

static stk_status in_field(const stats_observer *o, stk_status status, stk_error *err)
{
    return stki_fail_place(err, status, NULL, -1, o->name);
}

static stk_status add_block(const stats_observer *o, stki_tally *tally, const void *data, int64_t rows, int64_t bytes,
                            stk_error *err)
{
    return in_field(o, stki_tally_block(tally, &o->form, data, rows, bytes / stk_dtype_size(o->form.dtype), err), err);
}

static stk_status add_waiting(const stats_observer *o, stki_tally *tally, const stki_seen *seen, stk_error *err)
{
    if (seen->waiting_rows == 0)
        return STK_OK;
    return add_block(o, tally, seen->waiting.bytes, seen->waiting_rows, seen->waiting.used, err);
}

static stk_status flush(const stats_observer *o, stki_seen *seen, stk_error *err)
{
    const stk_status status = add_waiting(o, seen->tally, seen, err);

    seen->waiting.used = seen->waiting_rows = 0;
    return status;
}

static stk_status wait_for_more(stki_seen *seen, const stki_row *rows, int64_t count, stk_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        const stk_status status = stki_bytes_reserve(&seen->waiting, rows[i].size, err);

        if (status != STK_OK)
            return status;
        if (rows[i].size)
            memcpy(seen->waiting.bytes + seen->waiting.used, rows[i].bytes, (size_t)rows[i].size);
        seen->waiting.used += rows[i].size;
    }
    seen->waiting_rows += count;
    return STK_OK;
}

/* Returns the number of rows, starting at `rows`, that belong to one block; `adjacent`: they are contiguous. */
static int64_t group(const stats_observer *o, const stki_row *rows, int64_t count, int64_t *bytes, bool *adjacent)
{
    const int64_t block = rows[0].position / o->form.block_rows;
    int64_t n = 1;

    *bytes = rows[0].size;
    *adjacent = true;
    for (; n < count && rows[n].position / o->form.block_rows == block; n++) {
        *adjacent = *adjacent && rows[n].bytes == (const char *)rows[n - 1].bytes + rows[n - 1].size;
        *bytes += rows[n].size;
    }
    return n;
}

static stk_status check_rows(const stats_observer *o, stki_seen *seen, const stki_row *rows, int64_t count,
                             stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; o->form.ragged && i < count && status == STK_OK; i++) {
        const stki_row *row = &rows[i];

        if (!o->form.opaque && o->form.channels > 1 && row->shape[row->ndim - 1] != o->form.channels)
            return stki_fail_at(err, STK_E_BAD_SHAPE,
                                (stki_place){o->name, row->sample, -1,
                                             STKI_TEXT("%lld", (long long)row->shape[row->ndim - 1]),
                                             STKI_TEXT("%lld", (long long)o->form.channels)},
                                "channels (per-channel statistics need the same number in each row; set per: tensor)");
        status = stki_tally_length(seen->tally,
                                   o->form.opaque  ? row->size
                                   : row->ndim > 2 ? row->shape[0] * row->shape[1]
                                                   : row->shape[0],
                                   err);
    }
    return status;
}

static stk_status see(const stki_observer *observer, stki_seen *seen, const stki_row *rows, int64_t count,
                      stk_error *err)
{
    const stats_observer *o = of(observer);
    const int64_t block_rows = o->form.block_rows;
    stk_status status = check_rows(o, seen, rows, count, err);

    for (int64_t i = 0, n; i < count && status == STK_OK; i += n) {
        const int64_t block = rows[i].position / block_rows;
        int64_t bytes;
        bool adjacent, ends;

        n = group(o, rows + i, count - i, &bytes, &adjacent);
        ends = i + n < count || rows[i + n - 1].position % block_rows == block_rows - 1;
        if (seen->waiting_rows && seen->block != block)
            status = flush(o, seen, err);
        if (status != STK_OK)
            break;
        if (adjacent && ends && !seen->waiting_rows) {
            status = add_block(o, seen->tally, rows[i].bytes, n, bytes, err);
            continue;
        }
        seen->block = block;
        status = wait_for_more(seen, rows + i, n, err);
        if (status == STK_OK && ends)
            status = flush(o, seen, err);
    }
    return status;
}

static stk_status merge(const stki_observer *observer, stki_seen *into, const stki_seen *next, stk_error *err)
{
    const stats_observer *o = of(observer);
    stk_status status = flush(o, into, err);

    if (status == STK_OK)
        status = in_field(o, stki_tally_merge(into->tally, &o->form, next->tally, err), err);
    return status == STK_OK ? add_waiting(o, into->tally, next, err) : status;
}

/* Merges all observations, including those of pending rows. */
static stk_status whole_of(const stats_observer *o, const stki_seen *seen, stki_tally **out, stk_error *err)
{
    stk_status status = stki_tally_create(&o->form, stki_isa(), out, err);

    if (status != STK_OK)
        return status;
    status = stki_tally_merge(*out, &o->form, seen->tally, err);
    if (status == STK_OK)
        status = add_waiting(o, *out, seen, err);
    if (status != STK_OK)
        stki_tally_destroy(*out);
    return status;
}

static json_t *as_text(const char *bytes, int64_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = stki_zalloc(2 * size + 1);
    json_t *json;

    if (!text)
        return NULL;
    for (int64_t i = 0; i < size; i++) {
        text[2 * i] = digits[(uint8_t)bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    json = json_stringn(text, (size_t)(2 * size));
    stki_free(text);
    return json;
}

static json_t *save(const stki_observer *observer, const stki_seen *seen)
{
    const stats_observer *o = of(observer);
    stki_tally *whole;
    char *bytes;
    int64_t size;
    json_t *json = NULL;

    if (whole_of(o, seen, &whole, NULL) != STK_OK)
        return NULL;
    if (stki_tally_save(whole, &o->form, &bytes, &size, NULL) == STK_OK) {
        json = as_text(bytes, size);
        stki_free(bytes);
    }
    stki_tally_destroy(whole);
    return json;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static stk_status load(const stki_observer *observer, const json_t *saved, stki_seen **out, stk_error *err)
{
    const stats_observer *o = of(observer);
    const char *text = json_string_value(saved);
    const int64_t size = text ? (int64_t)json_string_length(saved) / 2 : 0;
    char *bytes = stki_zalloc(size + 1);
    stki_seen *seen = stki_zalloc(sizeof *seen);
    stk_status status = STK_OK;

    if (!bytes || !seen)
        status = stki_fail_memory(err, size, "saved statistics");
    for (int64_t i = 0; status == STK_OK && i < size; i++) {
        const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            status = stki_fail(err, STK_E_CORRUPT, "saved statistics: damaged");
        else
            bytes[i] = (char)(high << 4 | low);
    }
    if (status == STK_OK)
        status = stki_tally_load(&o->form, bytes, size, &seen->tally, err);
    stki_free(bytes);
    if (status != STK_OK) {
        stki_free(seen);
        return in_field(o, status, err);
    }
    *out = seen;
    return STK_OK;
}

static stk_status report(const stki_observer *observer, const stki_seen *seen, json_t **out, stk_error *err)
{
    const stats_observer *o = of(observer);
    stki_tally *whole;
    stk_status status = whole_of(o, seen, &whole, err);

    if (status != STK_OK)
        return status;
    status = in_field(o, stki_stats_report(whole, &o->form, &o->opts, out, err), err);
    stki_tally_destroy(whole);
    return status;
}

static void destroy(stki_observer *observer)
{
    stki_free(observer);
}

static const stki_observer_ops ops = {
    .name = "stats",
    .begin = begin,
    .see = see,
    .merge = merge,
    .save = save,
    .load = load,
    .drop = drop,
    .report = report,
    .destroy = destroy,
};

/* ---- the section `stats` ---- */

static stk_status create(const stki_node *map, const stki_sink_field *field, int index, stki_observer **out,
                         stk_error *err)
{
    stats_observer *o = stki_zalloc(sizeof *o);
    stk_status status;

    if (!o)
        return stki_fail_memory(err, sizeof *o, "statistics");
    o->base = (stki_observer){.ops = &ops, .field = index};
    o->name = field->name;
    status = stki_stats_opts_read(map, &o->opts, err);
    if (status == STK_OK)
        status = stki_stats_form(&o->opts, field, map, &o->form, err);
    if (status != STK_OK) {
        stki_free(o);
        return status;
    }
    *out = &o->base;
    return STK_OK;
}

static stk_status unknown_field(const stki_node *node, const stki_sink_field *fields, int field_count, stk_error *err)
{
    const char **names = stki_zalloc_array(field_count, sizeof *names), *near;

    if (!names)
        return stki_fail_memory(err, field_count * (int64_t)sizeof *names, "names");
    for (int i = 0; i < field_count; i++)
        names[i] = fields[i].name;
    near = stki_nearest_word(node->key, names, field_count);
    stki_fail_key(err, node, "no such field%s%s%s", near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
    stki_free(names);
    return STK_E_CONFIG;
}

static stk_status check_names(const stki_node *map, const stki_sink_field *fields, int field_count, stk_error *err)
{
    for (int k = 0; map && k < map->count; k++) {
        bool known = false;

        for (int i = 0; i < field_count; i++)
            known = known || strcmp(fields[i].name, map->keys[k]) == 0;
        if (!known)
            return unknown_field(map->items[k], fields, field_count, err);
    }
    return STK_OK;
}

stk_status stki_observers_create(const stki_node *stats, const stki_sink_field *fields, int field_count,
                                 stki_observer ***out, int *count, stk_error *err)
{
    stki_stats_section section;
    stki_observer **list;
    int made = 0;
    stk_status status = stki_stats_section_read(stats, &section, err);
    const stki_node *map = status == STK_OK && !stki_node_is_null(section.fields) ? section.fields : NULL;

    status = status != STK_OK ? status : check_names(map, fields, field_count, err);
    if (status != STK_OK)
        return status;
    list = stki_zalloc_array(field_count + 1, sizeof *list);
    if (!list)
        return stki_fail_memory(err, (field_count + 1) * (int64_t)sizeof *list, "statistics");
    for (int i = 0; i < field_count && status == STK_OK; i++) {
        if (map && !stki_node_get(map, fields[i].name))
            continue;
        status = create(stki_node_get(map, fields[i].name), &fields[i], i, &list[made], err);
        made += status == STK_OK;
    }
    if (status != STK_OK) {
        while (made > 0)
            destroy(list[--made]);
        stki_free(list);
        return status;
    }
    *out = list;
    *count = made;
    return STK_OK;
}
