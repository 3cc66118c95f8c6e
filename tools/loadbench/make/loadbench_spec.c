/* loadbench_spec.c: parses and checks the whole specification before any file is created. Keys that have no effect with
 * the chosen values or format, and numbers that the dtype cannot represent, are errors. */
#include "loadbench_spec.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "loadbench_config.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const lb_format_words[] = {"auto", "npy",   "npz", "hdf5",   "pt", "safetensors",
                                       "raw",  "beton", "tar", "images", NULL};
static const char *const value_words[] = {
    [LB_VALUES_BYTES] = "bytes",
    [LB_VALUES_UNIFORM] = "uniform",
    [LB_VALUES_NORMAL] = "normal",
    [LB_VALUES_LABELS] = "labels",
    [LB_VALUES_CONSTANT] = "constant",
    [LB_VALUES_PICTURES] = "pictures",
    NULL,
};
static const char *const draw_words[] = {
    [LB_DRAW_TURNS] = "turns", [LB_DRAW_UNIFORM] = "uniform", [LB_DRAW_ZIPF] = "zipf", NULL};
static const char *const encode_words[] = {"none", "jpeg", NULL};

struct make {
    int64_t seed;
    const stki_node *files;
};

static const stki_option make_rows[] = {
    STKI_INT(struct make, seed, 0, 0, INT64_C(1) << 62, "",
             "Seed of the first field of the first file; each further field uses the next integer"),
    STKI_NODE(struct make, files, "A list of files to generate", .inner = &lb_make_file_table),
};
const stki_option_table lb_make_table = STKI_OPTION_TABLE("make", make_rows);

enum {
    SHAPE,
    DTYPE,
    SEED,
    VALUES,
    LOW,
    HIGH,
    MEAN,
    STD,
    VALUE,
    CLASSES,
    DRAW,
    COMPRESSIBILITY,
    DETAIL,
    SPREAD,
    ENCODE,
    QUALITY,
    FIELD_ROWS,
    PATH = FIELD_ROWS,
    COUNT,
    FORMAT,
    LEVEL,
    CHUNK_ROWS,
    FIELDS,
    FILE_ROWS
};

/* Which kinds of values a key applies to. */
#define OF(...)                                         \
    .need = &(const stki_need)                          \
    {                                                   \
        .key = "values", .words = (const char *const[]) \
        {                                               \
            __VA_ARGS__, NULL                           \
        }                                               \
    }
static const stki_need drawn_labels = {.key = "draw", .words = &draw_words[LB_DRAW_UNIFORM]},
                       drawn_values = {.key = "values",
                                       .words = (const char *const[]){"bytes", "uniform", "normal", "pictures", NULL},
                                       .otherwise = &drawn_labels},
                       needs_jpeg = {.key = "encode", .words = &encode_words[1]};

/* The option rows of a field are in two tables: that of fields and, for files with a single field, that of files, whose
 * struct starts with the field. */
