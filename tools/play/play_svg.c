/* play_svg.c: see play_svg.h. */
#include "play_svg.h"
#include "html.h"
#include "play_cells.h"
#include "play_page.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 8, CELL = 40, CELL_HIGH = 52, MOST_CELLS = 256, GROUPS = 240 };
enum { BOX = 34, BOX_HIGH = 24, MOST_SIDE = 12, MOST_PLANES = 8, MARGIN = 24 };

/* Lightness in reading order, from light to dark. */
static double shade(int64_t order, int64_t count)
{
    return count < 2 ? 0.35 : 0.12 + 0.5 * (double)order / (double)(count - 1);
}

/* The font size at which `length` characters fit in `room`. */
static double type_size(double room, size_t length)
{
    double fits = room / (0.62 * (double)(length ? length : 1));

    return fits < 13 ? fits : 13;
}

static void put_value(FILE *to, double x, double y, double size, const char *class, const char *text)
{
    fprintf(to, "<text class=\"%s\" x=\"%g\" y=\"%g\"", class, x, y);
    if (size < 13)
        fprintf(to, " style=\"font-size:%.1fpx\"", size);
    fputc('>', to);
    html_text(to, text);
    fputs("</text>", to);
}

static void put_cell(const stk_tensor *tensor, const struct pl_entry *entry, int64_t cell, int column, double type,
                     FILE *to)
{
    int64_t count = stk_tensor_numel(tensor);
    char value[PL_VALUE_BYTES];
    double x = column * CELL + 1;
    bool on = entry->first >= 0;

    fprintf(to, "<rect class=\"%s\" x=\"%g\" y=\"12\" width=\"%d\" height=\"26\"", on ? "on" : "off", x, CELL);
    if (on)
        fprintf(to, " fill-opacity=\"%.2f\"", shade(entry->first, count));
    fprintf(to, "/><text class=\"i\" x=\"%g\" y=\"9\">%" PRId64 "</text>", x + CELL / 2.0, cell);
    put_value(to, x + CELL / 2.0, 30, type, on ? "v" : "v u", pl_cell_value(tensor, cell, value));
    if (on && entry->times == 1)
        fprintf(to, "<text class=\"o\" x=\"%g\" y=\"49\">%" PRId64 "</text>", x + CELL / 2.0, entry->first);
    else if (on)
        fprintf(to, "<text class=\"o\" x=\"%g\" y=\"49\">%" PRId64 " ×%" PRId64 "</text>", x + CELL / 2.0, entry->first,
                entry->times);
    fputc('\n', to);
}

static void draw_cells(const stk_tensor *tensor, const struct pl_cells *cells, int hue, FILE *to)
{
    char value[PL_VALUE_BYTES];
    size_t longest = 0;

    for (int64_t i = 0; i < cells->cell_count; i++) {
        size_t length = strlen(pl_cell_value(tensor, i, value));
        longest = length > longest ? length : longest;
    }
    fprintf(to, "<div class=\"cells h%d\">\n", hue);
    for (int64_t start = 0; start < cells->cell_count; start += CHUNK) {
        int count = (int)(cells->cell_count - start < CHUNK ? cells->cell_count - start : CHUNK);
        fprintf(to,
                "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"cells %" PRId64
                " to %" PRId64 "\">\n",
                count * CELL + 2, CELL_HIGH, count * CELL + 2, CELL_HIGH, start, start + count - 1);
        for (int i = 0; i < count; i++)
            put_cell(tensor, &cells->entries[start + i], start + i, i, type_size(CELL - 4, longest), to);
        fputs("</svg>\n", to);
    }
    fputs("</div>\n", to);
}

/* The percentage of a group of cells that is read, rounded to steps of 5, so that a view of every other cell is drawn
 * in one shade. */
static int percent_read(const struct pl_cells *cells, int64_t group)
{
    int64_t left = cells->cell_count - group * cells->cells_per_entry;
    int64_t size = left < cells->cells_per_entry ? left : cells->cells_per_entry;
    double percent = 100 * (double)cells->entries[group].times / (double)size;

    if (percent > 100)
        return 100;
    return percent > 0 && percent < 5 ? 5 : 5 * (int)rint(percent / 5);
}

