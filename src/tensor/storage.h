/* storage.h: the reference-counted memory block of tensors. */
#ifndef STKI_STORAGE_H
#define STKI_STORAGE_H

#include "counter.h"
#include <stoker/tensor.h>

struct stk_storage {
    stki_counter refs;
    stk_device *device; /* never NULL */
    void *data;
    int64_t bytes;
    void (*free_fn)(void *context); /* frees externally owned memory; NULL: the memory is the device's own */
    void *context; /* argument of free_fn; small: the heap block; pinned: the device for which the memory is pinned */
    struct stki_record *_Atomic record; /* NULL: created while recording was off */
    bool small;                         /* struct and data share one heap block */
    bool mapping; /* a file mapping, which may be truncated while in use: never exported to other libraries */
    bool pinned;  /* ordinary memory from a device's pinned pool */
};

/* Byte offset of the tensor's first element in its storage. */
static inline int64_t stki_tensor_offset_bytes(const stk_tensor *tensor)
{
    return tensor->storage ? (int64_t)((uintptr_t)tensor->data - (uintptr_t)tensor->storage->data) : 0;
}

/* Allocates `bytes` of host memory pinned for a device. */
stk_status stki_storage_create_pinned(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err);

#endif
