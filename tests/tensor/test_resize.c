/* Tests of every variant of the resizer against the plain loops, with random images, boxes and sizes. Only the support
 * may be read, and nothing outside the output may be written. The plain loops are compared with Pillow in
 * tests/oracle-resize. */
#include "allocate.h"
#include "faults.h"
#include "resize.h"
#include "stk_test.h"
#include "test_random.h"

static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};
enum { ISAS = sizeof isas / sizeof isas[0], GUARD = 0xa5 };

static stk_error err;

static void *allocated(int64_t bytes)
{
    void *block = malloc((size_t)(bytes ? bytes : 1));

    assert_non_null(block);
    return block;
}

static void fill_random(uint8_t *bytes, int64_t count, uint64_t *state)
{
    for (int64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)stkt_random(state);
}

/* Resizes an image of which only the support is in memory. Rows of input and output are padded by `pad` bytes; the gaps
 * of the output must not change. */
static uint8_t *resized(stki_resizer *resizer, const stki_resize_job *job, const uint8_t *image, int64_t pad)
{
    const stki_resize_support *part;
    const int64_t channels = job->channels, image_row = job->in_width * channels;
    const int64_t height = job->window_height ? job->window_height : job->out_height;
    const int64_t width = job->window_height ? job->window_width : job->out_width, out_row = width * channels + pad;
    uint8_t *in, *out = allocated(out_row * height);
    int64_t in_row;

    memset(out, GUARD, (size_t)(out_row * height));
    assert_ok(stki_resizer_set(resizer, job, &err));
    part = stki_resizer_support(resizer);
    assert_true(part->top >= 0 && part->left >= 0 && part->height > 0 && part->width > 0);
    assert_true(part->top + part->height <= job->in_height && part->left + part->width <= job->in_width);
    in_row = part->width * channels + pad;
    in = allocated(in_row * part->height - pad);
    for (int64_t y = 0; y < part->height; y++)
        memcpy(in + y * in_row, image + (part->top + y) * image_row + part->left * channels,
               (size_t)(part->width * channels));
    if (pad % 2) { /* all rows at once, or a few at a time */
        stki_resizer_run(resizer, in, in_row, out, out_row);
    } else {
        stki_resizer_begin(resizer, in, in_row);
        for (int64_t y = 0, n = 1; y < height; y += n, n = n % 7 + 1) {
            n = n < height - y ? n : height - y;
            stki_resizer_next(resizer, out + y * out_row, out_row, n);
        }
    }
    for (int64_t y = 0; y < height; y++)
        for (int64_t i = width * channels; i < out_row; i++)
            assert_int_equal(out[y * out_row + i], GUARD);
    free(in);
    return out;
}

static stki_resize_job random_job(uint64_t *state, int64_t most)
{
    stki_resize_job job = {.in_height = stkt_random_in(state, 1, most),
                           .in_width = stkt_random_in(state, 1, most),
                           .channels = (int)stkt_random_in(state, 1, 4),
                           .out_height = stkt_random_in(state, 1, most),
                           .out_width = stkt_random_in(state, 1, most),
                           .filter = (enum stki_filter)stkt_random_in(state, 0, STKI_FILTERS - 1)};
    const double in[2] = {(double)job.in_width, (double)job.in_height};

    for (int axis = 0; axis < 2; axis++) {
        double low = 0, high = in[axis];

        if (stkt_random_in(state, 0, 2) > 0) { /* a box with integer or fractional coordinates */
            low = (double)stkt_random_in(state, 0, (int64_t)in[axis] * 256 - 1) / 256;
            high = low + (double)stkt_random_in(state, 1, (int64_t)((in[axis] - low) * 256)) / 256;
        }
        if (stkt_random_in(state, 0, 2) == 0) {
            low = (double)(int64_t)low;
            high = (double)(int64_t)high > low ? (double)(int64_t)high : low + 1;
        }
        job.box[axis] = low;
        job.box[axis + 2] = high;
    }
    return job;
}

