/* stats_make.h: generates the arrays of stats_golden.py, and tallies of them. */
#ifndef STKT_STATS_MAKE_H
#define STKT_STATS_MAKE_H

#include "allocate.h"
#include "small_float.h"
#include "stats_options.h"
#include "stk_test.h"
#include <math.h>

typedef struct golden_numbers {
    int64_t count, nan, infinite[2], zeros;
    double mean, std, min, max;
} golden_numbers;

typedef struct golden_quant {
    const char *dtype;
    int symmetric;
    const char *method;
    double scale;
    int64_t zero;
    double low, high, error;
} golden_quant;

typedef struct golden_case {
    const char *dtype;
    int64_t rows, outer, channels, inner;
    double offset, scale;
    int strange;
    int numbers, quants, quant_count, histogram;
} golden_case;

static inline void stkt_put_float(char *at, stk_dtype dtype, double x)
{
    const float single = (float)x;
    const uint16_t half = dtype == STK_BF16 ? stki_bf16_encode(single) : stki_f16_encode(single);

    if (dtype == STK_F64)
        memcpy(at, &x, 8);
    else if (dtype == STK_F32)
        memcpy(at, &single, 4);
    else
        memcpy(at, &half, 2);
}

/* Returns n elements; the caller frees them. */
static inline char *stkt_stats_values(stk_dtype dtype, int64_t n, double offset, double scale, int strange)
{
    const int64_t size = stk_dtype_size(dtype);
    const bool real = dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
    char *data = malloc((size_t)(n * size + 1));
    uint64_t state = 1;

    for (int64_t i = 0; i < n; i++) {
        const int k = (int)(i % 97);
        double x;

        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (!real) {
            const uint64_t word = state >> (64 - 8 * size);
            memcpy(data + i * size, &word, (size_t)size);
            continue;
        }
        x = (double)((int64_t)((state >> 33) % 20001) - 10000) / 8192.0;
        x = x * x * x * scale + offset;
        if (strange && k >= 5 && k <= 8)
            x = k == 5 ? (double)NAN : k == 6 ? (double)INFINITY : k == 7 ? -(double)INFINITY : 0;
        stkt_put_float(data + i * size, dtype, x);
    }
    return data;
}

static inline stki_tally_form stkt_stats_form(const golden_case *c)
{
    stki_tally_form form = {.dtype = stk_dtype_find(c->dtype),
                            .outer = c->outer,
                            .channels = c->channels,
                            .inner = c->inner,
                            .counts = true,
                            .most_bytes = INT64_C(1) << 28};

    stki_tally_form_blocks(&form, 0);
    return form;
}

/* A tally of the blocks b with b % parts == part. */
static inline stki_tally *stkt_stats_tally(const stki_tally_form *form, const char *data, int64_t rows,
                                           enum stki_isa isa, int64_t parts, int64_t part)
{
    const int64_t each = form->outer * form->channels * form->inner, size = stk_dtype_size(form->dtype);
    stki_tally *tally;
    stk_error err;

    assert_ok(stki_tally_create(form, isa, &tally, &err));
    if (part % 2)
        stki_counts_hurry(&tally->counts, 100 * part);
    for (int64_t b = part; b * form->block_rows < rows; b += parts) {
        const int64_t first = b * form->block_rows;
        const int64_t here = rows - first < form->block_rows ? rows - first : form->block_rows;

        assert_ok(stki_tally_block(tally, form, data + first * each * size, here, here * each, &err));
    }
    assert_ok(stki_counts_settle(&tally->counts, &err));
    return tally;
}

static inline void stkt_assert_same_tally(stki_tally *a, stki_tally *b, const stki_tally_form *form)
{
    char *x, *y;
    int64_t p, q;
    stk_error err;

    assert_ok(stki_tally_save(a, form, &x, &p, &err));
    assert_ok(stki_tally_save(b, form, &y, &q, &err));
    assert_int_equal(p, q);
    assert_memory_equal(x, y, (size_t)p);
    stki_free(x);
    stki_free(y);
}

#endif
