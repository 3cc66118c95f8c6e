/* image_kind.c: recognizes JPEG and PNG images by their magic bytes, because extensions are unreliable: a PNG file
 * named .jpg is read as PNG. For other files, such as WebP, gzip or an HTML error page, the error names the type found
 * instead of "corrupt"; most of their signatures are in foreign_file.c. */
#include "image_kind.h"
#include "foreign_file.h"
#include <string.h>

/* Whether the bytes start with `magic` or are a prefix of it. */
static bool begins(const char *bytes, int64_t count, const char *magic, int64_t length)
{
    return !memcmp(bytes, magic, (size_t)(count < length ? count : length));
}

enum stki_image_kind stki_image_kind_of(const void *bytes, int64_t count, const char **what)
{
    const stki_file_kind *kind;

    *what = count == 0 ? "an empty file" : "an unknown kind of file";
    if (count > 0 && begins(bytes, count, "\x89PNG\r\n\x1a\n", 8)) {
        *what = "a PNG image";
        return STKI_KIND_PNG;
    }
    if (count > 0 && begins(bytes, count, "\xff\xd8", 2)) {
        *what = "a JPEG image";
        return STKI_KIND_JPEG;
    }
    kind = stki_file_kind_of(bytes, count, false);
    if (kind) /* two bytes are not enough to recognize other files */
        *what = kind->what;
    else if (count >= 2 && !memcmp(bytes, "BM", 2))
        *what = "a BMP image";
    else if (count >= 2 && !memcmp(bytes, "\xff\x0a", 2))
        *what = "a JPEG XL image";
    return STKI_KIND_OTHER;
}
