/* Tests of decoding JPEG images: all kinds of them against plain libjpeg, parts against the whole image, and errors of
 * damaged ones. */
#include "allocate.h"
#include "decode.h"
#include "faults.h"
#include "jpeg_header.h"
#include "jpeg_make.h"
#include "stk_test.h"
#include "test_random.h"

static stki_scratch scratch;

static const stkt_jpeg kinds[] = {
    {.width = 61, .height = 47},
    {.width = 61, .height = 47, .h = 2},
    {.width = 61, .height = 47, .h = 2, .v = 2},
    {.width = 64, .height = 48, .h = 2, .v = 2},
    {.width = 61, .height = 47, .v = 2}, /* row J12 */
    {.width = 99, .height = 47, .h = 4},
    {.width = 99, .height = 47, .h = 4, .v = 2},
    {.width = 99, .height = 70, .h = 3, .v = 1},
    {.width = 61, .height = 47, .h = 2, .v = 2, .progressive = true},
    {.width = 61, .height = 47, .progressive = true},
    {.width = 121, .height = 97, .progressive = true, .dc_only = true},
    {.width = 121, .height = 97, .h = 2, .v = 2, .progressive = true, .dc_only = true},
    {.width = 121, .height = 97, .channels = 1, .progressive = true, .dc_only = true},
    {.width = 61, .height = 47, .h = 2, .v = 2, .restart = 3},
    {.width = 61, .height = 47, .h = 2, .v = 2, .arithmetic = true}, /* row J15 */
    {.width = 61, .height = 47, .arithmetic = true, .progressive = true},
    {.width = 61, .height = 47, .channels = 1},
    {.width = 61, .height = 47, .channels = 1, .h = 2, .v = 2},
    {.width = 61, .height = 47, .stored = JCS_RGB},
    {.width = 1, .height = 1, .h = 2, .v = 2},
    {.width = 3, .height = 5, .h = 2, .v = 2},
    {.width = 17, .height = 33, .h = 2, .v = 2},
    {.width = 16, .height = 16, .h = 2, .v = 2, .quality = 30},
    {.width = 18, .height = 35, .h = 2, .v = 2}, /* one column of chroma in the last MCU */
    {.width = 35, .height = 18, .h = 2},
    {.width = 36, .height = 19, .h = 2, .v = 2},
    {.width = 200, .height = 9, .h = 2, .v = 2},
    {.width = 9, .height = 200, .h = 2, .v = 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const char *kind_text(const stkt_jpeg *k)
{
    static char text[160];

    snprintf(text, sizeof text, "%dx%d, %d channels, %dx%d, stored %d%s%s%s", k->width, k->height, k->channels, k->h,
             k->v, (int)k->stored, k->progressive ? ", progressive" : "", k->dc_only ? ", dc only" : "",
             k->arithmetic ? ", arithmetic" : "");
    return text;
}

static stk_status sample(stkt_bytes file, const stki_decode_opts *opts, const stki_want *want, stk_tensor *out,
                         stk_error *err)
{
    return stki_image_sample(file.data, (int64_t)file.size, opts, want, &scratch, "some/file.jpg", 7, out, err);
}

/* Compares with the part of `whole`, `width` pixels wide, that begins at (top, left). */
static void check_pixels(const stk_tensor *got, const uint8_t *whole, int64_t width, int64_t top, int64_t left,
                         const char *what)
{
    int64_t c = got->shape[2];

    for (int64_t y = 0; y < got->shape[0]; y++)
        if (memcmp((const uint8_t *)got->data + y * got->strides[0], whole + ((top + y) * width + left) * c,
                   (size_t)(got->shape[1] * c)))
            fail_msg("%s: row %d of a part at %d,%d differs from the whole image", what, (int)y, (int)top, (int)left);
}

static void test_every_kind_whole(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        uint8_t *rgb = stkt_jpeg_plain(file, JCS_RGB, 1, false), *gray = stkt_jpeg_plain(file, JCS_GRAYSCALE, 1, false);
        stki_decode_opts opts = {0};
        int64_t shape[3];
        stk_tensor got;
        stk_error err;

        assert_ok(sample(file, &opts, NULL, &got, &err));
        assert_int_equal(got.dtype, STK_U8);
        assert_int_equal(got.ndim, 3);
        assert_int_equal(got.shape[0], kinds[i].height);
        assert_int_equal(got.shape[1], kinds[i].width);
        assert_int_equal(got.shape[2], 3);
        assert_true(got.flags & STK_TENSOR_READONLY);
        check_pixels(&got, rgb, kinds[i].width, 0, 0, kind_text(&kinds[i]));
        assert_ok(stki_image_shape(file.data, (int64_t)file.size, &opts, shape, &err));
        assert_memory_equal(shape, got.shape, sizeof shape);
        if (kinds[i].channels == 1) /* row J13 */
            for (int64_t p = 0; p < kinds[i].width * kinds[i].height; p++)
                assert_true(rgb[3 * p] == gray[p] && rgb[3 * p + 1] == gray[p] && rgb[3 * p + 2] == gray[p]);
        opts.gray = true;
        assert_ok(sample(file, &opts, NULL, &got, &err));
        assert_int_equal(got.shape[2], 1);
        check_pixels(&got, gray, kinds[i].width, 0, 0, kind_text(&kinds[i]));
        free(rgb);
        free(gray);
        free(file.data);
    }
}

static int64_t below(uint64_t *random, int64_t bound)
{
    return (int64_t)(stkt_random(random) % (uint64_t)bound);
}

/* The returned part must contain the requested one. */
static void check_covers(const stki_want *want, const stki_given *given, const stk_tensor *got)
{
    int64_t top = given->scale ? given->top : 0, left = given->scale ? given->left : 0;
    int64_t scale = given->scale ? given->scale : 1;

    assert_true(top <= want->start[0] / scale && left <= want->start[1] / scale);
    assert_true((top + got->shape[0]) * scale >= want->start[0] + want->length[0] ||
                top + got->shape[0] == given->whole_height);
    assert_true((left + got->shape[1]) * scale >= want->start[1] + want->length[1] ||
                left + got->shape[1] == given->whole_width);
}

static void any_box(uint64_t *random, int64_t height, int64_t width, stki_want *want)
{
    want->ndim = 3;
    want->length[0] = 1 + below(random, below(random, 3) ? height : 3 < height ? 3 : height);
    want->length[1] = 1 + below(random, below(random, 3) ? width : 3 < width ? 3 : width);
    want->start[0] = below(random, height - want->length[0] + 1);
    want->start[1] = below(random, width - want->length[1] + 1);
    want->length[2] = 3;
}

static void test_parts_are_those_of_the_whole(void **state)
{
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        for (int gray = 0; gray < 2; gray++) {
            stki_decode_opts opts = {.gray = gray};
            uint8_t *whole = stkt_jpeg_plain(file, gray ? JCS_GRAYSCALE : JCS_RGB, 1, false);

            for (int n = 0; n < 200; n++) {
                stki_given given = {0};
                stki_want want = {.given = &given, .enough_height = 1, .enough_width = 1};
                stk_tensor got;
                stk_error err;
                any_box(&random, kinds[i].height, kinds[i].width, &want);
                assert_ok(sample(file, &opts, &want, &got, &err));
                check_covers(&want, &given, &got);
                assert_true(given.scale <= 1); /* scaling is never exact, so it is not used */
                check_pixels(&got, whole, kinds[i].width, given.scale ? given.top : 0, given.scale ? given.left : 0,
                             kind_text(&kinds[i]));
            }
            free(whole);
        }
        free(file.data);
    }
}

