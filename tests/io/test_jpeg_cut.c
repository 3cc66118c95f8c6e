/* Tests of decoding parts of JPEG images from the restart intervals that contain them: the pixels must be those that
 * libjpeg gives for the whole image. Images with wrong markers and damaged images are also tested. */
#include "decode.h"
#include "jpeg_cut.h"
#include "jpeg_make.h"
#include "stk_test.h"
#include "test_random.h"

static stki_scratch scratch;

static const stkt_jpeg kinds[] = {
    {.width = 160, .height = 80, .restart = 1},
    {.width = 157, .height = 83, .restart = 2},
    {.width = 157, .height = 83, .h = 2, .restart = 1},
    {.width = 190, .height = 117, .h = 2, .v = 2, .restart = 1},
    {.width = 192, .height = 128, .h = 2, .v = 2, .restart = 2},
    {.width = 162, .height = 98, .h = 2, .v = 2, .restart = 1}, /* the last MCU has two pixels in both directions */
    {.width = 161, .height = 97, .h = 2, .v = 2, .restart = 1}, /* one pixel */
    {.width = 164, .height = 99, .h = 2, .v = 1, .restart = 11},
    {.width = 157, .height = 83, .v = 2, .restart = 4},
    {.width = 227, .height = 66, .h = 4, .restart = 2},
    {.width = 227, .height = 66, .h = 4, .v = 2, .restart = 1},
    {.width = 227, .height = 66, .h = 2, .v = 4, .restart = 3},
    {.width = 100, .height = 70, .h = 3, .v = 1, .restart = 1},
    {.width = 157, .height = 83, .channels = 1, .restart = 2},
    {.width = 157, .height = 83, .channels = 1, .h = 2, .v = 2, .restart = 5},
    {.width = 157, .height = 83, .stored = JCS_RGB, .restart = 2},
    {.width = 128, .height = 96, .channels = 4, .restart = 4},
    {.width = 128, .height = 96, .channels = 4, .stored = JCS_YCCK, .h = 2, .v = 2, .restart = 4},
    {.width = 160, .height = 150, .h = 2, .v = 2, .restart = 10}, /* one row of MCUs */
    {.width = 160, .height = 150, .h = 2, .v = 2, .restart = 20}, /* two rows */
    /* a row and a half: every third row begins with an interval */
    {.width = 160, .height = 200, .h = 2, .v = 2, .restart = 15},
    {.width = 160, .height = 200, .h = 2, .v = 2, .restart = 7},   /* of the later rows, only row 7 begins with one */
    {.width = 160, .height = 200, .h = 2, .v = 2, .restart = 999}, /* no marker */
    {.width = 160, .height = 150, .h = 2, .v = 2, .restart = 2, .progressive = true},
    {.width = 160, .height = 150, .h = 2, .v = 2, .restart = 2, .arithmetic = true},
    {.width = 7, .height = 5, .h = 2, .v = 2, .restart = 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static stk_status sample(stkt_bytes file, const stki_decode_opts *opts, const stki_want *want, stk_tensor *out,
                         stk_error *err)
{
    return stki_image_sample(file.data, (int64_t)file.size, opts, want, &scratch, "some/file.jpg", 7, out, err);
}

static int64_t below(uint64_t *random, int64_t bound)
{
    return (int64_t)(stkt_random(random) % (uint64_t)bound);
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

/* ---- pixels ---- */

static void check_pixels(const stk_tensor *got, const stki_given *given, const uint8_t *whole, int64_t width,
                         const stkt_jpeg *k)
{
    const int64_t c = got->shape[2], top = given->scale ? given->top : 0, left = given->scale ? given->left : 0;

    for (int64_t y = 0; y < got->shape[0]; y++)
        if (memcmp((const uint8_t *)got->data + y * got->strides[0], whole + ((top + y) * width + left) * c,
                   (size_t)(got->shape[1] * c)))
            fail_msg("%dx%d, %d channels, sampling %dx%d, restart %d: row %d of %dx%d from %d,%d, scale %d, differs "
                     "from the whole image",
                     k->width, k->height, k->channels, k->h, k->v, k->restart, (int)y, (int)got->shape[1],
                     (int)got->shape[0], (int)top, (int)left, (int)given->scale);
}

/* For four components the colors are computed by stoker, so the reference is its decoding of the whole image. */
static uint8_t *whole_of(stkt_bytes file, const stkt_jpeg *k, const stki_decode_opts *opts, int scale)
{
    const int channels = opts->gray ? 1 : 3;
    uint8_t *pixels;
    stk_tensor got;
    stk_error err;

    if (k->channels != 4)
        return stkt_jpeg_plain(file, opts->gray ? JCS_GRAYSCALE : JCS_RGB, scale, opts->fast);
    pixels = malloc((size_t)(k->width * k->height * channels));
    assert_ok(sample(file, opts, NULL, &got, &err));
    for (int64_t y = 0; y < k->height; y++)
        memcpy(pixels + y * k->width * channels, (const uint8_t *)got.data + y * got.strides[0],
               (size_t)(k->width * channels));
    return pixels;
}

static void exact_boxes(void **unused)
{
    uint64_t random = 21;

    (void)unused;
    for (int i = 0; i < KINDS; i++) {
        const stkt_jpeg *k = &kinds[i];
        stkt_bytes file = stkt_jpeg_make(k);

        for (int gray = 0; gray < 2; gray++) {
            const stki_decode_opts opts = {.gray = gray};
            uint8_t *whole = whole_of(file, k, &opts, 1);

            for (int n = 0; n < 300; n++) {
                stki_given given = {0};
                stki_want want = {.given = &given};
                stk_tensor got;
                stk_error err;

                any_box(&random, k->height, k->width, &want);
                if (n % 4 == 0) /* touching the right and bottom edges */
                    for (int d = 0; d < 2; d++)
                        want.start[d] = (d == 0 ? k->height : k->width) - want.length[d];
                assert_ok(sample(file, &opts, &want, &got, &err));
                assert_true(given.scale == 0 || (given.top == want.start[0] && given.left == want.start[1] &&
                                                 got.shape[0] == want.length[0] && got.shape[1] == want.length[1]));
                check_pixels(&got, &given, whole, k->width, k);
            }
            free(whole);
        }
        free(file.data);
    }
}

static void fast_boxes(void **unused)
{
    uint64_t random = 22;

    (void)unused;
    for (int i = 0; i < KINDS; i++) {
        const stkt_jpeg *k = &kinds[i];
        const stki_decode_opts opts = {.fast = true};
        stkt_bytes file = stkt_jpeg_make(k);
        uint8_t *scaled[9] = {NULL};

        for (int s = 1; s <= (k->channels == 4 ? 1 : 8); s *= 2)
            scaled[s] = whole_of(file, k, &opts, s);
        for (int n = 0; n < 300; n++) {
            stki_given given = {0};
            stki_want want = {.given = &given};
            int64_t scale;
            stk_tensor got;
            stk_error err;

            any_box(&random, k->height, k->width, &want);
            want.enough_height = 1 + below(&random, want.length[0]);
            want.enough_width = 1 + below(&random, want.length[1]);
            if (k->channels == 4)
                want.enough_height = want.length[0];
            assert_ok(sample(file, &opts, &want, &got, &err));
            scale = given.scale ? given.scale : 1;
            check_pixels(&got, &given, scaled[scale], (k->width + scale - 1) / scale, k);
        }
        for (int s = 1; s <= 8; s *= 2)
            free(scaled[s]);
        free(file.data);
    }
}

/* ---- what is cut out ---- */

typedef struct cut {
    bool made;
    stki_jpeg_box box;
    stkt_bytes file;
} cut;

static cut cut_of(stkt_bytes file, stki_jpeg_box box)
{
    cut c = {.box = box, .file = {malloc(file.size), 0}}; /* ASan detects writes of one byte too many */
    stki_jpeg_header header;
    int64_t made = 0;
    stk_error err;

    assert_ok(stki_jpeg_read_header(file.data, (int64_t)file.size, &header, &err));
    c.made = stki_jpeg_cut(file.data, (int64_t)file.size, &header, &c.box, c.file.data, &made);
    c.file.size = (size_t)made;
    return c;
}

static void check_box(stkt_bytes file, stki_jpeg_box wanted, stki_jpeg_box expected, int64_t width, int64_t height)
{
    cut c = cut_of(file, wanted);
    uint8_t *whole = stkt_jpeg_plain(file, JCS_RGB, 8, true), *part;

    assert_true(c.made);
    assert_int_equal(c.box.top, expected.top);
    assert_int_equal(c.box.left, expected.left);
    assert_int_equal(c.box.height, expected.height);
    assert_int_equal(c.box.width, expected.width);
    /* the size of the data grows with the box, whose last MCUs may extend beyond the image */
    assert_true(c.file.size <
                2 * file.size * (size_t)(expected.height * expected.width) / (size_t)(width * height) + 700);
    /* plain libjpeg decodes it without a warning; it needs no margin */
    part = stkt_jpeg_plain(c.file, JCS_RGB, 8, true);
    for (int64_t y = 0; y < (expected.height + 7) / 8; y++)
        assert_memory_equal(part + y * ((expected.width + 7) / 8) * 3,
                            whole + ((expected.top / 8 + y) * ((width + 7) / 8) + expected.left / 8) * 3,
                            (size_t)((expected.width + 7) / 8) * 3);
    free(part);
    free(whole);
    free(c.file.data);
}

static void the_smallest_box(void **unused)
{
    const stkt_jpeg tall = {.width = 160, .height = 200, .h = 2, .v = 2};
    stkt_jpeg k = tall;
    stkt_bytes file;

    (void)unused;
    k.restart = 2; /* 32 x 16 pixels */
    file = stkt_jpeg_make(&k);
    check_box(file, (stki_jpeg_box){40, 70, 10, 20}, (stki_jpeg_box){32, 64, 32, 32}, 160, 200);
    check_box(file, (stki_jpeg_box){16, 32, 16, 32}, (stki_jpeg_box){16, 32, 16, 32}, 160, 200);
    check_box(file, (stki_jpeg_box){15, 31, 18, 34}, (stki_jpeg_box){0, 0, 48, 96}, 160, 200);
    check_box(file, (stki_jpeg_box){0, 0, 200, 1}, (stki_jpeg_box){0, 0, 200, 32}, 160, 200);
    check_box(file, (stki_jpeg_box){199, 159, 1, 1}, (stki_jpeg_box){192, 128, 8, 32}, 160, 200);
    free(file.data);
    k.restart = 15; /* rows 0, 3, 6, … of MCUs begin with an interval */
    file = stkt_jpeg_make(&k);
    check_box(file, (stki_jpeg_box){50, 70, 10, 20}, (stki_jpeg_box){48, 0, 48, 160}, 160, 200);
    check_box(file, (stki_jpeg_box){95, 70, 2, 20}, (stki_jpeg_box){48, 0, 96, 160}, 160, 200);
    check_box(file, (stki_jpeg_box){199, 70, 1, 20}, (stki_jpeg_box){192, 0, 8, 160}, 160, 200);
    free(file.data);
    k = (stkt_jpeg){/* 11 MCUs per row, the last one with one pixel */
                    .width = 161,
                    .height = 90,
                    .h = 2,
                    .v = 2,
                    .restart = 1};
    file = stkt_jpeg_make(&k);
    check_box(file, (stki_jpeg_box){0, 159, 4, 2}, (stki_jpeg_box){0, 144, 16, 17}, 161, 90);
    free(file.data);
}

/* If decoding the whole image costs no more, nothing is cut. */
static void not_worth_it(void **unused)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 160, .height = 200, .h = 2, .v = 2, .restart = 2});
    const stki_jpeg_box boxes[] = {{0, 0, 200, 160}, {3, 31, 100, 129}, {0, 0, 5, 160}};

    (void)unused;
    for (int i = 0; i < 3; i++) {
        cut c = cut_of(file, boxes[i]);

        assert_false(c.made);
        assert_memory_equal(&c.box, &boxes[i], sizeof c.box);
        free(c.file.data);
    }
    free(file.data);
}

