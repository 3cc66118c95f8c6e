/* operation.h: an entry of the tables of transforms. */
#ifndef STKI_OPERATION_H
#define STKI_OPERATION_H

typedef struct stki_operation {
    const char *name;        /* "random_crop" */
    const char *examples[2]; /* example parameters, for the docs and tests */
} stki_operation;

#endif
