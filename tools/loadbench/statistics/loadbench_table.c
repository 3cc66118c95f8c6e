/* loadbench_table.c: see loadbench_table.h. */
#include "loadbench_table.h"
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

void lb_table_init(struct lb_table *table, int columns)
{
    assert(columns >= 1 && columns <= LB_TABLE_COLUMNS);
    table->rows = 0;
    table->columns = columns;
    memset(table->left, 0, sizeof table->left);
    table->left[0] = true;
}

void lb_table_row(struct lb_table *table, const char *const *texts, int count)
{
    assert(table->rows < LB_TABLE_ROWS && count <= table->columns);
    const int row = table->rows++;
    for (int i = 0; i < table->columns; i++)
        snprintf(table->cells[row][i], LB_TABLE_TEXT, "%s", i < count ? texts[i] : "");
}

void lb_table_cell(struct lb_table *table, int column, const char *format, ...)
{
    va_list args;

    assert(table->rows > 0 && column < table->columns);
    va_start(args, format);
    vsnprintf(table->cells[table->rows - 1][column], LB_TABLE_TEXT, format, args);
    va_end(args);
}

void lb_table_print(const struct lb_table *table, FILE *to)
{
    int width[LB_TABLE_COLUMNS] = {0};

    for (int row = 0; row < table->rows; row++)
        for (int i = 0; i < table->columns; i++) {
            const int length = (int)strlen(table->cells[row][i]);
            width[i] = length > width[i] ? length : width[i];
        }
    for (int row = 0; row < table->rows; row++) {
        int last = table->columns - 1;
        while (last > 0 && !table->cells[row][last][0]) /* no trailing blanks */
            last--;
        for (int i = 0; i <= last; i++) {
            const int blanks = i == last && table->left[i] ? 0 : table->left[i] ? -width[i] : width[i];
            fprintf(to, "%s%*s", i > 0 ? "  " : "", blanks, table->cells[row][i]);
        }
        fputc('\n', to);
    }
}

const char *lb_number(char *buffer, int size, double value)
{
    const double magnitude = fabs(value);
    const int decimals = magnitude >= 999.5 || magnitude == 0 ? 0
                         : magnitude >= 99.95                 ? 1
                         : magnitude >= 9.995                 ? 2
                         : magnitude >= 0.0995                ? 3
                                                              : 4;
    if (magnitude > 0 && magnitude < 0.000995)
        snprintf(buffer, (size_t)size, "%.*f", magnitude < 1e-12 ? 0 : 1 - (int)floor(log10(magnitude)), value);
    else
        snprintf(buffer, (size_t)size, "%.*f", decimals, value);
    return buffer;
}

const char *lb_percent(char *buffer, int size, double percent)
{
    const double magnitude = fabs(percent);

    if (magnitude > 0 && magnitude < 0.005)
        snprintf(buffer, (size_t)size, "< 0.01 %%");
    else
        snprintf(buffer, (size_t)size, "%.*f %%",
                 magnitude == 0 || magnitude >= 9.95 ? 0
                 : magnitude >= 0.95                 ? 1
                                                     : 2,
                 percent);
    return buffer;
}