/* An exact part is exactly the requested box; a box beyond the image is an error. */
static void test_parts_are_small(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 640, .height = 480, .h = 2, .v = 2});
    stki_decode_opts opts = {0};
    stki_given given = {0};
    stki_want want = {.ndim = 3, .start = {100, 200}, .length = {50, 60, 3}, .given = &given};
    stk_tensor got;
    stk_error err;

    (void)state;
    assert_ok(sample(file, &opts, &want, &got, &err));
    assert_int_equal(given.scale, 1);
    assert_int_equal(given.top, 100);
    assert_int_equal(given.left, 200);
    assert_int_equal(got.shape[0], 50);
    assert_int_equal(got.shape[1], 60);
    assert_int_equal(given.whole_height, 480);
    assert_int_equal(given.whole_width, 640);
    want.start[1] = 600;
    assert_status(sample(file, &opts, &want, &got, &err), STK_E_RANGE);
    assert_says("640");
    free(file.data);
}

static void test_fast_parts(void **state)
{
    uint64_t random = 6;

    (void)state;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        uint8_t *scaled[9] = {NULL};
        for (int s = 1; s <= 8; s *= 2)
            scaled[s] = stkt_jpeg_plain(file, JCS_RGB, s, true);
        for (int n = 0; n < 200; n++) {
            stki_decode_opts opts = {.fast = true};
            stki_given given = {0};
            stki_want want = {.given = &given};
            int64_t scale, width;
            stk_tensor got;
            stk_error err;
            any_box(&random, kinds[i].height, kinds[i].width, &want);
            want.enough_height = 1 + below(&random, want.length[0]);
            want.enough_width = 1 + below(&random, want.length[1]);
            assert_ok(sample(file, &opts, &want, &got, &err));
            check_covers(&want, &given, &got);
            scale = given.scale ? given.scale : 1;
            width = (kinds[i].width + scale - 1) / scale;
            assert_true(want.length[0] / scale >= want.enough_height && want.length[1] / scale >= want.enough_width);
            assert_true(scale == 8 || want.length[0] / (2 * scale) < want.enough_height ||
                        want.length[1] / (2 * scale) < want.enough_width);
            assert_true(!given.scale || given.whole_width == width);
            check_pixels(&got, scaled[scale], width, given.scale ? given.top : 0, given.scale ? given.left : 0,
                         kind_text(&kinds[i]));
        }
        for (int s = 1; s <= 8; s *= 2)
            free(scaled[s]);
        free(file.data);
    }
}

