/* bench_tensor.c: copies and casts of the tensor core, in one thread, compared with the machine's copy limit in the
 * same run.
 *
 *     bench_tensor [--shared] [NAME...]     only kernels whose name contains one of these strings
 *
 * Prints the time to create, view and release a small tensor, in ns, and a line per kernel: GB/s (read plus written),
 * the ratio to the limit, and the rate if only the result were written, which limits kernels that write more than they
 * read. The limit is a plain copy, with non-temporal stores, that reads and writes the same number of bytes in total.
 * Limits and kernel alternate; figures are medians of REPEATS repeats (with --shared: the best). Memory is in huge
 * pages and has been touched before. STOKER_ISA selects the instruction set.
 */
#include "allocate.h"
#include "clock.h"
#include "convert.h"
#include "fast.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

enum { REPEATS = 15, BIG = 160 << 20 };

static char *from, *to;
static bool shared;

static int64_t now_ns(void)
{
    struct timespec t;

    if (!shared)
        return stki_now_ns();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * STKI_SECOND + t.tv_nsec;
}

static void *touched(int64_t bytes)
{
    void *block = stki_block_alloc(&stki_huge_pages, bytes, 1 << 21);

    if (!block)
        exit(1);
    memset(block, 1, (size_t)bytes);
    return block;
}

static int compare(const void *a, const void *b)
{
    double left, right;

    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left < right ? -1 : left > right;
}

static double typical(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[shared ? 0 : count / 2];
}

/* A kernel: one strided copy. */
struct kernel {
    const char *name;
    stk_dtype dst, src;
    int ndim;
    int64_t shape[4];
    int64_t dst_strides[4], src_strides[4]; /* elements */
};

#define IMAGES 256
#define PLANE (224 * 224)
static const struct kernel kernels[] = {
    {"copy", STK_F32, STK_F32, 1, {38535168}, {1}, {1}},
    {"u8_to_f32", STK_F32, STK_U8, 1, {38535168}, {1}, {1}},
    {"f32_to_f16", STK_F16, STK_F32, 1, {38535168}, {1}, {1}},
    {"f32_to_bf16", STK_BF16, STK_F32, 1, {38535168}, {1}, {1}},
    {"f16_to_f32", STK_F32, STK_F16, 1, {38535168}, {1}, {1}},
    {"u16_to_i64", STK_I64, STK_U16, 1, {16777216}, {1}, {1}},
    {"i64_to_i32", STK_I32, STK_I64, 1, {16777216}, {1}, {1}},
    {"f32_to_u8", STK_U8, STK_F32, 1, {38535168}, {1}, {1}},
    {"f64_to_f32", STK_F32, STK_F64, 1, {16777216}, {1}, {1}},
    {"f32_nchw_to_nhwc", STK_F32, STK_F32, 3, {IMAGES, PLANE, 3}, {3 * PLANE, 3, 1}, {3 * PLANE, 1, PLANE}},
    {"f32_nhwc_to_nchw", STK_F32, STK_F32, 3, {IMAGES, 3, PLANE}, {3 * PLANE, PLANE, 1}, {3 * PLANE, 1, 3}},
    {"u8_nchw_to_nhwc", STK_U8, STK_U8, 3, {4 * IMAGES, PLANE, 3}, {3 * PLANE, 3, 1}, {3 * PLANE, 1, PLANE}},
    {"u8_nhwc_to_nchw", STK_U8, STK_U8, 3, {4 * IMAGES, 3, PLANE}, {3 * PLANE, PLANE, 1}, {3 * PLANE, 1, 3}},
    {"f32_nchw64_to_nhwc", STK_F32, STK_F32, 3, {12, PLANE, 64}, {64 * PLANE, 64, 1}, {64 * PLANE, 1, PLANE}},
    {"f32_nhwc64_to_nchw", STK_F32, STK_F32, 3, {12, 64, PLANE}, {64 * PLANE, PLANE, 1}, {64 * PLANE, 1, 64}},
    {"u8_nhwc_to_f32_nchw", STK_F32, STK_U8, 3, {IMAGES, 3, PLANE}, {3 * PLANE, PLANE, 1}, {3 * PLANE, 1, 3}},
    {"transpose_4096_f32", STK_F32, STK_F32, 2, {4096, 4096}, {4096, 1}, {1, 4096}},
    {"transpose_4096_u8", STK_U8, STK_U8, 2, {8192, 8192}, {8192, 1}, {1, 8192}},
    {"transpose_5000_f32", STK_F32, STK_F32, 2, {5000, 5000}, {5000, 1}, {1, 5000}},
    {"transpose_5008_f32", STK_F32, STK_F32, 2, {5008, 5008}, {5008, 1}, {1, 5008}},
    {"transpose_4096_f64", STK_F64, STK_F64, 2, {4096, 4096}, {4096, 1}, {1, 4096}},
    {"slice_2_2_f32", STK_F32, STK_F32, 2, {2048, 2048}, {2048, 1}, {8192, 2}},
    {"slice_columns_f32", STK_F32, STK_F32, 2, {4096, 2048}, {4096, 1}, {4096, 1}},
    {"flip_rows_f32", STK_F32, STK_F32, 2, {4096, 4096}, {4096, 1}, {4096, -1}},
};

