/* sink.h: the interface between a preparation job and the formats it writes. A sink receives rows in order and writes
 * one data set from them: one file, or one per field. Each format implements the table; sinks.c lists the formats.
 *
 *     open ─→ append … append ─→ mark ─→ append … ─→ mark ─→ finish ─→ files ─→ destroy       one thread
 *                                  └──→ sync … sync …                                          another thread,
 *                                                                                              concurrently
 *
 * A sink writes files under temporary names in `folder` and never renames them; the job does that when it is complete.
 * A killed job opens the sink again with its last mark. The bytes depend on the rows, the fields, the options and
 * most_rows, but not on how the rows were divided into calls to append, on the marks, or on the number of threads.
 */
#ifndef STKI_SINK_H
#define STKI_SINK_H

#include "option.h"
#include <stoker/tensor.h>

typedef struct stki_sink stki_sink;

enum stki_sink_kind {
    STKI_SINK_ARRAY,  /* all rows have the dtype and shape of the field */
    STKI_SINK_RAGGED, /* the field's dtype and shape, except that the length of axis 0 varies */
    STKI_SINK_IMAGE,  /* u8, height x width x channels of varying size; as pixels or as an image file */
    STKI_SINK_BYTES   /* bytes of varying length: files, texts, JSON */
};

enum stki_encoding { STKI_PLAIN, STKI_JPEG, STKI_PNG };

/* The description of a field's rows. */
typedef struct stki_sink_field {
    const char *name;
    enum stki_sink_kind kind;
    stk_dtype dtype;             /* of ARRAY and RAGGED; otherwise u8 */
    int ndim;                    /* axes of a row: ARRAY 0 or more; RAGGED 1 or more; IMAGE 3; BYTES 1 */
    int64_t shape[STK_MAX_DIMS]; /* shape of a row, or of the largest one if rows vary; 0: unknown */
    bool image;                  /* ARRAY of u8 height x width x channels that the loader handles as an image */
    int64_t largest_bytes;       /* maximum size of a row; 0: unknown */
    int channel_axis;            /* ARRAY, IMAGE: channel axis of a row plus 1; 0: unknown */
    const char *extension;       /* extension of files in archives, such as "jpg"; NULL: default of the sink */
    const char *ending;          /* RAGGED of u8, BYTES: rows are documents ("txt", "json", "bin"); NULL: arrays */
    const char *encode;          /* the job's encoding of the field: "jpeg", "tokens", "json"; NULL: none */
    unsigned encodings;          /* IMAGE: possible encodings, as bits 1 << STKI_JPEG; 0: any, per row */
    bool alias;                  /* write dtypes that a format cannot name as raw bytes; false: reject them */
} stki_sink_field;

/* Returns whether some rows are pixels and others image files. */
static inline bool stki_sink_is_mixed(const stki_sink_field *field)
{
    return (field->encodings & 1U << STKI_PLAIN) && field->encodings != 1U << STKI_PLAIN;
}

/* One row of one field; borrowed during append. ARRAY, RAGGED and pixels: C order, little-endian. */
typedef struct stki_sink_value {
    const void *bytes;
    int64_t size;
    int64_t length;                  /* RAGGED: length of axis 0 */
    int64_t height, width, channels; /* IMAGE, also if encoded */
    enum stki_encoding encoding;     /* IMAGE */
    const char *stays;               /* the reason why the row was kept unchanged instead of encoded; static */
} stki_sink_value;

typedef struct stki_sink_opts {
    const char *path;              /* the final name: for messages, and for deriving the names of several files */
    const char *folder;            /* existing folder of the unfinished files */
    const stki_sink_field *fields; /* must outlive the sink, including their strings */
    int field_count;
    int64_t most_rows;   /* maximum number of rows; fewer if samples are skipped (may_skip) */
    bool may_skip;       /* false: there are exactly most_rows */
    int64_t first_row;   /* position of the first row in the job's order, for keys of records */
    const void *options; /* the format's options, as parsed by its table; NULL: none */
    int threads;         /* number of additional threads that the sink may use */
} stki_sink_opts;

/* The size that some rows occupy in the files of a data set. Zeroed: no rows. Both numbers may be scaled to more
 * rows. */
typedef struct stki_sink_size {
    int64_t rows, bytes; /* bytes: only the rows, without the fixed part of a file */
    int64_t fixed; /* fixed part, which depends only on the fields and is computed once by `measure`; 0: not yet */
} stki_sink_size;

/* A file written by a sink. Both strings live as long as the sink. Additional files in the folder, which are needed to
 * resume at a mark until the sink is finished, have other names (NAME.sizes, NAME.lengths) and are removed with the
 * folder. */
