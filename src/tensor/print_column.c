/* print_column.c: see print_column.h. */
#include "print_column.h"
#include "cast.h"
#include "dtype.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- real numbers ------------------------------------------------------------------------------------------------ */

/* Element i of `elements`, or its imaginary part, as the double that it is. */
static double real_at(stk_dtype dtype, const void *elements, int64_t i, bool imaginary)
{
    stk_dtype part = stki_dtype_part(dtype);
    const char *at = (const char *)elements + i * stk_dtype_size(dtype) + (imaginary ? stk_dtype_size(part) : 0);
    stki_cast cast;
    double x;

    stki_cast_init(&cast, STK_F64, part, false);
    stki_cast_row(&cast, &x, sizeof x, at, stk_dtype_size(part), 1);
    return x;
}

/* A number as the dtype holds it: NumPy compares in the dtype. */
static double as_dtype(stk_dtype dtype, double x)
{
    stki_cast narrow, widen;
    char element[16];

    if (dtype != STK_F16 && dtype != STK_F32)
        return x;
    stki_cast_init(&narrow, dtype, STK_F64, false);
    stki_cast_init(&widen, STK_F64, dtype, false);
    stki_cast_row(&narrow, element, stk_dtype_size(dtype), &x, sizeof x, 1);
    stki_cast_row(&widen, &x, sizeof x, element, stk_dtype_size(dtype), 1);
    return x;
}

struct extent {
    double largest, smallest; /* of the finite ones that are not 0, as magnitudes; largest 0: there are none */
    bool finite, strange, minus_infinity;
};

static struct extent extent_of(stk_dtype dtype, const void *elements, int64_t count, bool imaginary)
{
    struct extent extent = {.smallest = INFINITY};

    for (int64_t i = 0; i < count; i++) {
        double x = real_at(dtype, elements, i, imaginary), size = fabs(x);
        if (!isfinite(x)) {
            extent.strange = true;
            extent.minus_infinity |= isinf(x) && x < 0;
            continue;
        }
        extent.finite = true;
        if (size > 0) {
            extent.largest = size > extent.largest ? size : extent.largest;
            extent.smallest = size < extent.smallest ? size : extent.smallest;
        }
    }
    return extent;
}

static bool needs_exponents(stk_dtype part, const struct extent *extent, bool suppress_small)
{
    /* Beyond about what the dtype's digits say exactly, the exponent shows that the rest is not known. */
    const double limit = part == STK_F64 ? 1e8 : part == STK_F32 ? 1e6 : stk_dtype_size(part) == 2 ? 1e3 : 1e2;

    if (extent->largest == 0)
        return false;
    if (extent->largest >= limit)
        return true;
    return !suppress_small &&
           (extent->smallest < as_dtype(part, 0.0001) || as_dtype(part, extent->largest / extent->smallest) > 1000);
}

static int length_before(const char *text, char stop)
{
    return (int)(strchr(text, stop) - text);
}

static void widen_plain(stki_real_column *column, double x)
{
    char text[STKI_NUMBER_SIZE];
    int behind = stki_number_plain(column->dtype, x, column->precision, text);
    int before = length_before(text, '.') + (column->sign && !signbit(x));

    column->left = before > column->left ? before : column->left;
    column->right = behind > column->right ? behind : column->right;
}

static int exponent_length(int exponent)
{
    return snprintf(NULL, 0, "%02d", exponent < 0 ? -exponent : exponent);
}

static void widen_scientific(stki_real_column *column, double x)
{
    char text[STKI_NUMBER_SIZE];
    int exponent, behind = stki_number_scientific(column->dtype, x, column->precision, 0, text, &exponent);
    int before = length_before(text, '.') + (column->sign && !signbit(x));

    column->left = before > column->left ? before : column->left;
    column->least = behind > column->least ? behind : column->least;
    if (exponent_length(exponent) > column->exponent_digits)
        column->exponent_digits = exponent_length(exponent);
}

static void fit_real(stki_real_column *column, stk_dtype dtype, const void *elements, int64_t count, bool imaginary,
                     int precision, bool suppress_small)
{
    struct extent extent = extent_of(dtype, elements, count, imaginary);

    *column = (stki_real_column){.dtype = stki_dtype_part(dtype), .precision = precision, .sign = imaginary};
    column->scientific = needs_exponents(column->dtype, &extent, suppress_small);
    for (int64_t i = 0; i < count; i++) {
        double x = real_at(dtype, elements, i, imaginary);
        if (isfinite(x) && column->scientific)
            widen_scientific(column, x);
        else if (isfinite(x))
            widen_plain(column, x);
    }
    if (column->scientific) {
        column->precision = column->least;
        column->right = column->exponent_digits + 2 + column->precision;
    }
    if (extent.strange) { /* "nan", "inf" or "-inf" must fit, too */
        int least = (imaginary || extent.minus_infinity ? 4 : 3) - (column->right + 1);
        column->left = least > column->left ? least : column->left;
    }
}