/* ---- orientation ---- */

static stkt_bytes with_orientation(stkt_bytes file, int orientation)
{
    uint8_t app1[] = {0xFF, 0xE1, 0, 34, 'E', 'x',  'i',  'f', 0, 0, 'M', 'M', 0, 42, 0,
                      0,    0,    8, 0,  1,   0x01, 0x12, 0,   3, 0, 0,   0,   1, 0,  (uint8_t)orientation,
                      0,    0,    0, 0,  0,   0};

    return stkt_bytes_edit(file, 2, 0, app1, sizeof app1);
}

/* The pixel of the upright image at (y, x), for each orientation; `s` is the stored image, H x W. */
static const uint8_t *upright_pixel(const uint8_t *s, int64_t H, int64_t W, int orientation, int64_t y, int64_t x)
{
    int64_t at = 0;

    switch (orientation) {
    case 1:
        at = y * W + x;
        break;
    case 2:
        at = y * W + (W - 1 - x);
        break;
    case 3:
        at = (H - 1 - y) * W + (W - 1 - x);
        break;
    case 4:
        at = (H - 1 - y) * W + x;
        break;
    case 5:
        at = x * W + y;
        break;
    case 6:
        at = (H - 1 - x) * W + y;
        break;
    case 7:
        at = (H - 1 - x) * W + (W - 1 - y);
        break;
    case 8:
        at = x * W + (W - 1 - y);
        break;
    }
    return s + at * 3;
}

