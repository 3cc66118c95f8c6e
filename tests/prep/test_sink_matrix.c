/* Combines every format with every kind of field, dtype, number of axes and encoding. If a format's check accepts a
 * combination, the format must write it to the end; otherwise the check must reject it. A job must never fail in the
 * middle because of a limitation of its format. */
#include "faults.h"
#include "sink_rows.h"

enum { ROWS = 3, ROOM = 4096 };

static const stki_sink_ops *ops;
static int accepted, refused;

static const char *encoding_word(unsigned encodings)
{
    static const char *const words[] = {"any", "plain",        "jpeg",        "plain or jpeg",
                                        "png", "plain or png", "jpeg or png", "all"};

    return words[encodings];
}

/* A valid value for a row of the field, with `encoding` for images. */
static stki_sink_value value_of(const stki_sink_field *f, enum stki_encoding encoding, int row)
{
    static char bytes[ROOM]; /* zeros are valid as numbers, pixels and files */
    stki_sink_value v = {.bytes = bytes, .encoding = encoding};
    int64_t item = stk_dtype_size(f->dtype);

    switch (f->kind) {
    case STKI_SINK_ARRAY:
        v.size = item;
        for (int i = 0; i < f->ndim; i++)
            v.size *= f->shape[i];
        break;
    case STKI_SINK_RAGGED:
        v.length = row;
        v.size = row * item;
        for (int i = 1; i < f->ndim; i++)
            v.size *= f->shape[i];
        break;
    case STKI_SINK_IMAGE:
        v.height = 2 + row;
        v.width = 3;
        v.channels = f->shape[2] > 0 ? f->shape[2] : 3;
        v.size = v.height * v.width * v.channels;
        break;
    default:
        v.size = 5 * row;
        break;
    }
    assert_true(v.size <= ROOM);
    return v;
}

static stki_sink_value jpeg_value(void)
{
    static stkt_bytes file;
    const stkt_jpeg how = {.width = 16, .height = 8, .quality = 80};

    if (!file.data)
        file = stkt_jpeg_make(&how);
    return (stki_sink_value){.bytes = file.data,
                             .size = (int64_t)file.size,
                             .height = how.height,
                             .width = how.width,
                             .channels = 3,
                             .encoding = STKI_JPEG};
}

/* Writes all rows with one encoding, from the first call to the last. */
static stk_status write_rows(const stki_sink_opts *opts, enum stki_encoding encoding, stk_error *err)
{
    stki_sink *sink = NULL;
    stk_status status = ops->open(opts, NULL, &sink, err);

    for (int row = 0; row < ROWS && status == STK_OK; row++) {
        const stki_sink_value v = encoding == STKI_JPEG ? jpeg_value() : value_of(opts->fields, encoding, row);

        status = ops->append(sink, &v, 1, err);
    }
    if (status == STK_OK && !ops->resumes) /* formats that cannot resume are written in one pass */
        status = ops->finish(sink, err);
    if (sink)
        ops->destroy(sink);
    return status;
}

static void try_field(const stki_sink_field *field, const void *options)
{
    const stki_sink_opts opts = {.path = "out.x",
                                 .folder = stkt_path("making"),
                                 .fields = field,
                                 .field_count = 1,
                                 .most_rows = ROWS,
                                 .options = options};
    stk_error err = {0};
    stk_status status = ops->check ? ops->check(&opts, &err) : STK_OK;
    const unsigned encodings = field->kind == STKI_SINK_IMAGE ? field->encodings : 1U << STKI_PLAIN;

    if (status != STK_OK) {
        refused++;
        if (status != STK_E_UNSUPPORTED && status != STK_E_LIMIT && status != STK_E_BAD_ARG)
            fail_msg("%s: rejected with %s: %s", ops->format, stk_status_name(status), err.message);
        if (!strstr(err.message, "expected") && !strstr(err.message, "the reader must state"))
            fail_msg("%s: the message does not say what is expected: %s", ops->format, err.message);
        return;
    }
    accepted++;
    for (int e = STKI_PLAIN; e <= STKI_PNG; e++) {
        if (!(encodings & 1U << e))
            continue;
        status = write_rows(&opts, (enum stki_encoding)e, &err);
        if (status != STK_OK && encodings == 1U << e)
            fail_msg("%s: kind %d, %s, %d axes, %s, extension %s: accepted by the check, but writing failed: %s",
                     ops->format, (int)field->kind, stk_dtype_name(field->dtype), field->ndim, encoding_word(encodings),
                     field->extension ? field->extension : "none", err.message);
    }
}

