/* Tests of encoding JPEG images: the decoded pixels are compared with those of Pillow's images of the same input. Also
 * tests rejected shapes and failing allocations. */
#include "allocate.h"
#include "faults.h"
#include "jpeg_decode.h"
#include "jpeg_encode.h"
#include "jpeg_header.h"
#include "jpeg_make.h"
#include "stk_test.h"

typedef struct golden {
    int width, height, channels, quality;
    enum stki_jpeg_subsampling subsampling;
} golden;

static const golden goldens[] = {
    {1, 1, 3, 90, STKI_JPEG_420},    {1, 1, 1, 90, STKI_JPEG_444},   {61, 47, 3, 90, STKI_JPEG_420},
    {61, 47, 3, 90, STKI_JPEG_422},  {61, 47, 3, 90, STKI_JPEG_444}, {61, 47, 3, 50, STKI_JPEG_420},
    {61, 47, 3, 100, STKI_JPEG_444}, {61, 47, 1, 75, STKI_JPEG_444}, {17, 33, 3, 85, STKI_JPEG_420},
    {200, 9, 3, 90, STKI_JPEG_422},  {64, 48, 3, 1, STKI_JPEG_420},
};
enum { GOLDENS = sizeof goldens / sizeof goldens[0] };

static uint8_t *make_pixels(int width, int height, int channels)
{
    uint8_t *pixels = malloc((size_t)width * (size_t)height * (size_t)channels), *to = pixels;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *to++ = stkt_jpeg_pixel(y, x, c);
    return pixels;
}

static stki_jpeg_pixels image_of(const uint8_t *pixels, int width, int height, int channels)
{
    return (stki_jpeg_pixels){.pixels = pixels,
                              .height = height,
                              .width = width,
                              .channels = channels,
                              .row_bytes = (int64_t)width * channels};
}

static stkt_bytes read_golden(const golden *g)
{
    static const char *const words[] = {"444", "422", "420"};
    char path[512];
    stkt_bytes file = {malloc(1 << 20), 0};
    FILE *from;

    snprintf(path, sizeof path, "%s/prep/goldens/jpeg_%dx%dx%d_q%d_%s.jpg", STKT_TESTS_DIR, g->width, g->height,
             g->channels, g->quality, words[g->subsampling]);
    from = fopen(path, "rb");
    assert_non_null(from);
    file.size = fread(file.data, 1, 1 << 20, from);
    assert_int_equal(fclose(from), 0);
    return file;
}

static uint8_t *decode(const void *bytes, int64_t count, const golden *g)
{
    const stki_jpeg_how how = {.stored_height = g->height,
                               .stored_width = g->width,
                               .scale = 1,
                               .gray = g->channels == 1,
                               .height = g->height,
                               .width = g->width};
    uint8_t *pixels = malloc((size_t)g->width * (size_t)g->height * (size_t)g->channels);
    int64_t warnings = 0;
    stk_error err;

    assert_ok(stki_jpeg_decode(bytes, count, &how, pixels, (int64_t)g->width * g->channels, NULL, &warnings, &err));
    assert_int_equal(warnings, 0);
    return pixels;
}

static void as_pillow(void **unused)
{
    stki_jpeg_room room = {0};
    stk_error err;

    (void)unused;
    for (int i = 0; i < GOLDENS; i++) {
        const golden *g = &goldens[i];
        const stki_jpeg_form form = {.quality = g->quality, .subsampling = g->subsampling};
        uint8_t *pixels = make_pixels(g->width, g->height, g->channels), *ours, *theirs;
        const stki_jpeg_pixels image = image_of(pixels, g->width, g->height, g->channels);
        stkt_bytes file = read_golden(g);
        stki_jpeg_header header, expected;
        int64_t bytes;

        assert_ok(stki_jpeg_encode(&image, &form, &room, &bytes, &err));
        assert_ok(stki_jpeg_read_header(room.data, bytes, &header, &err));
        assert_ok(stki_jpeg_read_header(file.data, (int64_t)file.size, &expected, &err));
        assert_int_equal(header.components, expected.components);
        assert_int_equal(header.max_h, expected.max_h);
        assert_int_equal(header.max_v, expected.max_v);
        assert_false(header.progressive);
        ours = decode(room.data, bytes, g);
        theirs = decode(file.data, (int64_t)file.size, g);
        for (int at = 0; at < g->width * g->height * g->channels; at++)
            if (ours[at] != theirs[at])
                fail_msg("case %d: value %d is %d, Pillow's is %d", i, at, ours[at], theirs[at]);
        free(ours);
        free(theirs);
        free(file.data);
        free(pixels);
    }
    stki_jpeg_room_fini(&room);
}

