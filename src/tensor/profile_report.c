/* profile_report.c: memory accounting, profiles and recordings as tables and as JSON. */
#include "allocate.h"
#include "clock.h"
#include "device_table.h"
#include "error.h"
#include "record.h"
#include "storage.h"
#include "text_build.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_ROWS = 512, MOST_MEMORY_ROWS = STKI_MEM_KINDS + 2 * 64 };

/* ---- accounting ---- */

struct memory_rows {
    stk_memory_row *rows;
    int count, max;
};

static void add_memory(struct memory_rows *to, const char *device, const char *kind, const stki_memory_stats *stats,
                       int64_t reserved)
{
    if (to->count++ >= to->max)
        return;
    to->rows[to->count - 1] = (stk_memory_row){
        .device = device,
        .kind = kind,
        .allocated_bytes = stats->bytes,
        .reserved_bytes = reserved > stats->bytes ? reserved : stats->bytes,
        .peak_bytes = stats->peak_bytes,
        .blocks = stats->blocks,
        .largest_bytes = stats->largest_bytes,
        .allocations = stats->total_allocations,
    };
}

/* Adds the row of one kind of memory of a device with a caching pool. */
static void add_pool(struct memory_rows *to, const stk_device *device, const char *kind, stki_pool *pool)
{
    stk_device_memory_stats of = {0};

    pool->ops->stats(pool, &of);
    add_memory(to, device->name, kind,
               &(stki_memory_stats){.bytes = of.allocated_bytes,
                                    .peak_bytes = of.allocated_peak,
                                    .blocks = of.blocks,
                                    .largest_bytes = of.largest_bytes,
                                    .total_allocations = of.allocations},
               of.reserved_bytes);
}

static void visit_device(void *context, stk_device *device)
{
    static const struct {
        enum stki_memory_kind kind;
        const char *name;
    } host[] = {{STKI_MEM_HOST, "host"}, {STKI_MEM_SLOT, "slot"}, {STKI_MEM_PINNED, "pinned"}};
    stki_memory_stats stats;

    if (device->pool)
        add_pool(context, device, "device", device->pool);
    if (device->pinned_pool)
        add_pool(context, device, "pinned", device->pinned_pool);
    if (device->pool)
        return;
    if (device->kind != STK_DEVICE_CPU) {
        stki_counters_read(&device->memory, &stats);
        add_memory(context, device->name, "device", &stats, stki_counted(&device->memory.reserved));
        return;
    }
    for (int i = 0; i < 3; i++) {
        stki_memory_read(host[i].kind, &stats);
        add_memory(context, device->name, host[i].name, &stats, 0);
    }
}

int stk_memory_read(stk_memory_row *rows, int max)
{
    struct memory_rows to = {.rows = rows, .max = max};

    stki_device_each(visit_device, &to);
    return to.count;
}

static void reset_peak(void *context, stk_device *device)
{
    (void)context;
    stk_device_reset_memory_peaks(device);
    stki_count_set(&device->memory.peak, stki_counted(&device->memory.bytes));
}

void stk_memory_reset_peaks(void)
{
    for (int kind = 0; kind < STKI_MEM_KINDS; kind++)
        stki_memory_reset_peak((enum stki_memory_kind)kind);
    stki_device_each(reset_peak, NULL);
}

/* Appends a right-aligned size. */
static void put_size_cell(stki_text_build *text, int width, int64_t bytes)
{
    stki_text_build cell = {0};

    stki_put_size(&cell, bytes);
    if (cell.failed)
        text->failed = true;
    else
        stki_putf(text, "%*s", width, cell.text);
    stki_free(cell.text);
}

stk_status stk_memory_summary(char **out, stk_error *err)
{
    stk_memory_row rows[MOST_MEMORY_ROWS];
    int count = stk_memory_read(rows, (int)(sizeof rows / sizeof rows[0]));
    stki_text_build text = {0};

    stki_putf(&text, "%-8s %-7s %12s %12s %12s %9s %12s %12s\n", "device", "kind", "allocated", "reserved", "peak",
              "blocks", "largest", "allocations");
    for (int i = 0; i < count; i++) {
        stki_putf(&text, "%-8s %-7s", rows[i].device, rows[i].kind);
        put_size_cell(&text, 13, rows[i].allocated_bytes);
        put_size_cell(&text, 13, rows[i].reserved_bytes);
        put_size_cell(&text, 13, rows[i].peak_bytes);
        stki_putf(&text, " %9" PRId64, rows[i].blocks);
        put_size_cell(&text, 13, rows[i].largest_bytes);
        stki_putf(&text, " %12" PRId64 "\n", rows[i].allocations);
    }
    return stki_text_finish(&text, "a report", out, err);
}

