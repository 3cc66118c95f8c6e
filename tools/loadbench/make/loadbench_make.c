/* loadbench_make.c: checks the existing files, then creates the missing ones. The contents of a file are checked with a
 * loader. A file with other contents may be valuable, so it is replaced only with --force. */
#include "loadbench_make.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_config.h"
#include "loadbench_output.h"
#include "loadbench_spec.h"
#include "loadbench_table.h"
#include "loadbench_write.h"
#include "stamp.h"
#include <errno.h>
#include <inttypes.h>
#include <stoker/loader.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static stk_status make_folders(const char *path, stk_error *err)
{
    char *copy = stki_strdup(path);
    stk_status status = copy ? STK_OK : stki_fail_memory(err, (int64_t)strlen(path), "a path");

    for (char *at = copy; at && status == STK_OK && (at = strchr(at + 1, '/'));) {
        *at = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = stki_fail_errno(err, errno, copy, "creating this folder");
        *at = '/';
    }
    stki_free(copy);
    return status;
}

static void describe(int64_t count, stk_dtype dtype, int ndim, const int64_t *lengths, char *out, int size)
{
    int used =
        snprintf(out, (size_t)size, "%" PRId64 " row%s of %s [", count, count == 1 ? "" : "s", stk_dtype_name(dtype));

    for (int i = 0; i < ndim && used < size; i++)
        used += snprintf(out + used, (size_t)(size - used), "%s%" PRId64, i > 0 ? ", " : "", lengths[i]);
    if (used < size)
        snprintf(out + used, (size_t)(size - used), "]");
}

/* Whether the rows of the field are stored as records: encoded images, or rows of varying size. The dtype and shape of
 * records are not compared. */
static bool is_of_records(const struct lb_made_file *file, const struct lb_made_field *field)
{
    return file->format >= LB_FORMAT_BETON && (field->encode || field->spread > 0);
}

/* Writes the `source` key that selects the field in the file. In a tar, the encoded field "image" is .jpg, and labels
 * are .cls. */
static void source_of(const struct lb_made_file *file, const struct lb_made_field *field, char *out, int size)
{
    const char *decode = field->encode ? ", decode: none" : "";
    int used = 0;

    out[0] = '\0';
    if (file->format == LB_FORMAT_NPY)
        return;
    if (file->format == LB_FORMAT_TAR)
        used = snprintf(out, (size_t)size, "{name: %s",
                        field->values == LB_VALUES_LABELS && field->ndim == 0 ? "cls"
                        : field->encode && strcmp(field->name, "image") == 0  ? "jpg"
                                                                              : field->name);
    else if (file->format == LB_FORMAT_IMAGES)
        used = snprintf(out, (size_t)size, "{name: %s", field->encode ? "image" : "label");
    else if (file->format == LB_FORMAT_RAW) {
        used = snprintf(out, (size_t)size, "{dtype: %s, shape: [", field->dtype);
        for (int i = 0; i < field->ndim; i++)
            used += snprintf(out + used, (size_t)(size - used), "%s%" PRId64, i > 0 ? ", " : "", field->lengths[i]);
        used += snprintf(out + used, (size_t)(size - used), "]");
    } else {
        used = snprintf(out, (size_t)size, "{name: '%s'", field->name);
    }
    snprintf(out + used, (size_t)(size - used), "%s}", decode);
}

static stk_status open_made(const struct lb_made_file *file, const struct lb_made_field *made, stk_loader **out,
                            stk_error *err)
{
    const char *path = file->full_path;
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    char source[600];

    source_of(file, made, source, sizeof source);
    field.name = "x";
    field.paths = &path;
    field.path_count = 1;
    if (file->format == LB_FORMAT_NPY || file->format == LB_FORMAT_NPZ)
        field.source_dtype = made->ask.dtype == STK_BF16 ? STK_BF16 : STK_DTYPE_NONE;
    field.source = source[0] ? source : NULL;
    opts.fields = &field;
    opts.field_count = 1;
    opts.num_workers = STK_WORKERS_INLINE;
    opts.prefetch = 1;
    opts.allow_empty = true;
    opts.world_size = 1;
    return stk_loader_open(&opts, out, err);
}

