/* loadbench_values.h: the made-up values of --make. Each element is a pure function of seed and position, the same on
 * every machine: no library function that rounds differently elsewhere takes part. */
#ifndef LOADBENCH_VALUES_H
#define LOADBENCH_VALUES_H

#include <stoker/tensor.h>

enum lb_values {
    LB_VALUES_BYTES,   /* every bit by chance */
    LB_VALUES_UNIFORM, /* low <= value < high */
    LB_VALUES_NORMAL, /* bell-shaped by mean and std: a sum of eight uniform numbers, so at most 4.9 std off the mean */
    LB_VALUES_LABELS, /* see enum lb_draw */
    LB_VALUES_CONSTANT,
    LB_VALUES_PICTURES /* smooth, with noise: what an encoder packs as it packs photographs; lb_picture_fill */
};

/* How a label is chosen. */
enum lb_draw {
    LB_DRAW_TURNS,   /* the row's number modulo classes */
    LB_DRAW_UNIFORM, /* any class by chance */
    LB_DRAW_ZIPF     /* class k is 1 / (k + 1) times as likely as class 0 */
};

struct lb_values_ask {
    enum lb_values kind;
    stk_dtype dtype;
    int64_t seed;
    double low, high, mean, std, value;
    int64_t classes;
    enum lb_draw draw;
    double compressibility;          /* of bytes: the part of every 4 KiB that is zeros */
    double detail;                   /* of pictures: 0 to 1, how much of them is noise */
    int64_t height, width, channels; /* of pictures */
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

/* One picture: height x width pixels of `channels` bytes, row-major. A pure function of seed, row and size. */
void lb_picture_fill(const struct lb_values_ask *ask, int64_t row, int64_t height, int64_t width, int64_t channels,
                     uint8_t *out);
/* 1, and with a spread about 1: bell-shaped, of that standard deviation, never below 0.05 nor above 4. */
double lb_values_spread(int64_t seed, int64_t row, double spread);
/* The class of a row. */
int64_t lb_values_class(const struct lb_values_ask *ask, int64_t row);

#endif
