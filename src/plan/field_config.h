/* field_config.h: what the config says of one field of a data set. */
#ifndef STKI_FIELD_CONFIG_H
#define STKI_FIELD_CONFIG_H

#include "dataset_internal.h"
#include "document.h"
#include "packed_reader.h"

/* `pad` of a field of varying length: rows of one length with a mask, instead of values and offsets. */
typedef struct stki_pad {
    bool padded, truncate; /* truncate: what is longer than `to` is cut */
    int64_t to;            /* 0: the longest of the batch */
    double value;
    char element[16]; /* the value, in the field's dtype */
} stki_pad;

/* `ragged` of a field of images: each keeps a shape of its own (rows_images.h). */
typedef struct stki_ragged {
    bool asked;
    int64_t max_bytes; /* of a row; 0: the largest */
} stki_ragged;

/* `source.window`: windows over neighbouring samples, or elements along an array's axis. */
enum stki_offsets { STKI_OFFSETS_FIXED, STKI_OFFSETS_SHIFTED, STKI_OFFSETS_RANDOM };
enum stki_take { STKI_TAKE_FIRST, STKI_TAKE_LAST, STKI_TAKE_ALL };
typedef struct stki_window {
    int64_t length;           /* 0: there are none */
    int64_t stride, dilation; /* from one window to the next, and inside one; at least 1 */
    int offsets;              /* enum stki_offsets; where not fixed, the order says where windows begin */
    const char *group_by;     /* "files", "none" or a field; see docs/internals/order.md */
    int take;                 /* enum stki_take: what fields without windows give */
} stki_window;

/* From one place where a window may begin to the next: windows that move may begin at any sample. */
static inline int64_t stki_window_step(const stki_window *window)
{
    return window->offsets == STKI_OFFSETS_FIXED ? window->stride : 1;
}

/* What `source` says of a stream of tokens. */
typedef struct stki_tokens {
    bool documents, ends; /* the stream is cut where `token` begins or ends a document */
    int64_t token;
    bool packed;
    stki_pack_opts pack;
} stki_tokens;

/* Where the names of a field's classes come from, and what becomes of others: source.classes and unknown_class. */
enum stki_classes_from {
    STKI_CLASSES_DEFAULT, /* as SORTED, of class folders */
    STKI_CLASSES_SORTED,  /* all that occur in the field */
    STKI_CLASSES_LISTED,
    STKI_CLASSES_FILES /* which have names of classes */
};
#define STKI_UNKNOWN_ERROR (INT64_MIN + 1) /* of `unknown`; any other value is the number that they get */
#define STKI_UNKNOWN_SKIP INT64_MIN
typedef struct stki_class_config {
    const stki_node *node; /* where it stands in the config; NULL: not given */
    enum stki_classes_from from;
    const stki_node *list;
    const char **paths; /* the array is owned by the config */
    int path_count;
    int64_t unknown;
} stki_class_config;

typedef struct stki_field_config {
    const char *name;
    const stki_node *node; /* where it stands in the config, for messages; NULL: from the C API */
    const char **paths;    /* shards; the array is owned by the config */
    int path_count;
    const stki_node *synthetic; /* instead of paths */
    stki_reader_opts source;    /* how the files are opened; its texts belong to the config */
    bool sample_per_file;
    stk_dtype source_dtype, dtype;
    const char *source_layout, *layout; /* NULL: none given */
    const char *base_dir;               /* where relative paths start that no file names; NULL: the working directory */
    const stki_node *transforms;        /* a list, or NULL */
    const stki_node *views;             /* a map of ranges, or NULL (views.h) */
    stki_pad pad;
    stki_ragged ragged;
    stki_tokens tokens;
    stki_window window;
    int64_t row_samples; /* rows are so many samples, window.dilation apart; 0: one, without an axis for them. Set when
                            the data set is open */
    stki_class_config classes;
    /* The segments or positions of a packed field before it; it has no files of its own. */
    bool derived;
    int derived_from;
    enum stki_packed_tensor derived_part;
} stki_field_config;

/* A message about the field: with its place in the config where there is one. */
stk_status stki_fail_field(stk_error *err, const stki_field_config *config, stk_status status, const char *format, ...)
    STK_PRINTF(4, 5);

#endif