/* EXIF data and profiles are not copied; segments that describe the storage of colors are. */
static void segments(void **unused)
{
    stkt_bytes plain =
        stkt_jpeg_make(&(stkt_jpeg){.width = 128, .height = 96, .channels = 4, .stored = JCS_YCCK, .restart = 4});
    static uint8_t profile[40002] = {0xFF, 0xE2, 0x9C, 0x40};
    stkt_bytes file = stkt_bytes_edit(plain, 2, 0, profile, sizeof profile);
    cut c = cut_of(file, (stki_jpeg_box){20, 70, 10, 20});

    (void)unused;
    assert_true(c.made);
    assert_true(c.file.size < plain.size);
    assert_true(stkt_jpeg_find(c.file, 0xEE) > 0);
    assert_int_equal(stkt_jpeg_find(c.file, 0xE2), -1);
    free(c.file.data);
    free(file.data);
    free(plain.data);
}

/* ---- unusual markers ---- */

/* The offset of the n-th restart marker (its FF) in the entropy-coded data. */
static size_t marker_at(stkt_bytes file, int n)
{
    size_t at = (size_t)stkt_jpeg_find(file, 0xDA) + 14;

    for (;; at++)
        if (file.data[at] == 0xFF && file.data[at + 1] >= 0xD0 && file.data[at + 1] <= 0xD7 && n-- == 0)
            return at;
}

