/* loadbench_look.c: see loadbench_look.h. */
#include "loadbench_look.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_apart.h"
#include "loadbench_limit.h"
#include "loadbench_output.h"
#include "loadbench_run.h"
#include "loadbench_stop.h"
#include "sheet.h"
#include "stamp.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stoker/loader.h>
#include <string.h>

#define SLICE_NS 100000000 /* longest wait in ns, which bounds the delay of a signal */

/* ---- --explain ---- */

/* Bytes of one sample, summed over all fields: `read` from the files (if all samples have the same size) and `written`
 * to the batch. */
static stk_status bytes_of_sample(const stk_loader *loader, int64_t *read, int64_t *written, stk_error *err)
{
    struct lb_effective effective;
    json_t *field;
    const char *name;
    stk_status status = lb_effective_read(loader, &effective, err);

    *read = *written = 0;
    json_object_foreach(json_object_get(effective.all, "fields"), name, field)
    {
        *read += json_integer_value(json_object_get(field, "sample_bytes"));
        *written += json_integer_value(json_object_get(field, "row_bytes"));
    }
    lb_effective_fini(&effective);
    return status;
}

/* The parameters of the measurement, and the size of a sample. */
struct explained {
    struct lb_limit_ask ask;
    int64_t read, written;
};

static stk_status ask_limit(const stk_loader *loader, struct explained *out, stk_error *err)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};
    stk_status status = stk_loader_get_stats(loader, &stats, err);

    if (status == STK_OK)
        status = bytes_of_sample(loader, &out->read, &out->written, err);
    if (status != STK_OK)
        return status;
    out->ask = (struct lb_limit_ask){.threads = stats.workers > 0 ? (int)stats.workers : 1,
                                     .row_bytes = out->read + out->written > 1 ? (out->read + out->written) / 2 : 1,
                                     .row_count = stk_loader_samples(loader),
                                     .slot_bytes = stats.slot_bytes,
                                     .random = true,
                                     .time_ns = 100000000};
    return STK_OK;
}

/* Must be called after the loader is closed, because the measurement runs in a forked process, which requires that the
 * program has no other threads. */
static void explain_limit(const struct explained *about, FILE *to)
{
    const int64_t read = about->read, written = about->written;
    struct lb_limit limit;
    stk_error err;
    const stk_status status = lb_apart_limit(&about->ask, &limit, &err);

    if (status != STK_OK) {
        fprintf(to, "limit\n  %-10s not measured: %s\n", "memory", status == STK_END ? LB_STOPPED : err.message);
        return;
    }
    fprintf(to,
            "limit\n  %-10s %.1f GB/s read and written by plain copies, %d thread%s: at most %.0f samples/s of %" PRId64
            " bytes read and %" PRId64 " written; decoding, resizing and color steps not included\n",
            "memory", limit.memcpy.bytes_per_s / 1e9, limit.threads, limit.threads == 1 ? "" : "s",
            read + written > 0 ? limit.memcpy.bytes_per_s / (double)(read + written) : 0, read, written);
}

static stk_status open_loader(const struct lb_config *config, stk_loader **out, stk_error *err)
{
    return stk_loader_open_file(config->path, config->loader_sets, config->loader_set_count, out, err);
}

stk_status lb_explain(const struct lb_config *config, FILE *to, stk_error *err)
{
    struct explained about = {0};
    stk_loader *loader = NULL;
    char *text;
    stk_status status = open_loader(config, &loader, err);

    if (status != STK_OK)
        return status;
    text = stk_loader_explain(loader);
    if (text)
        fputs(text, to);
    status = text ? ask_limit(loader, &about, err) : stki_fail_memory(err, 0, "the explanation");
    stk_text_free(text);
    stk_loader_destroy(loader);
    if (status == STK_OK)
        explain_limit(&about, to);
    return status;
}

/* ---- --preview ---- */

/* The inverse of a field's arithmetic: x = (y - zero_point - add[c]) / multiply[c]. */
struct undo {
    const json_t *multiply, *add;
    double zero_point, largest; /* largest stored value (255 for u8); 0: unknown, the values are scaled */
};

