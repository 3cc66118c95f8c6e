/* cuda_launches.h: what launches the kernels of the .cu files, in C. All queue work in `stream`, a cudaStream_t of the
 * current context, and return a cudaError_t as int; operands are in the memory of that device. They go through a table,
 * so that a test without a GPU can stand in for them.
 */
#ifndef STKI_CUDA_LAUNCHES_H
#define STKI_CUDA_LAUNCHES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `count` copies of a pattern of 1 to 16 bytes, read at the call. */
int stki_cuda_fill(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);
/* Keeps one processor of the GPU, and the stream, busy for that long by the GPU's clock: a training step without one.
 */
int stki_cuda_spin(int ordinal, void *stream, int64_t ns);

/* Loads all kernels into the current context. A kernel that is loaded at its first launch makes CUDA wait for the whole
 * GPU, with the context locked: a stream that is held, or a long training step, then blocks every thread. */
int stki_cuda_load(int ordinal);
int stki_cuda_load_fills(void); /* its parts in kernels_fill.cu and kernels_time.cu */
int stki_cuda_load_times(void);

struct stki_launch;
/* One planned launch of the kernels around kernel_*.h (kernel_launch.h), read at the call. */
int stki_cuda_launch(int ordinal, void *stream, const struct stki_launch *launch);

typedef struct stki_cuda_launches {
    int (*load)(int ordinal);
    int (*fill)(int ordinal, void *stream, void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);
    int (*spin)(int ordinal, void *stream, int64_t ns);
    int (*launch)(int ordinal, void *stream, const struct stki_launch *launch);
} stki_cuda_launches;

/* The real ones (cuda_launches.c); tests put theirs here together with stki_cuda. */
extern const stki_cuda_launches *stki_cuda_launcher;

#ifdef __cplusplus
}
#endif
#endif
