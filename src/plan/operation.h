/* operation.h: a row of the lists of transforms. */
#ifndef STKI_OPERATION_H
#define STKI_OPERATION_H

typedef struct stki_operation {
    const char *name;        /* "random_crop" */
    const char *examples[2]; /* of its parameters, for the docs and the tests */
} stki_operation;

#endif
