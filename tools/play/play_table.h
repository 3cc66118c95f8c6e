/* play_table.h: a table printed as text or HTML. The first column is left-aligned, the others right-aligned. */
#ifndef STOKER_PLAY_TABLE_H
#define STOKER_PLAY_TABLE_H

#include <stdio.h>
#include <stoker/status.h>

enum { PL_TABLE_COLUMNS = 8, PL_TABLE_ROWS = 24, PL_TABLE_TEXT = 48 };

struct pl_table {
    int columns, rows, cells; /* rows: completed ones; cells: of the current row */
    char text[PL_TABLE_ROWS][PL_TABLE_COLUMNS][PL_TABLE_TEXT];
};

/* The first row is the header. Excess cells and rows are dropped. */
void pl_table_put(struct pl_table *table, const char *format, ...) STK_PRINTF(2, 3);
void pl_table_end_row(struct pl_table *table);
void pl_table_text(const struct pl_table *table, FILE *to);
void pl_table_html(const struct pl_table *table, FILE *to);

#endif