static void undo_init(const struct lb_effective *effective, const stk_field_info *info, struct undo *undo)
{
    const json_t *affine = json_object_get(lb_effective_field(effective, info->name), "affine");

    undo->multiply = json_object_get(affine, "multiply");
    undo->add = json_object_get(affine, "add");
    undo->zero_point = (double)json_integer_value(json_object_get(affine, "zero_point"));
    undo->largest = info->source_dtype == STK_U8 ? 255 : 0;
}

static double undone(const struct undo *undo, double y, int64_t channel)
{
    const size_t count = json_array_size(undo->multiply), c = count > 1 ? (size_t)channel : 0;
    double a;

    if (count == 0 || c >= count)
        return y;
    a = json_real_value(json_array_get(undo->multiply, c));
    return a != 0 ? (y - undo->zero_point - json_real_value(json_array_get(undo->add, c))) / a : 0;
}

/* Draws one row as u8 pixels or, if the stored values are not bytes, as f32. */
static stk_status draw_row(struct sheet *sheet, const stk_tensor *row, bool planar, const struct undo *undo,
                           const char *name, int64_t cell, stk_error *err)
{
    static const int hwc[2][3] = {{0, 1, 2}, {1, 2, 0}}; /* which axes of the row are height, width, channel */
    const int *axes = hwc[planar];
    stk_tensor f32, pixels;
    stk_status status = stk_tensor_to(row, STK_F32, &f32, err);

    if (status != STK_OK)
        return status;
    const int64_t h = f32.shape[axes[0]], w = f32.shape[axes[1]], c = f32.shape[axes[2]];
    uint8_t *bytes = stki_zalloc(h * w * c);

    if (!bytes) {
        stk_tensor_release(&f32);
        return stki_fail_memory(err, h * w * c, "an image");
    }
    for (int64_t i = 0; i < h * w * c; i++) {
        const int64_t at[3] = {i / (w * c), i / c % w, i % c};
        const char *element = f32.data;
        double x;

        for (int k = 0; k < 3; k++)
            element += at[k] * f32.strides[axes[k]];
        x = undone(undo, *(const float *)(const void *)element, at[2]);
        bytes[i] = (uint8_t)(x > 0 ? x < 255 ? x + 0.5 : 255 : 0);
    }
    if (undo->largest > 0) {
        pixels = (stk_tensor){.data = bytes,
                              .dtype = STK_U8,
                              .ndim = 3,
                              .shape = {h, w, c},
                              .strides = {w * c, c, 1},
                              .device = stk_device_cpu()};
        status = sheet_draw(sheet, &pixels, name, cell, err);
    } else {
        status = sheet_draw(sheet, &f32, name, cell, err);
    }
    stki_free(bytes);
    stk_tensor_release(&f32);
    return status;
}

/* Whether rows can be drawn: they have a layout, or two axes (grayscale). */
static bool has_images(const stk_field_info *info)
{
    for (int i = 1; i < info->ndim; i++)
        if (info->shape[i] < 1)
            return false;
    return *info->layout ? info->ndim == 4 : info->ndim == 3;
}

static stk_status draw_field(const struct lb_effective *effective, const stk_batch *batch, const stk_field_info *info,
                             struct sheet *sheet, int64_t rows, int64_t first_cell, stk_error *err)
{
    const bool planar = strcmp(info->layout, "nhwc") != 0;
    stk_tensor tensor, row;
    struct undo undo;
    stk_status status = stk_batch_tensor(batch, info->name, &tensor, err);

    if (status != STK_OK)
        return status;
    undo_init(effective, info, &undo);
    for (int64_t r = 0; r < rows && status == STK_OK; r++) {
        stk_tensor there;

        if ((status = stk_tensor_select(&tensor, 0, r, &there, err)) != STK_OK)
            break;
        status = stk_tensor_to_device(&there, stk_device_cpu(), &row, err);
        stk_tensor_release(&there);
        if (status != STK_OK)
            break;
        status = info->ndim == 3 ? sheet_draw(sheet, &row, info->name, first_cell + r, err)
                                 : draw_row(sheet, &row, planar, &undo, info->name, first_cell + r, err);
        stk_tensor_release(&row);
    }
    return status;
}