#define FIELD(kind, member, ...) kind(struct lb_made_field, member, __VA_ARGS__)
#define FIELD_TABLE                                                                                                    \
    [SHAPE] = FIELD(STKI_NODE, shape, "Shape of one sample, such as [224, 224, 3]; by default a single number"),       \
    [DTYPE] = FIELD(STKI_STRING, dtype, "u8", "Dtype of the elements"),                                                \
    [SEED] = FIELD(STKI_INT, seed, 0, 0, INT64_C(1) << 62, "",                                                         \
                   "Seed of this field; derived from make.seed and the position of the field by default",              \
                   .need = &drawn_values),                                                                             \
    [VALUES] = FIELD(                                                                                                  \
        STKI_ENUM, values, bytes, value_words,                                                                         \
        "Values: random bytes, uniform or normal numbers, labels, a constant, or pictures (smooth, with noise)"),      \
    [LOW] = FIELD(STKI_DOUBLE, low, 0, -1e300, 1e300, "", "Minimum of uniform", OF("uniform")),                        \
    [HIGH] = FIELD(STKI_DOUBLE, high, 1, -1e300, 1e300, "", "Exclusive maximum of uniform", OF("uniform")),            \
    [MEAN] = FIELD(STKI_DOUBLE, mean, 0, -1e300, 1e300, "", "Mean of normal", OF("normal")),                           \
    [STD] = FIELD(STKI_DOUBLE, std, 1, 0, 1e300, "", "Standard deviation of normal", OF("normal")),                    \
    [VALUE] = FIELD(STKI_DOUBLE, value, 0, -1e300, 1e300, "", "Value of constant", OF("constant")),                    \
    [CLASSES] = FIELD(STKI_INT, classes, 10, 1, 1e15, "", "Number of classes of labels", OF("labels")),                \
    [DRAW] = FIELD(STKI_ENUM, draw, turns, draw_words,                                                                 \
                   "How labels are drawn: turns (the row modulo classes), uniform, or zipf (class k is 1/(k+1) times " \
                   "as frequent as class 0)",                                                                          \
                   OF("labels")),                                                                                      \
    [COMPRESSIBILITY] =                                                                                                \
        FIELD(STKI_DOUBLE, compressibility, 0, 0, 1, "",                                                               \
              "Fraction of each 4 KiB of random bytes that is replaced by zeros, which compress well", OF("bytes")),   \
    [DETAIL] = FIELD(STKI_DOUBLE, detail, 0.1, 0, 1, "", "Amount of noise in pictures", OF("pictures")),               \
    [SPREAD] =                                                                                                         \
        FIELD(STKI_DOUBLE, spread, 0, 0, 1, "",                                                                        \
              "Variation of sample sizes: the standard deviation of an image's sides, or of a record's length, "       \
              "as a fraction of shape"),                                                                               \
    [ENCODE] = FIELD(STKI_ENUM, encode, none, encode_words, "Store images as pixels or as JPEG"),                      \
    [QUALITY] = FIELD(STKI_INT, quality, 90, 1, 100, "", "JPEG quality", .need = &needs_jpeg)

static const stki_option field_rows[FIELD_ROWS] = {FIELD_TABLE};
const stki_option_table lb_make_field_table = STKI_OPTION_TABLE("make.files.fields.NAME", field_rows);

static const stki_option file_rows[FILE_ROWS] = {
    FIELD_TABLE,
    [PATH] = STKI_STRING(struct lb_made_file, path, NULL, "The file, relative to the specification's folder",
                         .flags = STKI_PATH),
    [COUNT] = STKI_INT(struct lb_made_file, count, 1000, 0, 1e15, "rows", "Number of samples"),
    [FORMAT] = STKI_ENUM(struct lb_made_file, format, auto, lb_format_words,
                         "File format: auto (from the extension of path: .npy .npz .h5 .pt .safetensors .raw .beton "
                         ".tar), images (a folder of JPEG files), or the name of a format"),
    [LEVEL] = STKI_INT(struct lb_made_file, level, 0, 0, 9, "", "Compression level of npz and HDF5; 0: none"),
    [CHUNK_ROWS] = STKI_INT(struct lb_made_file, chunk_rows, 0, 0, 1e12, "rows",
                            "Samples per HDF5 chunk; 0: contiguous if not compressed, otherwise automatic"),
    [FIELDS] = STKI_NODE(struct lb_made_file, fields,
                         "A map of names to fields, instead of the keys of one field; not for npy and raw",
                         .flags = STKI_NAMED, .inner = &lb_make_field_table),
};
const stki_option_table lb_make_file_table = STKI_OPTION_TABLE("make.files", file_rows);

const stki_option_table *const lb_sections[] = {&lb_bench_table, &lb_make_table, NULL};

/* ---- fields ---- */

static stk_status read_shape(struct lb_made_field *field, stk_error *err)
{
    const stki_node *node = field->shape;

    field->row_elements = 1;
    if (!node)
        return STK_OK;
    if (node->kind != STKI_NODE_LIST || node->count > STK_MAX_DIMS - 1)
        return stki_fail_node(err, node, "expected a list of at most %d lengths, such as [224, 224, 3]",
                              STK_MAX_DIMS - 1);
    for (; field->ndim < node->count; field->ndim++) {
        int64_t *length = &field->lengths[field->ndim];
        stk_status status = stki_node_int(node->items[field->ndim], length, err);
        if (status != STK_OK)
            return status;
        if (*length < 0 || !stki_mul(field->row_elements, *length, &field->row_elements))
            return stki_fail_node(
                err, node->items[field->ndim],
                "found %" PRId64 ", expected a length of 0 or more, and fewer than 2^63 elements in total", *length);
    }
    return STK_OK;
}

