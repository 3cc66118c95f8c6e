/* print.h: formatting tensors as text, as NumPy does: aligned columns, the fewest digits that distinguish each number
 * from all others of its dtype, scientific notation for all elements if one needs it, and an ellipsis in large tensors.
 *
 *     [[ 0.5  1.5]
 *      [10.  -2. ]]
 *
 * The result equals that of numpy.array2string (2.4) for the dtypes that NumPy has. bf16 and the 8-bit floats are
 * printed like f16, but the 8-bit floats switch to scientific notation at 100 instead of 1000.
 */
#ifndef STOKER_PRINT_H
#define STOKER_PRINT_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STK_PRINT_NONE (-1)

/* Members that are 0 or NULL take their default values. */
typedef struct stk_print_opts {
    uint32_t struct_size;  /* set by STK_PRINT_OPTS_INIT */
    int32_t precision;     /* maximum number of digits after the point, up to 60; 0: 8; STK_PRINT_NONE: none */
    int64_t threshold;     /* tensors with more elements are abbreviated; 0: 1000; STK_PRINT_NONE: 0 */
    int32_t edge_items;    /* indices shown at either end of an abbreviated axis; 0: 3 */
    int32_t line_width;    /* in characters; longer rows are wrapped; 0: 75 */
    const char *separator; /* between elements; NULL: one space; at most 8 characters */
    bool suppress_small;   /* do not switch to scientific notation for small numbers */
} stk_print_opts;
#define STK_PRINT_OPTS_INIT STK_OPTS_INIT(stk_print_opts)

/* Returns the text without a final newline; free it with stk_text_free. The tensor may have any strides and be on any
 * device; only elements that are shown are read. STK_E_BAD_ARG: an option is outside its range; the message names it.
 * STK_E_LIMIT: more than 2^24 elements would be shown. */
STK_API stk_status stk_tensor_format(const stk_tensor *tensor, const stk_print_opts *opts, char **out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
