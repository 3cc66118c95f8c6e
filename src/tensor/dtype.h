/* dtype.h: properties of dtypes beyond those in the public header. */
#ifndef STKI_DTYPE_H
#define STKI_DTYPE_H

#include <stoker/tensor.h>

/* In ascending order of type promotion. */
enum stki_category { STKI_CATEGORY_BOOL, STKI_CATEGORY_WHOLE, STKI_CATEGORY_REAL, STKI_CATEGORY_COMPLEX };

enum stki_category stki_dtype_category(stk_dtype dtype);
/* Whether it is a signed integer dtype. */
bool stki_dtype_signed(stk_dtype dtype);
/* Whether an integer dtype or bool can represent the value; bool represents 0 and 1. */
bool stki_dtype_holds(stk_dtype dtype, int64_t value);
/* Converts a number without changing its value. Returns false if it is not an integer or does not fit. */
bool stki_whole_of(double real, int64_t *out);
/* Whether F64 cannot represent the integer. */
static inline bool stki_is_rounded(int64_t whole)
{
    int64_t back;

    return !stki_whole_of((double)whole, &back) || back != whole;
}
/* The dtype of the real or imaginary part of a complex dtype; other dtypes are returned unchanged. */
stk_dtype stki_dtype_part(stk_dtype dtype);
/* Fails with STK_E_BAD_DTYPE unless the dtype is valid. */
stk_status stki_dtype_check(stk_dtype dtype, stk_error *err);

#endif
