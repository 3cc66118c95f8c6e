/* storage.h: the counted block behind a tensor. */
#ifndef STKI_STORAGE_H
#define STKI_STORAGE_H

#include "counter.h"
#include <stoker/tensor.h>

struct stk_storage {
    stki_counter refs;
    stk_device *device; /* never NULL */
    void *data;
    int64_t bytes;
    void (*free_fn)(void *context);     /* outside owner; NULL: the memory is the device's own */
    void *context;                      /* its argument; the block of a small one */
    struct stki_record *_Atomic record; /* NULL: it was not made while recording */
    bool small;                         /* struct and data are in one block of the heap */
    bool mapping; /* of a file, which may be cut while somebody looks: never handed to other libraries */
};

#endif