typedef struct stki_sink_file {
    const char *temporary, *final;
    int64_t rows, bytes; /* known after finish */
} stki_sink_file;

typedef struct stki_sink_ops {
    const char *format;         /* "npy" */
    const char *const *endings; /* ".npy", …; NULL-terminated */
    /* Whether the format can resume at a mark. Other formats are written in one pass, from rows that the job has
     * stored. */
    bool resumes;
    /* Supported values of output.fields.NAME.extension: "any", or a single word; NULL: none. */
    const char *extensions;
    bool aliases; /* output.fields.NAME.alias is supported */
    bool mixes;   /* the format records for each row whether it is pixels or an image file */
    /* The format's keys in `output`, and the size of the struct for their values; NULL, 0: none. */
    const stki_option_table *table;
    int64_t options_bytes;
    /* Checks that the format supports these fields, without accessing files. After that, rows are only rejected for
     * their own values or sizes. STK_E_UNSUPPORTED names the field and what would be accepted. NULL: any fields.
     * `count`, and most_rows of `opts`, are set; folder is not. */
    stk_status (*check)(const stki_sink_opts *opts, stk_error *err);
    /* Checks whether the format can store this row, without accessing files. Thread-safe; `opts` is as in check, and
     * the bytes of encoded rows may be NULL. On failure, *field is the field at fault, and the error names neither file
     * nor record. NULL: any row. */
    stk_status (*fits)(const stki_sink_opts *opts, const stki_sink_value *row, int *field, stk_error *err);
    /* Adds `count` rows with the sizes of the one row in `values` (0: none; texts and pixels may be NULL), and returns
     * the size of the finished files with all rows added so far, where most_rows is the announced number. The size is
     * exact for formats that can resume; for others it is an upper bound before compression. It saturates. No files are
     * accessed; `opts` is as in check. */
    int64_t (*measure)(const stki_sink_opts *opts, const stki_sink_value *values, int64_t count, stki_sink_size *size);
    /* Returns the approximate compressed size of `size` bytes of a field's values; -1: not compressed. NULL: never
     * compressed. */
    int64_t (*packed)(const stki_sink_opts *opts, int field, const void *bytes, int64_t size);
    /* Returns the final path of the data set's file `index`; NULL: there are fewer files, or no memory is left. Free
     * with stki_free. `opts` is as in check. A NULL function: one file, opts->path. */
    char *(*name)(const stki_sink_opts *opts, int index);
    /* mark NULL: starts from the beginning and overwrites existing files with these temporary names. Otherwise
     * truncates them to their state at this mark and resumes. STK_E_CORRUPT, STK_E_TRUNCATED: the files have changed.
     */
    stk_status (*open)(const stki_sink_opts *opts, const json_t *mark, stki_sink **out, stk_error *err);
    /* `values`: [rows][field_count]. */
    stk_status (*append)(stki_sink *sink, const stki_sink_value *values, int64_t rows, stk_error *err);
    /* Passes everything appended to the operating system. *out: a small new JSON object, to be passed to open. A NULL
     * function: the format cannot resume. */
    stk_status (*mark)(stki_sink *sink, json_t **out, stk_error *err);
    /* Waits until everything up to the last mark is on disk. Called by one thread at a time, possibly concurrently with
     * append and mark. NULL: the format cannot resume. */
    stk_status (*sync)(stki_sink *sink, stk_error *err);
    /* Writes the ends of the files, syncs and closes them. They keep their temporary names. */
    stk_status (*finish)(stki_sink *sink, stk_error *err);
    /* Returns the number of the sink's files and lists at most `room` of them. Names are known after open. */
    int (*files)(const stki_sink *sink, stki_sink_file *out, int room);
    /* Returns whether the files are append-only. NULL: they are not. */
    bool (*settled)(const stki_sink *sink);
    /* Allowed in any state. The files are kept. */
    void (*destroy)(stki_sink *sink);
} stki_sink_ops;

struct stki_sink {
    const stki_sink_ops *ops; /* must be first in every format's struct */
};

/* sinks.c: the format of this name or, with NULL, for the extension of `path`. STK_E_UNSUPPORTED lists the formats, or
 * says that the extension (path NULL: none) belongs to another format. */
stk_status stki_sink_find(const char *format, const char *path, const stki_sink_ops **out, stk_error *err);
/* ops->name, or what its absence means. */
char *stki_sink_name(const stki_sink_ops *ops, const stki_sink_opts *opts, int index);
/* All formats, NULL-terminated, for the tables of options. */
extern const stki_sink_ops *const stki_sinks[];
/* Returns one of the tables of keys that formats add to `output`; NULL: `index` is too large. */
const stki_option_table *stki_sink_table(int index);

#endif
