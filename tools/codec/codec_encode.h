/* codec_encode.h: encodes JPEG images for generated data. */
#ifndef CODEC_ENCODE_H
#define CODEC_ENCODE_H

#include <stdint.h>
#include <stoker/status.h>

struct codec_encoder;

/* Returns NULL if out of memory. */
struct codec_encoder *codec_encoder_create(void);
void codec_encoder_destroy(struct codec_encoder *encoder); /* NULL is allowed */
/* Encodes u8 rows of 1 or 3 channels with 4:2:0 subsampling. *out belongs to the encoder and is valid until the encoder
 * is used again. */
stk_status codec_encode(struct codec_encoder *encoder, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, int quality, const void **out, int64_t *bytes, stk_error *err);

#endif
