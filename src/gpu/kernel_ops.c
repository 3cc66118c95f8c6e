/* kernel_ops.c: see kernel_ops.h. */
#include "kernel_ops.h"
#include "convert_internal.h"
#include "device_memory.h"
#include "device_tables.h"
#include "error.h"
#include "kernel_plan.h"
#include "quant_internal.h"

enum table_kind { TABLE_CONVERT, TABLE_QUANTIZE, TABLE_DEQUANTIZE };

/* Copies the table to the device unless it fits in the launch; *far is its address there, or NULL. */
static stk_status upload_table(stk_device *device, const stki_device_tables *tables, enum table_kind kind, bool wanted,
                               const stki_kernel_table *table, const void **far, stk_error *err)
{
    *far = NULL;
    if (!wanted)
        return STK_OK;
    return stki_device_tables_get(tables, device, (int)kind, table->first, table->second, table->count * table->size,
                                  far, err);
}

static stk_status run_planned(stki_launch_fn run, stk_device *device, stk_status planned, const stki_launch *launch,
                              stk_stream *stream, stk_error *err)
{
    return planned != STK_OK || launch->blocks == 0 ? planned : run(device, launch, stream, err);
}

stk_status stki_kernel_convert(stki_launch_fn run, stk_device *device, const struct stki_convert *convert, void *dst,
                               int64_t dst_stride, const void *src, int64_t src_stride, int64_t count,
                               stk_stream *stream, stk_error *err)
{
    stki_kernel_table table = {0};
    const bool wanted = stki_kernel_table_of_convert(convert, &table);
    stki_launch launch;
    const void *far;
    stk_status status = upload_table(device, &convert->device_tables, TABLE_CONVERT, wanted, &table, &far, err);

    status = status != STK_OK
                 ? status
                 : stki_kernel_plan_convert(convert, dst, dst_stride, src, src_stride, count, far, &launch, err);
    return status != STK_OK ? status : run_planned(run, device, status, &launch, stream, err);
}

stk_status stki_kernel_copy_strided(stki_launch_fn run, stk_device *device, const stk_tensor *dst,
                                    const stk_tensor *src, stk_stream *stream, stk_error *err)
{
    stki_launch launch;
    stk_status status = stki_kernel_plan_copy(dst, src, &launch, err);

    return run_planned(run, device, status, &launch, stream, err);
}

stk_status stki_kernel_elementwise(stki_launch_fn run, stk_device *device, const stki_elementwise_job *job,
                                   stk_stream *stream, stk_error *err)
{
    stki_launch launch;
    stk_status status = stki_kernel_plan_elementwise(job, &launch, err);

    return run_planned(run, device, status, &launch, stream, err);
}

stk_status stki_kernel_quantize(stki_launch_fn run, stk_device *device, const stki_quantize_job *job,
                                stk_stream *stream, stk_error *err)
{
    stki_kernel_table table = {0};
    const bool wanted = stki_kernel_table_of_quantize(job, &table);
    stki_launch launch;
    const void *far;
    stk_status status = upload_table(device, &job->quant->device_tables, job->back ? TABLE_DEQUANTIZE : TABLE_QUANTIZE,
                                     wanted, &table, &far, err);

    status = status != STK_OK ? status : stki_kernel_plan_quantize(job, far, &launch, err);
    return status != STK_OK ? status : run_planned(run, device, status, &launch, stream, err);
}

/* Frees the scratch memory. A pool reuses it only after the stream has finished with it; without a pool, this function
 * waits for the stream. */
static stk_status free_scratch(stk_device *device, void *scratch, int64_t bytes, stk_stream *stream, stk_status status,
                               stk_error *err)
{
    if (!device->pool && stream && status == STK_OK)
        status = stk_stream_synchronize(stream, STK_WAIT_FOREVER, err);
    if (device->pool && stream && stream != stk_stream_current(device))
        stki_device_record_stream(device, STK_MEMORY_DEVICE, scratch, stream);
    stki_device_free(device, STK_MEMORY_DEVICE, scratch, bytes);
    return status;
}

stk_status stki_kernel_sum(stki_launch_fn run, stk_device *device, const stki_sum_job *job, stk_stream *stream,
                           stk_error *err)
{
    stki_launch launches[2];
    int64_t scratch_bytes;
    void *scratch = NULL;
    int count;
    stk_status status = stki_kernel_plan_sum(job, launches, &count, &scratch_bytes, err);

    if (status == STK_OK && scratch_bytes > 0)
        status = stki_device_alloc(device, STK_MEMORY_DEVICE, scratch_bytes, &scratch, err);
    if (status != STK_OK)
        return status;
    stki_kernel_sum_scratch(launches, count, scratch);
    for (int i = 0; i < count && status == STK_OK; i++)
        status = run(device, &launches[i], stream, err);
    return scratch ? free_scratch(device, scratch, scratch_bytes, stream, status, err) : status;
}
