/* dtype.c: the table of dtypes, one row each. */
#include "dtype.h"
#include "error.h"
#include <string.h>

static const struct dtype_row {
    const char *name, *long_name;
    int64_t size;
} rows[STK_DTYPE_END] = {[STK_DTYPE_NONE] = {"none", "none", 0},
#define STK_X(number, identifier, short_name, long_name, size) [number] = {short_name, long_name, size},
                         STK_DTYPE_LIST(STK_X)
#undef STK_X
};

static const unsigned char categories[STK_DTYPE_END] = {
    [STK_BOOL] = STKI_CATEGORY_BOOL,      [STK_U8] = STKI_CATEGORY_WHOLE,     [STK_I8] = STKI_CATEGORY_WHOLE,
    [STK_U16] = STKI_CATEGORY_WHOLE,      [STK_I16] = STKI_CATEGORY_WHOLE,    [STK_U32] = STKI_CATEGORY_WHOLE,
    [STK_I32] = STKI_CATEGORY_WHOLE,      [STK_U64] = STKI_CATEGORY_WHOLE,    [STK_I64] = STKI_CATEGORY_WHOLE,
    [STK_F16] = STKI_CATEGORY_REAL,       [STK_BF16] = STKI_CATEGORY_REAL,    [STK_F32] = STKI_CATEGORY_REAL,
    [STK_F64] = STKI_CATEGORY_REAL,       [STK_C64] = STKI_CATEGORY_COMPLEX,  [STK_C128] = STKI_CATEGORY_COMPLEX,
    [STK_F8_E4M3FN] = STKI_CATEGORY_REAL, [STK_F8_E5M2] = STKI_CATEGORY_REAL,
};

static bool is_known(stk_dtype dtype)
{
    return dtype > STK_DTYPE_NONE && dtype < STK_DTYPE_END;
}

stk_status stki_dtype_check(stk_dtype dtype, stk_error *err)
{
    if (!is_known(dtype))
        return stki_fail(err, STK_E_BAD_DTYPE, "invalid dtype %d", (int)dtype);
    return STK_OK;
}

static const struct dtype_row *row_of(stk_dtype dtype)
{
    return &rows[is_known(dtype) ? dtype : STK_DTYPE_NONE];
}

int64_t stk_dtype_size(stk_dtype dtype)
{
    return row_of(dtype)->size;
}

const char *stk_dtype_name(stk_dtype dtype)
{
    return row_of(dtype)->name;
}

const char *stk_dtype_long_name(stk_dtype dtype)
{
    return row_of(dtype)->long_name;
}

stk_dtype stk_dtype_find(const char *name)
{
    if (!name)
        return STK_DTYPE_NONE;
    for (int i = STK_DTYPE_NONE + 1; i < STK_DTYPE_END; i++)
        if (!strcmp(name, rows[i].name) || !strcmp(name, rows[i].long_name))
            return (stk_dtype)i;
    return STK_DTYPE_NONE;
}

enum stki_category stki_dtype_category(stk_dtype dtype)
{
    return (enum stki_category)categories[is_known(dtype) ? dtype : STK_DTYPE_NONE];
}

bool stki_dtype_signed(stk_dtype dtype)
{
    return dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
}

bool stki_dtype_holds(stk_dtype dtype, int64_t value)
{
    const int64_t bits = 8 * stk_dtype_size(dtype);

    if (dtype == STK_BOOL)
        return value == 0 || value == 1;
    if (!stki_dtype_signed(dtype))
        return value >= 0 && (bits == 64 || value < INT64_C(1) << bits);
    return bits == 64 || (value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1));
}

bool stki_whole_of(double real, int64_t *out)
{
    if (!(real >= -0x1p63 && real < 0x1p63) || (double)(int64_t)real != real)
        return false;
    *out = (int64_t)real;
    return true;
}

stk_dtype stki_dtype_part(stk_dtype dtype)
{
    return dtype == STK_C64 ? STK_F32 : dtype == STK_C128 ? STK_F64 : dtype;
}
