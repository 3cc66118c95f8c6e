/* sheet.c: see sheet.h. Each image is resized to fit a square cell on a gray background. */
#include "sheet.h"
#include "allocate.h"
#include "error.h"
#include "output.h"
#include "resize.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <math.h>
#include <spng.h>
#include <string.h>

enum { CELL = 128, GAP = 4, COLUMNS = 8, ROWS = SHEET_MOST / COLUMNS, GROUND = 0x60, DARK = 64 };

struct sheet {
    uint8_t *pixels; /* RGB */
    int64_t width, height;
    stki_resizer *resizer;
    char *image; /* one image as packed HWC u8 */
    int64_t image_bytes;
    float *values; /* values of the image before scaling */
    int64_t values_bytes;
};

/* Views the sample as H, W, C. */
static stk_status as_hwc(const char *path, const stk_tensor *sample, stk_tensor *out, stk_error *err)
{
    static const int hwc[] = {1, 2, 0};
    stk_status status = STK_E_UNSUPPORTED;

    if (sample->ndim == 2)
        status = stk_tensor_unsqueeze(sample, 2, out, err);
    else if (sample->ndim == 3 && (sample->shape[2] == 1 || sample->shape[2] == 3))
        status = stk_tensor_slice(sample, 0, INT64_MIN, INT64_MAX, 1, out, err);
    else if (sample->ndim == 3 && (sample->shape[0] == 1 || sample->shape[0] == 3))
        status = stk_tensor_permute(sample, hwc, out, err);
    else
        return stki_fail_at(err, status,
                            (stki_place){path, -1, -1,
                                         STKI_TEXT("samples of %d ax%s", sample->ndim, sample->ndim == 1 ? "is" : "es"),
                                         "[H, W], [H, W, 1 or 3] or [1 or 3, H, W]"},
                            "no images to show");
    if (status == STK_OK &&
        (out->shape[0] < 1 || out->shape[1] < 1 || out->shape[0] > 65535 || out->shape[1] > 65535)) {
        stk_tensor_release(out);
        status =
            stki_fail_at(err, STK_E_UNSUPPORTED,
                         (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " x %" PRId64, out->shape[0], out->shape[1]),
                                      "a height and width of 1 to 65535"},
                         "no images to show");
    }
    return status;
}

static stk_status room(char **memory, int64_t *has, int64_t bytes, stk_error *err)
{
    char *grown;

    if (bytes <= *has)
        return STK_OK;
    grown = stki_resize(*memory, bytes);
    if (!grown)
        return stki_fail_memory(err, bytes, "an image");
    *memory = grown;
    *has = bytes;
    return STK_OK;
}

