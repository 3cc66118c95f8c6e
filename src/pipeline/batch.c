/* batch.c: queries on a leased batch, its release, and its export as DLPack. A batch is released when its lease and all
 * its exports have ended, in any order and on any thread, even after the loader has been closed. */
#include "batch_tensors.h"
#include "core.h"
#include "device_table.h"
#include "dlpack_type.h"
#include "error.h"
#include "feed.h"
#include "stream.h"
#include <dlpack/dlpack.h>
#include <stdio.h>
#include <string.h>

static bool belongs_to_parent(const stk_batch *batch)
{
    return batch->core->fork_generation != stki_fork_generation();
}

static bool is_on_device(const stk_batch *batch)
{
    return batch->device_slot >= 0;
}

static void let_go(stk_batch *batch)
{
    stki_core *core = batch->core;

    if (belongs_to_parent(batch) || !stki_unref(&batch->holds))
        return;
    if (is_on_device(batch)) {
        stki_feed_release(batch);
    } else {
#ifdef STKI_POISON
        if (!stki_guards_any(&batch->guards)) /* poison the memory, so that use after release is detected */
            memset(batch->memory, 0xA5, (size_t)core->layout.bytes);
#endif
        stki_ring_release(core->ring, &batch->ring);
    }
    stki_core_release(core);
}

/* Prevents the slot from being refilled until the work queued in `stream` so far has finished. Errors are reported by
 * the next call on the device. */
static void guard(stk_batch *batch, stk_stream *stream)
{
    if (is_on_device(batch))
        stki_feed_guard(batch, stream);
    else
        (void)stki_guards_add(&batch->guards, stream, NULL);
}

void stk_batch_mark_used(stk_batch *batch)
{
    if (batch && !belongs_to_parent(batch) && !atomic_exchange_explicit(&batch->used, true, memory_order_relaxed))
        stki_progress_release(batch->core->progress, batch->lease);
}

void stk_batch_release_on(stk_batch *batch, stk_stream *stream)
{
    if (!batch || belongs_to_parent(batch))
        return;
    if (stream)
        guard(batch, stream);
    stk_batch_mark_used(batch);
    let_go(batch);
}

void stk_batch_release(stk_batch *batch)
{
    stk_batch_release_on(batch, NULL);
}

int stk_batch_device_slot(const stk_batch *batch)
{
    return batch->device_slot;
}

int64_t stk_batch_rows(const stk_batch *batch)
{
    return batch->rows;
}

int64_t stk_batch_valid_rows(const stk_batch *batch)
{
    return batch->valid;
}

const int64_t *stk_batch_indices(const stk_batch *batch)
{
    return batch->indices;
}

const int32_t *stk_batch_sources(const stk_batch *batch)
{
    return batch->sources;
}

const uint8_t *stk_batch_mask(const stk_batch *batch)
{
    return batch->mask;
}

int64_t stk_batch_failed(const stk_batch *batch)
{
    return batch->failed;
}

stk_status stk_batch_origin(const stk_batch *batch, int field, int64_t row, char *path, int size, int64_t *record,
                            stk_error *err)
{
    char buffer[STKI_RECORD_PATH];
    const stki_reader *shard;
    const char *found;
    int64_t within;

    if (!batch || !path || !record || size < 1)
        return stki_fail(err, STK_E_BAD_ARG, "%s",
                         !batch    ? "batch: found NULL"
                         : !record ? "record: found NULL"
                                   : "path: expected a buffer of 1 byte or more");
    if (belongs_to_parent(batch))
        return stki_fail(err, STK_E_FORKED,
                         "this batch was delivered in the parent process: open a loader in the child");
    if (field < 0 || field >= batch->core->plan_count)
        return stki_fail(err, STK_E_RANGE, "no field %d: the loader has %d", field, batch->core->plan_count);
    if (row < 0 || row >= batch->rows)
        return stki_fail(err, STK_E_RANGE, "no row %lld: the batch has %lld", (long long)row, (long long)batch->rows);
    shard = stki_field_locate(batch->core->plans[field].field, batch->samples[row], &within);
    found = stki_reader_path(shard, within, buffer);
    snprintf(path, (size_t)size, "%s", found);
    *record = strcmp(found, shard->path) == 0 ? within : 0;
    return STK_OK;
}

int64_t stk_batch_epoch(const stk_batch *batch)
{
    return batch->epoch;
}

int64_t stk_batch_step(const stk_batch *batch)
{
    return batch->step;
}

int64_t stk_batch_global_step(const stk_batch *batch)
{
    return batch->ring.step;
}

bool stk_batch_last_of_epoch(const stk_batch *batch)
{
    return batch->last_of_epoch;
}

static void add_axis(stk_tensor *out, int64_t length, int64_t stride)
{
    out->shape[out->ndim] = length;
    out->strides[out->ndim++] = stride;
}

