/* cast.c: see cast.h. */
#include "cast.h"
#include "dtype.h"
#include "small_float.h"
#include "tensor_internal.h"
#include <string.h>

enum { BLOCK = 256 }; /* elements converted at once through a wide form: 2 KiB, which stays in the L1 cache */

enum wide_form { WIDE_I64, WIDE_U64, WIDE_F32, WIDE_F64, WIDE_FORMS };

/* ---- single values ---- */

uint16_t stki_f32_to_f16(float x)
{
    return stki_f16_encode(x);
}

float stki_f16_to_f32(uint16_t x)
{
    return stki_f16_decode(x);
}

uint16_t stki_f32_to_bf16(float x)
{
    return stki_bf16_encode(x);
}

float stki_bf16_to_f32(uint16_t x)
{
    return stki_bf16_decode(x);
}

/* Float to integer: truncates, saturates, NaN becomes 0. Both limits of the types up to 32 bits are exact in double. */
static inline double clamp_double(double x, double low, double high)
{
    return x != x ? 0.0 : x < low ? low : x > high ? high : x;
}

static inline int64_t real_to_i64(double x)
{
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : x != x ? 0 : (int64_t)x;
}

static inline uint64_t real_to_u64(double x)
{
    return x >= 0x1p64 ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}

/* ---- loading ---- */

/* Contiguous elements have a loop of their own, because the compiler vectorizes only loops with a constant step. */
#define LOAD(name, type, wide_type, expression)                                           \
    static void load_##name(void *wide, const char *src, int64_t src_step, int64_t count) \
    {                                                                                     \
        wide_type *to = wide;                                                             \
        type x;                                                                           \
        if (src_step == (int64_t)sizeof x) {                                              \
            for (int64_t i = 0; i < count; i++) {                                         \
                memcpy(&x, src + i * (int64_t)sizeof x, sizeof x);                        \
                to[i] = (wide_type)(expression);                                          \
            }                                                                             \
        } else {                                                                          \
            for (int64_t i = 0; i < count; i++) {                                         \
                memcpy(&x, src + i * src_step, sizeof x);                                 \
                to[i] = (wide_type)(expression);                                          \
            }                                                                             \
        }                                                                                 \
    }

LOAD(bool, uint8_t, int64_t, x != 0)
LOAD(u8, uint8_t, int64_t, x)
LOAD(i8, int8_t, int64_t, x)
LOAD(u16, uint16_t, int64_t, x)
LOAD(i16, int16_t, int64_t, x)
LOAD(u32, uint32_t, int64_t, x)
LOAD(i32, int32_t, int64_t, x)
LOAD(u64, uint64_t, uint64_t, x)
LOAD(i64, int64_t, int64_t, x)
LOAD(f16, uint16_t, float, stki_f16_decode(x))
LOAD(bf16, uint16_t, float, stki_bf16_decode(x))
LOAD(f8_e4m3fn, uint8_t, float, stki_f8_e4m3fn_decode(x))
LOAD(f8_e5m2, uint8_t, float, stki_f8_e5m2_decode(x))
LOAD(f32, float, float, x)
LOAD(f64, double, double, x)

static const struct load_row {
    stki_cast_load_fn load;
    enum wide_form form;
} loads[STK_DTYPE_END] = {
    [STK_BOOL] = {load_bool, WIDE_I64}, [STK_U8] = {load_u8, WIDE_I64},
    [STK_I8] = {load_i8, WIDE_I64},     [STK_U16] = {load_u16, WIDE_I64},
    [STK_I16] = {load_i16, WIDE_I64},   [STK_U32] = {load_u32, WIDE_I64},
    [STK_I32] = {load_i32, WIDE_I64},   [STK_U64] = {load_u64, WIDE_U64},
    [STK_I64] = {load_i64, WIDE_I64},   [STK_F16] = {load_f16, WIDE_F32},
    [STK_BF16] = {load_bf16, WIDE_F32}, [STK_F8_E4M3FN] = {load_f8_e4m3fn, WIDE_F32},
    [STK_F32] = {load_f32, WIDE_F32},   [STK_F8_E5M2] = {load_f8_e5m2, WIDE_F32},
    [STK_F64] = {load_f64, WIDE_F64},
};

