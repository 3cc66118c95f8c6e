/* classes.h: class names. The number of a class is the index of its name in a table. Names are unique, not empty,
 * and at most STKI_CLASS_NAME bytes long. A table is built by one thread; afterwards it is immutable and thread-safe.
 */
#ifndef STKI_CLASSES_H
#define STKI_CLASSES_H

#include "reader.h"
#include "text_build.h"

enum { STKI_CLASS_NAME = 4096 };

/* Initialize with {0}. A hash table maps names to numbers. */
typedef struct stki_classes {
    stki_text_build names; /* concatenated, NUL-terminated */
    int64_t *name_at;      /* offsets in names.text */
    int64_t *table;        /* hash table of 2 * room slots: class number plus 1; 0: free */
    int64_t count, room;
} stki_classes;

void stki_classes_fini(stki_classes *classes);
/* Returns the number of the name, which is added if it is new. */
stk_status stki_classes_add(stki_classes *classes, const char *name, int64_t *number, stk_error *err);
stk_status stki_classes_add_all(stki_classes *classes, const stki_classes *more, stk_error *err);
int64_t stki_classes_find(const stki_classes *classes, const char *name); /* -1: unknown */
/* Sorts the names bytewise, which changes the numbers. */
stk_status stki_classes_sort(stki_classes *classes, stk_error *err);
int64_t stki_classes_bytes(const stki_classes *classes); /* memory used */
static inline const char *stki_classes_name(const stki_classes *classes, int64_t number)
{
    return classes->names.text + classes->name_at[number];
}

/* Whether the samples are byte strings of varying length, which can be class names. */
bool stki_classes_are_texts(const stki_reader *reader);
/* Collects the strings of all samples in order of first occurrence, and stores the class number of each sample in
 * `numbers` (room for reader->count; NULL: not needed). Reads all samples. STK_E_BAD_VALUE: a string that cannot be a
 * name. */
stk_status stki_classes_of_texts(const stki_reader *reader, stki_classes *out, int64_t *numbers, stk_error *err);
/* Reads a text file with one name per line, in the order of the file. */
stk_status stki_classes_read_lines(const char *path, stki_classes *out, stk_error *err);

#endif
