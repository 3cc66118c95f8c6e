/* jpeg_library.h: includes libjpeg-turbo, with helpers that its callers share: the statuses of its errors, and output
 * to memory. */
#ifndef STKI_JPEG_LIBRARY_H
#define STKI_JPEG_LIBRARY_H

#include "error.h"
#include "jpeg_encode.h"
#include <stddef.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>

enum {
    STKI_JPEG_MOST_SCANS =
        500 /* limit for progressive images, which have about ten; each scan can cost as much as the whole image */
};

/* Returns the status for an error while reading. */
static inline stk_status stki_jpeg_class_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return STK_E_MEMORY;
    case JWRN_JPEG_EOF:
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
        return STK_E_TRUNCATED;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOTIMPL:
        return STK_E_UNSUPPORTED;
    default:
        return STK_E_CORRUPT;
    }
}

/* Reports STK_E_LIMIT for the progress monitor of a decompressor. */
static inline stk_status stki_jpeg_fail_scans(stk_error *err)
{
    return stki_fail(err, STK_E_LIMIT,
                     "too many scans: found more than %d, expected about ten, as in other progressive images",
                     STKI_JPEG_MOST_SCANS);
}

/* The output of a compressor to `room`, which grows as needed. It must outlive the compressor. */
typedef struct stki_jpeg_target {
    struct jpeg_destination_mgr to; /* first member */
    stki_jpeg_room *room;
    int64_t bytes; /* size of the finished file */
} stki_jpeg_target;

/* jpeg_encode.c: directs the output of a compressor to `room`. If out of memory, compression fails with
 * JERR_OUT_OF_MEMORY. */
void stki_jpeg_write_to(j_compress_ptr c, stki_jpeg_target *target, stki_jpeg_room *room);

#endif
