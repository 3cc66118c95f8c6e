/* Tests of all conversion kernels against convert_oracle.h, byte for byte, including gaps and guard bytes: all pairs of
 * dtypes, difficult sizes, strides, addresses and values, parts of samples, gather lists, rejected descriptions and
 * failing allocations. */
#include "allocate.h"
#include "convert_oracle.h"
#include "device_table.h"
#include "faults.h"
#include "tensor_internal.h"
#include "test_device.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};
static const stk_dtype sources[] = {STK_U8,  STK_I8,  STK_U16,  STK_I16, STK_I32,
                                    STK_I64, STK_F16, STK_BF16, STK_F32, STK_F64};
static const stk_dtype destinations[] = {STK_U8, STK_I8, STK_I32, STK_F16, STK_BF16, STK_F32};
static const int64_t sizes[] = {1,  2,  3,  5,  7,  8,  9,  15,  16,  17,  31,  32,
                                33, 47, 48, 63, 64, 65, 95, 127, 128, 129, 200, 257};
#define COUNT(array) ((int)(sizeof(array) / sizeof(array)[0]))
enum { ARENA = 1 << 20, MAX_CHANNELS = 700, GUARD = 0xa5 };

static struct oracle_pages in, out, expected;
static float a_pairs[MAX_CHANNELS], b_pairs[MAX_CHANNELS];

/* ---- making cases ---- */

static const uint32_t hard_f32[] = {
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0xff800001, /* 0 inf NaN */
    0x7fffffff, 0x00000001, 0x807fffff, 0x00400000, 0x00010000, 0x00008000, 0x00018000, 0x00800000, /* subnormal */
    0x7f7fffff, 0xff7fffff, 0x7f7f8000, 0x7f7f7fff, 0x3f808000, 0x3f818000, 0x3f808001, 0x3e89ccd5, /* bf16 ties */
    0x477fe000, 0x477ff000, 0x477fefff, 0x33000000, 0x33000001, 0x33c00000, 0x38801000, 0x387fe000, /* f16 edges */
    0x3f000000, 0x3fc00000, 0x40200000, 0xbf000000, 0xbfc00000, 0x42ff3333, 0xc300999a, 0x60ad78ec, /* 0.5 … 1e20 */
    0x4f000000, 0x4effffff, 0xcf000000, 0xcf000001, 0x437f8000, 0x437f7fff, 0x4b000001, 0xe0ad78ec, /* 2^31, 255.5 */
};

static void fill_source(uint64_t *state, stk_dtype dtype, uint8_t *to, int64_t bytes)
{
    bool whole = oracle_below(state, 2);

    for (int64_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)oracle_random(state);
    for (int64_t i = 0; i + 8 <= bytes; i += 8) {
        uint32_t hard = hard_f32[oracle_below(state, COUNT(hard_f32))];
        float single, small = (float)(oracle_below(state, 1200) - 600) * 0.5f;
        memcpy(&single, whole ? (void *)&small : (void *)&hard, 4);
        double wide = (double)single;
        uint16_t half = dtype == STK_F16 ? oracle_to_f16(single) : (uint16_t)(hard >> 16);
        if (dtype == STK_F32)
            memcpy(to + i, &single, 4);
        else if (dtype == STK_F64)
            memcpy(to + i, &wide, 8);
        else if (dtype == STK_F16 || dtype == STK_BF16)
            memcpy(to + i, &half, 2);
    }
}

static void fill_pairs(uint64_t *state, int64_t channels)
{
    static const float hard_a[] = {1.0f, 0.0f, -1.0f, 0x1p-130f, 0x1p120f, 0.5f, -0.0f};
    static const float hard_b[] = {0.0f, -0.0f, 0.5f, 0x1p-133f, 127.0f, -128.0f, 0x1p31f, 1e-45f};
    int kind = (int)oracle_below(state, 4);

    for (int64_t c = 0; c < channels; c++) {
        a_pairs[c] = (float)oracle_below(state, 1000) / 999.0f - 0.3f;
        b_pairs[c] = (float)oracle_below(state, 1000) / 99.0f - 5.0f;
        if (kind == 1)
            a_pairs[c] = hard_a[oracle_below(state, COUNT(hard_a))];
        if (kind == 1 || kind == 2)
            b_pairs[c] = hard_b[oracle_below(state, COUNT(hard_b))];
        if (kind == 3 && oracle_below(state, 4) == 0) {
            a_pairs[c] = oracle_below(state, 2) ? INFINITY : NAN;
            b_pairs[c] = -INFINITY;
        }
    }
}

static stki_convert_desc describe(stk_dtype src, stk_dtype dst, int ndim, const int64_t *shape)
{
    stki_convert_desc desc = {.src_dtype = src,
                              .dst_dtype = dst,
                              .ndim = ndim,
                              .affine = true,
                              .channel_axis = -1,
                              .channels = 1,
                              .a = a_pairs,
                              .b = b_pairs,
                              .stores = STKI_STORES_CACHED};
    for (int k = 0; k < ndim; k++)
        desc.shape[k] = shape[k];
    return desc;
}