/* ---- storing ---- */

#define STORE(name, form, wide_type, type, expression)                                              \
    static void store_##name##_##form(char *dst, int64_t dst_step, const void *wide, int64_t count) \
    {                                                                                               \
        const wide_type *from = wide;                                                               \
        if (dst_step == (int64_t)sizeof(type)) {                                                    \
            for (int64_t i = 0; i < count; i++) {                                                   \
                wide_type x = from[i];                                                              \
                type y = (type)(expression);                                                        \
                memcpy(dst + i * (int64_t)sizeof y, &y, sizeof y);                                  \
            }                                                                                       \
        } else {                                                                                    \
            for (int64_t i = 0; i < count; i++) {                                                   \
                wide_type x = from[i];                                                              \
                type y = (type)(expression);                                                        \
                memcpy(dst + i * dst_step, &y, sizeof y);                                           \
            }                                                                                       \
        }                                                                                           \
    }

#define STORE_REALS(form, wide_type)                                            \
    STORE(f16, form, wide_type, uint16_t, stki_f16_encode((float)x))            \
    STORE(bf16, form, wide_type, uint16_t, stki_bf16_encode((float)x))          \
    STORE(f8_e4m3fn, form, wide_type, uint8_t, stki_f8_e4m3fn_encode((float)x)) \
    STORE(f8_e5m2, form, wide_type, uint8_t, stki_f8_e5m2_encode((float)x))     \
    STORE(f32, form, wide_type, float, x)                                       \
    STORE(f64, form, wide_type, double, x)

/* Stores integers by keeping the low bits (two's complement wraps), so signed and unsigned types share a function. */
#define STORE_WHOLE_FROM_WHOLE(form, wide_type)   \
    STORE(bool, form, wide_type, uint8_t, x != 0) \
    STORE(8, form, wide_type, uint8_t, x)         \
    STORE(16, form, wide_type, uint16_t, x)       \
    STORE(32, form, wide_type, uint32_t, x)       \
    STORE(64, form, wide_type, uint64_t, x)

#define STORE_WHOLE_FROM_REAL(form, wide_type)                                          \
    STORE(bool, form, wide_type, uint8_t, x != 0)                                       \
    STORE(u8, form, wide_type, uint8_t, clamp_double((double)x, 0, UINT8_MAX))          \
    STORE(i8, form, wide_type, int8_t, clamp_double((double)x, INT8_MIN, INT8_MAX))     \
    STORE(u16, form, wide_type, uint16_t, clamp_double((double)x, 0, UINT16_MAX))       \
    STORE(i16, form, wide_type, int16_t, clamp_double((double)x, INT16_MIN, INT16_MAX)) \
    STORE(u32, form, wide_type, uint32_t, clamp_double((double)x, 0, UINT32_MAX))       \
    STORE(i32, form, wide_type, int32_t, clamp_double((double)x, INT32_MIN, INT32_MAX)) \
    STORE(u64, form, wide_type, uint64_t, real_to_u64((double)x))                       \
    STORE(i64, form, wide_type, int64_t, real_to_i64((double)x))

STORE_WHOLE_FROM_WHOLE(wi64, int64_t)
STORE_WHOLE_FROM_REAL(wf32, float)
STORE_WHOLE_FROM_REAL(wf64, double)
STORE_REALS(wi64, int64_t)
STORE_REALS(wu64, uint64_t)
STORE_REALS(wf32, float)
STORE_REALS(wf64, double)

