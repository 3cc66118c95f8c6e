/* kernel_ops.h: the kernels as functions of a device table (device_table.h), for any device that can run a launch. They
 * plan the launches, copy tables that do not fit in the arguments to device memory, and queue the launches. */
#ifndef STKI_KERNEL_OPS_H
#define STKI_KERNEL_OPS_H

#include "device_kernels.h"
#include "device_table.h"
#include "kernel_launch.h"

struct stki_convert;

/* Queues a launch in a stream; NULL: complete when it returns. The launch is read during the call and may then be
 * changed. */
typedef stk_status (*stki_launch_fn)(stk_device *device, const stki_launch *launch, stk_stream *stream, stk_error *err);

stk_status stki_kernel_convert(stki_launch_fn run, stk_device *device, const struct stki_convert *convert, void *dst,
                               int64_t dst_stride, const void *src, int64_t src_stride, int64_t count,
                               stk_stream *stream, stk_error *err);
stk_status stki_kernel_copy_strided(stki_launch_fn run, stk_device *device, const stk_tensor *dst,
                                    const stk_tensor *src, stk_stream *stream, stk_error *err);
stk_status stki_kernel_elementwise(stki_launch_fn run, stk_device *device, const stki_elementwise_job *job,
                                   stk_stream *stream, stk_error *err);
/* May temporarily allocate device memory. */
stk_status stki_kernel_sum(stki_launch_fn run, stk_device *device, const stki_sum_job *job, stk_stream *stream,
                           stk_error *err);
stk_status stki_kernel_quantize(stki_launch_fn run, stk_device *device, const stki_quantize_job *job,
                                stk_stream *stream, stk_error *err);

/* Defines these functions as table entries, for a device file that has defined
 *
 *     static stk_status launch(stk_device *device, const stki_launch *launch, stk_stream *stream, stk_error *err);
 *
 * Then `.convert = kernel_convert, .copy_strided = kernel_copy_strided, …`. */
#define STKI_KERNEL_ENTRIES(launch)                                                                                \
    static stk_status kernel_convert(stk_device *device, const struct stki_convert *convert, void *dst,            \
                                     int64_t dst_stride, const void *src, int64_t src_stride, int64_t count,       \
                                     stk_stream *stream, stk_error *err)                                           \
    {                                                                                                              \
        return stki_kernel_convert(launch, device, convert, dst, dst_stride, src, src_stride, count, stream, err); \
    }                                                                                                              \
    static stk_status kernel_copy_strided(stk_device *device, const stk_tensor *dst, const stk_tensor *src,        \
                                          stk_stream *stream, stk_error *err)                                      \
    {                                                                                                              \
        return stki_kernel_copy_strided(launch, device, dst, src, stream, err);                                    \
    }                                                                                                              \
    static stk_status kernel_elementwise(stk_device *device, const stki_elementwise_job *job, stk_stream *stream,  \
                                         stk_error *err)                                                           \
    {                                                                                                              \
        return stki_kernel_elementwise(launch, device, job, stream, err);                                          \
    }                                                                                                              \
    static stk_status kernel_sum(stk_device *device, const stki_sum_job *job, stk_stream *stream, stk_error *err)  \
    {                                                                                                              \
        return stki_kernel_sum(launch, device, job, stream, err);                                                  \
    }                                                                                                              \
    static stk_status kernel_quantize(stk_device *device, const stki_quantize_job *job, stk_stream *stream,        \
                                      stk_error *err)                                                              \
    {                                                                                                              \
        return stki_kernel_quantize(launch, device, job, stream, err);                                             \
    }
#define STKI_KERNEL_OPS                                                                                \
    .convert = kernel_convert, .copy_strided = kernel_copy_strided, .elementwise = kernel_elementwise, \
    .sum = kernel_sum, .quantize = kernel_quantize

#endif