/* Restart markers do not change the pixels. The interval is the largest divisor of the number of MCUs in a row that
 * does not exceed the given number. */
static void restart_markers(void **unused)
{
    static const struct {
        int width, channels, restart, expected;
        enum stki_jpeg_subsampling subsampling;
    } cases[] = {{200, 3, 0, 0, STKI_JPEG_420}, {200, 3, 2, 1, STKI_JPEG_420},    {192, 3, 2, 2, STKI_JPEG_420},
                 {192, 3, 5, 4, STKI_JPEG_420}, {192, 3, 999, 12, STKI_JPEG_422}, {192, 3, 5, 4, STKI_JPEG_444},
                 {200, 1, 7, 5, STKI_JPEG_420}, {1, 1, 2, 1, STKI_JPEG_444}};

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const golden g = {cases[i].width, 50, cases[i].channels, 90, cases[i].subsampling};
        stki_jpeg_form form = {.quality = 90, .subsampling = g.subsampling, .restart = cases[i].restart};
        uint8_t *pixels = make_pixels(g.width, g.height, g.channels), *with, *without;
        const stki_jpeg_pixels image = image_of(pixels, g.width, g.height, g.channels);
        stki_jpeg_room room = {0};
        stki_jpeg_header header;
        int64_t bytes;
        stk_error err;

        assert_ok(stki_jpeg_encode(&image, &form, &room, &bytes, &err));
        assert_ok(stki_jpeg_read_header(room.data, bytes, &header, &err));
        assert_int_equal(header.restart, cases[i].expected);
        with = decode(room.data, bytes, &g);
        form.restart = 0;
        assert_ok(stki_jpeg_encode(&image, &form, &room, &bytes, &err));
        without = decode(room.data, bytes, &g);
        assert_memory_equal(with, without, (size_t)(g.width * g.height * g.channels));
        free(with);
        free(without);
        free(pixels);
        stki_jpeg_room_fini(&room);
    }
}

/* Optimized and progressive images store the same coefficients in fewer bytes. */
static void optimized_and_progressive(void **unused)
{
    const golden g = {200, 150, 3, 90, STKI_JPEG_420};
    uint8_t *pixels = make_pixels(g.width, g.height, g.channels), *decoded[3];
    const stki_jpeg_pixels image = image_of(pixels, g.width, g.height, g.channels);
    stki_jpeg_room room = {0};
    int64_t bytes[3];
    stki_jpeg_header header;
    stk_error err;

    (void)unused;
    for (int i = 0; i < 3; i++) {
        const stki_jpeg_form form = {
            .quality = 90, .subsampling = g.subsampling, .optimize = i == 1, .progressive = i == 2};

        assert_ok(stki_jpeg_encode(&image, &form, &room, &bytes[i], &err));
        assert_ok(stki_jpeg_read_header(room.data, bytes[i], &header, &err));
        assert_int_equal(header.progressive, i == 2);
        decoded[i] = decode(room.data, bytes[i], &g);
    }
    assert_true(bytes[1] < bytes[0]);
    assert_true(bytes[2] < bytes[0]);
    assert_memory_equal(decoded[0], decoded[1], (size_t)(g.width * g.height * 3));
    assert_memory_equal(decoded[0], decoded[2], (size_t)(g.width * g.height * 3));
    for (int i = 0; i < 3; i++)
        free(decoded[i]);
    free(pixels);
    stki_jpeg_room_fini(&room);
}

