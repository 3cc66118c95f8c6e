/* oracle_files.c: reads every file of an oracle manifest (README.md beside it) and compares what comes out with what
 * the original library said: shapes, types and the SHA-256 of the values, or the class of the error.
 *
 *     oracle_files MANIFEST.json [--format npy] [--verbose]
 *
 * One count an entry. Entries that only belong to others ("aux") are not counted; entries of formats without a reader
 * are not counted unless --format asks for them. Each file is read mapped and positionally, whole and sample by sample;
 * all must agree. The last line is "N passed, N failed"; exit 0 if none failed, 1 if some did, 2 for a wrong command.
 */
#include "npy.h"
#include "sha256.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats_with_reader[] = {"npy"};

struct outcome {
    stk_status status; /* of reading */
    stk_error err;
    char wrong[512]; /* not "": read, and the values are not what they should be */
};

static void STK_PRINTF(2, 3) wrong(struct outcome *o, const char *format, ...)
{
    va_list args;

    if (o->wrong[0])
        return;
    va_start(args, format);
    vsnprintf(o->wrong, sizeof o->wrong, format, args);
    va_end(args);
}

static bool is_one_of(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(text, list[i]))
            return true;
    return false;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* Copies a tensor to `to` in C order and native bytes, the way all delivered bytes go; returns the end. */
static char *copy_out(char *to, const stk_tensor *t)
{
    int64_t strides[STK_MAX_DIMS], bytes;
    stk_error err;

    if (stki_row_major(t->dtype, t->ndim, t->shape, strides, &bytes, &err))
        abort();
    bytes = stk_tensor_nbytes(t);
    stki_copy_strided(to, t->dtype, strides, t->data, t->dtype, t->strides, t->flags & STK_TENSOR_SWAPPED, t->ndim,
                      t->shape);
    return to + bytes;
}

static void check_shape(struct outcome *o, const json_t *item, stk_dtype dtype, int ndim, const int64_t *shape)
{
    const char *alias = text_of(item, "alias_dtype");
    const char *expected = *alias ? alias : text_of(item, "dtype");
    const json_t *sizes = json_object_get(item, "shape");

    if (strcmp(stk_dtype_long_name(dtype), expected))
        wrong(o, "dtype: found %s, expected %s", stk_dtype_long_name(dtype), expected);
    if ((size_t)ndim != json_array_size(sizes))
        wrong(o, "axes: found %d, expected %zu", ndim, json_array_size(sizes));
    for (int i = 0; i < ndim && (size_t)i < json_array_size(sizes); i++)
        if (shape[i] != json_integer_value(json_array_get(sizes, (size_t)i)))
            wrong(o, "axis %d: found %" PRId64, i, shape[i]);
}

static void check_bytes(struct outcome *o, const json_t *item, const char *how, const char *bytes, int64_t count)
{
    char digest[65];

    stkt_sha256_of(bytes, (size_t)count, digest);
    if (strcmp(digest, text_of(item, "sha256")))
        wrong(o, "values read by %s: found sha256 %s, expected %s", how, digest, text_of(item, "sha256"));
}

static void read_whole(struct outcome *o, const char *path, const stki_reader_opts *opts, const json_t *item)
{
    stk_tensor array;
    char *bytes;
    int64_t count;

    o->status = stki_npy_open_array(path, opts, &array, &o->err);
    if (o->status)
        return;
    count = stk_tensor_nbytes(&array);
    bytes = malloc((size_t)count + 1);
    copy_out(bytes, &array);
    check_shape(o, item, array.dtype, array.ndim, array.shape);
    check_bytes(o, item, opts->access == STKI_ACCESS_PREAD ? "pread, whole" : "mmap, whole", bytes, count);
    if (!(array.flags & STK_TENSOR_READONLY))
        wrong(o, "the tensor of a file may be written");
    free(bytes);
    stk_tensor_release(&array);
}

static void check_reader(struct outcome *o, const stki_reader *reader, const stki_reader_opts *opts, const json_t *item)
{
    stki_scratch scratch;
    int64_t shape[STK_MAX_DIMS + 1];
    char *bytes = malloc((size_t)(reader->count * reader->max_bytes) + 1), *end = bytes;

    stki_scratch_init(&scratch);
    shape[0] = reader->count;
    memcpy(shape + 1, reader->shape, sizeof *shape * (size_t)reader->ndim);
    check_shape(o, item, reader->dtype, reader->ndim + 1, shape);
    for (int64_t i = 0; i < reader->count && !o->status; i++) {
        stk_tensor sample;
        o->status = reader->ops->read(reader, i, NULL, &scratch, &sample, &o->err);
        if (o->status)
            break;
        end = copy_out(end, &sample);
        stki_reader_done(reader, &sample);
    }
    if (!o->status)
        check_bytes(o, item, opts->access == STKI_ACCESS_PREAD ? "pread, by sample" : "mmap, by sample", bytes,
                    end - bytes);
    stki_scratch_fini(&scratch);
    free(bytes);
}

