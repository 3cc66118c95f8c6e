/* finish_common.c: growable memory for encoded rows, and checks and reports shared by the encoders; see finish.h. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "finish.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 64 << 10 };

stk_status stki_bytes_reserve(stki_bytes *bytes, int64_t more, stk_error *err)
{
    int64_t need, room = bytes->room > LEAST ? bytes->room : LEAST;
    char *grown;

    if (more < 0 || !stki_add(bytes->used, more, &need) || need > INT64_MAX / 4)
        return stki_fail_memory(err, more, "finished rows");
    if (need <= bytes->room)
        return STK_OK;
    while (room < need)
        room += room / 2;
    grown = stki_resize(bytes->bytes, room);
    if (!grown)
        return stki_fail_memory(err, room, "finished rows");
    bytes->bytes = grown;
    bytes->room = room;
    return STK_OK;
}

void stki_bytes_fini(stki_bytes *bytes)
{
    stki_free(bytes->bytes);
    *bytes = (stki_bytes){0};
}

stk_status stki_finish_refuse(stk_error *err, const stki_node *options, const stki_sink_field *in, const char *format,
                              ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return options ? stki_fail_node(err, options, "%s", what)
                   : stki_fail(err, STK_E_CONFIG, "output.fields.%s: %s", in->name, what);
}

stk_status stki_finish_takes_pixels(const stki_node *options, const stki_sink_field *in, const char *encode, bool deep,
                                    stk_error *err)
{
    const int64_t *shape = in->shape;

    if (in->dtype != STK_U8 && !(deep && in->dtype == STK_U16))
        return stki_finish_refuse(
            err, options, in,
            "encode: %s requires uint8%s pixels, found %s: remove the dtype of dataset.fields.%s, and "
            "transforms that change it, such as normalize",
            encode, deep ? " or uint16" : "", stk_dtype_name(in->dtype), in->name);
    if (in->kind != STKI_SINK_IMAGE && !(in->kind != STKI_SINK_BYTES && (in->ndim == 2 || in->ndim == 3)))
        return stki_finish_refuse(
            err, options, in,
            "encode: %s requires images, height x width x channels, found rows of %d ax%s in field %s", encode,
            in->ndim, in->ndim == 1 ? "is" : "es", in->name);
    if (in->ndim == 3 && shape[2] != 0 && shape[2] != 1 && shape[2] != 3)
        return stki_finish_refuse(
            err, options, in,
            "encode: %s requires images with 1 or 3 channels, height x width x channels, found %" PRId64 " x %" PRId64
            " x %" PRId64 " in field %s%s",
            encode, shape[0], shape[1], shape[2], in->name, shape[0] == 1 || shape[0] == 3 ? ": set layout: nhwc" : "");
    return STK_OK;
}

void stki_finish_gives_images(const stki_sink_field *in, stki_sink_field *out)
{
    out->kind = STKI_SINK_IMAGE;
    out->image = false;
    out->channel_axis = 0;
    if (in->ndim == 2) {
        out->ndim = 3;
        out->shape[2] = 1;
    }
}

stk_status stki_finish_takes_files(const stki_node *options, const stki_sink_field *in, const char *encode,
                                   stk_error *err)
{
    if (in->dtype == STK_U8 && in->ndim == 1 && (in->kind == STKI_SINK_RAGGED || in->kind == STKI_SINK_BYTES))
        return STK_OK;
    return stki_finish_refuse(err, options, in,
                              "encode: %s requires the unmodified bytes of the images: set dataset.fields.%s.source: "
                              "{decode: none}, and remove transforms",
                              encode, in->name);
}

void stki_finish_gives_files(stki_sink_field *out)
{
    out->kind = STKI_SINK_IMAGE;
    out->encodings = 1U << STKI_JPEG | 1U << STKI_PNG;
    out->ndim = 3;
    memset(out->shape, 0, sizeof out->shape);
}

stk_status stki_finish_put(stki_bytes *to, const void *bytes, int64_t size, stki_sink_value *out, stk_error *err)
{
    stk_status status = stki_bytes_reserve(to, size, err);

    if (status != STK_OK)
        return status;
    memcpy(to->bytes + to->used, bytes, (size_t)size);
    to->used += size;
    out->size = size;
    return STK_OK;
}

void stki_finish_destroy(stki_finisher *finisher)
{
    stki_free(finisher);
}
