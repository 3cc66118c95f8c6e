/* sim_cuda.h: a simulated CUDA: two GPUs with streams, events, contexts and memory, under the real cuda_device.c and
 * cuda_provider.c (sim_cuda.c replaces the tables of cuda_calls.h and cuda_launches.h at link time). Kernels are their
 * twins. Unlike fake_cuda.h, which logs single calls, it runs whole loaders, from any number of threads.
 *
 * It is as strict as CUDA and says so at once: a call without a context, a stream or event that was destroyed, one of
 * another GPU, memory that is not allocated, a kernel that was not loaded, or a call that breaks a capture ends the
 * program with a message.
 */
#ifndef STKT_SIM_CUDA_H
#define STKT_SIM_CUDA_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { SIM_GPUS = 2 };

/* How far the GPUs are behind the program. */
enum sim_pace {
    SIM_THREADS, /* each stream is a thread, with a random pause before some operations */
    SIM_LATE,    /* nothing runs until the program has asked for it several times, or waits */
};

/* Only while no stream holds work. */
void sim_set_pace(enum sim_pace pace);

/* Of each GPU's memory, and of all pinned memory; what is allocated already counts. 0: the usual 4 GiB. */
void sim_set_limits(int64_t device_bytes, int64_t pinned_bytes);

/* From now on each call on this GPU fails with `error`, and what its streams hold is dropped: after a kernel with an
 * illegal access, or when the card has fallen off the bus. */
void sim_kill(int gpu, cudaError_t error);
/* The next kernel on this GPU is the one with the illegal access. */
void sim_fail_next_kernel(int gpu);
/* The GPU works again. CUDA cannot do this; it lets one program test several failures. */
void sim_revive(int gpu);

/* The stream does nothing until *flag is no longer 0, at most that long. */
void sim_hold(int gpu, void *native_stream, const int *flag, int64_t at_most_ns);

/* Captures what comes into the stream, in the global mode. End returns whether nothing broke the capture. */
void sim_begin_capture(void *native_stream);
bool sim_end_capture(void *native_stream, int64_t *captured);

/* How many GPUs are visible; SIM_GPUS at first. */
void sim_set_visible(int gpus);

/* What the program holds now. */
typedef struct sim_counts {
    int64_t device_bytes, device_blocks, pinned_bytes, pinned_blocks;
    int streams, events; /* those of the program; not the legacy and per-thread streams */
    int contexts[SIM_GPUS];
    int64_t copies, kernels;    /* run so far */
    int64_t synchronized_calls; /* DeviceSynchronize */
    int64_t waiting_frees;      /* of device memory, by the call that waits for the whole GPU */
    int pinned_policy;          /* the thread's memory policy at the last HostAlloc, and its first nodes */
    unsigned long pinned_nodes;
} sim_counts;

sim_counts sim_count(void);

/* A stream of the runtime that the library has not made, such as PyTorch's. */
void *sim_native_stream(int gpu, bool blocking);
void sim_destroy_native_stream(void *native);

#endif
