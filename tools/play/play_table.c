/* play_table.c: see play_table.h. */
#include "play_table.h"
#include "html.h"
#include "play_page.h"
#include <stdarg.h>
#include <string.h>

void pl_table_put(struct pl_table *table, const char *format, ...)
{
    va_list arguments;

    if (table->rows == PL_TABLE_ROWS || table->cells == PL_TABLE_COLUMNS)
        return;
    va_start(arguments, format);
    vsnprintf(table->text[table->rows][table->cells], PL_TABLE_TEXT, format, arguments);
    va_end(arguments);
    table->cells++;
}

void pl_table_end_row(struct pl_table *table)
{
    table->columns = table->cells > table->columns ? table->cells : table->columns;
    table->rows += table->rows < PL_TABLE_ROWS;
    table->cells = 0;
}

void pl_table_text(const struct pl_table *table, FILE *to)
{
    int widths[PL_TABLE_COLUMNS] = {0};

    for (int r = 0; r < table->rows; r++)
        for (int c = 0; c < table->columns; c++) {
            int length = (int)strlen(table->text[r][c]);
            widths[c] = length > widths[c] ? length : widths[c];
        }
    for (int r = 0; r < table->rows; r++) {
        fprintf(to, "  %-*s", widths[0], table->text[r][0]);
        for (int c = 1; c < table->columns; c++)
            fprintf(to, "  %*s", widths[c], table->text[r][c]);
        fputc('\n', to);
    }
}

void pl_table_html(const struct pl_table *table, FILE *to)
{
    fputs("<div class=\"scroll\"><table>\n", to);
    for (int r = 0; r < table->rows; r++) {
        fputs("<tr>", to);
        for (int c = 0; c < table->columns; c++) {
            fputs(r ? "<td>" : "<th>", to);
            html_text(to, table->text[r][c]);
            fputs(r ? "</td>" : "</th>", to);
        }
        fputs("</tr>\n", to);
    }
    fputs("</table></div>\n", to);
}
