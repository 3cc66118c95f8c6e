/* jpeg_encode.c: see jpeg_encode.h. As in jpeg_decode.c, errors leave libjpeg by longjmp, and all state that must
 * survive is in struct job.
 *
 * The forward DCT is the accurate one (islow), whose results are the same in all versions of libjpeg-turbo and on all
 * processors. Each image gets a new compressor, so that no state carries over. The output buffer belongs to the caller
 * and grows as needed. A compressed image is usually much smaller than its pixels, so no memory is reserved for the
 * worst case, which is several times as large. */
#include "jpeg_encode.h"
#include "allocate.h"
#include "error.h"
#include "jpeg_library.h"
#include <inttypes.h>
#include <setjmp.h>

enum { ROWS_AT_ONCE = 16, LEAST_ROOM = 64 << 10 };

struct job {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    stki_jpeg_target target;
    jmp_buf out;
    const stki_jpeg_pixels *image;
    const stki_jpeg_form *form;
    stki_jpeg_room *room;
    stk_status status;
    stk_error *err;
};

/* ---- errors ---- */

static void on_error(j_common_ptr c)
{
    struct job *job = c->client_data;
    char text[JMSG_LENGTH_MAX];

    job->errors.format_message(c, text);
    job->status = job->errors.msg_code == JERR_OUT_OF_MEMORY ? STK_E_MEMORY : STK_E_UNSUPPORTED;
    stki_fail(job->err, job->status, "libjpeg: %s", text);
    longjmp(job->out, 1);
}

static void on_message(j_common_ptr c, int level)
{
    if (level < 0)
        on_error(c); /* compressors never warn; if one did, the result could not be trusted */
}

/* ---- destination ---- */

static stki_jpeg_target *target_of(j_compress_ptr c)
{
    return (stki_jpeg_target *)(void *)c->dest;
}

static void grow(j_compress_ptr c)
{
    stki_jpeg_target *target = target_of(c);
    stki_jpeg_room *room = target->room;
    int64_t more = room->bytes < LEAST_ROOM ? LEAST_ROOM : room->bytes;
    uint8_t *grown = more > INT64_MAX / 4 ? NULL : stki_resize(room->data, room->bytes + more);

    if (!grown)
        ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    target->to.next_output_byte = grown + room->bytes;
    target->to.free_in_buffer = (size_t)more;
    room->data = grown;
    room->bytes += more;
}

static void begin_file(j_compress_ptr c)
{
    stki_jpeg_target *target = target_of(c);

    target->to.next_output_byte = target->room->data;
    target->to.free_in_buffer = (size_t)target->room->bytes;
    if (target->room->bytes == 0)
        grow(c);
}

/* libjpeg calls this when the buffer is full; the value of free_in_buffer must be ignored. */
static boolean go_on(j_compress_ptr c)
{
    grow(c);
    return TRUE;
}

static void end_file(j_compress_ptr c)
{
    stki_jpeg_target *target = target_of(c);

    target->bytes = target->room->bytes - (int64_t)target->to.free_in_buffer;
}

void stki_jpeg_write_to(j_compress_ptr c, stki_jpeg_target *target, stki_jpeg_room *room)
{
    *target = (stki_jpeg_target){
        .to = {.init_destination = begin_file, .empty_output_buffer = go_on, .term_destination = end_file},
        .room = room};
    c->dest = &target->to;
}

int stki_jpeg_interval(int64_t columns, int64_t most)
{
    int64_t interval = most < columns ? most : columns;

    while (interval > 1 && columns % interval != 0)
        interval--;
    return (int)interval;
}

/* ---- the steps ---- */

static void start(struct job *job)
{
    struct jpeg_compress_struct *c = &job->c;

    c->err = jpeg_std_error(&job->errors);
    job->errors.error_exit = on_error;
    job->errors.emit_message = on_message;
    c->client_data = job;
    jpeg_create_compress(c); /* clears c except err and client_data */
    stki_jpeg_write_to(c, &job->target, job->room);
}

static void choose(struct job *job)
{
    struct jpeg_compress_struct *c = &job->c;
    const bool gray = job->image->channels == 1;

    c->image_width = (JDIMENSION)job->image->width;
    c->image_height = (JDIMENSION)job->image->height;
    c->input_components = job->image->channels;
    c->in_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(c);
    jpeg_set_quality(c, job->form->quality, TRUE);
    c->dct_method = JDCT_ISLOW;
    c->optimize_coding = job->form->optimize || job->form->progressive;
    if (!gray) {
        c->comp_info[0].h_samp_factor = job->form->subsampling == STKI_JPEG_444 ? 1 : 2;
        c->comp_info[0].v_samp_factor = job->form->subsampling == STKI_JPEG_420 ? 2 : 1;
    }
    if (job->form->progressive)
        jpeg_simple_progression(c);
    if (job->form->restart > 0) {
        const int64_t column = gray ? 8 : 8 * c->comp_info[0].h_samp_factor;

        c->restart_interval =
            (unsigned)stki_jpeg_interval((job->image->width + column - 1) / column, job->form->restart);
    }
}

static void write_rows(struct job *job)
{
    const stki_jpeg_pixels *image = job->image;
    JSAMPROW rows[ROWS_AT_ONCE];
    int64_t done = 0;

    while (done < image->height) {
        int n = image->height - done < ROWS_AT_ONCE ? (int)(image->height - done) : ROWS_AT_ONCE;

        for (int i = 0; i < n; i++) /* libjpeg declares rows as non-const, but only reads them */
            rows[i] = (JSAMPROW)(uintptr_t)(image->pixels + (done + i) * image->row_bytes);
        done += jpeg_write_scanlines(&job->c, rows, (JDIMENSION)n);
    }
}

static stk_status encode(struct job *job)
{
    if (setjmp(job->out))
        return job->status;
    start(job);
    choose(job);
    jpeg_start_compress(&job->c, TRUE);
    write_rows(job);
    jpeg_finish_compress(&job->c);
    return STK_OK;
}

static stk_status check(const stki_jpeg_pixels *image, stk_error *err)
{
    if (image->height < 1 || image->width < 1 || (image->channels != 1 && image->channels != 3))
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "the image cannot be stored as JPEG: found %" PRId64 " x %" PRId64
                         " pixels of %d channels, expected at least one pixel of "
                         "1 or 3 channels",
                         image->height, image->width, image->channels);
    if (image->height > STKI_JPEG_MOST_SIDE || image->width > STKI_JPEG_MOST_SIDE)
        return stki_fail(err, STK_E_LIMIT,
                         "the image is too large for JPEG: found %" PRId64 " x %" PRId64
                         " pixels, expected a height and width of at most %d",
                         image->height, image->width, STKI_JPEG_MOST_SIDE);
    return STK_OK;
}

stk_status stki_jpeg_encode(const stki_jpeg_pixels *image, const stki_jpeg_form *form, stki_jpeg_room *room,
                            int64_t *bytes, stk_error *err)
{
    struct job job = {.image = image, .form = form, .room = room, .status = STK_E_UNSUPPORTED, .err = err};
    stk_status status = check(image, err);

    if (status != STK_OK)
        return status;
    status = encode(&job);
    jpeg_destroy_compress(&job.c);
    *bytes = job.target.bytes;
    return status;
}

void stki_jpeg_room_fini(stki_jpeg_room *room)
{
    stki_free(room->data);
    *room = (stki_jpeg_room){0};
}
