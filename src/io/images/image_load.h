/* image_load.h: reads image files. No descriptor is kept open between two images, so the number of images is not
 * limited by descriptors. Thread-safe. */
#ifndef STKI_IMAGE_LOAD_H
#define STKI_IMAGE_LOAD_H

#include "decode.h"

/* Reads the whole file into the decoder's buffer, where it remains until the decoder is used for the next file. The
 * content is not checked. Errors name the file and the record. STK_E_RESOURCE: no free descriptor, even after waiting
 * (descriptor.h). */
stk_status stki_image_load(stki_decoder *decoder, const char *path, int64_t record, const void **bytes, int64_t *count,
                           stk_error *err);

/* Returns the size of the file. */
stk_status stki_image_load_size(const char *path, int64_t record, int64_t *bytes, stk_error *err);

/* Returns the shape of the decoded image, which is read from the beginning of the file. */
stk_status stki_image_load_shape(const char *path, int64_t record, const stki_decode_opts *opts, int64_t shape[3],
                                 stk_error *err);

/* Whether decoding discards bits of the image's samples; false if the file cannot be read. */
bool stki_image_load_is_cut(const char *path, const stki_decode_opts *opts);

/* Advises the kernel to read the file ahead. Returns true without doing so if the last byte of the file is already in
 * memory, or if the file cannot be opened. */
bool stki_image_load_ahead(const char *path);

#endif
