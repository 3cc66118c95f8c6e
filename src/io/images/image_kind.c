/* image_kind.c: JPEG and PNG images by their magic bytes; foreign_file.c knows what else there is. Image sets hold PNG
 * files under .jpg names, which are read, and WebP files, gzip files and pages of HTML that a server sent instead of an
 * image; the message says so instead of "corrupt". */
#include "image_kind.h"
#include "foreign_file.h"
#include <string.h>

/* Do the bytes begin as `magic` does, as far as there are any? */
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
    if (kind) /* two bytes say little elsewhere */
        *what = kind->what;
    else if (count >= 2 && !memcmp(bytes, "BM", 2))
        *what = "a BMP image";
    else if (count >= 2 && !memcmp(bytes, "\xff\x0a", 2))
        *what = "a JPEG XL image";
    return STKI_KIND_OTHER;
}
