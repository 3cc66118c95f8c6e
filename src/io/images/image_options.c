/* image_options.c: the decoding options in `source`, shared by all formats that contain images. */
#include "decode.h"
#include "error.h"
#include "source.h"

enum { EXACT, FAST, NONE };
enum { GRAY = 1, INDEX = 2, DEEP = 1, UPRIGHT = 1, ACCEPT = 1 };

typedef struct image_options {
    int decode, color, depth;
} image_options;

typedef struct exif_options {
    int orientation;
} exif_options;

typedef struct jpeg_options {
    int on_warning;
} jpeg_options;

static const char *const decode_words[] = {"exact", "fast", "none", NULL};
static const char *const color_words[] = {"rgb", "gray", "index", NULL};
static const char *const depth_words[] = {"8", "16", NULL};
static const char *const orientation_words[] = {"stored", "upright", NULL};
static const char *const warning_words[] = {"fail", "accept", NULL};

static const stki_option image_rows[] = {
    STKI_ENUM(image_options, decode, exact, decode_words,
              "How images are decoded: exact (the same pixels as Pillow), fast (scaled decoding, fast upsampling and "
              "DCT, with slightly different pixels), or none (the bytes of the file, as ragged rows)"),
    STKI_ENUM(image_options, color, rgb, color_words,
              "Channels of decoded images: rgb, gray, or index (the palette indices of PNG images, or the stored "
              "values of gray ones)"),
    STKI_ENUM(
        image_options, depth, 8, depth_words,
        "Bits per sample: 8 (the upper 8 bits of deeper PNG images) or 16 (for 16-bit PNG images only, delivered as "
        "uint16)"),
};
static const stki_option_table image_table = STKI_SOURCE_TABLE("images", image_rows);

static const stki_option exif_rows[] = {
    STKI_ENUM(exif_options, orientation, stored, orientation_words,
              "upright: rotate and flip images according to their EXIF orientation"),
};
static const stki_option_table exif_table = STKI_SOURCE_TABLE("EXIF", exif_rows);

static const stki_option jpeg_rows[] = {
    STKI_ENUM(jpeg_options, on_warning, fail, warning_words,
              "Whether decoder warnings, such as missing data at the end, are errors", .effect = STKI_ON_FAILURES),
};
static const stki_option_table jpeg_table = STKI_SOURCE_TABLE("JPEG", jpeg_rows);

/* Rejects options that affect pixels if images are not decoded. */
static stk_status check_image(const stki_node *map, void *values, stk_error *err)
{
    const image_options *image = values;
    static const char *const keys[] = {"color", "depth", "orientation", "on_warning", "layout"};

    for (size_t i = 0; image->decode == NONE && i < sizeof keys / sizeof keys[0]; i++)
        if (stki_node_get(map, keys[i]))
            return stki_fail_key(err, stki_node_get(map, keys[i]),
                                 "decode: none produces no pixels, so the two options are mutually exclusive");
    if (image->color == INDEX && image->depth == DEEP)
        return stki_fail_key(err, stki_node_get(map, "depth"),
                             "color: index yields values of at most 8 bits; for 16-bit gray images, use color: gray");
    return STK_OK;
}

const stki_source_group stki_image_source = {&image_table, sizeof(image_options), check_image, NULL};
const stki_source_group stki_exif_source = {&exif_table, sizeof(exif_options), NULL, NULL};
const stki_source_group stki_jpeg_source = {&jpeg_table, sizeof(jpeg_options), NULL, NULL};

stki_decode_opts stki_image_opts(const stki_reader_opts *opts)
{
    image_options image;
    exif_options exif;
    jpeg_options jpeg;

    stki_source_values(opts, &stki_image_source, &image);
    stki_source_values(opts, &stki_exif_source, &exif);
    stki_source_values(opts, &stki_jpeg_source, &jpeg);
    return (stki_decode_opts){.none = image.decode == NONE,
                              .fast = image.decode == FAST,
                              .gray = image.color == GRAY || image.color == INDEX,
                              .index = image.color == INDEX,
                              .deep = image.depth == DEEP,
                              .upright = exif.orientation == UPRIGHT,
                              .accept_warnings = jpeg.on_warning == ACCEPT,
                              .max_bytes = opts->max_bytes};
}
