/* print.c: formats tensors as text, as NumPy does. The elements to print are gathered first, so no others are read from
 * a large tensor. Then they are laid out row by row. */
#include "allocate.h"
#include "cast.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "print_number.h"
#include "profile_scope.h"
#include "stage.h"
#include "tensor_internal.h"
#include "text_build.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stoker/print.h>
#include <string.h>

/* The format of real numbers, or of one part of complex ones. */
typedef struct stki_real_column {
    stk_dtype dtype;
    bool scientific, sign; /* sign: print a + before non-negative numbers */
    int precision, least;  /* maximum number of digits after the point, and minimum in scientific notation */
    int exponent_digits;
    int left, right; /* characters before and after the point */
} stki_real_column;

typedef struct stki_column {
    stk_dtype dtype;
    int width; /* integers */
    stki_real_column real, imaginary;
} stki_column;

/* ---- real numbers ---- */

/* Returns element i of `elements`, or its imaginary part, as a double, which is exact. */
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

/* Rounds a number to the dtype, because NumPy compares numbers in that dtype. */
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
    double largest, smallest; /* magnitudes of the finite non-zero elements; largest 0: there are none */
    bool nonfinite, minus_infinity;
};

static struct extent extent_of(stk_dtype dtype, const void *elements, int64_t count, bool imaginary)
{
    struct extent extent = {.smallest = INFINITY};

    for (int64_t i = 0; i < count; i++) {
        double x = real_at(dtype, elements, i, imaginary), size = fabs(x);
        if (!isfinite(x)) {
            extent.nonfinite = true;
            extent.minus_infinity |= isinf(x) && x < 0;
            continue;
        }
        if (size > 0) {
            extent.largest = size > extent.largest ? size : extent.largest;
            extent.smallest = size < extent.smallest ? size : extent.smallest;
        }
    }
    return extent;
}

static bool needs_exponents(stk_dtype part, const struct extent *extent, bool suppress_small)
{
    /* From about the precision of the dtype on, plain notation would look exact although it is not. NumPy uses 10^8, or
     * 10^p if finfo(dtype).precision is p < 8. It has no bf16, which is treated like f16, and no 8-bit floats. */
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
    if (extent.nonfinite) { /* "nan", "inf" or "-inf" must also fit */
        int least = (imaginary || extent.minus_infinity ? 4 : 3) - (column->right + 1);
        column->left = least > column->left ? least : column->left;
    }
}

static int write_nonfinite(const stki_real_column *column, double x, char *out)
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
        return write_nonfinite(column, x, out);
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

/* The j follows the digits, before the spaces that pad the column. */
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

/* ---- integers ---- */

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

/* ---- any dtype ---- */

