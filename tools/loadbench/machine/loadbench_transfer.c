/* loadbench_transfer.c: see loadbench_transfer.h. The methods are measured alternately. Each is queued in one stream
 * and timed with events, except that copies from pageable memory block the caller and are timed with the host's clock.
 * Small copies are repeated between two events. All memory is touched before timing. The measurement runs in a child
 * process, because it may exceed a memory limit and be killed. */
#include "loadbench_transfer.h"
#include "clock.h"
#include "error.h"
#include "loadbench_apart.h"
#include "loadbench_machine.h"
#include "loadbench_statistics.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

#define KIB (INT64_C(1) << 10)
#define MIB (INT64_C(1) << 20)

enum { SIZES = 6, ROUNDS = 9, STEPS = 5, MOST_COPIES = 16 };
enum way { PINNED, PAGEABLE, BACK, PASS, WAYS };

static const int64_t sizes[SIZES] = {64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB};
static const double steps_ms[STEPS] = {1, 3, 10, 30, 100};
#define WAIT_NS (60 * STKI_SECOND)

/* The result of the measuring process. */
struct figures {
    char name[32];
    bool host;
    stk_device_properties properties;
    double ns[SIZES][WAYS];
    int fitting;  /* number of sizes that fit into free memory */
    int measured; /* number of sizes measured, fewer if interrupted */
};

struct transfer {
    stk_device *device;
    stk_stream *stream;
    stk_event *begin, *end;
    stk_tensor pageable, pinned, there, target;
    struct figures *figures;
};

/* ---- measuring ---- */

static void fini(struct transfer *t)
{
    stk_tensor_release(&t->pageable);
    stk_tensor_release(&t->pinned);
    stk_tensor_release(&t->there);
    stk_tensor_release(&t->target);
    stk_event_destroy(t->begin);
    stk_event_destroy(t->end);
    stk_stream_destroy(t->stream);
}

/* Returns the number of sizes of which four blocks take at most half of the free memory, but at least two, because a
 * line needs two points. */
static int fitting_sizes(void)
{
    const int64_t room = lb_memory_available() / 8;
    int count = SIZES;

    while (count > 2 && sizes[count - 1] > room)
        count--;
    return count;
}

static stk_status init(struct transfer *t, const char *name, stk_error *err)
{
    struct figures *f = t->figures;
    int64_t shape[1];
    stk_status status = stk_device_find(name, &t->device, err);

    f->fitting = fitting_sizes();
    shape[0] = sizes[f->fitting - 1];

    if (status == STK_OK && stk_device_get_kind(t->device) == STK_DEVICE_CPU)
        return stki_fail(
            err, STK_E_CONFIG,
            "--transfer: found cpu, which needs no copies; use a device such as cuda:0, or host to try it out");
    f->properties.struct_size = sizeof f->properties;
    if (status != STK_OK || (status = stk_device_get_properties(t->device, &f->properties, err)) != STK_OK ||
        (status = stk_stream_create(t->device, &t->stream, err)) != STK_OK ||
        (status = stk_event_create(t->device, true, &t->begin, err)) != STK_OK ||
        (status = stk_event_create(t->device, true, &t->end, err)) != STK_OK ||
        (status = stk_tensor_empty(STK_U8, 1, shape, NULL, &t->pageable, err)) != STK_OK ||
        (status = stk_tensor_empty_pinned(STK_U8, 1, shape, t->device, &t->pinned, err)) != STK_OK ||
        (status = stk_tensor_zeros(STK_U8, 1, shape, t->device, &t->there, err)) != STK_OK ||
        (status = stk_tensor_zeros(STK_U8, 1, shape, t->device, &t->target, err)) != STK_OK)
        return status;
    snprintf(f->name, sizeof f->name, "%s", stk_device_name(t->device));
    f->host = stk_device_get_kind(t->device) == STK_DEVICE_HOST;
    memset(t->pageable.data, 1, (size_t)shape[0]);
    memset(t->pinned.data, 1, (size_t)shape[0]);
    return stk_device_synchronize(t->device, err);
}

static stk_status queue_copies(struct transfer *t, enum way way, int64_t bytes, int count, stk_error *err)
{
    stk_tensor *const to[WAYS] = {&t->there, &t->there, &t->pinned, &t->target};
    const stk_tensor *const from[WAYS] = {&t->pinned, &t->pageable, &t->there, &t->there};
    stk_tensor dst, src;
    stk_status status = stk_tensor_narrow(to[way], 0, 0, bytes, &dst, err);

    if (status != STK_OK)
        return status;
    status = stk_tensor_narrow(from[way], 0, 0, bytes, &src, err);
    for (int i = 0; i < count && status == STK_OK; i++)
        status = stk_tensor_copy_on(&dst, &src, t->stream, true, err);
    if (status == STK_OK)
        stk_tensor_release(&src);
    stk_tensor_release(&dst);
    return status;
}

