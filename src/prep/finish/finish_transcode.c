/* finish_transcode.c: `encode: {transcode: jpeg}`: losslessly rewrites JPEG images so that a loader can decode parts of
 * them (jpeg_cut.h). The field is read with `source: {decode: none}`. PNG images and images that cannot be transcoded
 * are kept unchanged, and counted. */
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "finish.h"
#include "image_kind.h"
#include "jpeg_decode.h"
#include "jpeg_transcode.h"
#include <string.h>

typedef struct transcode_how {
    int transcode;
    int64_t restart;
} transcode_how;

static const char *const transcode_words[] = {"jpeg", NULL};

static const stki_option how_rows[] = {
    STKI_ENUM(transcode_how, transcode, jpeg, transcode_words,
              "jpeg: rewrite JPEG images as baseline JPEG with restart markers, keeping pixels and metadata "
              "(docs/reference/encode.md)",
              .flags = STKI_GIVEN),
    STKI_INT(transcode_how, restart, 2, 1, STKI_JPEG_MOST_RESTART, "MCUs",
             "Maximum number of MCUs between restart markers, rounded down to a divisor of a row's MCUs"),
};
const stki_option_table stki_transcode_table = STKI_OPTION_TABLE("output.fields.NAME.encode", how_rows);

typedef struct transcode_options {
    const stki_node *encode;
    const char *extension;
} transcode_options;

static const stki_option transcode_rows[] = {
    STKI_NODE(transcode_options, encode, "How encoded images are rewritten: {transcode: jpeg, restart: 2}",
              .flags = STKI_GIVEN, .inner = &stki_transcode_table),
    STKI_STRING(transcode_options, extension, NULL,
                "Extension of files in archives, without the dot; by default jpg or png, by content",
                .examples = STKI_EXAMPLES("jpg", "jpeg")),
};
static const stki_option_table transcode_table =
    STKI_OPTION_TABLE("output.fields.NAME (encode: {transcode: jpeg})", transcode_rows);

typedef struct transcoder {
    stki_finisher base; /* first member */
    int64_t restart;
} transcoder;

static stk_status check_key(const stki_node *encode, stk_error *err)
{
    return stki_node_get(encode, "transcode") ? STK_OK : stki_fail_value(err, encode, "a map with transcode: jpeg");
}

static stk_status transcode_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                                   stki_finisher **finisher, stk_error *err)
{
    transcode_options o = {0};
    transcode_how how = {0};
    transcoder *made;
    stk_status status;

    stki_options_defaults(&transcode_table, &o);
    stki_options_defaults(&stki_transcode_table, &how);
    if ((status = stki_options_read(&transcode_table, options, &o, NULL, err)) != STK_OK ||
        (status = stki_options_read(&stki_transcode_table, o.encode, &how, NULL, err)) != STK_OK ||
        (status = check_key(o.encode, err)) != STK_OK ||
        (status = stki_finish_takes_files(options, in, "{transcode: jpeg}", err)) != STK_OK)
        return status;
    made = stki_zalloc(sizeof *made);
    if (!made)
        return stki_fail_memory(err, (int64_t)sizeof *made, "a finisher");
    made->base.ops = &stki_finish_transcode;
    made->restart = how.restart;
    *finisher = &made->base;
    stki_finish_gives_files(out);
    return STK_OK;
}

static stk_status transcode_jpeg(const transcoder *made, stki_jpeg_room *room, const stki_row *in, stki_bytes *to,
                                 stki_sink_value *out, stk_error *err)
{
    stki_jpeg_transcoded jpeg = {0};
    stk_status status = stki_jpeg_transcode(in->bytes, in->size, made->restart, room, &jpeg, err);

    if (status != STK_OK)
        return status;
    *out = (stki_sink_value){.height = jpeg.height,
                             .width = jpeg.width,
                             .channels = jpeg.components,
                             .encoding = STKI_JPEG,
                             .stays = jpeg.stays};
    if (jpeg.stays) {
        out->bytes = in->bytes;
        out->size = in->size;
        return STK_OK;
    }
    return stki_finish_put(to, room->data, jpeg.bytes, out, err);
}

static stk_status transcode_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                                stki_sink_value *out, stk_error *err)
{
    const char *what;
    stk_status status;

    if (stki_image_kind_of(in->bytes, in->size, &what) == STKI_KIND_JPEG)
        return transcode_jpeg((const transcoder *)(const void *)finisher, scratch, in, to, out, err);
    status = stki_finish_keep.run(finisher, scratch, in, to, out, err);
    out->stays = "PNG";
    return status;
}

const stki_finisher_ops stki_finish_transcode = {.name = "transcode",
                                                 .most_out = 2,
                                                 .table = &transcode_table,
                                                 .create = transcode_create,
                                                 .scratch = stki_finish_jpeg_scratch,
                                                 .scratch_destroy = stki_finish_jpeg_scratch_destroy,
                                                 .run = transcode_run,
                                                 .describe = stki_finish_jpeg_describe,
                                                 .destroy = stki_finish_destroy};
