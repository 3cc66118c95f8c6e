/* ops_stream_avx2.c: the loops of ops_stream.h for AVX2. */
#include "ops_stream.h"
#include "ops_unaligned.h"
#include <immintrin.h>
#include <string.h>

enum { VECTOR = 32 };

/* A single value is repeated in all lanes. Stores are sequential, so each line is complete before the next one starts,
 * as write combining requires. */
#define STREAM(name, type, op)                                                      \
    static inline void name##_step(char *to, vector_##type p, vector_##type q)      \
    {                                                                               \
        vector_##type result = p op q;                                              \
        _mm256_stream_si256((__m256i *)(void *)to, (__m256i)result);                \
    }                                                                               \
    static void name##_both(void *dst, const void *a, const void *b, int64_t n)     \
    {                                                                               \
        const char *left = a, *right = b;                                           \
        char *to = dst;                                                             \
        for (int64_t i = 0; i < n * (int64_t)sizeof(stki_##type); i += VECTOR)      \
            name##_step(to + i, load_##type(left + i), load_##type(right + i));     \
    }                                                                               \
    static void name##_with_one(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                               \
        const char *left = a;                                                       \
        vector_##type q = repeat_##type(b);                                         \
        char *to = dst;                                                             \
        for (int64_t i = 0; i < n * (int64_t)sizeof(stki_##type); i += VECTOR)      \
            name##_step(to + i, load_##type(left + i), q);                          \
    }                                                                               \
    static void name##_one_with(void *dst, const void *a, const void *b, int64_t n) \
    {                                                                               \
        const char *right = b;                                                      \
        vector_##type p = repeat_##type(a);                                         \
        char *to = dst;                                                             \
        for (int64_t i = 0; i < n * (int64_t)sizeof(stki_##type); i += VECTOR)      \
            name##_step(to + i, p, load_##type(right + i));                         \
    }

#define TYPE(name, type)                                             \
    typedef type vector_##name __attribute__((vector_size(VECTOR))); \
    static inline vector_##name load_##name(const void *at)          \
    {                                                                \
        vector_##name x;                                             \
        memcpy(&x, at, sizeof x);                                    \
        return x;                                                    \
    }                                                                \
    static inline vector_##name repeat_##name(const void *at)        \
    {                                                                \
        return (vector_##name){0} + *(const stki_##name *)at;        \
    }                                                                \
    STREAM(add_##name, name, +)                                      \
    STREAM(sub_##name, name, -)                                      \
    STREAM(mul_##name, name, *)
TYPE(u8, uint8_t)
TYPE(u16, uint16_t)
TYPE(u32, uint32_t)
TYPE(u64, uint64_t)
TYPE(f32, float)
TYPE(f64, double)
STREAM(div_f32, f32, /)
STREAM(div_f64, f64, /)

#define ROW(name)                                     \
    {                                                 \
        name##_both, name##_with_one, name##_one_with \
    }
#define ROWS(op)                                                                                                    \
    {                                                                                                               \
        [STK_U8] = ROW(op##_u8), [STK_I8] = ROW(op##_u8), [STK_U16] = ROW(op##_u16), [STK_I16] = ROW(op##_u16),     \
        [STK_U32] = ROW(op##_u32), [STK_I32] = ROW(op##_u32), [STK_U64] = ROW(op##_u64), [STK_I64] = ROW(op##_u64), \
        [STK_F32] = ROW(op##_f32), [STK_F64] = ROW(op##_f64),                                                       \
    }

const stki_loops stki_stream_loops_avx2[STKI_LOOPS][STK_DTYPE_END] = {
    [STKI_LOOP_ADD] = ROWS(add),
    [STKI_LOOP_SUB] = ROWS(sub),
    [STKI_LOOP_MUL] = ROWS(mul),
    [STKI_LOOP_DIV] = {[STK_F32] = ROW(div_f32), [STK_F64] = ROW(div_f64)},
};
