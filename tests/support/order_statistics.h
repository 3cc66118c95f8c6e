/* order_statistics.h: tests whether permutations are random. Each check takes the images of [0, n) and asserts that a
 * statistic lies within a few standard deviations of its value for uniform random permutations. Seeds are fixed, so a
 * check always passes or always fails. Include it after cmocka.h. */
#ifndef STKT_ORDER_STATISTICS_H
#define STKT_ORDER_STATISTICS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Fills images[0..n) with the order of one seed and epoch. */
typedef void stkt_order(uint64_t seed, uint64_t epoch, int64_t n, uint64_t *images);

/* Standard score of a chi-square sum (Wilson-Hilferty approximation). */
static inline double stkt_chi_square_score(double sum, double freedom)
{
    double spread = 2.0 / (9.0 * freedom);

    return (cbrt(sum / freedom) - (1.0 - spread)) / sqrt(spread);
}

static inline void stkt_expect_score(const char *what, int64_t n, double score, double limit)
{
    if (!(fabs(score) <= limit))
        fail_msg("%s, n = %lld: score %.2f, expected within %.2f", what, (long long)n, score, limit);
}

static inline double stkt_chi_square(const int64_t *counts, const double *expected, int cells)
{
    double sum = 0;

    for (int i = 0; i < cells; i++)
        sum += ((double)counts[i] - expected[i]) * ((double)counts[i] - expected[i]) / expected[i];
    return sum;
}

static inline bool stkt_is_bijection(const uint64_t *images, int64_t n)
{
    unsigned char *seen = calloc((size_t)n, 1);
    bool good = true;

    for (int64_t i = 0; i < n; i++) {
        good = good && images[i] < (uint64_t)n && !seen[images[i]];
        if (good)
            seen[images[i]] = 1;
    }
    free(seen);
    return good;
}

/* The rank of a permutation among all n! in lexicographic order. */
static inline int stkt_lexical_rank(const uint64_t *images, int n)
{
    int rank = 0;

    for (int i = 0; i < n; i++) {
        int smaller = 0;

        for (int j = i + 1; j < n; j++)
            smaller += images[j] < images[i];
        rank = rank * (n - i) + smaller;
    }
    return rank;
}

/* All n! orders of n <= 5 samples are equally frequent over the seeds [0, seeds). */
static inline void stkt_check_all_orders(stkt_order *order, int n, int64_t seeds)
{
    int64_t counts[120] = {0};
    double expected[120];
    uint64_t images[5];
    int orders = 1;

    for (int i = 2; i <= n; i++)
        orders *= i;
    for (int i = 0; i < orders; i++)
        expected[i] = (double)seeds / orders;
    for (int64_t seed = 0; seed < seeds; seed++) {
        order((uint64_t)seed, 0, n, images);
        counts[stkt_lexical_rank(images, n)]++;
    }
    stkt_expect_score("all orders", n, stkt_chi_square_score(stkt_chi_square(counts, expected, orders), orders - 1), 4);
}

/* Over many seeds, each sample is equally frequent at each position. A permutation matrix has a fixed sum in every
 * row and column, so there are (n - 1)^2 degrees of freedom, and the sum of squares is n / (n - 1) times a chi-square
 * sum. */
static inline void stkt_check_position_by_value(stkt_order *order, int64_t n, int64_t seeds)
{
    int64_t *counts = calloc((size_t)(n * n), sizeof *counts);
    uint64_t *images = calloc((size_t)n, sizeof *images);
    double sum = 0, expected = (double)seeds / (double)n;

    for (int64_t seed = 0; seed < seeds; seed++) {
        order((uint64_t)seed, 3, n, images);
        for (int64_t i = 0; i < n; i++)
            counts[i * n + (int64_t)images[i]]++;
    }
    for (int64_t i = 0; i < n * n; i++)
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    sum *= (double)(n - 1) / (double)n;
    stkt_expect_score("position by value", n, stkt_chi_square_score(sum, (double)((n - 1) * (n - 1))), 5);
    free(counts);
    free(images);
}

/* The same within one long permutation, for 32 by 32 regions. */
static inline void stkt_check_regions(const uint64_t *images, int64_t n)
{
    enum { SIDE = 32 };
    int64_t counts[SIDE * SIDE] = {0}, width[SIDE] = {0};
    double expected[SIDE * SIDE], sum;

    for (int64_t i = 0; i < n; i++) {
        width[i * SIDE / n]++;
        counts[i * SIDE / n * SIDE + (int64_t)images[i] * SIDE / n]++;
    }
    for (int i = 0; i < SIDE * SIDE; i++)
        expected[i] = (double)width[i / SIDE] * (double)width[i % SIDE] / (double)n;
    sum = stkt_chi_square(counts, expected, SIDE * SIDE) * (double)(n - 1) / (double)n;
    stkt_expect_score("regions", n, stkt_chi_square_score(sum, (SIDE - 1) * (SIDE - 1)), 5);
}

