/* image_kind.h: recognizes files by their first bytes, regardless of their names. Pure functions; thread-safe. */
#ifndef STKI_IMAGE_KIND_H
#define STKI_IMAGE_KIND_H

#include <stdint.h>

enum stki_image_kind { STKI_KIND_JPEG, STKI_KIND_PNG, STKI_KIND_OTHER };

/* `what`: static text such as "a PNG image", "a gzip file", "an empty file" or "an unknown kind of file". A prefix of
 * the magic bytes of a JPEG or PNG image is recognized as such an image. */
enum stki_image_kind stki_image_kind_of(const void *bytes, int64_t count, const char **what);

#endif