/* ---- profile ---- */

stk_status stk_profile_summary(stk_profile_order order, char **out, stk_error *err)
{
    stk_profile_row rows[MOST_ROWS];
    int count = stk_profile_read(order, rows, MOST_ROWS);
    stki_text_build text = {0};
    int64_t all_ns = 0;

    for (int i = 0; i < count; i++)
        all_ns += rows[i].own_ns;
    stki_putf(&text, "%-20s %10s %12s %12s %7s %12s %13s\n", "operation", "calls", "own ms", "total ms", "own %",
              "us/call", "allocated");
    for (int i = 0; i < count; i++) {
        const stk_profile_row *row = &rows[i];
        stki_putf(&text, "%-20s %10" PRId64 " %12.3f %12.3f %7.1f %12.3f", row->name, row->calls,
                  (double)row->own_ns * 1e-6, (double)row->time_ns * 1e-6,
                  all_ns > 0 ? 100.0 * (double)row->own_ns / (double)all_ns : 0.0,
                  (double)row->time_ns * 1e-3 / (double)row->calls);
        put_size_cell(&text, 14, row->allocated_bytes);
        stki_put(&text, "\n");
    }
    return stki_text_finish(&text, "a report", out, err);
}

/* ---- recording ---- */

struct listing {
    stki_text_build *text;
    int64_t count, now_ns;
};

static void put_list(stki_text_build *text, int count, const int64_t *list)
{
    stki_put(text, "[");
    for (int i = 0; i < count; i++)
        stki_putf(text, i ? ", %" PRId64 : "%" PRId64, list[i]);
    stki_put(text, "]");
}

static void put_origin(stki_text_build *text, const char *operation, const char *tag)
{
    if (*operation)
        stki_putf(text, ", by %s", operation);
    if (*tag)
        stki_putf(text, " at %s", tag);
}

static void list_storage(void *context, const stki_record *record)
{
    struct listing *listing = context;
    stki_text_build *text = listing->text;

    listing->count++;
    stki_putf(text, "storage %" PRId64 ": ", record->number);
    stki_put_size(text, record->storage->bytes);
    stki_putf(text, " on %s", record->storage->device->name);
    if (record->outside)
        stki_put(text, " (external memory)");
    put_origin(text, record->operation, record->tag);
    stki_putf(text, ", %" PRId64 " references\n", stk_storage_refs(record->storage));
    for (const stki_holder *holder = record->holders; holder; holder = holder->next) {
        stki_putf(text, "    held as %s ", stk_dtype_name(holder->about.dtype));
        put_list(text, holder->about.ndim, holder->about.shape);
        put_origin(text, holder->about.operation, holder->about.tag);
        if (holder->about.references > 1)
            stki_putf(text, ", %" PRId64 " references", holder->about.references);
        stki_put(text, "\n");
    }
}

stk_status stk_memory_leaks(char **out, int64_t *out_count, stk_error *err)
{
    stki_text_build text = {0};
    struct listing listing = {.text = &text};
    int64_t lost = stki_record_each(list_storage, &listing);
    stk_status status;

    if (lost > 0)
        stki_putf(&text, "%" PRId64 " more could not be recorded for lack of memory\n", lost);
    status = stki_text_finish(&text, "a report", out, err);
    if (status == STK_OK)
        *out_count = listing.count + lost;
    return status;
}

/* ---- JSON ---- */

