/* Tests of color operations: all variants must give the same bits as the plain loops. The plain loops must follow
 * torchvision's formulas, which this file computes in double from images in 0..1. */
#include "color.h"
#include "stk_test.h"
#include "test_random.h"
#include <math.h>

enum { MOST = 1000 };

/* ---- torchvision.transforms.functional on one float pixel of 0..1, in double ---- */

static double clamp1(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double torch_gray(const double *p)
{
    return 0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2];
}

static void torch_hue(double *p, double turns)
{
    const double most = fmax(p[0], fmax(p[1], p[2])), least = fmin(p[0], fmin(p[1], p[2])), range = most - least;
    const double s = range == 0 ? 0 : range / most, d = range == 0 ? 1 : range;
    const double rc = (most - p[0]) / d, gc = (most - p[1]) / d, bc = (most - p[2]) / d;
    double h = most == p[0] ? bc - gc : most == p[1] ? 2 + rc - bc : 4 + gc - rc;

    h = fmod(h / 6 + 1, 1) + turns;
    h -= floor(h);
    const double i = floor(h * 6), f = h * 6 - i;
    const double x = clamp1(most * (1 - s)), q = clamp1(most * (1 - s * f)), t = clamp1(most * (1 - s * (1 - f)));
    const double rows[6][3] = {{most, t, x}, {q, most, x}, {x, most, t}, {x, q, most}, {t, x, most}, {most, x, q}};

    memcpy(p, rows[(int)i % 6], sizeof rows[0]);
}

static void torch_step(const stki_color_step *s, double mean, double *p)
{
    const double gray = torch_gray(p), f = s->factor;
    double q[3];

    for (int c = 0; c < 3; c++)
        switch (s->kind) {
        case STKI_COLOR_BRIGHTNESS:
            q[c] = clamp1(p[c] * f);
            break;
        case STKI_COLOR_CONTRAST:
            q[c] = clamp1(p[c] * f + mean * (1 - f));
            break;
        case STKI_COLOR_SATURATION:
            q[c] = clamp1(p[c] * f + gray * (1 - f));
            break;
        case STKI_COLOR_GRAY:
            q[c] = gray;
            break;
        case STKI_COLOR_PERMUTE:
            q[c] = p[s->from[c]];
            break;
        default:
            q[c] = p[c];
        }
    if (s->kind == STKI_COLOR_HUE)
        torch_hue(q, f);
    memcpy(p, q, sizeof q);
}

/* ---- tests ---- */

static stki_color_step random_step(uint64_t *random)
{
    stki_color_step s = {.kind = (enum stki_color_kind)stkt_random_in(random, 0, 5), .from = {2, 0, 1}};
    const double u = (double)stkt_random_in(random, 0, 1000) / 1000;

    s.factor = (float)(s.kind == STKI_COLOR_HUE ? u - 0.5 : 2 * u);
    s.rest = (float)(1 - (s.kind == STKI_COLOR_HUE ? u - 0.5 : 2 * u));
    return s;
}

/* Bytes with many grays, blacks and equal channels. */
static void make_bytes(uint8_t *bytes, int64_t n, uint64_t *random)
{
    for (int64_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)stkt_random(random);
        if (i >= 1 && stkt_random_in(random, 0, 3) == 0)
            bytes[i] = bytes[i - 1];
        if (stkt_random_in(random, 0, 9) == 0)
            bytes[i] = *random & 4096 ? 255 : 0;
    }
}