static void read_samples(struct outcome *o, const char *path, const stki_reader_opts *opts, const json_t *item)
{
    stki_reader *reader;

    o->status = stki_reader_open(path, opts, &reader, &o->err);
    if (o->status)
        return;
    check_reader(o, reader, opts, item);
    stki_reader_destroy(reader);
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

static bool accepted(const json_t *entry, stk_status status)
{
    const char *name = stk_status_name(status);
    const json_t *accept = json_object_get(entry, "accept"), *also;
    size_t i;

    if (!strcmp(text_of(entry, "expect"), name))
        return true;
    json_array_foreach(accept, i, also) if (!strcmp(json_string_value(also), name)) return true;
    return false;
}

static void judge(struct outcome *o, const json_t *entry, const char *path, const char *how)
{
    if (o->wrong[0])
        return;
    if (!accepted(entry, o->status))
        wrong(o, "%s: found %s (%s), expected %s", how, stk_status_name(o->status), o->status ? o->err.message : "",
              text_of(entry, "expect"));
    if (o->status && !strstr(o->err.message, path + (strlen(path) > 200 ? strlen(path) - 200 : 0)))
        wrong(o, "%s: the message does not name the file: %s", how, o->err.message);
}

static void run_npy(struct outcome *o, const char *path, const json_t *entry)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    const json_t *item = json_array_get(json_object_get(entry, "items"), 0);
    const char *alias = text_of(item, "alias_dtype");

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        stki_reader_opts opts = {.access = modes[i], .alias_dtype = *alias ? stk_dtype_find(alias) : STK_DTYPE_NONE};
        bool no_axis =
            json_is_array(json_object_get(item, "shape")) && !json_array_size(json_object_get(item, "shape"));

        read_whole(o, path, &opts, item);
        judge(o, entry, path, "whole");
        if (no_axis) { /* one number is an array, but no samples */
            stki_reader *reader;
            stk_error err;
            if (stki_reader_open(path, &opts, &reader, &err) != STK_E_UNSUPPORTED)
                wrong(o, "an array without axes was opened for its samples");
            continue;
        }
        read_samples(o, path, &opts, item);
        judge(o, entry, path, "by sample");
    }
}

static bool run_entry(const char *dir, const json_t *entry, bool verbose)
{
    struct outcome o = {0};
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", dir, text_of(entry, "path"));
    if (!strcmp(text_of(entry, "format"), "npy"))
        run_npy(&o, path, entry);
    else
        wrong(&o, "there is no reader for format %s", text_of(entry, "format"));
    if (o.wrong[0])
        printf("FAIL %s: %s\n", text_of(entry, "path"), o.wrong);
    else if (verbose)
        printf("pass %s: %s%s%s\n", text_of(entry, "path"), stk_status_name(o.status), o.status ? ": " : "",
               o.status ? o.err.message : "");
    return !o.wrong[0];
}

int main(int argc, char **argv)
{
    const char *manifest = NULL, *format = NULL;
    char *dir, *slash;
    bool verbose = false;
    int passed = 0, failed = 0;
    json_error_t error;
    json_t *root, *entry;
    size_t i;

    for (int a = 1; a < argc; a++) {
        if (!strcmp(argv[a], "--format") && a + 1 < argc)
            format = argv[++a];
        else if (!strcmp(argv[a], "--verbose"))
            verbose = true;
        else if (argv[a][0] != '-' && !manifest)
            manifest = argv[a];
        else
            manifest = NULL, a = argc;
    }
    root = manifest ? json_load_file(manifest, 0, &error) : NULL;
    if (!root) {
        fprintf(stderr, "usage: oracle_files MANIFEST.json [--format FORMAT] [--verbose]\n%s%s\n",
                manifest ? manifest : "", manifest ? ": can't be read" : "");
        return 2;
    }
    dir = strdup(manifest);
    slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';

    json_array_foreach(json_object_get(root, "files"), i, entry)
    {
        const char *its = text_of(entry, "format");
        if (!strcmp(its, "aux") || (format ? strcmp(its, format) : !is_one_of(its, formats_with_reader, 1)))
            continue;
        if (run_entry(slash ? dir : ".", entry, verbose))
            passed++;
        else
            failed++;
    }
    json_decref(root);
    free(dir);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
