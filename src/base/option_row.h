/* option_row.h: access to single rows of an option table, for the implementation of option.h. */
#ifndef STKI_OPTION_ROW_H
#define STKI_OPTION_ROW_H

#include "option.h"

/* The address of the row's value in the struct. */
static inline const void *stki_option_member(const stki_option *row, const void *values)
{
    return (const char *)values + row->offset;
}

int64_t stki_option_int(const stki_option *row, const void *values); /* bools, whole numbers, sizes, times, enums */
double stki_option_double(const stki_option *row, const void *values);
const char *stki_option_text(const stki_option *row, const void *values);

/* Reads one value into the row's member of `values`. Not for rows with `alias_of`. */
stk_status stki_option_read(const stki_option *row, const stki_node *node, void *values, stk_error *err);
void stki_option_default(const stki_option *row, void *values);
json_t *stki_option_json(const stki_option *row, const void *values); /* not for NODE rows */

/* The row with that name in the table or in one of its choices, or NULL. *of (may be NULL): the row's own table. */
const stki_option *stki_option_in(const stki_option_table *table, const char *name, const stki_option_table **of);

int stki_option_word_count(const stki_option *row);
/* The word that stands for the value, or NULL. */
const char *stki_option_word(const stki_option *row, int64_t value);
/* Writes "auto or 0 to 1024 threads", "true or false", "4KiB to 1GiB"; returns `buffer`. */
const char *stki_option_range(const stki_option *row, char *buffer, int size);

/* option_rules.c: *counts is false if a later source overrides the option. */
stk_status stki_option_counts(const stki_option_table *table, const stki_node *map, const stki_option *row,
                              const stki_node *node, bool *counts, stk_error *err);
/* Checks the requirements of an option that was given, after the whole map has been read. `notes` may be NULL. */
stk_status stki_option_needs(const stki_option_table *table, const stki_node *map, const void *values,
                             const stki_option *row, const stki_node *node, const stki_option_notes *notes,
                             stk_error *err);

#endif
