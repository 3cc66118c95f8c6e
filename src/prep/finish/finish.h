/* finish.h: finishers process a field's rows between the loader and the sink: they encode rows as JPEG, tokenize texts,
 * or read the headers of unchanged image files. A finisher belongs to one field; any number of threads may run it
 * concurrently for different rows, each with its own scratch. The result is a pure function of the row and the job. */
#ifndef STKI_FINISH_H
#define STKI_FINISH_H

#include "document.h"
#include "sink.h"

/* A row as produced by the loader; borrowed. */
typedef struct stki_row {
    const void *bytes; /* C order */
    int64_t size;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    int64_t position, sample; /* position in the job's order; sample number in its data set */
} stki_row;

/* A thread's memory for encoded rows. It grows, which invalidates pointers into it, so rows are identified by offsets.
 */
typedef struct stki_bytes {
    char *bytes;
    int64_t used, room;
} stki_bytes;

/* Makes room for `more` bytes after `used`; the caller advances `used` by the bytes written. */
stk_status stki_bytes_reserve(stki_bytes *bytes, int64_t more, stk_error *err);
void stki_bytes_fini(stki_bytes *bytes);

typedef struct stki_finisher stki_finisher;

typedef struct stki_finisher_ops {
    const char *name; /* the value of `encode`, such as "jpeg", or its key if the value is a map */
    int most_out;     /* approximate maximum of output bytes per input byte; 0: rows are passed without a copy */
    const stki_option_table *table; /* table of its keys, for the help */
    /* `options`: the map of the field in `output.fields`, or NULL; all keys except `extension` belong to the finisher.
     * `in`: describes the loader's rows (as a field of a sink: ARRAY, RAGGED or IMAGE). *out is initially a copy of it,
     * and is changed to describe the result. STK_E_CONFIG: the rows or the keys are not supported. */
    stk_status (*create)(const stki_node *options, const stki_sink_field *in, stki_sink_field *out,
                         stki_finisher **finisher, stk_error *err);
    /* Creates a thread's scratch. NULL: none is needed. */
    stk_status (*scratch)(const stki_finisher *finisher, void **out, stk_error *err);
    void (*scratch_destroy)(void *scratch);
    /* Returns the approximate size of a scratch for a row of this size. NULL: negligible. */
    int64_t (*scratch_bytes)(const stki_finisher *finisher, int64_t row_bytes);
    /* Encodes a row. If out->bytes is NULL on return, the value is the last out->size bytes of `to`; otherwise it is
     * borrowed from `in`. An error concerns only this row; the job's on_error determines what happens. */
    stk_status (*run)(const stki_finisher *finisher, void *scratch, const stki_row *in, stki_bytes *to,
                      stki_sink_value *out, stk_error *err);
    /* Returns information for the manifest in addition to the options (codec versions, counts), as a new JSON value; or
     * NULL. */
    json_t *(*describe)(const stki_finisher *finisher);
    void (*destroy)(stki_finisher *finisher);
} stki_finisher_ops;

struct stki_finisher {
    const stki_finisher_ops *ops; /* must be first in every finisher's struct */
};

/* finishers.c: finds a finisher by name, or by the node `encode`, a name or a map such as {transcode: jpeg}. NULL:
 * none. */
const stki_finisher_ops *stki_finisher_find(const char *name);
const stki_finisher_ops *stki_finisher_of(const stki_node *encode);
extern const stki_finisher_ops *const stki_finishers[]; /* NULL-terminated */
/* Lists the possible values of `encode`: "keep, jpeg or {transcode: jpeg}". Returns the buffer. */
const char *stki_finisher_list(char *buffer, int size);
/* `output.fields.NAME` without an encoder; the options of encoders are choices of its table. */
typedef struct stki_finish_options {
    const char *encode, *extension;
    bool alias;
} stki_finish_options;
extern const stki_option_table stki_finish_table; /* table of `output.fields.NAME`, which depends on `encode` */
/* Prints the names of all encoders, for help and docs, and returns true if `table` is the one above. */
bool stki_finish_about(const stki_option_table *table, FILE *to);
/* Fails with STK_E_CONFIG because the rows are unsuitable. The message contains the location of the field's options
 * (NULL: "output.fields.NAME: "). */
stk_status stki_finish_refuse(stk_error *err, const stki_node *options, const stki_sink_field *in, const char *format,
                              ...) STK_PRINTF(4, 5);
/* STK_E_CONFIG: the rows are not images of u8 (or u16, if `deep`), height x width (x 1 or 3 channels). `encode` is used
 * in the message. */
stk_status stki_finish_takes_pixels(const stki_node *options, const stki_sink_field *in, const char *encode, bool deep,
                                    stk_error *err);
/* Describes the result of encoding such rows: images. */
void stki_finish_gives_images(const stki_sink_field *in, stki_sink_field *out);
/* STK_E_CONFIG: the rows are not the bytes of image files. The results are image files as well, which
 * stki_finish_gives_files describes. */
stk_status stki_finish_takes_files(const stki_node *options, const stki_sink_field *in, const char *encode,
                                   stk_error *err);
void stki_finish_gives_files(stki_sink_field *out);
/* Appends a value to `to`. */
stk_status stki_finish_put(stki_bytes *to, const void *bytes, int64_t size, stki_sink_value *out, stk_error *err);
/* Shared operations of finishers that write JPEG images (finish_jpeg.c): the scratch is a stki_jpeg_room. */
stk_status stki_finish_jpeg_scratch(const stki_finisher *finisher, void **out, stk_error *err);
void stki_finish_jpeg_scratch_destroy(void *scratch);
json_t *stki_finish_jpeg_describe(const stki_finisher *finisher);
/* The `destroy` of finishers that own no memory except their struct. */
void stki_finish_destroy(stki_finisher *finisher);
extern const stki_finisher_ops stki_finish_keep, stki_finish_jpeg, stki_finish_png, stki_finish_tokens,
    stki_finish_transcode;
extern const stki_option_table stki_transcode_table; /* of `encode: {transcode: jpeg}` */

#endif
