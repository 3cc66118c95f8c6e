/* device_memory.h: memory of a device for tensors and their like: from its cache, if it keeps one. The block belongs to
 * the current stream of the calling thread; work of other streams on it is recorded before it is freed. */
#ifndef STKI_DEVICE_MEMORY_H
#define STKI_DEVICE_MEMORY_H

#include "device_table.h"

stk_status stki_device_alloc(stk_device *device, stk_device_memory kind, int64_t bytes, void **out, stk_error *err);
/* For what lives long: no byte more than asked. `what` stands among the holders of memory, unless the thread has a tag
 * of its own. */
stk_status stki_device_alloc_exact(stk_device *device, stk_device_memory kind, int64_t bytes, const char *what,
                                   void **out, stk_error *err);
/* Of either. */
void stki_device_free(stk_device *device, stk_device_memory kind, void *block, int64_t bytes);
/* `stream` has work on the block, or will before it is freed. In device memory the stream that it was made under needs
 * none of this; in pinned memory every stream does, since it is the processor that goes on with the block. */
void stki_device_record_stream(stk_device *device, stk_device_memory kind, void *block, stk_stream *stream);

#endif
