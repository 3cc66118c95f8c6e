/* config_source.c: reads the section `source` of a field: properties that the file does not record, and how it is
 * read. */
#include "checked.h"
#include "config.h"
#include "error.h"
#include "format.h"
#include "format_options.h"
#include "source_common.h"
#include "windows.h"
#include <string.h>

static const char *const none_words[] = {"none", NULL};
static const char *const file_words[] = {"file", NULL};
static const char *const unknown_words[] = {"error", "skip", NULL}; /* STKI_UNKNOWN_ERROR, STKI_UNKNOWN_SKIP */
static const stki_need needs_classes = {.key = "classes"};

typedef struct source_options {
    const char *format, *name, *layout;
    int64_t axis, max_bytes, unknown_class;
    const stki_node *window, *documents, *pack, *classes;
    bool sums, sample_per_file;
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

static const char *const take_words[] = {"first", "last", "all", NULL}; /* same order as enum stki_take */
static const char *const group_examples[] = {"none", "video", NULL};

static int64_t span_of(const stki_node *window);

static const stki_option window_rows[] = {
    STKI_INT(stki_window, length, 1, 1, MOST, "samples", "Samples in a window"),
    STKI_INT(stki_window, stride, 0, 0, MOST, "samples",
             "Distance from one window to the next; 0: the span of a window, so that windows do not overlap",
             .implied = span_of),
    STKI_INT(stki_window, dilation, 1, 1, MOST, "samples", "Distance from one sample of a window to the next"),
    STKI_ENUM(stki_window, offsets, fixed, offset_words,
              "Where windows begin: fixed (at multiples of stride), shifted (at multiples of stride from an offset "
              "that changes per epoch), or random (as many as with fixed, at random places that change per epoch) "
              "(docs/internals/order.md)"),
    STKI_STRING(stki_window, group_by, "files",
                "Boundaries that windows do not cross: files (folders if each file is a sample), the name of a field "
                "(files, and changes of that field's value), or none",
                .examples = group_examples),
    STKI_ENUM(stki_window, take, first, take_words,
              "For fields without a window, whether to deliver the value of the window's first sample, of its last "
              "sample, or all values"),
};
static const stki_option_table window_table = STKI_OPTION_TABLE("dataset.fields.NAME.source.window", window_rows);

static const stki_option documents_rows[] = {
    STKI_INT_WORDS(documents_options, begin, none, 0, INT64_MAX, none_words, -1, "",
                   "The token that begins a document and belongs to it"),
    STKI_INT_WORDS(documents_options, end, none, 0, INT64_MAX, none_words, -1, "",
                   "The token that ends a document and belongs to it"),
};
static const stki_option_table documents_table =
    STKI_OPTION_TABLE("dataset.fields.NAME.source.documents", documents_rows);

static const stki_option pack_rows[] = {
    STKI_INT(pack_options, length, 1, 1, 1 << 24, "", "Elements in a window"),
    STKI_INT(pack_options, overlap, 0, 0, 1 << 24, "",
             "If a document is longer than a window, the number of elements that consecutive windows of it share"),
    STKI_ENUM(pack_options, fit, best, fit_words,
              "How remainders of documents are packed: best (they share windows, by best fit) or apart (each document "
              "has its own windows)"),
    STKI_INT(pack_options, value, 0, INT64_MIN, INT64_MAX, "", "Value of the empty elements of a window"),
    STKI_BOOL(pack_options, segments, true, "Whether to deliver NAME.segments and NAME.positions"),
};
static const stki_option_table pack_table =
    STKI_OPTION_TABLE_WITH("dataset.fields.NAME.source.pack", pack_rows, .shorthand = "length");

static const stki_option source_rows[] = {
    STKI_STRING(source_options, format, NULL, "File format; by default detected from content and name",
                .flags = STKI_BY_VALUE, .examples = STKI_EXAMPLES("npy", "csv")),
    STKI_STRING(source_options, name, NULL,
                "Member, data set or field of the file; by default the one with the name of the field, or the only one",
                .examples = STKI_EXAMPLES("a", "b")),
    STKI_STRING(source_options, layout, NULL, "Layout of the stored images: nhwc or nchw",
                .examples = STKI_EXAMPLES("nhwc", "nchw"), STKI_C(stk_field_opts, source_layout)),
    STKI_INT(source_options, axis, 0, 0, STK_MAX_DIMS - 1, "", "The axis of the array along which samples are counted"),
    STKI_NODE(source_options, window,
              "Rows are windows of neighboring samples, such as video clips or parts of a time series: {length, "
              "stride, dilation, offsets, group_by, take} (docs/internals/order.md)",
              .flags = STKI_GIVEN, .inner = &window_table),
    STKI_NODE(source_options, documents,
              "Split a stream of tokens into documents, which are ragged samples: {begin: TOKEN} or {end: TOKEN}",
              .flags = STKI_GIVEN, .inner = &documents_table),
    STKI_NODE(source_options, pack,
              "Pack documents into windows of one length, with the tensors NAME.segments and NAME.positions: a length, "
              "or {length, overlap, fit, value, segments}",
              .flags = STKI_GIVEN, .inner = &pack_table),
    STKI_BOOL(source_options, sample_per_file, false, "Each file is one sample instead of a shard"),
    STKI_NODE(
        source_options, classes,
        "How class names (of class folders, lists, CSV, JSON lines and texts) are numbered, from 0 and consistently "
        "over all files and data sets of the field: a list of names, a file with one name per line, sorted (all names "
        "that occur, in bytewise order; the default for class folders), or {from: PATH}",
        .flags = STKI_BY_VALUE, .inner = &stki_classes_table, .examples = STKI_EXAMPLES("sorted", "[dog, cat]")),
    STKI_INT_WORDS(source_options, unknown_class, error, -MOST, MOST, unknown_words, STKI_UNKNOWN_ERROR, "",
                   "What to do with a sample whose class is not in classes: report an error, skip the sample, or "
                   "deliver this number",
                   .need = &needs_classes),
    STKI_SIZE_WORDS(source_options, max_bytes, file, 1, INT64_MAX, file_words, 0,
                    "Maximum size of a ragged sample; file: the size of the largest sample in the files",
                    .effect = STKI_ON_FAILURES),
    STKI_BOOL(source_options, sums, false,
              "Check every record against its checksum in FILE.sums, which stoker verify --write-sums writes",
              .effect = STKI_ON_FAILURES),
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
        return stki_fail_node(err, node, "expected either begin or end, the token that begins or ends each document");
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
        status = stki_fail_node(err, node, "length is missing: the number of samples or elements in a window");
    if (status == STK_OK && o.overlap >= o.length)
        status = stki_fail_value(err, stki_node_get(node, "overlap"), "less than the length");
    out->packed = true;
    out->pack = (stki_pack_opts){o.length, o.overlap, o.value, o.fit == 1, !o.segments};
    return status;
}

static int64_t span_of(const stki_node *map)
{
    stki_window window = {0};

    stki_options_defaults(&window_table, &window);
    return stki_options_read(&window_table, map, &window, NULL, NULL) == STK_OK
               ? stki_window_span(window.length, window.dilation)
               : 0;
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
    out->window_stride = stki_window_step(window);
    return STK_OK;
}

static const stki_source_group field_source;

/* Checks whether an option that is implemented above the formats applies to the kind of samples. Returns what the
 * option requires; NULL: it applies. */
static const char *refuses(const stki_option *row, const stki_source *source, const stki_container *container,
                           const stki_member *member)
{
    const bool number = member->ndim == 0 && member->dtype != STK_DTYPE_NONE;
    const bool varies = member->kind == STKI_MEMBER_RECORDS && !number;
    const stki_reader_opts opts = {.source = source};
    source_options o;

    stki_source_values(&opts, &field_source, &o);
#define IS(key) (row->offset == (int64_t)offsetof(source_options, key))
    if (IS(format) || IS(name) || IS(sums) || IS(sample_per_file))
        return container ? NULL : "files";
    if (IS(axis) || IS(documents))
        return member->kind == STKI_MEMBER_ARRAY ? NULL : "arrays";
    if (IS(max_bytes))
        return o.sample_per_file || (varies && container) || ((varies || o.documents) && !o.pack)
                   ? NULL
                   : "samples of varying size";
#undef IS
    return NULL; /* layout, window, pack and classes are checked elsewhere */
}

static const stki_source_group field_source = {&stki_source_table, sizeof(source_options), NULL, refuses};
static const stki_source_group *const own_groups[] = {&field_source, NULL};

/* Rejects options of formats other than the one named in the config. An unknown format name is reported when the file
 * is opened. */
static stk_status check_format(const stki_source *source, const char *name, stk_error *err)
{
    const stki_file_format *format = name ? stki_file_format_named(name) : NULL;

    return format ? stki_source_check_format(source, format->name, format->groups, err) : STK_OK;
}

/* Whether the option is given, and is neither null, false nor none. */
static bool says_yes(const stki_node *node)
{
    return !stki_node_is_null(node) &&
           !(node->kind == STKI_NODE_SCALAR && (strcmp(node->text, "false") == 0 || strcmp(node->text, "none") == 0));
}

/* Rejects mutually exclusive options. Unlike options that are listed in instead_of, an option that is set later does
 * not replace the other one. */
static stk_status check_together(const stki_node *map, stk_error *err)
{
    static const char *const pairs[][2] = {{"documents", "window"},
                                           {"documents", "sample_per_file"},
                                           {"documents", "sums"},
                                           {"documents", "axis"},
                                           {"pack", "window"},
                                           {"pack", "sample_per_file"},
                                           {"pack", "sums"},
                                           {"sample_per_file", "sums"},
                                           {"sample_per_file", "axis"},
                                           {"documents", "classes"},
                                           {"pack", "classes"},
                                           {"sample_per_file", "classes"},
                                           {"files", "classes"}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const stki_node *one = stki_node_get(map, pairs[i][0]), *other = stki_node_get(map, pairs[i][1]);

        if (says_yes(one) && says_yes(other))
            return stki_fail_key(err, other, "%s and %s are mutually exclusive", pairs[i][0], pairs[i][1]);
    }
    return STK_OK;
}

stk_status stki_config_source(const stki_node *node, stki_document *document, stki_field_config *field, stk_error *err)
{
    stki_reader_opts *out = &field->source;
    stki_dtype_options type;
    stki_verify_options verify;
    source_options o;
    stk_status status;

    if ((status = stki_source_read(node, own_groups, document, &out->source, err)) != STK_OK)
        return status;
    stki_source_values(out, &field_source, &o);
    stki_source_values(out, &stki_dtype_source, &type);
    stki_source_values(out, &stki_verify_source, &verify);
    if ((status = check_format(out->source, o.format, err)) != STK_OK ||
        (status = check_together(node, err)) != STK_OK ||
        (status = read_window(o.window, &field->window, out, err)) != STK_OK ||
        (status = read_documents(o.documents, &field->tokens, err)) != STK_OK ||
        (status = read_pack(o.pack, &field->tokens, err)) != STK_OK)
        return status;
    out->alias_dtype = field->source_dtype = type.found;
    field->source_layout = o.layout;
    field->sample_per_file = o.sample_per_file;
    out->format = o.format;
    out->name = o.name;
    out->axis = (int)o.axis;
    out->max_bytes = o.max_bytes;
    field->classes.node = o.classes;
    field->classes.unknown = o.unknown_class;
    out->verify = verify.verify;
    out->sums = o.sums;
    return STK_OK;
}
