/* loadbench_values.h: the generated values of --make. Each element is a pure function of seed and position, and is the
 * same on every machine, because no library function with platform-dependent rounding is used. */
#ifndef LOADBENCH_VALUES_H
#define LOADBENCH_VALUES_H

#include <stoker/tensor.h>

enum lb_values {
    LB_VALUES_BYTES,   /* random bits */
    LB_VALUES_UNIFORM, /* low <= value < high */
    LB_VALUES_NORMAL,  /* approximately normal: a sum of eight uniform numbers, at most 4.9 std from the mean */
    LB_VALUES_LABELS,  /* see enum lb_draw */
    LB_VALUES_CONSTANT,
    LB_VALUES_PICTURES /* smooth with noise, as compressible as photographs; see lb_picture_fill */
};

/* How a label is chosen. */
enum lb_draw {
    LB_DRAW_TURNS,   /* the row's index modulo classes */
    LB_DRAW_UNIFORM, /* a random class */
    LB_DRAW_ZIPF     /* class k is 1 / (k + 1) times as likely as class 0 */
};

struct lb_values_ask {
    enum lb_values kind;
    stk_dtype dtype;
    int64_t seed;
    double low, high, mean, std, value;
    int64_t classes;
    enum lb_draw draw;
    double compressibility;          /* for bytes: fraction of each 4 KiB that is zero */
    double detail;                   /* for pictures: amount of noise, 0 to 1 */
    int64_t height, width, channels; /* for pictures */
};

/* Maximum distance of LB_VALUES_NORMAL from the mean, in standard deviations. */
#define LB_NORMAL_REACH 4.9

/* STK_E_BAD_DTYPE: values of this kind cannot be generated with this dtype. STK_E_RANGE: the dtype cannot represent the
 * requested numbers, or there are too many classes; the message has the key, its value and the allowed range. */
stk_status lb_values_check(const struct lb_values_ask *ask, stk_error *err);
/* Generates `count` rows of `row_elements` elements, starting with row `first`, in `out`, in row-major order. `scratch`
 * must have room for count * row_elements numbers of 8 bytes. */
stk_status lb_values_fill(const struct lb_values_ask *ask, int64_t first, int64_t count, int64_t row_elements,
                          void *scratch, void *out, stk_error *err);

/* Generates one picture: height x width pixels of `channels` bytes, row-major. A pure function of seed, row and
 * size. */
void lb_picture_fill(const struct lb_values_ask *ask, int64_t row, int64_t height, int64_t width, int64_t channels,
                     uint8_t *out);
/* Returns 1 or, with a spread, an approximately normal number around 1 with this standard deviation, clamped to 0.05
 * to 4. */
double lb_values_spread(int64_t seed, int64_t row, double spread);
/* Returns the class of a row. */
int64_t lb_values_class(const struct lb_values_ask *ask, int64_t row);

#endif
