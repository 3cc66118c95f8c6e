/* formats.c: the table of formats, one line each. Files are recognized by their first bytes, then by name. The error
 * message names well-known formats that are not supported. */
#include "allocate.h"
#include "beton.h"
#include "csv.h"
#include "decode.h"
#include "error.h"
#include "foreign_file.h"
#include "format.h"
#include "hdf5_container.h"
#include "image_bytes.h"
#include "image_folder.h"
#include "image_set.h"
#include "npy.h"
#include "npz.h"
#include "pt.h"
#include "safetensors.h"
#include "source_common.h"
#include "tar.h"
#include "text.h"
#include "text_build.h"
#include "tokens.h"
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

static bool begins_with(const char *head, int64_t length, const char *bytes, int64_t count)
{
    return length >= count && !memcmp(head, bytes, (size_t)count);
}

static bool is_npy(const char *head, int64_t length)
{
    return begins_with(head, length, "\x93NUMPY", 6);
}

/* Compares whole signatures, because raw data may start with any two bytes. */
static bool is_jpeg(const char *head, int64_t length)
{
    return begins_with(head, length, "\xff\xd8\xff", 3);
}

static bool is_png(const char *head, int64_t length)
{
    return begins_with(head, length, "\x89PNG\r\n\x1a\n", 8);
}

#define ENDINGS(...)      \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

#define GROUPS(...)                    \
    (const stki_source_group *const[]) \
    {                                  \
        __VA_ARGS__, NULL              \
    }

/* The first format that matches wins. */
static const stki_file_format formats[] = {
    {"npy", ENDINGS(".npy"), is_npy, stki_npy_container, false, GROUPS(&stki_dtype_source, &stki_header_source)},
    {"npz", ENDINGS(".npz"), stki_npz_matches, stki_npz_container, false,
     GROUPS(&stki_dtype_source, &stki_header_source, &stki_memory_source, &stki_verify_source)},
    {"pt", ENDINGS(".pt", ".pth"), stki_pt_matches, stki_pt_container, false,
     GROUPS(&stki_header_source, &stki_memory_source, &stki_verify_source)},
    {"safetensors", ENDINGS(".safetensors"), NULL, stki_safetensors_container, false, NULL},
    {"hdf5", ENDINGS(".h5", ".hdf5", ".hdf", ".nc", ".nc4"), stki_hdf5_matches, stki_hdf5_container_open, false,
     GROUPS(&stki_hdf5_source, &stki_memory_source, &stki_image_bytes_source, STKI_IMAGE_GROUPS)},
    {"webdataset", ENDINGS(".tar"), stki_webdataset_matches, stki_webdataset_open, false,
     GROUPS(&stki_tar_source, &stki_dtype_source, &stki_header_source, STKI_IMAGE_GROUPS)},
    {"beton", ENDINGS(".beton"), stki_beton_matches, stki_beton_open, false,
     GROUPS(&stki_dtype_source, &stki_image_source, &stki_jpeg_source)},
    {"llmc", NULL, stki_llmc_matches, stki_llmc_open, false, GROUPS(&stki_dtype_source)},
    {"megatron", ENDINGS(".idx"), stki_megatron_matches, stki_megatron_open, false, GROUPS(&stki_dtype_source)},
    {"raw", ENDINGS(".bin", ".raw"), NULL, stki_raw_open, false, GROUPS(&stki_raw_source, &stki_dtype_source)},
    {"jpeg", ENDINGS(".jpg", ".jpeg"), is_jpeg, stki_jpeg_container, false, GROUPS(STKI_IMAGE_GROUPS)},
    {"png", ENDINGS(".png"), is_png, stki_png_container, false, GROUPS(&stki_image_source, &stki_exif_source)},
    {"image_folder", NULL, NULL, stki_image_folder_container, true, GROUPS(STKI_IMAGE_GROUPS),
     stki_image_folder_classes},
    {"image_list", ENDINGS(".lst"), NULL, stki_image_list_container, false, GROUPS(STKI_IMAGE_GROUPS)},
    {"csv", ENDINGS(".csv", ".tsv"), NULL, stki_csv_open, false,
     GROUPS(&stki_csv_source, STKI_IMAGE_GROUPS, &stki_dtype_source, &stki_header_source, &stki_memory_source,
            &stki_verify_source, &stki_hdf5_source, &stki_raw_source)},
    {"text", ENDINGS(".txt"), NULL, stki_text_open, false, GROUPS(&stki_text_source)},
    {"jsonl", ENDINGS(".jsonl", ".ndjson"), NULL, stki_jsonl_open, false,
     GROUPS(&stki_jsonl_source, &stki_dtype_source)},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);

    return length >= end && !strcasecmp(text + length - end, ending);
}

/* npz and pt files are zip archives. */
static bool is_zip(const stki_file_format *format)
{
    return format->matches == stki_npz_matches || format->matches == stki_pt_matches;
}

/* Fails if the first bytes identify another format. STK_OK: the file may be of this format. */
static stk_status check_kind(const char *path, const char *head, int64_t length, const stki_file_format *format,
                             stk_error *err)
{
    const stki_file_kind *kind = stki_file_kind_of(head, length, !strcmp(format->name, "image_list"));

    if (!kind || (is_zip(format) && length > 1 && memcmp(head, "PK", 2) == 0))
        return STK_OK;
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, kind->what, format->name}, "%s%s",
                        "the file is not in the expected format",
                        kind->advice[0] ? STKI_TEXT(" (%s)", kind->advice) : "");
}

