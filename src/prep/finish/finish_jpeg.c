/* finish_jpeg.c: `encode: jpeg`: encodes all or some rows of pixels as JPEG images. The choice depends only on the
 * row's position in the job's order (proportion) or on its size (above_pixels, above_bytes). Other rows are passed to
 * the sink as pixels, without a copy. */
#include "allocate.h"
#include "error.h"
#include "finish.h"
#include "jpeg_decode.h"
#include "jpeg_encode.h"
#include "philox.h"
#include <inttypes.h>
#include <math.h>

static const char *const subsampling_words[] = {"444", "422", "420",
                                                NULL}; /* in the order of enum stki_jpeg_subsampling */

typedef struct jpeg_options {
    const char *encode, *extension;
    int64_t quality, restart, above_pixels, above_bytes, seed;
    double proportion;
    int subsampling;
    bool optimize, progressive;
} jpeg_options;

static const stki_option jpeg_rows[] = {
    STKI_STRING(jpeg_options, encode, "jpeg", "jpeg: encode images as JPEG (docs/reference/encode.md)",
                .flags = STKI_GIVEN, .examples = STKI_EXAMPLES("jpeg", "png")),
    STKI_STRING(jpeg_options, extension, NULL, "Extension of files in archives, without the dot; by default jpg",
                .examples = STKI_EXAMPLES("jpg", "jpeg")),
    STKI_INT(jpeg_options, quality, 90, 1, 100, "", "Quality on libjpeg's scale"),
    STKI_ENUM(jpeg_options, subsampling, 420, subsampling_words,
              "Chroma subsampling: none (444), columns (422), or columns and rows (420)"),
    STKI_BOOL(jpeg_options, optimize, false, "Optimize Huffman tables per image: slightly smaller, slower to write"),
    STKI_BOOL(jpeg_options, progressive, false, "Progressive JPEG: even smaller, but much slower to write and to read"),
    STKI_INT(jpeg_options, restart, 0, 0, STKI_JPEG_MOST_RESTART, "MCUs",
             "Maximum number of MCUs between restart markers, rounded down to a divisor of a row's MCUs, so that "
             "loaders can decode only the crop; 0: no markers"),
    STKI_DOUBLE(jpeg_options, proportion, 1, 0, 1, "of 1",
                "Fraction of the images that are encoded as JPEG, drawn at random; the others are stored as pixels"),
    STKI_INT(jpeg_options, seed, 0, 0, INT64_MAX, "", "Seed of the draw"),
    STKI_INT(jpeg_options, above_pixels, 0, 0, INT64_MAX, "pixels",
             "Encode only images with more pixels than this as JPEG; the others are stored as pixels"),
    STKI_SIZE(jpeg_options, above_bytes, 0, 0, INT64_MAX,
              "Encode only images with more bytes of pixel data than this as JPEG"),
};
static const stki_option_table jpeg_table = STKI_OPTION_TABLE("output.fields.NAME (encode: jpeg)", jpeg_rows);

typedef struct jpeg_finisher {
    stki_finisher base; /* first member */
    stki_jpeg_form form;
    uint64_t seed;
    uint64_t below; /* fraction to encode, in units of 2^-32 */
    int64_t above_pixels, above_bytes;
} jpeg_finisher;

static bool is_mixed(const jpeg_options *o)
{
    return o->proportion < 1 || o->above_pixels > 0 || o->above_bytes > 0;
}

static stk_status check_together(const stki_node *options, const jpeg_options *o, stk_error *err)
{
    if ((o->proportion < 1) + (o->above_pixels > 0) + (o->above_bytes > 0) > 1)
        return stki_fail_node(err, options, "expected one of proportion, above_pixels and above_bytes");
    if (o->seed != 0 && !(o->proportion < 1))
        return stki_fail_key(err, stki_node_get(options, "seed"), "is only used by proportion");
    if (o->restart > 0 && o->progressive)
        return stki_fail_key(err, stki_node_get(options, "restart"),
                             "parts of progressive images cannot be decoded separately: remove restart or progressive");
    return STK_OK;
}

