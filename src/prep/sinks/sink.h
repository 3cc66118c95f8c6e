/* sink.h: the contract between a preparation job and the formats it writes. A sink takes rows in order and makes one
 * data set of them: one file, or one a field. Each format implements the table; sinks.c lists them.
 *
 *     open ─→ append … append ─→ mark ─→ append … ─→ mark ─→ finish ─→ files ─→ destroy       one thread
 *                                  └──→ sync … sync …                                          another one, beside it
 *
 * A sink writes files under temporary names in `folder` and never renames them: the job does, when everything of it is
 * there. A job that was killed opens the sink again with its last mark. Bytes depend on the rows, the fields, the
 * options and most_rows, never on how the rows were cut into calls of append, on the marks, or on the number of
 * threads.
 */
#ifndef STKI_SINK_H
#define STKI_SINK_H

#include "option.h"
#include <stoker/tensor.h>

typedef struct stki_sink stki_sink;

enum stki_sink_kind {
    STKI_SINK_ARRAY,  /* all rows have the dtype and shape of the field */
    STKI_SINK_RAGGED, /* of the field's dtype and shape but for axis 0, whose length is each row's own */
    STKI_SINK_IMAGE,  /* u8, height x width x channels, each row its own; as pixels or as an image file */
    STKI_SINK_BYTES   /* of any length: files, texts, JSON */
};

enum stki_encoding { STKI_PLAIN, STKI_JPEG, STKI_PNG };

/* What all rows of a field have in common. */
typedef struct stki_sink_field {
    const char *name;
    enum stki_sink_kind kind;
    stk_dtype dtype;             /* ARRAY, RAGGED; u8 otherwise */
    int ndim;                    /* of a row: ARRAY 0 and more; RAGGED 1 and more; IMAGE 3; BYTES 1 */
    int64_t shape[STK_MAX_DIMS]; /* of a row; the largest one's, where rows differ; 0: not known */
    bool image;                  /* ARRAY of u8 height x width x channels that the loader knows as an image */
    int64_t largest_bytes;       /* of a row; 0: not known */
    int channel_axis;            /* ARRAY, IMAGE: the axis of a row that is its channels, plus 1; 0: none is known */
    const char *extension;       /* of files in archives: "jpg", "cls", without the dot; NULL: the sink's choice */
    const char *ending;          /* RAGGED of u8, BYTES: rows are documents ("txt", "json", "bin"); NULL: arrays */
    const char *encode; /* what the job says of the field's encoding: "jpeg", "tokens", "json"; NULL: nothing */
    unsigned encodings; /* IMAGE: what its rows may be, a bit 1 << STKI_JPEG each; 0: each row's own affair */
    bool alias;         /* dtypes that a format cannot name are written as raw bytes; else they are refused */
} stki_sink_field;

/* Some rows are pixels and others image files. */
static inline bool stki_sink_is_mixed(const stki_sink_field *field)
{
    return (field->encodings & 1U << STKI_PLAIN) && field->encodings != 1U << STKI_PLAIN;
}

/* One row of one field; borrowed for the call of append. ARRAY, RAGGED and pixels: C order, little-endian. */
typedef struct stki_sink_value {
    const void *bytes;
    int64_t size;
    int64_t length;                  /* RAGGED: along axis 0 */
    int64_t height, width, channels; /* IMAGE, also of an encoded one */
    enum stki_encoding encoding;     /* IMAGE */
    const char *stays;               /* it is not what the job makes of such rows, but what it was: why; static */
} stki_sink_value;

typedef struct stki_sink_opts {
    const char *path;              /* the final name: for messages, and what the names of several files derive from */
    const char *folder;            /* where the files in the making lie; exists */
    const stki_sink_field *fields; /* these and their texts live as long as the sink */
    int field_count;
    int64_t most_rows;   /* no more will come; fewer may, where samples may be skipped (may_skip) */
    bool may_skip;       /* false: exactly most_rows will come */
    int64_t first_row;   /* position in the job's order of the first one: for keys of records */
    const void *options; /* the format's own, as its table reads them; NULL: it has none */
    int threads;         /* that the sink may use beside the caller's; 0: none */
} stki_sink_opts;

