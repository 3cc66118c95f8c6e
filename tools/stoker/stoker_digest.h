/* stoker_digest.h: SHA-256 of values as C-order little-endian bytes, regardless of strides and byte order. */
#ifndef STOKER_DIGEST_H
#define STOKER_DIGEST_H

#include "container.h"

enum { ST_DIGEST_TEXT = 65 };

/* Digest of a member: its array, or all its samples in sequence. */
stk_status st_digest_member(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                            char text[ST_DIGEST_TEXT], stk_error *err);

#endif
