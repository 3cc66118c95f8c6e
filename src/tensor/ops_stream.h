/* ops_stream.h: stores that go past the caches, for outputs larger than those. */
#ifndef STKI_OPS_STREAM_H
#define STKI_OPS_STREAM_H

#include <stdint.h>

typedef void (*stki_stream_fn)(uint8_t *dst, const uint8_t *src, int64_t bytes);

/* Copies with non-temporal stores, any alignment; NULL: this processor's variant has none. Whoever used it runs
 * stki_store_fence() before other threads may look. */
stki_stream_fn stki_stream_copy(void);

#endif
