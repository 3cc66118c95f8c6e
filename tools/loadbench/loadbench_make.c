/* loadbench_make.c: reads the whole specification first, then looks at the files that are there, then makes one missing
 * file after another in chunks of a few megabytes. What a file holds is asked of the loader. A file that holds
 * something else may be somebody's data: it is replaced only if that was asked for. */
#include "loadbench_make.h"
#include "allocate.h"
#include "checked.h"
#include "clock.h"
#include "error.h"
#include "loadbench_config.h"
#include "loadbench_run.h"
#include "loadbench_table.h"
#include "loadbench_values.h"
#include <errno.h>
#include <inttypes.h>
#include <stoker/dataset.h>
#include <stoker/loader.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILES = 64, CHUNK_BYTES = 4 << 20 };

struct make {
    int64_t seed;
    const stki_node *files;
};

struct file {
    const char *path, *dtype;
    int64_t count, seed, classes;
    const stki_node *shape;
    int values;
    double low, high, mean, std, value;
    /* worked out */
    char *full_path, *place; /* where it will be, and the same absolute, for comparing */
    bool is_there;
    int ndim;
    int64_t lengths[STK_MAX_DIMS], row_elements, row_bytes;
    struct lb_values_ask ask;
};

static const char *const value_words[] = {
    [LB_VALUES_BYTES] = "bytes",   [LB_VALUES_UNIFORM] = "uniform",   [LB_VALUES_NORMAL] = "normal",
    [LB_VALUES_LABELS] = "labels", [LB_VALUES_CONSTANT] = "constant", NULL,
};

static const stki_option make_rows[] = {
    STKI_INT(struct make, seed, 0, 0, INT64_C(1) << 62, "", "Seed of the first file; the next one has the next"),
    STKI_NODE(struct make, files, "A list of files to make, see below"),
};
const stki_option_table lb_make_table = STKI_OPTION_TABLE("make", make_rows);

enum { PATH, COUNT, SHAPE, DTYPE, SEED, VALUES, LOW, HIGH, MEAN, STD, VALUE, CLASSES, FILE_ROWS };

static const stki_option file_rows[FILE_ROWS] = {
    [PATH] = STKI_STRING(struct file, path, NULL, "The file, NAME.npy, beside the specification unless absolute"),
    [COUNT] = STKI_INT(struct file, count, 1000, 0, 1e15, "rows", "Samples"),
    [SHAPE] = STKI_NODE(struct file, shape, "Of one sample, [224, 224, 3]; none: one number"),
    [DTYPE] = STKI_STRING(struct file, dtype, "u8", "Of the elements"),
    [SEED] = STKI_INT(struct file, seed, 0, 0, INT64_C(1) << 62, "",
                      "Of this file alone; by default make.seed and the file's place"),
    [VALUES] = STKI_ENUM(struct file, values, bytes, value_words,
                         "Random bytes, uniform or normal numbers, labels (the row modulo classes), or a constant"),
    [LOW] = STKI_DOUBLE(struct file, low, 0, -1e300, 1e300, "", "Least value of uniform"),
    [HIGH] = STKI_DOUBLE(struct file, high, 1, -1e300, 1e300, "", "First value above those of uniform"),
    [MEAN] = STKI_DOUBLE(struct file, mean, 0, -1e300, 1e300, "", "Of normal"),
    [STD] = STKI_DOUBLE(struct file, std, 1, 0, 1e300, "", "Of normal"),
    [VALUE] = STKI_DOUBLE(struct file, value, 0, -1e300, 1e300, "", "Of constant"),
    [CLASSES] = STKI_INT(struct file, classes, 10, 1, 1e15, "", "Of labels"),
};
const stki_option_table lb_make_file_table = STKI_OPTION_TABLE("make.files", file_rows);

/* ---- reading the specification ----------------------------------------------------------------------------------- */