#define ROW_REALS(form)                                                                                     \
    [STK_F16] = store_f16_##form, [STK_BF16] = store_bf16_##form, [STK_F8_E4M3FN] = store_f8_e4m3fn_##form, \
    [STK_F8_E5M2] = store_f8_e5m2_##form, [STK_F32] = store_f32_##form, [STK_F64] = store_f64_##form
#define ROW_WHOLE_FROM_WHOLE                                                                                    \
    [STK_BOOL] = store_bool_wi64, [STK_U8] = store_8_wi64, [STK_I8] = store_8_wi64, [STK_U16] = store_16_wi64,  \
    [STK_I16] = store_16_wi64, [STK_U32] = store_32_wi64, [STK_I32] = store_32_wi64, [STK_U64] = store_64_wi64, \
    [STK_I64] = store_64_wi64
#define ROW_WHOLE_FROM_REAL(form)                                                             \
    [STK_BOOL] = store_bool_##form, [STK_U8] = store_u8_##form, [STK_I8] = store_i8_##form,   \
    [STK_U16] = store_u16_##form, [STK_I16] = store_i16_##form, [STK_U32] = store_u32_##form, \
    [STK_I32] = store_i32_##form, [STK_U64] = store_u64_##form, [STK_I64] = store_i64_##form

static const stki_cast_store_fn stores[WIDE_FORMS][STK_DTYPE_END] = {
    [WIDE_I64] = {ROW_WHOLE_FROM_WHOLE, ROW_REALS(wi64)},
    [WIDE_U64] = {ROW_WHOLE_FROM_WHOLE, ROW_REALS(wu64)},
    [WIDE_F32] = {ROW_WHOLE_FROM_REAL(wf32), ROW_REALS(wf32)},
    [WIDE_F64] = {ROW_WHOLE_FROM_REAL(wf64), ROW_REALS(wf64)},
};

/* ---- rows ---- */

#define COPY_ELEMENTS(size)                                                                                            \
    static void copy_row_##size(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step, \
                                int64_t count)                                                                         \
    {                                                                                                                  \
        (void)cast;                                                                                                    \
        if (dst_step == size && src_step == size) {                                                                    \
            memmove(dst, src, (size_t)count *size);                                                                    \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < count; i++)                                                                            \
            memmove(dst + i * dst_step, src + i * src_step, size);                                                     \
    }

COPY_ELEMENTS(1)
COPY_ELEMENTS(2)
COPY_ELEMENTS(4)
COPY_ELEMENTS(8)
COPY_ELEMENTS(16)

#define SWAP_ELEMENTS(size, type, swap)                                                                        \
    static void swap_row_##size(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t count) \
    {                                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                                  \
            type x;                                                                                            \
            memcpy(&x, src + i * src_step, size);                                                              \
            x = swap(x);                                                                                       \
            memcpy(dst + i * dst_step, &x, size);                                                              \
        }                                                                                                      \
    }

SWAP_ELEMENTS(2, uint16_t, __builtin_bswap16)
SWAP_ELEMENTS(4, uint32_t, __builtin_bswap32)
SWAP_ELEMENTS(8, uint64_t, __builtin_bswap64)

static void swap_row(int64_t size, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t count)
{
    if (size == 2)
        swap_row_2(dst, dst_step, src, src_step, count);
    else if (size == 4)
        swap_row_4(dst, dst_step, src, src_step, count);
    else
        swap_row_8(dst, dst_step, src, src_step, count);
}

static void swap_only_row(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                          int64_t count)
{
    swap_row(cast->src_unit, dst, dst_step, src, src_step, count);
    if (cast->src_imag)
        swap_row(cast->src_unit, dst + cast->dst_imag, dst_step, src + cast->src_imag, src_step, count);
}

/* Loads at most BLOCK elements as their wide form, byte-swapped first if necessary. */
static void load_block(const stki_cast *cast, void *wide, const char *src, int64_t src_step, int64_t count)
{
    char native[BLOCK * 8];

    if (cast->swapped) {
        swap_row(cast->src_unit, native, cast->src_unit, src, src_step, count);
        src = native;
        src_step = cast->src_unit;
    }
    cast->load(wide, src, src_step, count);
}

