/* Tests of decoding PNG images of every kind, which are built by hand, whole and in part, and of errors of damaged
 * ones. */
#include "allocate.h"
#include "decode.h"
#include "faults.h"
#include "png_header.h"
#include "png_make.h"
#include "stk_test.h"
#include "test_random.h"

static stki_scratch scratch;

static const struct {
    int bits, type;
} kinds[] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3},
             {2, 3}, {4, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static stk_status sample(stkt_bytes file, const stki_decode_opts *opts, const stki_want *want, stk_tensor *out,
                         stk_error *err)
{
    return stki_image_sample(file.data, (int64_t)file.size, opts, want, &scratch, "some/file.png", 7, out, err);
}

static int luma(const stkt_png *o, int y, int x)
{
    return (stkt_png_expected(o, y, x, 0) * 19595 + stkt_png_expected(o, y, x, 1) * 38470 +
            stkt_png_expected(o, y, x, 2) * 7471 + 32768) >>
           16;
}

static void check(const stkt_png *o, const stk_tensor *got, int top, int left)
{
    for (int y = 0; y < got->shape[0]; y++)
        for (int x = 0; x < got->shape[1]; x++) {
            const uint8_t *pixel = (const uint8_t *)got->data + y * got->strides[0] + x * got->strides[1];
            if (got->shape[2] == 1)
                assert_int_equal(pixel[0], luma(o, top + y, left + x));
            else
                for (int c = 0; c < 3; c++)
                    if (pixel[c] != stkt_png_expected(o, top + y, left + x, c))
                        fail_msg("%d bits, type %d%s: row %d, column %d, channel %d: found %d, expected %d", o->bits,
                                 o->type, o->interlaced ? ", interlaced" : "", top + y, left + x, c, pixel[c],
                                 stkt_png_expected(o, top + y, left + x, c));
        }
}

static void test_every_kind(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS * 2; i++)
        for (int gray = 0; gray < 2; gray++) {
            static const int sizes[][2] = {{23, 37}, {1, 1}, {3, 9}, {8, 8}};
            for (int s = 0; s < 4; s++) {
                stkt_png o = {.width = sizes[s][1],
                              .height = sizes[s][0],
                              .bits = kinds[i / 2].bits,
                              .type = kinds[i / 2].type,
                              .interlaced = i & 1};
                stkt_bytes file = stkt_png_make(&o);
                stki_decode_opts opts = {.gray = gray};
                stk_tensor got;
                stk_error err;

                assert_ok(sample(file, &opts, NULL, &got, &err));
                assert_int_equal(got.shape[0], o.height);
                assert_int_equal(got.shape[1], o.width);
                assert_int_equal(got.shape[2], gray ? 1 : 3);
                check(&o, &got, 0, 0);
                free(file.data);
            }
        }
}

static void test_parts(void **state)
{
    uint64_t random = 3;

    (void)state;
    for (int n = 0; n < 300; n++) {
        stkt_png o = {.width = 41, .height = 29, .bits = 8, .type = n % 2 ? 2 : 3, .interlaced = n % 5 == 0};
        stkt_bytes file = stkt_png_make(&o);
        stki_decode_opts opts = {.gray = n % 3 == 0, .fast = n % 7 == 0};
        stki_given given = {0};
        stki_want want = {.ndim = 3, .enough_height = 1, .enough_width = 1, .given = &given};
        int64_t top;
        stk_tensor got;
        stk_error err;

        want.start[0] = stkt_random_in(&random, 0, 28);
        want.length[0] = stkt_random_in(&random, 1, 29 - want.start[0]);
        want.start[1] = stkt_random_in(&random, 0, 40);
        want.length[1] = stkt_random_in(&random, 1, 41 - want.start[1]);
        want.length[2] = 3;
        assert_ok(sample(file, &opts, &want, &got, &err));
        top = given.scale ? given.top : 0;
        assert_true(given.scale <= 1 && given.left == 0);
        assert_int_equal(got.shape[1], 41);
        assert_int_equal(top, o.interlaced ? 0 : want.start[0]);
        assert_int_equal(got.shape[0], o.interlaced ? 29 : want.length[0]);
        check(&o, &got, (int)top, 0);
        free(file.data);
    }
}

static void test_orientation(void **state)
{
    stkt_png o = {.width = 11, .height = 5, .bits = 8, .type = 2, .orientation = 6};
    stkt_bytes file = stkt_png_make(&o);
    stki_decode_opts opts = {0};
    stk_tensor got;
    stk_error err;

    (void)state;
    assert_ok(sample(file, &opts, NULL, &got, &err));
    check(&o, &got, 0, 0);
    opts.upright = true;
    assert_ok(sample(file, &opts, NULL, &got, &err));
    assert_int_equal(got.shape[0], 11);
    assert_int_equal(got.shape[1], 5);
    for (int y = 0; y < 11; y++)
        for (int x = 0; x < 5; x++)
            assert_int_equal(((const uint8_t *)got.data)[y * got.strides[0] + x * 3],
                             stkt_png_expected(&o, 4 - x, y, 0));
    free(file.data);
}