static void test_orientation(void **state) /* row J06 */
{
    enum { H = 24, W = 37 };
    stkt_bytes plain = stkt_jpeg_make(&(stkt_jpeg){.width = W, .height = H, .h = 2, .v = 2});
    uint8_t *stored = stkt_jpeg_plain(plain, JCS_RGB, 1, false);
    uint64_t random = 7;

    (void)state;
    for (int o = 1; o <= 8; o++) {
        stkt_bytes file = with_orientation(plain, o);
        stki_decode_opts opts = {0};
        stk_tensor got;
        stk_error err;

        assert_ok(sample(file, &opts, NULL, &got, &err)); /* disabled: as stored */
        check_pixels(&got, stored, W, 0, 0, "as stored");
        opts.upright = true;
        for (int n = 0; n < 100; n++) {
            int64_t height = o >= 5 ? W : H, width = o >= 5 ? H : W, top, left;
            stki_given given = {0};
            stki_want want = {.given = &given};
            any_box(&random, height, width, &want);
            assert_ok(sample(file, &opts, n ? &want : NULL, &got, &err));
            if (n == 0)
                assert_true(got.shape[0] == height && got.shape[1] == width);
            if (n > 0)
                check_covers(&want, &given, &got);
            top = given.scale ? given.top : 0;
            left = given.scale ? given.left : 0;
            for (int64_t y = 0; y < got.shape[0]; y++)
                for (int64_t x = 0; x < got.shape[1]; x++)
                    assert_memory_equal((const uint8_t *)got.data + y * got.strides[0] + x * got.strides[1],
                                        upright_pixel(stored, H, W, o, top + y, left + x), 3);
        }
        free(file.data);
    }
    free(stored);
    free(plain.data);
}

/* Rotated and scaled: the returned part covers the box, even if the orientation reverses an axis. */
static void test_fast_orientation(void **state)
{
    enum { H = 150, W = 211 };
    stkt_bytes plain = stkt_jpeg_make(&(stkt_jpeg){.width = W, .height = H, .h = 2, .v = 2, .restart = 2});
    uint8_t *scaled[9] = {NULL};
    uint64_t random = 8;

    (void)state;
    for (int s = 1; s <= 8; s *= 2)
        scaled[s] = stkt_jpeg_plain(plain, JCS_RGB, s, true);
    for (int o = 1; o <= 8; o++) {
        stkt_bytes file = with_orientation(plain, o);
        for (int n = 0; n < 100; n++) {
            int64_t height = o >= 5 ? W : H, width = o >= 5 ? H : W, s, hs, ws;
            stki_decode_opts opts = {.fast = true, .upright = true};
            stki_given given = {0};
            stki_want want = {.given = &given};
            stk_tensor got;
            stk_error err;

            any_box(&random, height, width, &want);
            want.enough_height = 1 + below(&random, want.length[0]) / 4;
            want.enough_width = 1 + below(&random, want.length[1]) / 4;
            assert_ok(sample(file, &opts, &want, &got, &err));
            check_covers(&want, &given, &got);
            s = given.scale ? given.scale : 1;
            hs = (H + s - 1) / s;
            ws = (W + s - 1) / s;
            if (s > 1) {
                /* Counted from the end at which the stored image begins, each row of the box must lie in a returned
                 * row. */
                int64_t rest = given.whole_height * s - height; /* rows of the last scaled row beyond the image */
                int64_t low = want.start[0], high = want.start[0] + want.length[0];
                rest = o == 3 || o == 4 || o == 7 || o == 8 ? rest : 0;
                assert_true(given.top * s <= low + rest);
                assert_true((given.top + got.shape[0]) * s >= high + rest ||
                            given.top + got.shape[0] == given.whole_height);
            }
            for (int64_t y = 0; y < got.shape[0]; y++)
                for (int64_t x = 0; x < got.shape[1]; x++)
                    assert_memory_equal((const uint8_t *)got.data + y * got.strides[0] + x * got.strides[1],
                                        upright_pixel(scaled[s], hs, ws, o, (given.scale ? given.top : 0) + y,
                                                      (given.scale ? given.left : 0) + x),
                                        3);
        }
        free(file.data);
    }
    for (int s = 1; s <= 8; s *= 2)
        free(scaled[s]);
    free(plain.data);
}

/* ---- four components ---- */

static int worst_distance(const stk_tensor *got, const uint8_t *expected)
{
    int worst = 0;

    for (int64_t y = 0; y < got->shape[0]; y++)
        for (int64_t i = 0; i < got->shape[1] * 3; i++) {
            int d = abs(((const uint8_t *)got->data)[y * got->strides[0] + i] - *expected++);
            worst = d > worst ? d : worst;
        }
    return worst;
}