static bool is_image(const struct lb_made_field *field)
{
    return field->ask.dtype == STK_U8 && field->ndim == 3 && (field->lengths[2] == 3 || field->lengths[2] == 1) &&
           field->lengths[0] > 0 && field->lengths[1] > 0;
}

static stk_status check_forms(const stki_node *node, const struct lb_made_field *field, stk_error *err)
{
    if ((field->values == LB_VALUES_PICTURES || field->encode) && !is_image(field))
        return stki_fail_node(err, node, "%s requires u8 images of shape [height, width, 3] or [height, width, 1]",
                              field->encode ? "encode: jpeg" : "values: pictures");
    if (field->encode && (field->lengths[0] > 65500 || field->lengths[1] > 65500))
        return stki_fail_node(err, node, "encode: jpeg: no side may be longer than 65500 pixels");
    if (field->spread > 0 && !field->encode && !(field->ask.dtype == STK_U8 && field->ndim == 1))
        return stki_fail_node(err, node,
                              "spread applies to images with encode: jpeg, and to u8 records of shape [length]");
    return STK_OK;
}

/* `node`: the field's keys; `seen`: flags of the option rows that were given. */
static stk_status finish_field(const stki_node *node, int64_t seed, int64_t count, const bool *seen,
                               struct lb_made_field *field, stk_error *err)
{
    int64_t bytes;
    stk_error why;
    stk_status status = read_shape(field, err);

    if (status != STK_OK)
        return status;
    field->ask = (struct lb_values_ask){
        .kind = (enum lb_values)field->values,
        .dtype = stk_dtype_find(field->dtype),
        .seed = seen[SEED] ? field->seed : seed,
        .low = field->low,
        .high = field->high,
        .mean = field->mean,
        .std = field->std,
        .value = field->value,
        .classes = field->classes,
        .draw = (enum lb_draw)field->draw,
        .compressibility = field->compressibility,
        .detail = field->detail,
    };
    if (field->ndim == 3) {
        field->ask.height = field->lengths[0];
        field->ask.width = field->lengths[1];
        field->ask.channels = field->lengths[2];
    }
    if (field->ask.dtype == STK_DTYPE_NONE)
        return stki_fail_node(err, stki_node_get(node, "dtype"), "found \"%s\", expected a dtype such as u8 or f32",
                              field->dtype);
    if (lb_values_check(&field->ask, &why) != STK_OK)
        return stki_fail_node(err, node, "%s", why.message);
    if (!stki_mul(field->row_elements, stk_dtype_size(field->ask.dtype), &field->row_bytes) ||
        !stki_mul(field->row_bytes, count, &bytes))
        return stki_fail_node(err, node, "%" PRId64 " rows of this shape exceed the maximum size of a file", count);
    field->largest_bytes = field->spread > 0 ? 16 * field->row_bytes : field->row_bytes;
    return check_forms(node, field, err);
}

/* ---- files ---- */

static stk_status read_fields(const stki_node *node, int64_t seed, struct lb_made_file *file, stk_error *err)
{
    const stki_node *map = file->fields;

    if (map->kind != STKI_NODE_MAP || map->count < 1 || map->count > LB_MADE_FIELDS)
        return stki_fail_node(err, node, "fields: expected a map of 1 to %d names to fields", LB_MADE_FIELDS);
    for (int i = 0; i < map->count; i++) {
        struct lb_made_field *field = &file->made[file->field_count];
        bool seen[FIELD_ROWS] = {false};
        stki_options_defaults(&lb_make_field_table, field);
        stk_status status = stki_options_read(&lb_make_field_table, map->items[i], field, seen, err);
        if (status == STK_OK)
            status = finish_field(map->items[i], seed + i, file->count, seen, field, err);
        if (status != STK_OK)
            return status;
        field->name = map->keys[i];
        file->field_count++;
    }
    return STK_OK;
}

