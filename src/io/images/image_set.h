/* image_set.h: the image files of a folder or a list: their names in order, optionally with labels. Immutable once
 * complete; thread-safe. */
#ifndef STKI_IMAGE_SET_H
#define STKI_IMAGE_SET_H

#include "classes.h"
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_image_set {
    char *root;            /* names are relative to this folder; owned */
    stki_text_build names; /* concatenated, NUL-terminated */
    int64_t *name_at;      /* offsets in names.text; owned */
    int64_t *labels;       /* NULL: no labels; owned */
    int64_t count, room;
    stki_classes classes; /* names of the labels; empty: labels are only numbers */
    /* For a list: line and text of the first label that is not a number, if any. */
    int64_t name_line;
    char *name_found; /* owned */
    /* Counts of skipped entries. */
    int64_t hidden, others, broken, outside, loops, empty_classes;
} stki_image_set;

/* Scans class folders or, if no subfolder contains an image, one flat folder without labels. Classes are numbered in
 * the bytewise order of their names; images next to the class folders are counted as `outside`. Images are sorted
 * bytewise by path. Hidden names and extensions other than .jpg, .jpeg and .png (in any case) are skipped and counted.
 * Links are followed, except to an ancestor. An entry with the name of an image that is not a readable file (a dangling
 * link, a pipe) is included and fails when it is read. */
stk_status stki_image_set_scan(const char *folder, stki_image_set *out, stk_error *err);
/* Reads lines of "PATH" or "PATH<TAB or space>LABEL", in the order of the file. Paths are relative to the list's
 * folder. If a label after a tab is not an integer, all labels are class names, numbered by first occurrence. */
stk_status stki_image_set_list(const char *path, stki_image_set *out, stk_error *err);
/* Adds the names of a folder's class folders, in order, without reading other folders. STK_E_NOT_FOUND: none. */
stk_status stki_image_set_classes(const char *folder, stki_classes *out, stk_error *err);
void stki_image_set_fini(stki_image_set *set);

static inline const char *stki_image_set_name(const stki_image_set *set, int64_t index)
{
    return set->names.text + set->name_at[index];
}

/* Writes the path of an image to `buffer`. Returns false if it is too long. */
bool stki_image_set_path(const stki_image_set *set, int64_t index, char *buffer, int64_t size);

/* Functions for building a set. The first sets the root to the folder of a list. */
stk_status stki_image_set_root(stki_image_set *set, const char *list, stk_error *err);
stk_status stki_image_set_add(stki_image_set *set, const char *folder, const char *name, int64_t label, stk_error *err);
/* Whether the name has an image extension. */
bool stki_image_name(const char *name);

#endif