static void try_extensions(stki_sink_field field, const void *options)
{
    static const char *const extensions[] = {NULL, "jpg", "png", "npy", "cls", "json", "bin"};

    for (size_t i = 0; i < (ops->extensions ? sizeof extensions / sizeof extensions[0] : 1); i++) {
        field.extension = extensions[i];
        if (strcmp(ops->format, "beton") == 0 && extensions[i] && field.kind == STKI_SINK_BYTES &&
            strcmp(extensions[i], "json") == 0)
            continue; /* only the format can tell that the values are not JSON */
        try_field(&field, options);
    }
}

static void try_all(const void *options)
{
    for (int d = STK_DTYPE_NONE + 1; d < STK_DTYPE_END; d++)
        for (int ndim = 0; ndim <= 4; ndim += 1 + (ndim == 1)) {
            stki_sink_field field = {.name = "x",
                                     .kind = STKI_SINK_ARRAY,
                                     .dtype = (stk_dtype)d,
                                     .ndim = ndim,
                                     .shape = {2, 4, 3, 2},
                                     .image = d == STK_U8 && ndim == 3};

            for (int alias = 0; alias < 1 + ops->aliases; alias++) {
                field.alias = alias;
                try_extensions(field, options);
            }
            if (ndim == 0)
                continue;
            field.image = false;
            field.kind = STKI_SINK_RAGGED;
            field.shape[0] = 0;
            try_extensions(field, options);
        }
    /* other formats do not examine rows */
    for (unsigned encodings = 1; encodings < (ops->extensions ? 8 : 2); encodings++)
        for (int channels = 0; channels <= 4; channels++)
            try_extensions((stki_sink_field){.name = "x",
                                             .kind = STKI_SINK_IMAGE,
                                             .dtype = STK_U8,
                                             .ndim = 3,
                                             .shape = {0, 0, channels},
                                             .encodings = encodings},
                           options);
    try_extensions((stki_sink_field){.name = "x", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1}, options);
}

static void test_accepted_fields_can_be_written(void **state)
{
    static const struct {
        int64_t a, b;
    } numbers[] = {{0, 0}, {3, 2}}, pages = {2 << 20, 0}, tensors = {2 << 20, 1};
    static const int words[] = {0, 1, 2};

    (void)state;
    for (int i = 0; stki_sinks[i]; i++) {
        ops = stki_sinks[i];
        accepted = refused = 0;
        if (strcmp(ops->format, "beton") == 0) {
            try_all(&pages);
            try_all(&tensors);
        } else if (strcmp(ops->format, "tokens") == 0) {
            for (int w = 0; w < 3; w++)
                try_all(&words[w]);
        } else if (ops->table) {
            try_all(&numbers[0]);
            try_all(&numbers[1]);
        } else {
            try_all(NULL);
        }
        print_message("%s: %d fields accepted, %d rejected\n", ops->format, accepted, refused);
        assert_true(accepted > 20);
        assert_true(refused > 0 || strcmp(ops->format, "raw") == 0 || strcmp(ops->format, "pt") == 0 ||
                    strcmp(ops->format, "hdf5") == 0);
    }
}

