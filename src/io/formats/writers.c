/* writers.c: the table of writers of named arrays, one line per format. */
#include "writers.h"
#include "array_writers.h"
#include "error.h"
#include "hdf5_container.h"
#include <inttypes.h>
#include <string.h>
#include <strings.h>

static const struct format {
    const char *name, *ending, *other_ending;
    bool chunks;
    stk_status (*create)(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);
} writers[] = {
    {"npy", ".npy", NULL, false, stki_npy_array_writer},
    {"npz", ".npz", NULL, false, stki_npz_writer},
    {"pt", ".pt", ".pth", false, stki_pt_writer},
    {"safetensors", ".safetensors", NULL, false, stki_safetensors_writer},
    {"hdf5", ".h5", ".hdf5", true, stki_hdf5_writer},
    {"raw", ".raw", ".bin", false, stki_raw_writer},
};
enum { WRITERS = sizeof writers / sizeof writers[0] };

#define KNOWN "npy, npz, pt, safetensors, hdf5 or raw"

static bool ends_with(const char *path, const char *ending)
{
    size_t length = strlen(path), end = ending ? strlen(ending) : 0;

    return ending && length > end && !strcasecmp(path + length - end, ending);
}

static stk_status fail_option(const char *path, stk_status status, int64_t found, const char *expected,
                              const char *what, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){path, -1, -1, STKI_TEXT("%" PRId64, found), expected}, "%s", what);
}

static stk_status check_opts(const char *path, const stki_writer_opts *opts, const struct format *format,
                             stk_error *err)
{
    if (!opts)
        return STK_OK;
    if (opts->level < 0 || opts->level > 9)
        return fail_option(path, STK_E_BAD_ARG, opts->level, "0 to 9", "compression level", err);
    if (opts->chunk_rows < 0)
        return fail_option(path, STK_E_BAD_ARG, opts->chunk_rows, "at least 0", "chunk_rows", err);
    if (opts->threads < 0)
        return fail_option(path, STK_E_BAD_ARG, opts->threads, "at least 0", "threads", err);
    if (opts->chunk_rows > 0 && !format->chunks)
        return fail_option(path, STK_E_UNSUPPORTED, opts->chunk_rows,
                           STKI_TEXT("0: %s does not store chunks of rows", format->name), "chunk_rows", err);
    return STK_OK;
}

stk_status stki_writer_create(const char *path, const char *format, const stki_writer_opts *opts, stki_writer **out,
                              stk_error *err)
{
    stk_status status = stki_check_given(path, "path", err);

    if (status == STK_OK)
        status = stki_check_given(out, "out", err);
    if (status != STK_OK)
        return status;
    for (int i = 0; i < WRITERS; i++)
        if (format ? !strcmp(format, writers[i].name)
                   : ends_with(path, writers[i].ending) || ends_with(path, writers[i].other_ending)) {
            status = check_opts(path, opts, &writers[i], err);
            return status != STK_OK ? status : writers[i].create(path, opts, out, err);
        }
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){path, -1, -1, format, KNOWN},
                        format ? "unknown output format"
                               : "the file name extension does not identify an output format");
}