/* Draws all image fields on one sheet, each starting on a new line. */
static stk_status draw_batch(const stk_loader *loader, const struct lb_effective *effective, const stk_batch *batch,
                             const char *path, FILE *to, stk_error *err)
{
    enum { COLUMNS = 8 };
    struct sheet *sheet = NULL;
    stk_field_info info;
    int64_t fields = 0, rows = stk_batch_rows(batch), room, cell = 0;
    stk_status status = STK_OK;

    for (int i = 0; i < stk_loader_field_count(loader); i++)
        fields += stk_loader_field(loader, i, &info, NULL) == STK_OK && has_images(&info);
    if (fields == 0 || fields > SHEET_MOST / COLUMNS)
        return stki_fail(err, STK_E_UNSUPPORTED,
                         "--preview: found %" PRId64
                         " image fields (rows with a layout, or with two axes), expected 1 to %d",
                         fields, SHEET_MOST / COLUMNS);
    room = SHEET_MOST / fields / COLUMNS * COLUMNS;
    rows = rows < room ? rows : room;
    if (rows == 0)
        return stki_fail(err, STK_E_EMPTY, "--preview: the first batch has no rows");
    room = fields > 1 ? (rows + COLUMNS - 1) / COLUMNS * COLUMNS : rows;
    status = sheet_create(room * fields, &sheet, err);
    for (int i = 0; i < stk_loader_field_count(loader) && status == STK_OK; i++) {
        status = stk_loader_field(loader, i, &info, err);
        if (status != STK_OK || !has_images(&info))
            continue;
        status = draw_field(effective, batch, &info, sheet, rows, cell, err);
        cell += room;
    }
    if (status == STK_OK)
        status = sheet_save(sheet, path, err);
    for (int i = 0; i < stk_loader_field_count(loader) && status == STK_OK; i++)
        if (stk_loader_field(loader, i, &info, NULL) == STK_OK && has_images(&info))
            fprintf(to, "%s: %" PRId64 " of %" PRId64 " rows of field %s, epoch %" PRId64 ", step %" PRId64 "\n", path,
                    rows, stk_batch_rows(batch), info.name, stk_batch_epoch(batch), stk_batch_step(batch));
    sheet_destroy(sheet);
    return status;
}

/* Like stk_loader_next_timeout, but also returns when a signal requests a stop. */
static stk_status first_batch(stk_loader *loader, int64_t timeout_ns, stk_batch **out, stk_error *err)
{
    int64_t left = timeout_ns < 0 ? INT64_MAX : timeout_ns;
    stk_status status;

    do {
        const int64_t slice = left < SLICE_NS ? left : SLICE_NS;
        status = stk_loader_next_timeout(loader, slice, out, err);
        left -= slice;
        if (lb_stop_asked && status == STK_E_TIMEOUT)
            return stki_fail(err, STK_E_CLOSED, "stopped by a signal before the first batch");
    } while (status == STK_E_TIMEOUT && left > 0);
    return status;
}

/* Checks, before data is read, that the image file can be written and does not overwrite an input. */
static stk_status check_picture(const struct lb_config *config, const char *path, const stk_loader *loader,
                                struct lb_facts *facts, stk_error *err)
{
    stk_status status = lb_output_try(path, "writing the preview", err);

    if (status == STK_OK && stki_is_one_file(path, config->path))
        status = stki_fail(err, STK_E_CONFIG, "--preview: %s is the config: choose another name", path);
    if (status == STK_OK)
        status = lb_facts_read(loader, config->path, facts, err);
    return status == STK_OK ? lb_output_check("--preview", path, &facts->data, err) : status;
}

stk_status lb_preview(const struct lb_config *config, const char *path, FILE *to, stk_error *err)
{
    struct lb_facts *facts = stki_zalloc(sizeof *facts);
    stk_loader *loader = NULL;
    stk_batch *batch = NULL;
    stk_status status = facts ? open_loader(config, &loader, err) : stki_fail_memory(err, sizeof *facts, "the data");

    if (status == STK_OK)
        status = check_picture(config, path, loader, facts, err);
    if (status == STK_OK)
        status = first_batch(loader, facts->effective.timeout_ns, &batch, err);
    if (status == STK_END)
        status = stki_fail(err, STK_E_EMPTY, "--preview: the loader delivered no batch");
    if (status == STK_OK)
        status = draw_batch(loader, &facts->effective, batch, path, to, err);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    if (facts)
        lb_facts_fini(facts);
    stki_free(facts);
    return status;
}
