/* oracle_jpeg.c: JPEG files and folders of them, decoded to RGB and grayscale, upright, with the fast DCT, and at 1/2,
 * 1/4 and 1/8 of the size. The results are compared with the SHA-256 of what the original libraries decode. */
#include "format.h"
#include "image_load.h"
#include "jpeg_decode.h"
#include "oracle.h"
#include "sha256.h"
#include "source_opts.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void check_pixels(struct outcome *o, const stk_tensor *pixels, const char *digest, const char *how)
{
    char *bytes = malloc((size_t)stk_tensor_nbytes(pixels) + 1), found[65];

    oracle_copy_out(bytes, pixels);
    stkt_sha256_of(bytes, (size_t)stk_tensor_nbytes(pixels), found);
    free(bytes);
    if (strcmp(found, digest))
        oracle_wrong(o, "%s: found sha256 %s, expected %s", how, found, digest);
}

static void check_size(struct outcome *o, const stk_tensor *pixels, int64_t width, int64_t height, const char *how)
{
    if (pixels->ndim != 3 || pixels->dtype != STK_U8 || pixels->shape[0] != height || pixels->shape[1] != width)
        oracle_wrong(o, "%s: found %" PRId64 "x%" PRId64 ", expected %" PRId64 "x%" PRId64, how, pixels->shape[1],
                     pixels->shape[0], width, height);
}

static int64_t number_of(const json_t *item, const char *key)
{
    return json_integer_value(json_object_get(item, key));
}

/* ---- through the decoder: modes that no reader option selects ---- */

static void check_how(struct outcome *o, const void *bytes, int64_t count, const json_t *item, int scale, bool fast_dct,
                      int64_t width, int64_t height, const char *digest, const char *name)
{
    stki_jpeg_how how = {.stored_height = number_of(item, "height"),
                         .stored_width = number_of(item, "width"),
                         .scale = scale,
                         .fast_dct = fast_dct,
                         .height = height,
                         .width = width};
    uint8_t *pixels = malloc((size_t)(width * height * 3) + 1);
    char found[65];
    int64_t warnings;
    stk_error err;

    if (stki_jpeg_decode(bytes, count, &how, pixels, width * 3, NULL, &warnings, &err))
        oracle_wrong(o, "%s: %s", name, err.message);
    stkt_sha256_of(pixels, (size_t)(width * height * 3), found);
    if (strcmp(found, digest))
        oracle_wrong(o, "%s: found sha256 %s, expected %s", name, found, digest);
    free(pixels);
}

static void check_decoder(struct outcome *o, const char *path, const json_t *item)
{
    static const char *const scaled[] = {"rgb_1_2", "rgb_1_4", "rgb_1_8"};
    const char *fast = oracle_text(item, "rgb_fastdct_sha256");
    stki_decoder *decoder;
    const void *bytes;
    int64_t count;
    stk_error err;

    if (stki_decoder_create(&decoder, &err) || stki_image_load(decoder, path, 0, &bytes, &count, &err)) {
        oracle_wrong(o, "loading: %s", err.message);
        return;
    }
    if (*fast)
        check_how(o, bytes, count, item, 1, true, number_of(item, "width"), number_of(item, "height"), fast,
                  "fast DCT");
    for (int i = 0; i < 3; i++) {
        const json_t *expected = json_object_get(item, scaled[i]);
        if (expected)
            check_how(o, bytes, count, item, 2 << i, false, json_integer_value(json_array_get(expected, 0)),
                      json_integer_value(json_array_get(expected, 1)), json_string_value(json_array_get(expected, 2)),
                      scaled[i]);
    }
    stki_decoder_destroy(decoder);
}

/* ---- through a reader ---- */

static stk_status open_reader(struct outcome *o, const char *path, const stki_reader_opts *opts, stki_reader **out)
{
    stki_container *container;
    int64_t member;

    o->status = stki_container_open(path, opts, &container, &o->err);
    if (o->status)
        return o->status;
    o->status = stki_container_find(container, opts, &member, &o->err);
    if (!o->status)
        o->status = stki_container_reader(container, member, opts, out, &o->err);
    stki_container_release(container);
    return o->status;
}

