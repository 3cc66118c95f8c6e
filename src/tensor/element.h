/* element.h: converts between scalars and the bytes of single elements. */
#ifndef STKI_ELEMENT_H
#define STKI_ELEMENT_H

#include <stoker/tensor.h>

typedef struct stki_element {
    char bytes[16];
} stki_element;

/* STK_E_BAD_VALUE: the value does not fit the dtype (docs/reference/tensor.md). */
stk_status stki_element_from_scalar(stk_dtype dtype, stk_scalar value, stki_element *out, stk_error *err);
/* Casts the value, as an element of the scalar's own dtype (bool, i64, u64, f64, c128), by the rules for tensors.
 * Accepts every value. */
stki_element stki_element_cast(stk_dtype dtype, stk_scalar value);
stk_scalar stki_element_to_scalar(stk_dtype dtype, const void *bytes);

/* The value as a double; of a complex number, its real part. */
double stki_scalar_to_double(stk_scalar value);
bool stki_scalar_is_whole(stk_scalar value); /* whether its kind is an integer or bool */

#endif
