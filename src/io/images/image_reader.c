/* image_reader.c: see image_reader.h. Images are not opened in advance. The size of an image is cached once known (8
 * bytes per image, accessed without a lock, because all threads write the same value). */
#include "image_reader.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "image_load.h"
#include "residency.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_PATH = 4096, MOST_SIDE = 65535, PROBES = 4 };

struct images {
    stki_reader base; /* first member */
    stki_container *container;
    const stki_image_set *set;
    stki_decode_opts decode;
    stki_counter *sizes; /* height << 32 | width or, if images are not decoded, size in bytes + 1; 0: not known yet */
    stki_residency residency;
};

static const struct images *images_of(const stki_reader *base)
{
    return (const struct images *)(const void *)base;
}

static stk_status find_path(const stki_reader *base, const stki_image_set *set, int64_t index, char *path,
                            stk_error *err)
{
    stk_status status = stki_reader_check_index(base, index, err);

    if (status != STK_OK)
        return status;
    if (!stki_image_set_path(set, index, path, MOST_PATH))
        return stki_fail_at(err, STK_E_LIMIT, (stki_place){base->path, index, -1, NULL, "at most 4095 bytes"},
                            "the path of the image is too long");
    return STK_OK;
}

static void remember(const struct images *images, int64_t index, int64_t height, int64_t width)
{
    if (height <= INT32_MAX && width <= UINT32_MAX) /* keeps height << 32 positive */
        stki_count_set(&images->sizes[index], height << 32 | width);
}

static stk_status images_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct images *images = images_of(base);
    char path[MOST_PATH];
    int64_t known;
    stk_status status = find_path(base, images->set, index, path, err);

    if (status != STK_OK)
        return status;
    known = stki_counted(&images->sizes[index]);
    if (known) {
        shape[0] = known >> 32;
        shape[1] = known & UINT32_MAX;
        shape[2] = stki_image_channels(&images->decode);
        return STK_OK;
    }
    status = stki_image_load_shape(path, index, &images->decode, shape, err);
    if (status == STK_OK)
        remember(images, index, shape[0], shape[1]);
    return status;
}

/* If all images have the same shape, batch rows are created without checking the shape of each sample, so it is checked
 * here. */
static stk_status check_shape(const stki_reader *base, const char *path, int64_t index, const stk_tensor *image,
                              stk_error *err)
{
    if (image->shape[0] == base->shape[0] && image->shape[1] == base->shape[1])
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){path, index, -1, STKI_TEXT("%" PRId64 " x %" PRId64, image->shape[0], image->shape[1]),
                     STKI_TEXT("%" PRId64 " x %" PRId64, base->shape[0], base->shape[1])},
        "the height or width of the image differs from the size that all images had when the files were opened");
}

static stk_status images_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct images *images = images_of(base);
    char path[MOST_PATH];
    stki_decoder *decoder;
    const void *bytes;
    int64_t count;
    stk_status status = find_path(base, images->set, index, path, err);

    if (status == STK_OK)
        status = stki_scratch_decoder(scratch, &decoder, err);
    if (status == STK_OK)
        status = stki_image_load(decoder, path, index, &bytes, &count, err);
    if (status == STK_OK)
        status = stki_image_sample(bytes, count, &images->decode, want, scratch, path, index, out, err);
    if (status != STK_OK || (want && (!want->given || want->given->scale != 0)))
        return status;
    remember(images, index, out->shape[0], out->shape[1]);
    return base->variable ? STK_OK : check_shape(base, path, index, out, err);
}

/* ---- not decoded ---- */

static stk_status bytes_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct images *images = images_of(base);
    char path[MOST_PATH];
    int64_t known;
    stk_status status = find_path(base, images->set, index, path, err);

    if (status != STK_OK)
        return status;
    known = stki_counted(&images->sizes[index]);
    if (known) {
        shape[0] = known - 1;
        return STK_OK;
    }
    status = stki_image_load_size(path, index, shape, err);
    if (status == STK_OK)
        stki_count_set(&images->sizes[index], shape[0] + 1);
    return status;
}