static void scale_values(const float *values, int64_t count, uint8_t *to)
{
    float low = INFINITY, high = -INFINITY;

    for (int64_t i = 0; i < count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    for (int64_t i = 0; i < count; i++) {
        float share = high > low ? (values[i] - low) / (high - low) : 0.5f;

        to[i] = isfinite(share) ? (uint8_t)(255.0f * share + 0.5f) : 0;
    }
}

/* Scales small values, such as digits of 0 to 16, which would otherwise be nearly black. */
static void brighten(uint8_t *pixels, int64_t count)
{
    int largest = 0;

    for (int64_t i = 0; i < count; i++)
        largest = pixels[i] > largest ? pixels[i] : largest;
    for (int64_t i = 0; largest > 0 && largest < DARK && i < count; i++)
        pixels[i] = (uint8_t)(pixels[i] * 255 / largest);
}

/* Stores the image as packed u8 in sheet->image. */
static stk_status take_pixels(struct sheet *sheet, const stk_tensor *hwc, stk_error *err)
{
    int64_t strides[3], bytes, count = stk_tensor_numel(hwc);
    bool scaled = hwc->dtype != STK_U8;
    stk_status status = room(&sheet->image, &sheet->image_bytes, count, err);

    if (status == STK_OK && scaled)
        status = room((char **)(void *)&sheet->values, &sheet->values_bytes, count * 4, err);
    if (status == STK_OK)
        status = stki_row_major(scaled ? STK_F32 : STK_U8, 3, hwc->shape, strides, &bytes, err);
    if (status != STK_OK)
        return status;
    stki_copy_strided(scaled ? (void *)sheet->values : sheet->image, scaled ? STK_F32 : STK_U8, strides, hwc->data,
                      hwc->dtype, hwc->strides, hwc->flags & STK_TENSOR_SWAPPED, 3, hwc->shape);
    if (scaled)
        scale_values(sheet->values, count, (uint8_t *)sheet->image);
    else
        brighten((uint8_t *)sheet->image, count);
    return STK_OK;
}

/* Draws the image in cell number `cell`, scaled to fit. */
static stk_status draw(struct sheet *sheet, const stk_tensor *hwc, int64_t cell, stk_error *err)
{
    int64_t h = hwc->shape[0], w = hwc->shape[1], channels = hwc->shape[2], most = h > w ? h : w;
    int64_t out_h = h * CELL / most > 0 ? h * CELL / most : 1, out_w = w * CELL / most > 0 ? w * CELL / most : 1;
    int64_t top = GAP + cell / COLUMNS * (CELL + GAP) + (CELL - out_h) / 2;
    int64_t left = GAP + cell % COLUMNS * (CELL + GAP) + (CELL - out_w) / 2;
    stki_resize_job job = {.in_height = h,
                           .in_width = w,
                           .channels = (int)channels,
                           .box = {0, 0, (double)w, (double)h},
                           .out_height = out_h,
                           .out_width = out_w,
                           .filter = most < CELL ? STKI_FILTER_NEAREST : STKI_FILTER_BILINEAR};
    uint8_t small[CELL * CELL * 3];
    const stki_resize_support *part;
    stk_status status = take_pixels(sheet, hwc, err);

    if (status == STK_OK) /* small images are enlarged with sharp pixels, large ones smoothed */
        status = stki_resizer_set(sheet->resizer, &job, err);
    if (status != STK_OK)
        return status;
    part = stki_resizer_support(sheet->resizer);
    stki_resizer_run(sheet->resizer, (const uint8_t *)sheet->image + (part->top * w + part->left) * channels,
                     w * channels, small, out_w * channels);
    for (int64_t y = 0; y < out_h; y++)
        for (int64_t x = 0; x < out_w; x++)
            for (int64_t c = 0; c < 3; c++)
                sheet->pixels[((top + y) * sheet->width + left + x) * 3 + c] =
                    small[(y * out_w + x) * channels + (channels == 3 ? c : 0)];
    return STK_OK;
}

stk_status sheet_draw(struct sheet *sheet, const stk_tensor *image, const char *path, int64_t cell, stk_error *err)
{
    stk_tensor hwc;
    stk_status status = as_hwc(path, image, &hwc, err);

    if (status == STK_OK) {
        status = draw(sheet, &hwc, cell, err);
        stk_tensor_release(&hwc);
    }
    return status;
}

stk_status sheet_save(const struct sheet *sheet, const char *path, stk_error *err)
{
    struct spng_ihdr header = {.width = (uint32_t)sheet->width,
                               .height = (uint32_t)sheet->height,
                               .bit_depth = 8,
                               .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    stki_output *output;
    void *bytes = NULL;
    size_t count = 0;
    stk_status status;
    int failed = !png;

    if (!failed)
        failed = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1) || spng_set_ihdr(png, &header) ||
                 spng_encode_image(png, sheet->pixels, (size_t)(sheet->width * sheet->height * 3), SPNG_FMT_PNG,
                                   SPNG_ENCODE_FINALIZE);
    if (!failed)
        bytes = spng_get_png_buffer(png, &count, &failed);
    spng_ctx_free(png);
    if (failed || !bytes)
        return stki_fail_memory(err, sheet->width * sheet->height * 3, "a picture");
    status = stki_output_create(path, &output, err);
    if (status == STK_OK) {
        status = stki_output_append(output, bytes, (int64_t)count, err);
        if (status != STK_OK)
            stki_output_abort(output);
        else
            status = stki_output_commit(output, err);
    }
    free(bytes);
    return status;
}

stk_status sheet_create(int64_t images, struct sheet **out, stk_error *err)
{
    int64_t rows = (images + COLUMNS - 1) / COLUMNS, columns = images < COLUMNS ? images : COLUMNS;
    struct sheet *sheet = *out = stki_zalloc(sizeof *sheet);

    if (!sheet)
        return stki_fail_memory(err, sizeof *sheet, "a picture");
    sheet->width = GAP + columns * (CELL + GAP);
    sheet->height = GAP + rows * (CELL + GAP);
    sheet->pixels = stki_zalloc(sheet->width * sheet->height * 3);
    if (!sheet->pixels)
        return stki_fail_memory(err, sheet->width * sheet->height * 3, "a picture");
    memset(sheet->pixels, GROUND, (size_t)(sheet->width * sheet->height * 3));
    return stki_resizer_create(&sheet->resizer, err);
}

void sheet_destroy(struct sheet *sheet)
{
    if (!sheet)
        return;
    stki_resizer_destroy(sheet->resizer);
    stki_free(sheet->pixels);
    stki_free(sheet->image);
    stki_free(sheet->values);
    stki_free(sheet);
}