/* Determines the column's format from `count` contiguous elements in native byte order. `precision` may be 0. */
static void fit_column(stki_column *column, stk_dtype dtype, const void *elements, int64_t count, int precision,
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

/* Writes one element to `out`, which has 2 * STKI_NUMBER_SIZE bytes, and returns the length. */
static int write_column(const stki_column *column, const void *element, bool alone, char *out)
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

enum { MOST_SHOWN = 1 << 24 };

/* ---- options ---- */

static stk_status read_options(const stk_print_opts *given, stk_print_opts *out, stk_error *err)
{
    *out = (stk_print_opts){0};
    if (given && given->struct_size < 2 * sizeof(uint32_t))
        return stki_fail(err, STK_E_BAD_ARG, "struct_size: found %u, expected the value that STK_PRINT_OPTS_INIT sets",
                         given->struct_size);
    if (given)
        memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    if (out->precision < STK_PRINT_NONE || out->precision > STKI_MAX_PRECISION)
        return stki_fail(err, STK_E_BAD_ARG, "precision: found %d, expected 0 to %d, or -1", out->precision,
                         STKI_MAX_PRECISION);
    if (out->threshold < STK_PRINT_NONE)
        return stki_fail(err, STK_E_BAD_ARG, "threshold: found %" PRId64 ", expected at least 0, or -1",
                         out->threshold);
    if (out->edge_items < 0 || out->edge_items > 1000000)
        return stki_fail(err, STK_E_BAD_ARG, "edge_items: found %d, expected 0 to 1000000", out->edge_items);
    if (out->line_width < 0 || out->line_width > 1000000)
        return stki_fail(err, STK_E_BAD_ARG, "line_width: found %d, expected 0 to 1000000", out->line_width);
    out->separator = out->separator ? out->separator : " ";
    if (strlen(out->separator) > 8)
        return stki_fail(err, STK_E_BAD_ARG, "separator: found %zu characters, expected at most 8",
                         strlen(out->separator));
    out->precision = out->precision == 0 ? 8 : out->precision == STK_PRINT_NONE ? 0 : out->precision;
    out->threshold = out->threshold == 0 ? 1000 : out->threshold == STK_PRINT_NONE ? 0 : out->threshold;
    out->edge_items = out->edge_items ? out->edge_items : 3;
    out->line_width = out->line_width ? out->line_width : 75;
    return STK_OK;
}

/* ---- printed elements ---- */

struct shown {
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* number of printed indices of each axis */
    bool cut[STK_MAX_DIMS];      /* the axis is abbreviated, with a gap in the middle */
    int64_t count, bytes;
    char *elements; /* contiguous, native byte order */
};

static stk_status choose(struct shown *shown, const stk_tensor *tensor, const stk_print_opts *opts, stk_error *err)
{
    const int64_t numel = stk_tensor_numel(tensor);
    const bool summary = numel > opts->threshold;

    *shown = (struct shown){.ndim = tensor->ndim, .count = numel > 0};
    for (int i = 0; i < tensor->ndim && numel > 0; i++) {
        shown->cut[i] = summary && tensor->shape[i] > 2 * (int64_t)opts->edge_items;
        shown->shape[i] = shown->cut[i] ? 2 * opts->edge_items : tensor->shape[i];
        if (shown->shape[i] > MOST_SHOWN || (shown->count *= shown->shape[i]) > MOST_SHOWN)
            return stki_fail(err, STK_E_LIMIT, "more than %d elements to print: lower edge_items or threshold",
                             (int)MOST_SHOWN);
    }
    shown->bytes = shown->count * stk_dtype_size(tensor->dtype);
    return STK_OK;
}

/* Bytes from the first element of an axis to the one printed at `place`. */
static int64_t offset_of(const struct shown *shown, const stk_tensor *tensor, int axis, int64_t place)
{
    bool at_end = shown->cut[axis] && place >= shown->shape[axis] / 2;

    return tensor->strides[axis] * (at_end ? tensor->shape[axis] - shown->shape[axis] + place : place);
}

static void gather(struct shown *shown, const stk_tensor *tensor)
{
    const int64_t size = stk_dtype_size(tensor->dtype);
    int64_t index[STK_MAX_DIMS] = {0};
    stki_cast cast;

    stki_cast_init(&cast, tensor->dtype, tensor->dtype, (tensor->flags & STK_TENSOR_SWAPPED) != 0);
    for (int64_t n = 0; n < shown->count; n++) {
        int64_t offset = 0;
        for (int axis = 0; axis < shown->ndim; axis++)
            offset += offset_of(shown, tensor, axis, index[axis]);
        stki_cast_row(&cast, shown->elements + n * size, size, (const char *)tensor->data + offset, size, 1);
        for (int axis = shown->ndim - 1; axis >= 0 && ++index[axis] == shown->shape[axis]; axis--)
            index[axis] = 0;
    }
}

static stk_status gather_elements(struct shown *shown, const stk_tensor *tensor, const stk_print_opts *opts,
                                  stk_error *err)
{
    stki_stage stage;
    stk_status status = choose(shown, tensor, opts, err);

    if (status != STK_OK)
        return status;
    shown->elements = stki_zalloc(shown->bytes);
    if (!shown->elements)
        return stki_fail_memory(err, shown->bytes, "printing");
    status = stki_stage_begin(&stage, tensor, err);
    if (status != STK_OK) {
        stki_free(shown->elements);
        return status;
    }
    gather(shown, &stage.host);
    stki_stage_end(&stage);
    return STK_OK;
}

/* ---- layout ---- */

struct layout {
    const struct shown *shown;
    const stki_column *column;
    const stk_print_opts *opts;
    stki_text_build text;
    int64_t element;      /* index of the next element to write */
    int64_t line_start;   /* offset of the current line in the text */
    int separator_length; /* without trailing spaces */
};

static void end_line(struct layout *layout, int newlines)
{
    stki_text_build *text = &layout->text;

    while (text->length > layout->line_start && text->text[text->length - 1] == ' ')
        text->text[--text->length] = '\0';
    stki_put_many(text, '\n', newlines);
    layout->line_start = text->length;
}

/* Appends a word to the current line, or to a new one if it would exceed `width`. */
static void put_word(struct layout *layout, const char *word, int length, int64_t width, int indent)
{
    int64_t used = layout->text.length - layout->line_start;

    if (used + length > width && used > indent && !layout->text.failed) {
        end_line(layout, 1);
        stki_put_many(&layout->text, ' ', indent);
    }
    stki_put_bytes(&layout->text, word, length);
}

static void put_row(struct layout *layout, int64_t width, int indent)
{
    const struct shown *shown = layout->shown;
    const int axis = shown->ndim - 1;
    const int64_t size = stk_dtype_size(layout->column->dtype);

    width -= layout->separator_length > 1 ? layout->separator_length : 1;
    for (int64_t i = 0; i < shown->shape[axis]; i++) {
        char word[2 * STKI_NUMBER_SIZE];
        int length = write_column(layout->column, shown->elements + layout->element++ * size, false, word);
        if (shown->cut[axis] && i == shown->shape[axis] / 2) {
            put_word(layout, "...", 3, width, indent);
            stki_put(&layout->text, layout->opts->separator);
        }
        put_word(layout, word, length, width, indent);
        if (i + 1 < shown->shape[axis])
            stki_put(&layout->text, layout->opts->separator);
    }
}

/* Ends an item of an axis that is not the last: the separator without its spaces, and a newline per remaining axis. */
static void end_part(struct layout *layout, int axes_left)
{
    stki_put_bytes(&layout->text, layout->opts->separator, layout->separator_length);
    stki_put_many(&layout->text, '\n', axes_left - 1);
    layout->line_start = layout->text.length;
}

static void put_axis(struct layout *layout, int axis, int64_t width)
{
    const struct shown *shown = layout->shown;
    const int indent = axis + 1, axes_left = shown->ndim - axis;

    stki_put(&layout->text, "[");
    if (axes_left == 1) {
        put_row(layout, width, indent);
    } else {
        for (int64_t i = 0; i < shown->shape[axis]; i++) {
            if (i > 0)
                stki_put_many(&layout->text, ' ', indent);
            if (shown->cut[axis] && i == shown->shape[axis] / 2) {
                stki_put(&layout->text, "...");
                end_part(layout, axes_left);
                stki_put_many(&layout->text, ' ', indent);
            }
            put_axis(layout, axis + 1, width - 1);
            if (i + 1 < shown->shape[axis])
                end_part(layout, axes_left);
        }
    }
    stki_put(&layout->text, "]");
}

static void put_all(struct layout *layout)
{
    const struct shown *shown = layout->shown;
    char word[2 * STKI_NUMBER_SIZE];

    layout->separator_length = (int)strlen(layout->opts->separator);
    while (layout->separator_length > 0 && layout->opts->separator[layout->separator_length - 1] == ' ')
        layout->separator_length--;
    if (shown->count == 0)
        stki_put(&layout->text, "[]");
    else if (shown->ndim == 0)
        stki_put_bytes(&layout->text, word, write_column(layout->column, shown->elements, true, word));
    else
        put_axis(layout, 0, layout->opts->line_width);
}

stk_status stk_tensor_format(const stk_tensor *tensor, const stk_print_opts *opts, char **out, stk_error *err)
{
    STKI_PROFILE("format");
    stk_print_opts effective;
    struct shown shown;
    stki_column column;
    struct layout layout = {.shown = &shown, .column = &column, .opts = &effective};
    char *text;
    stk_status status = stki_dtype_check(tensor->dtype, err);

    status = status != STK_OK ? status : read_options(opts, &effective, err);
    status = status != STK_OK ? status : gather_elements(&shown, tensor, &effective, err);
    if (status != STK_OK)
        return status;
    fit_column(&column, tensor->dtype, shown.elements, shown.count, effective.precision, effective.suppress_small);
    put_all(&layout);
    stki_free(shown.elements);
    text = stki_text_take(&layout.text);
    if (!text)
        return stki_fail_memory(err, shown.bytes, "a printed tensor");
    *out = text;
    return STK_OK;
}