static stk_status bytes_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    char path[MOST_PATH];
    stki_decoder *decoder;
    const void *bytes;
    int64_t count;
    stk_status status = find_path(base, images_of(base)->set, index, path, err);

    (void)want;
    if (status == STK_OK)
        status = stki_scratch_decoder(scratch, &decoder, err);
    if (status == STK_OK)
        status = stki_image_load(decoder, path, index, &bytes, &count, err);
    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = (void *)(uintptr_t)bytes,
                        .dtype = STK_U8,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {count},
                        .strides = {1}};
    return STK_OK;
}

/* Returns the size of the largest file. Files whose size cannot be determined are skipped; they fail when they are
 * read. */
static int64_t largest_file(const stki_reader *base)
{
    int64_t largest = 0, size;

    for (int64_t i = 0; i < base->count; i++)
        if (bytes_shape(base, i, &size, NULL) == STK_OK && size > largest)
            largest = size;
    return largest;
}

/* ---- decoded or not ---- */

static bool images_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    return index >= 0 && index < base->count && stki_image_set_path(images_of(base)->set, index, buffer, size);
}

static void images_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct images *images = images_of(base);
    const int64_t now = stki_now_ns();
    char path[MOST_PATH];
    int64_t any;
    bool resident;

    if (count <= 0 || !stki_residency_due(&images->residency, now))
        return;
    any = (int64_t)((uint64_t)indices[0] * UINT64_C(0x9E3779B97F4A7C15) >> 33) % count;
    resident = stki_image_set_path(images->set, indices[any], path, sizeof path) && stki_image_load_ahead(path);
    if (!stki_residency_found((stki_residency *)(uintptr_t)&images->residency, resident, now))
        return;
    for (int64_t i = 0; i < count; i++)
        if (stki_image_set_path(images->set, indices[i], path, sizeof path))
            (void)stki_image_load_ahead(path);
}

static void images_destroy(stki_reader *base)
{
    struct images *images = (struct images *)(void *)base;

    stki_free(images->sizes);
    stki_container_release(images->container);
    stki_free(base->path);
    stki_free(images);
}

static const stki_reader_ops image_ops = {
    .format = "images",
    .read = images_read,
    .shape = images_shape,
    .path = images_path,
    .will_need = images_will_need,
    .destroy = images_destroy,
};

static const stki_reader_ops bytes_ops = {
    .format = "images",
    .read = bytes_read,
    .shape = bytes_shape,
    .path = images_path,
    .will_need = images_will_need,
    .destroy = images_destroy,
};

static void describe_files(stki_reader *base, int64_t count)
{
    base->count = count;
    base->dtype = STK_U8;
    base->variable = true;
    base->copies = true;
    base->access = "pread";
    base->file_bytes = base->data_offset = -1;
}

static void describe_bytes(stki_reader *base, int64_t max_bytes)
{
    base->ops = &bytes_ops;
    base->ndim = 1;
    base->strides[0] = 1;
    base->shape[0] = base->max_bytes = max_bytes > 0 ? max_bytes : largest_file(base);
}

static void describe_images(stki_reader *base, const stki_decode_opts *decode)
{
    base->ops = &image_ops;
    base->ndim = 3;
    base->image = true;
    base->shape[0] = base->shape[1] = MOST_SIDE;
    base->indices = decode->index;
    base->dtype = stki_image_dtype(decode);
    base->shape[2] = stki_image_channels(decode);
    base->strides[2] = stk_dtype_size(base->dtype);
    base->max_bytes = decode->max_bytes > 0 ? decode->max_bytes : STKI_IMAGE_MOST_BYTES;
}

/* Estimates the size of an image as that of the first readable one. */
static void estimate(stki_reader *base)
{
    int64_t shape[3];

    for (int64_t i = 0; i < PROBES && i < base->count; i++)
        if (images_shape(base, i, shape, NULL) == STK_OK) {
            base->max_bytes = shape[0] * shape[1] * shape[2] * stk_dtype_size(base->dtype);
            return;
        }
}