static stk_status with_header(const uint8_t *change, size_t at, size_t count, stk_error *err)
{
    stkt_bytes file = stkt_png_make(&(stkt_png){.width = 9, .height = 7, .bits = 8, .type = 2});
    stki_decode_opts opts = {0};
    stk_tensor got;
    stk_status status;

    memcpy(file.data + at, change, count);
    status = sample(file, &opts, NULL, &got, err);
    free(file.data);
    return status;
}

static void test_headers_refused(void **state)
{
    static const struct {
        size_t at;
        uint8_t value[4];
        size_t count;
        stk_status status;
        const char *says;
    } changes[] = {
        {8, {0, 0, 0, 14}, 4, STK_E_CORRUPT, "IHDR"},
        {12, "IHDX", 4, STK_E_CORRUPT, "IHDR"},
        {16, {0, 0, 0, 0}, 4, STK_E_CORRUPT, "size"},
        {20, {0x80, 0, 0, 0}, 4, STK_E_CORRUPT, "size"},
        {24, {3}, 1, STK_E_CORRUPT, "3 bits"},
        {25, {3}, 1, STK_E_CORRUPT, "no place"},
        {25, {1}, 1, STK_E_CORRUPT, "type 1"},
        {26, {1}, 1, STK_E_UNSUPPORTED, "compression"},
        {28, {2}, 1, STK_E_UNSUPPORTED, "interlace"},
        {29, {1}, 1, STK_E_CORRUPT, "libspng"}, /* the CRC */
        {33, {0x80}, 1, STK_E_CORRUPT, "invalid chunk length"},
        {37, "IEND", 4, STK_E_CORRUPT, "no pixels"},
        {16, {0x7F, 0, 0, 0}, 4, STK_E_LIMIT, "max_bytes"},
        {16, {0, 0x10, 0, 0}, 4, STK_E_TRUNCATED, "too short"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        stk_error err;
        stk_status status = with_header(changes[i].value, changes[i].at, changes[i].count, &err);
        if (i == 5)
            assert_true(status < 0); /* a palette image without a palette */
        else if (status != changes[i].status || !strstr(err.message, changes[i].says))
            fail_msg("change %zu: %s: %s", i, stk_status_name(status), err.message);
    }
}

static void test_cut_anywhere(void **state)
{
    stkt_bytes file = stkt_png_make(&(stkt_png){.width = 9, .height = 7, .bits = 8, .type = 2});

    (void)state;
    for (size_t length = 0; length < file.size - 4; length++) { /* the CRC of the end mark is not verified */
        uint8_t *exact = malloc(length ? length : 1);
        stkt_bytes cut = {memcpy(exact, file.data, length), length};
        stki_decode_opts opts = {0};
        stk_tensor got;
        stk_error err;
        stk_status status = sample(cut, &opts, NULL, &got, &err);
        if (status != STK_E_TRUNCATED)
            fail_msg("truncated to %zu of %zu bytes: %s (%s)", length, file.size, stk_status_name(status), err.message);
        free(exact);
    }
    free(file.data);
}

/* `color: index` returns the stored values of palette and gray images; other images are errors. */
static void test_index(void **state)
{
    static const int sizes[][2] = {{23, 37}, {1, 1}, {3, 9}};
    const stki_decode_opts opts = {.gray = true, .index = true};

    (void)state;
    for (int i = 0; i < KINDS * 2; i++)
        for (int s = 0; s < 3; s++) {
            stkt_png o = {.width = sizes[s][1],
                          .height = sizes[s][0],
                          .bits = kinds[i / 2].bits,
                          .type = kinds[i / 2].type,
                          .interlaced = i & 1};
            const bool has = o.type == 3 || (o.type == 0 && o.bits <= 8);
            stkt_bytes file = stkt_png_make(&o);
            stk_tensor got;
            stk_error err;

            assert_status(sample(file, &opts, NULL, &got, &err), has ? STK_OK : STK_E_UNSUPPORTED);
            if (has)
                assert_int_equal(got.shape[2], 1);
            else
                assert_says("source.color: index");
            for (int y = 0; has && y < o.height; y++)
                for (int x = 0; x < o.width; x++)
                    if (((const uint8_t *)got.data)[y * got.strides[0] + x * got.strides[1]] !=
                        stkt_png_value(&o, y, x, 0))
                        fail_msg("%d bits, type %d%s, row %d, column %d", o.bits, o.type,
                                 o.interlaced ? ", interlaced" : "", y, x);
            free(file.data);
        }
}

/* `depth: 16` returns 16-bit samples as stored, without alpha; other depths, and color images as gray, are errors. */
static void test_depth(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS * 6; i++) {
        stkt_png o = {
            .width = 23, .height = 17, .bits = kinds[i / 6].bits, .type = kinds[i / 6].type, .interlaced = i & 1};
        const bool gray = i % 6 >= 3, part = i % 3 == 0, colors = o.type == 2 || o.type == 6;
        const bool has = o.bits == 16 && !(gray && colors);
        const stki_decode_opts opts = {.gray = gray, .deep = true, .upright = i % 3 == 2};
        stki_given given = {0};
        stki_want want = {.ndim = 3,
                          .start = {5, 3, 0},
                          .length = {7, 11, 3},
                          .enough_height = 1,
                          .enough_width = 1,
                          .given = &given};
        stkt_bytes file;
        stk_tensor got;
        stk_error err;

        o.orientation = opts.upright ? 3 : 0; /* rotated by 180 degrees */
        file = stkt_png_make(&o);
        assert_status(sample(file, &opts, part ? &want : NULL, &got, &err), has ? STK_OK : STK_E_UNSUPPORTED);
        if (!has)
            assert_says("source.depth: 16");
        for (int y = 0; has && y < got.shape[0]; y++)
            for (int x = 0; x < got.shape[1]; x++)
                for (int c = 0; c < got.shape[2]; c++) {
                    const int from_y = opts.upright ? o.height - 1 - y : y + (given.scale ? (int)given.top : 0);
                    const int from_x = opts.upright ? o.width - 1 - x : x;
                    uint16_t value;

                    memcpy(&value,
                           (const char *)got.data + y * got.strides[0] + x * got.strides[1] + c * got.strides[2], 2);
                    if (value != stkt_png_value(&o, from_y, from_x, colors ? c : 0))
                        fail_msg("case %d, row %d, column %d, channel %d", i, y, x, c);
                }
        if (has) {
            assert_int_equal(got.dtype, STK_U16);
            assert_int_equal(got.shape[2], gray ? 1 : 3);
        }
        assert_int_equal(stki_image_is_cut(file.data, STKI_PNG_HEAD_BYTES, &(stki_decode_opts){0}), o.bits == 16);
        assert_false(stki_image_is_cut(file.data, (int64_t)file.size, &opts));
        free(file.data);
    }
}