/* Smooth colors as inks, stored inverted as Adobe's programs do, and as the RGB colors that they print. */
static void make_inks(uint8_t *inks, uint8_t *rgb, int height, int width)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            double k = 1 - 0.3 * y / height, ink[3] = {1 - 0.5 * x / width, 1 - 0.4 * y / height, 0.8};
            for (int c = 0; c < 3; c++) {
                inks[c] = (uint8_t)(255 * ink[c] + 0.5);
                *rgb++ = (uint8_t)(255 * ink[c] * k + 0.5);
            }
            inks[3] = (uint8_t)(255 * k + 0.5);
            inks += 4;
        }
}

static void test_cmyk(void **state) /* rows J01, J02, J03 */
{
    enum { H = 40, W = 56 };
    static uint8_t inks[H * W * 4], rgb[H * W * 3];
    static const J_COLOR_SPACE spaces[] = {JCS_CMYK, JCS_YCCK};

    (void)state;
    make_inks(inks, rgb, H, W);
    for (int i = 0; i < 2; i++) {
        stkt_bytes file = stkt_jpeg_make(
            &(stkt_jpeg){.width = W, .height = H, .channels = 4, .stored = spaces[i], .quality = 98, .pixels = inks});
        long adobe = stkt_jpeg_find(file, 0xEE);
        stki_decode_opts opts = {0};
        stki_want want = {.ndim = 3, .start = {10, 20}, .length = {11, 13, 3}};
        stki_given given = {0};
        stkt_bytes without;
        static uint8_t whole[H * W * 3];
        stk_tensor got;
        stk_error err;

        assert_true(adobe > 0);
        assert_ok(sample(file, &opts, NULL, &got, &err));
        assert_true(worst_distance(&got, rgb) <= 8);
        for (int64_t y = 0; y < H; y++)
            memcpy(whole + y * W * 3, (const uint8_t *)got.data + y * got.strides[0], W * 3);
        want.given = &given;
        assert_ok(sample(file, &opts, &want, &got, &err));
        check_pixels(&got, whole, W, given.top, given.left, "a part of a CMYK image");
        opts.gray = true;
        assert_ok(sample(file, &opts, NULL, &got, &err));
        assert_int_equal(got.shape[2], 1);
        for (int64_t p = 0; p < H * W; p++) {
            double l = 0.299 * whole[3 * p] + 0.587 * whole[3 * p + 1] + 0.114 * whole[3 * p + 2];
            assert_true(abs((int)((const uint8_t *)got.data)[p] - (int)(l + 0.5)) <= 1);
        }
        /* Without the Adobe marker, four components are CMYK, inverted as with the marker. */
        without = stkt_bytes_edit(file, (size_t)adobe, 16, NULL, 0);
        opts.gray = false;
        assert_ok(sample(without, &opts, NULL, &got, &err));
        if (spaces[i] == JCS_CMYK)
            check_pixels(&got, whole, W, 0, 0, "CMYK without a marker");
        free(without.data);
        free(file.data);
    }
}

static void test_two_components(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 9, .height = 9});
    long frame = stkt_jpeg_find(file, 0xC0);
    uint8_t two[] = {0xFF, 0xC0, 0, 14, 8, 0, 9, 0, 9, 2, 1, 0x11, 0, 2, 0x11, 1};
    stkt_bytes other = stkt_bytes_edit(file, (size_t)frame, 19, two, sizeof two);
    stki_decode_opts opts = {0};
    stk_tensor got;
    stk_error err;

    (void)state;
    assert_status(sample(other, &opts, NULL, &got, &err), STK_E_UNSUPPORTED);
    assert_says("components");
    free(other.data);
    free(file.data);
}

/* ---- damaged images ---- */

static void check_still_good(void)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]);
    uint8_t *whole = stkt_jpeg_plain(file, JCS_RGB, 1, false);
    stki_decode_opts opts = {0};
    stk_tensor got;
    stk_error err;

    assert_ok(sample(file, &opts, NULL, &got, &err));
    check_pixels(&got, whole, kinds[2].width, 0, 0, "a good image after a bad one");
    free(whole);
    free(file.data);
}

