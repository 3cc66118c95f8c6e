/* image_load.h: the bytes of one image file. No descriptor stays open between two images, so that their number is bound
 * by nothing. Any thread. */
#ifndef STKI_IMAGE_LOAD_H
#define STKI_IMAGE_LOAD_H

#include "decode.h"

/* The whole file, into the decoder's room, where it stays until the decoder is used for the next one. Nothing of it is
 * looked at. Errors name the file and the record. STK_E_RESOURCE: no descriptor is left, although the thread has waited
 * for one (descriptor.h). */
stk_status stki_image_load(stki_decoder *decoder, const char *path, int64_t record, const void **bytes, int64_t *count,
                           stk_error *err);

/* Bytes of the file. */
stk_status stki_image_load_size(const char *path, int64_t record, int64_t *bytes, stk_error *err);

/* The shape that decoding it will give, from its beginning. */
stk_status stki_image_load_shape(const char *path, int64_t record, const stki_decode_opts *opts, int64_t shape[3],
                                 stk_error *err);

/* Whether decoding leaves out bits of its samples; false also where the file cannot be read. */
bool stki_image_load_is_cut(const char *path, const stki_decode_opts *opts);

/* Asks the system to read the file soon. True: it is in memory already, as far as its end tells. */
bool stki_image_load_ahead(const char *path);

#endif