/* Row-major strides for axes in the order `order` (order[0] is outermost); rows are padded by `gap` elements. */
static void lay_out(int64_t *strides, const stki_convert_desc *desc, const int *order, int64_t size, int64_t gap)
{
    int64_t stride = size;

    for (int k = desc->ndim - 1; k >= 0; k--) {
        strides[order[k]] = stride;
        stride *= desc->shape[order[k]] > 0 ? desc->shape[order[k]] : 1;
        if (k == desc->ndim - 1)
            stride += gap * size;
    }
}

static void quantize_some(uint64_t *state, stki_convert_desc *desc)
{
    int32_t low = desc->dst_dtype == STK_U8 ? 0 : -128, high = desc->dst_dtype == STK_U8 ? 255 : 127;

    if (desc->dst_dtype > STK_I32 || oracle_below(state, 2))
        return;
    desc->quantized = true;
    desc->qmin = low + (int32_t)oracle_below(state, 20);
    desc->qmax = high - (int32_t)oracle_below(state, 20);
    desc->zero_point = low + (int32_t)oracle_below(state, 256);
    if (desc->dst_dtype == STK_I32 && oracle_below(state, 2)) {
        desc->qmin = INT32_MIN;
        desc->qmax = INT32_MAX;
    }
}

/* ---- checking one case ---- */

struct place {
    uint8_t *src, *dst, *expected;
    int64_t src_below, src_above, dst_below, dst_above;
};

/* `tight`: the source begins (0) or ends (1) at a page boundary, so that a read beyond it faults. */
static struct place place(const stki_convert_desc *desc, int tight, int64_t src_shift, int64_t dst_shift)
{
    struct place at;

    oracle_extent(desc, desc->src_strides, stk_dtype_size(desc->src_dtype), &at.src_below, &at.src_above);
    oracle_extent(desc, desc->dst_strides, stk_dtype_size(desc->dst_dtype), &at.dst_below, &at.dst_above);
    assert_true(at.src_below + at.src_above + src_shift < ARENA &&
                at.dst_below + at.dst_above + dst_shift + 256 < ARENA);
    at.src = tight == 0   ? in.low + at.src_below
             : tight == 1 ? in.high - at.src_above
                          : in.low + at.src_below + src_shift;
    at.dst = out.low + 128 + dst_shift + at.dst_below;
    at.expected = expected.low + 128 + dst_shift + at.dst_below;
    return at;
}

static void fail_case(const stki_convert_desc *desc, const char *name, const struct place *at, int64_t byte)
{
    fprintf(stderr, "%s: byte %lld of [-%lld, %lld): got %02x, expected %02x; channels %lld axis %d swapped %d\n", name,
            (long long)byte, (long long)at->dst_below, (long long)at->dst_above, at->dst[byte], at->expected[byte],
            (long long)desc->channels, desc->channel_axis, desc->src_swapped);
    for (int k = 0; k < desc->ndim; k++)
        fprintf(stderr, "  axis %d: n %lld, src %lld, dst %lld\n", k, (long long)desc->shape[k],
                (long long)desc->src_strides[k], (long long)desc->dst_strides[k]);
    fail();
}

static void compare(const stki_convert_desc *desc, const char *name, const struct place *at)
{
    oracle_walk(desc, at->dst, NULL, oracle_canon);
    for (int64_t i = -at->dst_below - 128; i < at->dst_above + 128; i++)
        if (at->dst[i] != at->expected[i])
            fail_case(desc, name, at, i);
}

static void clear(const struct place *at)
{
    memset(at->dst - at->dst_below - 128, GUARD, (size_t)(at->dst_below + at->dst_above + 256));
}

static void expect(const stki_convert_desc *desc, const struct place *at)
{
    memset(at->expected - at->dst_below - 128, GUARD, (size_t)(at->dst_below + at->dst_above + 256));
    oracle_walk(desc, at->expected, at->src, oracle_element);
    oracle_walk(desc, at->expected, NULL, oracle_canon);
}

/* Runs every variant, cached and streaming, and compares the results. The source must already be filled. */
static void check_at(stki_convert_desc desc, const struct place *at)
{
    expect(&desc, at);
    for (int i = 0; i < COUNT(isas); i++) {
        if (!stki_isa_usable(isas[i]))
            continue;
        for (int stores = STKI_STORES_CACHED; stores <= STKI_STORES_STREAMING; stores++) {
            stki_convert *convert = NULL;
            stk_error err;
            desc.stores = (enum stki_stores)stores;
            if (stki_convert_create_isa(&desc, isas[i], &convert, &err) != STK_OK)
                fail_msg("%s", err.message);
            clear(at);
            stki_convert_run(convert, at->dst, at->src);
            compare(&desc, stki_convert_name(convert), at);
            stki_convert_destroy(convert);
        }
    }
}

static void check(uint64_t *state, stki_convert_desc desc)
{
    struct place at = place(&desc, (int)oracle_below(state, 3), oracle_below(state, 65), oracle_below(state, 65));

    if (oracle_below(state, 2))
        at = place(&desc, (int)oracle_below(state, 3), oracle_below(state, 2) * 64, oracle_below(state, 2) * 64);
    fill_source(state, desc.src_dtype, at.src - at.src_below, at.src_below + at.src_above);
    fill_pairs(state, desc.channels);
    check_at(desc, &at);
}

