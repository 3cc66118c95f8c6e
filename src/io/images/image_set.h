/* image_set.h: the image files of a folder or of a list: their names in order, and a label each. Immutable once it is
 * made; any thread. */
#ifndef STKI_IMAGE_SET_H
#define STKI_IMAGE_SET_H

#include "classes.h"
#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_image_set {
    char *root;            /* names are relative to it; owned */
    stki_text_build names; /* one after the other, each with its NUL */
    int64_t *name_at;      /* places in names.text; owned */
    int64_t *labels;       /* NULL: no labels; owned */
    int64_t count, room;
    stki_classes classes; /* names of the labels; empty: labels are just numbers */
    /* A list: the line and the text of the first label that is no number, where there is one. */
    int64_t name_line;
    char *name_found; /* owned */
    /* What was left out. */
    int64_t hidden, others, broken, outside, loops, empty_classes;
} stki_image_set;

/* Class folders (labels: their order, bytewise; what lies beside them is `outside`), or where no folder holds an image,
 * one flat folder without labels. Sorted by path, bytewise. Hidden names and other endings than .jpg, .jpeg and .png
 * (any case) are left out and counted; links are followed, a folder inside itself ends there. What has the name of an
 * image and is no file that can be read (a link to nothing, a pipe) belongs to the set: it fails when it is read. */
stk_status stki_image_set_scan(const char *folder, stki_image_set *out, stk_error *err);
/* Lines of "PATH" or of "PATH<TAB or space>LABEL", in that order; paths are relative to the list's own folder. Where a
 * label behind a tab is no whole number, all labels are names of classes, numbered as they first occur. */
stk_status stki_image_set_list(const char *path, stki_image_set *out, stk_error *err);
/* Adds the names of a folder's class folders, in order; no other folder is looked into. STK_E_NOT_FOUND: none. */
stk_status stki_image_set_classes(const char *folder, stki_classes *out, stk_error *err);
void stki_image_set_fini(stki_image_set *set);

static inline const char *stki_image_set_name(const stki_image_set *set, int64_t index)
{
    return set->names.text + set->name_at[index];
}

/* The whole path of an image, in `buffer`. False: longer than that. */
bool stki_image_set_path(const stki_image_set *set, int64_t index, char *buffer, int64_t size);

/* For those who make one. */
stk_status stki_image_set_add(stki_image_set *set, const char *folder, const char *name, int64_t label, stk_error *err);
/* Does the name end like that of an image? */
bool stki_image_name(const char *name);

#endif
