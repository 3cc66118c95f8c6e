/* reader.c: what all readers share, and picking the right one for a file: by what the file begins with, then by its
 * name. Files that are well known but have no reader yet are named in the refusal. */
#include "reader.h"
#include "allocate.h"
#include "decode.h"
#include "error.h"
#include "file.h"
#include <string.h>

enum { SCRATCH_ALIGNMENT = 64, HEAD = 264 };

void stki_scratch_init(stki_scratch *scratch)
{
    *scratch = (stki_scratch){0};
}

void stki_scratch_fini(stki_scratch *scratch)
{
    stki_block_free(&stki_heap, scratch->data, scratch->capacity, SCRATCH_ALIGNMENT);
    stki_decoder_destroy(scratch->decoder);
    *scratch = (stki_scratch){0};
}

stk_status stki_scratch_reserve(stki_scratch *scratch, int64_t bytes, stk_error *err)
{
    int64_t wanted =
        bytes > scratch->capacity + scratch->capacity / 2 ? bytes : scratch->capacity + scratch->capacity / 2;
    void *data;

    if (bytes <= scratch->capacity)
        return STK_OK;
    data = stki_block_alloc(&stki_heap, wanted, SCRATCH_ALIGNMENT);
    if (!data)
        return stki_fail_memory(err, wanted, "a sample");
    stki_block_free(&stki_heap, scratch->data, scratch->capacity, SCRATCH_ALIGNMENT);
    scratch->data = data;
    scratch->capacity = wanted;
    return STK_OK;
}

void stki_reader_destroy(stki_reader *reader)
{
    if (reader)
        reader->ops->destroy(reader);
}

struct signature {
    int at, length;
    const char *bytes, *what;
};

static const struct signature signatures[] = {
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file"},  {0, 4, "PK\x03\x04", "a zip archive (npz or pt)"},
    {0, 4, "PK\x05\x06", "an empty zip archive"}, {0, 3, "\xff\xd8\xff", "a JPEG image"},
    {0, 8, "\x89PNG\r\n\x1a\n", "a PNG image"},   {0, 2, "\x1f\x8b", "a gzip file"},
    {257, 5, "ustar", "a tar archive"},
};

static const struct {
    const char *ending, *what;
} endings[] = {
    {".safetensors", "a safetensors file"},
    {".beton", "an FFCV record file"},
    {".npz", "a zip archive of arrays"},
    {".pt", "a torch file"},
    {".pth", "a torch file"},
    {".h5", "an HDF5 file"},
    {".hdf5", "an HDF5 file"},
    {".tar", "a tar archive"},
    {".bin", "raw data"},
};

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);

    return length >= end && !strcmp(text + length - end, ending);
}

static const char *looks_like(const char *path, const char *head, int64_t length)
{
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const struct signature *s = &signatures[i];
        if (s->at + s->length <= length && !memcmp(head + s->at, s->bytes, (size_t)s->length))
            return s->what;
    }
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (ends_with(path, endings[i].ending))
            return endings[i].what;
    return length == 0 ? "an empty file" : "an unknown kind of file";
}

stk_status stki_reader_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err)
{
    char head[HEAD];
    stki_file *file;
    int64_t length;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status)
        return status;
    length = file->size < HEAD ? file->size : HEAD;
    status = stki_file_read(file, 0, head, length, err);
    stki_file_close(file);
    if (status)
        return status;
    if (ends_with(path, ".npy") || (length >= 6 && !memcmp(head, "\x93NUMPY", 6)))
        return stki_npy_open(path, opts, out, err);
    return stki_fail_at(err, STK_E_UNSUPPORTED,
                        (stki_place){path, -1, -1, looks_like(path, head, length), "an .npy file"},
                        "there is no reader for it");
}