static int setup(void **unused)
{
    (void)unused;
    in = oracle_pages_create(ARENA);
    out = oracle_pages_create(ARENA);
    expected = oracle_pages_create(ARENA);
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    oracle_pages_destroy(&in);
    oracle_pages_destroy(&out);
    oracle_pages_destroy(&expected);
    return 0;
}

/* ---- tests ---- */

static const int in_order[STK_MAX_DIMS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void test_runs_of_every_pair(void **unused)
{
    uint64_t state = 1;

    (void)unused;
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int n = 0; n < COUNT(sizes); n++) {
                stki_convert_desc desc = describe(sources[s], destinations[d], 1, &sizes[n]);
                lay_out(desc.src_strides, &desc, in_order, stk_dtype_size(sources[s]), 0);
                lay_out(desc.dst_strides, &desc, in_order, stk_dtype_size(destinations[d]), 0);
                desc.src_swapped = oracle_below(&state, 4) == 0;
                quantize_some(&state, &desc);
                check(&state, desc);
            }
}

/* Rows by channels in both orders: the channel is constant along a run, or alternates within it. */
static void test_channels_of_runs(void **unused)
{
    static const int64_t channels[] = {1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 64, 100};
    uint64_t state = 2;

    (void)unused;
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int c = 0; c < COUNT(channels); c++)
                for (int axis = 0; axis < 2; axis++) {
                    int64_t length = sizes[oracle_below(&state, COUNT(sizes))];
                    int64_t shape[2] = {axis ? length : channels[c], axis ? channels[c] : length};
                    stki_convert_desc desc = describe(sources[s], destinations[d], 2, shape);
                    desc.channel_axis = axis;
                    desc.channels = channels[c];
                    lay_out(desc.src_strides, &desc, in_order, stk_dtype_size(sources[s]), oracle_below(&state, 2));
                    lay_out(desc.dst_strides, &desc, in_order, stk_dtype_size(destinations[d]),
                            oracle_below(&state, 2));
                    quantize_some(&state, &desc);
                    check(&state, desc);
                }
}

/* Lines, columns and channels of an image, whose order may differ between source and destination. Crops leave gaps,
 * flips make strides negative, and only the first of the `stored` channels of a pixel are used. */
static stki_convert_desc image(uint64_t *state, stk_dtype src, stk_dtype dst, int64_t width)
{
    static const int hwc[3] = {0, 1, 2}, chw[3] = {2, 0, 1};
    int64_t stored = 1 + oracle_below(state, 4), used = 1 + oracle_below(state, stored);
    int64_t shape[3] = {1 + oracle_below(state, 5), width, used};
    stki_convert_desc desc = describe(src, dst, 3, shape);
    int64_t size = stk_dtype_size(src), gap = oracle_below(state, 2) * oracle_below(state, 40);
    bool planar_source = oracle_below(state, 4) == 0;

    if (planar_source) {
        lay_out(desc.src_strides, &desc, chw, size, gap);
    } else {
        desc.src_strides[2] = size;
        desc.src_strides[1] = stored * size;
        desc.src_strides[0] = (width + gap) * stored * size;
    }
    lay_out(desc.dst_strides, &desc, oracle_below(state, 4) ? chw : hwc, stk_dtype_size(dst),
            oracle_below(state, 3) / 2);
    for (int k = 0; k < 3; k++) {
        if (oracle_below(state, 3) == 0)
            desc.src_strides[k] = -desc.src_strides[k];
        if (oracle_below(state, 8) == 0)
            desc.dst_strides[k] = -desc.dst_strides[k];
    }
    if (oracle_below(state, 4)) {
        desc.channel_axis = 2;
        desc.channels = used;
    }
    if (oracle_below(state, 8) == 0)
        desc.src_swapped = true;
    return desc;
}

static void image_case(uint64_t *state, stk_dtype src, stk_dtype dst, int64_t width)
{
    stki_convert_desc desc = image(state, src, dst, width);

    quantize_some(state, &desc);
    check(state, desc);
}

static void test_images(void **unused)
{
    uint64_t state = 3;

    (void)unused;
    for (int n = 0; n < COUNT(sizes); n++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int again = 0; again < 24; again++)
                image_case(&state, STK_U8, destinations[d], sizes[n]);
    for (int s = 1; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int again = 0; again < 12; again++)
                image_case(&state, sources[s], destinations[d], sizes[oracle_below(&state, COUNT(sizes))]);
}

/* Without arithmetic, a value that keeps its dtype is copied with all its bits. */
static void check_copy(uint64_t *state, stki_convert_desc desc)
{
    struct place at;

    desc.affine = false;
    desc.src_swapped = false;
    at = place(&desc, (int)oracle_below(state, 3), 5, oracle_below(state, 65));
    for (int64_t i = -at.src_below; i < at.src_above; i++)
        at.src[i] = (uint8_t)oracle_random(state);
    check_at(desc, &at);
}

/* The same geometries without arithmetic, for which there are separate kernels. */
static void test_images_as_they_are(void **unused)
{
    uint64_t state = 12;

    (void)unused;
    for (int dtype = 1; dtype < STK_DTYPE_END; dtype++)
        for (int n = 0; n < COUNT(sizes); n++)
            for (int again = 0; again < (dtype == STK_U8 ? 48 : 6); again++)
                check_copy(&state, image(&state, (stk_dtype)dtype, (stk_dtype)dtype, sizes[n]));
}

