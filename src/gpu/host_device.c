/* host_device.c: see host_device.h. The device table of the host device: memory, and the jobs that host_stream.c runs.
 */
#include "host_device.h"
#include "caching_pool.h"
#include "convert.h"
#include "error.h"
#include "host_stream.h"
#include "kernel_ops.h"
#include "kernel_twin.h"
#include "sync_device.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* Aligned to pages, like memory from a driver; large blocks use huge pages. */
enum { PAGE = 4096, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20 };

static void *block_alloc(const stki_allocator *self, int64_t bytes, int64_t alignment)
{
    void *block = stki_heap.alloc(self, bytes, alignment);

    if (block && bytes >= HUGE_FROM)
        stki_block_prefer_huge(block, bytes);
    return block;
}

static void block_free(const stki_allocator *self, void *block, int64_t bytes, int64_t alignment)
{
    stki_heap.free(self, block, bytes, alignment);
}

static const stki_allocator device_blocks = {
    .name = "host device", .kind = STKI_MEM_DEVICE, .alloc = block_alloc, .free = block_free};
static const stki_allocator pinned_blocks = {
    .name = "host device", .kind = STKI_MEM_PINNED, .alloc = block_alloc, .free = block_free};

static int64_t alignment_of(int64_t bytes)
{
    return bytes >= HUGE_FROM ? HUGE_PAGE : PAGE;
}

static stk_status host_alloc(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    void *block = stki_block_alloc(&device_blocks, bytes, alignment_of(bytes));

    if (!block)
        return stki_fail_memory(err, bytes, device->name);
    stki_counters_note(&device->memory, bytes, 1); /* counts this device; the allocator counts all host devices */
    *out = block;
    return STK_OK;
}

static void host_free(stk_device *device, void *block, int64_t bytes)
{
    if (!block)
        return;
    stki_counters_note(&device->memory, -bytes, -1);
    stki_block_free(&device_blocks, block, bytes, alignment_of(bytes));
}

static stk_status host_alloc_pinned(stk_device *device, int64_t bytes, void **out, stk_error *err)
{
    (void)device;
    *out = stki_block_alloc(&pinned_blocks, bytes, alignment_of(bytes));
    return *out ? STK_OK : stki_fail_memory(err, bytes, "pinned memory of the host device");
}

static void host_free_pinned(stk_device *device, void *block, int64_t bytes)
{
    (void)device;
    stki_block_free(&pinned_blocks, block, bytes, alignment_of(bytes));
}

/* ---- work ---- */

typedef struct copy_job {
    void *dst;
    const void *src;
    int64_t bytes;
} copy_job;

static stk_status run_copy(void *context, stk_error *err)
{
    const copy_job *job = context;

    (void)err;
    memmove(job->dst, job->src, (size_t)job->bytes);
    return STK_OK;
}

static stk_status host_copy(stk_device *device, void *dst, bool dst_on_device, const void *src, bool src_on_device,
                            int64_t bytes, stk_stream *stream, stk_error *err)
{
    static const stki_host_work work = {.run = run_copy};
    copy_job job = {dst, src, bytes};

    (void)dst_on_device, (void)src_on_device;
    return bytes > 0 ? stki_host_submit(device, stream, &work, &job, sizeof job, NULL, err) : STK_OK;
}

typedef struct fill_job {
    void *dst;
    char pattern[16];
    int64_t pattern_bytes, count;
} fill_job;

static stk_status run_fill(void *context, stk_error *err)
{
    const fill_job *job = context;

    (void)err;
    stki_fill_bytes(job->dst, job->pattern, job->pattern_bytes, job->count);
    return STK_OK;
}

static stk_status host_fill(stk_device *device, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count,
                            stk_stream *stream, stk_error *err)
{
    static const stki_host_work work = {.run = run_fill};
    fill_job job = {.dst = dst, .pattern_bytes = pattern_bytes, .count = count};

    if (count <= 0)
        return STK_OK;
    memcpy(job.pattern, pattern, (size_t)pattern_bytes);
    return stki_host_submit(device, stream, &work, &job, sizeof job, NULL, err);
}

