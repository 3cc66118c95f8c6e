/* image_sample.c: decodes an image into a sample in the worker's scratch memory, limited to the requested part. An
 * image that has to be rotated upright is decoded into a second buffer and copied once. */
#include "decode.h"
#include "error.h"
#include "tensor_internal.h"
#include <string.h>

stk_status stki_image_shape(const void *bytes, int64_t count, const stki_decode_opts *opts, int64_t shape[3],
                            stk_error *err)
{
    stki_image_info info;
    stk_status status = stki_image_info_of(bytes, count, opts, &info, err);

    if (status != STK_OK)
        return status;
    shape[0] = info.height;
    shape[1] = info.width;
    shape[2] = stki_image_channels(opts);
    return STK_OK;
}

static stki_image_part part_of(const stki_want *want)
{
    if (!want || want->ndim != 3)
        return (stki_image_part){0};
    return (stki_image_part){want->start[0],  want->start[1],      want->length[0],
                             want->length[1], want->enough_height, want->enough_width};
}

static stk_tensor view_of(void *data, const stki_image_pixels *pixels, int64_t row_stride, stk_dtype dtype)
{
    const int64_t size = stk_dtype_size(dtype);

    return (stk_tensor){.data = data,
                        .dtype = dtype,
                        .ndim = 3,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {pixels->height, pixels->width, pixels->channels},
                        .strides = {row_stride, pixels->channels * size, size}};
}

static stk_status decode_in_place(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                                  const stki_decode_opts *opts, const stki_image_pixels *pixels, stki_scratch *scratch,
                                  stk_tensor *out, stk_error *err)
{
    stk_status status = stki_scratch_reserve(scratch, pixels->bytes, err);

    if (status == STK_OK)
        status = stki_image_decode(decoder, bytes, count, info, opts, pixels, scratch->data, err);
    if (status == STK_OK)
        *out = view_of((uint8_t *)scratch->data + pixels->offset, pixels, pixels->row_stride, stki_image_dtype(opts));
    return status;
}

static stk_status decode_turned(stki_decoder *decoder, const void *bytes, int64_t count, const stki_image_info *info,
                                const stki_decode_opts *opts, const stki_image_pixels *pixels, stki_scratch *scratch,
                                stk_tensor *out, stk_error *err)
{
    const stk_dtype dtype = stki_image_dtype(opts);
    const int64_t size = stk_dtype_size(dtype), row = pixels->width * pixels->channels * size;
    int64_t to[3] = {row, pixels->channels * size, size}, from[3] = {pixels->row_stride, pixels->column_stride, size};
    void *stored;
    stk_status status = stki_scratch_reserve(scratch, pixels->height * row, err);

    if (status == STK_OK)
        status = stki_decoder_turning(decoder, pixels->bytes, &stored, err);
    if (status == STK_OK)
        status = stki_image_decode(decoder, bytes, count, info, opts, pixels, stored, err);
    if (status != STK_OK)
        return status;
    *out = view_of(scratch->data, pixels, row, dtype);
    stki_copy_strided(scratch->data, dtype, to, (uint8_t *)stored + pixels->offset, dtype, from, false, 3, out->shape);
    return STK_OK;
}

static stk_status decode_sample(const void *bytes, int64_t count, const stki_decode_opts *opts, const stki_want *want,
                                stki_scratch *scratch, stki_image_pixels *pixels, stk_tensor *out, stk_error *err)
{
    stki_image_part part = part_of(want);
    stki_decoder *decoder;
    stki_image_info info;
    stk_status status = stki_scratch_decoder(scratch, &decoder, err);

    if (status == STK_OK)
        status = stki_image_info_of(bytes, count, opts, &info, err);
    if (status == STK_OK)
        status = stki_image_check(&info, count, err);
    if (status == STK_OK)
        status = stki_image_plan(&info, opts, &part, pixels, err);
    if (status != STK_OK)
        return status;
    return pixels->column_stride == pixels->channels * stk_dtype_size(stki_image_dtype(opts)) && pixels->row_stride > 0
               ? decode_in_place(decoder, bytes, count, &info, opts, pixels, scratch, out, err)
               : decode_turned(decoder, bytes, count, &info, opts, pixels, scratch, out, err);
}

static bool is_whole(const stki_image_pixels *pixels)
{
    return pixels->scale == 1 && pixels->height == pixels->whole_height && pixels->width == pixels->whole_width;
}

stk_status stki_image_sample(const void *bytes, int64_t count, const stki_decode_opts *opts, const stki_want *want,
                             stki_scratch *scratch, const char *path, int64_t record, stk_tensor *out, stk_error *err)
{
    stki_image_pixels pixels;
    stk_status status = decode_sample(bytes, count, opts, want, scratch, &pixels, out, err);

    if (status != STK_OK)
        return stki_fail_place(err, status, path, record, NULL);
    stki_count(&scratch->warnings, stki_decoder_warned(scratch->decoder));
    if (want && want->given && !is_whole(&pixels))
        *want->given = (stki_given){pixels.scale, pixels.top, pixels.left, pixels.whole_height, pixels.whole_width};
    return STK_OK;
}
