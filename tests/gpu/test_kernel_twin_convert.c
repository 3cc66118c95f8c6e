/* Conversions by the twins of a GPU's kernels are compared with the reference, for random dtypes, shapes, strides,
 * channels, quantizers and batches, and for images that are cropped and mirrored, with guard bytes around and between
 * all elements. All kernels must be used, and the general ones must agree with the fast ones. If STOKER_TEST_DEVICE
 * names a device, every case also runs on it. */
#include "allocate.h"
#include "convert.h"
#include "convert_internal.h"
#include "device_memory.h"
#include "kernel_check.h"
#include "kernel_plan.h"
#include "kernel_twin.h"
#include "kernels_general.h"

static int64_t met[STKI_KERNELS];

static const stk_dtype sources[] = {STK_U8,  STK_I8,  STK_U16,  STK_I16, STK_I32,
                                    STK_I64, STK_F16, STK_BF16, STK_F32, STK_F64};
static const stk_dtype targets[] = {STK_U8, STK_I8, STK_I32, STK_F16, STK_BF16, STK_F32};

static stk_dtype any_of(const stk_dtype *dtypes, size_t bytes)
{
    return dtypes[check_below((int64_t)(bytes / sizeof *dtypes))];
}

static stk_dtype any_dtype(void)
{
    return (stk_dtype)(1 + check_below(STK_DTYPE_END - 1));
}

/* Views of a batch: axis 0 is the samples, the others those of a sample. */
struct batch {
    struct check_view src, dst;
    stki_convert_desc desc;
    float a[10000], b[10000];
    int64_t count;
};

static void set_arithmetic(struct batch *batch)
{
    stki_convert_desc *desc = &batch->desc;

    desc->affine = true;
    desc->channel_axis = desc->ndim > 0 && !check_one_in(3) ? (int)check_below(desc->ndim) : -1;
    desc->channels = desc->channel_axis < 0 || check_one_in(8) ? 1 : desc->shape[desc->channel_axis];
    desc->a = batch->a;
    desc->b = batch->b;
    for (int64_t c = 0; c < desc->channels; c++) {
        batch->a[c] = check_one_in(20) ? 1e30f : (float)check_below(4000) / 1500.0f - 0.3f;
        batch->b[c] = check_one_in(20) ? (float)INFINITY : (float)check_below(4000) / 13.0f - 140.0f;
    }
    if ((desc->dst_dtype == STK_U8 || desc->dst_dtype == STK_I8 || desc->dst_dtype == STK_I32) && check_one_in(2)) {
        int32_t low = desc->dst_dtype == STK_U8 ? 0 : -128;
        desc->quantized = true;
        desc->qmin = low + (int32_t)check_below(20);
        desc->qmax = desc->qmin + 1 + (int32_t)check_below(200);
        desc->zero_point = low + (int32_t)check_below(256);
    }
}

static void take_axes(struct batch *batch)
{
    stki_convert_desc *desc = &batch->desc;

    desc->ndim = batch->src.ndim - 1;
    for (int i = 0; i < desc->ndim; i++) {
        desc->shape[i] = batch->src.shape[i + 1];
        desc->src_strides[i] = batch->src.strides[i + 1];
        desc->dst_strides[i] = batch->dst.strides[i + 1];
    }
    batch->count = batch->src.shape[0];
}

/* The kernel that a launch uses. */
static const char *kernel_name(const stki_launch *launch)
{
    static const char *const names[STKI_KERNELS] = {[STKI_KERNEL_MAP_LINEAR] = "map",
                                                    [STKI_KERNEL_MAP_TILED] = "tiles",
                                                    [STKI_KERNEL_RUNS] = "runs",
                                                    [STKI_KERNEL_PIXELS] = "pixels",
                                                    [STKI_KERNEL_BINARY_LINEAR] = "binary",
                                                    [STKI_KERNEL_BINARY_RUNS] = "binary-runs",
                                                    [STKI_KERNEL_SUM_ROWS] = "sum-rows",
                                                    [STKI_KERNEL_SUM_CELLS] = "sum-cells",
                                                    [STKI_KERNEL_SUM_FINISH] = "sum-finish"};

    return names[launch->kernel];
}