static void test_warnings(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]), broken[3];
    uint8_t *whole = stkt_jpeg_plain(file, JCS_RGB, 1, false);
    static const uint8_t stray[2] = {0x12, 0x34};

    (void)state;
    broken[0] = stkt_bytes_edit(file, file.size - 2, 2, NULL, 0);                       /* row J09 */
    broken[1] = stkt_bytes_edit(file, (size_t)stkt_jpeg_find(file, 0xDB), 0, stray, 2); /* row J10 */
    broken[2] = stkt_bytes_edit(file, file.size - 60, 60, NULL, 0);
    for (int i = 0; i < 3; i++) {
        stki_decode_opts opts = {0};
        int64_t before = stki_counted(&scratch.warnings);
        stk_tensor got;
        stk_error err;

        assert_status(sample(broken[i], &opts, NULL, &got, &err), i == 1 ? STK_E_CORRUPT : STK_E_TRUNCATED);
        assert_says("some/file.jpg: record 7: ");
        assert_true(err.offset > 0 && err.offset <= (int64_t)broken[i].size);
        assert_non_null(strstr(err.found, i == 1 ? "extraneous" : "Premature end"));
        assert_true(err.expected[0] != '\0');
        assert_says(i == 1 ? "extraneous" : "Premature end");
        assert_int_equal(err.record, 7);
        assert_string_equal(err.file, "some/file.jpg");
        assert_int_equal(stki_counted(&scratch.warnings), before);
        check_still_good();
        opts.accept_warnings = true;
        assert_ok(sample(broken[i], &opts, NULL, &got, &err));
        assert_int_equal(stki_counted(&scratch.warnings) - before, 1);
        if (i < 2)
            check_pixels(&got, whole, kinds[2].width, 0, 0, "accepted");
        else
            assert_memory_equal(got.data, whole, 16 * 61 * 3); /* the decoded part is right */
        free(broken[i].data);
    }
    free(whole);
    free(file.data);
}

/* Row J09 for every kind: decoders that read ahead notice the missing end mark; for others, it must be checked. */
static void test_no_end_mark(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        stki_decode_opts opts = {0};
        stk_tensor got;
        stk_error err;

        file.size -= 2;
        assert_status(sample(file, &opts, NULL, &got, &err), STK_E_TRUNCATED);
        free(file.data);
    }
}

static void test_other_files(void **state) /* row J17 */
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *says;
    } files[] = {
        {"\x1f\x8b\x08\0\0\0\0\0\0\3", 10, "a gzip file"},
        {"RIFF\x24\0\0\0WEBPVP8 ", 16, "a WebP image"},
        {"GIF89a\1\0\1\0", 10, "a GIF image"},
        {"BM\0\0\0\0", 6, "a BMP image"},
        {"<!DOCTYPE html>", 15, "an HTML page"},
        {"\0\0\0\x0cJXL \r\n\x87\n", 12, "a JPEG XL image"},
        {"hello", 5, "an unknown kind of file"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        stkt_bytes file = {(uint8_t *)(uintptr_t)files[i].bytes, files[i].count};
        stki_decode_opts opts = {0};
        stk_tensor got;
        stk_error err;
        assert_status(sample(file, &opts, NULL, &got, &err), STK_E_UNSUPPORTED);
        assert_says(files[i].says);
        assert_says("some/file.jpg");
    }
}