/* Rows with gaps, and an image whose file is larger than the buffer of the previous one. */
static void rows_with_gaps_and_a_growing_buffer(void **unused)
{
    enum { WIDTH = 400, HEIGHT = 300, APART = WIDTH * 3 + 13 };
    uint8_t *close = make_pixels(WIDTH, HEIGHT, 3), *apart = malloc(APART * HEIGHT);
    stki_jpeg_pixels image = image_of(close, WIDTH, HEIGHT, 3), small = image_of(close, 8, 8, 3);
    const stki_jpeg_form form = {.quality = 100, .subsampling = STKI_JPEG_444};
    stki_jpeg_room first = {0}, second = {0};
    int64_t bytes, again, little;
    stk_error err;

    (void)unused;
    small.row_bytes = image.row_bytes;
    for (int y = 0; y < HEIGHT; y++)
        memcpy(apart + y * APART, close + y * WIDTH * 3, WIDTH * 3);
    assert_ok(stki_jpeg_encode(&image, &form, &first, &bytes, &err));
    assert_true(bytes > 128 << 10); /* the buffer had to grow more than once */
    image.pixels = apart;
    image.row_bytes = APART;
    assert_ok(stki_jpeg_encode(&small, &form, &second, &little, &err));
    assert_ok(stki_jpeg_encode(&image, &form, &second, &again, &err));
    assert_int_equal(bytes, again);
    assert_memory_equal(first.data, second.data, (size_t)bytes);
    assert_ok(stki_jpeg_encode(&small, &form, &second, &again, &err));
    assert_int_equal(little, again);
    free(close);
    free(apart);
    stki_jpeg_room_fini(&first);
    stki_jpeg_room_fini(&second);
}

static void rejected_shapes(void **unused)
{
    const stki_jpeg_form form = {.quality = 90};
    const uint8_t pixels[16] = {0};
    stki_jpeg_pixels image = image_of(pixels, 2, 2, 3);
    stki_jpeg_room room = {0};
    int64_t bytes;
    stk_error err;

    (void)unused;
    image.height = 0;
    assert_status(stki_jpeg_encode(&image, &form, &room, &bytes, &err), STK_E_BAD_SHAPE);
    image.height = 1;
    image.width = 0;
    assert_status(stki_jpeg_encode(&image, &form, &room, &bytes, &err), STK_E_BAD_SHAPE);
    image.width = 65501;
    assert_status(stki_jpeg_encode(&image, &form, &room, &bytes, &err), STK_E_LIMIT);
    assert_says("65501");
    image.width = 1;
    image.channels = 4;
    assert_status(stki_jpeg_encode(&image, &form, &room, &bytes, &err), STK_E_BAD_SHAPE);
    image.channels = 2;
    assert_status(stki_jpeg_encode(&image, &form, &room, &bytes, &err), STK_E_BAD_SHAPE);
    stki_jpeg_room_fini(&room);
}

static void memory_runs_out(void **unused)
{
    uint8_t *pixels = make_pixels(400, 300, 3);
    const stki_jpeg_pixels image = image_of(pixels, 400, 300, 3);
    const stki_jpeg_form form = {.quality = 100, .subsampling = STKI_JPEG_444};
    int64_t bytes, tries = 0;
    stk_error err;

    (void)unused;
    for (int64_t n = 1;; n++) {
        stki_jpeg_room room = {0};
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_jpeg_encode(&image, &form, &room, &bytes, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK) {
            stki_jpeg_room_fini(&room);
            break;
        }
        assert_int_equal(status, STK_E_MEMORY);
        tries++;
        assert_ok(stki_jpeg_encode(&image, &form, &room, &bytes, &err)); /* the buffer that is left is reused */
        stki_jpeg_room_fini(&room);
    }
    assert_true(tries >= 2);
    free(pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_pillow),
        cmocka_unit_test(restart_markers),
        cmocka_unit_test(optimized_and_progressive),
        cmocka_unit_test(rows_with_gaps_and_a_growing_buffer),
        cmocka_unit_test(rejected_shapes),
        cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