static stk_status read_shape(struct file *file, stk_error *err)
{
    const stki_node *node = file->shape;

    file->row_elements = 1;
    if (!node)
        return STK_OK;
    if (node->kind != STKI_NODE_LIST || node->count > STK_MAX_DIMS - 1)
        return stki_fail_node(err, node, "expected a list of at most %d lengths, [224, 224, 3]", STK_MAX_DIMS - 1);
    for (; file->ndim < node->count; file->ndim++) {
        int64_t *length = &file->lengths[file->ndim];
        stk_status status = stki_node_int(node->items[file->ndim], length, err);
        if (status != STK_OK)
            return status;
        if (*length < 0 || !stki_mul(file->row_elements, *length, &file->row_elements))
            return stki_fail_node(err, node->items[file->ndim], "found %" PRId64 ", expected a length that fits",
                                  *length);
    }
    return STK_OK;
}

/* A key that the chosen values make nothing of would mislead whoever reads the specification. */
static stk_status check_uses(const stki_node *node, const struct file *file, const bool *seen, stk_error *err)
{
    static const struct {
        int row;
        unsigned kinds; /* a bit each */
    } uses[] = {
        {SEED, 1U << LB_VALUES_BYTES | 1U << LB_VALUES_UNIFORM | 1U << LB_VALUES_NORMAL},
        {LOW, 1U << LB_VALUES_UNIFORM},
        {HIGH, 1U << LB_VALUES_UNIFORM},
        {MEAN, 1U << LB_VALUES_NORMAL},
        {STD, 1U << LB_VALUES_NORMAL},
        {VALUE, 1U << LB_VALUES_CONSTANT},
        {CLASSES, 1U << LB_VALUES_LABELS},
    };

    for (size_t i = 0; i < sizeof uses / sizeof uses[0]; i++)
        if (seen[uses[i].row] && !(uses[i].kinds >> file->values & 1))
            return stki_fail_key(err, stki_node_get(node, file_rows[uses[i].row].name), "has no use with values: %s",
                                 value_words[file->values]);
    return STK_OK;
}

static stk_status read_file(const stki_node *node, const char *spec_path, int64_t seed, struct file *file,
                            stk_error *err)
{
    bool seen[FILE_ROWS] = {false};
    int64_t bytes = 0;
    stk_status status;

    stki_options_defaults(&lb_make_file_table, file);
    status = stki_options_read(&lb_make_file_table, node, file, seen, err);
    if (status == STK_OK)
        status = read_shape(file, err);
    if (status == STK_OK)
        status = check_uses(node, file, seen, err);
    if (status != STK_OK)
        return status;
    if (!file->path || !file->path[0])
        return stki_fail_node(err, node, "path: each file needs one");
    file->ask = (struct lb_values_ask){
        .kind = (enum lb_values)file->values,
        .dtype = stk_dtype_find(file->dtype),
        .seed = seen[SEED] ? file->seed : seed,
        .low = file->low,
        .high = file->high,
        .mean = file->mean,
        .std = file->std,
        .value = file->value,
        .classes = file->classes,
    };
    if (file->ask.dtype == STK_DTYPE_NONE)
        return stki_fail_node(err, stki_node_get(node, "dtype"), "no dtype is called \"%s\"", file->dtype);
    stk_error why;
    if (lb_values_check(&file->ask, &why) != STK_OK)
        return stki_fail_node(err, node, "%s", why.message);
    if (!stki_mul(file->row_elements, stk_dtype_size(file->ask.dtype), &file->row_bytes) ||
        !stki_mul(file->row_bytes, file->count, &bytes))
        return stki_fail_node(err, node, "%" PRId64 " rows of this shape are more bytes than a file can hold",
                              file->count);
    file->full_path = lb_path_beside(file->path, spec_path);
    file->place = file->full_path ? lb_path_place(file->full_path) : NULL;
    return file->place ? STK_OK : stki_fail_memory(err, 256, "a path");
}

static stk_status check_alone(const struct file *files, int count, const stki_node *node, stk_error *err)
{
    for (int i = 0; i < count; i++)
        if (strcmp(files[i].place, files[count].place) == 0)
            return stki_fail_node(err, stki_node_get(node, "path"), "file %d of the list is the same: %s", i,
                                  files[i].place);
    return STK_OK;
}

