/* play_text.c: a step as text: its description, and its storage as rows of cells with the index of the element that
 * reads each cell. */
#include "play.h"
#include "play_cells.h"
#include "play_ops.h"
#include <inttypes.h>
#include <string.h>

enum { MOST_CELLS = 96, LABEL = 16 };

const char *pl_bytes_text(char *buffer, int size, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    int unit = 0;

    while (value >= 1024 && unit < 6) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        snprintf(buffer, (size_t)size, "%" PRId64 " byte%s", bytes, bytes == 1 ? "" : "s");
    else
        snprintf(buffer, (size_t)size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[unit]);
    return buffer;
}

const char *pl_how_text(char *buffer, int size, const struct pl_step *step)
{
    static const char *const texts[] = {
        [PL_NEW] = "new memory",
        [PL_VIEW] = "a view: no elements were moved",
        [PL_SAME] = "the same tensor: nothing to do",
        [PL_COPY] = "a copy in new memory",
        [PL_COMPUTED] = "results in new memory",
        [PL_IN_PLACE] = "written in place",
        [PL_TEXT] = "",
    };

    if (step->from < 0)
        snprintf(buffer, (size_t)size, "%s", texts[step->how]);
    else
        snprintf(buffer, (size_t)size, "%s (from step %d)", texts[step->how], step->from + 1);
    return buffer;
}

const char *pl_contiguity_text(const stk_tensor *tensor)
{
    bool row = stk_tensor_is_contiguous(tensor), last = stk_tensor_is_channels_last(tensor);

    return row && last ? "row-major and channels_last" : row ? "row-major" : last ? "channels_last" : "no";
}

const char *pl_shared_text(char *buffer, int size, const struct pl_session *session, int index)
{
    int used = 0, count = 0;

    snprintf(buffer, (size_t)size, "no earlier step");
    for (int i = 0; i < index; i++)
        count += session->steps[i].how != PL_TEXT &&
                 session->steps[i].tensor.storage == session->steps[index].tensor.storage;
    for (int i = 0; i < index && used < size - 40; i++) {
        const struct pl_step *step = &session->steps[i];
        if (step->how == PL_TEXT || step->tensor.storage != session->steps[index].tensor.storage)
            continue;
        used += snprintf(buffer + used, (size_t)(size - used), "%s%d%s%s%s",
                         used        ? ", "
                         : count > 1 ? "steps "
                                     : "step ",
                         i + 1, *step->name ? " (" : "", step->name, *step->name ? ")" : "");
    }
    return buffer;
}

