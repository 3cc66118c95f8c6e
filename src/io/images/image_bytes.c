/* image_bytes.c: see image_bytes.h. As in image_reader.c, the size of an image is cached once known; finding it
 * requires reading the bytes. */
#include "image_bytes.h"
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_SIDE = 65535 };

typedef struct bytes_options {
    bool images;
} bytes_options;

static const stki_option bytes_rows[] = {
    STKI_BOOL(bytes_options, images, false,
              "Decode samples that are the bytes of JPEG or PNG files: rows of uint8, opaque values, or rows of "
              "varying length"),
};
static const stki_option_table bytes_table = STKI_SOURCE_TABLE("encoded images", bytes_rows);
const stki_source_group stki_image_bytes_source = {&bytes_table, sizeof(bytes_options), NULL, NULL};

struct encoded {
    stki_reader base; /* first member */
    stki_reader *inner;
    stki_decode_opts decode;
    stki_counter *sizes; /* height << 32 | width of each image; 0: not known yet */
};

static const struct encoded *encoded_of(const stki_reader *base)
{
    return (const struct encoded *)(const void *)base;
}

/* Reads the file into the decoder's memory. */
static stk_status load(const struct encoded *e, int64_t index, stki_scratch *scratch, const void **bytes,
                       int64_t *count, stk_error *err)
{
    static const int64_t one = 1;
    stki_decoder *decoder;
    stk_tensor raw;
    void *room = NULL;
    stk_status status = stki_scratch_decoder(scratch, &decoder, err);

    if (status == STK_OK)
        status = e->inner->ops->read(e->inner, index, NULL, scratch, &raw, err);
    if (status != STK_OK)
        return status;
    *count = raw.shape[0];
    status = stki_decoder_room(decoder, *count, &room, err);
    if (status == STK_OK && *count > 0)
        stki_copy_strided(room, STK_U8, &one, raw.data, STK_U8, raw.strides, false, 1, count);
    stki_reader_done(e->inner, &raw);
    *bytes = room;
    return status;
}

static void remember(const struct encoded *e, int64_t index, int64_t height, int64_t width)
{
    if (height <= INT32_MAX && width <= UINT32_MAX)
        stki_count_set(&e->sizes[index], height << 32 | width);
}

static stk_status encoded_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct encoded *e = encoded_of(base);
    stki_scratch scratch;
    const void *bytes;
    int64_t known, count;
    stk_status status = stki_reader_check_index(base, index, err);

    if (status != STK_OK)
        return status;
    known = stki_counted(&e->sizes[index]);
    shape[0] = known >> 32;
    shape[1] = known & UINT32_MAX;
    shape[2] = stki_image_channels(&e->decode);
    if (known)
        return STK_OK;
    stki_scratch_init(&scratch);
    status = load(e, index, &scratch, &bytes, &count, err);
    if (status == STK_OK)
        status = stki_fail_place(err, stki_image_shape(bytes, count, &e->decode, shape, err), base->path, index, NULL);
    stki_scratch_fini(&scratch);
    if (status == STK_OK)
        remember(e, index, shape[0], shape[1]);
    return status;
}

static stk_status encoded_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                               stk_tensor *out, stk_error *err)
{
    const struct encoded *e = encoded_of(base);
    const void *bytes;
    int64_t count;
    stk_status status = load(e, index, scratch, &bytes, &count, err);

    if (status == STK_OK)
        status = stki_image_sample(bytes, count, &e->decode, want, scratch, base->path, index, out, err);
    if (status == STK_OK && !(want && (!want->given || want->given->scale != 0)))
        remember(e, index, out->shape[0], out->shape[1]);
    return status;
}

static void encoded_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const stki_reader *inner = encoded_of(base)->inner;

    if (inner->ops->will_need)
        inner->ops->will_need(inner, indices, count);
}

