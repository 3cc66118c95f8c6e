/* option_row.h: looking at one row of an option table, for the files behind option.h. */
#ifndef STKI_OPTION_ROW_H
#define STKI_OPTION_ROW_H

#include "option.h"

int64_t stki_option_int(const stki_option *row, const void *values); /* bools, whole numbers, sizes, times, enums */
double stki_option_double(const stki_option *row, const void *values);
const char *stki_option_text(const stki_option *row, const void *values);

/* The value alone: of the row's offset in `values`. Rows with `alias_of` are left to their owner. */
stk_status stki_option_read(const stki_option *row, const stki_node *node, void *values, stk_error *err);
void stki_option_default(const stki_option *row, void *values);
json_t *stki_option_json(const stki_option *row, const void *values); /* not of nodes */

int stki_option_word_count(const stki_option *row);
/* The word that stands for the value, or NULL. */
const char *stki_option_word(const stki_option *row, int64_t value);
/* "auto or 0 to 1024 threads", "true or false", "4KiB to 1GiB"; in `buffer`, which is returned. */
const char *stki_option_range(const stki_option *row, char *buffer, int size);

#endif
