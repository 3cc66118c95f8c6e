/* transfer.h: bytes and elements across memory spaces, in the order of streams.
 *
 * Work of the core on a device goes to one stream: the one that was given, or the thread's current one; NULL is done at
 * once. Where ordinary memory is read or written that the caller may use again when the call returns, the stream is
 * waited for: unless the caller asked not to (`non_blocking`) and the memory is pinned, as in torch.
 */
#ifndef STKI_TRANSFER_H
#define STKI_TRANSFER_H

#include "stream.h"

/* Elements of `src` into `dst` of the same shape, any two dtypes and devices, no overlap, nothing checked but the
 * stream, which must belong to one of the two devices (STK_E_BAD_DEVICE). What goes by way of ordinary memory because
 * it is strided or cast there is done when the call returns. */
stk_status stki_tensor_transfer_on(const stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                                   stk_error *err);

#endif
