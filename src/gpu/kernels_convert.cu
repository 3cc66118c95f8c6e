/* kernels_convert.cu: the kernels for common conversions, one instance per pair of dtypes: runs and pixels
 * (kernel_runs.h, kernel_pixels.h). */
#include "kernel_cuda.cuh"

template <int DST, int SRC, int PATTERN> KERNEL runs(ARGS(stki_runs_args))
{
    stki_runs(&args, DST, SRC, PATTERN, here());
}

template <int DST, int RAW, int STEP, int MIRRORED> KERNEL pixels(ARGS(stki_pixels_args))
{
    __shared__ __align__(16) uint8_t tile[STKI_PIXELS_BYTES];

    stki_pixels_read(&args, stki_kernel_size(DST), MIRRORED, here(), tile);
    __syncthreads();
    stki_pixels_write(&args, DST, RAW, STEP, MIRRORED, here(), tile);
}

/* ---- launches ---- */

template <int DST, int SRC> static cudaError_t launch_runs_of(const stki_launch *launch, cudaStream_t stream)
{
    if (!launch->pattern)
        LAUNCH((runs<DST, SRC, 0>), runs);
    else if (SRC == STK_U8 || SRC == STK_F32)
        LAUNCH((runs < DST, SRC == STK_U8 ? STK_U8 : STK_F32, 1 >), runs);
    else
        return no_kernel;
}

template <int DST> static cudaError_t launch_runs_to(const stki_launch *launch, cudaStream_t stream)
{
    switch (launch->src_dtype) {
    case STK_U8:
        return launch_runs_of<DST, STK_U8>(launch, stream);
    case STK_F16:
        return launch_runs_of<DST, STK_F16>(launch, stream);
    case STK_BF16:
        return launch_runs_of<DST, STK_BF16>(launch, stream);
    case STK_F32:
        return launch_runs_of<DST, STK_F32>(launch, stream);
    }
    return no_kernel;
}

static cudaError_t launch_runs(const stki_launch *launch, cudaStream_t stream)
{
    switch (launch->dst_dtype) {
    case STK_U8:
        return launch_runs_to<STK_U8>(launch, stream);
    case STK_I8:
        return launch_runs_to<STK_I8>(launch, stream);
    case STK_F16:
        return launch_runs_to<STK_F16>(launch, stream);
    case STK_BF16:
        return launch_runs_to<STK_BF16>(launch, stream);
    case STK_F32:
        return launch_runs_to<STK_F32>(launch, stream);
    }
    return no_kernel;
}

template <int DST, int RAW> static cudaError_t launch_pixels_to(const stki_launch *launch, cudaStream_t stream)
{
    if (launch->step == 3 && !launch->mirrored)
        LAUNCH((pixels<DST, RAW, 3, 0>), pixels);
    else if (launch->step == 3)
        LAUNCH((pixels<DST, RAW, 3, 1>), pixels);
    else if (!launch->mirrored)
        LAUNCH((pixels<DST, RAW, 4, 0>), pixels);
    else
        LAUNCH((pixels<DST, RAW, 4, 1>), pixels);
}

static cudaError_t launch_pixels(const stki_launch *launch, cudaStream_t stream)
{
    if (launch->raw)
        return launch_pixels_to<STK_U8, 1>(launch, stream);
    switch (launch->dst_dtype) {
    case STK_U8:
        return launch_pixels_to<STK_U8, 0>(launch, stream);
    case STK_I8:
        return launch_pixels_to<STK_I8, 0>(launch, stream);
    case STK_I32:
        return launch_pixels_to<STK_I32, 0>(launch, stream);
    case STK_F16:
        return launch_pixels_to<STK_F16, 0>(launch, stream);
    case STK_BF16:
        return launch_pixels_to<STK_BF16, 0>(launch, stream);
    case STK_F32:
        return launch_pixels_to<STK_F32, 0>(launch, stream);
    }
    return no_kernel;
}

cudaError_t stki_cuda_launch_convert(cudaStream_t stream, const stki_launch *launch)
{
    return launch->kernel == STKI_KERNEL_RUNS ? launch_runs(launch, stream) : launch_pixels(launch, stream);
}
