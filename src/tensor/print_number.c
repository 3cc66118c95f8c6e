/* print_number.c: see print_number.h.
 *
 * The C library rounds correctly in both directions, so the shortest digits are found by trial: the number is printed
 * with n digits and parsed until the result is the same number. Powers of two need one more step: below a power of two,
 * floats are closer together than above it, so the nearest n-digit decimal may be too far below the power although the
 * next one above still rounds to it. */
#include "print_number.h"
#include "cast.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses a decimal as a number of the dtype. */
static double read_back(stk_dtype dtype, const char *text)
{
    stki_cast narrow, widen;
    char element[16];
    double wide;

    if (dtype == STK_F64)
        return strtod(text, NULL);
    if (dtype == STK_F32)
        return (double)strtof(text, NULL);
    wide = strtod(text, NULL);
    stki_cast_init(&narrow, dtype, STK_F64, false);
    stki_cast_init(&widen, STK_F64, dtype, false);
    stki_cast_row(&narrow, element, stk_dtype_size(dtype), &wide, sizeof wide, 1);
    stki_cast_row(&widen, &wide, sizeof wide, element, stk_dtype_size(dtype), 1);
    return wide;
}

/* Copies the digits of a printed number, without point, sign and exponent. */
static int digits_of(const char *text, char *out)
{
    int count = 0;

    for (; *text && *text != 'e'; text++)
        if (*text >= '0' && *text <= '9')
            out[count++] = *text;
    out[count] = '\0';
    return count;
}

static bool is_same(stk_dtype dtype, double x, const char *digits, int exponent)
{
    char text[64];

    snprintf(text, sizeof text, "%se%d", digits, exponent);
    return read_back(dtype, text) == x;
}

/* Increments the last digit. */
static void add_one(char *digits, int count, int *exponent)
{
    for (int i = count - 1; i >= 0; i--) {
        if (digits[i] != '9') {
            digits[i]++;
            return;
        }
        digits[i] = '0';
    }
    digits[0] = '1';
    ++*exponent;
}

void stki_decimal_shortest(stk_dtype dtype, double x, stki_decimal *out)
{
    int count = 1, exponent = 0, binary;
    bool power_of_two = frexp(fabs(x), &binary) == 0.5;

    x = fabs(x);
    for (; count <= STKI_MAX_DIGITS; count++) {
        char text[64];
        snprintf(text, sizeof text, "%.*e", count - 1, x);
        digits_of(text, out->digits);
        exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10) - (count - 1);
        if (is_same(dtype, x, out->digits, exponent))
            break;
        if (power_of_two) {
            add_one(out->digits, count, &exponent);
            if (is_same(dtype, x, out->digits, exponent))
                break;
        }
    }
    out->count = count > STKI_MAX_DIGITS ? STKI_MAX_DIGITS : count;
    out->point = exponent + out->count;
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->digits[--out->count] = '\0';
}

/* Writes `count` digits with the point after the first `before`, which may be negative or greater than `count`. Returns
 * the number of digits after the point. */
static int lay_out(char *out, bool negative, const char *digits, int count, int before)
{
    char *at = out;
    int behind = 0;

    if (negative)
        *at++ = '-';
    if (before <= 0)
        *at++ = '0';
    for (int i = 0; i < before; i++)
        *at++ = i < count ? digits[i] : '0';
    *at++ = '.';
    for (int i = before; i < count; i++, behind++)
        *at++ = i < 0 ? '0' : digits[i];
    *at = '\0';
    return behind;
}

/* Removes trailing zeros after the point. Returns the number of digits left there. */
static int trim(char *out, int behind)
{
    size_t length = strlen(out);

    for (; behind > 0 && out[length - 1] == '0'; behind--)
        out[--length] = '\0';
    return behind;
}

int stki_number_plain(stk_dtype dtype, double x, int precision, char *out)
{
    char text[STKI_NUMBER_SIZE], digits[STKI_NUMBER_SIZE];
    stki_decimal shortest;
    int count;

    stki_decimal_shortest(dtype, x, &shortest);
    if (x == 0)
        return lay_out(out, signbit(x), "0", 1, 1);
    if (shortest.count - shortest.point <= precision)
        return lay_out(out, signbit(x), shortest.digits, shortest.count, shortest.point);
    snprintf(text, sizeof text, "%.*f", precision, fabs(x));
    count = digits_of(text, digits);
    return trim(out, lay_out(out, signbit(x), digits, count, count - precision));
}

int stki_number_scientific(stk_dtype dtype, double x, int precision, int least, char *out, int *exponent)
{
    char text[STKI_NUMBER_SIZE], digits[STKI_NUMBER_SIZE];
    stki_decimal shortest;
    int behind, count;

    stki_decimal_shortest(dtype, x, &shortest);
    behind = shortest.count - 1;
    *exponent = x == 0 ? 0 : shortest.point - 1;
    if (behind >= least && behind <= precision)
        return lay_out(out, signbit(x), shortest.digits, shortest.count, 1);
    behind = behind < least ? least : precision;
    snprintf(text, sizeof text, "%.*e", behind, fabs(x));
    count = digits_of(text, digits);
    *exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    behind = lay_out(out, signbit(x), digits, count, 1);
    return least ? behind : trim(out, behind);
}
