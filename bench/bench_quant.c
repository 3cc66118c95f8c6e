/* bench_quant.c: quantizing f32 to int8 and back, per tensor and per channel, compared with a non-temporal copy in the
 * same run. Arrays of 150 MB, one thread. Prints GB/s (read plus written), the ratio to the copy, and the best round.
 * Its distance from the median shows the effect of other programs.
 *     bench_quant [ROUNDS]
 */
#include "clock.h"
#include "quant_internal.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { CHANNELS = 64, MAX_ROUNDS = 1001, WAYS = 20 };
static const int64_t per_channel = INT64_C(602112); /* 64 * 602112 * 4 bytes = 154 MB */

struct way {
    char name[64];
    void (*pass)(const struct way *way);
    const stk_quant *quant;
    stk_tensor dst, src;
    enum stki_isa isa;
    double bytes;
    double seconds[MAX_ROUNDS];
};

static void *memory(int64_t bytes)
{
    const int64_t page = INT64_C(2) << 20;
    void *block = NULL;

    bytes = (bytes + page - 1) / page * page;
    if (posix_memalign(&block, (size_t)page, (size_t)bytes))
        abort();
    madvise(block, (size_t)bytes, MADV_HUGEPAGE);
    memset(block, 1, (size_t)bytes);
    return block;
}

/* The limit: a non-temporal copy. */
static void copy(const struct way *way)
{
    char *dst = way->dst.data;
    const char *src = way->src.data;
    int64_t bytes = stk_tensor_nbytes(&way->dst), i = 0;

#if defined(__x86_64__)
    for (; i + 16 <= bytes; i += 16)
        _mm_stream_si128((__m128i *)(void *)(dst + i), _mm_loadu_si128((const __m128i *)(const void *)(src + i)));
#endif
    memcpy(dst + i, src + i, (size_t)(bytes - i));
    stki_store_fence();
}

/* The limit of i8>f32: writes the same bytes (four fifths of the total) and reads nothing. */
static void write_only(const struct way *way)
{
    char *dst = way->dst.data;
    int64_t bytes = stk_tensor_nbytes(&way->dst), i = 0;

#if defined(__x86_64__)
    for (; i + 16 <= bytes; i += 16)
        _mm_stream_si128((__m128i *)(void *)(dst + i), _mm_set1_epi32(5));
#endif
    memset(dst + i, 5, (size_t)(bytes - i));
    stki_store_fence();
}

static void quantize(const struct way *way)
{
    stki_quantize_run(way->quant, &way->dst, &way->src, way->isa);
}

static void dequantize(const struct way *way)
{
    stki_dequantize_run(way->quant, &way->dst, &way->src, way->isa);
}

static stk_tensor tensor_over(void *data, stk_dtype dtype, int64_t rows, int64_t columns)
{
    stk_tensor tensor;

    if (stk_tensor_borrow(data, dtype, 2, (const int64_t[]){rows, columns}, NULL, &tensor, NULL) != STK_OK)
        abort();
    return tensor;
}

/* Creates parameters with scales that are exact in f32, like those of calibration, or (double_scales) only in double.
 */
static stk_quant *parameters(stk_qdtype qdtype, int axis, bool double_scales)
{
    double scales[CHANNELS];
    int64_t zeros[CHANNELS];
    stk_quant *quant;

    for (int i = 0; i < CHANNELS; i++) {
        scales[i] = 0.02 + 0.001 * i;
        scales[i] = double_scales ? scales[i] : (double)(float)scales[i];
        zeros[i] = i;
    }
    if (stk_quant_create(qdtype, axis, axis < 0 ? 1 : CHANNELS, scales, zeros, &quant, NULL) != STK_OK)
        abort();
    return quant;
}

static int ascending(const void *a, const void *b)
{
    double x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

/* Returns the GB/s of the round with this rank; 0 is the fastest. */
static double rate(struct way *way, int rounds, int which)
{
    qsort(way->seconds, (size_t)rounds, sizeof way->seconds[0], ascending);
    return way->bytes / way->seconds[which] * 1e-9;
}

static int add_ways(struct way *ways, int count, enum stki_isa isa, float *floats, int8_t *integers)
{
    static const struct {
        const char *name;
        int axis;
        bool last; /* channels are along the last axis */
        bool double_scales;
    } kinds[] = {{"per tensor", -1, false, false},
                 {"channels first", 0, false, false},
                 {"channels last", 1, true, false},
                 {"channels first, double scales", 0, false, true}};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };

    for (int back = 0; back < 2; back++)
        for (int k = 0; k < KINDS; k++) {
            struct way *way = &ways[count++];
            int64_t rows = kinds[k].last ? per_channel : CHANNELS, columns = kinds[k].last ? CHANNELS : per_channel;
            snprintf(way->name, sizeof way->name, "%s %s %s", back ? "i8>f32" : "f32>i8", kinds[k].name,
                     stki_isa_name(isa));
            way->quant = parameters(STK_QINT8, kinds[k].axis, kinds[k].double_scales);
            way->dst = tensor_over(back ? (void *)floats : (void *)integers, back ? STK_F32 : STK_I8, rows, columns);
            way->src = tensor_over(back ? (void *)integers : (void *)floats, back ? STK_I8 : STK_F32, rows, columns);
            way->pass = back ? dequantize : quantize;
            way->isa = isa;
            way->bytes = 5.0 * (double)CHANNELS * (double)per_channel;
        }
    return count;
}

int main(int argc, char **argv)
{
    static const enum stki_isa isas[] = {STKI_ISA_AVX2, STKI_ISA_AVX512};
    static struct way ways[WAYS];
    int rounds = argc > 1 ? atoi(argv[1]) : 21, count = 2;
    const int64_t elements = CHANNELS * per_channel;
    float *floats = memory(4 * elements), *copied = memory(4 * elements);
    int8_t *integers = memory(elements);
    double limit[2] = {0, 0};

    if (rounds < 1 || rounds > MAX_ROUNDS)
        return 2;
    for (int64_t i = 0; i < elements; i++)
        floats[i] = (float)(i * 7919 % 4001 - 2000) * 0.002f;
    ways[0] = (struct way){.name = "copy, non-temporal", .pass = copy, .bytes = 8.0 * (double)elements};
    ways[0].dst = tensor_over(copied, STK_F32, CHANNELS, per_channel);
    ways[0].src = tensor_over(floats, STK_F32, CHANNELS, per_channel);
    ways[1] = (struct way){.name = "the writes of i8>f32 alone", .pass = write_only, .dst = ways[0].dst};
    ways[1].bytes = 5.0 * (double)elements;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (stki_isa_usable(isas[i]))
            count = add_ways(ways, count, isas[i], floats, integers);
    if (count == 2)
        count = add_ways(ways, count, STKI_ISA_REF, floats, integers);
    for (int round = -1; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            int64_t begin = stki_now_ns();
            ways[i].pass(&ways[i]);
            if (round >= 0)
                ways[i].seconds[round] = (double)(stki_now_ns() - begin) * 1e-9;
        }
    for (int i = 0; i < count; i++) {
        double median = rate(&ways[i], rounds, rounds / 2), best = rate(&ways[i], rounds, 0);
        limit[0] = i ? limit[0] : median;
        limit[1] = i ? limit[1] : best;
        printf("%-44s %8.2f GB/s  %5.2f    best %8.2f  %5.2f\n", ways[i].name, median, median / limit[0], best,
               best / limit[1]);
    }
    return 0;
}