/* What some rows take in the files of a data set. Zeroed: no rows. Both numbers may be scaled to those of more rows. */
typedef struct stki_sink_size {
    int64_t rows, bytes; /* bytes: the rows alone, without what every file has */
    int64_t fixed;       /* of the fields alone, which `measure` computes once; 0: not yet */
} stki_sink_size;

/* A file that a sink has made. Both texts live as long as the sink. Further files in the folder, which marks need until
 * the sink is finished, have names of their own (NAME.sizes, NAME.lengths) and go with the folder. */
typedef struct stki_sink_file {
    const char *temporary, *final;
    int64_t rows, bytes; /* known after finish */
} stki_sink_file;

typedef struct stki_sink_ops {
    const char *format;         /* "npy" */
    const char *const *endings; /* ".npy", …, NULL at the end */
    /* It can go on at a mark. Others are written in one go, from rows that the job keeps until then. */
    bool resumes;
    /* Of output.fields.NAME.extension, what means something: "any", or the one word; NULL: nothing. */
    const char *extensions;
    bool aliases; /* output.fields.NAME.alias means something */
    bool mixes;   /* readers of the format see of each row whether it is pixels or an image file */
    /* The format's own keys of `output`, and the struct they are read into; NULL, 0: none. */
    const stki_option_table *table;
    int64_t options_bytes;
    /* Can it hold these fields? Without touching a file. What is accepted here is refused by no row but for the row's
     * own value or size. STK_E_UNSUPPORTED names the field and what would do. NULL: any. `count`, and most_rows of
     * `opts`, are known; folder is not. */
    stk_status (*check)(const stki_sink_opts *opts, stk_error *err);
    /* Adds `count` rows of the sizes of the one row in `values` (0: none; texts and pixels may be NULL) and returns the
     * bytes of the finished files that hold all rows added so far, most_rows being those that were announced to them.
     * Exact for formats that resume; for the others at most that much, before compression. Saturates. Touches no file;
     * `opts` as for check. */
    int64_t (*measure)(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count, stki_sink_size *size);
    /* The bytes that `size` bytes of a field's values take in the file once they are compressed, about; -1: they are
     * not compressed. NULL: never. */
    int64_t (*packed)(const stki_sink_opts *opts, int field, const void *bytes, int64_t size);
    /* mark NULL: from the beginning, over whatever files of the same temporary names are there. Else: cut them back to
     * what they were at this mark, and go on. STK_E_CORRUPT, STK_E_TRUNCATED: the files are not what they were. */
    stk_status (*open)(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err);
    /* `values`: [rows][field_count]. */
    stk_status (*append)(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err);
    /* Everything appended so far is handed to the system. *out: new JSON, small, which open takes. NULL: not resumes.
     */
    stk_status (*mark)(stki_sink *sink, json_t **out, stk_error *err);
    /* Everything up to the last mark is on the disk when it returns. One thread at a time, any, beside append and mark.
     * NULL: not resumes. */
    stk_status (*sync)(stki_sink *sink, stk_error *err);
    /* Writes what ends the files, and syncs and closes them. They keep their temporary names. */
    stk_status (*finish)(stki_sink *sink, stk_error *err);
    /* The files of the sink, at most `room` of them; returns how many there are. Names are known after open. */
    int (*files)(const stki_sink *sink, stki_sink_file *out, int room);
    /* True: bytes that are in the files stay as they are, to the end; more come only behind them. NULL: false. */
    bool (*settled)(const stki_sink *sink);
    /* In any state. The files stay where they are. */
    void (*destroy)(stki_sink *sink);
} stki_sink_ops;

struct stki_sink {
    const stki_sink_ops *ops; /* the first member of every format's own struct */
};

/* sinks.c: the format of this name, or (NULL) by the ending of `path`. STK_E_UNSUPPORTED names those there are, or says
 * that the path's ending (NULL: there is no path) is another format's. */
stk_status stki_sink_find(const char *format, const char *path, const stki_sink_ops **out, stk_error *err);
/* All of them, ended by NULL: for the tables of options. */
extern const stki_sink_ops *const stki_sinks[];
/* The tables of the keys that formats add to `output`; NULL behind the last one. */
const stki_option_table *stki_sink_table(int index);

#endif
