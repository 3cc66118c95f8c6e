/* classes.h: names of classes. A class's number is the place of its name in a table. Names differ, are not empty, and
 * are at most STKI_CLASS_NAME bytes long. A table is built by one thread; once it is complete any thread may look. */
#ifndef STKI_CLASSES_H
#define STKI_CLASSES_H

#include "reader.h"
#include "text_build.h"

enum { STKI_CLASS_NAME = 4096 };

/* Starts as {0}. A name is found by a hash table of places. */
typedef struct stki_classes {
    stki_text_build names; /* one after the other, each with its NUL */
    int64_t *name_at;      /* places in names.text */
    int64_t *table;        /* 2 * room: a number plus 1; 0: free */
    int64_t count, room;
} stki_classes;

void stki_classes_fini(stki_classes *classes);
/* The number of the name, which is added if it is new. */
stk_status stki_classes_add(stki_classes *classes, const char *name, int64_t *number, stk_error *err);
stk_status stki_classes_add_all(stki_classes *classes, const stki_classes *more, stk_error *err);
int64_t stki_classes_find(const stki_classes *classes, const char *name); /* -1: it is not there */
/* Bytewise; the numbers change. */
stk_status stki_classes_sort(stki_classes *classes, stk_error *err);
int64_t stki_classes_bytes(const stki_classes *classes); /* of memory */
static inline const char *stki_classes_name(const stki_classes *classes, int64_t number)
{
    return classes->names.text + classes->name_at[number];
}

/* Are the samples texts that could be names: bytes of varying length? */
bool stki_classes_are_texts(const stki_reader *reader);
/* The texts of all samples in the order in which they first occur, and the number of each sample in `numbers` (room for
 * reader->count; NULL: not needed). Reads all samples. STK_E_BAD_VALUE: a text that is no name. */
stk_status stki_classes_of_texts(const stki_reader *reader, stki_classes *out, int64_t *numbers, stk_error *err);
/* A text file of one name a line, in that order. */
stk_status stki_classes_read_lines(const char *path, stki_classes *out, stk_error *err);

#endif
