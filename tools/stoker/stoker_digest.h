/* stoker_digest.h: the SHA-256 of values as C-order little-endian bytes, whatever their strides and byte order are. */
#ifndef STOKER_DIGEST_H
#define STOKER_DIGEST_H

#include "container.h"

enum { ST_DIGEST_TEXT = 65 };

/* Of a whole member: its array, or all its samples one after the other. */
stk_status st_digest_member(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                            char text[ST_DIGEST_TEXT], stk_error *err);

#endif
