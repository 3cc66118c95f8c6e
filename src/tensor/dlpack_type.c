/* dlpack_type.c: see dlpack_type.h. The codes from bool on were added in version 1. */
#include "dlpack_type.h"

enum { INT = 0, UINT = 1, FLOAT = 2, BFLOAT = 4, COMPLEX = 5, BOOL = 6, FLOAT8_E4M3FN = 10, FLOAT8_E5M2 = 12 };

static const uint8_t codes[STK_DTYPE_END] = {
    [STK_BOOL] = BOOL,
    [STK_U8] = UINT,
    [STK_I8] = INT,
    [STK_U16] = UINT,
    [STK_I16] = INT,
    [STK_U32] = UINT,
    [STK_I32] = INT,
    [STK_U64] = UINT,
    [STK_I64] = INT,
    [STK_F16] = FLOAT,
    [STK_BF16] = BFLOAT,
    [STK_F32] = FLOAT,
    [STK_F64] = FLOAT,
    [STK_C64] = COMPLEX,
    [STK_C128] = COMPLEX,
    [STK_F8_E4M3FN] = FLOAT8_E4M3FN,
    [STK_F8_E5M2] = FLOAT8_E5M2,
};

bool stki_dlpack_type_of(stk_dtype dtype, int major, stki_dlpack_type *out)
{
    if (stk_dtype_size(dtype) == 0)
        return false;
    *out = (stki_dlpack_type){.code = codes[dtype], .bits = (uint8_t)(8 * stk_dtype_size(dtype))};
    if (major == 0 && dtype == STK_BOOL)
        out->code = UINT;
    return major > 0 || out->code <= COMPLEX;
}

stk_dtype stki_dlpack_dtype(int code, int bits, int lanes)
{
    for (stk_dtype dtype = STK_BOOL; lanes == 1 && dtype < STK_DTYPE_END; dtype++)
        if (codes[dtype] == code && 8 * stk_dtype_size(dtype) == bits)
            return dtype;
    return STK_DTYPE_NONE;
}