static void encoded_destroy(stki_reader *base)
{
    struct encoded *e = (struct encoded *)(void *)base;

    stki_reader_destroy(e->inner);
    stki_free(e->sizes);
    stki_free(base->path);
    stki_free(e);
}

static const stki_reader_ops encoded_ops = {.format = "images",
                                            .read = encoded_read,
                                            .shape = encoded_shape,
                                            .will_need = encoded_will_need,
                                            .destroy = encoded_destroy};

static void describe(struct encoded *e)
{
    stki_reader *base = &e->base;
    const stki_reader *inner = e->inner;
    int64_t shape[3];

    base->count = inner->count;
    base->dtype = stki_image_dtype(&e->decode);
    base->ndim = 3;
    base->image = base->variable = base->copies = true;
    base->indices = e->decode.index;
    base->shape[0] = base->shape[1] = MOST_SIDE;
    base->shape[2] = stki_image_channels(&e->decode);
    base->strides[2] = stk_dtype_size(base->dtype);
    base->access = inner->access;
    base->note = inner->note;
    base->held_bytes = inner->held_bytes;
    base->file_bytes = inner->file_bytes;
    base->data_offset = -1;
    base->file = inner->file;
    base->unit_first = inner->unit_first;
    base->unit_count = inner->unit_count;
    base->unit_length = inner->unit_length;
    base->max_bytes = e->decode.max_bytes > 0 ? e->decode.max_bytes : STKI_IMAGE_MOST_BYTES;
    if (e->decode.max_bytes <= 0 && base->count > 0 && encoded_shape(base, 0, shape, NULL) == STK_OK)
        base->max_bytes = shape[0] * shape[1] * shape[2] * base->strides[2]; /* estimated */
}

static stk_status wrap(stki_reader *inner, const stki_decode_opts *decode, stki_reader **out, stk_error *err)
{
    struct encoded *e = stki_zalloc(sizeof *e);

    if (!e) {
        stki_reader_destroy(inner);
        return stki_fail_memory(err, (int64_t)sizeof *e, "a reader of images");
    }
    e->base.ops = &encoded_ops;
    e->inner = inner;
    e->decode = *decode;
    e->base.path = stki_strdup(inner->path);
    e->sizes = stki_zalloc_array(inner->count > 0 ? inner->count : 1, sizeof *e->sizes);
    if (!e->base.path || !e->sizes) {
        encoded_destroy(&e->base);
        return stki_fail_memory(err, inner->count * (int64_t)sizeof *e->sizes, "the sizes of images");
    }
    describe(e);
    *out = &e->base;
    return STK_OK;
}

stk_status stki_image_bytes_finish(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                   stki_reader **reader, stk_error *err)
{
    const stki_decode_opts decode = stki_image_opts(opts);
    const stki_reader *inner = *reader;
    bytes_options options;
    stk_status status = STK_OK;

    stki_source_values(opts, &stki_image_bytes_source, &options);
    if (!options.images &&
        (decode.none || decode.fast || decode.gray || decode.deep || decode.upright || decode.accept_warnings))
        status = stki_fail_at(
            err, STK_E_CONFIG,
            (stki_place){container->path, -1, -1, "image options (color, decode, …)", "source.images: true"},
            "member %s: image options require source.images", container->members[member].name);
    else if (options.images && (inner->dtype != STK_U8 || inner->ndim != 1))
        status = stki_fail_at(err, STK_E_UNSUPPORTED,
                              (stki_place){container->path, -1, -1,
                                           STKI_TEXT("samples of %s with %d %s", stk_dtype_long_name(inner->dtype),
                                                     inner->ndim, inner->ndim == 1 ? "axis" : "axes"),
                                           "rows of uint8, which are the bytes of image files"},
                              "member %s: source.images: the samples are not encoded images",
                              container->members[member].name);
    if (status != STK_OK) {
        stki_reader_destroy(*reader);
        return status;
    }
    return options.images && !decode.none ? wrap(*reader, &decode, reader, err) : STK_OK;
}
