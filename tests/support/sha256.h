/* sha256.h: SHA-256 (FIPS 180-4) for the oracle drivers. */
#ifndef STKT_SHA256_H
#define STKT_SHA256_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct stkt_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} stkt_sha256;

static inline uint32_t stkt_rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static inline void stkt_sha256_block(uint32_t *state, const unsigned char *block)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], v[8];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = stkt_rotr(w[i - 15], 7) ^ stkt_rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t b = stkt_rotr(w[i - 2], 17) ^ stkt_rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = stkt_rotr(v[4], 6) ^ stkt_rotr(v[4], 11) ^ stkt_rotr(v[4], 25);
        uint32_t s0 = stkt_rotr(v[0], 2) ^ stkt_rotr(v[0], 13) ^ stkt_rotr(v[0], 22);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

static inline void stkt_sha256_init(stkt_sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->state, start, sizeof start);
}

static inline void stkt_sha256_add(stkt_sha256 *s, const void *data, size_t bytes)
{
    const unsigned char *from = data;

    while (bytes > 0) {
        size_t used = s->bytes % 64, n = 64 - used < bytes ? 64 - used : bytes;
        memcpy(s->block + used, from, n);
        s->bytes += n;
        from += n;
        bytes -= n;
        if (s->bytes % 64 == 0)
            stkt_sha256_block(s->state, s->block);
    }
}

/* Writes 64 hexadecimal digits and a NUL. */
static inline void stkt_sha256_end(stkt_sha256 *s, char out[65])
{
    static const unsigned char padding[64] = {0x80};
    uint64_t bits = s->bytes * 8;
    unsigned char length[8];

    stkt_sha256_add(s, padding, 1 + (119 - s->bytes % 64) % 64);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    stkt_sha256_add(s, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(out + 8 * i, 9, "%08x", (unsigned)s->state[i]);
}

static inline void stkt_sha256_of(const void *data, size_t bytes, char out[65])
{
    stkt_sha256 s;

    stkt_sha256_init(&s);
    if (bytes > 0)
        stkt_sha256_add(&s, data, bytes);
    stkt_sha256_end(&s, out);
}

#endif
