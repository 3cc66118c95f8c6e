/* play_table.h: a table that is printed as text or into a page. The first column is aligned left, the others
 * right.
 */
#ifndef STOKER_PLAY_TABLE_H
#define STOKER_PLAY_TABLE_H

#include <stdio.h>
#include <stoker/status.h>

enum { PL_TABLE_COLUMNS = 8, PL_TABLE_ROWS = 24, PL_TABLE_TEXT = 48 };

struct pl_table {
    int columns, rows, cells; /* rows: finished ones; cells: of the row that is being filled */
    char text[PL_TABLE_ROWS][PL_TABLE_COLUMNS][PL_TABLE_TEXT];
};

/* The first row is the heading. What does not fit is left out. */
void pl_table_put(struct pl_table *table, const char *format, ...) STK_PRINTF(2, 3);
void pl_table_end_row(struct pl_table *table);
void pl_table_text(const struct pl_table *table, FILE *to);
void pl_table_html(const struct pl_table *table, FILE *to);

#endif