stk_status stki_image_reader_settle(stki_reader *base, stk_error *err)
{
    int64_t first[3] = {0}, shape[3];
    stk_status status = STK_OK;
    stk_error error;

    for (int64_t i = 0; i < base->count; i++) {
        stk_status found = images_shape(base, i, shape, &error);

        if (found != STK_OK && status == STK_OK && first[2] == 0) {
            status = found;
            if (err)
                *err = error;
        }
        if (found != STK_OK)
            continue;
        if (first[2] > 0 && memcmp(shape, first, sizeof shape) != 0)
            return STK_OK;
        memcpy(first, shape, sizeof first);
    }
    if (first[2] == 0)
        return status;
    memcpy(base->shape, first, sizeof first);
    base->strides[1] = first[2] * base->strides[2];
    base->strides[0] = first[1] * base->strides[1];
    base->max_bytes = first[0] * base->strides[0];
    base->variable = false;
    return STK_OK;
}

stk_status stki_image_reader_open(const stki_container *container, const stki_image_set *set,
                                  const stki_decode_opts *decode, stki_reader **out, stk_error *err)
{
    struct images *images = stki_zalloc(sizeof *images);

    if (!images)
        return stki_fail_memory(err, sizeof *images, "a reader of images");
    images->decode = *decode;
    images->set = set;
    describe_files(&images->base, set->count);
    images->base.ops = &bytes_ops;
    images->container = stki_container_retain(container);
    images->base.path = stki_strdup(container->path);
    images->sizes = stki_zalloc_array(set->count, sizeof *images->sizes);
    if (!images->base.path || !images->sizes) {
        images_destroy(&images->base);
        return stki_fail_memory(err, set->count * (int64_t)sizeof *images->sizes, "the sizes of images");
    }
    if (decode->none)
        describe_bytes(&images->base, decode->max_bytes);
    else
        describe_images(&images->base, &images->decode);
    if (decode->max_bytes <= 0 && !decode->none)
        estimate(&images->base);
    *out = &images->base;
    return STK_OK;
}

/* ---- paths ---- */

struct paths {
    stki_reader base; /* first member */
    stki_container *container;
    const stki_image_set *set;
};

static const struct paths *paths_of(const stki_reader *base)
{
    return (const struct paths *)(const void *)base;
}

static stk_status paths_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    char path[MOST_PATH];
    stk_status status = find_path(base, paths_of(base)->set, index, path, err);

    if (status == STK_OK)
        shape[0] = (int64_t)strlen(stki_image_set_name(paths_of(base)->set, index));
    return status;
}

static stk_status paths_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    int64_t length;
    stk_status status = paths_shape(base, index, &length, err);

    (void)want, (void)scratch;
    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = (char *)(uintptr_t)stki_image_set_name(paths_of(base)->set, index),
                        .dtype = STK_U8,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY,
                        .shape = {length},
                        .strides = {1}};
    return STK_OK;
}

static void paths_destroy(stki_reader *base)
{
    struct paths *paths = (struct paths *)(void *)base;

    stki_container_release(paths->container);
    stki_free(base->path);
    stki_free(paths);
}

static const stki_reader_ops path_ops = {
    .format = "paths", .read = paths_read, .shape = paths_shape, .destroy = paths_destroy};

stk_status stki_image_path_reader_open(const stki_container *container, const stki_image_set *set, stki_reader **out,
                                       stk_error *err)
{
    struct paths *paths = stki_zalloc(sizeof *paths);
    stki_reader *base;

    if (!paths)
        return stki_fail_memory(err, sizeof *paths, "a reader of paths");
    base = &paths->base;
    paths->set = set;
    paths->container = stki_container_retain(container);
    *base = (stki_reader){.ops = &path_ops,
                          .count = set->count,
                          .dtype = STK_U8,
                          .ndim = 1,
                          .strides = {1},
                          .variable = true,
                          .access = "memory",
                          .file_bytes = -1,
                          .data_offset = -1};
    for (int64_t i = 0; i < set->count; i++) {
        int64_t length = (int64_t)strlen(stki_image_set_name(set, i));
        base->max_bytes = length > base->max_bytes ? length : base->max_bytes;
    }
    base->shape[0] = base->max_bytes;
    base->path = stki_strdup(container->path);
    if (!base->path) {
        paths_destroy(base);
        return stki_fail_memory(err, (int64_t)strlen(container->path), "a reader of paths");
    }
    *out = base;
    return STK_OK;
}
