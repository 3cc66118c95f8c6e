/* ops_extreme_body.h: the loops of ops_extreme_loops.h, included once per instruction set. */
#include "ops_extreme_loops.h"
#include "ops_unaligned.h"

/* `p` beats `q`. NaN is the only value unequal to itself; for integers compilers remove that test. */
#define LESS(p, q) ((p) < (q) || (p) != (p))
#define MORE(p, q) ((p) > (q) || (p) != (p))

/* A row has LANES partial results, so that the inner loop is vectorized; the order does not matter for a minimum. In
 * columns_at a NaN must not replace an earlier NaN, so the old value is also tested. */
#define EXTREME(name, type, which, BEATS)                                                                        \
    static void row_##which##_##name(void *best, const void *x, int64_t n)                                       \
    {                                                                                                            \
        enum { LANES = 128 / sizeof(type) };                                                                     \
        const stki_##name *at = x;                                                                               \
        type lane[LANES], result = *(stki_##name *)best;                                                         \
        int64_t i = 0;                                                                                           \
        if (n >= LANES) {                                                                                        \
            for (int k = 0; k < LANES; k++)                                                                      \
                lane[k] = result;                                                                                \
            for (; i + LANES <= n; i += LANES)                                                                   \
                for (int k = 0; k < LANES; k++)                                                                  \
                    lane[k] = BEATS(at[i + k], lane[k]) ? at[i + k] : lane[k];                                   \
            for (int k = 0; k < LANES; k++)                                                                      \
                result = BEATS(lane[k], result) ? lane[k] : result;                                              \
        }                                                                                                        \
        for (; i < n; i++)                                                                                       \
            result = BEATS(at[i], result) ? at[i] : result;                                                      \
        *(stki_##name *)best = result;                                                                           \
    }                                                                                                            \
    static void columns_##which##_##name(void *best, const void *x, int64_t n)                                   \
    {                                                                                                            \
        stki_##name *old = best;                                                                                 \
        const stki_##name *at = x;                                                                               \
        STKI_NO_OVERLAP                                                                                          \
        for (int64_t j = 0; j < n; j++)                                                                          \
            old[j] = BEATS(at[j], old[j]) ? at[j] : old[j];                                                      \
    }                                                                                                            \
    static bool beats_##which##_##name(const void *x, const void *best)                                          \
    {                                                                                                            \
        type p = *(const stki_##name *)x, q = *(const stki_##name *)best;                                        \
        return BEATS(p, q) && q == q;                                                                            \
    }                                                                                                            \
    static void columns_at_##which##_##name(void *best, int64_t *index, const void *x, int64_t n, int64_t place) \
    {                                                                                                            \
        stki_##name *old = best;                                                                                 \
        const stki_##name *at = x;                                                                               \
        STKI_NO_OVERLAP                                                                                          \
        for (int64_t j = 0; j < n; j++) {                                                                        \
            bool better = (BEATS(at[j], old[j])) & (old[j] == old[j]);                                           \
            old[j] = better ? at[j] : old[j];                                                                    \
            index[j] = better ? place : index[j];                                                                \
        }                                                                                                        \
    }
#define BOTH(name, type)                                                    \
    static int64_t find_##name(const void *value, const void *x, int64_t n) \
    {                                                                       \
        const stki_##name *at = x;                                          \
        type wanted = *(const stki_##name *)value;                          \
        for (int64_t i = 0; i < n; i++)                                     \
            if (at[i] == wanted || (wanted != wanted && at[i] != at[i]))    \
                return i;                                                   \
        return -1;                                                          \
    }                                                                       \
    EXTREME(name, type, min, LESS)                                          \
    EXTREME(name, type, max, MORE)
BOTH(u8, uint8_t)
BOTH(i8, int8_t)
BOTH(u16, uint16_t)
BOTH(i16, int16_t)
BOTH(u32, uint32_t)
BOTH(i32, int32_t)
BOTH(u64, uint64_t)
BOTH(i64, int64_t)
BOTH(f32, float)
BOTH(f64, double)

#define ROW(which, name)                                                                          \
    {                                                                                             \
        row_##which##_##name, columns_##which##_##name, find_##name, columns_at_##which##_##name, \
            beats_##which##_##name                                                                \
    }
#define ROWS(which)                                                                            \
    {                                                                                          \
        [STK_BOOL] = ROW(which, u8), [STK_U8] = ROW(which, u8), [STK_I8] = ROW(which, i8),     \
        [STK_U16] = ROW(which, u16), [STK_I16] = ROW(which, i16), [STK_U32] = ROW(which, u32), \
        [STK_I32] = ROW(which, i32), [STK_U64] = ROW(which, u64), [STK_I64] = ROW(which, i64), \
        [STK_F32] = ROW(which, f32), [STK_F64] = ROW(which, f64)                               \
    }
#define STKI_EXTREME_BODY    \
    {                        \
        ROWS(min), ROWS(max) \
    }
