/* kernel_cuda.cuh: common declarations of the .cu files. A __global__ function runs the phases of a kernel_*.h with
 * barriers between them, instantiated for the dtypes in its template arguments. nvcc is called with --fmad=false and
 * without fast-math. */
#ifndef STKI_KERNEL_CUDA_CUH
#define STKI_KERNEL_CUDA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "cuda_launches.h"
#include "kernel_launch.h"

#define KERNEL static __global__ void __launch_bounds__(STKI_BLOCK_THREADS, 4)
#define ARGS(type) const __grid_constant__ type args
/* Ends a function that launches a kernel. A launch without blocks only loads the kernel (stki_cuda_load). */
#define LAUNCH(function, member)                                                          \
    do {                                                                                  \
        if (launch->blocks == 0)                                                          \
            return load_kernel((const void *)(function));                                 \
        function<<<launch->blocks, STKI_BLOCK_THREADS, 0, stream>>>(launch->args.member); \
        return cudaGetLastError();                                                        \
    } while (0)

/* No instance matches the launch, which means that the planner and these files disagree. */
static const cudaError_t no_kernel = cudaErrorInvalidDeviceFunction;

/* Querying a kernel's attributes loads it. */
static inline cudaError_t load_kernel(const void *function)
{
    cudaFuncAttributes attributes;

    return cudaFuncGetAttributes(&attributes, function);
}

/* The part of stki_cuda_launch in kernels_convert.cu. */
cudaError_t stki_cuda_launch_convert(cudaStream_t stream, const stki_launch *launch);

static __device__ __forceinline__ stki_spot here()
{
    stki_spot spot;

    spot.block = blockIdx.x;
    spot.thread = threadIdx.x;
    return spot;
}

#endif
