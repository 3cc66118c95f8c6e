/* caching_pool.h: a device's memory for tensors: what is freed is kept and given to the next one, because a driver
 * needs from tens of microseconds to milliseconds for what costs less than one here. One pool each for device memory
 * and for pinned host memory, over the device's ops->alloc and ops->alloc_pinned; device_table.h has the calls.
 *
 * The rules (those of PyTorch's allocator, by and large, so that its users find what they know):
 *
 *   sizes        Blocks are multiples of 512 bytes. The driver is asked for segments, blocks are cut off their front.
 *
 *                asked                segment (device memory)      segment (pinned memory)
 *                up to 1 MiB          2 MiB, "small"               2 MiB, "small"
 *                up to 10 MiB         20 MiB, "medium"             as many pages of 4 KiB as it takes, "large"
 *                more                 rounded up to 2 MiB, "large" the same
 *                exact                those bytes, no more, "exact"
 *
 *                No size is ever doubled or rounded to a power of two.
 *   choice       The smallest free block that is large enough, among equals the one with the lowest address: the same
 *                calls find the same blocks. Small requests never touch the segments of larger ones.
 *   split        The rest of a block stays free where it can serve anybody: from 512 bytes on in small segments, above
 * 1 MiB in others. Neighbours that are free are one block again at once. streams      A segment belongs to the stream
 * that it was first made for, and its free blocks go to that stream only, without any waiting: the stream's own order
 * keeps old and new users apart. Work of other streams is recorded (record_stream); such a block is taken back when
 * events behind that work have passed. NULL is a stream of its own. When a stream is destroyed, its segments belong to
 * nobody, and to whoever needs them first. pinned       The processor is the user and orders nothing, so there every
 * stream is recorded, the one it was made for too, and all free blocks are one pool. exact        For what lives long,
 * such as the slots of a ring: straight from the driver and back to it, but counted. giving back  Only whole free
 * segments, and only where the stream that had them last has passed; nothing is waited for. In use, or half in use,
 * stays. no memory    Where the driver has none: what events have set free since, then the whole cache is given back,
 * then what streams still work on is waited for (10 s at most), each time with a new try. Then STK_E_MEMORY with a
 * message that says what was asked, what is held, by whom, and what the driver said.
 *
 * Any thread may call anything. One lock guards a pool. It is held while streams are asked and events recorded, not
 * while the driver allocates or frees; a device must not call its pool with a lock of its own held. Cost: O(log free
 * blocks), and nothing comes from the heap once the bookkeeping has grown to its size.
 */
#ifndef STKI_CACHING_POOL_H
#define STKI_CACHING_POOL_H

#include "device_table.h"

stk_status stki_caching_pool_create(stk_device *device, stk_device_memory kind, stki_pool **out, stk_error *err);
/* Everything goes back to the driver, what is in use as well: no stream works on it any more. NULL is fine. */
void stki_caching_pool_destroy(stki_pool *pool);
/* Both pools for a device that has none yet; called before it is registered. */
stk_status stki_caching_pools_attach(stk_device *device, stk_error *err);
/* Destroys what it has; fine where there is none. */
void stki_caching_pools_detach(stk_device *device);

/* How long an allocation waits for streams before it fails for want of memory. */
void stki_caching_pool_set_patience(stki_pool *pool, int64_t patience_ns);

#endif
