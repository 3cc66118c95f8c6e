/* field_config.h: the configuration of one field of a data set. */
#ifndef STKI_FIELD_CONFIG_H
#define STKI_FIELD_CONFIG_H

#include "dataset_internal.h"
#include "document.h"
#include "packed_reader.h"

/* `pad` of a field of varying length: rows are padded to a common length and have a mask, instead of values and
 * offsets. */
typedef struct stki_pad {
    bool padded, truncate; /* truncate: longer rows are cut to `to` */
    int64_t to;            /* common length; 0: the length of the batch's longest row */
    double value;
    char element[16]; /* value of the padding, in the field's dtype */
} stki_pad;

/* `ragged` of a field of images: each row has the shape of its image (rows_images.h). */
typedef struct stki_ragged {
    bool asked;
    int64_t max_bytes; /* limit per row, bytes; 0: the size of the largest row */
} stki_ragged;

/* `source.window`: windows over adjacent samples, or over elements along an array's axis. */
enum stki_offsets { STKI_OFFSETS_FIXED, STKI_OFFSETS_SHIFTED, STKI_OFFSETS_RANDOM };
enum stki_take { STKI_TAKE_FIRST, STKI_TAKE_LAST, STKI_TAKE_ALL };
typedef struct stki_window {
    int64_t length;           /* 0: no windows */
    int64_t stride, dilation; /* distance between windows, and between the samples of a window; at least 1 */
    int offsets;              /* enum stki_offsets; unless fixed, the order determines where windows begin */
    const char *group_by;     /* "files", "none" or a field; see docs/internals/order.md */
    int take;                 /* enum stki_take: which samples fields without windows return */
} stki_window;

/* Returns the distance between possible starts of windows; unless offsets are fixed, they may start at any sample. */
static inline int64_t stki_window_step(const stki_window *window)
{
    return window->offsets == STKI_OFFSETS_FIXED ? window->stride : 1;
}

/* Token options of `source`. */
typedef struct stki_tokens {
    bool documents, ends; /* the stream is split into documents at `token`; ends: the token ends a document, otherwise
                             it begins one */
    int64_t token;
    bool packed;
    stki_pack_opts pack;
} stki_tokens;

/* source.classes and unknown_class: where class names come from, and how other labels are handled. */
enum stki_classes_from {
    STKI_CLASSES_DEFAULT, /* not set; class folders are numbered as with SORTED */
    STKI_CLASSES_SORTED,  /* all names in the field, sorted */
    STKI_CLASSES_LISTED,
    STKI_CLASSES_FILES /* from files that contain class names */
};
/* Values of `unknown`; any other value is the class number that unknown classes get. */
#define STKI_UNKNOWN_ERROR (INT64_MIN + 1)
#define STKI_UNKNOWN_SKIP INT64_MIN
typedef struct stki_class_config {
    const stki_node *node; /* its node in the config; NULL: not given */
    enum stki_classes_from from;
    const stki_node *list;
    const char **paths; /* the array is owned by the config */
    int path_count;
    int64_t unknown;
} stki_class_config;

typedef struct stki_field_config {
    const char *name;
    const stki_node *node; /* the field's node in the config, for messages; NULL: set through the C API */
    const char **paths;    /* shards; the array is owned by the config */
    int path_count;
    const stki_node *synthetic; /* generated data instead of files; NULL: none */
    stki_reader_opts source;    /* how the files are opened; its strings belong to the config */
    bool sample_per_file;
    stk_dtype source_dtype, dtype;
    const char *source_layout, *layout; /* NULL: none given */
    const char *base_dir; /* folder for relative paths that are not from a config file; NULL: the working directory */
    const stki_node *transforms; /* a list, or NULL */
    const stki_node *views;      /* a map of ranges, or NULL (views.h) */
    stki_pad pad;
    stki_ragged ragged;
    stki_tokens tokens;
    stki_window window;
    int64_t row_samples; /* number of samples per row, which are window.dilation apart; 0: one sample, and the row has
                            no axis for samples. Set when the data set has been opened */
    stki_class_config classes;
    /* Whether this field has the segments or positions of an earlier packed field instead of files of its own. */
    bool derived;
    int derived_from;
    enum stki_packed_tensor derived_part;
} stki_field_config;

/* Fails with a message about the field, including its position in the config if it has one. */
stk_status stki_fail_field(stk_error *err, const stki_field_config *config, stk_status status, const char *format, ...)
    STK_PRINTF(4, 5);

#endif