static void assert_same_as_ref(stki_resizer *const *resizers, const stki_resize_job *job, const uint8_t *image)
{
    const int64_t pad = job->in_width % 7, bytes = (job->out_width * job->channels + pad) * job->out_height;
    uint8_t *expected = resized(resizers[0], job, image, pad);

    for (int i = 1; i < ISAS; i++) {
        uint8_t *found;

        if (!resizers[i])
            continue;
        found = resized(resizers[i], job, image, pad);
        for (int64_t k = 0; k < bytes; k++)
            if (found[k] != expected[k])
                fail_msg(
                    "%s: byte %lld is %d, ref says %d; %lld x %lld x %d, box %.9g %.9g %.9g %.9g -> %lld x %lld, %s",
                    stki_isa_name(isas[i]), (long long)k, found[k], expected[k], (long long)job->in_height,
                    (long long)job->in_width, job->channels, job->box[0], job->box[1], job->box[2], job->box[3],
                    (long long)job->out_height, (long long)job->out_width, stki_filter_words[job->filter]);
        free(found);
    }
    free(expected);
}

static void create_all(stki_resizer **resizers)
{
    for (int i = 0; i < ISAS; i++) {
        resizers[i] = NULL;
        if (stki_isa_usable(isas[i]))
            assert_ok(stki_resizer_create_isa(isas[i], &resizers[i], &err));
    }
}

static void destroy_all(stki_resizer **resizers)
{
    for (int i = 0; i < ISAS; i++)
        stki_resizer_destroy(resizers[i]);
}

static void test_variants_give_the_reference_bytes(void **unused)
{
    enum { MOST = 150 };
    stki_resizer *resizers[ISAS];
    uint8_t *image = allocated(MOST * MOST * 4);
    uint64_t state = 1;

    (void)unused;
    create_all(resizers);
    for (int round = 0; round < 600; round++) {
        stki_resize_job job = random_job(&state, round % 3 == 0 ? MOST : round % 3 == 1 ? 40 : 12);

        fill_random(image, job.in_height * job.in_width * job.channels, &state);
        assert_same_as_ref(resizers, &job, image);
    }
    destroy_all(resizers);
    free(image);
}

static void test_large_ratios(void **unused)
{
    static const int64_t sizes[][4] = {{2000, 3000, 5, 7}, {3000, 2, 3, 1}, {1, 4000, 1, 3}, {700, 900, 224, 224},
                                       {1, 1, 300, 211},   {2, 3, 500, 3},  {5, 3, 2, 900},  {900, 600, 10, 224},
                                       {65535, 1, 1, 1},   {1, 65535, 1, 2}};
    stki_resizer *resizers[ISAS];
    uint64_t state = 2;

    (void)unused;
    create_all(resizers);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int filter = 0; filter < STKI_FILTERS; filter++)
            for (int channels = 1; channels <= 4; channels += i < 3 ? 2 : 1) {
                stki_resize_job job = {.in_height = sizes[i][0],
                                       .in_width = sizes[i][1],
                                       .channels = channels,
                                       .box = {0, 0, (double)sizes[i][1], (double)sizes[i][0]},
                                       .out_height = sizes[i][2],
                                       .out_width = sizes[i][3],
                                       .filter = (enum stki_filter)filter};
                uint8_t *image = allocated(job.in_height * job.in_width * channels);

                fill_random(image, job.in_height * job.in_width * channels, &state);
                assert_same_as_ref(resizers, &job, image);
                free(image);
            }
    destroy_all(resizers);
}

/* With full contrast, filters with negative lobes exceed the range of a byte on both sides. */
static void test_clamping(void **unused)
{
    stki_resizer *resizers[ISAS];
    uint8_t image[64 * 64 * 3];

    (void)unused;
    create_all(resizers);
    for (int i = 0; i < (int)sizeof image; i++)
        image[i] = (i / 3 / 5 + i / 192 / 5) % 2 ? 255 : 0;
    for (int filter = STKI_FILTER_BOX; filter < STKI_FILTERS; filter++) {
        stki_resize_job job = {.in_height = 64,
                               .in_width = 64,
                               .channels = 3,
                               .box = {0.3, 0.7, 63.1, 62.5},
                               .out_height = 91,
                               .out_width = 77,
                               .filter = (enum stki_filter)filter};
        assert_same_as_ref(resizers, &job, image);
    }
    destroy_all(resizers);
}