static const char *describe(const struct batch *batch, const stki_launch *launch)
{
    static char text[512];
    int used = snprintf(text, sizeof text, "%s>%s %s, %d axes", stk_dtype_name(batch->src.dtype),
                        stk_dtype_name(batch->dst.dtype), kernel_name(launch), batch->desc.ndim);

    for (int i = 0; i < batch->src.ndim && used < 400; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, " [%lld: %lld %lld]", (long long)batch->src.shape[i],
                         (long long)batch->src.strides[i], (long long)batch->dst.strides[i]);
    return text;
}

/* The device that is compared with the twin; NULL: none. */
static stk_device *tested;

static int find_device(void **state)
{
    const char *name = getenv("STOKER_TEST_DEVICE");

    (void)state;
    return name ? (int)stk_device_find(name, &tested, NULL) : 0;
}

static void move(void *there, void *here, int64_t bytes, bool up)
{
    assert_int_equal(tested->ops->copy(tested, up ? there : here, up, up ? here : there, !up, bytes, NULL, NULL),
                     STK_OK);
}

/* Runs the batch between two blocks on the device, and copies the result to `found`. */
static void run_on_device(const stki_convert *convert, struct batch *batch, struct check_view *found)
{
    const int64_t from = batch->src.data - batch->src.block, to = found->data - found->block;
    void *src, *dst;

    assert_int_equal(stki_device_alloc(tested, STK_MEMORY_DEVICE, batch->src.bytes, &src, NULL), STK_OK);
    assert_int_equal(stki_device_alloc(tested, STK_MEMORY_DEVICE, found->bytes, &dst, NULL), STK_OK);
    move(src, batch->src.block, batch->src.bytes, true);
    move(dst, found->block, found->bytes, true);
    assert_int_equal(tested->ops->convert(tested, convert, (char *)dst + to, found->strides[0], (char *)src + from,
                                          batch->src.strides[0], batch->count, NULL, NULL),
                     STK_OK);
    move(dst, found->block, found->bytes, false);
    stki_device_free(tested, STK_MEMORY_DEVICE, src, batch->src.bytes);
    stki_device_free(tested, STK_MEMORY_DEVICE, dst, found->bytes);
}

/* Runs the reference sample by sample, and the twin over the whole batch, with and without the fast kernels. */
static void check_batch(struct batch *batch)
{
    struct check_view found, also;
    stki_convert *reference, *convert;
    stki_kernel_table table;
    float far[2 * 512];
    stki_launch launch;
    stk_error err = {0};

    assert_int_equal(stki_convert_create_isa(&batch->desc, STKI_ISA_REF, &reference, &err), STK_OK);
    assert_int_equal(stki_convert_create_isa(&batch->desc, check_one_in(3) ? STKI_ISA_REF : stki_isa(), &convert, &err),
                     STK_OK);
    check_view_copy(&found, &batch->dst);
    check_view_copy(&also, &batch->dst);
    for (int64_t i = 0; i < batch->count; i++)
        stki_convert_run(reference, batch->dst.data + i * batch->dst.strides[0],
                         batch->src.data + i * batch->src.strides[0]);
    const bool outside = stki_kernel_table_of_convert(convert, &table);
    if (outside) {
        assert_true(table.count <= 512 && table.size == 4);
        memcpy(far, table.first, (size_t)table.count * 4);
        memcpy(far + table.count, table.second, (size_t)table.count * 4);
    }
    stkt_kernels_general(check_one_in(4));
    assert_int_equal(stki_kernel_plan_convert(convert, found.data, found.strides[0], batch->src.data,
                                              batch->src.strides[0], batch->count, outside ? far : NULL, &launch, &err),
                     STK_OK);
    if (tested)
        run_on_device(convert, batch, &also);
    stkt_kernels_general(false);
    if (launch.blocks > 0) {
        met[launch.kernel]++;
        stki_kernel_twin_run(&launch);
    }
    check_view_same(&batch->dst, &found, describe(batch, &launch));
    if (tested)
        check_view_same(&batch->dst, &also, describe(batch, &launch));
    check_view_free(&found);
    check_view_free(&also);
    stki_convert_destroy(reference);
    stki_convert_destroy(convert);
}

