/* Tests of encoding PNG images: this file parses them (checksums, zlib, filters) and compares the pixels. Also tests a
 * field of a job, rejected shapes, and failing allocations. */
#include "allocate.h"
#include "faults.h"
#include "finish.h"
#include "png_encode.h"
#include "png_make.h"
#include "stk_test.h"
#include <zlib.h>

static uint32_t big(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int paeth(int a, int b, int c)
{
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);

    return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Each line begins with its filter. */
static void undo_filters(uint8_t *lines, int height, int row, int channels)
{
    for (int y = 0; y < height; y++) {
        uint8_t *line = lines + y * (row + 1) + 1, *above = line - row - 1;

        for (int x = 0; x < row; x++) {
            const int a = x >= channels ? line[x - channels] : 0, b = y > 0 ? above[x] : 0,
                      c = x >= channels && y > 0 ? above[x - channels] : 0;
            const int add[] = {0, a, b, (a + b) / 2, paeth(a, b, c)};

            assert_in_range(line[-1], 0, 4);
            line[x] = (uint8_t)(line[x] + add[line[-1]]);
        }
    }
}

/* `pixels` in the order of the file: the high byte of 16 bits comes first. */
static void check_file(const uint8_t *file, int64_t bytes, const uint8_t *pixels, int width, int height, int channels,
                       int bits)
{
    const int row = width * channels * bits / 8;
    uint8_t *packed = malloc((size_t)bytes), *lines = malloc((size_t)((row + 1) * height));
    uLongf line_bytes = (uLongf)((row + 1) * height);
    int64_t at = 8;
    uLong packed_bytes = 0;

    assert_memory_equal(file, "\x89PNG\r\n\x1a\n", 8);
    while (at < bytes) {
        const uint32_t count = big(file + at);

        assert_true(at + 12 + count <= bytes);
        assert_int_equal(big(file + at + 8 + count), stkt_png_crc(file + at + 4, count + 4));
        if (memcmp(file + at + 4, "IHDR", 4) == 0) {
            assert_int_equal(big(file + at + 8), width);
            assert_int_equal(big(file + at + 12), height);
            assert_int_equal(file[at + 16], bits);
            assert_int_equal(file[at + 17], channels == 1 ? 0 : 2);
            assert_int_equal(file[at + 20], 0); /* not interlaced */
        }
        if (memcmp(file + at + 4, "IDAT", 4) == 0) {
            memcpy(packed + packed_bytes, file + at + 8, count);
            packed_bytes += count;
        }
        if (memcmp(file + at + 4, "IEND", 4) == 0)
            assert_int_equal(at + 12, bytes);
        at += 12 + count;
    }
    assert_int_equal(uncompress(lines, &line_bytes, packed, packed_bytes), Z_OK);
    assert_int_equal(line_bytes, (row + 1) * height);
    undo_filters(lines, height, row, channels * bits / 8);
    for (int y = 0; y < height; y++)
        assert_memory_equal(lines + y * (row + 1) + 1, pixels + y * row, (size_t)row);
    free(packed);
    free(lines);
}

static uint8_t *make_pixels(int width, int height, int channels)
{
    uint8_t *pixels = malloc((size_t)(width * height * channels)), *to = pixels;

    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *to++ = x < width / 2 ? stkt_jpeg_pixel(y, x, c) : (uint8_t)(x + y * 2 + c);
    return pixels;
}

static void the_same_pixels(void **unused)
{
    static const int sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {7, 5, 3}, {64, 48, 3}, {65, 1, 1}, {1, 65, 3}, {300, 200, 3}};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int level = 0; level <= 9; level += 3) {
            uint8_t *pixels = make_pixels(sizes[i][0], sizes[i][1], sizes[i][2]);
            void *file, *again;
            int64_t bytes, other;

            assert_ok(stki_png_encode(pixels, sizes[i][1], sizes[i][0], sizes[i][2], 8, level, &file, &bytes, &err));
            check_file(file, bytes, pixels, sizes[i][0], sizes[i][1], sizes[i][2], 8);
            assert_ok(stki_png_encode(pixels, sizes[i][1], sizes[i][0], sizes[i][2], 8, level, &again, &other, &err));
            assert_int_equal(bytes, other);
            assert_memory_equal(file, again, (size_t)bytes);
            stki_free(file);
            stki_free(again);
            free(pixels);
        }
}