/* ---- kernels ----
 *
 * The GPU kernels, run by the stream's thread (kernel_twin.h). Conversions and copies move most of the data and are
 * many times faster with the library's CPU code, which produces bit-identical results, so they use that code. With
 * STOKER_HOST_KERNELS=twin, which is for tests, they also use the GPU kernels. */
static stk_status run_launch(void *context, stk_error *err)
{
    (void)err;
    stki_kernel_twin_run(context);
    return STK_OK;
}

static stk_status submit_launch(stk_device *device, const stki_launch *launch, stk_stream *stream, stk_error *err)
{
    static const stki_host_work work = {.run = run_launch};

    return stki_host_submit(device, stream, &work, launch, sizeof *launch, NULL, err);
}

STKI_KERNEL_ENTRIES(submit_launch)

static _Atomic bool all_twins; /* set before the first device is found */

/* Sleeps instead of spinning, so that the threads that feed the device can use the CPU. */
static stk_status run_spin(void *context, stk_error *err)
{
    (void)err;
    stki_sleep_ns(*(const int64_t *)context);
    return STK_OK;
}

static stk_status host_spin(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err)
{
    static const stki_host_work work = {.run = run_spin};

    return stki_host_submit(device, stream, &work, &ns, sizeof ns, NULL, err);
}

typedef struct convert_job {
    const struct stki_convert *convert;
    char *dst;
    const char *src;
    int64_t dst_stride, src_stride, count;
} convert_job;

static stk_status run_convert(void *context, stk_error *err)
{
    const convert_job *job = context;

    (void)err;
    for (int64_t i = 0; i < job->count; i++)
        stki_convert_run(job->convert, job->dst + i * job->dst_stride, job->src + i * job->src_stride);
    if (stki_convert_streams(job->convert))
        stki_store_fence();
    return STK_OK;
}

static stk_status host_convert(stk_device *device, const struct stki_convert *convert, void *dst, int64_t dst_stride,
                               const void *src, int64_t src_stride, int64_t count, stk_stream *stream, stk_error *err)
{
    if (atomic_load(&all_twins))
        return kernel_convert(device, convert, dst, dst_stride, src, src_stride, count, stream, err);

    static const stki_host_work work = {.run = run_convert};
    convert_job job = {convert, dst, src, dst_stride, src_stride, count};

    return count > 0 ? stki_host_submit(device, stream, &work, &job, sizeof job, NULL, err) : STK_OK;
}

/* Only the used part of `axes` is queued. */
typedef struct strided_job {
    void *dst;
    const void *src;
    stk_dtype dst_dtype, src_dtype;
    bool src_swapped;
    int ndim;
    int64_t axes[3 * STK_MAX_DIMS]; /* shape, strides of dst, strides of src */
} strided_job;

static stk_status run_strided(void *context, stk_error *err)
{
    const strided_job *job = context;
    const int64_t *shape = job->axes, *dst_strides = shape + job->ndim, *src_strides = dst_strides + job->ndim;

    (void)err;
    stki_copy_strided(job->dst, job->dst_dtype, dst_strides, job->src, job->src_dtype, src_strides, job->src_swapped,
                      job->ndim, shape);
    return STK_OK;
}