/* A window of the result has the same bytes as the whole result, and a smaller support. */
static void test_windows(void **unused)
{
    enum { MOST = 120 };
    uint8_t *image = allocated(MOST * MOST * 4);
    uint64_t state = 7;

    (void)unused;
    fill_random(image, MOST * MOST * 4, &state);
    for (int round = 0; round < 300; round++) {
        stki_resize_job job = random_job(&state, MOST), part = job;
        stki_resizer *resizers[ISAS];

        part.window_top = stkt_random_in(&state, 0, job.out_height - 1);
        part.window_left = stkt_random_in(&state, 0, job.out_width - 1);
        part.window_height = stkt_random_in(&state, 1, job.out_height - part.window_top);
        part.window_width = stkt_random_in(&state, 1, job.out_width - part.window_left);
        create_all(resizers);
        for (int i = 0; i < ISAS; i++) {
            uint8_t *whole, *found;

            if (!resizers[i])
                continue;
            whole = resized(resizers[i], &job, image, 0);
            found = resized(resizers[i], &part, image, 0);
            for (int64_t y = 0; y < part.window_height; y++)
                assert_memory_equal(found + y * part.window_width * job.channels,
                                    whole + ((part.window_top + y) * job.out_width + part.window_left) * job.channels,
                                    (size_t)(part.window_width * job.channels));
            free(whole);
            free(found);
        }
        destroy_all(resizers);
    }
    free(image);
}

static void test_whole_pixels_are_copied(void **unused)
{
    uint64_t state = 3;
    uint8_t image[20 * 30 * 3];
    stki_resizer *resizer;

    (void)unused;
    fill_random(image, sizeof image, &state);
    assert_ok(stki_resizer_create(&resizer, &err));
    for (int filter = 0; filter < STKI_FILTERS; filter++) {
        stki_resize_job job = {20, 30, 3, {4, 5, 14, 12}, 7, 10, (enum stki_filter)filter};
        uint8_t *out = resized(resizer, &job, image, 0);
        const stki_resize_support *part = stki_resizer_support(resizer);

        assert_int_equal(part->top, 5);
        assert_int_equal(part->left, 4);
        assert_int_equal(part->height, 7);
        assert_int_equal(part->width, 10);
        for (int y = 0; y < 7; y++)
            assert_memory_equal(out + y * 30, image + ((y + 5) * 30 + 4) * 3, 30);
        free(out);
    }
    stki_resizer_destroy(resizer);
}

/* A flat image stays flat with every filter, because the coefficients of each pixel add up to one. */
static void test_flat_images_stay_flat(void **unused)
{
    uint64_t state = 4;
    uint8_t image[90 * 90 * 3];
    stki_resizer *resizer;

    (void)unused;
    assert_ok(stki_resizer_create(&resizer, &err));
    for (int round = 0; round < 60; round++) {
        stki_resize_job job = random_job(&state, 90);
        uint8_t value = (uint8_t)stkt_random(&state), *out;

        job.channels = 3;
        memset(image, value, sizeof image);
        out = resized(resizer, &job, image, 0);
        for (int64_t i = 0; i < job.out_height * job.out_width * 3; i++)
            assert_int_equal(out[i], value);
        free(out);
    }
    stki_resizer_destroy(resizer);
}