static void test_headers_refused(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]);
    size_t frame = (size_t)stkt_jpeg_find(file, 0xC0);
    static const struct {
        size_t at; /* relative to the frame marker */
        uint8_t value[2];
        size_t count;
        stk_status status;
        const char *says;
    } changes[] = {
        {1, {0xC3}, 1, STK_E_UNSUPPORTED, "lossless"},
        {1, {0xCB}, 1, STK_E_UNSUPPORTED, "lossless"},
        {1, {0xC5}, 1, STK_E_UNSUPPORTED, "hierarchical"},
        {4, {12}, 1, STK_E_UNSUPPORTED, "12 bits"},
        {5, {0, 0}, 2, STK_E_UNSUPPORTED, "height 0"}, /* row J19 */
        {7, {0, 0}, 2, STK_E_CORRUPT, "width 0"},
        {9, {9}, 1, STK_E_CORRUPT, "components"},
        {11, {0}, 1, STK_E_CORRUPT, "sampling"},
        {11, {0x51}, 1, STK_E_CORRUPT, "sampling"},
        {2, {0, 1}, 2, STK_E_CORRUPT, "invalid segment length"},
        {1, {0xE5}, 1, STK_E_CORRUPT, "frame header"},
        {1, {0xD9}, 1, STK_E_CORRUPT, "no pixels"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        stkt_bytes bad =
            stkt_bytes_edit(file, frame + changes[i].at, changes[i].count, changes[i].value, changes[i].count);
        stki_decode_opts opts = {.accept_warnings = true};
        stk_tensor got;
        stk_error err;
        assert_status(sample(bad, &opts, NULL, &got, &err), changes[i].status);
        assert_says(changes[i].says);
        check_still_good();
        free(bad.data);
    }
    free(file.data);
}

static void test_tables_of_the_previous_image(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]);
    size_t tables = (size_t)stkt_jpeg_find(file, 0xDB);
    size_t length = 2 + (size_t)(file.data[tables + 2] << 8 | file.data[tables + 3]);
    stkt_bytes bad = stkt_bytes_edit(file, tables, length, NULL, 0);
    stki_decode_opts opts = {.accept_warnings = true};
    stk_tensor got;
    stk_error err;

    (void)state;
    for (int i = 0; i < 2; i++) {
        check_still_good();
        assert_status(sample(bad, &opts, NULL, &got, &err), STK_E_CORRUPT);
        assert_says("Quantization table");
    }
    free(bad.data);
    free(file.data);
}

static void test_size_is_not_trusted(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]);
    size_t frame = (size_t)stkt_jpeg_find(file, 0xC0);
    stki_memory_stats before, after;
    stk_error err;
    stk_tensor got;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int i = 0; i < 2; i++) {
        static const uint8_t sizes[2][4] = {{0xFF, 0xDC, 0xFF, 0xDC}, {0x20, 0, 0x20, 0}}; /* 65500, 8192 */
        stkt_bytes bad = stkt_bytes_edit(file, frame + 5, 4, sizes[i], 4);
        stki_decode_opts opts = {.accept_warnings = true, .max_bytes = i ? INT64_C(1) << 40 : 0};
        assert_status(sample(bad, &opts, NULL, &got, &err), i ? STK_E_TRUNCATED : STK_E_LIMIT);
        assert_says(i ? "8192x8192" : "max_bytes");
        free(bad.data);
    }
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(after.bytes - before.bytes < 2000000);
    {
        stki_decode_opts opts = {.max_bytes = 61 * 47 * 3 - 1};
        assert_status(sample(file, &opts, NULL, &got, &err), STK_E_LIMIT);
        opts.max_bytes++;
        assert_ok(sample(file, &opts, NULL, &got, &err));
    }
    free(file.data);
}

static bool is_class_of_files(stk_status status)
{
    return status == STK_E_CORRUPT || status == STK_E_TRUNCATED || status == STK_E_UNSUPPORTED || status == STK_E_LIMIT;
}

static void test_cut_anywhere(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i == 0 ? 2 : i == 1 ? 8 : 16]);
        for (size_t length = 0; length < file.size; length++) {
            uint8_t *exact = malloc(length ? length : 1); /* ASan detects reads of one byte too many */
            stkt_bytes cut = {memcpy(exact, file.data, length), length};
            stki_decode_opts opts = {0};
            stk_tensor got;
            stk_error err;
            stk_status status = sample(cut, &opts, NULL, &got, &err);
            if (status != STK_E_TRUNCATED && status != STK_E_CORRUPT)
                fail_msg("truncated to %zu of %zu bytes: %s", length, file.size, stk_status_name(status));
            opts.accept_warnings = true;
            status = sample(cut, &opts, NULL, &got, &err);
            assert_true(status == STK_OK || is_class_of_files(status));
            free(exact);
        }
        free(file.data);
    }
    check_still_good();
}