/* The difference modulo n between an image and the one `lag` positions later takes each of 1 .. n - 1 equally often. */
static inline void stkt_check_differences(const uint64_t *images, int64_t n, int64_t lag)
{
    enum { CELLS = 64 };
    int64_t counts[CELLS] = {0}, width[CELLS] = {0};
    double expected[CELLS];

    for (int64_t d = 1; d < n; d++)
        width[d * CELLS / n]++;
    for (int64_t i = 0; i + lag < n; i++) {
        int64_t difference = (int64_t)images[i + lag] - (int64_t)images[i];

        counts[(difference < 0 ? difference + n : difference) * CELLS / n]++;
    }
    for (int i = 0; i < CELLS; i++)
        expected[i] = (double)(n - lag) * (double)width[i] / (double)(n - 1);
    stkt_expect_score("differences", n, stkt_chi_square_score(stkt_chi_square(counts, expected, CELLS), CELLS - 1), 5);
}

/* The number of fixed points (k of them with probability 1 / (e k!)) and of adjacent pairs that stay adjacent (C(n - 1,
 * k) (D(n - k) + D(n - k - 1)) / n! with the derangement numbers D, which is about (1 + (1 - k) / n) / (e k!)). From n
 * = 15 on the approximations are accurate enough. */
static inline void stkt_check_fixed_points(stkt_order *order, int64_t n, int64_t seeds)
{
    static const double poisson[4] = {0.36787944, 0.36787944, 0.18393972, 0.06131324};
    int64_t fixed_counts[5] = {0}, neighbor_counts[5] = {0};
    double fixed_expected[5], neighbor_expected[5];
    uint64_t *images = calloc((size_t)n, sizeof *images);

    for (int64_t seed = 0; seed < seeds; seed++) {
        int fixed = 0, neighbors = 0;

        order((uint64_t)seed, 1, n, images);
        for (int64_t i = 0; i < n; i++) {
            fixed += images[i] == (uint64_t)i;
            neighbors += i > 0 && images[i] == images[i - 1] + 1;
        }
        fixed_counts[fixed < 4 ? fixed : 4]++;
        neighbor_counts[neighbors < 4 ? neighbors : 4]++;
    }
    fixed_expected[4] = neighbor_expected[4] = (double)seeds;
    for (int k = 0; k < 4; k++) {
        fixed_expected[k] = poisson[k] * (double)seeds;
        neighbor_expected[k] = fixed_expected[k] * (1 + (1.0 - k) / (double)n);
        fixed_expected[4] -= fixed_expected[k];
        neighbor_expected[4] -= neighbor_expected[k];
    }
    stkt_expect_score("fixed points", n, stkt_chi_square_score(stkt_chi_square(fixed_counts, fixed_expected, 5), 4), 4);
    stkt_expect_score("kept neighbors", n,
                      stkt_chi_square_score(stkt_chi_square(neighbor_counts, neighbor_expected, 5), 4), 4);
    free(images);
}

static inline double stkt_correlation(const uint64_t *a, const uint64_t *b, int64_t n)
{
    double middle = (double)(n - 1) / 2, sum = 0, norm = (double)n * ((double)n * (double)n - 1) / 12;

    for (int64_t i = 0; i < n; i++)
        sum += ((double)a[i] - middle) * ((double)b[i] - middle);
    return sum / norm;
}

/* Orders of neighboring seeds or epochs are uncorrelated. */
static inline void stkt_check_correlations(stkt_order *order, int64_t n)
{
    static const uint64_t pairs[][4] = {
        /* pairs of (seed, epoch) */
        {0, 0, 0, 1},
        {0, 1, 0, 2},
        {0, 0, 0, 2},
        {7, 100, 7, 101},
        {0, 0, 1, 0},
        {1, 0, 2, 0},
        {1, 0, 0, 1},
        {5, 3, 3, 5},
        {4, 0, 3, 1},
        {42, 0, 43, 0},
        {0, 0, UINT64_C(1) << 32, 0},
        {0, 0, UINT64_C(1) << 63, 0},
        {0, 0, 0, UINT64_C(1) << 32},
        {UINT64_MAX, 0, 0, 0},
    };
    uint64_t *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        order(pairs[i][0], pairs[i][1], n, a);
        order(pairs[i][2], pairs[i][3], n, b);
        stkt_expect_score("correlation times sqrt(n)", n, stkt_correlation(a, b, n) * sqrt((double)n), 4);
        assert_true(n < 16 || memcmp(a, b, (size_t)n * sizeof *a) != 0);
    }
    /* an order is uncorrelated with the sequence 0, 1, 2, … */
    for (int64_t i = 0; i < n; i++)
        b[i] = (uint64_t)i;
    stkt_expect_score("correlation with the sequence", n, stkt_correlation(a, b, n) * sqrt((double)n), 4);
    free(a);
    free(b);
}

/* Runs all checks of one long permutation. */
static inline void stkt_check_long(stkt_order *order, int64_t n)
{
    uint64_t *images = calloc((size_t)n, sizeof *images);

    for (uint64_t seed = 0; seed < 3; seed++) {
        order(seed, seed / 2, n, images);
        assert_true(stkt_is_bijection(images, n));
        stkt_check_regions(images, n);
        for (int64_t lag = 1; lag < n / 2; lag = lag < 4 ? lag + 1 : lag * 4)
            stkt_check_differences(images, n, lag);
    }
    free(images);
}

#endif
