/* config_source.c: the section `source` of a field: what the file does not say by itself, and how it is to be read. */
#include "checked.h"
#include "config.h"
#include "error.h"
#include "format.h"
#include "source.h"
#include "windows.h"
#include <string.h>

enum { EXACT, FAST, NOT_AT_ALL };
static const char *const decode_words[] = {"exact", "fast", "none", NULL};
static const char *const unit_words[] = {"line", "paragraph", "file", NULL};          /* as enum stki_text_unit */
static const char *const files_words[] = {"none", "images", "arrays", "bytes", NULL}; /* as enum stki_listed */
static const char *const color_words[] = {"rgb", "gray", NULL};
static const char *const orientation_words[] = {"stored", "upright", NULL};
static const char *const warning_words[] = {"fail", "accept", NULL};
static const char *const none_words[] = {"none", NULL};
static const char *const file_words[] = {"file", NULL};
static const char *const unknown_words[] = {"error", "skip", NULL}; /* STKI_UNKNOWN_ERROR, STKI_UNKNOWN_SKIP */
static const stki_need needs_classes = {.key = "classes"};

typedef struct source_options {
    const char *format, *name, *dtype, *layout, *index_cache, *separator, *key, *delimiter;
    int64_t axis, max_bytes, memory_limit, header_limit, unknown_class;
    const stki_node *window, *documents, *pack, *classes;
    int unit, files, decode, color, orientation, on_warning;
    bool verify, sums, cf, allow_external, allow_plugins, sample_per_file;
} source_options;

typedef struct documents_options {
    int64_t begin, end;
} documents_options;

typedef struct pack_options {
    int64_t length, overlap, value;
    int fit;
    bool segments;
} pack_options;

static const char *const offset_words[] = {"fixed", "shifted", "random", NULL};
static const char *const fit_words[] = {"best", "apart", NULL};

#define MOST (INT64_C(1) << 40)

static const char *const take_words[] = {"first", "last", "all", NULL}; /* as enum stki_take */
static const char *const group_examples[] = {"none", "video", NULL};

static const stki_option window_rows[] = {
    STKI_INT(stki_window, length, 1, 1, MOST, "samples", "Samples of a window"),
    STKI_INT(stki_window, stride, 0, 0, MOST, "samples",
             "From one window to the next; 0: its span, so that none overlap"),
    STKI_INT(stki_window, dilation, 1, 1, MOST, "samples", "From one sample of a window to the next"),
    STKI_ENUM(stki_window, offsets, fixed, offset_words,
              "Where windows begin: every stride; every stride from another offset each epoch; or anywhere, as many of "
              "them in an epoch (docs/order.md)"),
    STKI_STRING(stki_window, group_by, "files",
                "files: windows do not leave a file, or the folder of files that are samples; a field: nor do they go "
                "beyond a change of its value; none: they cross files and folders",
                .examples = group_examples),
    STKI_ENUM(stki_window, take, first, take_words,
              "Of fields without a window: the value of the window's first sample, its last, or all of them"),
};
static const stki_option_table window_table = STKI_OPTION_TABLE("dataset.fields.NAME.source.window", window_rows);

static const stki_option documents_rows[] = {
    STKI_INT_WORDS(documents_options, begin, none, 0, INT64_MAX, none_words, -1, "",
                   "The token that begins a document, and is of it"),
    STKI_INT_WORDS(documents_options, end, none, 0, INT64_MAX, none_words, -1, "",
                   "The token that ends one, and is of it"),
};
static const stki_option_table documents_table =
    STKI_OPTION_TABLE("dataset.fields.NAME.source.documents", documents_rows);

static const stki_option pack_rows[] = {
    STKI_INT(pack_options, length, 1, 1, 1 << 24, "", "Elements of a window"),
    STKI_INT(
        pack_options, overlap, 0, 0, 1 << 24, "",
        "Pieces of a document that is longer than a window begin so many elements before the end of the one before"),
    STKI_ENUM(pack_options, fit, best, fit_words,
              "best: what is left of documents shares windows, by best fit; apart: each has a window of its own"),
    STKI_INT(pack_options, value, 0, INT64_MIN, INT64_MAX, "", "What stands where a window is empty"),
    STKI_BOOL(pack_options, segments, true, "Whether NAME.segments and NAME.positions are made"),
};
static const stki_option_table pack_table =
    STKI_OPTION_TABLE_WITH("dataset.fields.NAME.source.pack", pack_rows, .shorthand = "length");