static int write_strange(const stki_real_column *column, double x, char *out)
{
    const char *sign = !isnan(x) && x < 0 ? "-" : column->sign ? "+" : "";
    char text[8];

    snprintf(text, sizeof text, "%s%s", sign, isnan(x) ? "nan" : "inf");
    return snprintf(out, STKI_NUMBER_SIZE, "%*s", column->left + column->right + 1, text);
}

static int write_real(const stki_real_column *column, double x, char *out)
{
    char text[STKI_NUMBER_SIZE];
    const char *sign = column->sign && !signbit(x) ? "+" : "";
    int exponent = 0, behind, before;

    if (!isfinite(x))
        return write_strange(column, x, out);
    behind = column->scientific
                 ? stki_number_scientific(column->dtype, x, column->precision, column->least, text, &exponent)
                 : stki_number_plain(column->dtype, x, column->precision, text);
    before = length_before(text, '.') + (int)strlen(sign);
    if (column->scientific)
        return snprintf(out, STKI_NUMBER_SIZE, "%*s%s%se%c%0*d", column->left - before, "", sign, text,
                        exponent < 0 ? '-' : '+', column->exponent_digits, exponent < 0 ? -exponent : exponent);
    return snprintf(out, STKI_NUMBER_SIZE, "%*s%s%s%*s", column->left - before, "", sign, text, column->right - behind,
                    "");
}

/* The j belongs to the digits, before the spaces that fill the column. */
static int write_complex(const stki_column *column, const void *element, char *out)
{
    int length = write_real(&column->real, real_at(column->dtype, element, 0, false), out), end;

    length += write_real(&column->imaginary, real_at(column->dtype, element, 0, true), out + length);
    for (end = length; end > 0 && out[end - 1] == ' '; end--)
        ;
    memmove(out + end + 1, out + end, (size_t)(length - end) + 1);
    out[end] = 'j';
    return length + 1;
}

/* ---- whole numbers ----------------------------------------------------------------------------------------------- */

static int write_whole(stk_dtype dtype, const void *element, int width, char *out)
{
    stk_dtype wide_dtype = dtype == STK_U64 ? STK_U64 : STK_I64;
    stki_cast cast;
    int64_t wide;

    stki_cast_init(&cast, wide_dtype, dtype, false);
    stki_cast_row(&cast, &wide, sizeof wide, element, stk_dtype_size(dtype), 1);
    return dtype == STK_U64 ? snprintf(out, STKI_NUMBER_SIZE, "%*" PRIu64, width, (uint64_t)wide)
                            : snprintf(out, STKI_NUMBER_SIZE, "%*" PRId64, width, wide);
}

static int widest_whole(stk_dtype dtype, const void *elements, int64_t count)
{
    char text[STKI_NUMBER_SIZE];
    int widest = 0;

    for (int64_t i = 0; i < count; i++) {
        int width = write_whole(dtype, (const char *)elements + i * stk_dtype_size(dtype), 0, text);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* ---- any dtype --------------------------------------------------------------------------------------------------- */

void stki_column_fit(stki_column *column, stk_dtype dtype, const void *elements, int64_t count, int precision,
                     bool suppress_small)
{
    *column = (stki_column){.dtype = dtype};
    switch (stki_dtype_category(dtype)) {
    case STKI_CATEGORY_BOOL:
        break;
    case STKI_CATEGORY_WHOLE:
        column->width = widest_whole(dtype, elements, count);
        break;
    case STKI_CATEGORY_COMPLEX:
        fit_real(&column->imaginary, dtype, elements, count, true, precision, suppress_small);
        fit_real(&column->real, dtype, elements, count, false, precision, suppress_small);
        break;
    case STKI_CATEGORY_REAL:
        fit_real(&column->real, dtype, elements, count, false, precision, suppress_small);
        break;
    }
}

int stki_column_write(const stki_column *column, const void *element, bool alone, char *out)
{
    switch (stki_dtype_category(column->dtype)) {
    case STKI_CATEGORY_BOOL:
        return snprintf(out, STKI_NUMBER_SIZE, "%*s", alone ? 0 : 5, *(const uint8_t *)element ? "True" : "False");
    case STKI_CATEGORY_WHOLE:
        return write_whole(column->dtype, element, column->width, out);
    case STKI_CATEGORY_COMPLEX:
        return write_complex(column, element, out);
    default:
        return write_real(&column->real, real_at(column->dtype, element, 0, false), out);
    }
}
