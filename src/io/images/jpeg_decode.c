/* jpeg_decode.c: decodes one image with libjpeg-turbo's libjpeg interface: accurate inverse DCT and smooth ("fancy")
 * upsampling by default, which give the same result in all of its versions.
 *
 * Each image gets a new decompressor, which takes less than a microsecond. Otherwise, an image without tables would use
 * those of an earlier image, and errors would require a cleanup.
 *
 * Errors leave libjpeg by longjmp; all state that must survive is in struct job. A warning aborts decoding unless it is
 * accepted. Rows above the part are skipped, columns to its left and right are not transformed, and rows below it are
 * not read, so errors in those rows are not detected. */
#include "jpeg_decode.h"
#include "error.h"
#include "jpeg_library.h"
#include <inttypes.h>
#include <setjmp.h>
#include <string.h>

#ifndef LIBJPEG_TURBO_VERSION_NUMBER
#error "stoker needs libjpeg-turbo, because other libjpeg implementations cannot decode parts of images"
#endif

enum { ROWS_AT_ONCE = 16 };

struct job {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    const stki_jpeg_how *how;
    const void *bytes;
    int64_t count;
    uint8_t *to, *rows4;
    int64_t row_bytes, warnings;
    stk_status status;
    stk_error *err;
};

/* ---- errors ---- */

static void leave(struct job *job)
{
    char text[JMSG_LENGTH_MAX];

    job->errors.format_message((j_common_ptr)&job->d, text);
    job->status = stki_jpeg_class_of(job->errors.msg_code);
    stki_fail_at(job->err, job->status,
                 (stki_place){NULL, -1, job->d.src ? job->count - (int64_t)job->d.src->bytes_in_buffer : 0, text,
                              "a valid JPEG image"},
                 "libjpeg cannot decode the image");
    longjmp(job->out, 1);
}

static void on_error(j_common_ptr d)
{
    leave(d->client_data);
}

static void on_message(j_common_ptr d, int level)
{
    struct job *job = d->client_data;

    if (level >= 0)
        return; /* trace messages also occur for valid images */
    if (!job->how->accept_warnings)
        leave(job);
    job->warnings++;
}

static void on_progress(j_common_ptr d)
{
    struct job *job = d->client_data;

    if (job->d.input_scan_number <= STKI_JPEG_MOST_SCANS)
        return;
    job->status = stki_jpeg_fail_scans(job->err);
    longjmp(job->out, 1);
}

/* ---- the steps ---- */

static void start(struct job *job)
{
    struct jpeg_decompress_struct *d = &job->d;

    d->err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    d->client_data = job;
    jpeg_create_decompress(d); /* clears d, except err and client_data */
    d->progress = &job->progress;
    job->progress.progress_monitor = on_progress;
    jpeg_mem_src(d, job->bytes, (unsigned long)job->count);
    (void)jpeg_read_header(d, TRUE);
}

static void choose(struct job *job)
{
    struct jpeg_decompress_struct *d = &job->d;

    d->scale_num = 1;
    d->scale_denom = (unsigned)job->how->scale;
    d->dct_method = job->how->fast_dct ? JDCT_IFAST : JDCT_ISLOW;
    d->do_fancy_upsampling = !job->how->plain_upsampling;
    d->out_color_space = d->num_components == 4 ? JCS_CMYK : job->how->gray ? JCS_GRAYSCALE : JCS_RGB;
}

static bool is_other_image(const struct job *job)
{
    return job->d.image_height != (JDIMENSION)job->how->stored_height ||
           job->d.image_width != (JDIMENSION)job->how->stored_width;
}

