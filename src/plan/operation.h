/* operation.h: an entry of the tables of transforms. */
#ifndef STKI_OPERATION_H
#define STKI_OPERATION_H

#include <string.h>

typedef struct stki_operation {
    const char *name;        /* "random_crop" */
    const char *examples[2]; /* example parameters, for the docs and tests */
} stki_operation;

/* Returns the index of an operation; -1: there is none with this name. list() returns NULL after the last one. */
static inline int stki_operation_find(const stki_operation *(*list)(int index), const char *name)
{
    for (int i = 0; list(i); i++)
        if (strcmp(name, list(i)->name) == 0)
            return i;
    return -1;
}

#endif
