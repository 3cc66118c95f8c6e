/* print.h: tensors as text, the way NumPy prints arrays: columns aligned, as many digits as tell each number from its
 * neighbours of the same dtype, all in exponent form where one of them needs it, the middle left out of large ones.
 *
 *     [[ 0.5  1.5]
 *      [10.  -2. ]]
 *
 * The result is what numpy.array2string gives (2.4), for the dtypes that NumPy has. bf16 and the 8-bit floats print as
 * f16 does: the fewest digits that are this number and no other of the dtype, exponents from 1000 on (8 bits: 100).
 */
#ifndef STOKER_PRINT_H
#define STOKER_PRINT_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STK_PRINT_NONE (-1)

/* Zero is the default of every member. */
typedef struct stk_print_opts {
    uint32_t struct_size;  /* set by STK_PRINT_OPTS_INIT */
    int32_t precision;     /* most digits after the point; 0: 8; STK_PRINT_NONE: none; at most 60 */
    int64_t threshold;     /* elements from which on more are not all shown; 0: 1000; STK_PRINT_NONE: 0 */
    int32_t edge_items;    /* indices shown at either end of an axis then; 0: 3 */
    int32_t line_width;    /* characters; longer rows are folded; 0: 75 */
    const char *separator; /* between elements; NULL: one space; at most 8 characters */
    bool suppress_small;   /* no exponents because of small numbers */
} stk_print_opts;
#define STK_PRINT_OPTS_INIT STK_OPTS_INIT(stk_print_opts)

/* One text, without a newline at its end; free it with stk_text_free. Any device and strides; only elements that are
 * shown are looked at. STK_E_BAD_ARG names an option outside its range; STK_E_LIMIT: more than 2^24 elements to show.
 */
STK_API stk_status stk_tensor_format(const stk_tensor *tensor, const stk_print_opts *opts, char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