/* *out borrows from the batch. */
static void get(const stk_batch *batch, const stki_batch_tensor *which, stk_tensor *out)
{
    const stki_field_plan *plan = which->plan;
    const stki_row_tensor *tensor = which->tensor;
    const int64_t units = stki_tensor_units(plan, tensor, batch->memory, batch->rows);

    *out = (stk_tensor){.device = batch->device_slot >= 0 ? batch->core->device : stk_device_cpu(),
                        .dtype = tensor->dtype};
    if (batch->device_slot < 0 && batch->pinned)
        out->flags = STK_TENSOR_PINNED;
    out->data = batch->device_slot >= 0 ? stki_feed_place(batch, plan, tensor) : batch->memory + tensor->offset;
    if (tensor->extent == STKI_LENGTHS)
        out->data = (int64_t *)out->data + 1;
    if (tensor->extent == STKI_PER_PADDED_ENTRY) {
        const int64_t length = stki_row_counts(plan, batch->memory)[0];

        add_axis(out, batch->rows, length * tensor->out_bytes);
        add_axis(out, length, tensor->out_bytes);
    } else {
        add_axis(out, units, tensor->out_bytes);
    }
    for (int i = 0; i < tensor->ndim; i++)
        add_axis(out, tensor->shape[i], tensor->strides[i]);
    if (which->view)
        stki_view_apply(which->view, out);
}

stk_status stk_batch_tensor(const stk_batch *batch, const char *name, stk_tensor *out, stk_error *err)
{
    const stki_batch_tensor *which;
    stk_status status;

    if (!batch || !name || !out)
        return stki_fail(err, STK_E_BAD_ARG, "%s: found NULL", !batch ? "batch" : !name ? "name" : "out");
    if (belongs_to_parent(batch))
        return stki_fail(err, STK_E_FORKED,
                         "this batch was delivered in the parent process: open a loader in the child");
    if ((status = stki_batch_tensor_find(batch->core, name, &which, err)) == STK_OK)
        get(batch, which, out);
    return status;
}

/* ---- DLPack ---- */

typedef struct export
{
    DLManagedTensor managed; /* must be first */
    stk_batch *batch;
    stk_stream *stream; /* the stream that uses the tensor, retained; NULL: no work is queued */
    int64_t shape[STK_MAX_DIMS], strides[STK_MAX_DIMS];
}
export;

static void delete_export(DLManagedTensor *managed)
{
    export *e = managed->manager_ctx;

    if (!belongs_to_parent(e->batch)) {
        if (e->stream)
            guard(e->batch, e->stream);
        stki_stream_release(e->stream);
    }
    let_go(e->batch);
    stki_free(e);
}

/* Makes `stream` wait until the batch's bytes have been written. */
static stk_status await(const stk_batch *batch, stk_stream *stream, stk_error *err)
{
    if (!is_on_device(batch))
        return STK_OK; /* already complete */
    if (stk_stream_device(stream) != batch->core->device)
        return stki_fail(err, STK_E_BAD_DEVICE, "the batch is on %s, but the stream belongs to %s",
                         batch->core->device->name, stk_device_name(stk_stream_device(stream)));
    return stki_feed_await(batch, stream, err);
}

stk_status stk_batch_retain(stk_batch *batch, stk_stream *stream, stk_error *err)
{
    stk_status status = STK_OK;

    if (!batch)
        return stki_fail(err, STK_E_BAD_ARG, "batch: found NULL");
    if (belongs_to_parent(batch))
        return stki_fail(err, STK_E_FORKED,
                         "this batch was delivered in the parent process: open a loader in the child");
    if (stream && stream != batch->stream)
        status = await(batch, stream, err);
    if (status == STK_OK)
        stki_ref(&batch->holds);
    return status;
}

stk_status stk_batch_dlpack_on(stk_batch *batch, const char *name, stk_stream *stream, struct DLManagedTensor **out,
                               stk_error *err)
{
    stk_tensor tensor;
    stk_status status = stk_batch_tensor(batch, name, &tensor, err);
    stki_dlpack_type type;
    export *e;

    if (status == STK_OK && stream && stream != batch->stream)
        status = await(batch, stream, err);
    if (status != STK_OK)
        return status;
    if (!stki_dlpack_type_of(tensor.dtype, 0, &type))
        return stki_fail(err, STK_E_UNSUPPORTED, "%s: DLPack 0.6 has no dtype %s", name, stk_dtype_name(tensor.dtype));
    e = stki_zalloc(sizeof *e);
    if (!e)
        return stki_fail_memory(err, sizeof *e, "a DLPack export");
    for (int i = 0; i < tensor.ndim; i++) {
        e->shape[i] = tensor.shape[i];
        e->strides[i] = tensor.strides[i] / stk_dtype_size(tensor.dtype);
    }
    e->managed = (DLManagedTensor){
        .dl_tensor = {.data = tensor.data,
                      .ndim = tensor.ndim,
                      .dtype = {type.code, type.bits, 1},
                      .shape = e->shape,
                      .strides = e->strides},
        .manager_ctx = e,
        .deleter = delete_export,
    };
    e->managed.dl_tensor.device.device_type = kDLCPU;
    /* memory of the host device is CPU memory */
    if (stk_device_get_kind(tensor.device) != STK_DEVICE_HOST) {
        e->managed.dl_tensor.device.device_type = (DLDeviceType)stk_device_get_kind(tensor.device);
        e->managed.dl_tensor.device.device_id = stk_device_index(tensor.device);
    }
    e->batch = batch;
    e->stream = stream;
    stki_stream_retain(stream);
    stki_ref(&batch->holds);
    *out = &e->managed;
    return STK_OK;
}

stk_status stk_batch_dlpack(stk_batch *batch, const char *name, struct DLManagedTensor **out, stk_error *err)
{
    return stk_batch_dlpack_on(batch, name, batch ? batch->stream : NULL, out, err);
}
