/* device_memory.h: memory of a device for tensors and their like: from its cache, if it keeps one. The block belongs to
 * the current stream of the calling thread; work of other streams on it is recorded before it is freed. */
#ifndef STKI_DEVICE_MEMORY_H
#define STKI_DEVICE_MEMORY_H

#include "device_table.h"

stk_status stki_device_alloc(stk_device *device, stk_device_memory kind, int64_t bytes, void **out, stk_error *err);
void stki_device_free(stk_device *device, stk_device_memory kind, void *block, int64_t bytes);
void stki_device_record_stream(stk_device *device, stk_device_memory kind, void *block, stk_stream *stream);

#endif