/* The part and the whole image must both fail with the same status, or have the same pixels. */
static void check_as_whole(stkt_bytes file, const char *what)
{
    for (int accept = 0; accept < 2; accept++) {
        const stki_decode_opts opts = {.accept_warnings = accept};
        stki_given given = {0};
        stki_want want = {.ndim = 3, .start = {100, 70}, .length = {60, 41, 3}, .given = &given};
        /* This box begins at the top left, so nothing can be cut and libjpeg reads everything above its last row. */
        stki_want from_top = {.ndim = 3, .length = {160, 160, 3}, .given = &(stki_given){0}};
        stk_tensor part, whole;
        stk_error err, other;
        static uint8_t pixels[160 * 160 * 3];
        const stk_status expected = sample(file, &opts, &from_top, &whole, &other);
        stk_status status;

        if (expected == STK_OK)
            for (int64_t y = 0; y < 160; y++)
                memcpy(pixels + y * 480, (const uint8_t *)whole.data + y * whole.strides[0], 480);
        status = sample(file, &opts, &want, &part, &err);
        if (status != expected)
            fail_msg("%s: found %s, expected %s", what, stk_status_name(status), stk_status_name(expected));
        for (int64_t y = 0; status == STK_OK && y < 60; y++)
            if (memcmp((const uint8_t *)part.data + y * part.strides[0], pixels + ((100 + y) * 160 + 70) * 3, 41 * 3))
                fail_msg("%s: the pixels differ", what);
    }
}