static void test_changed_anywhere(void **state)
{
    uint64_t random = 9;

    (void)state;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        for (int n = 0; n < 150; n++) {
            size_t at = (size_t)below(&random, (int64_t)file.size);
            uint8_t was = file.data[at];
            stki_decode_opts opts = {.accept_warnings = n & 1, .upright = n & 2, .gray = n & 4, .max_bytes = 1 << 20};
            stki_given given = {0};
            stki_want want = {.given = &given};
            stk_tensor got;
            stk_error err;
            stk_status status;
            any_box(&random, kinds[i].height, kinds[i].width, &want);
            file.data[at] = (uint8_t)stkt_random(&random);
            status = sample(file, &opts, n & 8 ? &want : NULL, &got, &err);
            assert_true(status == STK_OK || status == STK_E_RANGE || is_class_of_files(status));
            file.data[at] = was;
        }
        free(file.data);
    }
    check_still_good();
}

/* A progressive image may repeat a scan without limit, which must not keep a worker busy. */
static void test_too_many_scans(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 16, .height = 16, .channels = 1, .progressive = true});
    stkt_bytes many = {malloc(file.size + 600 * 64), 0};
    size_t scan = (size_t)stkt_jpeg_find(file, 0xDA);
    static const uint8_t again[] = {0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0x00, 0x00};
    stki_decode_opts opts = {.accept_warnings = true};
    stk_tensor got;
    stk_error err;

    (void)state;
    memcpy(many.data, file.data, scan);
    many.size = scan;
    for (int i = 0; i < 600; i++) {
        memcpy(many.data + many.size, again, sizeof again);
        many.size += sizeof again;
    }
    assert_status(sample(many, &opts, NULL, &got, &err), STK_E_LIMIT);
    assert_says("scans");
    free(many.data);
    free(file.data);
}

static void test_memory_fails(void **state)
{
    stkt_bytes plain = stkt_jpeg_make(&kinds[2]), file = with_orientation(plain, 6);
    stki_decode_opts opts = {.upright = true};

    (void)state;
    for (int n = 1;; n++) {
        stki_scratch fresh;
        stk_tensor got;
        stk_error err;
        stk_status status;
        stki_scratch_init(&fresh);
        stki_memory_fail_at(n);
        status = stki_image_sample(file.data, (int64_t)file.size, &opts, NULL, &fresh, "f", 0, &got, &err);
        stki_memory_fail_at(0);
        stki_scratch_fini(&fresh);
        if (status == STK_OK) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
    }
    free(file.data);
    free(plain.data);
}

static void test_nothing_is_allocated_when_warm(void **state)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[2]);
    stki_memory_stats before, after;
    stki_decode_opts opts = {.upright = true};
    stk_tensor got;
    stk_error err;

    (void)state;
    assert_ok(sample(file, &opts, NULL, &got, &err));
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int i = 0; i < 3; i++)
        assert_ok(sample(file, &opts, NULL, &got, &err));
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(before.total_allocations, after.total_allocations);
    free(file.data);
}

static int setup(void **state)
{
    (void)state;
    stki_scratch_init(&scratch);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stki_scratch_fini(&scratch);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_whole),
        cmocka_unit_test(test_parts_are_those_of_the_whole),
        cmocka_unit_test(test_parts_are_small),
        cmocka_unit_test(test_fast_parts),
        cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_fast_orientation),
        cmocka_unit_test(test_cmyk),
        cmocka_unit_test(test_two_components),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_no_end_mark),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_headers_refused),
        cmocka_unit_test(test_tables_of_the_previous_image),
        cmocka_unit_test(test_size_is_not_trusted),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_changed_anywhere),
        cmocka_unit_test(test_too_many_scans),
        cmocka_unit_test(test_memory_fails),
        cmocka_unit_test(test_nothing_is_allocated_when_warm),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