static const stki_option source_rows[] = {
    STKI_STRING(source_options, format, NULL, "The file format; by default what the file's content and name say",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("npy", "csv")),
    STKI_STRING(source_options, name, NULL,
                "Which member, data set or field of the file; by default the one named like the field, or the only one",
                .examples = STKI_EXAMPLES("a", "b")),
    STKI_STRING(source_options, dtype, NULL,
                "The type that the file can't name: bfloat16, float8_e4m3fn, float8_e5m2; of raw data any",
                .examples = STKI_EXAMPLES("bfloat16", "float8_e4m3fn")),
    STKI_STRING(source_options, layout, NULL, "How the file holds an image: nhwc or nchw",
                .examples = STKI_EXAMPLES("nhwc", "nchw")),
    STKI_INT(source_options, axis, 0, 0, STK_MAX_DIMS - 1, "", "The axis of an array along which the samples lie"),
    STKI_NODE(
        source_options, window,
        "Rows are windows over neighboring samples, clips of a video or pieces of a series: {length, stride, dilation, "
        "offsets, group_by, take} (docs/order.md)",
        .flags = STKI_GIVEN, .inner = &window_table),
    STKI_NODE(source_options, documents,
              "A stream of tokens is cut into documents, samples of varying length: {begin: TOKEN} or {end: TOKEN}",
              .flags = STKI_GIVEN, .inner = &documents_table),
    STKI_NODE(source_options, pack,
              "Documents are packed into windows of one length, with NAME.segments and NAME.positions beside them: a "
              "length, or {length, overlap, fit, value, segments}",
              .flags = STKI_GIVEN, .inner = &pack_table),
    STKI_BOOL(source_options, sample_per_file, false, "Each file is one sample instead of a shard of many"),
    STKI_ENUM(source_options, unit, line, unit_words,
              "Text: what one sample is: a line, lines up to a blank one, or the whole file"),
    STKI_STRING(source_options, separator, NULL,
                "Text: samples are documents, with this text between them: \"<|endoftext|>\"",
                .examples = STKI_EXAMPLES("--", "<|endoftext|>")),
    STKI_STRING(source_options, key, NULL, "JSON lines: the key whose string is the sample; by default text",
                .examples = STKI_EXAMPLES("text", "title")),
    STKI_ENUM(source_options, files, none, files_words,
              "Tables (CSV): the column names files, relative to the table's folder, which are the samples: images, "
              "arrays (.npy and the like, one each) or any file's bytes"),
    STKI_NODE(source_options, classes,
              "Class folders, lists, CSV, JSON lines and texts: names of classes become numbers from 0 on, the same in "
              "all files and data sets of the field: a list of the names, a file of one name a line, sorted (all that "
              "occur, bytewise; the default of class folders), or {from: PATH}",
              .flags = STKI_BY_VALUE, .inner = &stki_classes_table, .examples = STKI_EXAMPLES("sorted", "[dog, cat]")),
    STKI_ALIAS(labels, classes, STKI_OPT_NODE, "The earlier name of classes"),
    STKI_INT_WORDS(
        source_options, unknown_class, error, -MOST, MOST, unknown_words, STKI_UNKNOWN_ERROR, "",
        "What becomes of a sample whose class is none of classes: an error, it is left out of all fields, or "
        "it gets this number",
        .need = &needs_classes),
    STKI_STRING(source_options, delimiter, NULL,
                "Tables (CSV): the character between cells; by default a comma, of .tsv files a tab",
                .examples = STKI_EXAMPLES(",", ";")),
    STKI_SIZE_WORDS(source_options, max_bytes, file, 1, INT64_MAX, file_words, 0,
                    "Room for one sample of varying size; file: the largest in the files", .effect = STKI_ON_FAILURES),
    STKI_SIZE(source_options, memory_limit, 4GiB, 0, INT64_MAX,
              "A compressed member may take this much memory when it is unpacked", .effect = STKI_ON_FAILURES),
    STKI_SIZE(source_options, header_limit, 1MiB, 64, INT64_MAX, "Largest header that is read",
              .effect = STKI_ON_FAILURES),
    STKI_STRING(source_options, index_cache, NULL,
                "Tar: the folder that the index of an archive is kept in, or none; by default beside the archive, from "
                "10,000 files on",
                .effect = STKI_ON_NOTHING, .flags = STKI_PATH, .words = none_words),
    STKI_BOOL(source_options, verify, false, "Check the sums that the file carries, also where data is mapped",
              .effect = STKI_ON_FAILURES),
    STKI_BOOL(source_options, sums, false,
              "Check every record that is read against FILE.sums, which stoker verify --write-sums writes",
              .effect = STKI_ON_FAILURES),
    STKI_ENUM(
        source_options, decode, exact, decode_words,
        "Images: fast allows scaling while decoding, fast upsampling and a fast DCT, with other bits; none: samples "
        "are the bytes as they stand in the file, of varying length"),
    STKI_ENUM(source_options, color, rgb, color_words, "Images: channels that they are decoded to"),
    STKI_ENUM(source_options, orientation, stored, orientation_words, "Images: upright turns them as EXIF says"),
    STKI_ENUM(source_options, on_warning, fail, warning_words,
              "Images: what the decoder only warns of, such as missing data at the end, is an error or accepted",
              .effect = STKI_ON_FAILURES),
    STKI_BOOL(source_options, cf, false,
              "HDF5: apply scale_factor, add_offset, _FillValue and _Unsigned of NetCDF files first"),
    STKI_BOOL(source_options, allow_external, false, "HDF5: external links may leave the file's own folder",
              .effect = STKI_ON_FAILURES),
    STKI_BOOL(source_options, allow_plugins, false, "HDF5: filter plugins may be loaded", .effect = STKI_ON_FAILURES),
};
const stki_option_table stki_source_table =
    STKI_OPTION_TABLE_WITH(STKI_SOURCE_SECTION, source_rows, .choice = stki_source_table_at);