/* A short axis of channels within a longer axis along which the source repeats. */
static void test_a_short_pattern(void **unused)
{
    uint64_t state = 13;

    (void)unused;
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++) {
            stki_convert_desc desc = describe(sources[s], destinations[d], 3, (const int64_t[3]){20, 4, 2});
            lay_out(desc.src_strides, &desc, in_order, stk_dtype_size(sources[s]), 0);
            lay_out(desc.dst_strides, &desc, in_order, stk_dtype_size(destinations[d]), 0);
            desc.src_strides[0] = 0;
            desc.channel_axis = 2;
            desc.channels = 2;
            check(&state, desc);
        }
}

static void shuffle_axes(uint64_t *state, int *order, int ndim)
{
    for (int k = 0; k < ndim; k++)
        order[k] = k;
    for (int k = ndim - 1; k > 0; k--) {
        int other = (int)oracle_below(state, k + 1), swap = order[k];
        order[k] = order[other];
        order[other] = swap;
    }
}

static void random_strides(uint64_t *state, stki_convert_desc *desc, int64_t *strides, int64_t size, bool broadcast)
{
    int order[STK_MAX_DIMS];

    shuffle_axes(state, order, desc->ndim);
    lay_out(strides, desc, order, size, oracle_below(state, 3));
    for (int k = 0; k < desc->ndim; k++) {
        int64_t kind = oracle_below(state, 8);
        if (kind == 0)
            strides[k] = -strides[k];
        else if (kind == 1 && broadcast)
            strides[k] = 0;
    }
}

static stki_convert_desc random_case(uint64_t *state, stk_dtype src, stk_dtype dst)
{
    static const int64_t lengths[] = {1, 1, 2, 3, 3, 4, 5, 8, 16, 17, 33};
    int ndim = (int)oracle_below(state, 6);
    int64_t shape[6], total = 1;

    for (int k = 0; k < ndim; k++) {
        shape[k] = lengths[oracle_below(state, COUNT(lengths))];
        if (total * shape[k] > 3000)
            shape[k] = 1;
        total *= shape[k];
    }
    stki_convert_desc desc = describe(src, dst, ndim, shape);
    random_strides(state, &desc, desc.src_strides, stk_dtype_size(src), true);
    random_strides(state, &desc, desc.dst_strides, stk_dtype_size(dst), false);
    desc.src_swapped = oracle_below(state, 4) == 0;
    if (ndim > 0 && oracle_below(state, 3)) {
        desc.channel_axis = (int)oracle_below(state, ndim);
        desc.channels = oracle_below(state, 4) ? desc.shape[desc.channel_axis] : 1;
    }
    return desc;
}

static void test_any_strides(void **unused)
{
    uint64_t state = 4;

    (void)unused;
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int again = 0; again < 40; again++) {
                stki_convert_desc desc = random_case(&state, sources[s], destinations[d]);
                quantize_some(&state, &desc);
                check(&state, desc);
            }
}

/* Without arithmetic, equal dtypes are copied exactly (bool as 0 or 1), and floats are cast as in the oracle. */
static void test_copies_and_casts(void **unused)
{
    uint64_t state = 5;

    (void)unused;
    for (int dtype = 1; dtype < STK_DTYPE_END; dtype++)
        for (int again = 0; again < 60; again++)
            check_copy(&state, random_case(&state, (stk_dtype)dtype, (stk_dtype)dtype));
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = COUNT(destinations) - 3; d < COUNT(destinations); d++)
            for (int again = 0; again < 40; again++) {
                stki_convert_desc desc = random_case(&state, sources[s], destinations[d]);
                desc.affine = false;
                if (sources[s] == destinations[d])
                    desc.src_swapped = false;
                check(&state, desc);
            }
}

/* Conversion from interleaved bytes to planes is a copy only if the dtype stays the same and is not bool. Otherwise it
 * is a cast. */
static void test_pixels_that_change_their_dtype(void **unused)
{
    static const stk_dtype bytes[] = {STK_BOOL, STK_U8, STK_I8, STK_F8_E4M3FN, STK_F8_E5M2};
    uint64_t state = 6;

    (void)unused;
    for (int s = 0; s < COUNT(bytes); s++)
        for (int d = 0; d < COUNT(bytes); d++)
            for (int i = 0; i < COUNT(isas); i++) {
                stki_convert_desc desc = describe(bytes[s], bytes[d], 2, (const int64_t[]){3, 50});
                stki_convert *convert = NULL;
                uint8_t src[150], got[150], want[150];
                if (!stki_isa_usable(isas[i]))
                    continue;
                desc.affine = false;
                desc.src_strides[0] = 1, desc.src_strides[1] = 3;
                desc.dst_strides[0] = 50, desc.dst_strides[1] = 1;
                for (int k = 0; k < 150; k++)
                    src[k] = (uint8_t)oracle_random(&state);
                stki_copy_strided(want, bytes[d], desc.dst_strides, src, bytes[s], desc.src_strides, false, 2,
                                  desc.shape);
                assert_int_equal(stki_convert_create_isa(&desc, isas[i], &convert, NULL), STK_OK);
                stki_convert_run(convert, got, src);
                assert_memory_equal(got, want, sizeof got);
                stki_convert_destroy(convert);
            }
}