static void cut(struct job *job)
{
    struct jpeg_decompress_struct *d = &job->d;
    const stki_jpeg_how *how = job->how;
    JDIMENSION left = (JDIMENSION)how->left, width = (JDIMENSION)how->width;

    jpeg_crop_scanline(d, &left, &width);
    if (left != (JDIMENSION)how->left || width != (JDIMENSION)how->width) {
        job->status = stki_fail(job->err, STK_E_UNSUPPORTED,
                                "libjpeg returns columns %u to %u, but %" PRId64 " to %" PRId64 " were requested", left,
                                left + width, how->left, how->left + how->width);
        longjmp(job->out, 1);
    }
    if (how->top > 0)
        (void)jpeg_skip_scanlines(d, (JDIMENSION)how->top);
}

/* CMYK files are written by Adobe programs, which invert the values; libjpeg returns the inverted values. The
 * conversion is the 8-bit one of Pillow: with k = 255 - K, a channel is k - C * k / 255, rounded. */
static uint8_t ink_on_paper(uint8_t stored, uint8_t k)
{
    int m = (255 - stored) * k + 128;

    return (uint8_t)(k - ((m + (m >> 8)) >> 8));
}

static void convert_cmyk(const struct job *job, const uint8_t *from, uint8_t *to)
{
    for (int64_t x = 0; x < job->how->width; x++, from += 4) {
        uint8_t red = ink_on_paper(from[0], from[3]), green = ink_on_paper(from[1], from[3]),
                blue = ink_on_paper(from[2], from[3]);

        if (job->how->gray) {
            *to++ = (uint8_t)((red * 19595 + green * 38470 + blue * 7471 + 32768) >> 16);
        } else {
            *to++ = red;
            *to++ = green;
            *to++ = blue;
        }
    }
}

static void read_cmyk(struct job *job)
{
    JSAMPROW row = job->rows4;

    for (int64_t y = 0; y < job->how->height; y++) {
        (void)jpeg_read_scanlines(&job->d, &row, 1);
        convert_cmyk(job, job->rows4, job->to + y * job->row_bytes);
    }
}

static void read_rows(struct job *job)
{
    JSAMPROW rows[ROWS_AT_ONCE];
    int64_t done = 0, height = job->how->height;

    while (done < height) {
        int n = height - done < ROWS_AT_ONCE ? (int)(height - done) : ROWS_AT_ONCE;

        for (int i = 0; i < n; i++)
            rows[i] = job->to + (done + i) * job->row_bytes;
        done += jpeg_read_scanlines(&job->d, rows, (JDIMENSION)n);
    }
}

static stk_status decode(struct job *job)
{
    struct jpeg_decompress_struct *d = &job->d;

    if (setjmp(job->out))
        return job->status;
    start(job);
    if (is_other_image(job))
        return stki_fail(job->err, STK_E_CORRUPT,
                         "inconsistent image size: libjpeg finds %ux%u, but the header has %" PRId64 "x%" PRId64,
                         d->image_width, d->image_height, job->how->stored_width, job->how->stored_height);
    choose(job);
    (void)jpeg_start_decompress(d);
    cut(job);
    if (d->out_color_components == 4)
        read_cmyk(job);
    else
        read_rows(job);
    if (d->output_scanline == d->output_height)
        (void)jpeg_finish_decompress(d); /* reads up to the EOI marker */
    return STK_OK;
}

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

const char *stki_jpeg_version(void)
{
    return TEXT_OF(LIBJPEG_TURBO_VERSION);
}

int64_t stki_jpeg_columns(int components, int max_h, int scale)
{
    return 8 / scale * (components == 1 ? 1 : max_h);
}

stk_status stki_jpeg_decode(const void *bytes, int64_t count, const stki_jpeg_how *how, uint8_t *to, int64_t row_bytes,
                            uint8_t *rows4, int64_t *warnings, stk_error *err)
{
    struct job job = {.how = how,
                      .bytes = bytes,
                      .count = count,
                      .to = to,
                      .rows4 = rows4,
                      .row_bytes = row_bytes,
                      .status = STK_E_CORRUPT,
                      .err = err};
    stk_status status = decode(&job);

    jpeg_destroy_decompress(&job.d);
    *warnings = job.warnings;
    return status;
}
