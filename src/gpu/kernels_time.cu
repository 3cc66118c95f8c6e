/* kernels_time.cu: kernels that do nothing for a while: a training step without a model, and a stream that a test
 * holds. One thread each, so that they keep a stream busy and hardly anything else. */
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

static __global__ void hold(const volatile int *flag, unsigned long long at_most_ns)
{
    unsigned long long start = now_ns();

    while (*flag == 0 && now_ns() - start < at_most_ns)
        __nanosleep(1000);
}

int stki_cuda_spin(int ordinal, void *stream, int64_t ns)
{
    (void)ordinal;
    spin<<<1, 1, 0, (cudaStream_t)stream>>>((unsigned long long)ns);
    return (int)cudaGetLastError();
}

int stki_cuda_hold(int ordinal, void *stream, const int *flag, int64_t at_most_ns)
{
    (void)ordinal;
    hold<<<1, 1, 0, (cudaStream_t)stream>>>(flag, (unsigned long long)at_most_ns);
    return (int)cudaGetLastError();
}

int stki_cuda_load_times(void)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)spin);

    return (int)(error ? error : cudaFuncGetAttributes(&attributes, (const void *)hold));
}
