/* pairs.h: determines which samples of two fields belong together. Samples that are files in a folder, or that match a
 * pattern, have names and are paired by name. Lists define an explicit order and are paired by position, like arrays.
 *
 * A name is the path relative to the field's folder (of a pattern: the last folder without wildcards; of a list: the
 * deepest folder that contains all files), without the last extension: n01/x.jpg and n01/x.png are both n01/x. If the
 * names from two patterns still differ, the text matched by the wildcards is compared instead, so that data/?/image.npy
 * pairs with data/?/mask.npy and img_*.npy with lab_*.npy. Shards that match patterns are paired in the same way if two
 * fields have the same number of them. */
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
    const char *strip[STKI_PAIR_MOST_STRIPS]; /* suffixes removed before names are compared */
    bool paired;                              /* set once the names of two fields have been compared */
    unsigned stripped;                        /* bit i: a name ends with strip[i] */
} stki_pair_config;

stk_status stki_pair_read(const stki_node *node, stki_pair_config *out, stk_error *err); /* NULL: the default */
extern const stki_option_table stki_pair_table;
#define STKI_PAIR_EXAMPLES STKI_EXAMPLES("position", "{strip: [_image, _mask]}")

/* A run of a field's samples or shards whose names come from one source. */
typedef struct stki_named_part {
    const char *place; /* the path as configured; owned by the config or the container */
    int64_t first, count;
    bool listed;
    const char *pattern;             /* the pattern, if the files come from one */
    const stki_container *container; /* the container that has the names; NULL: they are in list->paths */
    int64_t folder;                  /* length of the prefix removed from each name, bytes; -1: not known yet */
} stki_named_part;

/* The samples or shards of one field of one data set. */
typedef struct stki_names {
    const char *field;    /* NULL: no field */
    stki_file_list *list; /* paths of the parts without a container */
    bool shards;
    int part_count;
    stki_named_part *parts;
    int64_t count;
} stki_names;

stk_status stki_names_add(stki_names *names, const stki_named_part *part, stk_error *err);
void stki_names_fini(stki_names *names);

typedef struct stki_paired {
    int64_t *order; /* order[i]: the sample of the second field that moves to index i; NULL: the order is unchanged.
                       Free with stki_free */
    bool by_name;
    char *note; /* set if a list is paired by position although the names differ; otherwise NULL. Free with stki_free */
} stki_paired;

/* Pairs `names` with `first`. STK_E_MISMATCH lists files without a partner, or two files with the same name. */
stk_status stki_pair_names(stki_pair_config *how, stki_names *first, stki_names *names, stki_paired *out,
                           stk_error *err);

/* Describes the part of the option that had no effect on the names that were compared; NULL: all parts had an effect.
 * Free with stki_free. */
char *stki_pair_unused(const stki_pair_config *how);

#endif