static void test_missing_pixels(void **state)
{
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        stkt_bytes file = stkt_png_make(
            &(stkt_png){.width = 20, .height = 20, .bits = 8, .type = 2, .cut_pixels = 500, .interlaced = interlaced});
        stki_decode_opts opts = {.accept_warnings = true};
        stk_tensor got;
        stk_error err;
        stk_status status = sample(file, &opts, NULL, &got, &err);

        (void)state;
        assert_true(status == STK_E_CORRUPT || status == STK_E_TRUNCATED);
        assert_says("some/file.png: record 7: ");
        assert_true(err.offset >= 8 && err.offset <= (int64_t)file.size);
        assert_true(err.found[0] != '\0' && err.expected[0] != '\0');
        free(file.data);
    }
}

static void test_changed_anywhere(void **state)
{
    uint64_t random = 4;

    (void)state;
    for (int n = 0; n < 4000; n++) {
        stkt_png o = {.width = 13,
                      .height = 11,
                      .bits = kinds[n % KINDS].bits,
                      .type = kinds[n % KINDS].type,
                      .interlaced = n & 1,
                      .orientation = n & 2 ? 5 : 0};
        stkt_bytes file = stkt_png_make(&o);
        stki_decode_opts opts = {.upright = n & 4, .gray = n & 8, .max_bytes = 1 << 20};
        stk_tensor got;
        stk_error err;
        stk_status status;
        file.data[stkt_random_in(&random, 0, (int64_t)file.size - 1)] = (uint8_t)stkt_random(&random);
        status = sample(file, &opts, NULL, &got, &err);
        assert_true(status == STK_OK || status == STK_E_CORRUPT || status == STK_E_TRUNCATED ||
                    status == STK_E_UNSUPPORTED || status == STK_E_LIMIT);
        free(file.data);
    }
}

static void test_memory_fails(void **state)
{
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        stkt_bytes file = stkt_png_make(
            &(stkt_png){.width = 9, .height = 7, .bits = 8, .type = 2, .interlaced = interlaced, .orientation = 6});
        stki_decode_opts opts = {.upright = true, .gray = true};
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
                assert_true(n > 4);
                break;
            }
            if (status != STK_E_MEMORY)
                fail_msg("allocation %d: %s (%s)", n, stk_status_name(status), err.message);
        }
        free(file.data);
    }
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
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_orientation),
        cmocka_unit_test(test_headers_refused),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_missing_pixels),
        cmocka_unit_test(test_changed_anywhere),
        cmocka_unit_test(test_memory_fails),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