static stk_status read_documents(const stki_node *node, stki_tokens *out, stk_error *err)
{
    documents_options o = {0};
    stk_status status;

    if (!node)
        return STK_OK;
    stki_options_defaults(&documents_table, &o);
    status = stki_options_read(&documents_table, node, &o, NULL, err);
    if (status == STK_OK && (o.begin < 0) == (o.end < 0))
        return stki_fail_node(err, node, "expected one of begin and end: the token at which documents are cut");
    out->documents = true;
    out->ends = o.end >= 0;
    out->token = out->ends ? o.end : o.begin;
    return status;
}

static stk_status read_pack(const stki_node *node, stki_tokens *out, stk_error *err)
{
    pack_options o = {0};
    stk_status status;

    if (!node)
        return STK_OK;
    stki_options_defaults(&pack_table, &o);
    status = stki_options_read(&pack_table, node, &o, NULL, err);
    if (status == STK_OK && node->kind == STKI_NODE_MAP && !stki_node_get(node, "length"))
        status = stki_fail_node(err, node, "length is missing: how long is a window?");
    if (status == STK_OK && o.overlap >= o.length)
        status = stki_fail_value(err, stki_node_get(node, "overlap"), "less than the length");
    out->packed = true;
    out->pack = (stki_pack_opts){o.length, o.overlap, o.value, o.fit == 1, !o.segments};
    return status;
}

static stk_status read_window(const stki_node *node, stki_window *window, stki_reader_opts *out, stk_error *err)
{
    stk_status status;

    if (!node)
        return STK_OK;
    stki_options_defaults(&window_table, window);
    status = stki_options_read(&window_table, node, window, NULL, err);
    if (status == STK_OK && (window->length - 1) > (MOST - 1) / window->dilation)
        status = stki_fail_value(err, stki_node_get(node, "dilation"),
                                 "a window of at most %lld samples from first to last", (long long)MOST);
    if (status != STK_OK)
        return status;
    window->stride = window->stride ? window->stride : stki_window_span(window->length, window->dilation);
    out->window_length = window->length;
    out->window_dilation = window->dilation;
    /* where windows move, one may begin at any sample: the order says which do */
    out->window_stride = window->offsets == STKI_OFFSETS_FIXED ? window->stride : 1;
    return STK_OK;
}

static stk_status read_delimiter(const stki_node *node, const char *text, char *out, stk_error *err)
{
    if (!text)
        return STK_OK;
    if (strlen(text) != 1 || strchr("\"\n\r", *text))
        return stki_fail_value(err, stki_node_get(node, "delimiter"), "one character that is no quote and no line end");
    *out = *text;
    return STK_OK;
}