/* Samples that are long enough for the whole-line loops of every kernel, for several blocks and for several parts. */
static stki_convert_desc large_case(int kind, stk_dtype src, stk_dtype dst)
{
    static const int hwc[3] = {0, 1, 2}, chw[3] = {2, 0, 1};
    stki_convert_desc desc = describe(src, dst, 3, (const int64_t[3]){101, 203, 3});

    lay_out(desc.src_strides, &desc, kind == 2 || kind == 3 ? chw : hwc, stk_dtype_size(src), kind == 4);
    lay_out(desc.dst_strides, &desc, kind == 1 || kind == 3 ? hwc : chw, stk_dtype_size(dst), 0);
    if (kind == 5)
        desc.src_strides[1] = -desc.src_strides[1];
    desc.channel_axis = 2;
    desc.channels = 3;
    return desc;
}

static void check_parts(const stki_convert_desc *desc, const struct place *at, enum stki_isa isa)
{
    stki_convert *convert;

    assert_int_equal(stki_convert_create_isa(desc, isa, &convert, NULL), STK_OK);
    int64_t units = stki_convert_units(convert);
    assert_true(units > 1);
    clear(at);
    for (int64_t unit = units - 1; unit >= 0; unit--) /* each once, in a different order */
        stki_convert_run_part(convert, at->dst, at->src, unit, unit + 1);
    compare(desc, stki_convert_name(convert), at);
    clear(at);
    stki_convert_run_part(convert, at->dst, at->src, 1, units);
    stki_convert_run_part(convert, at->dst, at->src, 1, 1);
    stki_convert_run_part(convert, at->dst, at->src, 0, 1);
    compare(desc, stki_convert_name(convert), at);
    stki_convert_destroy(convert);
}

static void test_large_samples_and_their_parts(void **unused)
{
    uint64_t state = 6;

    (void)unused;
    for (int kind = 0; kind < 6; kind++)
        for (int d = 0; d < COUNT(destinations); d++) {
            stki_convert_desc desc =
                large_case(kind, kind % 2 ? sources[(d + 2 * kind) % COUNT(sources)] : STK_U8, destinations[d]);
            struct place at = place(&desc, 2, 0, kind);
            fill_source(&state, desc.src_dtype, at.src - at.src_below, at.src_below + at.src_above);
            fill_pairs(&state, 3);
            check_at(desc, &at);
            for (int i = 0; i < COUNT(isas); i++)
                if (stki_isa_usable(isas[i]))
                    check_parts(&desc, &at, isas[i]);
        }
}

/* Every dtype in more than one block, from planes to pixels and back, and with channels along the blocks. */
static void test_several_blocks(void **unused)
{
    static const int across[2] = {0, 1}, along[2] = {1, 0};
    uint64_t state = 14;

    (void)unused;
    for (int s = 0; s < COUNT(sources); s++)
        for (int d = 0; d < COUNT(destinations); d++)
            for (int kind = 0; kind < 8; kind++) {
                stki_convert_desc desc =
                    describe(sources[s], destinations[d], 2, (const int64_t[2]){650, 3 + kind / 4});
                lay_out(desc.src_strides, &desc, kind & 1 ? across : along, stk_dtype_size(sources[s]), 0);
                lay_out(desc.dst_strides, &desc, kind & 1 ? along : across, stk_dtype_size(destinations[d]), 0);
                desc.channel_axis = kind & 2 ? 0 : 1;
                desc.channels = desc.shape[desc.channel_axis];
                desc.src_swapped = oracle_below(&state, 4) == 0;
                check(&state, desc);
            }
}

static void test_parts_without_arithmetic(void **unused)
{
    static const int hwc[3] = {0, 1, 2}, chw[3] = {2, 0, 1};
    uint64_t state = 7;

    (void)unused;
    for (int planar = 0; planar < 2; planar++) {
        stki_convert_desc desc = describe(STK_U8, STK_U8, 3, (const int64_t[3]){101, 203, 3});
        desc.affine = false;
        lay_out(desc.src_strides, &desc, hwc, 1, planar);
        lay_out(desc.dst_strides, &desc, planar ? chw : hwc, 1, 0);
        struct place at = place(&desc, 1, 0, 3);
        fill_source(&state, STK_U8, at.src - at.src_below, at.src_below + at.src_above);
        check_at(desc, &at);
        for (int i = 0; i < COUNT(isas); i++)
            if (stki_isa_usable(isas[i]))
                check_parts(&desc, &at, isas[i]);
    }
}

/* Makes NaNs equal: after arithmetic, their payloads may differ. */
static void canon_rows(const stki_convert_desc *desc, uint8_t *rows, int64_t stride, int count)
{
    for (int r = 0; r < count && desc->affine; r++)
        oracle_walk(desc, rows + r * stride, NULL, oracle_canon);
}

