/* print.c: tensors as text. The elements to show are brought together first, so that nothing of a large tensor, or of
 * another device, is touched beyond its edges; then they are laid out row by row. */
#include "allocate.h"
#include "cast.h"
#include "device_table.h"
#include "dtype.h"
#include "error.h"
#include "print_column.h"
#include "profile_scope.h"
#include "stage.h"
#include "tensor_internal.h"
#include "text_build.h"
#include <inttypes.h>
#include <stoker/print.h>
#include <string.h>

enum { MOST_SHOWN = 1 << 24 };

/* ---- options ----------------------------------------------------------------------------------------------------- */

static stk_status read_options(const stk_print_opts *given, stk_print_opts *out, stk_error *err)
{
    *out = (stk_print_opts){0};
    if (given && given->struct_size < 2 * sizeof(uint32_t))
        return stki_fail(err, STK_E_BAD_ARG, "struct_size: found %u, expected STK_PRINT_OPTS_INIT", given->struct_size);
    if (given)
        memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    if (out->precision < STK_PRINT_NONE || out->precision > STKI_MAX_PRECISION)
        return stki_fail(err, STK_E_BAD_ARG, "precision: found %d, must be 0 to %d, or -1", out->precision,
                         STKI_MAX_PRECISION);
    if (out->threshold < STK_PRINT_NONE)
        return stki_fail(err, STK_E_BAD_ARG, "threshold: found %" PRId64 ", must be at least 0, or -1", out->threshold);
    if (out->edge_items < 0 || out->edge_items > 1000000)
        return stki_fail(err, STK_E_BAD_ARG, "edge_items: found %d, must be 0 to 1000000", out->edge_items);
    if (out->line_width < 0 || out->line_width > 1000000)
        return stki_fail(err, STK_E_BAD_ARG, "line_width: found %d, must be 0 to 1000000", out->line_width);
    out->separator = out->separator ? out->separator : " ";
    if (strlen(out->separator) > 8)
        return stki_fail(err, STK_E_BAD_ARG, "separator: found %zu characters, must be at most 8",
                         strlen(out->separator));
    out->precision = out->precision == 0 ? 8 : out->precision == STK_PRINT_NONE ? 0 : out->precision;
    out->threshold = out->threshold == 0 ? 1000 : out->threshold == STK_PRINT_NONE ? 0 : out->threshold;
    out->edge_items = out->edge_items ? out->edge_items : 3;
    out->line_width = out->line_width ? out->line_width : 75;
    return STK_OK;
}

/* ---- what is shown ----------------------------------------------------------------------------------------------- */

struct shown {
    int ndim;
    int64_t shape[STK_MAX_DIMS]; /* shown indices of each axis */
    bool cut[STK_MAX_DIMS];      /* the axis has a gap in the middle */
    int64_t count, bytes;
    char *elements; /* side by side, native byte order */
};

static stk_status choose(struct shown *shown, const stk_tensor *tensor, const stk_print_opts *opts, stk_error *err)
{
    bool summary = stk_tensor_numel(tensor) > opts->threshold;

    *shown = (struct shown){.ndim = tensor->ndim, .count = 1};
    for (int i = 0; i < tensor->ndim; i++) {
        shown->cut[i] = summary && tensor->shape[i] > 2 * (int64_t)opts->edge_items;
        shown->shape[i] = shown->cut[i] ? 2 * opts->edge_items : tensor->shape[i];
        if (shown->shape[i] > MOST_SHOWN || (shown->count *= shown->shape[i]) > MOST_SHOWN)
            return stki_fail(err, STK_E_LIMIT, "more than %d elements to print: lower edge_items or threshold",
                             (int)MOST_SHOWN);
    }
    shown->bytes = shown->count * stk_dtype_size(tensor->dtype);
    return STK_OK;
}

/* Bytes from the first element of an axis to the one that is shown at `place`. */
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

static stk_status bring_together(struct shown *shown, const stk_tensor *tensor, const stk_print_opts *opts,
                                 stk_error *err)
{
    stki_stage stage;
    stk_status status = choose(shown, tensor, opts, err);

    if (status)
        return status;
    shown->elements = stki_zalloc(shown->bytes);
    if (!shown->elements)
        return stki_fail_memory(err, shown->bytes, "printing");
    status = stki_stage_begin(&stage, tensor, err);
    if (status) {
        stki_free(shown->elements);
        return status;
    }
    gather(shown, &stage.host);
    stki_stage_end(&stage);
    return STK_OK;
}

/* ---- layout ------------------------------------------------------------------------------------------------------ */

struct layout {
    const struct shown *shown;
    const stki_column *column;
    const stk_print_opts *opts;
    stki_text_build text;
    int64_t element;      /* next one to write */
    int64_t line_start;   /* where the current line of the text begins */
    int separator_length; /* without the spaces at its end */
};

static void end_line(struct layout *layout, int newlines)
{
    stki_text_build *text = &layout->text;

    while (text->length > layout->line_start && text->text[text->length - 1] == ' ')
        text->text[--text->length] = '\0';
    stki_put_many(text, '\n', newlines);
    layout->line_start = text->length;
}

/* A word on the current line, or on the next one if it would reach beyond `width`. */
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
        int length = stki_column_write(layout->column, shown->elements + layout->element++ * size, false, word);
        if (shown->cut[axis] && i == shown->shape[axis] / 2) {
            put_word(layout, "...", 3, width, indent);
            stki_put(&layout->text, layout->opts->separator);
        }
        put_word(layout, word, length, width, indent);
        if (i + 1 < shown->shape[axis])
            stki_put(&layout->text, layout->opts->separator);
    }
}

/* Between the parts of an axis that is not the last: the separator without its spaces, and a line for each axis left.
 */
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
        stki_put_bytes(&layout->text, word, stki_column_write(layout->column, shown->elements, true, word));
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

    status = status ? status : read_options(opts, &effective, err);
    status = status ? status : bring_together(&shown, tensor, &effective, err);
    if (status)
        return status;
    stki_column_fit(&column, tensor->dtype, shown.elements, shown.count, effective.precision, effective.suppress_small);
    put_all(&layout);
    stki_free(shown.elements);
    text = stki_text_take(&layout.text);
    if (!text)
        return stki_fail_memory(err, shown.bytes, "a printed tensor");
    *out = text;
    return STK_OK;
}