static int64_t run_limit(int64_t bytes)
{
    const stki_fast *fast = stki_fast_of(stki_isa());
    int64_t start = now_ns();

    if (fast)
        fast->stream(to, from, bytes);
    else
        memcpy(to, from, (size_t)bytes);
    stki_store_fence();
    return now_ns() - start;
}

/* Only writes, from a block in the L1 cache: the limit of kernels that write far more than they read. */
static int64_t run_writes(int64_t bytes)
{
    enum { BLOCK = 16384 };
    const stki_fast *fast = stki_fast_of(stki_isa());
    int64_t start = now_ns();

    for (int64_t done = 0; done < bytes; done += BLOCK) {
        if (fast)
            fast->stream(to + done, from, BLOCK);
        else
            memcpy(to + done, from, BLOCK);
    }
    stki_store_fence();
    return now_ns() - start;
}

static int64_t run_kernel(const struct kernel *kernel, enum stki_stores stores)
{
    int64_t dst_strides[4], src_strides[4], below = 0, start;

    for (int i = 0; i < kernel->ndim; i++) {
        dst_strides[i] = kernel->dst_strides[i] * stk_dtype_size(kernel->dst);
        src_strides[i] = kernel->src_strides[i] * stk_dtype_size(kernel->src);
        if (src_strides[i] < 0)
            below -= src_strides[i] * (kernel->shape[i] - 1);
    }
    start = now_ns();
    stki_copy_strided_as(stki_isa(), stores, to, kernel->dst, dst_strides, from + below, kernel->src, src_strides,
                         false, kernel->ndim, kernel->shape);
    return now_ns() - start;
}

static void measure(const struct kernel *kernel, enum stki_stores stores, const char *how)
{
    double limits[REPEATS], times[REPEATS], writes[REPEATS], rate, limit, bound;
    int64_t count = 1, bytes, written;

    for (int i = 0; i < kernel->ndim; i++)
        count *= kernel->shape[i];
    bytes = count * (stk_dtype_size(kernel->dst) + stk_dtype_size(kernel->src));
    written = count * stk_dtype_size(kernel->dst);
    run_kernel(kernel, stores);
    for (int i = 0; i < REPEATS; i++) {
        limits[i] = (double)run_limit(bytes / 2);
        times[i] = (double)run_kernel(kernel, stores);
        writes[i] = (double)run_writes(written);
    }
    limit = (double)(bytes / 2 * 2) / typical(limits, REPEATS);
    rate = (double)bytes / typical(times, REPEATS);
    bound = (double)bytes / typical(writes, REPEATS);
    printf("tensor %-22s %-7s %7.2f GB/s   limit %6.2f   share %.3f   by writes %6.2f\n", kernel->name, how, rate,
           limit, rate / limit, bound);
    fflush(stdout);
}

/* Measures creating a tensor of 2 x 3 elements, viewing it transposed, and releasing both. */
static void measure_small(void)
{
    enum { ROUNDS = 100000 };
    double times[REPEATS];

    for (int i = 0; i < REPEATS; i++) {
        int64_t start = now_ns();
        for (int k = 0; k < ROUNDS; k++) {
            stk_tensor tensor, view;
            if (stk_tensor_empty(STK_F32, STK_SHAPE(2, 3), NULL, &tensor, NULL) ||
                stk_tensor_transpose(&tensor, 0, 1, &view, NULL))
                exit(1);
            stk_tensor_release(&view);
            stk_tensor_release(&tensor);
        }
        times[i] = (double)(now_ns() - start) / ROUNDS;
    }
    printf("tensor %-22s %7.1f ns\n", "small_2x3", typical(times, REPEATS));
}

static bool wanted(const char *name, int count, char **texts)
{
    for (int i = 0; i < count; i++)
        if (strstr(name, texts[i]))
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    shared = argc > 1 && !strcmp(argv[1], "--shared");
    argc -= shared;
    argv += shared;
    from = touched(BIG);
    to = touched(BIG);
    printf("# isa %s, last-level cache %" PRId64 " MiB, %d turns, stoker %s\n", stki_isa_name(stki_isa()),
           stki_cache_bytes() >> 20, REPEATS, stk_version());
    if (wanted("small_2x3", argc - 1, argv + 1))
        measure_small();
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (!wanted(kernels[i].name, argc - 1, argv + 1))
            continue;
        measure(&kernels[i], STKI_STORES_AUTO, "auto");
        if (getenv("STORES"))
            measure(&kernels[i], STKI_STORES_CACHED, "cached");
    }
    return 0;
}