static void test_many_rows_equal_single_ones(void **unused)
{
    enum { ROWS = 9 };
    static const int64_t lengths[] = {1, 7, 64, 512, 3000};
    uint64_t state = 8;

    (void)unused;
    for (int n = 0; n < COUNT(lengths); n++)
        for (int arithmetic = 0; arithmetic < 2; arithmetic++)
            for (int i = 0; i < COUNT(isas); i++) {
                stki_convert_desc desc = describe(STK_F32, STK_F32, 1, &lengths[n]);
                stki_convert *convert;
                const void *rows[ROWS];
                int64_t stride = lengths[n] * 4 + 12;
                if (!stki_isa_usable(isas[i]))
                    continue;
                desc.affine = arithmetic;
                desc.stores = n % 2 ? STKI_STORES_STREAMING : STKI_STORES_CACHED;
                desc.src_strides[0] = desc.dst_strides[0] = 4;
                fill_pairs(&state, 1);
                assert_int_equal(stki_convert_create_isa(&desc, isas[i], &convert, NULL), STK_OK);
                fill_source(&state, STK_F32, in.low, ROWS * stride);
                memset(out.low, GUARD, (size_t)(ROWS * stride));
                memset(expected.low, GUARD, (size_t)(ROWS * stride));
                for (int r = 0; r < ROWS; r++) {
                    rows[r] = in.low + (r * 5 % ROWS) * stride;
                    stki_convert_run(convert, expected.low + r * stride, rows[r]);
                }
                stki_convert_run_many(convert, out.low, stride, rows, ROWS);
                stki_store_fence();
                canon_rows(&desc, out.low, stride, ROWS);
                canon_rows(&desc, expected.low, stride, ROWS);
                assert_memory_equal(out.low, expected.low, (size_t)(ROWS * stride));
                stki_convert_run_many(convert, out.low, stride, rows, 0);
                assert_memory_equal(out.low, expected.low, (size_t)(ROWS * stride));
                stki_convert_destroy(convert);
            }
}

/* Converts a list of rows, some of them adjacent, with one description, and compares it with single rows, which other
 * tests compare with the oracle. The rows end at a page boundary. */
static void check_list(uint64_t *state, stki_convert_desc desc)
{
    static const int order[] = {3, 4, 5, 6, 0, 9, 1, 2, 3, 3,  4,  8,  9,  10, 11, 12, 13, 7, 5, 6, 13, 12, 11, 0,
                                1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0,  1,  2,  3,  4, 5, 6, 7,  8,  9,  13};
    enum { ROWS = COUNT(order), STORED = 14 };
    const int64_t n = desc.shape[0] * desc.shape[1], size = stk_dtype_size(desc.src_dtype),
                  bytes = n * stk_dtype_size(desc.dst_dtype);
    uint8_t *from = in.high - STORED * n * size;

    assert_true(STORED * n * size <= ARENA && ROWS * (bytes + 64) + 192 <= ARENA);
    fill_pairs(state, desc.channels);
    fill_source(state, desc.src_dtype, from, STORED * n * size);
    for (int i = 0; i < COUNT(isas) * 8; i++) {
        const int64_t stride = bytes + (i & 1) * 64, shift = i & 4 ? 4 * oracle_below(state, 16) : 0;
        uint8_t *to = out.low + shift, *right = expected.low + shift;
        int first[STORED]; /* the first output row made from this source row */
        stki_convert *convert;
        const void *rows[ROWS];

        if (!stki_isa_usable(isas[i / 8]))
            continue;
        memset(first, -1, sizeof first);
        desc.stores = i & 2 ? STKI_STORES_STREAMING : STKI_STORES_CACHED;
        assert_int_equal(stki_convert_create_isa(&desc, isas[i / 8], &convert, NULL), STK_OK);
        memset(out.low, GUARD, (size_t)(ROWS * stride + 128));
        memset(expected.low, GUARD, (size_t)(ROWS * stride + 128));
        for (int r = 0; r < ROWS; r++) {
            rows[r] = from + order[r] * n * size;
            if (first[order[r]] < 0)
                stki_convert_run(convert, right + (first[order[r]] = r) * stride, rows[r]);
            else
                memcpy(right + r * stride, right + first[order[r]] * stride, (size_t)bytes);
        }
        stki_convert_run_many(convert, to, stride, rows, ROWS);
        stki_store_fence();
        canon_rows(&desc, to, stride, ROWS);
        canon_rows(&desc, right, stride, ROWS);
        assert_memory_equal(out.low, expected.low, (size_t)(ROWS * stride + 128));
        stki_convert_destroy(convert);
    }
}

static stki_convert_desc list_case(stk_dtype from, stk_dtype to, const int64_t *shape, bool affine)
{
    stki_convert_desc desc = describe(from, to, 2, shape);

    desc.affine = affine;
    desc.channel_axis = 1;
    lay_out(desc.src_strides, &desc, in_order, stk_dtype_size(from), 0);
    lay_out(desc.dst_strides, &desc, in_order, stk_dtype_size(to), 0);
    return desc;
}

static void test_rows_in_a_line(void **unused)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 16}, {1, 77}, {4, 64}, {8, 128}, {3, 700}};
    static const stk_dtype wider[] = {STK_U32, STK_I32, STK_U64, STK_I64};
    uint64_t state = 12;

    (void)unused;
    for (int k = 0; k < COUNT(shapes); k++) {
        for (int s = 0; s < COUNT(sources); s++) {
            for (int d = 0; d < COUNT(destinations); d++)
                check_list(&state, list_case(sources[s], destinations[d], shapes[k], true));
            check_list(&state, list_case(sources[s], STK_F32, shapes[k], false));
            check_list(&state, list_case(sources[s], sources[s], shapes[k], false));
            for (int d = 0; d < COUNT(wider); d++)
                check_list(&state, list_case(sources[s], wider[d], shapes[k], false));
        }
        for (int pattern = 0; pattern < 2; pattern++) {
            stki_convert_desc desc = list_case(STK_U8, STK_F32, shapes[k], true);
            desc.channels = pattern ? shapes[k][1] : 1;
            desc.src_swapped = !pattern;
            check_list(&state, desc);
        }
    }
    check_list(&state, list_case(STK_F32, STK_F32, (const int64_t[2]){1, 1500}, false)); /* longer than a page */
    check_list(&state, list_case(STK_U8, STK_U8, (const int64_t[2]){1, 5000}, false));
}

