/* cuda.h: the part of CUDA's driver API that cuda_calls.h uses, so that cuda_device.c compiles without the toolkit.
 * Values are those of CUDA 13; test_cuda_headers.c compares them with the real headers if they are installed. */
#ifndef STKT_CUDA_H
#define STKT_CUDA_H

typedef struct CUctx_st *CUcontext;
typedef int CUdevice;

typedef enum CUresult {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

#endif
