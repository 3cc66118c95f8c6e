/* kernels_time.cu: a kernel that takes a given time, to simulate a training step. It has one thread, so that it
 * occupies a stream but hardly any other resources. */
#include "cuda_launches.h"
#include <cuda_runtime.h>

static __device__ unsigned long long now_ns()
{
    unsigned long long now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __global__ void spin(unsigned long long ns)
{
    unsigned long long start = now_ns();

    while (now_ns() - start < ns)
        __nanosleep(200);
}

int stki_cuda_spin(int ordinal, void *stream, int64_t ns)
{
    (void)ordinal;
    spin<<<1, 1, 0, (cudaStream_t)stream>>>((unsigned long long)ns);
    return (int)cudaGetLastError();
}

int stki_cuda_load_times(void)
{
    cudaFuncAttributes attributes;

    return (int)cudaFuncGetAttributes(&attributes, (const void *)spin);
}