static void make_views(struct batch *batch, stk_dtype dst, stk_dtype src, int ndim, const int64_t *shape)
{
    bool plain = check_one_in(3);

    memset(batch, 0, sizeof *batch);
    batch->desc = (stki_convert_desc){.src_dtype = src, .dst_dtype = dst, .channels = 1, .channel_axis = -1};
    check_view_make(&batch->src, src, ndim, shape, true, plain);
    check_view_make(&batch->dst, dst, ndim, shape, false, plain);
    batch->desc.src_swapped = stk_dtype_size(src) > 1 && check_one_in(4);
    check_view_fill(&batch->src, false);
    take_axes(batch);
}

static void end_batch(struct batch *batch)
{
    check_view_free(&batch->src);
    check_view_free(&batch->dst);
}

static void test_random_arithmetic(void **state)
{
    static struct batch batch;
    int64_t shape[STK_MAX_DIMS];

    (void)state;
    check_state = 11;
    for (int i = 0; i < 2500; i++) {
        shape[0] = check_below(5);
        int ndim = 1 + check_shape(3000, shape + 1);
        make_views(&batch, any_of(targets, sizeof targets), any_of(sources, sizeof sources), ndim, shape);
        set_arithmetic(&batch);
        check_batch(&batch);
        end_batch(&batch);
    }
}

static void test_random_casts(void **state)
{
    static struct batch batch;
    int64_t shape[STK_MAX_DIMS];

    (void)state;
    check_state = 12;
    for (int i = 0; i < 2500; i++) {
        shape[0] = 1 + check_below(4);
        int ndim = 1 + check_shape(2000, shape + 1);
        stk_dtype src = any_dtype();
        make_views(&batch, check_one_in(4) ? src : any_dtype(), src, ndim, shape);
        check_batch(&batch);
        end_batch(&batch);
    }
}

/* ---- rows ---- */

/* Moves the first element to a multiple of 64 bytes, and makes every stride but the last one a multiple of that. */
static void align_rows(struct check_view *view)
{
    const int64_t row = view->shape[2] * stk_dtype_size(view->dtype);
    const int64_t gap = check_one_in(2) ? 0 : (64 - row % 64) % 64 + 64 * check_below(2);

    free(view->block);
    view->strides[2] = stk_dtype_size(view->dtype);
    view->strides[1] = row + gap;
    view->strides[0] = view->strides[1] * view->shape[1] + (check_one_in(2) ? 0 : 64 * check_below(2));
    view->bytes = view->strides[0] * view->shape[0] + 2 * CHECK_GUARD;
    view->block = aligned_alloc(64, (size_t)((view->bytes + 63) / 64 * 64));
    assert_non_null(view->block);
    memset(view->block, 0xa5, (size_t)view->bytes);
    view->data = view->block + CHECK_GUARD;
}

static void test_rows(void **state)
{
    static struct batch batch;

    (void)state;
    check_state = 15;
    for (int i = 0; i < 1200; i++) {
        const int64_t shape[3] = {1 + check_below(3), 1 + check_below(7),
                                  16 * (1 + check_below(9)) + (check_one_in(3) ? check_below(16) : 0)};
        make_views(&batch, any_of(targets, sizeof targets), any_of(sources, sizeof sources), 3, shape);
        align_rows(&batch.src);
        align_rows(&batch.dst);
        batch.desc.src_swapped = check_one_in(20) && stk_dtype_size(batch.desc.src_dtype) > 1;
        check_view_fill(&batch.src, false);
        take_axes(&batch);
        set_arithmetic(&batch);
        check_batch(&batch);
        end_batch(&batch);
    }
}