static stk_status read_spec(const stki_document *document, const char *spec_path, struct file *files, int *count,
                            stk_error *err)
{
    const stki_node *root = stki_document_root(document), *section = stki_node_get(root, "make");
    struct make make = {0};
    stk_status status;

    if (!section)
        return stki_fail_node(err, root, "no section \"make\": this is no specification of data");
    if (root->count > 1)
        return stki_fail_node(err, root->items[strcmp(root->keys[0], "make") == 0], "expected \"make\" alone");
    stki_options_defaults(&lb_make_table, &make);
    status = stki_options_read(&lb_make_table, section, &make, NULL, err);
    if (status != STK_OK)
        return status;
    if (!make.files || make.files->kind != STKI_NODE_LIST || make.files->count < 1 || make.files->count > MAX_FILES)
        return stki_fail_node(err, section, "files: expected a list of 1 to %d files", MAX_FILES);
    while (*count < make.files->count && status == STK_OK) {
        status = read_file(make.files->items[*count], spec_path, make.seed + *count, &files[*count], err);
        if (status == STK_OK)
            status = check_alone(files, *count, make.files->items[*count], err);
        ++*count;
    }
    return status;
}

/* ---- making -------------------------------------------------------------------------------------------------------
 */

static stk_status make_folders(const char *path, stk_error *err)
{
    char *copy = stki_strdup(path);
    stk_status status = copy ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path), "a path");

    for (char *at = copy; at && status == STK_OK && (at = strchr(at + 1, '/'));) {
        *at = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = stki_fail_errno(err, errno, copy, "making this folder");
        *at = '/';
    }
    stki_free(copy);
    return status;
}

static void describe(int64_t count, stk_dtype dtype, int ndim, const int64_t *lengths, char *out, int size)
{
    int used = snprintf(out, (size_t)size, "%" PRId64 " rows of %s [", count, stk_dtype_name(dtype));

    for (int i = 0; i < ndim && used < size; i++)
        used += snprintf(out + used, (size_t)(size - used), "%s%" PRId64, i > 0 ? ", " : "", lengths[i]);
    if (used < size)
        snprintf(out + used, (size_t)(size - used), "]");
}

static stk_status open_made(const struct file *file, stk_loader **out, stk_error *err)
{
    const char *path = file->full_path;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;

    field.name = "x";
    field.paths = &path;
    field.path_count = 1;
    field.source_dtype = file->ask.dtype == STK_BF16 ? STK_BF16 : STK_DTYPE_NONE;
    opts.fields = &field;
    opts.field_count = 1;
    opts.num_workers = STK_WORKERS_INLINE;
    opts.prefetch = 1;
    opts.allow_empty = true;
    return stk_loader_open(&opts, out, err);
}

/* STK_E_MISMATCH: there is a file that holds something else, and it may not be replaced. */
static stk_status look(struct file *file, stk_error *err)
{
    stk_loader *loader = NULL;
    stk_field_info info;
    stk_error why;
    char found[320], expected[320];

    if (access(file->full_path, F_OK) != 0)
        return STK_OK;
    describe(file->count, file->ask.dtype, file->ndim, file->lengths, expected, sizeof expected);
    stk_status status = open_made(file, &loader, &why);
    if (status == STK_OK)
        status = stk_loader_field(loader, 0, &info, &why);
    if (status == STK_OK) {
        const int64_t samples = stk_loader_samples(loader);
        file->is_there = samples == file->count && info.source_dtype == file->ask.dtype &&
                         info.ndim == file->ndim + 1 &&
                         memcmp(info.shape + 1, file->lengths, (size_t)file->ndim * sizeof *file->lengths) == 0;
        describe(samples, info.source_dtype, info.ndim - 1, info.shape + 1, found, sizeof found);
    }
    stk_loader_destroy(loader);
    if (file->is_there)
        return STK_OK;
    if (status != STK_OK)
        return stki_fail(err, STK_E_MISMATCH, "is there and cannot be read as %s, --force replaces it: %s", expected,
                         why.message);
    return stki_fail(err, STK_E_MISMATCH, "%s: is there with other content: found %s, expected %s; --force replaces it",
                     file->full_path, found, expected);
}