/* Reads sample `index`, and checks its size and pixels if `digest` is not empty. */
static void check_sample(struct outcome *o, const char *path, const char *source, int64_t index, int64_t width,
                         int64_t height, const char *digest, const char *how)
{
    const stki_reader_opts *opts = stkt_source(source);
    stki_scratch scratch;
    stki_reader *reader;
    stk_tensor pixels;

    if (open_reader(o, path, opts, &reader))
        return;
    stki_scratch_init(&scratch);
    o->status = reader->ops->read(reader, index, NULL, &scratch, &pixels, &o->err);
    if (!o->status && *digest) {
        check_size(o, &pixels, width, height, how);
        check_pixels(o, &pixels, digest, how);
    }
    if (!o->status)
        stki_reader_done(reader, &pixels);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void check_item(struct outcome *o, const char *path, const json_t *entry, int64_t index, const json_t *item)
{
    int64_t width = number_of(item, "width"), height = number_of(item, "height");
    const char *rgb = oracle_text(item, "rgb_sha256"), *gray = oracle_text(item, "gray_sha256");
    const json_t *upright = json_object_get(item, "upright");

    if (!*rgb)
        rgb = oracle_text(item, "rgb_naive_sha256");
    check_sample(o, path, "{name: image}", index, width, height, rgb, "RGB");
    oracle_judge(o, entry, path, "RGB");
    if (o->status)
        return;
    if (*gray)
        check_sample(o, path, "{name: image, color: gray}", index, width, height, gray, "gray");
    if (upright)
        check_sample(o, path, "{name: image, orientation: upright}", index,
                     json_integer_value(json_array_get(upright, 0)), json_integer_value(json_array_get(upright, 1)),
                     json_string_value(json_array_get(upright, 2)), "upright");
    else if (*rgb)
        check_sample(o, path, "{name: image, orientation: upright}", index, width, height, rgb, "upright as stored");
    oracle_judge(o, entry, path, "in other ways");
}

void oracle_jpeg(struct outcome *o, const char *path, const json_t *entry)
{
    const json_t *item = json_array_get(json_object_get(entry, "items"), 0);

    check_item(o, path, entry, 0, item);
    if (!o->status && item)
        check_decoder(o, path, item);
}

/* ---- folders ---- */

static void check_text(struct outcome *o, const char *dir, int64_t index, const json_t *item)
{
    stki_reader_opts opts = {.name = "path"};
    const char *name = oracle_text(item, "name");
    stki_reader *reader;
    stk_tensor text;

    if (open_reader(o, dir, &opts, &reader))
        return;
    o->status = reader->ops->read(reader, index, NULL, NULL, &text, &o->err);
    if (!o->status && ((size_t)text.shape[0] != strlen(name) || memcmp(text.data, name, strlen(name)) != 0))
        oracle_wrong(o, "image %" PRId64 ": found %.*s, expected %s", index, (int)text.shape[0],
                     (const char *)text.data, name);
    stki_reader_destroy(reader);
}

static void check_label(struct outcome *o, const char *dir, int64_t index, const json_t *item)
{
    stki_reader_opts opts = {.name = "label"};
    stki_scratch scratch;
    stki_reader *reader;
    stk_tensor label;
    int64_t value = -1;

    if (open_reader(o, dir, &opts, &reader))
        return;
    stki_scratch_init(&scratch);
    o->status = reader->ops->read(reader, index, NULL, &scratch, &label, &o->err);
    if (!o->status) {
        if (label.dtype == STK_I64 && label.ndim == 0)
            memcpy(&value, label.data, sizeof value);
        if (value != number_of(item, "label"))
            oracle_wrong(o, "image %" PRId64 ": found label %" PRId64, index, value);
        stki_reader_done(reader, &label);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

void oracle_jpeg_folder(struct outcome *o, const char *path, const json_t *entry)
{
    const json_t *items = json_object_get(entry, "items"), *item;
    const char *slash = strrchr(path, '/');
    stki_reader_opts opts = {.name = "image"};
    stki_reader *reader;
    char dir[4096];
    size_t i;

    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (open_reader(o, dir, &opts, &reader) == STK_OK) {
        if (reader->count != (int64_t)json_array_size(items))
            oracle_wrong(o, "found %" PRId64 " images, expected %zu", reader->count, json_array_size(items));
        stki_reader_destroy(reader);
    }
    json_array_foreach(items, i, item)
    {
        if (!o->status)
            check_item(o, dir, entry, (int64_t)i, item);
        if (!o->status)
            check_text(o, dir, (int64_t)i, item);
        if (!o->status)
            check_label(o, dir, (int64_t)i, item);
    }
    oracle_judge(o, entry, dir, "folder");
}
