/* finish_keep.c: `encode: keep`: keeps image files byte for byte. Their headers are read to determine their kind and
 * size for the sink; nothing is decoded or copied. The field is read with `source: {decode: none}`. */
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "finish.h"
#include <string.h>

typedef struct keep_options {
    const char *encode, *extension;
} keep_options;

static const stki_option keep_rows[] = {
    STKI_STRING(keep_options, encode, "keep", "keep: copy the image files (docs/reference/encode.md)",
                .flags = STKI_GIVEN, .examples = STKI_EXAMPLES("keep", "jpeg")),
    STKI_STRING(keep_options, extension, NULL,
                "Extension of files in archives, without the dot; by default jpg or png, by content",
                .examples = STKI_EXAMPLES("jpg", "jpeg")),
};
static const stki_option_table keep_table = STKI_OPTION_TABLE("output.fields.NAME (encode: keep)", keep_rows);

static stk_status keep_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                              stki_finisher **finisher, stk_error *err)
{
    keep_options o = {0};
    stk_status status;

    stki_options_defaults(&keep_table, &o);
    if ((status = stki_options_read(&keep_table, options, &o, NULL, err)) != STK_OK ||
        (status = stki_finish_takes_files(options, in, "keep", err)) != STK_OK)
        return status;
    *finisher = stki_zalloc(sizeof **finisher);
    if (!*finisher)
        return stki_fail_memory(err, (int64_t)sizeof **finisher, "a finisher");
    (*finisher)->ops = &stki_finish_keep;
    stki_finish_gives_files(out);
    return STK_OK;
}

static stk_status keep_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                           stki_sink_value *out, stk_error *err)
{
    const stki_decode_opts opts = {.max_bytes = INT64_MAX}; /* the decoded size does not matter */
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

const stki_finisher_ops stki_finish_keep = {
    .name = "keep", .table = &keep_table, .create = keep_create, .run = keep_run, .destroy = stki_finish_destroy};
