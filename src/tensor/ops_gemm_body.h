/* ops_gemm_body.h: the loops of ops_gemm_loops.h, included once per instruction set. The including file defines the
 * vector size in bytes (VECTOR_BYTES) and the number of rows of two vectors whose sums fit in registers (TILE_ROWS). */
#include "ops_gemm_loops.h"
#include "ops_unaligned.h"
#include <string.h>

enum { TILE_VECTORS = 2 };

#define GEMM(name, type)                                                                          \
    typedef type vector_##name __attribute__((vector_size(VECTOR_BYTES)));                        \
    enum { LANES_##name = VECTOR_BYTES / sizeof(type) };                                          \
    static inline vector_##name load_##name(const type *at)                                       \
    {                                                                                             \
        vector_##name x;                                                                          \
        memcpy(&x, at, sizeof x);                                                                 \
        return x;                                                                                 \
    }                                                                                             \
    static inline void add_##name(type *to, vector_##name x)                                      \
    {                                                                                             \
        x += load_##name(to);                                                                     \
        memcpy(to, &x, sizeof x);                                                                 \
    }                                                                                             \
    static void tile_##name(void *c, int64_t c_step, const void *a, const void *b, int64_t depth) \
    {                                                                                             \
        const type *left = a, *right = b;                                                         \
        vector_##name low[TILE_ROWS] = {{0}}, high[TILE_ROWS] = {{0}};                            \
        type *to = c;                                                                             \
        for (int64_t k = 0; k < depth; k++) {                                                     \
            vector_##name y = load_##name(right), z = load_##name(right + LANES_##name);          \
            _Pragma("GCC unroll 16") for (int i = 0; i < TILE_ROWS; i++)                          \
            {                                                                                     \
                low[i] += left[i] * y;                                                            \
                high[i] += left[i] * z;                                                           \
            }                                                                                     \
            left += TILE_ROWS;                                                                    \
            right += TILE_VECTORS * LANES_##name;                                                 \
        }                                                                                         \
        _Pragma("GCC unroll 16") for (int i = 0; i < TILE_ROWS; i++)                              \
        {                                                                                         \
            add_##name(to + i * c_step, low[i]);                                                  \
            add_##name(to + i * c_step + LANES_##name, high[i]);                                  \
        }                                                                                         \
    }                                                                                             \
    static void dot_##name(void *c, const void *x, const void *y, int64_t n)                      \
    {                                                                                             \
        enum { LANES = 32 };                                                                      \
        const stki_##name *left = x, *right = y;                                                  \
        type lane[LANES] = {0};                                                                   \
        int64_t i = 0;                                                                            \
        for (; i + LANES <= n; i += LANES)                                                        \
            for (int k = 0; k < LANES; k++)                                                       \
                lane[k] += left[i + k] * right[i + k];                                            \
        for (int k = 0; i + k < n; k++)                                                           \
            lane[k] += left[i + k] * right[i + k];                                                \
        for (int width = LANES / 2; width > 0; width /= 2)                                        \
            for (int k = 0; k < width; k++)                                                       \
                lane[k] += lane[k + width];                                                       \
        *(stki_##name *)c += lane[0];                                                             \
    }                                                                                             \
    static void scale_add_##name(void *c, const void *x, const void *factor, int64_t n)           \
    {                                                                                             \
        stki_##name *to = c;                                                                      \
        const stki_##name *from = x;                                                              \
        type times = *(const stki_##name *)factor;                                                \
        STKI_NO_OVERLAP                                                                           \
        for (int64_t i = 0; i < n; i++)                                                           \
            to[i] += from[i] * times;                                                             \
    }
GEMM(f32, float)
GEMM(f64, double)
GEMM(u32, uint32_t)
GEMM(u64, uint64_t)

#define ROW(name)                                                                        \
    {                                                                                    \
        TILE_ROWS, TILE_VECTORS *LANES_##name, tile_##name, dot_##name, scale_add_##name \
    }
#define STKI_GEMM_BODY                                                                      \
    {                                                                                       \
        [STKI_GEMM_F32] = ROW(f32), [STKI_GEMM_F64] = ROW(f64), [STKI_GEMM_U32] = ROW(u32), \
        [STKI_GEMM_U64] = ROW(u64),                                                         \
    }
