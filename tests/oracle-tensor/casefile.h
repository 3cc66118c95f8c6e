/* casefile.h: reads the case files of this directory. C99, no library needed.
 *
 *   cf f;
 *   if (cf_open(&f, path)) ...           0 on success
 *   while (cf_next(&f)) {                one statement: f.tok[0..f.n-1], f.line
 *       if (!strcmp(f.tok[0], "case")) ...
 *   }
 *   cf_close(&f);
 *
 * It also parses lists and hex digits, and has SHA-256, the gen sequence, and the two rewrites that precede a
 * comparison (all NaNs to one pattern, and -0.0 to +0.0 for hexz and shaz). */
#ifndef CASEFILE_H
#define CASEFILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CF_LINE_MAX 4608 /* no line of the files is longer than 4,096 bytes */
#define CF_TOK_MAX 16

typedef struct {
    FILE *fp;
    int line, n;
    char buf[CF_LINE_MAX];
    char *tok[CF_TOK_MAX];
} cf;

static inline int cf_open(cf *f, const char *path)
{
    f->line = f->n = 0;
    f->fp = fopen(path, "rb");
    return f->fp ? 0 : -1;
}

static inline void cf_close(cf *f)
{
    fclose(f->fp);
}

/* Reads the next statement; skips blank lines and comments. Returns 1, 0 at the end, or -1 for a bad line. */
static inline int cf_next(cf *f)
{
    while (fgets(f->buf, sizeof f->buf, f->fp)) {
        size_t len = strlen(f->buf);
        f->line++;
        if (len == 0 || f->buf[len - 1] != '\n')
            return -1;
        f->buf[--len] = '\0';
        if (len == 0 || f->buf[0] == '#')
            continue;
        f->n = 0;
        for (char *p = f->buf; p;) {
            if (f->n == CF_TOK_MAX)
                return -1;
            f->tok[f->n++] = p;
            p = strchr(p, ' ');
            if (p)
                *p++ = '\0';
        }
        return 1;
    }
    return 0;
}

/* Parses "()" or "1,2,3". Returns the count, or -1. Integers only; see cf_reals. */
static inline int cf_ints(const char *s, int64_t *out, int max)
{
    int n = 0;
    if (!strcmp(s, "()"))
        return 0;
    for (;;) {
        char *end;
        long long v = strtoll(s, &end, 10);
        if (end == s || n == max)
            return -1;
        out[n++] = v;
        if (*end == '\0')
            return n;
        if (*end != ',')
            return -1;
        s = end + 1;
    }
}

static inline int cf_reals(const char *s, double *out, int max)
{
    int n = 0;
    if (!strcmp(s, "()"))
        return 0;
    for (;;) {
        char *end;
        double v = strtod(s, &end);
        if (end == s || n == max)
            return -1;
        out[n++] = v;
        if (*end == '\0')
            return n;
        if (*end != ',')
            return -1;
        s = end + 1;
    }
}

static inline int cf_nibble(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses "-" or hex digits. Returns the number of bytes, or -1. */
static inline long cf_hex(const char *s, unsigned char *out, size_t max)
{
    size_t n = 0;
    if (!strcmp(s, "-"))
        return 0;
    for (; *s; s += 2) {
        int a = cf_nibble(s[0]), b = a < 0 ? -1 : cf_nibble(s[1]);
        if (b < 0 || n == max)
            return -1;
        out[n++] = (unsigned char)(a << 4 | b);
    }
    return (long)n;
}

/* The next value of gen: an integer in [lo, hi]. *state starts as the seed. */
static inline int64_t cf_gen(uint64_t *state, int64_t lo, int64_t hi)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return lo + (int64_t)((z >> 11) % ((uint64_t)(hi - lo) + 1));
}

/* Element size and bit patterns of a float format. */
typedef struct {
    int size;
    uint64_t mask, inf, nan, sign;
} cf_float;

static inline int cf_float_format(const char *dt, cf_float *o)
{
    static const struct {
        const char *name;
        cf_float f;
    } t[] = {
        {"f16", {2, 0x7FFF, 0x7C00, 0x7E00, 0x8000}},
        {"bf16", {2, 0x7FFF, 0x7F80, 0x7FC0, 0x8000}},
        {"f32", {4, 0x7FFFFFFF, 0x7F800000, 0x7FC00000, 0x80000000}},
        {"c64", {4, 0x7FFFFFFF, 0x7F800000, 0x7FC00000, 0x80000000}},
        {"f64", {8, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 0x8000000000000000}},
        {"c128", {8, 0x7FFFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 0x8000000000000000}},
    };
    for (size_t k = 0; k < sizeof t / sizeof *t; k++)
        if (!strcmp(dt, t[k].name)) {
            *o = t[k].f;
            return 1;
        }
    return 0;
}

/* Rewrites bytes before they are compared: every NaN to one pattern, and if `zero` is set, -0.0 to +0.0. */
static inline void cf_canon(const char *dt, unsigned char *p, size_t bytes, int zero)
{
    cf_float f;
    if (!cf_float_format(dt, &f))
        return;
    for (size_t i = 0; i + (size_t)f.size <= bytes; i += (size_t)f.size) {
        uint64_t v = 0;
        for (int k = f.size - 1; k >= 0; k--)
            v = v << 8 | p[i + (size_t)k];
        if ((v & f.mask) > f.inf)
            v = f.nan;
        else if (zero && v == f.sign)
            v = 0;
        else
            continue;
        for (int k = 0; k < f.size; k++)
            p[i + (size_t)k] = (unsigned char)(v >> (8 * k));
    }
}

static inline uint32_t cf_ror(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static inline void cf_sha_block(uint32_t h[8], const unsigned char *p)
{
    static const uint32_t K[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = cf_ror(w[i - 15], 7) ^ cf_ror(w[i - 15], 18) ^ w[i - 15] >> 3,
                 b = cf_ror(w[i - 2], 17) ^ cf_ror(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + a + w[i - 7] + b;
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t1 = s[7] + (cf_ror(e, 6) ^ cf_ror(e, 11) ^ cf_ror(e, 25)) + ((e & s[5]) ^ (~e & s[6])) + K[i] + w[i];
        uint32_t t2 = (cf_ror(a, 2) ^ cf_ror(a, 13) ^ cf_ror(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

/* The digest of n bytes, in lower-case hex. */
static inline void cf_sha256(const unsigned char *p, size_t n, char out[65])
{
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned char tail[128] = {0};
    size_t k = 0, rest, len;
    for (; k + 64 <= n; k += 64)
        cf_sha_block(h, p + k);
    rest = n - k;
    if (rest)
        memcpy(tail, p + k, rest);
    tail[rest] = 0x80;
    len = rest < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++)
        tail[len - 1 - (size_t)i] = (unsigned char)((uint64_t)n * 8 >> (8 * i));
    for (k = 0; k < len; k += 64)
        cf_sha_block(h, tail + k);
    for (int i = 0; i < 8; i++)
        sprintf(out + 8 * i, "%08x", (unsigned)h[i]);
}

#endif
