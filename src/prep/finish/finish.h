/* finish.h: what is done to a field's rows between the loader and the sink: encoded as JPEG, cut into tokens, read as
 * the header of an image that stays as it is. A finisher belongs to one field; any number of threads run it at once,
 * each for another row and with a scratch of its own. What comes out is a pure function of the row and the job.
 */
#ifndef STKI_FINISH_H
#define STKI_FINISH_H

#include "document.h"
#include "sink.h"

/* A row as the loader made it; borrowed. */
typedef struct stki_row {
    const void *bytes; /* C order */
    int64_t size;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t position, sample; /* in the job's order; the number in its data set */
} stki_row;

/* Memory that a thread's finished rows are put in; it grows, so pointers into it are good until the next call that
 * grows it. The job tells where rows begin by their offsets. */
typedef struct stki_bytes {
    char *bytes;
    int64_t used, room;
} stki_bytes;

/* Room for `more` bytes behind `used`, which the caller raises by what it wrote. */
stk_status stki_bytes_reserve(stki_bytes *bytes, int64_t more, stk_error *err);
void stki_bytes_fini(stki_bytes *bytes);

typedef struct stki_finisher stki_finisher;

typedef struct stki_finisher_ops {
    const char *name;               /* as `encode` of an output field says it: "jpeg"; the key, where that is a map */
    int most_out;                   /* bytes that come of a byte of a row, about at most; 0: rows are lent on */
    const stki_option_table *table; /* of its keys, for the help */
    /* `options`: the map of the field under `output.fields`, perhaps NULL; the finisher owns its keys but `extension`.
     * `in`: what the loader's rows of the field are (as a field of a sink: ARRAY, RAGGED or IMAGE). *out
     * begins as a copy of it and becomes what comes out. STK_E_CONFIG: the rows or the keys do not fit. */
    stk_status (*create)(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                         stki_finisher **finisher, stk_error *err);
    /* One thread's. NULL: it needs none. */
    stk_status (*scratch)(const stki_finisher *finisher, void **out, stk_error *err);
    void (*scratch_destroy)(void *scratch);
    /* Memory that a scratch takes for a row of so many bytes, about. NULL: little, whatever the row. */
    int64_t (*scratch_bytes)(const stki_finisher *finisher, int64_t row_bytes);
    /* The row's value. Where out->bytes is NULL on return, its out->size bytes are the ones put at the end of `to`;
     * else they are borrowed from `in`. An error is the row's own: the job's on_error says what becomes of it. */
    stk_status (*run)(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                      stki_sink_value *out, stk_error *err);
    /* What the manifest says of it beyond its options (versions of codecs, counts); new JSON, or NULL. */
    json_t *(*describe)(const stki_finisher *finisher);
    void (*destroy)(stki_finisher *finisher);
} stki_finisher_ops;

struct stki_finisher {
    const stki_finisher_ops *ops; /* the first member of every finisher's own struct */
};

/* finishers.c: by name; by what stands at `encode`, a name or a map such as {transcode: jpeg}. NULL: there is none. */
const stki_finisher_ops *stki_finisher_find(const char *name);
const stki_finisher_ops *stki_finisher_of(const stki_node *encode);
extern const stki_finisher_ops *const stki_finishers[]; /* ended by NULL */
/* "keep, jpeg or {transcode: jpeg}": what may stand at `encode`. Returns the buffer. */
const char *stki_finisher_list(char *buffer, int size);
/* `output.fields.NAME` without an encoder; those of encoders are choices of its table. */
typedef struct stki_finish_options {
    const char *encode, *extension;
    bool alias;
} stki_finish_options;
extern const stki_option_table stki_finish_table; /* of `output.fields.NAME`: that of one finisher, by `encode` */
/* Writes the names of all encoders, for help and docs, and returns true if `table` is the one above. */
bool stki_finish_about(const stki_option_table *table, FILE *to);
/* STK_E_CONFIG for rows that do not fit, at the field's options (NULL: "output.fields.NAME: "). */
stk_status stki_finish_refuse(stk_error *err, const stki_node *options, const stki_sink_field *in, const char *format,
                              ...) STK_PRINTF(4, 5);
/* STK_E_CONFIG unless the rows are images: u8 (or u16, if `deep`), height x width (x 1 or 3 channels). `encode`: for
 * the message. */
stk_status stki_finish_takes_pixels(const stki_node *options, const stki_sink_field *in, const char *encode, bool deep,
                                    stk_error *err);
/* What comes of such rows: images. */
void stki_finish_gives_images(const stki_sink_field *in, stki_sink_field *out);
/* STK_E_CONFIG unless the rows are the bytes of image files. What comes of them: such files. */
stk_status stki_finish_takes_files(const stki_node *options, const stki_sink_field *in, const char *encode,
                                   stk_error *err);
void stki_finish_gives_files(stki_sink_field *out);
/* Puts a value at the end of `to`. */
stk_status stki_finish_put(stki_bytes *to, const void *bytes, int64_t size, stki_sink_value *out, stk_error *err);
/* Members of the ops of those that write JPEG images (finish_jpeg.c): the scratch is a stki_jpeg_room. */
stk_status stki_finish_jpeg_scratch(const stki_finisher *finisher, void **out, stk_error *err);
void stki_finish_jpeg_scratch_destroy(void *scratch);
json_t *stki_finish_jpeg_describe(const stki_finisher *finisher);
/* Of a finisher that owns nothing but its struct. */
void stki_finish_destroy(stki_finisher *finisher);
extern const stki_finisher_ops stki_finish_keep, stki_finish_jpeg, stki_finish_png, stki_finish_tokens,
    stki_finish_transcode;
extern const stki_option_table stki_transcode_table; /* of `encode: {transcode: jpeg}` */

#endif
