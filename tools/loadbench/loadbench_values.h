/* loadbench_values.h: the made-up values of --make. Each element is a pure function of seed and position, the same on
 * every machine: no library function that rounds differently elsewhere takes part. */
#ifndef LOADBENCH_VALUES_H
#define LOADBENCH_VALUES_H

#include <stoker/tensor.h>

enum lb_values {
    LB_VALUES_BYTES,   /* every bit by chance */
    LB_VALUES_UNIFORM, /* low <= value < high */
    LB_VALUES_NORMAL, /* bell-shaped by mean and std: a sum of eight uniform numbers, so at most 4.9 std off the mean */
    LB_VALUES_LABELS, /* the row's number modulo classes */
    LB_VALUES_CONSTANT
};

struct lb_values_ask {
    enum lb_values kind;
    stk_dtype dtype;
    int64_t seed;
    double low, high, mean, std, value;
    int64_t classes;
};

/* No number of a normal kind is further off its mean, in std. */
#define LB_NORMAL_REACH 4.9

/* STK_E_BAD_DTYPE: this kind has no meaning for this dtype; the text says what does. STK_E_RANGE: the dtype can't hold
 * the numbers asked for; the text names the key, its value and the range. */
stk_status lb_values_check(const struct lb_values_ask *ask, stk_error *err);
/* `count` rows of `row_elements` elements from row `first` on, row-major, into `out`. `scratch` has room for
 * count * row_elements numbers of 8 bytes. */
stk_status lb_values_fill(const struct lb_values_ask *ask, int64_t first, int64_t count, int64_t row_elements,
                          void *scratch, void *out, stk_error *err);

#endif