static int format_of(const char *path)
{
    static const struct {
        const char *ending;
        int format;
    } endings[] = {{".npy", LB_FORMAT_NPY},   {".npz", LB_FORMAT_NPZ}, {".h5", LB_FORMAT_HDF5},
                   {".hdf5", LB_FORMAT_HDF5}, {".pt", LB_FORMAT_PT},   {".safetensors", LB_FORMAT_SAFETENSORS},
                   {".raw", LB_FORMAT_RAW},   {".bin", LB_FORMAT_RAW}, {".beton", LB_FORMAT_BETON},
                   {".tar", LB_FORMAT_TAR}};
    const size_t length = strlen(path);

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        const size_t n = strlen(endings[i].ending);
        if (length > n && strcmp(path + length - n, endings[i].ending) == 0)
            return endings[i].format;
    }
    return LB_FORMAT_AUTO;
}

/* Checks that the format supports these fields. */
static stk_status check_format(const stki_node *node, const struct lb_made_file *file, const bool *seen, stk_error *err)
{
    const char *word = lb_format_words[file->format];
    const bool records = file->format >= LB_FORMAT_BETON;
    int images = 0, labels = 0;

    if (file->format == LB_FORMAT_AUTO)
        return stki_fail_node(err, stki_node_get(node, "path"),
                              "no format has this extension: set format (npy, npz, hdf5, pt, safetensors, "
                              "raw, beton, tar, images)");
    if (file->fields && (file->format == LB_FORMAT_NPY || file->format == LB_FORMAT_RAW))
        return stki_fail_node(err, stki_node_get(node, "fields"), "%s files store a single array without a name", word);
    if (seen[LEVEL] && file->format != LB_FORMAT_NPZ && file->format != LB_FORMAT_HDF5)
        return stki_fail_key(err, stki_node_get(node, "level"), "has no effect with format: %s", word);
    if (seen[CHUNK_ROWS] && file->format != LB_FORMAT_HDF5)
        return stki_fail_key(err, stki_node_get(node, "chunk_rows"), "has no effect with format: %s", word);
    for (int i = 0; i < file->field_count; i++) {
        const struct lb_made_field *field = &file->made[i];
        images += field->encode != 0;
        labels += field->values == LB_VALUES_LABELS && field->ndim == 0;
        if ((field->encode || field->spread > 0) && !records)
            return stki_fail_node(err, node, "%s: encode and spread apply to beton, tar and images, not to %s",
                                  field->name[0] ? field->name : "the field", word);
        if (file->format == LB_FORMAT_BETON && field->spread > 0 && field->encode && field->lengths[2] != 3)
            return stki_fail_node(err, node, "%s: images in a .beton must have three channels", field->name);
        if (file->format == LB_FORMAT_BETON && field->encode && field->lengths[2] != 3)
            return stki_fail_node(err, node, "%s: images in a .beton must have three channels", field->name);
    }
    if (file->format == LB_FORMAT_IMAGES && (images != 1 || images + labels != file->field_count || labels > 1))
        return stki_fail_node(
            err, node, "a folder of images has one field with encode: jpeg and, if it has classes, one with labels");
    return STK_OK;
}

static stk_status finish_file(struct lb_made_file *file, stk_error *err)
{
    for (int i = 0; i < file->field_count; i++)
        file->bytes += file->made[i].row_bytes * file->count;
    file->full_path = stki_strdup(file->path);
    file->place = file->full_path ? lb_path_place(file->full_path) : NULL;
    return file->place ? STK_OK : stki_fail_memory(err, 256, "a path");
}

