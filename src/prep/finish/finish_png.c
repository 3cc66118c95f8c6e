/* finish_png.c: `encode: png`: encodes pixels losslessly as PNG images, for masks, drawings and data that is measured
 * per pixel. */
#include "allocate.h"
#include "error.h"
#include "finish.h"
#include "png_encode.h"

typedef struct png_options {
    const char *encode, *extension;
    int64_t level;
} png_options;

static const stki_option png_rows[] = {
    STKI_STRING(png_options, encode, "png", "png: encode images as PNG, without loss (docs/reference/encode.md)",
                .flags = STKI_GIVEN, .examples = STKI_EXAMPLES("png", "jpeg")),
    STKI_STRING(png_options, extension, "png", "Extension of files in archives, without the dot",
                .examples = STKI_EXAMPLES("png", "PNG")),
    STKI_INT(png_options, level, 6, 0, 9, "", "Compression level; 0: none"),
};
static const stki_option_table png_table = STKI_OPTION_TABLE("output.fields.NAME (encode: png)", png_rows);

typedef struct png_finisher {
    stki_finisher base; /* first member */
    int level, bits;
} png_finisher;

static stk_status png_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                             stki_finisher **finisher, stk_error *err)
{
    png_options o = {0};
    png_finisher *png;
    stk_status status;

    stki_options_defaults(&png_table, &o);
    status = stki_options_read(&png_table, options, &o, NULL, err);
    if (status == STK_OK)
        status = stki_finish_takes_pixels(options, in, "png", true, err);
    if (status != STK_OK)
        return status;
    png = stki_zalloc(sizeof *png);
    if (!png)
        return stki_fail_memory(err, (int64_t)sizeof *png, "a finisher");
    png->base.ops = &stki_finish_png;
    png->level = (int)o.level;
    png->bits = in->dtype == STK_U16 ? 16 : 8;
    *finisher = &png->base;
    stki_finish_gives_images(in, out);
    out->extension = o.extension;
    out->encodings = 1U << STKI_PNG;
    out->largest_bytes = 0; /* the maximum is unknown */
    return STK_OK;
}

static stk_status png_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                          stki_sink_value *out, stk_error *err)
{
    const png_finisher *png = (const png_finisher *)(const void *)finisher;
    const int64_t channels = in->ndim == 2 ? 1 : in->shape[2];
    void *file = NULL;
    int64_t bytes;
    stk_status status;

    (void)scratch;
    *out = (stki_sink_value){.height = in->shape[0], .width = in->shape[1], .channels = channels, .encoding = STKI_PNG};
    status = stki_png_encode(in->bytes, in->shape[0], in->shape[1], channels == 1 || channels == 3 ? (int)channels : 0,
                             png->bits, png->level, &file, &bytes, err);
    if (status == STK_OK)
        status = stki_finish_put(to, file, bytes, out, err);
    stki_free(file);
    return status;
}

static json_t *png_describe(const stki_finisher *finisher)
{
    (void)finisher;
    return json_pack("{s:s}", "libspng", stki_png_version());
}

const stki_finisher_ops stki_finish_png = {.name = "png",
                                           .most_out = 1,
                                           .table = &png_table,
                                           .create = png_create,
                                           .run = png_run,
                                           .describe = png_describe,
                                           .destroy = stki_finish_destroy};