/* Draws a storage with too many cells as stripes, one per group of cells, whose darkness is the share that is read. */
static void draw_bar(const struct pl_cells *cells, int hue, FILE *to)
{
    double width = 960.0 / (double)cells->entry_count;

    fprintf(to,
            "<svg class=\"h%d\" width=\"960\" height=\"34\" viewBox=\"0 0 960 34\" preserveAspectRatio=\"none\" "
            "role=\"img\" aria-label=\"share of the storage that is read\" style=\"width:100%%;height:34px\">\n"
            "<rect class=\"box\" x=\".5\" y=\".5\" width=\"959\" height=\"33\"/>\n",
            hue);
    for (int64_t i = 0, end; i < cells->entry_count; i = end) {
        int share = percent_read(cells, i);
        for (end = i + 1; end < cells->entry_count && percent_read(cells, end) == share;)
            end++;
        if (share > 0)
            fprintf(to,
                    "<rect fill=\"var(--h)\" x=\"%.2f\" y=\"1\" width=\"%.2f\" height=\"32\" fill-opacity=\"%.2f\"/>\n",
                    (double)i * width, (double)(end - i) * width, 0.08 + 0.0067 * share);
    }
    fprintf(to,
            "</svg>\n<figcaption>cells 0 to %" PRId64 "; a stripe is %" PRId64 " of them; darker means more "
            "reads</figcaption>\n",
            cells->cell_count - 1, cells->cells_per_entry);
}

stk_status pl_svg_storage(const stk_tensor *tensor, int hue, FILE *to, stk_error *err)
{
    struct pl_cells cells;
    stk_status status = pl_cells_of(tensor, MOST_CELLS, GROUPS, &cells, err);

    if (status != STK_OK)
        return status;
    if (cells.read_count < 0)
        fputs("<p>Too many elements to draw.</p>\n", to);
    else if (cells.cell_count == 0)
        fputs("<p>The storage is empty.</p>\n", to);
    else if (cells.cells_per_entry == 1)
        draw_cells(tensor, &cells, hue, to);
    else
        draw_bar(&cells, hue, to);
    pl_cells_fini(&cells);
    return STK_OK;
}

/* ---- tensor ---- */

static int shown(int64_t size)
{
    return (int)(size < MOST_SIDE ? size : MOST_SIDE);
}

static void put_element(const stk_tensor *tensor, int64_t *index, int row, int column, double type, FILE *to)
{
    char value[PL_VALUE_BYTES];
    int64_t order = 0;
    double x = MARGIN + column * BOX, y = 12 + row * BOX_HIGH;

    if (tensor->ndim > 0)
        index[tensor->ndim - 1] = column;
    if (tensor->ndim > 1)
        index[tensor->ndim - 2] = row;
    for (int i = 0; i < tensor->ndim; i++)
        order = order * tensor->shape[i] + index[i];
    fprintf(to, "<rect class=\"on\" x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" fill-opacity=\"%.2f\"/>", x, y, BOX,
            BOX_HIGH, shade(order, stk_tensor_numel(tensor)));
    put_value(to, x + BOX / 2.0, y + 17, type, "v", pl_element_value(tensor, index, value));
}

static void draw_plane(const stk_tensor *tensor, int64_t *index, int hue, double type, FILE *to)
{
    int64_t high = tensor->ndim > 1 ? tensor->shape[tensor->ndim - 2] : 1;
    int64_t wide = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
    int rows = shown(high), columns = shown(wide);
    int width = MARGIN + columns * BOX + 1 + (columns < wide ? 18 : 0),
        height = 13 + rows * BOX_HIGH + (rows < high ? 16 : 0);

    fprintf(to,
            "<figure><svg class=\"h%d\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"",
            hue, width, height, width, height);
    fprintf(to, "%d rows of %d elements\">\n", rows, columns);
    for (int c = 0; c < columns && tensor->ndim > 0; c++)
        fprintf(to, "<text class=\"i\" x=\"%g\" y=\"9\">%d</text>", MARGIN + (c + 0.5) * BOX, c);
    for (int r = 0; r < rows; r++) {
        if (tensor->ndim > 1)
            fprintf(to, "<text class=\"i e\" x=\"%d\" y=\"%d\">%d</text>", MARGIN - 6, 12 + r * BOX_HIGH + 16, r);
        for (int c = 0; c < columns; c++)
            put_element(tensor, index, r, c, type, to);
        if (columns < wide)
            fprintf(to, "<text class=\"i\" x=\"%d\" y=\"%d\">…</text>", MARGIN + columns * BOX + 9,
                    12 + r * BOX_HIGH + 15);
        fputc('\n', to);
    }
    if (rows < high)
        fprintf(to, "<text class=\"i\" x=\"%d\" y=\"%d\">⋮</text>", MARGIN + columns * BOX / 2, height - 3);
    fputs("</svg>", to);
    if (tensor->ndim > 2) {
        fputs("<figcaption class=\"mono\">[", to);
        for (int i = 0; i < tensor->ndim - 2; i++)
            fprintf(to, "%" PRId64 ", ", index[i]);
        fputs(":, :]</figcaption>", to);
    }
    fputs("</figure>\n", to);
}