static stk_status jpeg_create(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                              stki_finisher **finisher, stk_error *err)
{
    jpeg_options o = {0};
    jpeg_finisher *jpeg;
    stk_status status;

    stki_options_defaults(&jpeg_table, &o);
    if ((status = stki_options_read(&jpeg_table, options, &o, NULL, err)) != STK_OK ||
        (status = check_together(options, &o, err)) != STK_OK ||
        (status = stki_finish_takes_pixels(options, in, "jpeg", false, err)) != STK_OK)
        return status;
    jpeg = stki_zalloc(sizeof *jpeg);
    if (!jpeg)
        return stki_fail_memory(err, (int64_t)sizeof *jpeg, "a finisher");
    jpeg->base.ops = &stki_finish_jpeg;
    jpeg->form = (stki_jpeg_form){.quality = (int)o.quality,
                                  .subsampling = (enum stki_jpeg_subsampling)o.subsampling,
                                  .optimize = o.optimize,
                                  .progressive = o.progressive,
                                  .restart = o.restart};
    jpeg->seed = (uint64_t)o.seed;
    jpeg->below = (uint64_t)rint(o.proportion * 0x1p32);
    jpeg->above_pixels = o.above_pixels;
    jpeg->above_bytes = o.above_bytes;
    *finisher = &jpeg->base;

    stki_finish_gives_images(in, out);
    out->extension = o.extension ? o.extension : is_mixed(&o) ? in->extension : "jpg";
    out->encodings = 1U << STKI_JPEG | (unsigned)is_mixed(&o) << STKI_PLAIN;
    if (!is_mixed(&o))
        out->largest_bytes = 0; /* unknown, because the JPEG of a noisy image can exceed its pixels */
    return STK_OK;
}

stk_status stki_finish_jpeg_scratch(const stki_finisher *finisher, void **out, stk_error *err)
{
    (void)finisher;
    *out = stki_zalloc(sizeof(stki_jpeg_room));
    return *out ? STK_OK : stki_fail_memory(err, (int64_t)sizeof(stki_jpeg_room), "an encoder");
}

void stki_finish_jpeg_scratch_destroy(void *scratch)
{
    stki_jpeg_room_fini(scratch);
    stki_free(scratch);
}

static bool stays_pixels(const jpeg_finisher *jpeg, const stki_row *in)
{
    if (jpeg->above_pixels > 0)
        return in->shape[0] * in->shape[1] <= jpeg->above_pixels;
    if (jpeg->above_bytes > 0)
        return in->size <= jpeg->above_bytes;
    return jpeg->below < UINT64_C(1) << 32 &&
           stki_philox_draw(jpeg->seed, 0, (uint64_t)in->position).word[0] >= jpeg->below;
}

static stk_status jpeg_run(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                           stki_sink_value *out, stk_error *err)
{
    const jpeg_finisher *jpeg = (const jpeg_finisher *)(const void *)finisher;
    const int64_t channels = in->ndim == 2 ? 1 : in->shape[2];
    const stki_jpeg_pixels image = {.pixels = in->bytes,
                                    .height = in->shape[0],
                                    .width = in->shape[1],
                                    .channels = channels == 1 || channels == 3 ? (int)channels : 0,
                                    .row_bytes = in->shape[1] * channels};
    stki_jpeg_room *room = scratch;
    int64_t bytes;
    stk_status status;

    *out = (stki_sink_value){.height = image.height, .width = image.width, .channels = channels};
    if (stays_pixels(jpeg, in)) {
        out->bytes = in->bytes;
        out->size = in->size;
        return STK_OK;
    }
    out->encoding = STKI_JPEG;
    status = stki_jpeg_encode(&image, &jpeg->form, room, &bytes, err);
    return status == STK_OK ? stki_finish_put(to, room->data, bytes, out, err) : status;
}

json_t *stki_finish_jpeg_describe(const stki_finisher *finisher)
{
    (void)finisher;
    return json_pack("{s:s}", "libjpeg_turbo", stki_jpeg_version());
}

const stki_finisher_ops stki_finish_jpeg = {.name = "jpeg",
                                            .most_out = 1,
                                            .table = &jpeg_table,
                                            .create = jpeg_create,
                                            .scratch = stki_finish_jpeg_scratch,
                                            .scratch_destroy = stki_finish_jpeg_scratch_destroy,
                                            .run = jpeg_run,
                                            .describe = stki_finish_jpeg_describe,
                                            .destroy = stki_finish_destroy};
