/* fuzz_image.h: arbitrary bytes as an image, decoded whole and in part, in every mode. A failure must return a status
 * for damaged files and a message that names the file and the record. A part must have the same pixels as in the whole
 * image. The size of allocations must be justified by the data. */
#ifndef STKT_FUZZ_IMAGE_H
#define STKT_FUZZ_IMAGE_H

#include "allocate.h"
#include "decode.h"
#include "fuzz.h"
#include <string.h>

#define PATH "some/image"
enum { MOST_BYTES = 1 << 20 };

static void check_failure(stk_status status, const stk_error *err)
{
    DEMAND(status == STK_E_CORRUPT || status == STK_E_UNSUPPORTED || status == STK_E_TRUNCATED ||
           status == STK_E_LIMIT);
    DEMAND(err->status == status);
    DEMAND(!strncmp(err->message, PATH ": record 3: ", sizeof PATH + 11));
    DEMAND(err->record == 3);
    for (const char *c = err->message; *c; c++)
        DEMAND(*c >= ' ');
}

static void check_part(const stk_tensor *part, const stki_given *given, const uint8_t *whole, int64_t width)
{
    int64_t channels = part->shape[2], top = given->scale ? given->top : 0, left = given->scale ? given->left : 0;

    for (int64_t y = 0; y < part->shape[0]; y++)
        DEMAND(!memcmp((const uint8_t *)part->data + y * part->strides[0],
                       whole + ((top + y) * width + left) * channels, (size_t)(part->shape[1] * channels)));
}

/* A box that depends on the input, so that the fuzzer can vary it. */
static void choose_box(const stk_tensor *whole, uint64_t key, stki_want *want)
{
    for (int i = 0; i < 2; i++) {
        int64_t size = whole->shape[i];
        want->start[i] = (int64_t)(key % (uint64_t)size);
        key = key / 7 + 3;
        want->length[i] = 1 + (int64_t)(key % (uint64_t)(size - want->start[i]));
        key = key / 5 + 1;
    }
    want->ndim = 3;
    want->length[2] = whole->shape[2];
}

static void decode_part(const uint8_t *data, int64_t size, const stki_decode_opts *opts, const stk_tensor *whole,
                        stki_scratch *scratch)
{
    stki_given given = {0};
    stki_want want = {.given = &given};
    stk_tensor part;
    stk_error err;

    choose_box(whole, (uint64_t)size * 977 + data[size / 2], &want);
    /* Errors below the part are not noticed; errors above it may be. */
    if (stki_image_sample(data, size, opts, &want, scratch, PATH, 3, &part, &err) == STK_OK)
        check_part(&part, &given, whole->data, whole->shape[1]);
}

static void decode_so(const uint8_t *data, int64_t size, const stki_decode_opts *opts, stki_scratch *scratch,
                      stki_scratch *other)
{
    int64_t shape[3];
    stk_tensor whole, packed;
    stk_error err, again;
    stk_status status = stki_image_sample(data, size, opts, NULL, scratch, PATH, 3, &whole, &err);

    if (status) {
        check_failure(status, &err);
        return;
    }
    DEMAND(stki_image_shape(data, size, opts, shape, &again) == STK_OK);
    DEMAND(!memcmp(shape, whole.shape, sizeof shape));
    DEMAND(shape[0] * shape[1] * shape[2] <= MOST_BYTES);
    DEMAND(whole.strides[0] == shape[1] * shape[2] && whole.strides[1] == shape[2] && whole.strides[2] == 1);
    packed = whole;
    decode_part(data, size, opts, &packed, other);
}

static void fuzz_image(const uint8_t *data, size_t size)
{
    static stki_scratch scratch, other;

    for (int i = 0; i < 4; i++) {
        stki_decode_opts opts = {
            .gray = i & 1, .upright = i & 2, .accept_warnings = (size + (size_t)i) & 1, .max_bytes = MOST_BYTES};
        decode_so(data, (int64_t)size, &opts, &scratch, &other);
    }
    stki_scratch_fini(&scratch);
    stki_scratch_fini(&other);
}

#endif