/* Keys about pixels, where there are none. */
static stk_status check_undecoded(const stki_node *node, stk_error *err)
{
    static const char *const keys[] = {"color", "orientation", "on_warning", "layout"};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const stki_node *key = stki_node_get(node, keys[i]);

        if (key)
            return stki_fail_node(err, key,
                                  "found it beside decode: none, which makes no pixels: leave one of them out");
    }
    return STK_OK;
}

/* What the file does not decide. */
static bool takes_all(const stki_member *member)
{
    (void)member;
    return true;
}

static const stki_source_group field_source = {&stki_source_table, sizeof(source_options), NULL, takes_all,
                                               "all formats"};
static const stki_source_group *const own_groups[] = {&field_source, NULL};

/* Options of other formats than the one that the config states; a name that is no format is refused with its file. */
static stk_status check_format(const stki_source *source, const char *name, stk_error *err)
{
    const stki_file_format *format = name ? stki_file_format_named(name) : NULL;

    return format ? stki_source_check_format(source, format, err) : STK_OK;
}

stk_status stki_config_source(const stki_node *node, stki_document *document, stki_field_config *field, stk_error *err)
{
    stki_reader_opts *out = &field->source;
    source_options o = {0};
    stk_status status;

    if ((status = stki_source_read(node, own_groups, document, &out->source, err)) != STK_OK)
        return status;
    stki_source_values(out->source, &field_source, &o);
    if ((status = check_format(out->source, o.format, err)) != STK_OK ||
        (status = stki_config_dtype(node, "dtype", o.dtype, &out->alias_dtype, err)) != STK_OK ||
        (status = read_window(o.window, &field->window, out, err)) != STK_OK ||
        (status = read_documents(o.documents, &field->tokens, err)) != STK_OK ||
        (status = read_pack(o.pack, &field->tokens, err)) != STK_OK)
        return status;
    if ((o.documents || o.pack) && (o.window || o.sample_per_file || o.sums))
        return stki_fail_node(err, o.documents ? o.documents : o.pack, "found it beside %s, expected one of them",
                              o.window ? "window"
                              : o.sums ? "sums"
                                       : "sample_per_file");
    field->source_dtype = out->alias_dtype;
    field->source_layout = o.layout;
    field->sample_per_file = o.sample_per_file;
    out->format = o.format;
    out->name = o.name;
    out->axis = (int)o.axis;
    out->max_bytes = o.max_bytes;
    out->memory_limit = o.memory_limit;
    out->header_limit = o.header_limit;
    out->text_unit = o.separator ? STKI_TEXT_DOCUMENTS : (enum stki_text_unit)o.unit;
    out->separator = o.separator;
    out->key = o.key;
    out->listed = (enum stki_listed)o.files;
    if ((status = read_delimiter(node, o.delimiter, &out->delimiter, err)) != STK_OK)
        return status;
    field->classes.node = o.classes;
    field->classes.unknown = o.unknown_class;
    if (field->classes.node && (o.documents || o.pack || o.sample_per_file || o.files != STKI_LISTED_NOTHING))
        return stki_fail_node(err, field->classes.node, "%s and classes are mutually exclusive",
                              o.documents         ? "documents"
                              : o.pack            ? "pack"
                              : o.sample_per_file ? "sample_per_file"
                                                  : "files");
    if (o.separator && stki_node_get(node, "unit"))
        return stki_fail_node(err, stki_node_get(node, "unit"),
                              "found it beside separator, which says that documents are the samples: leave one out");
    if (o.separator && (!*o.separator || strlen(o.separator) > 256))
        return stki_fail_value(err, stki_node_get(node, "separator"), "a text of 1 to 256 bytes");
    out->index_cache = o.index_cache;
    out->verify = o.verify;
    out->sums = o.sums;
    if (o.sums && o.sample_per_file)
        return stki_fail_node(err, stki_node_get(node, "sums"),
                              "found sums with sample_per_file, expected one of them: sums belong to files of many "
                              "samples");
    out->cf = o.cf;
    out->allow_external = o.allow_external;
    out->allow_plugins = o.allow_plugins;
    out->decode = (stki_decode_opts){.gray = o.color == 1,
                                     .upright = o.orientation == 1,
                                     .fast = o.decode == FAST,
                                     .accept_warnings = o.on_warning == 1,
                                     .none = o.decode == NOT_AT_ALL};
    return out->decode.none ? check_undecoded(node, err) : STK_OK;
}
