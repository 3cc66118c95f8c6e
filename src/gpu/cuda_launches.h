/* cuda_launches.h: C functions that launch the kernels in the .cu files. All of them queue work in `stream`, a
 * cudaStream_t of the current context, and return a cudaError_t as int; operands are in the memory of its device. They
 * are called through a table, so that a test without a GPU can replace them. */
#ifndef STKI_CUDA_LAUNCHES_H
#define STKI_CUDA_LAUNCHES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes `count` copies of a pattern of 1 to 16 bytes, which is read during the call. */
int stki_cuda_fill(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);
/* Keeps the stream and one multiprocessor of the GPU busy for `ns` nanoseconds of the GPU's clock, to simulate a
 * training step. */
int stki_cuda_spin(int ordinal, void *stream, int64_t ns);

/* Loads all kernels into the current context. Loading a kernel at its first launch makes CUDA wait for the whole GPU
 * with the context locked, so that a stalled stream or a long training step would block every thread. */
int stki_cuda_load(int ordinal);
int stki_cuda_load_fills(void); /* the parts of stki_cuda_load in kernels_fill.cu and kernels_time.cu */
int stki_cuda_load_times(void);

struct stki_launch;
/* Runs one planned launch (kernel_launch.h) of the kernels in kernel_*.h. The launch is read during the call. */
int stki_cuda_launch(int ordinal, void *stream, const struct stki_launch *launch);

typedef struct stki_cuda_launches {
    int (*load)(int ordinal);
    int (*fill)(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);
    int (*spin)(int ordinal, void *stream, int64_t ns);
    int (*launch)(int ordinal, void *stream, const struct stki_launch *launch);
} stki_cuda_launches;

/* The real functions (cuda_launches.c); tests replace the table together with stki_cuda. */
extern const stki_cuda_launches *stki_cuda_launcher;

#ifdef __cplusplus
}
#endif
#endif