static void test_refusals(void **unused)
{
    const stki_resize_job good = {10, 20, 3, {0, 0, 20, 10}, 5, 5, STKI_FILTER_BILINEAR};
    stki_resize_job job;
    stki_resizer *resizer;
    static const double boxes[][4] = {{-0.5, 0, 20, 10}, {0, -1, 20, 10}, {0, 0, 20.5, 10},     {0, 0, 20, 11},
                                      {5, 0, 5, 10},     {0, 7, 20, 3},   {0, 0, 0.0 / 0.0, 10}};

    (void)unused;
    assert_ok(stki_resizer_create(&resizer, &err));
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        job = good;
        memcpy(job.box, boxes[i], sizeof job.box);
        assert_status(stki_resizer_set(resizer, &job, &err), STK_E_BAD_SHAPE);
        assert_says("box");
    }
    job = good;
    job.window_left = job.window_height = job.window_width = 4;
    assert_status(stki_resizer_set(resizer, &job, &err), STK_E_BAD_SHAPE);
    assert_says("found the part top 0, left 4");
    for (int i = 0; i < 10; i++) {
        static const int64_t bad[] = {0, 65536};
        int64_t value = bad[i & 1];

        job = good;
        switch (i / 2) {
        case 0:
            job.in_height = value;
            break;
        case 1:
            job.in_width = value;
            break;
        case 2:
            job.out_height = value;
            break;
        case 3:
            job.out_width = value;
            break;
        default:
            job.channels = (int)value;
            break;
        }
        assert_status(stki_resizer_set(resizer, &job, &err), STK_E_BAD_SHAPE);
        assert_says(i < 8 ? "expected 1 to 65535" : "expected 1 to 4");
    }
    assert_ok(stki_resizer_set(resizer, &good, &err)); /* still usable after the error */
    stki_resizer_destroy(resizer);
    stki_resizer_destroy(NULL);
    assert_string_equal(stki_filter_words[STKI_FILTER_BILINEAR], "bilinear");
    assert_null(stki_filter_words[STKI_FILTERS]);
}

/* The n-th allocation fails; the resizer must work afterwards. */
static void test_no_memory(void **unused)
{
    const stki_resize_job jobs[] = {{60, 80, 3, {0, 0, 80, 60}, 22, 33, STKI_FILTER_LANCZOS},
                                    {60, 80, 3, {0, 0, 80, 60}, 90, 70, STKI_FILTER_NEAREST}};
    uint64_t state = 5;
    uint8_t image[60 * 80 * 3];

    (void)unused;
    fill_random(image, sizeof image, &state);
    for (int j = 0; j < 2; j++)
        for (int64_t n = 1;; n++) {
            stki_resizer *resizer;
            stk_status status;
            uint8_t *out, *expected;

            stki_memory_fail_at(n);
            status = stki_resizer_create(&resizer, &err);
            if (status == STK_OK)
                status = stki_resizer_set(resizer, &jobs[j], &err);
            else
                resizer = NULL;
            stki_memory_fail_at(0);
            if (status == STK_OK) {
                stki_resizer_destroy(resizer);
                assert_true(n > 3);
                break;
            }
            assert_int_equal(status, STK_E_MEMORY);
            if (!resizer)
                continue;
            out = resized(resizer, &jobs[j], image, 0);
            stki_resizer_destroy(resizer);
            assert_ok(stki_resizer_create(&resizer, &err));
            expected = resized(resizer, &jobs[j], image, 0);
            assert_memory_equal(out, expected, (size_t)(jobs[j].out_height * jobs[j].out_width * 3));
            stki_resizer_destroy(resizer);
            free(expected);
            free(out);
        }
}

/* A resizer that was used before allocates nothing for another box. */
static void test_warm_resizer_allocates_nothing(void **unused)
{
    stki_memory_stats before, after;
    stki_resizer *resizer;
    uint64_t state = 6;

    (void)unused;
    assert_ok(stki_resizer_create(&resizer, &err));
    for (int round = 0; round < 200; round++) {
        stki_resize_job job = {375, 500, 3, {0, 0, 500, 375}, 224, 224, STKI_FILTER_BILINEAR};

        if (round == 1)
            stki_memory_read(STKI_MEM_HOST, &before);
        if (round > 0) {
            job.box[0] = (double)stkt_random_in(&state, 0, 100);
            job.box[3] = (double)stkt_random_in(&state, 100, 375);
        }
        assert_ok(stki_resizer_set(resizer, &job, &err));
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.total_allocations, before.total_allocations);
    stki_resizer_destroy(resizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants_give_the_reference_bytes),
        cmocka_unit_test(test_large_ratios),
        cmocka_unit_test(test_clamping),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_whole_pixels_are_copied),
        cmocka_unit_test(test_flat_images_stay_flat),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_warm_resizer_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