static stk_status host_copy_strided(stk_device *device, const stk_tensor *dst, const stk_tensor *src,
                                    stk_stream *stream, stk_error *err)
{
    if (atomic_load(&all_twins))
        return kernel_copy_strided(device, dst, src, stream, err);

    static const stki_host_work work = {.run = run_strided};
    strided_job job = {.dst = dst->data,
                       .src = src->data,
                       .dst_dtype = dst->dtype,
                       .src_dtype = src->dtype,
                       .src_swapped = (src->flags & STK_TENSOR_SWAPPED) != 0,
                       .ndim = dst->ndim};
    size_t axis = sizeof job.axes[0] * (size_t)dst->ndim;

    memcpy(job.axes, dst->shape, axis);
    memcpy(job.axes + dst->ndim, dst->strides, axis);
    memcpy(job.axes + 2 * dst->ndim, src->strides, axis);
    return stki_host_submit(device, stream, &work, &job, (int64_t)(offsetof(strided_job, axes) + 3 * axis), NULL, err);
}

/* ---- the table ---- */

static stk_status host_properties(stk_device *device, stk_device_properties *out, stk_error *err)
{
    stk_status status = stki_sync_properties(device, out, err);

    out->pins = true;
    return status;
}

static const stki_device_ops host_ops = {
    .alloc = host_alloc,
    .free = host_free,
    .alloc_pinned = host_alloc_pinned,
    .free_pinned = host_free_pinned,
    .copy = host_copy,
    .fill = host_fill,
    .stream_create = stki_host_stream_create,
    .stream_destroy = stki_host_stream_destroy,
    .stream_query = stki_host_stream_query,
    .stream_wait = stki_host_stream_wait,
    .event_create = stki_host_event_create,
    .event_destroy = stki_host_event_destroy,
    .event_record = stki_host_event_record,
    .event_query = stki_host_event_query,
    .event_wait = stki_host_event_wait,
    .event_elapsed = stki_host_event_elapsed,
    .spin = host_spin,
    .synchronize = stki_host_synchronize,
    .properties = host_properties,
    .convert = host_convert,
    .copy_strided = host_copy_strided,
    .elementwise = kernel_elementwise,
    .sum = kernel_sum,
    .quantize = kernel_quantize,
};

/* ---- by name ---- */

static stk_device devices[STKI_HOST_DEVICES]; /* guarded by lock until registered */
static char names[STKI_HOST_DEVICES][8];
static stki_mutex lock = {PTHREAD_MUTEX_INITIALIZER};

static stk_status make(int index, stk_error *err)
{
    const char *kernels = getenv("STOKER_HOST_KERNELS");
    stk_device *device = &devices[index];
    stk_status status = STK_OK;

    stki_lock(&lock);
    if (!device->ops) {
        atomic_store(&all_twins, kernels && !strcmp(kernels, "twin"));
        if (index)
            snprintf(names[index], sizeof names[index], "host:%d", index);
        else
            snprintf(names[index], sizeof names[index], "host");
        *device = (stk_device){.ops = &host_ops, .kind = STK_DEVICE_HOST, .index = index, .name = names[index]};
        stki_host_streams_init(); /* before the pools are created, because a fork locks in reverse order: the pools
                                     first, then the list of streams */
        status = stki_caching_pools_attach(device, err);
        status = status != STK_OK ? status : stki_device_register(device, err);
        if (status != STK_OK) {
            stki_caching_pools_detach(device);
            device->ops = NULL;
        }
    }
    stki_unlock(&lock);
    return status;
}

/* Parses "host" or "host:N" with one digit. */
static stk_status host_find(const char *name, stk_device **out, stk_error *err)
{
    const char *number = name + strlen("host");
    int index = *number == ':' ? number[1] - '0' : 0;
    stk_status status;

    if ((*number == ':' && (!number[1] || number[2])) || index < 0 || index >= STKI_HOST_DEVICES)
        return stki_fail(err, STK_E_DEVICE, "no device '%s' here: the host devices are host:0 (or host) to host:%d",
                         name, STKI_HOST_DEVICES - 1);
    status = make(index, err);
    if (status == STK_OK)
        *out = &devices[index];
    return status;
}

static int host_count(stk_error *err)
{
    (void)err;
    return STKI_HOST_DEVICES;
}

const stki_device_provider stki_host_provider = {.prefix = "host", .find = host_find, .count = host_count};
