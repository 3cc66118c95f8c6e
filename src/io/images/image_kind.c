/* image_kind.c: a table of magic bytes. Image sets hold PNG and WebP files under .jpg names, gzip files, and pages of
 * HTML that a server sent instead of an image; the message should say so instead of "corrupt". */
#include "image_kind.h"
#include <string.h>

struct magic {
    int at, length;
    const char *bytes, *what;
};

static const struct magic magics[] = {
    {0, 8, "\x89PNG\r\n\x1a\n", "a PNG image"},
    {0, 2, "\xff\xd8", "a JPEG image"},
    {8, 4, "WEBP", "a WebP image"},
    {0, 6, "GIF87a", "a GIF image"},
    {0, 6, "GIF89a", "a GIF image"},
    {0, 2, "BM", "a BMP image"},
    {0, 4, "II*\0", "a TIFF image"},
    {0, 4, "MM\0*", "a TIFF image"},
    {0, 4, "II+\0", "a TIFF image"},
    {4, 8, "ftypavif", "an AVIF image"},
    {4, 8, "ftypheic", "a HEIC image"},
    {4, 8, "ftypheix", "a HEIC image"},
    {4, 8, "ftypmif1", "a HEIF image"},
    {0, 2, "\xff\x0a", "a JPEG XL image"},
    {0, 12, "\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image"},
    {0, 12, "\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image"},
    {0, 4, "\xff\x4f\xff\x51", "a JPEG 2000 image"},
    {0, 4, "8BPS", "a Photoshop image"},
    {0, 4, "\0\0\1\0", "an icon"},
    {0, 2, "\x1f\x8b", "a gzip file"},
    {0, 4, "\x28\xb5\x2f\xfd", "a zstd file"},
    {0, 3, "BZh", "a bzip2 file"},
    {0, 6, "\xfd\x37zXZ\0", "an xz file"},
    {0, 4, "PK\3\4", "a zip archive"},
    {0, 8, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {0, 6, "\x93NUMPY", "an .npy file"},
    {0, 5, "%PDF-", "a PDF document"},
    {0, 5, "<?xml", "an XML document"},
    {0, 5, "<html", "an HTML page"},
    {0, 5, "<HTML", "an HTML page"},
    {0, 9, "<!DOCTYPE", "an HTML page"},
    {0, 9, "<!doctype", "an HTML page"},
};

enum { PNG = 0, JPEG = 1 }; /* places in the table */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

enum stki_image_kind stki_image_kind_of(const void *bytes, int64_t count, const char **what)
{
    const char *head = bytes;

    *what = count == 0 ? "an empty file" : "an unknown kind of file";
    for (int i = 0; count > 0 && i < (int)(sizeof magics / sizeof magics[0]); i++) {
        const struct magic *m = &magics[i];
        int64_t there = i <= JPEG ? smaller(count, m->length) : m->length; /* see the header about cut ones */

        if (m->at + there > count || memcmp(head + m->at, m->bytes, (size_t)there))
            continue;
        *what = m->what;
        return i == PNG ? STKI_KIND_PNG : i == JPEG ? STKI_KIND_JPEG : STKI_KIND_OTHER;
    }
    return STKI_KIND_OTHER;
}