static void other_markers(void **unused)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 160, .height = 200, .h = 2, .v = 2, .restart = 2});
    const stki_jpeg_box box = {100, 70, 60, 41};
    const size_t first = marker_at(file, 0), tenth = marker_at(file, 10), last = marker_at(file, 63);
    const uint8_t swapped[2] = {0xFF, (uint8_t)(file.data[tenth + 1] ^ 1)}, stray[2] = {0xFF, 0xD5},
                  end[2] = {0xFF, 0xD9}, dnl[6] = {0xFF, 0xDC, 0, 4, 0, 200};
    const struct {
        const char *what;
        size_t at, removed;
        const uint8_t *bytes;
        size_t count;
    } edits[] = {
        {"a marker of another number", tenth, 2, swapped, 2},
        {"a marker that is missing", tenth, 2, NULL, 0},
        {"the first is missing", first, 2, NULL, 0},
        {"the last is missing", last, 2, NULL, 0},
        {"an interval that is missing", tenth, marker_at(file, 11) - tenth, NULL, 0},
        {"eight intervals that are missing", tenth, marker_at(file, 18) - tenth, NULL, 0},
        {"one marker more", tenth, 0, stray, 2},
        {"one marker more at the end", file.size - 2, 0, stray, 2},
        {"an end before the end", last, 0, end, 2},
        {"a marker of another kind", tenth, 0, dnl, 6},
        {"no end", file.size - 2, 2, NULL, 0},
        {"half a marker at the end", file.size - 1, 1, NULL, 0},
        {"stray bytes in the header", 2, 0, (const uint8_t *)"ab", 2},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        stkt_bytes other = stkt_bytes_edit(file, edits[i].at, edits[i].removed, edits[i].bytes, edits[i].count);
        cut c = cut_of(other, box);

        if (c.made)
            fail_msg("%s: it was cut", edits[i].what);
        assert_memory_equal(&c.box, &box, sizeof box);
        check_as_whole(other, edits[i].what);
        free(c.file.data);
        free(other.data);
    }
    free(file.data);
}

/* A marker may be preceded by several FF, and anything may follow the end. */
static void unusual_but_valid(void **unused)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 160, .height = 200, .h = 2, .v = 2, .restart = 2});
    static const uint8_t fill[3] = {0xFF, 0xFF, 0xFF}, behind[6] = {0xFF, 0xD0, 1, 0xFF, 0xD8, 0xFF};
    stkt_bytes filled = stkt_bytes_edit(file, marker_at(file, 35), 0, fill, 3);
    stkt_bytes more = stkt_bytes_edit(filled, filled.size, 0, behind, 6);
    cut c = cut_of(more, (stki_jpeg_box){100, 70, 60, 41});

    (void)unused;
    assert_true(c.made);
    check_as_whole(more, "fill bytes");
    free(c.file.data);
    free(more.data);
    free(filled.data);
    free(file.data);
}

