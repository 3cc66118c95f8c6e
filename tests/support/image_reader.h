/* image_reader.h: a reader of generated images of different sizes that can return them in each way in which real
 * readers do: whole, only the requested part, at half size, or with rows and columns swapped in memory. The hook
 * wrap_reader of a loader's config puts it in place of a synthetic field. */
#ifndef STKT_IMAGE_READER_H
#define STKT_IMAGE_READER_H

#include "allocate.h"
#include "error.h"
#include "reader.h"
#include "stk_test.h"

enum stkt_image_way {
    STKT_WHOLE,   /* the whole image, whatever is requested */
    STKT_PART,    /* the requested part with some pixels around it */
    STKT_TURNED,  /* the whole image, stored by columns */
    STKT_HALF,    /* half size if that is enough: each pixel is the mean of four, rounded down */
    STKT_TOO_FEW, /* breaks the contract: less than the requested part */
    STKT_OTHER,   /* breaks the contract: a shape other than the announced one */
    STKT_NARROW   /* the same, with fewer columns */
};

typedef struct stkt_images {
    stki_reader base; /* first member */
    enum stkt_image_way way;
    int64_t min_side, max_side; /* if equal, all images have one size */
    int odd_one;                /* this record has another shape; -1: none */
} stkt_images;

static inline uint64_t stkt_image_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static inline uint8_t stkt_image_pixel(int64_t index, int64_t y, int64_t x, int64_t c)
{
    uint64_t noise = stkt_image_mix((uint64_t)(index * 1000003 + y * 4001 + x * 17 + c));

    return (uint8_t)((y * 3 + x * 2 + c * 40 + (int64_t)(noise % 64)) & 0xff);
}

static inline void stkt_image_size(const stkt_images *images, int64_t index, int64_t shape[3])
{
    const int64_t span = images->max_side - images->min_side + 1;

    shape[0] = images->min_side + (int64_t)(stkt_image_mix((uint64_t)index * 2 + 1) % (uint64_t)span);
    shape[1] = images->min_side + (int64_t)(stkt_image_mix((uint64_t)index * 2 + 2) % (uint64_t)span);
    shape[2] = 3;
    if (index == images->odd_one)
        shape[0] += 1;
}

/* Writes the whole image row by row. */
static inline void stkt_image_fill(const stkt_images *images, int64_t index, uint8_t *out)
{
    int64_t shape[3];

    stkt_image_size(images, index, shape);
    for (int64_t y = 0; y < shape[0]; y++)
        for (int64_t x = 0; x < shape[1]; x++)
            for (int64_t c = 0; c < 3; c++)
                *out++ = stkt_image_pixel(index, y, x, c);
}

static inline uint8_t stkt_image_half(int64_t index, int64_t y, int64_t x, int64_t c)
{
    int sum = 0;

    for (int i = 0; i < 4; i++)
        sum += stkt_image_pixel(index, 2 * y + i / 2, 2 * x + i % 2, c);
    return (uint8_t)(sum / 4);
}

static inline stk_status stkt_image_shape(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err)
{
    (void)err;
    stkt_image_size((const stkt_images *)(const void *)reader, index, shape);
    return STK_OK;
}

/* Returns height x width pixels from (top, left), with element (y, x) at the place given by the strides. */
static inline stk_status stkt_image_give(int64_t index, int64_t top, int64_t left, int64_t height, int64_t width,
                                         bool turned, bool half, stki_scratch *scratch, stk_tensor *out, stk_error *err)
{
    stk_status status = stki_scratch_reserve(scratch, height * width * 3 + 1, err);
    uint8_t *bytes = scratch->data;

    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = bytes, .dtype = STK_U8, .ndim = 3, .flags = STK_TENSOR_READONLY};
    out->shape[0] = height;
    out->shape[1] = width;
    out->shape[2] = 3;
    out->strides[0] = turned ? 3 : width * 3;
    out->strides[1] = turned ? height * 3 : 3;
    out->strides[2] = 1;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++)
                bytes[y * out->strides[0] + x * out->strides[1] + c] =
                    half ? stkt_image_half(index, top + y, left + x, c) : stkt_image_pixel(index, top + y, left + x, c);
    return STK_OK;
}

static inline stk_status stkt_image_read(const stki_reader *reader, int64_t index, const stki_want *want,
                                         stki_scratch *scratch, stk_tensor *out, stk_error *err)
{
    const stkt_images *images = (const stkt_images *)(const void *)reader;
    int64_t shape[3], top, left, bottom, right;

    stkt_image_size(images, index, shape);
    if (images->way == STKT_OTHER)
        return stkt_image_give(index, 0, 0, shape[0] - 1, shape[1], false, false, scratch, out, err);
    if (images->way == STKT_NARROW)
        return stkt_image_give(index, 0, 0, shape[0], shape[1] - 1, false, false, scratch, out, err);
    if (!want || images->way == STKT_WHOLE || images->way == STKT_TURNED)
        return stkt_image_give(index, 0, 0, shape[0], shape[1], images->way == STKT_TURNED, false, scratch, out, err);
    top = want->start[0];
    left = want->start[1];
    bottom = top + want->length[0];
    right = left + want->length[1];
    assert_true(want->start[0] >= 0 && want->start[1] >= 0 && bottom <= shape[0] && right <= shape[1]);
    assert_true(want->start[2] == 0 && want->length[2] == 3);
    if (images->way == STKT_HALF && want->enough_height > 0 && want->length[0] / 2 >= want->enough_height &&
        want->length[1] / 2 >= want->enough_width) {
        bottom = bottom / 2 < shape[0] / 2 ? (bottom + 1) / 2 : bottom / 2;
        right = right / 2 < shape[1] / 2 ? (right + 1) / 2 : right / 2;
        *want->given = (stki_given){2, top / 2, left / 2, shape[0] / 2, shape[1] / 2};
        return stkt_image_give(index, top / 2, left / 2, bottom - top / 2, right - left / 2, false, true, scratch, out,
                               err);
    }
    top -= top > 0;
    left -= left > 1 ? 2 : 0;
    *want->given = (stki_given){1, top, left, shape[0], shape[1]};
    if (images->way == STKT_TOO_FEW)
        bottom--;
    return stkt_image_give(index, top, left, bottom - top, right - left, false, false, scratch, out, err);
}

static inline void stkt_image_destroy(stki_reader *reader)
{
    free(reader->path);
    free(reader);
}

/* For config->wrap_reader. The context is a stkt_images with the parameters. The synthetic reader must have u8 samples
 * of [max_side + 1, max_side, 3]. */
static inline stk_status stkt_wrap_images(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    static const stki_reader_ops ops = {
        .format = "test images", .read = stkt_image_read, .shape = stkt_image_shape, .destroy = stkt_image_destroy};
    stkt_images *images;

    (void)err;
    if (strcmp(field, "image") != 0)
        return STK_OK;
    images = calloc(1, sizeof *images);
    assert_non_null(images);
    *images = *(const stkt_images *)context;
    images->base = (stki_reader){.ops = &ops,
                                 .path = strdup("images"),
                                 .count = (*reader)->count,
                                 .dtype = STK_U8,
                                 .ndim = 3,
                                 .shape = {images->max_side + 1, images->max_side, 3},
                                 .variable = true,
                                 .copies = true,
                                 .access = "none",
                                 .file_bytes = -1,
                                 .data_offset = -1,
                                 .max_bytes = (images->max_side + 1) * images->max_side * 3};
    stki_reader_destroy(*reader);
    *reader = &images->base;
    return STK_OK;
}

#endif
