/* transfer.h: copies bytes and elements between memory spaces, in stream order. The core queues its work on a device in
 * one stream: the given one, or the thread's current one. If both are NULL, the work is synchronous. If the copy reads
 * or writes host memory that the caller may reuse after the call, the call waits for the stream, unless, as in torch,
 * the caller requested `non_blocking` and the memory is pinned. */
#ifndef STKI_TRANSFER_H
#define STKI_TRANSFER_H

#include "stream.h"

/* Copies elements of `src` to `dst`, which has the same shape; any two dtypes and devices, no overlap. Only the stream
 * is checked: it must belong to one of the two devices (STK_E_BAD_DEVICE). Copies that go through host memory,
 * because they are strided or cast there, are complete when the call returns. */
stk_status stki_tensor_transfer_on(const stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                                   stk_error *err);

#endif