/* Pixels of three or four channels that keep their order: the coefficients repeat along one long row. */
static void test_channels_last(void **state)
{
    static struct batch batch;

    (void)state;
    check_state = 16;
    for (int i = 0; i < 600; i++) {
        const int64_t shape[3] = {1 + check_below(3), 16 * (1 + check_below(9)), 1 + check_below(40)};
        make_views(&batch, any_of(targets, sizeof targets), check_one_in(2) ? STK_U8 : STK_F32, 3, shape);
        align_rows(&batch.src);
        align_rows(&batch.dst);
        batch.src.strides[1] = shape[2] * stk_dtype_size(batch.src.dtype);
        batch.dst.strides[1] = shape[2] * stk_dtype_size(batch.dst.dtype);
        batch.desc.src_swapped = false;
        check_view_fill(&batch.src, false);
        take_axes(&batch);
        set_arithmetic(&batch);
        batch.desc.channel_axis = 1;
        batch.desc.channels = shape[2];
        for (int64_t c = 0; c < shape[2]; c++) {
            batch.a[c] = (float)c / 7.0f + 0.1f;
            batch.b[c] = (float)c - 4.0f;
        }
        check_batch(&batch);
        end_batch(&batch);
    }
}

/* ---- images ---- */

struct image {
    int64_t height, width, channels, step; /* of the crop; step: bytes of a pixel */
    bool mirrored, upside_down, reversed, planar;
};

/* Samples of pixels in a larger image, as views: cropped, flipped, channels reversed; to planes or to pixels. */
static void make_image(struct batch *batch, stk_dtype dst, const struct image *image, bool arithmetic)
{
    const int64_t shape[4] = {1 + check_below(3), image->height, image->width, image->channels};
    const int64_t left = check_below(5), right = check_below(3), line = (image->width + left + right) * image->step;
    const int64_t size = stk_dtype_size(dst);
    struct check_view *src = &batch->src;

    memset(batch, 0, sizeof *batch);
    batch->desc = (stki_convert_desc){.src_dtype = STK_U8, .dst_dtype = dst, .channels = 1, .channel_axis = -1};
    check_view_make(src, STK_U8, 4, (const int64_t[]){shape[0], image->height, 1, line}, false, true);
    for (int64_t i = 0; i < src->bytes; i++)
        src->block[i] = (uint8_t)check_random();
    src->shape[2] = image->width;
    src->shape[3] = image->channels;
    src->strides[2] = image->step;
    src->strides[3] = 1;
    src->data += left * image->step;
    for (int axis = 1; axis < 4; axis++)
        if ((axis == 1 && image->upside_down) || (axis == 2 && image->mirrored) || (axis == 3 && image->reversed)) {
            src->data += src->strides[axis] * (src->shape[axis] - 1);
            src->strides[axis] = -src->strides[axis];
        }
    check_view_make(&batch->dst, dst, 4, shape, false, true);
    if (image->planar) {
        batch->dst.strides[3] = image->height * image->width * size;
        batch->dst.strides[2] = size;
        batch->dst.strides[1] = image->width * size;
    }
    take_axes(batch);
    if (arithmetic) {
        set_arithmetic(batch);
        batch->desc.channel_axis = check_one_in(4) ? -1 : 2;
        batch->desc.channels = batch->desc.channel_axis < 0 ? 1 : image->channels;
    }
}