static stk_status time_way(struct transfer *t, enum way way, int64_t bytes, double *out_ns, stk_error *err)
{
    int count = (int)(4 * MIB / bytes);
    int64_t start, ns = 0;
    stk_status status = stk_event_record(t->begin, t->stream, err);

    count = count < 1 ? 1 : count > MOST_COPIES ? MOST_COPIES : count;
    start = stki_now_ns();
    if (status == STK_OK)
        status = queue_copies(t, way, bytes, count, err);
    if (status == STK_OK)
        status = stk_event_record(t->end, t->stream, err);
    if (status == STK_OK && way == PAGEABLE)
        ns = stki_now_ns() - start;
    if (status == STK_OK)
        status = stk_event_synchronize(t->end, WAIT_NS, err);
    if (status == STK_OK && way != PAGEABLE)
        status = stk_event_elapsed(t->begin, t->end, &ns, err);
    *out_ns = (double)ns / count;
    return status;
}

/* The first round of each size is a warm-up. If interrupted, at least two sizes are needed to fit a line. */
static stk_status measure(struct transfer *t, stk_error *err)
{
    for (int size = 0; size < t->figures->fitting; size++) {
        double ns[WAYS][ROUNDS];
        for (int round = -1; round < ROUNDS; round++)
            for (int way = 0; way < WAYS; way++) {
                stk_status status = time_way(t, (enum way)way, sizes[size], &ns[way][round < 0 ? 0 : round], err);
                if (status != STK_OK)
                    return status;
                if (lb_stop_asked)
                    return size >= 2
                               ? STK_OK
                               : stki_fail(err, STK_E_CLOSED, "stopped by a signal before two sizes were measured");
            }
        for (int way = 0; way < WAYS; way++)
            t->figures->ns[size][way] = lb_summarize(ns[way], ROUNDS).median;
        t->figures->measured = size + 1;
    }
    return STK_OK;
}

static stk_status measure_device(const void *name, void *out, stk_error *err)
{
    struct transfer t = {.figures = out};
    stk_status status = init(&t, name, err);

    if (status == STK_OK)
        status = measure(&t, err);
    fini(&t);
    return status;
}

/* ---- results ---- */

static struct lb_transfer_line fit_line(int64_t small_bytes, double small_ns, int64_t large_bytes, double large_ns)
{
    struct lb_transfer_line line = {.ns_per_byte = (large_ns - small_ns) / (double)(large_bytes - small_bytes)};

    if (line.ns_per_byte <= 0)
        line.ns_per_byte = large_ns / (double)large_bytes;
    line.fixed_ns = small_ns - line.ns_per_byte * (double)small_bytes;
    line.fixed_ns = line.fixed_ns > 0 ? line.fixed_ns : 0;
    return line;
}

/* Returns the size of the largest batch whose copy takes no longer than the step; 0: none. */
static int64_t hidden_bytes(struct lb_transfer_line line, double step_ns)
{
    double room = step_ns - line.fixed_ns;

    return room > 0 && line.ns_per_byte > 0 ? (int64_t)(room / line.ns_per_byte) : 0;
}

static struct lb_transfer_line line_of(const struct figures *t, enum way way)
{
    return fit_line(sizes[0], t->ns[0][way], sizes[t->measured - 1], t->ns[t->measured - 1][way]);
}

/* ---- text ---- */

static const char *bytes_text(char *buffer, int size, int64_t bytes)
{
    if (bytes >= MIB)
        snprintf(buffer, (size_t)size, "%" PRId64 " MiB", bytes / MIB);
    else
        snprintf(buffer, (size_t)size, "%" PRId64 " KiB", bytes / KIB);
    return buffer;
}
#define BYTES_TEXT(bytes) bytes_text((char[24]){0}, 24, bytes)

static void print_copies(const struct figures *t, FILE *to)
{
    struct lb_table table;

    lb_table_init(&table, 8);
    lb_table_row(&table,
                 (const char *const[]){"batch", "pinned us", "GB/s", "pageable us", "GB/s", "back us", "device pass us",
                                       "passes"},
                 8);
    for (int i = 0; i < t->measured; i++) {
        const double *ns = t->ns[i];
        lb_table_row(&table, NULL, 0);
        lb_table_cell(&table, 0, "%s", BYTES_TEXT(sizes[i]));
        lb_table_cell(&table, 1, "%s", LB_NUMBER(ns[PINNED] / 1e3));
        lb_table_cell(&table, 2, "%s", LB_NUMBER(lb_ratio((double)sizes[i], ns[PINNED])));
        lb_table_cell(&table, 3, "%s", LB_NUMBER(ns[PAGEABLE] / 1e3));
        lb_table_cell(&table, 4, "%s", LB_NUMBER(lb_ratio((double)sizes[i], ns[PAGEABLE])));
        lb_table_cell(&table, 5, "%s", LB_NUMBER(ns[BACK] / 1e3));
        lb_table_cell(&table, 6, "%s", LB_NUMBER(ns[PASS] / 1e3));
        lb_table_cell(&table, 7, "%s", LB_NUMBER(lb_ratio(ns[PINNED], ns[PASS])));
    }
    lb_table_print(&table, to);
}

