/* loadbench_table.h: plain-text tables. Columns are right-aligned, except for the first and those in `left`. */
#ifndef LOADBENCH_TABLE_H
#define LOADBENCH_TABLE_H

#include "live_line.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stoker/status.h>

enum { LB_TABLE_COLUMNS = 8, LB_TABLE_ROWS = 40, LB_TABLE_TEXT = 40 };

struct lb_table {
    int rows, columns;
    bool left[LB_TABLE_COLUMNS];
    char cells[LB_TABLE_ROWS][LB_TABLE_COLUMNS][LB_TABLE_TEXT];
};

void lb_table_init(struct lb_table *table, int columns);
/* Adds a row with `count` texts; other cells are empty. */
void lb_table_row(struct lb_table *table, const char *const *texts, int count);
/* Sets a cell of the last row. */
void lb_table_cell(struct lb_table *table, int column, const char *format, ...) STK_PRINTF(3, 4);
void lb_table_print(const struct lb_table *table, FILE *to);

/* A number without exponent: four significant digits, all digits of integers of 1000 or more, two digits for numbers
 * below 0.001. */
const char *lb_number(char *buffer, int size, double value);
#define LB_NUMBER(value) lb_number((char[32]){0}, 32, value)
/* "104 %", "12 %", "1.3 %", "0.04 %", "< 0.01 %", "0 %". */
const char *lb_percent(char *buffer, int size, double percent);
#define LB_PERCENT(percent) lb_percent((char[32]){0}, 32, percent)
/* With a decimal prefix: "9.83k", "1.46G". */
#define LB_SHORT(value) LIVE_SHORT(value)

#endif