static stk_status fail_unknown(const char *path, const char *head, int64_t length, const char *all, stk_error *err)
{
    const stki_file_kind *kind = stki_file_kind_of(head, length, false);
    const bool json = length > 0 && ends_with(path, ".json");
    const char *what = length == 0                    ? "an empty file"
                       : ends_with(path, ".tfrecord") ? "a TFRecord file"
                       : json                         ? "a JSON file"
                                                      : "an unknown kind of file";
    const char *advice = kind ? kind->advice : json ? "convert it to JSON lines: jq -c '.[]' x.json >x.jsonl" : "";

    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, kind ? kind->what : what, NULL},
                        "unsupported file format (supported: %s)%s", all, *advice ? STKI_TEXT(" (%s)", advice) : "");
}

/* Whether the format accepts any bytes, or its reader checks the content itself, as the readers of text and folders
 * do. */
static bool takes_anything(const stki_file_format *format)
{
    static const char *const names[] = {"raw", "text", "jsonl", "csv"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(format->name, names[i]))
            return true;
    return format->folder;
}

/* "npy, npz, …" */
static const char *names(char *buffer, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < FORMATS && used < size; i++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", i ? ", " : "", formats[i].name);
    return buffer;
}

const stki_file_format *stki_file_format_at(int i)
{
    return i < FORMATS ? &formats[i] : NULL;
}

const stki_file_format *stki_file_format_named(const char *name)
{
    for (int i = 0; i < FORMATS; i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

static stk_status by_name(const char *path, const char *name, const stki_file_format **out, stk_error *err)
{
    char all[256];

    *out = stki_file_format_named(name);
    if (*out)
        return STK_OK;
    return stki_fail_at(err, STK_E_CONFIG, (stki_place){path, -1, -1, name, NULL}, "source.format: expected one of %s",
                        names(all, sizeof all));
}

static stk_status read_head(const char *path, char *head, int64_t *length, stk_error *err)
{
    stki_file *file;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    *length = file->size < STKI_FORMAT_HEAD ? file->size : STKI_FORMAT_HEAD;
    status = stki_file_read(file, 0, head, *length, err);
    stki_file_close(file);
    return status;
}

static stk_status check_folder(const char *path, stk_error *err)
{
    const char *what = stki_folder_kind_of(path);

    return what
               ? stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, what, "a file, or a folder of images"},
                              "unsupported kind of folder (convert it, for example to HDF5, NumPy or tar)")
               : STK_OK;
}

stk_status stki_file_format_of(const char *path, const stki_reader_opts *opts, const stki_file_format **out,
                               stk_error *err)
{
    char head[STKI_FORMAT_HEAD], all[256];
    struct stat st;
    int64_t length;
    stk_status status;

    if (opts->format)
        return by_name(path, opts->format, out, err);
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].folder && !stat(path, &st) && S_ISDIR(st.st_mode)) {
            *out = &formats[i];
            return check_folder(path, err);
        }
    status = read_head(path, head, &length, err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < FORMATS; i++)
        if (formats[i].matches && formats[i].matches(head, length)) {
            *out = &formats[i];
            return STK_OK;
        }
    for (int i = 0; i < FORMATS; i++)
        for (const char *const *ending = formats[i].endings; ending && *ending; ending++)
            if (ends_with(path, *ending)) {
                *out = &formats[i];
                return takes_anything(*out) ? STK_OK : check_kind(path, head, length, *out, err);
            }
    return fail_unknown(path, head, length, names(all, sizeof all), err);
}

/* ---- opening ---- */

void stki_container_complete(stki_container *container)
{
    const stki_file_format *format = stki_file_format_named(container->ops->format);

    container->groups = format ? format->groups : NULL;
    container->open = stki_container_open;
    container->finish = format && strcmp(format->name, "hdf5") == 0 ? stki_image_bytes_finish : NULL;
}

stk_status stki_file_format_open(const stki_file_format *format, const char *path, const stki_reader_opts *opts,
                                 stki_container **out, stk_error *err)
{
    char head[STKI_FORMAT_HEAD];
    int64_t length;
    stk_status status = format->open(path, opts, out, err);

    if (status == STK_OK)
        stki_container_complete(*out);
    /* If the file is of another kind, report that instead of the error that the reader found. */
    if ((status == STK_E_CORRUPT || status == STK_E_TRUNCATED || status == STK_E_UNSUPPORTED) &&
        !takes_anything(format) && read_head(path, head, &length, NULL) == STK_OK &&
        !(format->matches && format->matches(head, length))) {
        stk_status kind = check_kind(path, head, length, format, err);

        status = kind != STK_OK ? kind : status;
    }
    return status;
}

stk_status stki_container_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    static const stki_reader_opts defaults;
    const stki_file_format *format;
    stk_status status;

    opts = opts ? opts : &defaults;
    status = stki_file_format_of(path, opts, &format, err);
    return status == STK_OK ? stki_file_format_open(format, path, opts, out, err) : status;
}

bool stki_container_whole_texts(const stki_reader_opts *opts)
{
    return stki_text_whole(opts);
}

bool stki_container_of_images(char *const *paths, int64_t count)
{
    int64_t i = 0;

    while (i < count && stki_image_name(paths[i]))
        i++;
    return i > 1 && i == count;
}

stk_status stki_container_open_images(char *const *paths, int64_t count, const stki_reader_opts *opts,
                                      stki_container **out, stk_error *err)
{
    stk_status status = stki_image_files_container(paths, count, opts, out, err);

    if (status == STK_OK)
        stki_container_complete(*out);
    return status;
}

stk_status stki_reader_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    static const stki_reader_opts defaults;
    stki_container *container;
    int64_t member;
    stk_status status;

    opts = opts ? opts : &defaults;
    status = stki_container_open(path, opts, &container, err);
    if (status != STK_OK)
        return status;
    status = stki_container_find(container, opts, &member, err);
    if (status == STK_OK)
        status = stki_container_reader(container, member, opts, out, err);
    stki_container_release(container);
    return status;
}