/* Whether the field matches the specification. Only the number of samples is compared for records, for fields of a tar,
 * and for scalars in formats that widen them to 64 bits. */
static bool is_alike(const struct lb_made_file *file, const struct lb_made_field *made, int64_t samples,
                     const stk_field_info *info)
{
    const bool widened =
        (file->format == LB_FORMAT_BETON || file->format == LB_FORMAT_TAR || file->format == LB_FORMAT_IMAGES) &&
        made->ndim == 0;

    if (samples != file->count)
        return false;
    if (is_of_records(file, made) || widened || file->format == LB_FORMAT_TAR)
        return true;
    return info->source_dtype == made->ask.dtype && info->ndim == made->ndim + 1 &&
           memcmp(info->shape + 1, made->lengths, (size_t)made->ndim * sizeof *made->lengths) == 0;
}

static stk_status look_at_field(const struct lb_made_file *file, const struct lb_made_field *made, bool *alike,
                                stk_error *err)
{
    stk_loader *loader = NULL;
    stk_field_info info;
    stk_error why;
    char found[320], expected[700];

    describe(file->count, made->ask.dtype, made->ndim, made->lengths, expected, sizeof expected);
    *alike = false;
    stk_status status = open_made(file, made, &loader, &why);
    if (status == STK_OK)
        status = stk_loader_field(loader, 0, &info, &why);
    if (status == STK_OK) {
        const int64_t samples = stk_loader_samples(loader);
        *alike = is_alike(file, made, samples, &info);
        describe(samples, info.source_dtype, info.ndim - 1, info.shape + 1, found, sizeof found);
    }
    stk_loader_destroy(loader);
    if (status != STK_OK)
        return stki_fail(err, STK_E_MISMATCH, "%s: exists and cannot be read as %s; --force replaces it: %s",
                         file->full_path, expected, why.message);
    if (!*alike)
        return stki_fail(err, STK_E_MISMATCH,
                         "%s: exists with different contents: found %s, expected %s; --force replaces it",
                         file->full_path, found, expected);
    return STK_OK;
}

/* Sets file->is_there if the file exists with the specified contents. STK_E_MISMATCH: it exists with other contents. */
static stk_status look(struct lb_made_file *file, stk_error *err)
{
    stk_status status = STK_OK;
    struct stat about;
    bool alike = true;

    if (stat(file->full_path, &about) != 0)
        return STK_OK;
    if (S_ISDIR(about.st_mode) && file->format != LB_FORMAT_IMAGES)
        return stki_fail(err, STK_E_MISMATCH,
                         "%s: found a folder, expected a file in the format %s: choose another path", file->full_path,
                         lb_format_words[file->format]);
    for (int i = 0; i < file->field_count && status == STK_OK; i++)
        status = look_at_field(file, &file->made[i], &alike, err);
    file->is_there = status == STK_OK && alike;
    return status;
}

/* Returns the free bytes of the file system that will contain the file, found through its nearest existing parent
 * folder. */
static bool room_of(const char *place, dev_t *device, double *bytes)
{
    char *folder = stki_strdup(place);
    struct statvfs about;
    struct stat there;
    bool known = false;

    for (char *slash = folder ? strrchr(folder, '/') : NULL; slash && !known; slash = strrchr(folder, '/')) {
        slash[slash == folder] = '\0'; /* the root folder keeps its slash */
        known = stat(folder, &there) == 0 && statvfs(folder, &about) == 0;
        if (slash == folder)
            break;
    }
    if (known) {
        *device = there.st_dev;
        *bytes = (double)about.f_bavail * (double)about.f_frsize;
    }
    stki_free(folder);
    return known;
}

