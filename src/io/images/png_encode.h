/* png_encode.h: losslessly encodes PNG images with libspng. The same pixels and options produce the same bytes with the
 * same version of zlib. Thread-safe. */
#ifndef STKI_PNG_ENCODE_H
#define STKI_PNG_ENCODE_H

#include <stdint.h>
#include <stoker/status.h>

/* Encodes `height` x `width` contiguous pixels of 1 (gray) or 3 (RGB) channels of 8 or 16 bits (u8 or u16). level:
 * deflate level, 0 to 9. *out: the file of *bytes bytes, which the caller frees with stki_free. STK_E_BAD_SHAPE: there
 * are no pixels, or the number of channels is invalid. STK_E_LIMIT: the height or width is 2^31 or more. STK_E_MEMORY.
 * The message has no location. */
stk_status stki_png_encode(const void *pixels, int64_t height, int64_t width, int channels, int bits, int level,
                           void **out, int64_t *bytes, stk_error *err);
/* Returns the version of libspng at run time, such as "0.7.3". */
const char *stki_png_version(void);

#endif
