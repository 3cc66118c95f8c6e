/* exact_sum.c: see exact_sum.h. */
#include "exact_sum.h"
#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 32, LAST = STKI_EXACT_DIGITS - 1, MOST_PENDING = 1 << 28 };

static const int64_t mask = (INT64_C(1) << DIGIT_BITS) - 1;

void stki_exact_settle(stki_exact *sum)
{
    int64_t carry = 0;

    for (int i = 0; i < LAST; i++) {
        const int64_t value = sum->digit[i] + carry;

        sum->digit[i] = value & mask;
        carry = (value - sum->digit[i]) / (mask + 1);
    }
    sum->digit[LAST] += carry;
    sum->pending = 0;
}

static inline void note_terms(stki_exact *sum, int64_t terms)
{
    sum->pending += terms;
    if (sum->pending > MOST_PENDING)
        stki_exact_settle(sum);
}

void stki_exact_add_whole(stki_exact *sum, stki_i128 value, int exponent)
{
    const bool negative = value < 0;
    stki_u128_word rest = negative ? -(stki_u128_word)value : (stki_u128_word)value;
    int place = exponent - STKI_EXACT_LOWEST, shift, at;

    if (place < 0) {
        rest = place > -128 ? rest >> -place : 0;
        place = 0;
    }
    at = place / DIGIT_BITS;
    shift = place % DIGIT_BITS;
    /* The first digit receives DIGIT_BITS - shift bits, the others DIGIT_BITS each. */
    for (int taken = DIGIT_BITS - shift; rest && at <= LAST; at++, taken = DIGIT_BITS, shift = 0) {
        const int64_t part = (int64_t)((uint64_t)rest & (((uint64_t)1 << taken) - 1)) << shift;

        sum->digit[at] += negative ? -part : part;
        rest >>= taken;
    }
    note_terms(sum, 1);
}

int64_t stki_exact_split(double value, int *exponent)
{
    uint64_t bits;
    int64_t whole;
    int e;

    memcpy(&bits, &value, sizeof bits);
    e = (int)(bits >> 52 & 0x7ff);
    whole = (int64_t)(bits & ((UINT64_C(1) << 52) - 1));
    if (e > 0)
        whole |= INT64_C(1) << 52;
    *exponent = (e > 0 ? e : 1) - 1075;
    return bits >> 63 ? -whole : whole;
}

void stki_exact_add(stki_exact *sum, double value, int exponent)
{
    int own;
    const int64_t whole = stki_exact_split(value, &own);

    stki_exact_add_whole(sum, whole, own + exponent);
}

void stki_exact_merge(stki_exact *sum, const stki_exact *other)
{
    for (int i = 0; i < STKI_EXACT_DIGITS; i++)
        sum->digit[i] += other->digit[i];
    note_terms(sum, other->pending + 1);
}

static void negate(stki_exact *sum)
{
    for (int i = 0; i < STKI_EXACT_DIGITS; i++)
        sum->digit[i] = -sum->digit[i];
    stki_exact_settle(sum);
}

void stki_exact_add_product(stki_exact *sum, const stki_exact *other, double factor)
{
    int exponent;
    int64_t whole = stki_exact_split(factor, &exponent);
    stki_exact magnitude = *other;

    stki_exact_settle(&magnitude);
    if (magnitude.digit[LAST] < 0) { /* avoids a sign extension beyond the last digit */
        negate(&magnitude);
        whole = -whole;
    }
    for (int i = 0; i < STKI_EXACT_DIGITS; i++)
        if (magnitude.digit[i])
            stki_exact_add_whole(sum, (stki_i128)magnitude.digit[i] * whole,
                                 exponent + i * DIGIT_BITS + STKI_EXACT_LOWEST);
}

double stki_exact_fraction(const stki_exact *sum, int *exponent)
{
    stki_exact settled = *sum;
    bool negative, sticky = false;
    stki_u128_word top = 0;
    int at = LAST, lowest, drop;
    uint64_t kept;

    stki_exact_settle(&settled);
    negative = settled.digit[LAST] < 0;
    if (negative)
        negate(&settled);
    while (at > 0 && !settled.digit[at])
        at--;
    /* Three digits have at least 65 bits of the number; of the others, only whether they are all 0 matters. */
    lowest = at >= 2 ? at - 2 : 0;
    for (int i = at; i >= lowest; i--)
        top = top << DIGIT_BITS | (uint64_t)settled.digit[i];
    for (int i = 0; i < lowest; i++)
        sticky |= settled.digit[i] != 0;
    *exponent = 0;
    if (!top)
        return 0;
    drop = (top >> 64 ? 128 - __builtin_clzll((uint64_t)(top >> 64)) : 64 - __builtin_clzll((uint64_t)top)) - 53;
    drop = drop > 0 ? drop : 0;
    kept = (uint64_t)(top >> drop);
    if (drop > 0) {
        const bool half = top >> (drop - 1) & 1;
        const bool below = sticky || (top & (((stki_u128_word)1 << (drop - 1)) - 1)) != 0;

        kept += half && (below || (kept & 1));
    }
    *exponent = lowest * DIGIT_BITS + STKI_EXACT_LOWEST + drop + 53;
    return ldexp(negative ? -(double)kept : (double)kept, -53);
}
