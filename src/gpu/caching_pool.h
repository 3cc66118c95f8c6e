/* caching_pool.h: a device's memory for tensors. Freed memory is kept for the next allocation, because an allocation by
 * the driver takes tens of microseconds to milliseconds, and one from the pool less than a microsecond. There is one
 * pool for device memory and one for pinned host memory, on top of the device's ops->alloc and ops->alloc_pinned;
 * device_table.h declares the calls.
 *
 * The rules are largely those of PyTorch's allocator:
 *
 *   sizes        Blocks are multiples of 512 bytes, cut off the front of segments that come from the driver. No size is
 *                doubled or rounded to a power of two.
 *
 *                requested            segment (device memory)      segment (pinned memory)
 *                up to 1 MiB          2 MiB, "small"               2 MiB, "small"
 *                up to 10 MiB         20 MiB, "medium"             rounded up to 4 KiB, "large"
 *                more                 rounded up to 2 MiB, "large" the same
 *                exact                the same size, "exact"
 *   choice       The smallest free block that is large enough; among equals, the one with the lowest address. Small
 *                requests never use the segments of larger ones.
 *   split        The rest of a block becomes a free block if it is large enough: at least 512 bytes in small segments,
 *                more than 1 MiB in others. Free neighbors are merged immediately.
 *   streams      A segment belongs to the stream that it was first allocated for. Its free blocks are reused by that
 *                stream only, without waiting, because the order of the stream separates old and new users. Work of
 *                other streams is recorded (record_stream); a recorded block is free again when events recorded after
 *                that work have completed. NULL is treated as a stream. The segments of a destroyed stream have no
 *                owner once its last work has completed; the first stream that needs one becomes its owner.
 *   pinned       The host uses these blocks without regard to stream order, so every stream is recorded, including the
 *                one it was allocated for, and all streams share the free blocks.
 *   exact        For long-lived memory, such as the slots of a ring: allocated from the driver and returned to it
 *                directly, but counted.
 *   returning    Only whole free segments are returned to the driver, and only if their stream has completed its work.
 *   no memory    When the driver has none, completed events are processed, then the whole cache is returned, then the
 *                pool waits for streams that work on freed memory (at most 10 s). After each step it tries again. If
 *                all steps fail, the call fails with STK_E_MEMORY; the message says what was requested, how much memory
 *                is held, and by which tags.
 *
 * Any thread may call any function. One lock guards a pool. It is held while streams are queried and events recorded,
 * but not while the driver allocates or frees; a device must not call its pool while it holds a lock of its own. Cost:
 * O(log free blocks + blocks in use / 4096), without heap allocations once the bookkeeping has reached its final size.
 */
#ifndef STKI_CACHING_POOL_H
#define STKI_CACHING_POOL_H

#include "device_table.h"

stk_status stki_caching_pool_create(stk_device *device, stk_device_memory kind, stki_pool **out, stk_error *err);
/* Returns all memory to the driver, including blocks in use, which no stream may still access. NULL is allowed. */
void stki_caching_pool_destroy(stki_pool *pool);
/* Creates both pools of a device that has none yet; called before it is registered. */
stk_status stki_caching_pools_attach(stk_device *device, stk_error *err);
/* Destroys its pools, if it has any. */
void stki_caching_pools_detach(stk_device *device);

#endif