void pl_print_folded(const char *text, int columns, int indent, FILE *to)
{
    while (*text) {
        size_t length = strlen(text), room = (size_t)(columns - 2 * indent);
        if (length > room) {
            length = room;
            while (length > 0 && text[length] != ' ')
                length--;
            length = length ? length : room;
        }
        fprintf(to, "%*s%.*s\n", indent, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

/* ---- drawing ---- */

static void order_text(const struct pl_entry *entry, char *buffer, size_t size)
{
    if (entry->first < 0)
        snprintf(buffer, size, ".");
    else if (entry->times == 1)
        snprintf(buffer, size, "%" PRId64, entry->first);
    else
        snprintf(buffer, size, "%" PRId64 "*%" PRId64, entry->first, entry->times);
}

static int cell_width(const stk_tensor *tensor, const struct pl_cells *cells)
{
    char text[PL_VALUE_BYTES];
    size_t widest = 2;

    for (int64_t i = 0; i < cells->cell_count; i++) {
        size_t length = strlen(pl_cell_value(tensor, i, text));
        widest = length > widest ? length : widest;
        order_text(&cells->entries[i], text, sizeof text);
        widest = strlen(text) > widest ? strlen(text) : widest;
    }
    return (int)widest + 1;
}

static void print_rows(const stk_tensor *tensor, const struct pl_cells *cells, int columns, FILE *to)
{
    char text[PL_VALUE_BYTES];
    int width = cell_width(tensor, cells);
    int64_t a_row = (columns - LABEL) / width > 0 ? (columns - LABEL) / width : 1;

    /* a multiple of four often aligns rows of the tensor, which makes them easier to compare */
    a_row = a_row >= 8 ? a_row / 4 * 4 : a_row;
    for (int64_t start = 0; start < cells->cell_count; start += a_row) {
        int64_t end = start + a_row < cells->cell_count ? start + a_row : cells->cell_count;
        fprintf(to, "%s     %-*s", start ? "\n" : "", LABEL - 5, "cell");
        for (int64_t i = start; i < end; i++)
            fprintf(to, "%*" PRId64, width, i);
        fprintf(to, "\n     %-*s", LABEL - 5, "value");
        for (int64_t i = start; i < end; i++)
            fprintf(to, "%*s", width, pl_cell_value(tensor, i, text));
        fprintf(to, "\n     %-*s", LABEL - 5, "read as");
        for (int64_t i = start; i < end; i++) {
            order_text(&cells->entries[i], text, sizeof text);
            fprintf(to, "%*s", width, text);
        }
        fputc('\n', to);
    }
}

/* Draws one character per group of cells: the share that is read. */
static void print_bar(const struct pl_cells *cells, FILE *to)
{
    static const char shades[] = ".:-=+*#@";

    fprintf(to, "     %-*s", LABEL - 5, "read");
    for (int64_t i = 0; i < cells->entry_count; i++) {
        int64_t left = cells->cell_count - i * cells->cells_per_entry;
        double share =
            (double)cells->entries[i].times / (double)(left < cells->cells_per_entry ? left : cells->cells_per_entry);
        fputc(share <= 0 ? '.' : share >= 1 ? '@' : shades[1 + (int)(share * 6)], to);
    }
    fprintf(to, "\n     %-*seach character is %" PRId64 " cells, from . (none read) to @ (all read)\n", LABEL - 5, "",
            cells->cells_per_entry);
}

static stk_status print_storage(const stk_tensor *tensor, int columns, FILE *to, stk_error *err)
{
    struct pl_cells cells;
    stk_status status = pl_cells_of(tensor, MOST_CELLS, columns - LABEL, &cells, err);

    if (status != STK_OK)
        return status;
    fprintf(to, "   %-12s %" PRId64 " cell%s of %" PRId64 " byte%s; ", "storage", cells.cell_count,
            cells.cell_count == 1 ? "" : "s", stk_dtype_size(tensor->dtype),
            stk_dtype_size(tensor->dtype) == 1 ? "" : "s");
    if (cells.read_count < 0)
        fprintf(to, "too many elements to draw\n");
    else if (cells.read_count == cells.cell_count && cells.cell_count == stk_tensor_numel(tensor))
        fprintf(to, "all are read, once each\n");
    else
        fprintf(to, "%" PRId64 " are read%s\n", cells.read_count,
                cells.read_count < stk_tensor_numel(tensor) ? ", some more than once" : "");
    if (cells.read_count >= 0 && cells.cells_per_entry == 1)
        print_rows(tensor, &cells, columns, to);
    else if (cells.read_count >= 0)
        print_bar(&cells, to);
    pl_cells_fini(&cells);
    return STK_OK;
}

stk_status pl_text_step(const struct pl_session *session, int index, int columns, FILE *to, stk_error *err)
{
    const struct pl_step *step = &session->steps[index];
    const stk_tensor *tensor = &step->tensor;
    int64_t strides[STK_MAX_DIMS], offset;
    char text[400], letter[16], own[32], whole[32], all[32];
    stk_status status;

    fprintf(to, "%d  %s\n", index + 1, step->text);
    if (step->how == PL_TEXT) {
        fprintf(to, "%s\n\n", step->said ? step->said : "");
        return STK_OK;
    }
    status = stk_tensor_element_strides(tensor, strides, &offset, err);
    if (status != STK_OK)
        return status;
    fprintf(to, "   %-12s %s %s; %s\n", "tensor", stk_dtype_name(tensor->dtype), PL_SHAPE(tensor->ndim, tensor->shape),
            pl_how_text(text, sizeof text, step));
    fprintf(to, "   %-12s %s elements, %s bytes\n", "strides", PL_SHAPE(tensor->ndim, strides),
            PL_SHAPE(tensor->ndim, tensor->strides));
    fprintf(to, "   %-12s %" PRId64 " elements, %" PRId64 " bytes\n", "offset", offset,
            stk_tensor_offset_bytes(tensor));
    fprintf(to, "   %-12s %s\n", "contiguous", pl_contiguity_text(tensor));
    fprintf(to, "   %-12s %s\n", "shares with", pl_shared_text(text, sizeof text, session, index));
    fprintf(to, "   %-12s %s of storage %s, which has %s; %s in this session\n", "memory",
            pl_bytes_text(own, sizeof own, stk_tensor_nbytes(tensor)),
            pl_storage_name(letter, sizeof letter, pl_session_storage(session, index)),
            pl_bytes_text(whole, sizeof whole, stk_storage_bytes(tensor->storage)),
            pl_bytes_text(all, sizeof all, pl_session_bytes(session)));
    if (step->said)
        fprintf(to, "   %-12s %s\n", "note", step->said);
    status = print_storage(tensor, columns, to, err);
    fputc('\n', to);
    return status;
}
