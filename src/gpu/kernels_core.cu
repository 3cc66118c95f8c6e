/* kernels_core.cu: the kernels for any dtypes and strides, and tensor operations (kernel_map.h, kernel_binary.h,
 * kernel_sum.h); and the function that launches any kernel. */
#include "kernel_cuda.cuh"

/* ---- maps ---- */

template <int KIND> KERNEL map_linear(ARGS(stki_map_args))
{
    stki_map_linear(&args, KIND, here());
}

template <int KIND> KERNEL map_tiled(ARGS(stki_map_args))
{
    __shared__ __align__(16) uint8_t tile[STKI_MAP_TILE_BYTES];

    stki_map_tile_read(&args, KIND, here(), tile);
    __syncthreads();
    stki_map_tile_write(&args, KIND, here(), tile);
}

/* ---- tensor operations ---- */

KERNEL binary_linear(ARGS(stki_binary_args))
{
    stki_binary_linear(&args, here());
}

template <int DTYPE> KERNEL binary_runs(ARGS(stki_binary_args))
{
    stki_binary_runs(&args, DTYPE, here());
}

KERNEL sum_rows(ARGS(stki_sum_args))
{
    __shared__ stki_partial partials[STKI_BLOCK_THREADS];

    stki_sum_rows(&args, here(), partials);
    for (uint32_t half = STKI_BLOCK_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        stki_sum_halve(&args, here(), partials, half);
    }
}

KERNEL sum_cells(ARGS(stki_sum_args))
{
    stki_sum_cells(&args, here());
}

KERNEL sum_finish(ARGS(stki_sum_args))
{
    stki_sum_finish(&args, here());
}

/* ---- launches ---- */

static cudaError_t launch_map(const stki_launch *launch, cudaStream_t stream)
{
    const bool tiled = launch->kernel == STKI_KERNEL_MAP_TILED;

#define CASE(kind)                        \
    case kind:                            \
        if (tiled)                        \
            LAUNCH(map_tiled<kind>, map); \
        else                              \
            LAUNCH(map_linear<kind>, map);
    switch (launch->map_kind) {
        CASE(STKI_MAP_RAW)
        CASE(STKI_MAP_CAST)
        CASE(STKI_MAP_AFFINE)
        CASE(STKI_MAP_QUANTIZE)
        CASE(STKI_MAP_DEQUANTIZE)
    }
#undef CASE
    return no_kernel;
}

static cudaError_t launch_binary_runs(const stki_launch *launch, cudaStream_t stream)
{
    switch (launch->dst_dtype) {
    case STK_F32:
        LAUNCH(binary_runs<STK_F32>, binary);
    case STK_F16:
        LAUNCH(binary_runs<STK_F16>, binary);
    case STK_BF16:
        LAUNCH(binary_runs<STK_BF16>, binary);
    }
    return no_kernel;
}

static cudaError_t launch_kernel(const stki_launch *launch, cudaStream_t stream)
{
    switch (launch->kernel) {
    case STKI_KERNEL_MAP_LINEAR:
    case STKI_KERNEL_MAP_TILED:
        return launch_map(launch, stream);
    case STKI_KERNEL_RUNS:
    case STKI_KERNEL_PIXELS:
        return stki_cuda_launch_convert(stream, launch);
    case STKI_KERNEL_BINARY_RUNS:
        return launch_binary_runs(launch, stream);
    case STKI_KERNEL_BINARY_LINEAR:
        LAUNCH(binary_linear, binary);
    case STKI_KERNEL_SUM_ROWS:
        LAUNCH(sum_rows, sum);
    case STKI_KERNEL_SUM_CELLS:
        LAUNCH(sum_cells, sum);
    case STKI_KERNEL_SUM_FINISH:
        LAUNCH(sum_finish, sum);
    case STKI_KERNELS:
        break;
    }
    return no_kernel;
}

/* Loads all instances by trying every combination of parameters; launch_kernel returns no_kernel for combinations that
 * do not exist.
 */
static cudaError_t load_launches(void)
{
    static const int dtypes[] = {STK_U8, STK_I8, STK_I32, STK_F16, STK_BF16, STK_F32};
    static const int count = sizeof dtypes / sizeof *dtypes;
    enum { SOURCES = 6, VARIANTS = 8 };

    for (int kernel = 0; kernel < STKI_KERNELS; kernel++)
        for (int i = 0; i < count * SOURCES * VARIANTS; i++) {
            const int variant = i % VARIANTS, src = i / VARIANTS % SOURCES, dst = i / VARIANTS / SOURCES;
            stki_launch launch = {};
            cudaError_t error;

            launch.kernel = (enum stki_kernel)kernel;
            launch.map_kind = variant;
            launch.dst_dtype = dtypes[dst];
            launch.src_dtype = dtypes[src];
            launch.pattern = variant & 1;
            launch.raw = variant >> 2;
            launch.step = variant & 2 ? 4 : 3;
            launch.mirrored = variant & 1;
            error = launch_kernel(&launch, NULL);
            if (error && error != no_kernel)
                return error;
        }
    return cudaSuccess;
}

int stki_cuda_load(int ordinal)
{
    cudaError_t error = load_launches();

    (void)ordinal;
    if (!error)
        error = (cudaError_t)stki_cuda_load_fills();
    return error ? (int)error : stki_cuda_load_times();
}

int stki_cuda_launch(int ordinal, void *stream, const stki_launch *launch)
{
    (void)ordinal;
    if (launch->blocks == 0)
        return (int)cudaSuccess;
    return (int)launch_kernel(launch, (cudaStream_t)stream);
}
