/* digest.h: 128-bit digests. A fingerprint identifies content; a sum of digests modulo 2^128 does not depend on the
 * order of its parts. Uses XXH3-128 of xxHash, so that other programs can compute the same values. */
#ifndef STKI_DIGEST_H
#define STKI_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stki_u128 {
    uint64_t low, high;
} stki_u128;

static inline stki_u128 stki_u128_add(stki_u128 a, stki_u128 b)
{
    uint64_t low = a.low + b.low;

    return (stki_u128){low, a.high + b.high + (low < a.low)};
}

static inline bool stki_u128_equal(stki_u128 a, stki_u128 b)
{
    return a.low == b.low && a.high == b.high;
}

enum { STKI_U128_TEXT = 33 };
/* Writes 32 hexadecimal digits, most significant first, and returns `text`. */
const char *stki_u128_text(stki_u128 value, char text[STKI_U128_TEXT]);
/* Parses the digits that stki_u128_text writes; false if they are malformed or there are other characters before or
 * after them. */
bool stki_u128_read(const char *text, stki_u128 *out);

stki_u128 stki_digest(const void *data, int64_t bytes);
uint64_t stki_digest_64(const void *data, int64_t bytes);

/* The digest of data that arrives in chunks. NULL: out of memory. */
typedef struct stki_digest_stream stki_digest_stream;
stki_digest_stream *stki_digest_stream_create(void);
void stki_digest_stream_add(stki_digest_stream *stream, const void *data, int64_t bytes);
uint64_t stki_digest_stream_64(const stki_digest_stream *stream); /* digest of all data so far */
void stki_digest_stream_destroy(stki_digest_stream *stream);      /* NULL is allowed */

/* Fingerprints are built part by part: each part is hashed together with the previous fingerprint. */
void stki_fingerprint_bytes(stki_u128 *fingerprint, const void *data, int64_t bytes);
void stki_fingerprint_number(stki_u128 *fingerprint, int64_t number);
void stki_fingerprint_text(stki_u128 *fingerprint, const char *text); /* NULL and "" differ */

/* Adds the XXH3-128 of each of `count` records of `words` 64-bit words (little-endian) to `sum`; words <= 8. */
void stki_digest_add(stki_u128 *sum, const uint64_t *records, int words, int64_t count);

#endif
