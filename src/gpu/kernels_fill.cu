/* kernels_fill.cu: repeats a pattern of up to 16 bytes. If its length divides 16, the aligned part is written 16 bytes
 * at a time, the head and the tail byte by byte. Patterns of other lengths, which are rare, are written byte by byte.
 */
#include "cuda_launches.h"
#include <cuda_runtime.h>
#include <string.h>

static const int THREADS = 256, MAX_BLOCKS = 4096;

struct pattern16 {
    unsigned char byte[16];
};

/* dst is aligned to 16 bytes; byte 0 of the word is stored at dst. */
static __global__ void fill_wide(uint4 *dst, uint4 word, int64_t words)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;

    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
        dst[i] = word;
}

static __global__ void fill_bytes(unsigned char *dst, const __grid_constant__ pattern16 pattern, int period,
                                  int64_t bytes)
{
    int64_t step = (int64_t)gridDim.x * blockDim.x;

    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bytes; i += step)
        dst[i] = pattern.byte[i % period];
}

static unsigned blocks_for(int64_t work)
{
    int64_t blocks = (work + THREADS - 1) / THREADS;

    return (unsigned)(blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS);
}

/* The pattern rotated by `shift` bytes and repeated to 16 bytes. */
static pattern16 rotated(const unsigned char *pattern, int64_t period, int64_t shift)
{
    pattern16 out;

    for (int64_t i = 0; i < 16; i++)
        out.byte[i] = pattern[(i + shift) % period];
    return out;
}

static cudaError_t queue_bytes(cudaStream_t stream, unsigned char *dst, const unsigned char *pattern, int64_t period,
                               int64_t shift, int64_t bytes)
{
    if (bytes <= 0)
        return cudaSuccess;
    fill_bytes<<<blocks_for(bytes), THREADS, 0, stream>>>(dst, rotated(pattern, period, shift), (int)period, bytes);
    return cudaGetLastError();
}

int stki_cuda_fill(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count)
{
    const unsigned char *from = (const unsigned char *)pattern;
    unsigned char *to = (unsigned char *)dst;
    int64_t bytes = pattern_bytes * count, head = (int64_t)(-(uintptr_t)dst & 15), words;
    cudaError_t error;
    pattern16 wide;
    uint4 word;

    (void)ordinal;
    if (16 % pattern_bytes || bytes < head + 16)
        return (int)queue_bytes((cudaStream_t)stream, to, from, pattern_bytes, 0, bytes);
    words = (bytes - head) / 16;
    wide = rotated(from, pattern_bytes, head);
    memcpy(&word, &wide, sizeof word);
    error = queue_bytes((cudaStream_t)stream, to, from, pattern_bytes, 0, head);
    if (error)
        return (int)error;
    fill_wide<<<blocks_for(words), THREADS, 0, (cudaStream_t)stream>>>((uint4 *)(to + head), word, words);
    error = cudaGetLastError();
    if (error)
        return (int)error;
    return (int)queue_bytes((cudaStream_t)stream, to + head + 16 * words, from, pattern_bytes, head + 16 * words,
                            bytes - head - 16 * words);
}

int stki_cuda_load_fills(void)
{
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)fill_wide);

    return (int)(error ? error : cudaFuncGetAttributes(&attributes, (const void *)fill_bytes));
}