static void variants_agree(void **state)
{
    static uint8_t bytes[4 * MOST];
    uint64_t random = 3;

    (void)state;
    for (int isa = 0; isa <= STKI_ISA_NEON; isa++) {
        const stki_color_loops *loops = stki_color_loops_of((enum stki_isa)isa), *plain = &stki_color_loops_ref;

        if (!stki_isa_usable((enum stki_isa)isa))
            continue;
        for (int round = 0; round < 400; round++) {
            static float x[3][MOST + 1], y[3][MOST + 1];
            float *px[3] = {x[0], x[1], x[2]}, *py[3] = {y[0], y[1], y[2]}, means[4] = {100, 3, 250, 17};
            const int64_t n = stkt_random_in(&random, 1, round % 10 ? 70 : MOST), step = stkt_random_in(&random, 1, 4);
            const int channels = step == 3 || round % 3 ? 3 : 1;
            const bool backwards = round % 2;
            stki_color_step steps[4];

            make_bytes(bytes, sizeof bytes, &random);
            for (int i = 0; i < 4; i++)
                steps[i] = random_step(&random);
            for (int c = 0; c < 3; c++)
                x[c][n] = y[c][n] = 12345;
            loops->load(px, bytes, step, step == 3 ? 1 : 2, channels, step == 4 ? n / 2 : n, backwards);
            plain->load(py, bytes, step, step == 3 ? 1 : 2, channels, step == 4 ? n / 2 : n, backwards);
            for (int c = 0; c < channels; c++)
                for (int64_t i = 0; i < (step == 4 ? n / 2 : n); i++)
                    assert_true(x[c][i] == (float)bytes[(step == 3 ? 1 : 2) * c +
                                                        step * (backwards ? (step == 4 ? n / 2 : n) - 1 - i : i)]);
            stki_color_run(loops, steps, 4, means, px, channels, step == 4 ? n / 2 : n);
            stki_color_run(plain, steps, 4, means, py, channels, step == 4 ? n / 2 : n);
            assert_memory_equal(x, y, sizeof x);
            assert_true(loops->sum(x[0], x[1], x[2], n / 2) == plain->sum(x[0], x[1], x[2], n / 2));
            assert_true(loops->sum(x[0], NULL, NULL, n / 2) == plain->sum(x[0], NULL, NULL, n / 2));
            for (int c = 0; c < 3; c++)
                assert_true(x[c][n] == 12345);
        }
    }
}

static void as_torchvision(void **state)
{
    static uint8_t bytes[3 * MOST];
    uint64_t random = 4;
    double largest = 0;

    (void)state;
    for (int round = 0; round < 300; round++) {
        static float x[3][MOST];
        static double p[MOST][3];
        float *planes[3] = {x[0], x[1], x[2]}, means[4];
        stki_color_step steps[4];
        int mean_count = 0;

        make_bytes(bytes, sizeof bytes, &random);
        stki_color_loops_ref.load(planes, bytes, 3, 1, 3, MOST, false);
        for (int i = 0; i < 3 * MOST; i++)
            p[i / 3][i % 3] = bytes[i] / 255.0;
        for (int i = 0; i < 4; i++) {
            double mean = 0;

            steps[i] = random_step(&random);
            for (int k = 0; k < MOST; k++)
                mean += torch_gray(p[k]) / MOST;
            if (steps[i].kind == STKI_COLOR_CONTRAST) {
                means[mean_count] = stki_color_mean(stki_color_loops_ref.sum(x[0], x[1], x[2], MOST), MOST);
                assert_true(fabs(means[mean_count] - 255 * mean) < 1e-3);
                mean_count++;
            }
            for (int k = 0; k < MOST; k++)
                torch_step(&steps[i], mean, p[k]);
            stki_color_run(&stki_color_loops_ref, &steps[i], 1, means + (mean_count ? mean_count - 1 : 0), planes, 3,
                           MOST);
        }
        for (int k = 0; k < MOST; k++)
            for (int c = 0; c < 3; c++)
                largest = fmax(largest, fabs(x[c][k] - 255 * p[k][c]));
    }
    print_message("largest distance %g of 255\n", largest);
    assert_true(largest < 0.002); /* the hue of a nearly gray pixel amplifies earlier rounding errors */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(variants_agree), cmocka_unit_test(as_torchvision)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
