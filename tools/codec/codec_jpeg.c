/* codec_jpeg.c: measures libjpeg-turbo alone: one reused decompressor per thread decodes whole images to RGB. The
 * encoded bytes come from a loader. */
#include "codec_run.h"
#include "error.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/loader.h>
#include <string.h>

#include <jpeglib.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

enum { LINES = 16 };

const char *codec_jpeg_version(void)
{
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " TEXT(LIBJPEG_TURBO_VERSION);
#else
    return "libjpeg " TEXT(JPEG_LIB_VERSION);
#endif
}

struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf leave;
};

static void fail(j_common_ptr info)
{
    struct decoder *decoder = (struct decoder *)(void *)((char *)info->err - offsetof(struct decoder, errors));
    longjmp(decoder->leave, 1);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

static bool create(struct decoder *decoder)
{
    if (setjmp(decoder->leave))
        return false;
    jpeg_create_decompress(&decoder->info);
    return true;
}

static void *begin(void)
{
    struct decoder *decoder = calloc(1, sizeof *decoder);

    if (!decoder)
        return NULL;
    decoder->info.err = jpeg_std_error(&decoder->errors);
    decoder->errors.error_exit = fail;
    decoder->errors.output_message = say_nothing;
    if (create(decoder))
        return decoder;
    free(decoder);
    return NULL;
}

static void end(void *state)
{
    struct decoder *decoder = state;

    jpeg_destroy_decompress(&decoder->info);
    free(decoder);
}

/* If `to` is NULL, only stores the size in *unpacked. */
static bool decode(struct decoder *decoder, const void *bytes, int64_t count, unsigned char *to, int64_t *unpacked)
{
    if (setjmp(decoder->leave)) {
        jpeg_abort_decompress(&decoder->info);
        return false;
    }
    jpeg_mem_src(&decoder->info, (const unsigned char *)bytes, (unsigned long)count);
    jpeg_read_header(&decoder->info, TRUE);
    if (decoder->info.num_components == 3 || decoder->info.num_components == 1)
        decoder->info.out_color_space = JCS_RGB;
    jpeg_calc_output_dimensions(&decoder->info);
    const int64_t row = (int64_t)decoder->info.output_width * decoder->info.output_components;
    *unpacked = row * decoder->info.output_height;
    if (!to) {
        jpeg_abort_decompress(&decoder->info);
        return true;
    }
    jpeg_start_decompress(&decoder->info);
    while (decoder->info.output_scanline < decoder->info.output_height) {
        JSAMPROW rows[LINES];
        for (int i = 0; i < LINES; i++)
            rows[i] = to + row * (decoder->info.output_scanline + (JDIMENSION)i < decoder->info.output_height
                                      ? decoder->info.output_scanline + (JDIMENSION)i
                                      : decoder->info.output_height - 1);
        jpeg_read_scanlines(&decoder->info, rows, LINES);
    }
    jpeg_finish_decompress(&decoder->info);
    return true;
}

static bool unpack(void *state, const struct codec_item *item, void *to)
{
    int64_t unpacked;

    return decode(state, item->bytes, item->count, to, &unpacked);
}

static const struct codec_kind jpeg_kind = {begin, unpack, end};

/* Opens a loader of the encoded bytes, in random order, so that a few images are representative. */
static stk_status open_bytes(const struct codec_ask *ask, stk_loader **out, stk_error *err)
{
    stk_field_opts field = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;

    field.name = ask->name;
    field.paths = ask->paths;
    field.path_count = (uint32_t)ask->path_count;
    field.source = ask->source;
    opts.fields = &field;
    opts.field_count = 1;
    opts.batch_size = 1;
    opts.order = STK_ORDER_RANDOM;
    opts.num_workers = STK_WORKERS_INLINE;
    opts.prefetch = 1;
    opts.world_size = 1;
    return stk_loader_open(&opts, out, err);
}

static stk_status take_bytes(struct decoder *decoder, const char *name, const stk_batch *batch,
                             struct codec_items *items, int *others, stk_error *err)
{
    char values[300];
    stk_tensor bytes;
    int64_t unpacked;
    stk_status status;

    snprintf(values, sizeof values, "%s.values", name);
    status = stk_batch_tensor(batch, values, &bytes, err);
    if (status != STK_OK)
        return status;
    const unsigned char *data = bytes.data;
    const int64_t count = stk_tensor_nbytes(&bytes);
    if (count < 4 || data[0] != 0xff || data[1] != 0xd8 || !decode(decoder, data, count, NULL, &unpacked))
        ++*others;
    else
        status = codec_items_add(items, data, count, unpacked, err);
    stk_tensor_release(&bytes);
    return status;
}

static stk_status collect(const struct codec_ask *ask, struct codec_items *items, int *others, struct codec_limit *out,
                          stk_error *err)
{
    struct decoder *decoder = begin();
    stk_loader *loader = NULL;
    stk_status status = decoder ? open_bytes(ask, &loader, err) : stki_fail_memory(err, sizeof *decoder, "a decoder");

    while (status == STK_OK && !codec_stopped(ask, out) && items->count + *others < CODEC_ITEMS &&
           items->packed_bytes < codec_most_bytes(ask)) {
        stk_batch *batch;
        status = stk_loader_next(loader, &batch, err);
        if (status != STK_OK)
            break;
        status = take_bytes(decoder, ask->name, batch, items, others, err);
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    if (decoder)
        end(decoder);
    return status == STK_END ? STK_OK : status;
}

stk_status codec_jpeg(const struct codec_ask *ask, struct codec_limit *out, stk_error *err)
{
    struct codec_items *items = calloc(1, sizeof *items);
    int others = 0;
    stk_error why;
    stk_status status;

    memset(out, 0, sizeof *out);
    if (!items)
        return stki_fail_memory(err, sizeof *items, "images to decode");
    status = collect(ask, items, &others, out, &why);
    if (status == STK_E_MEMORY && err)
        *err = why;
    else if (status != STK_OK)
        snprintf(out->missing, sizeof out->missing, "%.255s", why.message);
    else if (!out->missing[0] && (others > 0 || items->count == 0))
        snprintf(out->missing, sizeof out->missing, "libjpeg-turbo cannot read %d of %d images as JPEG", others,
                 others + items->count);
    else if (!out->missing[0])
        status = codec_time(items, &jpeg_kind, ask, &out->samples_per_s, out, err);
    codec_items_fini(items);
    free(items);
    return out->missing[0] ? STK_OK : status;
}
