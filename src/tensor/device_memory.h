/* device_memory.h: device memory for tensors, taken from the device's cache if it has one. A block belongs to the
 * calling thread's current stream; work of other streams on it must be recorded before it is freed. */
#ifndef STKI_DEVICE_MEMORY_H
#define STKI_DEVICE_MEMORY_H

#include "device_table.h"

stk_status stki_device_alloc(stk_device *device, stk_device_memory kind, int64_t bytes, void **out, stk_error *err);
/* For long-lived blocks: allocates exactly the requested size. `what` is the block's tag in reports on memory, unless
 * the thread has set a tag. */
stk_status stki_device_alloc_exact(stk_device *device, stk_device_memory kind, int64_t bytes, const char *what,
                                   void **out, stk_error *err);
/* Frees a block that was allocated by one of the functions above. */
void stki_device_free(stk_device *device, stk_device_memory kind, void *block, int64_t bytes);
/* Records that `stream` has work on the block, or will have before it is freed. For device memory this is not needed
 * for the stream that the block was allocated in. For pinned memory it is needed for every stream, because the CPU
 * reuses the block. */
void stki_device_record_stream(stk_device *device, stk_device_memory kind, void *block, stk_stream *stream);

#endif