/* The same through the device table, in ordinary memory and in memory that only the table can access. */
static void test_on_devices(void **unused)
{
    enum { ROWS = 4 };
    stki_convert_desc desc = describe(STK_U8, STK_F32, 1, (const int64_t[1]){100});
    stk_device *test = stki_device_test(), *cpu = stk_device_cpu();
    stki_convert *convert;
    uint8_t rows[ROWS * 128];
    float want[ROWS * 100], got[ROWS * 100];
    void *from, *to;
    stk_error err;

    (void)unused;
    desc.src_strides[0] = 1;
    desc.dst_strides[0] = 4;
    fill_pairs(&(uint64_t){10}, 1);
    fill_source(&(uint64_t){11}, STK_U8, rows, sizeof rows);
    assert_int_equal(stki_convert_create(&desc, &convert, NULL), STK_OK);
    for (int r = 0; r < ROWS; r++)
        stki_convert_run(convert, want + r * 100, rows + r * 128);
    assert_int_equal(cpu->ops->convert(cpu, convert, got, 400, rows, 128, ROWS, NULL, NULL), STK_OK);
    assert_memory_equal(got, want, sizeof want);

    memset(got, 0, sizeof got);
    assert_int_equal(test->ops->alloc(test, sizeof rows, &from, NULL), STK_OK);
    assert_int_equal(test->ops->alloc(test, sizeof want, &to, NULL), STK_OK);
    assert_int_equal(test->ops->copy(test, from, true, rows, false, sizeof rows, NULL, NULL), STK_OK);
    assert_int_equal(test->ops->convert(test, convert, to, 400, from, 128, ROWS, NULL, NULL), STK_OK);
    assert_int_equal(test->ops->copy(test, got, false, to, true, sizeof got, NULL, NULL), STK_OK);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(test->ops->convert(test, convert, got, 400, from, 128, 1, NULL, &err), STK_E_DEVICE);
    assert_int_equal(test->ops->convert(test, convert, to, 400, rows, 128, 1, NULL, &err), STK_E_DEVICE);
    test->ops->free(test, from, sizeof rows);
    test->ops->free(test, to, sizeof want);
    stki_convert_destroy(convert);
}

static void test_empty_samples(void **unused)
{
    (void)unused;
    for (int i = 0; i < COUNT(isas); i++) {
        stki_convert_desc desc = describe(STK_U8, STK_F32, 2, (const int64_t[2]){0, 3});
        stki_convert *convert;
        if (!stki_isa_usable(isas[i]))
            continue;
        lay_out(desc.src_strides, &desc, in_order, 1, 0);
        lay_out(desc.dst_strides, &desc, in_order, 4, 0);
        desc.channel_axis = 1;
        desc.channels = 3;
        assert_int_equal(stki_convert_create_isa(&desc, isas[i], &convert, NULL), STK_OK);
        stki_convert_run(convert, NULL, NULL);
        stki_convert_run_part(convert, NULL, NULL, 0, stki_convert_units(convert));
        stki_convert_run_many(convert, NULL, 0, (const void *const[1]){NULL}, 1);
        assert_int_equal(stki_convert_bytes_read(convert), 0);
        assert_int_equal(stki_convert_bytes_written(convert), 0);
        stki_convert_destroy(convert);
    }
}

static void test_names_and_properties(void **unused)
{
    stki_convert_desc desc = large_case(0, STK_U8, STK_F32);
    stki_convert *convert;

    (void)unused;
    fill_pairs(&(uint64_t){9}, 3);
    a_pairs[0] = 2.0f;
    assert_int_equal(stki_convert_create_isa(&desc, STKI_ISA_REF, &convert, NULL), STK_OK);
    assert_string_equal(stki_convert_name(convert), "ref u8>f32 each");
    assert_int_equal(stki_convert_bytes_read(convert), 101 * 203 * 3);
    assert_int_equal(stki_convert_bytes_written(convert), 101 * 203 * 3 * 4);
    assert_false(stki_convert_streams(convert));
    stki_convert_destroy(convert);
    if (!stki_isa_usable(STKI_ISA_AVX2))
        return;
    desc.stores = STKI_STORES_STREAMING;
    assert_int_equal(stki_convert_create_isa(&desc, STKI_ISA_AVX2, &convert, NULL), STK_OK);
    assert_string_equal(stki_convert_name(convert), "avx2 u8>f32 hwc3-planar streaming");
    assert_true(stki_convert_streams(convert));
    stki_convert_destroy(convert);
    desc.stores = STKI_STORES_AUTO;
    for (int large = 0; large < 2; large++) {
        desc.bytes_in_flight = stki_cache_bytes() / 5 * 4 + large;
        assert_int_equal(stki_convert_create_isa(&desc, STKI_ISA_AVX2, &convert, NULL), STK_OK);
        assert_int_equal(stki_convert_streams(convert), large);
        stki_convert_destroy(convert);
    }
    if (!stki_isa_usable(STKI_ISA_AVX512))
        return;
    desc.dst_dtype = STK_I8;
    for (int k = 0; k < 3; k++) /* 8-bit planes */
        desc.dst_strides[k] /= 4;
    for (int stores = STKI_STORES_AUTO; stores <= STKI_STORES_STREAMING; stores++) {
        desc.stores = (enum stki_stores)stores;
        assert_int_equal(stki_convert_create_isa(&desc, STKI_ISA_AVX512, &convert, NULL), STK_OK);
        assert_int_equal(stki_convert_streams(convert), stores == STKI_STORES_STREAMING);
        stki_convert_destroy(convert);
    }
}

