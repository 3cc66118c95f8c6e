/* image_load.h: reads image files. No descriptor stays open between two images, so their number is unlimited.
 * Thread-safe. */
#ifndef STKI_IMAGE_LOAD_H
#define STKI_IMAGE_LOAD_H

#include "decode.h"

/* Reads the whole file to the decoder's buffer, where it stays until the decoder is used for the next one. The content
 * is not checked. Errors name file and record. STK_E_RESOURCE: no free descriptor, even after waiting (descriptor.h).
 */
stk_status stki_image_load(stki_decoder *decoder, const char *path, int64_t record, const void **bytes, int64_t *count,
                           stk_error *err);

/* Returns the size of the file. */
stk_status stki_image_load_size(const char *path, int64_t record, int64_t *bytes, stk_error *err);

/* The shape of the decoded image, from the beginning of the file. */
stk_status stki_image_load_shape(const char *path, int64_t record, const stki_decode_opts *opts, int64_t shape[3],
                                 stk_error *err);

/* Whether decoding discards bits of its samples; false if the file cannot be read. */
bool stki_image_load_is_cut(const char *path, const stki_decode_opts *opts);

/* Advises the kernel to read the file soon. True: it is already in memory, judged by its end. */
bool stki_image_load_ahead(const char *path);

#endif
