/* pairs.h: which samples of two fields belong together. Samples that are files have names: files of a folder, or that a
 * pattern matches, are paired by name; lists state an order on purpose and go by position, as arrays do.
 *
 * A name is the path relative to the folder of the field (of a pattern: to its last folder without wildcards; of a
 * list: to the last folder that holds all files), without the last ending: n01/x.jpg and n01/x.png are both n01/x. If
 * the names of two patterns differ in that form, what the wildcards stand for is compared instead, so that
 * data/?/image.npy goes with data/?/mask.npy and img_*.npy with lab_*.npy. Shards that patterns match are paired in the
 * same way where two fields have the same number of them.
 */
#ifndef STKI_PAIRS_H
#define STKI_PAIRS_H

#include "container.h"
#include "files.h"
#include "option.h"

enum { STKI_PAIR_MOST_STRIPS = 16 };

enum stki_pair_by { STKI_PAIR_AUTO, STKI_PAIR_BY_NAME, STKI_PAIR_BY_POSITION };

/* `dataset.pair`. */
typedef struct stki_pair_config {
    enum stki_pair_by by;
    int strip_count;
    const char *strip[STKI_PAIR_MOST_STRIPS]; /* suffixes that are not compared */
    bool paired;                              /* set when names of two fields are compared */
    unsigned stripped;                        /* bit i: a name ends with strip[i] */
} stki_pair_config;

stk_status stki_pair_read(const stki_node *node, stki_pair_config *out, stk_error *err); /* NULL: the default */
extern const stki_option_table stki_pair_table;
#define STKI_PAIR_EXAMPLES STKI_EXAMPLES("position", "{strip: [_image, _mask]}")

/* A run of a field's samples or shards whose names have one origin. */
typedef struct stki_named_part {
    const char *place; /* the path as configured; of the config or the container */
    int64_t first, count;
    bool listed;
    const char *pattern;             /* of files that a pattern matches */
    const stki_container *container; /* names them, or list->paths does */
    int64_t folder;                  /* bytes at the beginning of each name that are left out; -1: not known yet */
} stki_named_part;

/* The samples or shards of one field of one data set. */
typedef struct stki_names {
    const char *field;    /* NULL: there are none */
    stki_file_list *list; /* of parts without a container */
    bool shards;
    int part_count;
    stki_named_part *parts;
    int64_t count;
} stki_names;

stk_status stki_names_add(stki_names *names, const stki_named_part *part, stk_error *err);
void stki_names_fini(stki_names *names);

/* The result of pairing. */
typedef struct stki_paired {
    int64_t *order; /* order[i]: the sample of the second field that moves to place i; NULL: unchanged. stki_free */
    bool by_name;
    char *note; /* a list is paired by position although its names differ; or NULL. stki_free */
} stki_paired;

/* Pairs `names` with `first`. STK_E_MISMATCH names the files without a partner, or two that cannot be told apart. */
stk_status stki_pair_names(stki_pair_config *how, stki_names *first, stki_names *names, stki_paired *out,
                           stk_error *err);

/* What of the option had no effect on the names that were paired; NULL: all of it had one. stki_free. */
char *stki_pair_unused(const stki_pair_config *how);

#endif