static void part_row(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                     int64_t count)
{
    int64_t wide[BLOCK];

    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t n = count - done < BLOCK ? count - done : BLOCK;
        load_block(cast, wide, src + done * src_step, src_step, n);
        cast->store(dst + done * dst_step, dst_step, wide, n);
    }
}

/* Casts to complex: real and imaginary parts are cast separately; from real, the imaginary part is 0. (part_row casts
 * complex to real by keeping the real part.) */
static void complex_row(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                        int64_t count)
{
    part_row(cast, dst, dst_step, src, src_step, count);
    if (!cast->dst_imag)
        return;
    if (cast->src_imag)
        part_row(cast, dst + cast->dst_imag, dst_step, src + cast->src_imag, src_step, count);
    else
        for (int64_t i = 0; i < count; i++)
            memset(dst + i * dst_step + cast->dst_imag, 0, (size_t)cast->dst_imag);
}

/* Casts complex to bool: true unless both parts are 0. */
static void complex_bool_row(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                             int64_t count)
{
    int64_t wide[BLOCK];
    char real[BLOCK], imag[BLOCK];

    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t n = count - done < BLOCK ? count - done : BLOCK;
        load_block(cast, wide, src + done * src_step, src_step, n);
        cast->store(real, 1, wide, n);
        load_block(cast, wide, src + done * src_step + cast->src_imag, src_step, n);
        cast->store(imag, 1, wide, n);
        for (int64_t i = 0; i < n; i++)
            dst[(done + i) * dst_step] = real[i] | imag[i];
    }
}

/* Casts bool to bool: bytes from a file or another library may have values other than 0 and 1, which become 1. */
static void bool_row(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step,
                     int64_t count)
{
    (void)cast;
    if (dst_step == 1 && src_step == 1)
        for (int64_t i = 0; i < count; i++)
            dst[i] = src[i] != 0;
    else
        for (int64_t i = 0; i < count; i++)
            dst[i * dst_step] = src[i * src_step] != 0;
}

static void init_copy(stki_cast *cast, int64_t size)
{
    cast->row = size == 1   ? copy_row_1
                : size == 2 ? copy_row_2
                : size == 4 ? copy_row_4
                : size == 8 ? copy_row_8
                            : copy_row_16;
}

bool stki_same_bits(stk_dtype dst, stk_dtype src)
{
    bool whole = stki_dtype_category(dst) == STKI_CATEGORY_WHOLE && stki_dtype_category(src) == STKI_CATEGORY_WHOLE;

    return (dst == src && dst != STK_BOOL) || (whole && stk_dtype_size(dst) == stk_dtype_size(src));
}

void stki_cast_init(stki_cast *cast, stk_dtype dst, stk_dtype src, bool src_swapped)
{
    stk_dtype dst_part = stki_dtype_part(dst), src_part = stki_dtype_part(src);

    *cast = (stki_cast){
        .load = loads[src_part].load,
        .store = stores[loads[src_part].form][dst_part],
        .src_unit = stk_dtype_size(src_part),
        .dst_imag = dst == dst_part ? 0 : stk_dtype_size(dst_part),
        .src_imag = src == src_part ? 0 : stk_dtype_size(src_part),
    };
    cast->swapped = src_swapped && cast->src_unit > 1;
    cast->raw = stki_same_bits(dst, src) && !cast->swapped;
    if (cast->raw)
        init_copy(cast, stk_dtype_size(src));
    else if (stki_same_bits(dst, src))
        cast->row = swap_only_row;
    else if (dst == STK_BOOL && src == STK_BOOL)
        cast->row = bool_row;
    else if (dst == STK_BOOL && cast->src_imag)
        cast->row = complex_bool_row;
    else if (cast->dst_imag)
        cast->row = complex_row;
    else
        cast->row = part_row;
}
