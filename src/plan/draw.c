/* draw.c: see draw.h. */
#include "draw.h"
#include "philox.h"
#include <math.h>
#include <string.h>

static const uint64_t DRAW_TAG = UINT64_C(0x64726177); /* "draw"; separates these draws from the order's */

static uint64_t pair(const stki_philox *block, int at)
{
    return (uint64_t)block->word[at + 1] << 32 | block->word[at];
}

uint64_t stki_draw_key(uint64_t seed, int64_t epoch)
{
    const stki_philox block = stki_philox_draw(seed, DRAW_TAG, (uint64_t)epoch);

    return pair(&block, 0);
}

uint64_t stki_draw_name(const char *name, const char *operation)
{
    const char *const texts[] = {name, operation};
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a of the strings including their terminators */
    stki_philox block;

    for (int i = 0; i < 2; i++)
        for (const char *at = texts[i];; at++) {
            hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
            if (!*at)
                break;
        }
    block = stki_philox_draw(hash, DRAW_TAG, 0); /* FNV mixes the last characters poorly */
    return pair(&block, 0);
}

void stki_draw_begin(stki_draw *draw, const stki_occasion *occasion, uint64_t name)
{
    const stki_philox block = stki_philox_draw(occasion->key, name, (uint64_t)occasion->position);

    *draw = (stki_draw){.key = pair(&block, 0)};
}

uint64_t stki_draw_seed(const stki_occasion *occasion, uint64_t name)
{
    stki_draw draw;

    stki_draw_begin(&draw, occasion, name);
    return stki_draw_bits(&draw);
}

uint64_t stki_draw_bits(stki_draw *draw)
{
    const uint64_t at = draw->next++;

    if (at % 2 == 0) {
        const stki_philox block = stki_philox_draw(draw->key, DRAW_TAG, at / 2);

        draw->words[0] = pair(&block, 0);
        draw->words[1] = pair(&block, 2);
    }
    return draw->words[at % 2];
}

double stki_draw_unit(stki_draw *draw)
{
    return (double)(stki_draw_bits(draw) >> 11) * 0x1p-53;
}

double stki_draw_between(stki_draw *draw, double low, double high)
{
    return low + (high - low) * stki_draw_unit(draw);
}

double stki_draw_log_between(stki_draw *draw, double low, double high)
{
    return stki_draw_exp(stki_draw_between(draw, stki_draw_log(low), stki_draw_log(high)));
}

int64_t stki_draw_below(stki_draw *draw, int64_t bound)
{
    __extension__ unsigned __int128 product = (unsigned __int128)stki_draw_bits(draw) * (uint64_t)bound;

    return (int64_t)(product >> 64);
}

bool stki_draw_chance(stki_draw *draw, double p)
{
    return stki_draw_unit(draw) < p;
}

/* The polar method of Marsaglia and Bray (1964), which yields two numbers. */
static void normal_pair(stki_draw *draw, double out[2])
{
    for (;;) {
        const double u = stki_draw_between(draw, -1, 1), v = stki_draw_between(draw, -1, 1), s = u * u + v * v;

        if (s > 0 && s < 1) {
            const double f = sqrt(-2 * stki_draw_log(s) / s);

            out[0] = u * f;
            out[1] = v * f;
            return;
        }
    }
}

double stki_draw_normal(stki_draw *draw)
{
    double pair[2];

    normal_pair(draw, pair);
    return pair[0];
}

void stki_draw_normals(stki_draw *draw, double a, double b, float *out, int64_t n)
{
    double pair[2];

    for (int64_t i = 0; i < n; i++) {
        if (i % 2 == 0)
            normal_pair(draw, pair);
        out[i] = (float)(a * pair[i % 2] + b);
    }
}

/* Marsaglia and Tsang (2000), alpha above 1. */
static double gamma_of(stki_draw *draw, double alpha)
{
    const double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (;;) {
        const double x = stki_draw_normal(draw), v = 1 + c * x, cube = v * v * v, u = stki_draw_unit(draw);

        if (cube > 0 && u > 0 && stki_draw_log(u) < 0.5 * x * x + d - d * cube + d * stki_draw_log(cube))
            return d * cube;
    }
}

/* Jöhnk (1964), for parameters up to 1, in logarithms, because the powers for a small parameter underflow. */
static double johnk(stki_draw *draw, double alpha, double beta)
{
    for (;;) {
        const double u = stki_draw_unit(draw), v = stki_draw_unit(draw);
        double x, y, most;

        if (!(u > 0) || !(v > 0))
            continue;
        x = stki_draw_log(u) / alpha;
        y = stki_draw_log(v) / beta;
        if (stki_draw_exp(x) + stki_draw_exp(y) > 1)
            continue;
        most = x > y ? x : y;
        x = stki_draw_exp(x - most);
        y = stki_draw_exp(y - most);
        return x / (x + y);
    }
}

double stki_draw_beta(stki_draw *draw, double alpha, double beta)
{
    if (alpha <= 1 && beta <= 1)
        return johnk(draw, alpha, beta);
    /* Gamma(a) is Gamma(a + 1) U^(1/a) */
    const double x = gamma_of(draw, alpha + 1) * stki_draw_exp(stki_draw_log(1 - stki_draw_unit(draw)) / alpha);
    const double y = gamma_of(draw, beta + 1) * stki_draw_exp(stki_draw_log(1 - stki_draw_unit(draw)) / beta);

    return x + y > 0 ? x / (x + y) : 0.5;
}

/* ---- exp and log ---- */

/* ln 2 in two parts: the product of the first part with an integer up to 2^11 is exact. */
static const double LN2_HIGH = 0x1.62e42fefa0000p-1, LN2_LOW = 0x1.cf79abc9e3b3ap-40;

/* x = m 2^e with m between sqrt(1/2) and sqrt(2), ln m = 2 artanh((m - 1) / (m + 1)). */
double stki_draw_log(double x)
{
    uint64_t bits;
    int64_t e;
    double m, s, z, sum = 0;

    memcpy(&bits, &x, sizeof bits);
    e = (int64_t)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    s = (m - 1) / (m + 1);
    z = s * s;
    for (int k = 23; k >= 3; k -= 2)
        sum = sum * z + 1.0 / k;
    return (double)e * LN2_HIGH + (2 * s + (2 * s * z * sum + (double)e * LN2_LOW));
}

/* x = k ln 2 + r with |r| up to half of ln 2; the series of exp r. */
double stki_draw_exp(double x)
{
    double r, sum = 1, power;
    int64_t k;
    uint64_t bits;

    if (x < -700)
        return 0;
    k = (int64_t)floor(x * 0x1.71547652b82fep+0 + 0.5);
    r = x - (double)k * LN2_HIGH - (double)k * LN2_LOW;
    for (int i = 14; i >= 2; i--)
        sum = 1 + sum * r / i;
    sum = 1 + sum * r;
    bits = (uint64_t)(1023 + k) << 52;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}