static void refuse(const char *format, const stki_sink_field *fields, int count, const void *options,
                   stk_status expected, const char *says)
{
    const stki_sink_opts opts = {
        .path = "out.x", .fields = fields, .field_count = count, .most_rows = INT64_C(1) << 40, .options = options};
    stk_error err = {0};

    assert_ok(stki_sink_find(format, NULL, &ops, &err));
    assert_status(ops->check(&opts, &err), expected);
    assert_says(says);
}

static void test_messages(void **state)
{
    const stki_sink_field
        png = {.name = "i",
               .kind = STKI_SINK_IMAGE,
               .dtype = STK_U8,
               .ndim = 3,
               .encodings = 1U << STKI_PNG,
               .extension = "jpg"},
        gray = {.name = "i",
                .kind = STKI_SINK_IMAGE,
                .dtype = STK_U8,
                .ndim = 3,
                .shape = {0, 0, 1},
                .encodings = 1U << STKI_PLAIN},
        pixels =
            {.name = "i", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 3, .shape = {8, 8, 3}, .extension = "png"},
        wide = {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_F32, .ndim = 1, .shape = {1 << 10}},
        halves[2] = {{.name = "a", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 1, .shape = {5 << 20}},
                     {.name = "b", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 1, .shape = {5 << 20}}},
        meta = {.name = "__metadata__", .kind = STKI_SINK_ARRAY, .dtype = STK_U8};
    const int64_t rows[2] = {0, 1 << 20};

    (void)state;
    refuse("beton", &png, 1, NULL, STK_E_UNSUPPORTED,
           "field i cannot be written: found PNG images, expected pixels or JPEG images: set encode: jpeg");
    refuse("beton", &gray, 1, NULL, STK_E_UNSUPPORTED, "found pixels of 1 channel, expected 3 channels");
    refuse(
        "beton", halves, 2, NULL, STK_E_LIMIT,
        "a sample does not fit in a page: found at least 10485760 bytes, expected at most 8388608 (output.page_bytes)");
    refuse("tar", &png, 1, NULL, STK_E_UNSUPPORTED,
           "found PNG images, expected an image of the kind given by extension: jpg");
    refuse("tar", &pixels, 1, NULL, STK_E_UNSUPPORTED,
           "expected an image of the kind given by extension: png: encode the field");
    refuse("hdf5", &wide, 1, rows, STK_E_UNSUPPORTED, "output.chunk_rows of at most 1048574");
    refuse("safetensors", &meta, 1, NULL, STK_E_UNSUPPORTED, "found a name that the format uses itself");
}

/* Every extension of every format, with every format. */
static void test_endings(void **state)
{
    stk_error err = {0};

    (void)state;
    for (int i = 0; stki_sinks[i]; i++)
        for (int k = 0; stki_sinks[k]; k++)
            for (const char *const *ending = stki_sinks[k]->endings; *ending; ending++) {
                const stki_sink_ops *found = NULL;
                char path[64];
                bool own = false;

                for (const char *const *mine = stki_sinks[i]->endings; *mine; mine++)
                    own = own || strcmp(*mine, *ending) == 0;
                snprintf(path, sizeof path, "a.b/train%s", *ending);
                if (own) {
                    assert_ok(stki_sink_find(stki_sinks[i]->format, path, &found, &err));
                    assert_ptr_equal(found, stki_sinks[i]);
                    continue;
                }
                assert_status(stki_sink_find(stki_sinks[i]->format, path, &found, &err), STK_E_UNSUPPORTED);
                assert_says(*ending);
                assert_says("remove format, or change the extension");
            }
    for (int i = 0; stki_sinks[i]; i++) { /* an unknown extension, none, and one that is only in a folder's name */
        const stki_sink_ops *found;

        assert_ok(stki_sink_find(stki_sinks[i]->format, "train.data", &found, &err));
        assert_ok(stki_sink_find(stki_sinks[i]->format, "train", &found, &err));
        assert_ok(stki_sink_find(stki_sinks[i]->format, "folder.npy/train", &found, &err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted_fields_can_be_written),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_endings),
    };

    stkt_skip_syncs(true);
    mkdir(stkt_path("making"), 0755);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
