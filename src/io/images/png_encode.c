/* png_encode.c: see png_encode.h. libspng chooses the row filters (minimum sum of absolute differences). Memory,
 * including the result, comes from the library's allocator. */
#include "png_encode.h"
#include "allocate.h"
#include "error.h"
#include <inttypes.h>

#include <spng.h>

enum { MOST_SIDE = INT32_MAX };

static void *allocate(size_t bytes)
{
    return bytes > INT64_MAX ? NULL : stki_zalloc((int64_t)bytes);
}

static void *reallocate(void *block, size_t bytes)
{
    return bytes > INT64_MAX ? NULL : stki_resize(block, (int64_t)bytes);
}

static void *allocate_array(size_t count, size_t bytes)
{
    return stki_zalloc_array((int64_t)count, (int64_t)bytes);
}

/* The only expected error is out of memory, because sizes have been checked and all pixel values are valid. */
static stk_status fail(int code, stk_error *err)
{
    const stk_status status = code == SPNG_EMEM || code == SPNG_EZLIB_INIT ? STK_E_MEMORY : STK_E_UNSUPPORTED;

    return stki_fail(err, status, "libspng: %s", spng_strerror(code));
}

static int encode(spng_ctx *ctx, const void *pixels, int64_t height, int64_t width, int channels, int bits, int level,
                  void **out, int64_t *bytes)
{
    struct spng_ihdr header = {.width = (uint32_t)width,
                               .height = (uint32_t)height,
                               .bit_depth = (uint8_t)bits,
                               .color_type = channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR};
    size_t size = 0;
    int code = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);

    if (!code)
        code = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, level);
    if (!code)
        code = spng_set_ihdr(ctx, &header);
    if (!code)
        code = spng_encode_image(ctx, pixels, (size_t)(height * width * channels * (bits / 8)), SPNG_FMT_PNG,
                                 SPNG_ENCODE_FINALIZE);
    if (!code)
        *out = spng_get_png_buffer(ctx, &size, &code);
    *bytes = (int64_t)size;
    return code;
}

stk_status stki_png_encode(const void *pixels, int64_t height, int64_t width, int channels, int bits, int level,
                           void **out, int64_t *bytes, stk_error *err)
{
    struct spng_alloc memory = {allocate, reallocate, allocate_array, stki_free};
    spng_ctx *ctx;
    int code;

    if (height < 1 || width < 1 || (channels != 1 && channels != 3))
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "the image cannot be stored as PNG: found %" PRId64 " x %" PRId64
                         " pixels of %d channels, expected at least one pixel "
                         "of 1 or 3 channels",
                         height, width, channels);
    if (height > MOST_SIDE || width > MOST_SIDE || height > INT64_MAX / 8 / width)
        return stki_fail(err, STK_E_LIMIT,
                         "the image is too large for PNG: found %" PRId64 " x %" PRId64
                         " pixels, expected a height and width of at most %d",
                         height, width, MOST_SIDE);
    ctx = spng_ctx_new2(&memory, SPNG_CTX_ENCODER);
    if (!ctx)
        return stki_fail_memory(err, 0, "a PNG image");
    code = encode(ctx, pixels, height, width, channels, bits, level, out, bytes);
    spng_ctx_free(ctx);
    return code ? fail(code, err) : STK_OK;
}

const char *stki_png_version(void)
{
    return spng_version_string();
}
