/* oracle_files.c: reads every file of an oracle manifest (README.md beside it) and compares the results with those of
 * the original library: shapes, types and the SHA-256 of the values, or the class of the error.
 *
 *     oracle_files MANIFEST.json [--format npy] [--verbose]
 *
 * Each entry counts as one test. Entries that other entries depend on ("aux") are not counted, nor are entries of
 * formats without a reader, unless --format selects them. The last line is "N passed, N failed". Exit status: 0 if some
 * passed and none failed, 1 otherwise, 2 for a wrong command line. */
#include "oracle.h"
#include "tensor_internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The formats of the manifest that have a reader. */
static const struct {
    const char *format;
    void (*check)(struct outcome *o, const char *path, const json_t *entry);
} checks[] = {
    {"npy", oracle_arrays},
    {"npz", oracle_arrays},
    {"pt", oracle_arrays},
    {"safetensors", oracle_arrays},
    {"hdf5", oracle_arrays},
    {"beton", oracle_beton},
    {"webdataset", oracle_webdataset},
    {"tokens_llmc", oracle_arrays},
    {"tokens_raw", oracle_arrays},
    {"tokens_megatron", oracle_megatron},
    {"raw", oracle_arrays},
    {"jpeg", oracle_jpeg},
    {"jpeg_folder", oracle_jpeg_folder},
};
enum { CHECKS = sizeof checks / sizeof checks[0] };

/* libhdf5 1.10 leaks a few bytes whenever it rejects a data set of a newer format version. */
STK_API const char *__lsan_default_suppressions(void);
STK_API const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

void oracle_wrong(struct outcome *o, const char *format, ...)
{
    va_list args;

    if (o->wrong[0])
        return;
    va_start(args, format);
    vsnprintf(o->wrong, sizeof o->wrong, format, args);
    va_end(args);
}

const char *oracle_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

char *oracle_copy_out(char *to, const stk_tensor *t)
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

static bool accepted(const json_t *expecting, stk_status status)
{
    const char *name = stk_status_name(status);
    const json_t *accept = json_object_get(expecting, "accept"), *also;
    size_t i;

    if (!strcmp(oracle_text(expecting, "expect"), name) || !strcmp(oracle_text(expecting, "error"), name))
        return true;
    json_array_foreach(accept, i, also) if (!strcmp(json_string_value(also), name)) return true;
    return false;
}

void oracle_judge(struct outcome *o, const json_t *expecting, const char *path, const char *how)
{
    if (o->wrong[0])
        return;
    if (!accepted(expecting, o->status))
        oracle_wrong(o, "%s: found %s (%s), expected %s", how, stk_status_name(o->status),
                     o->status ? o->err.message : "", oracle_text(expecting, "expect"));
    if (o->status && !strstr(o->err.message, path + (strlen(path) > 200 ? strlen(path) - 200 : 0)))
        oracle_wrong(o, "%s: the message does not name the file: %s", how, o->err.message);
}

static int check_of(const char *format)
{
    for (int i = 0; i < CHECKS; i++)
        if (!strcmp(checks[i].format, format))
            return i;
    return -1;
}

static bool run_entry(const char *dir, const json_t *entry, bool verbose)
{
    struct outcome o = {0};
    char path[4096];
    int check = check_of(oracle_text(entry, "format"));

    snprintf(path, sizeof path, "%s/%s", dir, oracle_text(entry, "path"));
    if (check >= 0)
        checks[check].check(&o, path, entry);
    else
        oracle_wrong(&o, "there is no reader for format %s", oracle_text(entry, "format"));
    if (o.wrong[0])
        printf("FAIL %s: %s\n", oracle_text(entry, "path"), o.wrong);
    else if (verbose)
        printf("pass %s: %s%s%s\n", oracle_text(entry, "path"), stk_status_name(o.status), o.status ? ": " : "",
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
                manifest ? manifest : "", manifest ? ": cannot be read" : "");
        return 2;
    }
    dir = strdup(manifest);
    slash = strrchr(dir, '/');
    if (slash)
        *slash = '\0';

    json_array_foreach(json_object_get(root, "files"), i, entry)
    {
        const char *its = oracle_text(entry, "format");
        if (!strcmp(its, "aux") || (format ? strcmp(its, format) : check_of(its) < 0))
            continue;
        if (run_entry(slash ? dir : ".", entry, verbose))
            passed++;
        else
            failed++;
    }
    json_decref(root);
    free(dir);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