/* Copies the bytes that a view spans to the end of a new block, so that AddressSanitizer detects reads beyond them. */
static void cut_out(struct check_view *view)
{
    int64_t low = 0, high = stk_dtype_size(view->dtype), front = check_below(17);
    uint8_t *block;

    for (int i = 0; i < view->ndim; i++) {
        int64_t reach = view->strides[i] * (view->shape[i] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    block = malloc((size_t)(front + high - low));
    assert_non_null(block);
    memset(block, 0xa5, (size_t)front);
    memcpy(block + front, view->data + low, (size_t)(high - low));
    free(view->block);
    view->block = block;
    view->data = block + front - low;
    view->bytes = front + high - low;
}

static void test_images(void **state)
{
    static const int64_t widths[] = {1, 5, 16, 17, 31, 32, 47, 64, 100, 224, 255, 1000, 4096, 4100, 9001};
    static struct batch batch;

    (void)state;
    check_state = 13;
    for (int i = 0; i < 1200; i++) {
        int64_t width = widths[check_below((int64_t)(sizeof widths / sizeof *widths))];
        struct image image = {.height = 1 + check_below(width > 500 ? 3 : 12),
                              .width = width,
                              .step = check_one_in(8) ? 5 : 3 + check_below(2),
                              .mirrored = check_one_in(2),
                              .upside_down = check_one_in(3),
                              .reversed = check_one_in(3),
                              .planar = !check_one_in(5)};
        bool arithmetic = !check_one_in(5);
        image.channels = check_one_in(4) ? 1 + check_below(image.step) : image.step;
        make_image(&batch, arithmetic ? any_of(targets, sizeof targets) : STK_U8, &image, arithmetic);
        if (check_one_in(3))
            cut_out(&batch.src);
        check_batch(&batch);
        end_batch(&batch);
    }
}

/* Typical batches for training must use the kernels that are meant for them. */
static void test_choice_of_kernels(void **state)
{
    static struct batch batch;
    struct image image = {.height = 8, .width = 224, .channels = 3, .step = 3, .planar = true};
    stki_convert *convert;
    stki_launch launch;

    (void)state;
    check_state = 14;
    for (int i = 0; i < 4; i++) {
        image.mirrored = i & 1;
        image.planar = i < 2;
        make_image(&batch, STK_F16, &image, true);
        assert_int_equal(stki_convert_create(&batch.desc, &convert, NULL), STK_OK);
        assert_int_equal(stki_kernel_plan_convert(convert, (void *)(uintptr_t)4096, 3 * 2 * 8 * 224,
                                                  (const void *)(uintptr_t)4096, batch.src.strides[0], 64, NULL,
                                                  &launch, NULL),
                         STK_OK);
        assert_string_equal(kernel_name(&launch), i < 2                                   ? "pixels"
                                                  : i == 2 && batch.src.strides[1] == 672 ? "runs"
                                                                                          : kernel_name(&launch));
        stki_convert_destroy(convert);
        end_batch(&batch);
    }
}

/* The share of pixels that are stored 16 bytes at a time. */
static double wide_share(const stki_launch *launch)
{
    const stki_pixels_args *args = &launch->args.pixels;
    const int size = stki_kernel_size(launch->dst_dtype);
    const uint32_t pixels = (uint32_t)(16 / size);
    int64_t wide = 0, all = 0;
    stki_pixels_row row;

    for (uint32_t block = 0; block < launch->blocks; block++)
        for (uint32_t i = 0; i < args->tile_rows; i++) {
            if (!stki_pixels_row_of(args, block, i, size, launch->mirrored, &row))
                continue;
            for (int c = 0; c < args->channels; c++) {
                const uint32_t head = stki_pixels_head(args, &row, size, c);

                all += row.count;
                if (!stki_pixels_odd(args, &row, size, c))
                    wide += (row.count - head) / pixels * pixels;
            }
        }
    return (double)wide / (double)all;
}

/* Images of any size: planes of 299 x 299 begin at any multiple of the element size. */
static void test_planes_of_any_size(void **state)
{
    static const int sides[] = {224, 227, 299, 331, 378, 518};
    static const stk_dtype dtypes[] = {STK_F32, STK_F16, STK_BF16, STK_I8, STK_U8};
    static const float a[] = {0.0171F, 0.0175F, 0.0174F, 0.01F}, b[] = {-2.117F, -2.035F, -1.804F, 0};
    enum { SAMPLES = 3 };

    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof *sides * 5 * 3; i++) {
        const int64_t side = sides[i / 15], step = i % 3 ? 4 : 3, channels = i % 3 == 2 ? 4 : 3;
        const stk_dtype dtype = dtypes[i / 3 % 5];
        const int64_t size = stk_dtype_size(dtype), plane = side * side;
        stki_convert_desc desc = {.src_dtype = STK_U8,
                                  .dst_dtype = dtype,
                                  .ndim = 3,
                                  .shape = {channels, side, side},
                                  .src_strides = {1, side * step, step},
                                  .dst_strides = {plane * size, side * size, size},
                                  .channels = channels,
                                  .a = a,
                                  .b = b,
                                  .quantized = dtype == STK_I8,
                                  .qmin = -128,
                                  .qmax = 127};
        stki_convert *convert;
        stki_launch launch;

        desc.affine = dtype != STK_U8; /* u8 is copied */
        desc.channel_axis = desc.affine ? 0 : -1;
        assert_int_equal(stki_convert_create(&desc, &convert, NULL), STK_OK);
        assert_int_equal(stki_kernel_plan_convert(convert, (void *)(uintptr_t)4096, channels * plane * size,
                                                  (const void *)(uintptr_t)4096, plane * step, SAMPLES, NULL, &launch,
                                                  NULL),
                         STK_OK);
        assert_string_equal(kernel_name(&launch), "pixels");
        if (wide_share(&launch) < 0.99)
            fail_msg("%d %s, %d of %d bytes: %.1f %% of the stores are of 16 bytes", (int)side, stk_dtype_name(dtype),
                     (int)channels, (int)step, 100 * wide_share(&launch));
        stki_convert_destroy(convert);
    }
}

/* More axes than a nest supports, and empty batches. */
static void test_limits(void **state)
{
    stki_convert_desc desc = {.src_dtype = STK_U8, .dst_dtype = STK_U8, .ndim = 32, .channel_axis = -1};
    stki_convert *convert;
    stki_launch launch;
    stk_error err = {0};

    (void)state;
    for (int i = 0; i < 32; i++) {
        desc.shape[i] = 2;
        desc.src_strides[i] = desc.dst_strides[i] = INT64_C(1) << (31 - i);
    }
    assert_int_equal(stki_convert_create(&desc, &convert, &err), STK_OK);
    assert_int_equal(
        stki_kernel_plan_convert(convert, NULL, INT64_C(1) << 33, NULL, INT64_C(1) << 33, 2, NULL, &launch, &err),
        STK_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "32 axes"));
    assert_int_equal(stki_kernel_plan_convert(convert, NULL, 0, NULL, 0, 0, NULL, &launch, &err), STK_OK);
    assert_int_equal(launch.blocks, 0);
    stki_convert_destroy(convert);
}

static void test_all_kernels_were_used(void **state)
{
    (void)state;
    assert_true(met[STKI_KERNEL_MAP_LINEAR] > 500);
    assert_true(met[STKI_KERNEL_MAP_TILED] > 100);
    assert_true(met[STKI_KERNEL_RUNS] > 300);
    assert_true(met[STKI_KERNEL_PIXELS] > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_arithmetic),
        cmocka_unit_test(test_random_casts),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_channels_last),
        cmocka_unit_test(test_images),
        cmocka_unit_test(test_choice_of_kernels),
        cmocka_unit_test(test_planes_of_any_size),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_all_kernels_were_used),
    };

    return cmocka_run_group_tests(tests, find_device, NULL);
}