static stk_status write_rows(const struct file *file, stk_npy_writer *writer, stk_error *err)
{
    const int64_t chunk = file->row_bytes > 0 && file->row_bytes < CHUNK_BYTES ? CHUNK_BYTES / file->row_bytes : 1;
    void *scratch = stki_zalloc_array(chunk * file->row_elements + 1, 8),
         *rows = stki_zalloc(chunk * file->row_bytes + 1);
    stk_status status = STK_OK;

    if (!scratch || !rows)
        status = stki_fail_memory(err, chunk * (file->row_bytes + 8 * file->row_elements), file->full_path);
    for (int64_t first = 0; first < file->count && status == STK_OK; first += chunk) {
        const int64_t count = file->count - first < chunk ? file->count - first : chunk;
        status = lb_values_fill(&file->ask, first, count, file->row_elements, scratch, rows, err);
        if (status == STK_OK)
            status = stk_npy_append(writer, rows, count, err);
        if (status == STK_OK && lb_stop_asked)
            status = stki_fail(err, STK_E_CLOSED, "%s: stopped by a signal, not made", file->full_path);
    }
    stki_free(scratch);
    stki_free(rows);
    return status;
}

static void print_file(const struct file *file, const char *what, FILE *to)
{
    char text[320];

    describe(file->count, file->ask.dtype, file->ndim, file->lengths, text, sizeof text);
    fprintf(to, "%s: %s%s, %sB", file->full_path, what, text, LB_SHORT((double)(file->row_bytes * file->count)));
}

static stk_status make_file(const struct file *file, FILE *to, stk_error *err)
{
    const int64_t begin = stki_now_ns();
    stk_npy_writer *writer = NULL;
    stk_status status;

    if (file->is_there) {
        print_file(file, "is there, ", to);
        fputs("; nothing to do (type, shape and count were compared; seed and values are not recorded in it)\n", to);
        return STK_OK;
    }
    status = make_folders(file->full_path, err);
    if (status == STK_OK)
        status = stk_npy_create(file->full_path, file->ask.dtype, file->ndim, file->lengths,
                                file->ask.dtype == STK_BF16, &writer, err);
    if (status == STK_OK)
        status = write_rows(file, writer, err);
    if (status == STK_OK) {
        status = stk_npy_commit(writer, err);
        writer = NULL;
    }
    stk_npy_abort(writer);
    if (status == STK_OK) {
        print_file(file, "made ", to);
        fprintf(to, " in %.1f s\n", (double)(stki_now_ns() - begin) / 1e9);
        if (fflush(to) != 0) /* whoever waits for the next one sees this one */
            return stki_fail_errno(err, errno, "the output", "writing");
    }
    return status;
}

stk_status lb_make(const char *spec_path, const char *const *sets, int set_count, bool force, FILE *to, stk_error *err)
{
    struct file *files = stki_zalloc_array(MAX_FILES, sizeof *files);
    stki_document *document = NULL;
    int count = 0;
    stk_status status = files ? stki_document_open(spec_path, &document, err)
                              : stki_fail_memory(err, MAX_FILES * (int64_t)sizeof *files, "the specification");

    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_document_set(document, sets[i], err);
    if (status == STK_OK)
        status = read_spec(document, spec_path, files, &count, err);
    if (status != STK_OK && err && status != STK_E_MEMORY)
        status = err->status = STK_E_CONFIG; /* whatever is wrong with it: a file that is not there, too */
    for (int i = 0; i < count && status == STK_OK && !force; i++)
        status = look(&files[i], err);
    for (int i = 0; i < count && status == STK_OK; i++)
        status = make_file(&files[i], to, err);
    for (int i = 0; i < count; i++) {
        stki_free(files[i].full_path);
        stki_free(files[i].place);
    }
    stki_free(files);
    stki_document_destroy(document);
    return status;
}