/* The length of the longest value among the drawn elements. */
static size_t longest_value(const stk_tensor *tensor)
{
    int64_t index[STK_MAX_DIMS] = {0};
    char value[PL_VALUE_BYTES];
    size_t longest = 0;

    for (int steps = 0; steps < MOST_PLANES * MOST_SIDE * MOST_SIDE; steps++) {
        int axis = tensor->ndim - 1;
        size_t length = strlen(pl_element_value(tensor, index, value));
        longest = length > longest ? length : longest;
        while (axis >= 0) {
            bool side = axis >= tensor->ndim - 2;
            if (++index[axis] < (side ? shown(tensor->shape[axis]) : tensor->shape[axis]))
                break;
            index[axis--] = 0;
        }
        if (axis < 0)
            break;
    }
    return longest;
}

void pl_svg_tensor(const stk_tensor *tensor, int hue, FILE *to)
{
    int64_t index[STK_MAX_DIMS] = {0}, planes = 1;
    double type;

    if (stk_tensor_numel(tensor) == 0) {
        fputs("<p>No elements.</p>\n", to);
        return;
    }
    for (int i = 0; i < tensor->ndim - 2; i++)
        planes = planes > MOST_PLANES ? planes : planes * tensor->shape[i];
    type = type_size(BOX - 3, longest_value(tensor));
    fputs("<div class=\"planes\">\n", to);
    for (int plane = 0; plane < planes && plane < MOST_PLANES; plane++) {
        int64_t rest = plane;
        for (int i = tensor->ndim - 3; i >= 0; i--) {
            index[i] = rest % tensor->shape[i];
            rest /= tensor->shape[i];
        }
        draw_plane(tensor, index, hue, type, to);
    }
    fputs(planes > MOST_PLANES ? "<figure>… more planes</figure></div>\n" : "</div>\n", to);
}

/* ---- broadcast ---- */

enum { PLACE = 52, PLACE_HIGH = 30, NAMES = 64 };

static void put_place(double x, double y, const char *class, int64_t size, FILE *to)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRId64, size);
    fprintf(to, "<rect class=\"%s\" x=\"%g\" y=\"%g\" width=\"%d\" height=\"%d\" rx=\"4\" fill-opacity=\".3\"/>", class,
            x, y, PLACE - 8, PLACE_HIGH - 6);
    put_value(to, x + (PLACE - 8) / 2.0, y + 17, type_size(PLACE - 12, strlen(text)), "v", text);
}

void pl_svg_broadcast(const char *const names[2], const int ndims[2], const int64_t *const shapes[2], FILE *to)
{
    int most = ndims[0] > ndims[1] ? ndims[0] : ndims[1];
    int width = NAMES + most * PLACE + 4, height = 3 * PLACE_HIGH + 14;

    fprintf(to, "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"aligned shapes\">\n",
            width, height, width, height);
    for (int row = 0; row < 3; row++) {
        fprintf(to, "<text class=\"v e u\" x=\"%d\" y=\"%d\">", NAMES - 10,
                row * PLACE_HIGH + 18 + (row == 2 ? 10 : 0));
        html_text(to, row < 2 ? names[row] : "result");
        fputs("</text>\n", to);
    }
    fprintf(to, "<path class=\"axis\" d=\"M4 %dH%d\"/>\n", 2 * PLACE_HIGH + 4, width - 4);
    for (int place = 1; place <= most; place++) {
        double x = NAMES + (most - place) * PLACE;
        int64_t size[2];
        for (int s = 0; s < 2; s++)
            size[s] = place <= ndims[s] ? shapes[s][ndims[s] - place] : 1;
        bool fits = size[0] == size[1] || size[0] == 1 || size[1] == 1;
        for (int s = 0; s < 2; s++) {
            bool grows = size[s] == 1 && size[1 - s] != 1;
            fprintf(to, "<g class=\"h%d\">", s);
            if (place <= ndims[s])
                put_place(x, s * PLACE_HIGH + 1, !fits ? "err" : grows ? "off" : "on", size[s], to);
            else
                fprintf(to, "<text class=\"i\" x=\"%g\" y=\"%d\">(1)</text>", x + (PLACE - 8) / 2.0,
                        s * PLACE_HIGH + 17);
            fputs("</g>\n", to);
        }
        if (fits)
            fprintf(to, "<g class=\"h%d\">", size[0] == 1 && size[1] != 1 ? 1 : 0);
        if (fits)
            put_place(x, 2 * PLACE_HIGH + 11, "on", size[0] == 1 ? size[1] : size[0], to);
        fputs(fits ? "</g>\n" : "", to);
        if (!fits)
            fprintf(to, "<text class=\"v\" x=\"%g\" y=\"%d\" style=\"fill:var(--bad)\">✗</text>\n",
                    x + (PLACE - 8) / 2.0, 2 * PLACE_HIGH + 28);
    }
    fputs("</svg>\n", to);
}