static void of_16_bits(void **unused)
{
    enum { WIDTH = 19, HEIGHT = 6, MOST = WIDTH * HEIGHT * 3 };
    uint16_t pixels[MOST];
    uint8_t stored[2 * MOST];
    stk_error err;

    (void)unused;
    for (int i = 0; i < MOST; i++) {
        pixels[i] = (uint16_t)(i * 977 + 131);
        stored[2 * i] = (uint8_t)(pixels[i] >> 8);
        stored[2 * i + 1] = (uint8_t)pixels[i];
    }
    for (int channels = 1; channels <= 3; channels += 2) {
        void *file;
        int64_t bytes;

        assert_ok(stki_png_encode(pixels, HEIGHT, WIDTH, channels, 16, 6, &file, &bytes, &err));
        check_file(file, bytes, stored, WIDTH, HEIGHT, channels, 16);
        stki_free(file);
    }
}

static void rejected_shapes(void **unused)
{
    const uint8_t pixels[16] = {0};
    void *file;
    int64_t bytes;
    stk_error err;

    (void)unused;
    assert_status(stki_png_encode(pixels, 0, 4, 3, 8, 6, &file, &bytes, &err), STK_E_BAD_SHAPE);
    assert_status(stki_png_encode(pixels, 4, 0, 3, 8, 6, &file, &bytes, &err), STK_E_BAD_SHAPE);
    assert_status(stki_png_encode(pixels, 2, 2, 2, 8, 6, &file, &bytes, &err), STK_E_BAD_SHAPE);
    assert_status(stki_png_encode(pixels, INT64_C(1) << 31, 1, 1, 8, 6, &file, &bytes, &err), STK_E_LIMIT);
}

static void memory_runs_out(void **unused)
{
    uint8_t *pixels = make_pixels(300, 200, 3);
    int64_t failures = 0;
    stk_error err;

    (void)unused;
    for (int64_t n = 1;; n++) {
        void *file = NULL;
        int64_t bytes;
        stk_status status;

        stki_memory_fail_at(n);
        status = stki_png_encode(pixels, 200, 300, 3, 8, 6, &file, &bytes, &err);
        stki_memory_fail_at(0);
        stki_free(file);
        if (status == STK_OK)
            break;
        if (status != STK_E_MEMORY)
            fail_msg("allocation %d: %s", (int)n, err.message);
        failures++;
    }
    assert_true(failures > 3);
    free(pixels);
}

/* A mask of height x width, without an axis of channels. */
static void rows_of_a_field(void **unused)
{
    static const char text[] = "{encode: png, level: 9}";
    const stki_sink_field in = {
        .name = "mask", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 2, .shape = {20, 30}, .image = true};
    const stki_sink_field floats = {
        .name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_F32, .ndim = 3, .shape = {2, 2, 3}};
    uint8_t *pixels = make_pixels(30, 20, 1);
    const stki_row row = {.bytes = pixels, .size = 600, .dtype = STK_U8, .ndim = 2, .shape = {20, 30}};
    stki_bytes to = {0};
    stki_sink_field out = in;
    stki_sink_value value;
    stki_document *document;
    stki_finisher *finisher;
    json_t *about;
    stk_error err;

    (void)unused;
    assert_ok(stki_document_parse(text, sizeof text - 1, "text", STKI_NO_INCLUDE, &document, &err));
    assert_status(stki_finish_png.create(stki_document_root(document), &floats, &out, &finisher, &err), STK_E_CONFIG);
    assert_says("encode: png requires uint8 or uint16 pixels");
    assert_says("normalize");
    assert_ok(stki_finish_png.create(stki_document_root(document), &in, &out, &finisher, &err));
    assert_int_equal(out.kind, STKI_SINK_IMAGE);
    assert_int_equal(out.ndim, 3);
    assert_false(out.image);
    assert_string_equal(out.extension, "png");
    assert_ok(stki_finish_png.run(finisher, NULL, &row, &to, &value, &err));
    assert_int_equal(value.encoding, STKI_PNG);
    assert_int_equal(value.height, 20);
    assert_int_equal(value.width, 30);
    assert_int_equal(value.channels, 1);
    assert_int_equal(to.used, value.size);
    check_file((const uint8_t *)to.bytes, value.size, pixels, 30, 20, 1, 8);
    about = stki_finish_png.describe(finisher);
    assert_non_null(json_object_get(about, "libspng"));
    json_decref(about);
    stki_finish_png.destroy(finisher);
    stki_document_destroy(document);
    stki_bytes_fini(&to);
    free(pixels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_pixels), cmocka_unit_test(of_16_bits),      cmocka_unit_test(rejected_shapes),
        cmocka_unit_test(memory_runs_out), cmocka_unit_test(rows_of_a_field),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
