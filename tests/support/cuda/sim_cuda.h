/* sim_cuda.h: a simulated CUDA with two GPUs, streams, events, contexts and memory, used by the real cuda_device.c and
 * cuda_provider.c (sim_cuda.c replaces the tables of cuda_calls.h and cuda_launches.h at link time). Kernels are run by
 * their CPU twins. Unlike fake_cuda.h, which logs single calls, it can run whole loaders, from any number of threads.
 *
 * It is as strict as CUDA: it ends the program with a message after a call without a context, with a destroyed stream
 * or event or one of another GPU, with memory that is not allocated, with a kernel that was not loaded, or one that
 * breaks a capture. */
#ifndef STKT_SIM_CUDA_H
#define STKT_SIM_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIM_GPUS = 2 };

/* When the GPUs run queued work. */
enum sim_pace {
    SIM_THREADS, /* each stream is a thread, with a random pause before some operations */
    SIM_LATE,    /* nothing runs until the program has queried several times, or waits */
};

/* All streams must be empty. */
void sim_set_pace(enum sim_pace pace);

/* Limits the memory of each GPU and all pinned memory. Existing allocations count. 0: the default of 4 GiB. */
void sim_set_limits(int64_t device_bytes, int64_t pinned_bytes);

/* From now on every call on this GPU fails with `error`, and queued work is dropped, as after a kernel's illegal access
 * or the loss of the card. */
void sim_kill(int gpu, cudaError_t error);
/* The next kernel on this GPU makes an illegal memory access. */
void sim_fail_next_kernel(int gpu);
/* Makes the GPU work again. Real CUDA cannot do this; it lets one program test several failures. */
void sim_revive(int gpu);

/* Blocks the stream until *flag is not 0, for at most `at_most_ns`. */
void sim_hold(int gpu, void *native_stream, const int *flag, int64_t at_most_ns);

/* Captures the work that is queued in the stream, in global mode. sim_end_capture returns whether the capture stayed
 * valid. */
void sim_begin_capture(void *native_stream);
bool sim_end_capture(void *native_stream, int64_t *captured);

/* Sets the number of visible GPUs, which is SIM_GPUS at first. */
void sim_set_visible(int gpus);

/* What the program currently holds and has done so far. */
typedef struct sim_counts {
    int64_t device_bytes, device_blocks, pinned_bytes, pinned_blocks;
    int streams, events; /* created by the program; without the legacy and per-thread streams */
    int contexts[SIM_GPUS];
    int64_t copies, kernels;    /* that ran */
    int64_t synchronized_calls; /* calls to DeviceSynchronize */
    int64_t waiting_frees;      /* frees of device memory by the call that waits for the whole GPU */
    int pinned_policy;          /* the thread's memory policy in the last HostAlloc, and its first nodes */
    unsigned long pinned_nodes;
} sim_counts;

sim_counts sim_count(void);

/* A stream of the runtime that was not created by the library, as PyTorch's streams are. */
void *sim_native_stream(int gpu, bool blocking);
void sim_destroy_native_stream(void *native);

#endif