static void refused(const stki_convert_desc *desc, stk_status status, const char *words)
{
    stki_convert *convert = NULL;
    stk_error err;

    assert_int_equal(stki_convert_create(desc, &convert, &err), status);
    assert_int_equal(err.status, status);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    assert_null(convert);
}

static void test_refusals(void **unused)
{
    stki_convert_desc good = large_case(0, STK_U8, STK_I8), bad;

    (void)unused;
#define REFUSED(change, status, words) \
    do {                               \
        bad = good;                    \
        change;                        \
        refused(&bad, status, words);  \
    } while (0)
    REFUSED(bad.ndim = STK_MAX_DIMS + 1, STK_E_UNSUPPORTED, "33 axes");
    REFUSED(bad.shape[1] = -1, STK_E_BAD_SHAPE, "axis 1");
    REFUSED(bad.shape[1] = INT64_MAX / 4, STK_E_BAD_SHAPE, "63 bits");
    REFUSED(bad.src_strides[0] = INT64_MIN, STK_E_BAD_SHAPE, "63 bits");
    REFUSED(bad.dst_strides[1] = 0, STK_E_BAD_OVERLAP, "axis 1");
    REFUSED(bad.src_dtype = STK_U64, STK_E_BAD_DTYPE, "u64");
    REFUSED(bad.src_dtype = STK_BOOL, STK_E_BAD_DTYPE, "bool");
    REFUSED(bad.dst_dtype = STK_F64, STK_E_BAD_DTYPE, "f64");
    REFUSED(bad.dst_dtype = STK_DTYPE_NONE, STK_E_BAD_DTYPE, "none");
    REFUSED(bad.channel_axis = 3, STK_E_BAD_DIM, "channel axis 3");
    REFUSED(bad.channels = 2, STK_E_BAD_SHAPE, "2 coefficient pairs for 3");
    REFUSED(bad.a = NULL, STK_E_BAD_ARG, "coefficients");
    REFUSED((bad.quantized = true, bad.qmin = 1, bad.qmax = 0), STK_E_BAD_VALUE, "1 to 0");
    REFUSED((bad.quantized = true, bad.qmin = -129, bad.qmax = 0), STK_E_BAD_VALUE, "-129");
    REFUSED((bad.quantized = true, bad.qmax = 127, bad.zero_point = 128), STK_E_BAD_VALUE, "zero point 128");
    REFUSED((bad.quantized = true, bad.dst_dtype = STK_F32), STK_E_BAD_DTYPE, "quantized to f32");
    REFUSED((bad.quantized = true, bad.affine = false), STK_E_BAD_ARG, "quantization needs coefficients");
#undef REFUSED
    for (int i = 0; i < COUNT(isas); i++)
        if (!stki_isa_usable(isas[i])) {
            stki_convert *convert = NULL;
            assert_int_equal(stki_convert_create_isa(&good, isas[i], &convert, NULL), STK_E_UNSUPPORTED);
        }
}

static void test_failing_allocations(void **unused)
{
    stki_convert_desc desc = large_case(0, STK_U8, STK_I8);
    stki_memory_stats before, after;
    int64_t n = 0;
    stk_status status;

    (void)unused;
    stki_memory_read(STKI_MEM_HOST, &before);
    do {
        stki_convert *convert = NULL;
        stk_error err;
        stki_memory_fail_at(++n);
        status = stki_convert_create(&desc, &convert, &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        assert_true((status == STK_OK) == (convert != NULL));
        stki_convert_destroy(convert);
    } while (status != STK_OK);
    assert_true(n > 2);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.blocks, before.blocks);
    stki_convert_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_of_every_pair),
        cmocka_unit_test(test_channels_of_runs),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_images_as_they_are),
        cmocka_unit_test(test_a_short_pattern),
        cmocka_unit_test(test_any_strides),
        cmocka_unit_test(test_copies_and_casts),
        cmocka_unit_test(test_pixels_that_change_their_dtype),
        cmocka_unit_test(test_large_samples_and_their_parts),
        cmocka_unit_test(test_several_blocks),
        cmocka_unit_test(test_parts_without_arithmetic),
        cmocka_unit_test(test_many_rows_equal_single_ones),
        cmocka_unit_test(test_rows_in_a_line),
        cmocka_unit_test(test_on_devices),
        cmocka_unit_test(test_empty_samples),
        cmocka_unit_test(test_names_and_properties),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
