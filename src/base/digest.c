/* digest.c: see digest.h. xxHash is inlined, because for many short records function calls would take longer than the
 * hashing itself. */
#include "digest.h"
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static stki_u128 of_hash(XXH128_hash_t hash)
{
    return (stki_u128){hash.low64, hash.high64};
}

const char *stki_u128_text(stki_u128 value, char text[STKI_U128_TEXT])
{
    snprintf(text, STKI_U128_TEXT, "%016" PRIx64 "%016" PRIx64, value.high, value.low);
    return text;
}

static bool read_word(const char *text, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 16; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;

        if (!digit)
            return false;
        *out = *out << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

bool stki_u128_read(const char *text, stki_u128 *out)
{
    return strlen(text) == 32 && read_word(text, &out->high) && read_word(text + 16, &out->low);
}

stki_u128 stki_digest(const void *data, int64_t bytes)
{
    return of_hash(XXH3_128bits(data, (size_t)bytes));
}

uint64_t stki_digest_64(const void *data, int64_t bytes)
{
    return XXH3_64bits(data, (size_t)bytes);
}

void stki_fingerprint_bytes(stki_u128 *fingerprint, const void *data, int64_t bytes)
{
    stki_u128 part = stki_digest(data, bytes);
    uint64_t words[4] = {htole64(fingerprint->low), htole64(fingerprint->high), htole64(part.low), htole64(part.high)};

    *fingerprint = stki_digest(words, sizeof words);
}

void stki_fingerprint_number(stki_u128 *fingerprint, int64_t number)
{
    uint64_t word = htole64((uint64_t)number);

    stki_fingerprint_bytes(fingerprint, &word, sizeof word);
}

void stki_fingerprint_text(stki_u128 *fingerprint, const char *text)
{
    stki_fingerprint_number(fingerprint, text ? (int64_t)strlen(text) : -1);
    stki_fingerprint_bytes(fingerprint, text ? text : "", text ? (int64_t)strlen(text) : 0);
}

void stki_digest_add(stki_u128 *sum, const uint64_t *records, int words, int64_t count)
{
    stki_u128 total = *sum;

    for (int64_t i = 0; i < count; i++) {
        uint64_t record[8];

        for (int k = 0; k < words; k++)
            record[k] = htole64(records[i * words + k]);
        total = stki_u128_add(total, of_hash(XXH3_128bits(record, (size_t)words * sizeof *record)));
    }
    *sum = total;
}
