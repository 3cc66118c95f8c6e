/* codec_encode.c: the library's JPEG encoder, which is not public. */
#include "codec_encode.h"
#include "allocate.h"
#include "jpeg_encode.h"

struct codec_encoder {
    stki_jpeg_room room;
};

struct codec_encoder *codec_encoder_create(void)
{
    return stki_zalloc(sizeof(struct codec_encoder));
}

void codec_encoder_destroy(struct codec_encoder *encoder)
{
    if (encoder)
        stki_jpeg_room_fini(&encoder->room);
    stki_free(encoder);
}

stk_status codec_encode(struct codec_encoder *encoder, const uint8_t *pixels, int64_t height, int64_t width,
                        int channels, int quality, const void **out, int64_t *bytes, stk_error *err)
{
    const stki_jpeg_pixels image = {
        .pixels = pixels, .height = height, .width = width, .channels = channels, .row_bytes = width * channels};
    const stki_jpeg_form form = {.quality = quality, .subsampling = STKI_JPEG_420};
    const stk_status status = stki_jpeg_encode(&image, &form, &encoder->room, bytes, err);

    *out = encoder->room.data;
    return status;
}