/* Whether the file will be created with uncompressed rows of fixed size, so that its size is known. */
static bool is_plain(const struct lb_made_file *file)
{
    bool plain = file->level == 0 && !file->is_there;

    for (int i = 0; i < file->field_count; i++)
        plain = plain && !file->made[i].encode && file->made[i].spread <= 0;
    return plain;
}

/* Fails early if there is too little disk space. */
static stk_status check_room(const struct lb_made_file *files, int count, stk_error *err)
{
    dev_t devices[LB_MADE_FILES] = {0};
    double needed[LB_MADE_FILES] = {0}, room;

    for (int i = 0; i < count; i++) {
        if (!is_plain(&files[i]) || !room_of(files[i].place, &devices[i], &room))
            continue;
        needed[i] = (double)files[i].bytes;
        for (int k = 0; k < i; k++)
            needed[i] += devices[k] == devices[i] && is_plain(&files[k]) ? (double)files[k].bytes : 0;
        if (needed[i] > room)
            return stki_fail(err, STK_E_LIMIT,
                             "%s: the files up to this one take %sB, but its file system has only %sB left: generate "
                             "fewer rows, or write them elsewhere",
                             files[i].full_path, LB_SHORT(needed[i]), LB_SHORT(room));
    }
    return STK_OK;
}

/* The specification itself must not be overwritten, even with --force. */
static stk_status check_places(const char *spec_path, const struct lb_made_file *files, int count, stk_error *err)
{
    for (int i = 0; i < count; i++)
        if (stki_is_one_file(files[i].full_path, spec_path))
            return stki_fail(err, STK_E_CONFIG,
                             "%s: make.files.%d.path is the specification itself: choose another name", spec_path, i);
    return STK_OK;
}

static void print_file(const struct lb_made_file *file, const char *what, FILE *to)
{
    char text[700];

    lb_made_describe(file, text, sizeof text);
    fprintf(to, "%s: %s%s, %sB", file->full_path, what, text, LB_SHORT((double)file->bytes));
}

static stk_status make_file(const struct lb_made_file *file, FILE *to, stk_error *err)
{
    const int64_t begin = stki_now_ns();
    stk_status status;

    if (file->is_there) {
        print_file(file, "exists, ", to);
        fputs("; nothing to do (only type, shape and count were compared, because a file does not record seed and "
              "values)\n",
              to);
        return STK_OK;
    }
    status = make_folders(file->full_path, err);
    if (status == STK_OK)
        status = lb_write(file, err);
    if (status != STK_OK)
        return status;
    print_file(file, "created ", to);
    fprintf(to, " in %.1f s\n", (double)(stki_now_ns() - begin) / 1e9);
    if (fflush(to) != 0) /* shows the line before the next file is created */
        return stki_fail_errno(err, errno, "the output", "writing");
    return STK_OK;
}

stk_status lb_make(const char *spec_path, const char *const *sets, int set_count, bool force, FILE *to, stk_error *err)
{
    struct lb_made_file *files = stki_zalloc_array(LB_MADE_FILES, sizeof *files);
    stki_document *document = NULL;
    int count = 0;
    stk_status status = files ? stki_document_open(spec_path, &document, err)
                              : stki_fail_memory(err, LB_MADE_FILES * (int64_t)sizeof *files, "the specification");

    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_document_set(document, sets[i], err);
    if (status == STK_OK)
        status = lb_spec_read(document, files, &count, err);
    if (status != STK_OK && err && status != STK_E_MEMORY)
        status = err->status = STK_E_CONFIG; /* an error in the specification, which may be a missing file */
    if (status == STK_OK)
        status = check_places(spec_path, files, count, err);
    for (int i = 0; i < count && status == STK_OK && !force; i++)
        status = look(&files[i], err);
    if (status == STK_OK)
        status = check_room(files, count, err);
    for (int i = 0; i < count && status == STK_OK; i++)
        status = make_file(&files[i], to, err);
    lb_spec_fini(files, count);
    stki_free(files);
    stki_document_destroy(document);
    return status;
}