/* ---- damage ---- */

/* Damage in an interval that is used is an error of the record; in any other interval it is not noticed. */
static void damage(void **unused)
{
    stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 160, .height = 200, .h = 2, .v = 2, .restart = 2});
    uint8_t *pixels = stkt_jpeg_plain(file, JCS_RGB, 1, false);
    int seen = 0, unseen = 0;

    (void)unused;
    for (int n = 0; n + 1 < 65; n++) { /* five intervals per row */
        const size_t begin = n == 0 ? (size_t)stkt_jpeg_find(file, 0xDA) + 14 : marker_at(file, n - 1) + 2;
        const size_t end = marker_at(file, n);
        /* most of the interval is removed */
        stkt_bytes bad = stkt_bytes_edit(file, begin + 4, end - begin - 4, NULL, 0);
        stki_decode_opts opts = {0};
        stki_given given = {0};
        stki_want want = {.ndim = 3, .start = {100, 70}, .length = {60, 41, 3}, .given = &given};
        /* The interpolation also needs the neighboring rows and columns: 99 to 160, 69 to 111. */
        const bool used = n / 5 >= 6 && n / 5 <= 10 && n % 5 >= 2 && n % 5 <= 3;
        stk_tensor got;
        stk_error err;

        if (used) {
            assert_status(sample(bad, &opts, &want, &got, &err), STK_E_CORRUPT);
            assert_int_equal(err.record, 7);
            seen++;
            opts.accept_warnings = true;
            assert_ok(sample(bad, &opts, &want, &got, &err));
            assert_true(stki_decoder_warned(scratch.decoder));
        } else {
            assert_ok(sample(bad, &opts, &want, &got, &err));
            check_pixels(&got, &given, pixels, 160, &(stkt_jpeg){.width = 160, .height = 200});
            unseen++;
        }
        check_as_whole(file, "after damage");
        free(bad.data);
    }
    assert_int_equal(seen, 10);
    assert_int_equal(unseen, 54);
    free(pixels);
    free(file.data);
}

/* With changed bytes or truncated anywhere, the result is pixels or a status for damaged files, and nothing is written
 * beyond the buffer. */
static void changed_anywhere(void **unused)
{
    uint64_t random = 23;

    (void)unused;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);

        for (int n = 0; n < 300; n++) {
            stkt_bytes other = stkt_bytes_edit(file, (size_t)below(&random, (int64_t)file.size), 0, NULL, 0);
            stki_decode_opts opts = {.accept_warnings = n & 1, .fast = n & 2, .max_bytes = 1 << 20};
            stki_given given = {0};
            stki_want want = {.given = &given, .enough_height = 1, .enough_width = 1};
            stki_jpeg_header header;
            stk_tensor got;
            stk_error err;
            stk_status status;

            any_box(&random, kinds[i].height, kinds[i].width, &want);
            if (n & 4)
                other.size = 1 + (size_t)below(&random, (int64_t)file.size);
            other.data[below(&random, (int64_t)other.size)] =
                n & 8 ? (uint8_t)(0xD0 + below(&random, 16)) : (uint8_t)stkt_random(&random);
            status = sample(other, &opts, &want, &got, &err);
            assert_true(status == STK_OK || status == STK_E_RANGE || status == STK_E_CORRUPT ||
                        status == STK_E_TRUNCATED || status == STK_E_UNSUPPORTED || status == STK_E_LIMIT);
            if (stki_jpeg_read_header(other.data, (int64_t)other.size, &header, &err) == STK_OK &&
                header.height == kinds[i].height && header.width == kinds[i].width)
                free(cut_of(other, (stki_jpeg_box){want.start[0], want.start[1], want.length[0], want.length[1]})
                         .file.data);
            free(other.data);
        }
        free(file.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_boxes),       cmocka_unit_test(fast_boxes), cmocka_unit_test(the_smallest_box),
        cmocka_unit_test(not_worth_it),      cmocka_unit_test(segments),   cmocka_unit_test(other_markers),
        cmocka_unit_test(unusual_but_valid), cmocka_unit_test(damage),     cmocka_unit_test(changed_anywhere),
    };
    int failed;

    stki_scratch_init(&scratch);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    stki_scratch_fini(&scratch);
    return failed;
}
