/* finish_keep.c: `encode: keep`: images stay the files they were, byte for byte. Their headers are read, so that the
 * sink knows what they are and how large; nothing is decoded and nothing copied. The field is read with
 * `source: {decode: none}`. */
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "finish.h"
#include <string.h>

typedef struct keep_options {
    const char *encode, *extension;
} keep_options;

static const stki_option keep_rows[] = {
    STKI_STRING(keep_options, encode, "keep", "keep: images stay the files they were (docs/encode.md)",
                .flags = STKI_GIVEN, .examples = STKI_EXAMPLES("keep", "jpeg")),
    STKI_STRING(keep_options, extension, NULL,
                "Of files in archives, without the dot; by default what each image is: jpg or png",
                .examples = STKI_EXAMPLES("jpg", "jpeg")),
};
static const stki_option_table keep_table = STKI_OPTION_TABLE("output.fields.NAME (encode: keep)", keep_rows);

static stk_status keep_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                              stki_finisher **finisher, stk_error *err)
{
    keep_options o = {0};
    stk_status status;

    stki_options_defaults(&keep_table, &o);
    status = stki_options_read(&keep_table, options, &o, NULL, err);
    if (status != STK_OK)
        return status;
    if (in->dtype != STK_U8 || in->ndim != 1 || (in->kind != STKI_SINK_RAGGED && in->kind != STKI_SINK_BYTES))
        return stki_finish_refuse(
            err, options, in,
            "encode: keep needs the bytes of the images as they are: give dataset.fields.%s.source "
            "{decode: none}, and no transforms",
            in->name);
    *finisher = stki_zalloc(sizeof **finisher);
    if (!*finisher)
        return stki_fail_memory(err, (int64_t)sizeof **finisher, "a finisher");
    (*finisher)->ops = &stki_finish_keep;
    out->kind = STKI_SINK_IMAGE;
    out->encodings = 1U << STKI_JPEG | 1U << STKI_PNG;
    out->ndim = 3;
    memset(out->shape, 0, sizeof out->shape);
    return STK_OK;
}

static stk_status keep_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                           stki_sink_value *out, stk_error *err)
{
    const stki_decode_opts opts = {.max_bytes = INT64_MAX}; /* whatever it would take to decode */
    stki_image_info info;
    stk_status status = stki_image_info_of(in->bytes, in->size, &opts, &info, err);

    (void)finisher, (void)scratch, (void)to;
    if (status == STK_OK)
        status = stki_image_check(&info, in->size, err);
    if (status != STK_OK)
        return status;
    *out = (stki_sink_value){.bytes = in->bytes,
                             .size = in->size,
                             .height = info.stored_height,
                             .width = info.stored_width,
                             .channels = info.channels,
                             .encoding = strcmp(info.format, "png") == 0 ? STKI_PNG : STKI_JPEG};
    return STK_OK;
}

static void keep_destroy(stki_finisher *finisher)
{
    stki_free(finisher);
}

const stki_finisher_ops stki_finish_keep = {
    .name = "keep", .table = &keep_table, .create = keep_create, .run = keep_run, .destroy = keep_destroy};
