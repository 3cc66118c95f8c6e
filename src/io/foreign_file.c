/* foreign_file.c: signatures of unsupported files, and of common files with misleading names, for error messages.
 * Supported formats are recognized in formats/formats.c and images/image_kind.c. */
#include "foreign_file.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct signature {
    int at, length;
    const char *bytes;
    stki_file_kind kind;
};

#define ANY "\x7f" /* matches any byte */
#define PICKLE \
    "a Python pickle", "pickles run code: save arrays with numpy.save or torch.save", false, STKI_KIND_POSSIBLE
#define HTML_PAGE \
    "an HTML page", "a server sent it instead of the file: download the file again", true, STKI_KIND_LIKELY

static const struct signature signatures[] = {
    {0,
     42,
     "version https://git-lfs.github.com/spec/v1",
     {"a Git LFS pointer", "run git lfs pull", false, STKI_KIND_SURE}},
    {0, 3, "\x1f\x8b\x08", {"a gzip file", "gunzip it", false, STKI_KIND_LIKELY}},
    {0, 4, "\x28\xb5\x2f\xfd", {"a zstd file", "decompress it with unzstd", false, STKI_KIND_LIKELY}},
    {0, 10, "BZh" ANY "1AY&SY", {"a bzip2 file", "decompress it with bunzip2", false, STKI_KIND_LIKELY}},
    {0, 5, "\xfd\x37zXZ", {"an xz file", "decompress it with unxz", false, STKI_KIND_LIKELY}},
    {0, 4, "\x04\x22\x4d\x18", {"an lz4 file", "decompress it with unlz4", false, STKI_KIND_LIKELY}},
    {0, 2, "\x1f\x9d", {"a compress (.Z) file", "decompress it with uncompress", false, STKI_KIND_POSSIBLE}},
    {0, 9, "\x89LZO\0\r\n\x1a\n", {"an lzop file", "decompress it with lzop -d", false, STKI_KIND_LIKELY}},
    {0, 4, "\x02\x21\x4c\x18", {"an lz4 file", "decompress it with unlz4", false, STKI_KIND_LIKELY}},
    {0, 4, "P*M\x18", {"a zstd or lz4 file", "decompress it with unzstd or unlz4", false, STKI_KIND_LIKELY}},
    {0, 4, "LZIP", {"an lzip file", "decompress it with lzip -d", false, STKI_KIND_POSSIBLE}},
    {0, 4, "LRZI", {"an lrzip file", "decompress it with lrunzip", false, STKI_KIND_POSSIBLE}},
    {0, 4, "xar!", {"a xar archive", "unpack it", false, STKI_KIND_POSSIBLE}},
    {0, 6, "070701", {"a cpio archive", "unpack it", false, STKI_KIND_POSSIBLE}},
    {0, 6, "070707", {"a cpio archive", "unpack it", false, STKI_KIND_POSSIBLE}},
    {0, 6, "7z\xbc\xaf\x27\x1c", {"a 7z archive", "unpack it", false, STKI_KIND_LIKELY}},
    {0, 4, "Rar!", {"a RAR archive", "unpack it", false, STKI_KIND_LIKELY}},
    {0, 4, "PK\5\6", {"an empty zip archive", "", false, STKI_KIND_LIKELY}},
    {0, 4, "PK\3\4", {"a zip archive", "unpack it", false, STKI_KIND_LIKELY}},
    {0, 4, "PAR1", {"a Parquet file", "convert it, for example to CSV, NumPy or tar", false, STKI_KIND_LIKELY}},
    {0, 6, "ARROW1", {"an Arrow file", "convert it, for example to CSV, NumPy or tar", false, STKI_KIND_LIKELY}},
    {0, 4, "Obj\1", {"an Avro file", "convert it, for example to CSV or JSON lines", false, STKI_KIND_POSSIBLE}},
    {0, 3, "ORC", {"an ORC file", "convert it, for example to CSV or NumPy", false, STKI_KIND_POSSIBLE}},
    {0, 15, "SQLite format 3", {"an SQLite database", "export it, for example to CSV", false, STKI_KIND_LIKELY}},
    {0, 4, "CDF\1", {"a NetCDF-3 file", "convert it with nccopy -k nc4", false, STKI_KIND_POSSIBLE}},
    {0, 4, "CDF\2", {"a NetCDF-3 file", "convert it with nccopy -k nc4", false, STKI_KIND_POSSIBLE}},
    {0, 4, "CDF\5", {"a NetCDF-3 file", "convert it with nccopy -k nc4", false, STKI_KIND_POSSIBLE}},
    {0, 4, "\x0e\x03\x13\x01", {"an HDF4 file", "convert it with h4toh5", false, STKI_KIND_POSSIBLE}},
    {0, 4, "GRIB", {"a GRIB file", "convert it to NetCDF", false, STKI_KIND_POSSIBLE}},
    {0, 10, "MATLAB 5.0", {"a MATLAB file", "save it with -v7.3, which is HDF5", false, STKI_KIND_POSSIBLE}},
    {0, 3, "\x80\x02}", {PICKLE}},
    {0, 3, "\x80\x03}", {PICKLE}},
    {0, 3, "\x80\x04\x95", {PICKLE}},
    {0, 3, "\x80\x05\x95", {PICKLE}},
    {0, 6, "\x93NUMPY", {"an .npy file", "", false, STKI_KIND_LIKELY}},
    {0, 8, "\x89HDF\r\n\x1a\n", {"an HDF5 file", "", false, STKI_KIND_LIKELY}},
    {0, 8, "\x89PNG\r\n\x1a\n", {"a PNG image", "", false, STKI_KIND_LIKELY}},
    {0, 3, "\xff\xd8\xff", {"a JPEG image", "", false, STKI_KIND_POSSIBLE}},
    {0, 12, "RIFF" ANY ANY ANY ANY "WEBP", {"a WebP image", "convert it to PNG or JPEG", false, STKI_KIND_LIKELY}},
    {0, 12, "RIFF" ANY ANY ANY ANY "WAVE", {"a WAV file", "convert it to NumPy", false, STKI_KIND_LIKELY}},
    {0, 12, "RIFF" ANY ANY ANY ANY "AVI ", {"an AVI video", "convert it to images or NumPy", false, STKI_KIND_LIKELY}},
    {0, 6, "GIF87a", {"a GIF image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0, 6, "GIF89a", {"a GIF image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "II*\0", {"a TIFF image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "MM\0*", {"a TIFF image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "II+\0", {"a TIFF image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {4, 8, "ftypavif", {"an AVIF image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {4, 8, "ftypheic", {"a HEIC image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {4, 8, "ftypheix", {"a HEIC image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {4, 8, "ftypmif1", {"a HEIF image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {4, 4, "ftyp", {"an MP4 video", "convert it to images or NumPy", false, STKI_KIND_POSSIBLE}},
    {0,
     4,
     "\x1a\x45\xdf\xa3",
     {"a Matroska or WebM video", "convert it to images or NumPy", false, STKI_KIND_POSSIBLE}},
    {0, 4, "fLaC", {"a FLAC file", "convert it to NumPy", false, STKI_KIND_POSSIBLE}},
    {0, 4, "OggS", {"an Ogg file", "convert it to NumPy", false, STKI_KIND_POSSIBLE}},
    {0, 3, "ID3", {"an MP3 file", "convert it to NumPy", false, STKI_KIND_POSSIBLE}},
    {0, 12, "\0\0\0\x0cJXL \r\n\x87\n", {"a JPEG XL image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {0, 12, "\0\0\0\x0cjP  \r\n\x87\n", {"a JPEG 2000 image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "\xff\x4f\xff\x51", {"a JPEG 2000 image", "convert it to PNG or JPEG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "8BPS", {"a Photoshop image", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0, 4, "\0\0\1\0", {"an icon", "convert it to PNG", false, STKI_KIND_POSSIBLE}},
    {0,
     4,
     "\0\0\x08\1",
     {"an IDX file", "read it with source: {format: raw, dtype: uint8, offset: 8}", false, STKI_KIND_POSSIBLE}},
    {0,
     4,
     "\0\0\x08\3",
     {"an IDX file", "read MNIST with source: {format: raw, dtype: uint8, offset: 16, shape: [28, 28]}", false,
      STKI_KIND_POSSIBLE}},
    {0, 5, "%PDF-", {"a PDF document", "", false, STKI_KIND_LIKELY}},
    {0, 5, "<?xml", {"an XML document", "", true, STKI_KIND_LIKELY}},
    {0, 5, "<html", {HTML_PAGE}},
    {0, 5, "<HTML", {HTML_PAGE}},
    {0, 9, "<!DOCTYPE", {HTML_PAGE}},
    {0, 9, "<!doctype", {HTML_PAGE}},
};

static bool begins_with(const struct signature *s, const char *bytes, int64_t count)
{
    if (s->at + s->length > count)
        return false;
    for (int i = 0; i < s->length; i++)
        if (s->bytes[i] != bytes[s->at + i] && s->bytes[i] != ANY[0])
            return false;
    return true;
}

/* Whether a text file may start with the signature of this binary format: it is short and printable. */
static bool is_letters(const struct signature *s)
{
    for (int i = 0; i < s->length; i++)
        if (s->bytes[i] < ' ' || s->bytes[i] > '~')
            return false;
    return !s->kind.text && s->length < 20;
}

const stki_file_kind *stki_file_kind_of(const void *head, int64_t count, bool text)
{
    const char *bytes = head;
    const int64_t looked = count < STKI_KIND_BYTES ? count : STKI_KIND_BYTES;

    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const struct signature *s = &signatures[i];

        if (begins_with(s, bytes, count) && !(text && is_letters(s) && !memchr(bytes, '\0', (size_t)looked)))
            return &s->kind;
    }
    return NULL;
}

const char *stki_folder_kind_of(const char *path)
{
    static const struct {
        const char *name, *what;
    } marks[] = {
        {".zgroup", "a Zarr store"},
        {".zarray", "a Zarr store"},
        {"zarr.json", "a Zarr store"},
        {"dataset_dict.json", "a data set of Hugging Face's datasets (Arrow files)"},
        {"dataset_info.json", "a data set of Hugging Face's datasets (Arrow files)"},
        {"_delta_log", "a Delta table (Parquet files)"},
        {"data.mdb", "an LMDB database"},
    };
    char name[4096];

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (snprintf(name, sizeof name, "%s/%s", path, marks[i].name) < (int)sizeof name && access(name, F_OK) == 0)
            return marks[i].what;
    return NULL;
}

const char *stki_file_missing_because(const char *path)
{
    if (strstr(path, "://"))
        return "stoker reads files, not URLs: download the file, or mount the storage";
    if (path[0] == '~' || strstr(path, "/~/"))
        return "~ is not expanded: write ${HOME}, or the whole path";
    if (strchr(path, '{') && strstr(path, ".."))
        return "braces are not expanded: write a pattern with *, such as s-*.tar, or a list of paths";
    return "";
}