static void put_memory_json(stki_text_build *text)
{
    stk_memory_row rows[MOST_MEMORY_ROWS];
    int count = stk_memory_read(rows, (int)(sizeof rows / sizeof rows[0]));

    stki_put(text, "  \"memory\": [");
    for (int i = 0; i < count; i++) {
        stki_put(text, i ? ",\n    {\"device\": " : "\n    {\"device\": ");
        stki_put_json(text, rows[i].device);
        stki_putf(text, ", \"kind\": \"%s\", \"allocated_bytes\": %" PRId64 ", \"reserved_bytes\": %" PRId64,
                  rows[i].kind, rows[i].allocated_bytes, rows[i].reserved_bytes);
        stki_putf(text, ", \"peak_bytes\": %" PRId64 ", \"blocks\": %" PRId64 ", \"largest_bytes\": %" PRId64,
                  rows[i].peak_bytes, rows[i].blocks, rows[i].largest_bytes);
        stki_putf(text, ", \"allocations\": %" PRId64 "}", rows[i].allocations);
    }
    stki_put(text, "\n  ],\n");
}

static void put_profile_json(stki_text_build *text)
{
    stk_profile_row rows[MOST_ROWS];
    int count = stk_profile_read(STK_PROFILE_BY_TIME, rows, MOST_ROWS);

    stki_put(text, "  \"operations\": [");
    for (int i = 0; i < count; i++)
        stki_putf(text,
                  "%s\n    {\"name\": \"%s\", \"calls\": %" PRId64 ", \"time_ns\": %" PRId64 ", \"own_ns\": %" PRId64
                  ", \"allocated_bytes\": %" PRId64 "}",
                  i ? "," : "", rows[i].name, rows[i].calls, rows[i].time_ns, rows[i].own_ns, rows[i].allocated_bytes);
    stki_put(text, count ? "\n  ],\n" : "],\n");
}

static void put_origin_json(stki_text_build *text, const char *operation, const char *tag)
{
    stki_put(text, "\"operation\": ");
    stki_put_json(text, operation);
    stki_put(text, ", \"tag\": ");
    stki_put_json(text, tag);
}

static void put_holder_json(stki_text_build *text, const stk_holder *about)
{
    stki_put(text, "{");
    put_origin_json(text, about->operation, about->tag);
    stki_putf(text, ", \"references\": %" PRId64 ", \"dtype\": \"%s\", \"offset_bytes\": %" PRId64 ", \"shape\": ",
              about->references, stk_dtype_name(about->dtype), about->offset_bytes);
    put_list(text, about->ndim, about->shape);
    stki_put(text, ", \"strides_bytes\": ");
    put_list(text, about->ndim, about->strides);
    stki_put(text, "}");
}

static void put_storage_json(void *context, const stki_record *record)
{
    struct listing *listing = context;
    stki_text_build *text = listing->text;

    stki_put(text, listing->count++ ? ",\n    {\"device\": " : "\n    {\"device\": ");
    stki_put_json(text, record->storage->device->name);
    stki_putf(text, ", \"number\": %" PRId64 ", \"bytes\": %" PRId64 ", \"outside\": %s, \"age_ns\": %" PRId64 ", ",
              record->number, record->storage->bytes, record->outside ? "true" : "false",
              listing->now_ns - record->made_ns);
    put_origin_json(text, record->operation, record->tag);
    stki_putf(text, ", \"references\": %" PRId64 ", \"holders\": [", stk_storage_refs(record->storage));
    for (const stki_holder *holder = record->holders; holder; holder = holder->next) {
        put_holder_json(text, &holder->about);
        if (holder->next)
            stki_put(text, ", ");
    }
    stki_put(text, "]}");
}

stk_status stk_memory_snapshot(char **out, stk_error *err)
{
    stki_text_build text = {0};
    struct listing listing = {.text = &text, .now_ns = stki_now_ns()};
    int64_t lost;

    stki_put(&text, "{\n  \"schema\": 1,\n  \"version\": ");
    stki_put_json(&text, stk_version());
    stki_put(&text, ",\n");
    put_memory_json(&text);
    put_profile_json(&text);
    stki_putf(&text, "  \"recording\": %s,\n  \"storages\": [", stki_recording() ? "true" : "false");
    lost = stki_record_each(put_storage_json, &listing);
    stki_putf(&text, "%s],\n  \"lost_records\": %" PRId64 "\n}\n", listing.count ? "\n  " : "", lost);
    return stki_text_finish(&text, "a report", out, err);
}
