/* jpeg_transcode.c: see jpeg_transcode.h. A decompressor reads the coefficients of all scans into libjpeg's arrays,
 * from which a compressor writes a single scan. Errors leave libjpeg by longjmp; all state that must survive is in
 * struct job. An error from the decompressor means that the image is damaged. An error from the compressor means that
 * it cannot be written as one baseline scan (an MCU with too many blocks, tables that change between scans); such an
 * image is kept unchanged. */
#include "jpeg_transcode.h"
#include "decode.h"
#include "error.h"
#include "jpeg_header.h"
#include "jpeg_library.h"
#include <inttypes.h>
#include <setjmp.h>

/* The number of pixels is limited, because coefficients are kept in memory, two bytes per sample and component. */
#define MOST_PIXELS (INT64_C(1) << 28)

struct job {
    struct jpeg_decompress_struct d;
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    stki_jpeg_target target;
    jmp_buf out;
    const void *bytes;
    int64_t count, restart;
    stki_jpeg_room *room;
    const char *stays;
    stk_status status;
    stk_error *err;
};

/* ---- errors ---- */

static void on_error(j_common_ptr common)
{
    struct job *job = common->client_data;
    char text[JMSG_LENGTH_MAX];

    if (!common->is_decompressor && job->errors.msg_code != JERR_OUT_OF_MEMORY) {
        job->stays = "not possible as one baseline scan";
        job->status = STK_OK;
        longjmp(job->out, 1);
    }
    job->errors.format_message(common, text);
    job->status = stki_jpeg_class_of(job->errors.msg_code);
    stki_fail(job->err, job->status, "libjpeg: %s", text);
    longjmp(job->out, 1);
}

static void on_message(j_common_ptr common, int level)
{
    if (level < 0)
        on_error(common);
}

static void on_progress(j_common_ptr common)
{
    struct job *job = common->client_data;

    if (!common->is_decompressor || job->d.input_scan_number <= STKI_JPEG_MOST_SCANS)
        return;
    job->status = stki_jpeg_fail_scans(job->err);
    longjmp(job->out, 1);
}

/* ---- the steps ---- */

static void start(struct job *job)
{
    job->d.err = job->c.err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    job->d.client_data = job->c.client_data = job;
    jpeg_create_decompress(&job->d); /* both functions clear the struct except err and client_data */
    jpeg_create_compress(&job->c);
    job->d.progress = &job->progress;
    job->progress.progress_monitor = on_progress;
}

/* Whether a progressive image lacks its last scans. The decoder smooths such images, but never baseline images. */
static bool lacks_scans(const struct jpeg_decompress_struct *d)
{
    for (int i = 0; d->progressive_mode && i < d->num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (d->coef_bits[i][k] != 0)
                return true;
    return false;
}

static jvirt_barray_ptr *read_all(struct job *job)
{
    struct jpeg_decompress_struct *d = &job->d;

    for (int i = 0; i < 16; i++)
        jpeg_save_markers(d, JPEG_APP0 + i, 0xFFFF);
    jpeg_save_markers(d, JPEG_COM, 0xFFFF);
    jpeg_mem_src(d, job->bytes, (unsigned long)job->count);
    (void)jpeg_read_header(d, TRUE);
    return jpeg_read_coefficients(d);
}

static void write_all(struct job *job, jvirt_barray_ptr *coefficients)
{
    struct jpeg_compress_struct *c = &job->c;
    const int column = 8 * (job->d.num_components == 1 ? 1 : job->d.max_h_samp_factor);

    jpeg_copy_critical_parameters(&job->d, c);
    c->optimize_coding = TRUE;
    c->restart_interval =
        (unsigned)stki_jpeg_interval(((int64_t)job->d.image_width + column - 1) / column, job->restart);
    c->write_JFIF_header = c->write_Adobe_marker = FALSE; /* they are copied with the other markers, if present */
    stki_jpeg_write_to(c, &job->target, job->room);
    jpeg_write_coefficients(c, coefficients);
    for (jpeg_saved_marker_ptr m = job->d.marker_list; m; m = m->next)
        jpeg_write_marker(c, m->marker, m->data, m->data_length);
    jpeg_finish_compress(c);
    (void)jpeg_finish_decompress(&job->d);
}

static stk_status transcode(struct job *job)
{
    jvirt_barray_ptr *coefficients;

    if (setjmp(job->out))
        return job->status;
    start(job);
    coefficients = read_all(job);
    if (lacks_scans(&job->d))
        job->stays = "progressive without its last scans";
    else
        write_all(job, coefficients);
    return STK_OK;
}

static const char *kind_that_stays(const stki_jpeg_header *header)
{
    return header->special                                ? header->special
           : header->arithmetic                           ? "arithmetic coding"
           : header->height * header->width > MOST_PIXELS ? "more than 256 million pixels"
                                                          : NULL;
}

stk_status stki_jpeg_transcode(const void *bytes, int64_t count, int64_t restart, stki_jpeg_room *room,
                               stki_jpeg_transcoded *out, stk_error *err)
{
    struct job job = {.bytes = bytes, .count = count, .restart = restart, .room = room, .err = err};
    stki_jpeg_header header;
    stk_status status = stki_jpeg_look(bytes, count, &header, err);

    if (status != STK_OK)
        return status;
    *out = (stki_jpeg_transcoded){.height = header.height,
                                  .width = header.width,
                                  .components = header.components,
                                  .stays = kind_that_stays(&header)};
    if (out->stays)
        return STK_OK;
    status = stki_image_check(&(stki_image_info){.stored_height = header.height,
                                                 .stored_width = header.width,
                                                 .least_bytes = stki_jpeg_least_bytes(&header)},
                              count, err);
    if (status != STK_OK)
        return status;
    status = transcode(&job);
    jpeg_destroy_decompress(&job.d);
    jpeg_destroy_compress(&job.c);
    out->stays = job.stays;
    out->bytes = job.target.bytes;
    return status;
}