static void print_steps(const struct figures *t, FILE *to)
{
    struct lb_table table;

    lb_table_init(&table, 3);
    lb_table_row(&table, (const char *const[]){"step", "pinned", "pageable"}, 3);
    for (int i = 0; i < STEPS; i++) {
        lb_table_row(&table, NULL, 0);
        lb_table_cell(&table, 0, "%.0f ms", steps_ms[i]);
        for (int way = PINNED; way <= PAGEABLE; way++)
            lb_table_cell(&table, 1 + way, "%.1f MB",
                          (double)hidden_bytes(line_of(t, (enum way)way), steps_ms[i] * 1e6) / 1e6);
    }
    lb_table_print(&table, to);
}

static void print_text(const struct figures *t, FILE *to)
{
    const struct lb_transfer_line line = line_of(t, PINNED);

    fprintf(to, "%s: %s%s%s\n\n", t->name, t->properties.model, *t->properties.bus ? ", " : "", t->properties.bus);
    print_copies(t, to);
    if (t->measured < t->fitting)
        fputs("\nStopped by a signal: larger batches were not measured.\n", to);
    else if (t->fitting < SIZES)
        fputs("\nLarger batches were not measured: too little memory is free.\n", to);
    fprintf(
        to,
        "\nCopies to the device from pinned memory and from pageable memory (these block the caller), and back to "
        "pinned "
        "memory. A device\npass reads and writes the same number of bytes on the device. A step that makes fewer than "
        "`passes` passes over a batch is shorter\nthan its copy.\n\nThe largest batch whose copy fits into a step "
        "(from pinned "
        "memory: %s us + %s us per MB):\n\n",
        LB_NUMBER(line.fixed_ns / 1e3), LB_NUMBER(line.ns_per_byte * 1e3));
    print_steps(t, to);
    if (t->host)
        fputs("\nThe host device copies with this machine's processors, so its figures are not those of a GPU.\n", to);
}

/* ---- JSON ---- */

static json_t *line_json(struct lb_transfer_line line)
{
    return json_pack("{s:f, s:f}", "fixed_ns", line.fixed_ns, "us_per_mb", line.ns_per_byte * 1e3);
}

static stk_status print_json(const struct figures *t, FILE *to, stk_error *err)
{
    json_t *rows = json_array(), *steps = json_array(), *root;
    int wrong = 0;

    for (int i = 0; i < t->measured; i++)
        wrong |= json_array_append_new(rows, json_pack("{s:I, s:f, s:f, s:f, s:f}", "batch_bytes", (json_int_t)sizes[i],
                                                       "pinned_ns", t->ns[i][PINNED], "pageable_ns", t->ns[i][PAGEABLE],
                                                       "back_ns", t->ns[i][BACK], "device_pass_ns", t->ns[i][PASS]));
    for (int i = 0; i < STEPS; i++)
        wrong |= json_array_append_new(
            steps, json_pack("{s:f, s:I, s:I}", "step_ms", steps_ms[i], "pinned_bytes",
                             (json_int_t)hidden_bytes(line_of(t, PINNED), steps_ms[i] * 1e6), "pageable_bytes",
                             (json_int_t)hidden_bytes(line_of(t, PAGEABLE), steps_ms[i] * 1e6)));
    root = json_pack("{s:i, s:s, s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:o}, s:o, s:b, s:i}", "schema", 1, "program",
                     "loadbench --transfer", "version", stk_version(), "device", "name", t->name, "model",
                     t->properties.model, "bus", t->properties.bus, "copies", rows, "lines", "pinned",
                     line_json(line_of(t, PINNED)), "pageable", line_json(line_of(t, PAGEABLE)), "hidden_in_step",
                     steps, "stopped", t->measured < t->fitting, "left_out_for_memory", SIZES - t->fitting);
    if (!root || wrong || json_dumpf(root, to, JSON_INDENT(2)) != 0) {
        json_decref(root);
        return stki_fail_memory(err, 4096, "the result");
    }
    json_decref(root);
    fputc('\n', to);
    return STK_OK;
}

stk_status lb_transfer(const char *device, bool json, FILE *to, stk_error *err)
{
    struct figures figures = {0};
    stk_status status;

    if (lb_stop_asked)
        return stki_fail(err, STK_E_CLOSED, "stopped by a signal before two sizes were measured");
    status = lb_apart(measure_device, device, &figures, sizeof figures, err);
    if (status == STK_OK && json)
        status = print_json(&figures, to, err);
    else if (status == STK_OK)
        print_text(&figures, to);
    return status;
}