static stk_status read_file(const stki_node *node, int64_t seed, struct lb_made_file *file, stk_error *err)
{
    bool seen[FILE_ROWS] = {false};
    stk_status status;

    stki_options_defaults(&lb_make_file_table, file);
    status = stki_options_read(&lb_make_file_table, node, file, seen, err);
    if (status != STK_OK)
        return status;
    for (int row = 0; file->fields && row < FIELD_ROWS; row++)
        if (seen[row])
            return stki_fail_key(err, stki_node_get(node, file_rows[row].name),
                                 "is an option of a field, and this file has `fields`: move it to one of the fields");
    if (file->fields) {
        status = read_fields(node, seed, file, err);
    } else {
        status = finish_field(node, seed, file->count, seen, &file->alone, err);
        file->alone.name = "x";
        file->made[0] = file->alone;
        file->field_count = 1;
    }
    if (status != STK_OK)
        return status;
    if (!file->path || !file->path[0])
        return stki_fail_node(err, node, "path: every file needs a path");
    if (file->format == LB_FORMAT_AUTO)
        file->format = format_of(file->path);
    status = check_format(node, file, seen, err);
    return status == STK_OK ? finish_file(file, err) : status;
}

static stk_status check_alone(const struct lb_made_file *files, int count, const stki_node *node, stk_error *err)
{
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].place, files[count].place) == 0)
            return stki_fail_node(err, stki_node_get(node, "path"), "file %d of the list has the same path: %s", i,
                                  files[i].place);
    return STK_OK;
}

stk_status lb_spec_read(stki_document *document, struct lb_made_file *files, int *count, stk_error *err)
{
    const stki_node *root = stki_document_root(document), *section = stki_node_get(root, "make");
    struct make make = {0};
    int64_t seed;
    stk_status status;

    if (!section)
        return stki_fail_node(err, root, "found no section \"make\", so this is not a specification for --make");
    if (root->count > 1)
        return stki_fail_node(err, root->items[strcmp(root->keys[0], "make") == 0],
                              "unknown section: a specification has only the section \"make\"");
    stki_options_defaults(&lb_make_table, &make);
    if ((status = stki_sections_prepare(lb_sections, document, NULL, err)) == STK_OK)
        status = stki_options_read(&lb_make_table, section, &make, NULL, err);
    if (status != STK_OK)
        return status;
    if (!make.files || make.files->kind != STKI_NODE_LIST || make.files->count < 1 || make.files->count > LB_MADE_FILES)
        return stki_fail_node(err, section, "files: expected a list of 1 to %d files", LB_MADE_FILES);
    seed = make.seed;
    while (*count < make.files->count && status == STK_OK) {
        struct lb_made_file *file = &files[*count];
        status = read_file(make.files->items[*count], seed, file, err);
        seed += file->field_count;
        if (status == STK_OK)
            status = check_alone(files, *count, make.files->items[*count], err);
        ++*count;
    }
    return status;
}

void lb_spec_fini(struct lb_made_file *files, int count)
{
    for (int i = 0; i < count; i++) {
        stki_free(files[i].full_path);
        stki_free(files[i].place);
    }
}

/* ---- rows ---- */

void lb_made_lengths(const struct lb_made_field *field, int64_t row, int64_t *lengths)
{
    const double factor = lb_values_spread(field->ask.seed, row, field->spread);

    for (int i = 0; i < field->ndim; i++)
        lengths[i] = field->lengths[i];
    if (field->spread <= 0)
        return;
    for (int i = 0; i < (field->encode ? 2 : 1); i++) {
        const double length = rint((double)field->lengths[i] * factor);
        lengths[i] = length < 1 ? 1 : (int64_t)length;
    }
}

static int describe_field(const struct lb_made_field *field, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "%s%s [", field->encode ? "JPEG of " : "", stk_dtype_name(field->ask.dtype));

    for (int i = 0; i < field->ndim && used < size; i++)
        used += snprintf(out + used, (size_t)(size - used), "%s%s%" PRId64, i > 0 ? ", " : "",
                         field->spread > 0 && i < (field->encode ? 2 : 1) ? "about " : "", field->lengths[i]);
    if (used < size)
        used += snprintf(out + used, (size_t)(size - used), "]");
    return used;
}

void lb_made_describe(const struct lb_made_file *file, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "%" PRId64 " row%s of ", file->count, file->count == 1 ? "" : "s");

    for (int i = 0; i < file->field_count && used < size; i++) {
        if (i > 0)
            used += snprintf(out + used, (size_t)(size - used), ", ");
        if (used < size && file->fields)
            used += snprintf(out + used, (size_t)(size - used), "%s ", file->made[i].name);
        if (used < size)
            used += describe_field(&file->made[i], out + used, size - used);
    }
}
