/* dtype.h: the row of the dtype table that the public names do not show. */
#ifndef STKI_DTYPE_H
#define STKI_DTYPE_H

#include <stoker/tensor.h>

/* In the order in which one outranks another when types meet. */
enum stki_category { STKI_CATEGORY_BOOL, STKI_CATEGORY_WHOLE, STKI_CATEGORY_REAL, STKI_CATEGORY_COMPLEX };

enum stki_category stki_dtype_category(stk_dtype dtype);
/* True for signed whole numbers. */
bool stki_dtype_signed(stk_dtype dtype);
/* The type of one part of a complex number; any other dtype is its own part. */
stk_dtype stki_dtype_part(stk_dtype dtype);
/* STK_E_BAD_DTYPE unless it is inside the list. */
stk_status stki_dtype_check(stk_dtype dtype, stk_error *err);

#endif
