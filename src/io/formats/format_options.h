/* format_options.h: the option groups of all formats for the map `source` (source.h). */
#ifndef STKI_FORMAT_OPTIONS_H
#define STKI_FORMAT_OPTIONS_H

#include "source.h"

/* Returns group i of the distinct groups of all formats. NULL: out of range. */
const stki_source_group *stki_source_group_at(int i);
/* Returns the table of group i, as `choice` of the section's table (option.h). */
const stki_option_table *stki_source_table_at(int i);

/* Reads the map with all groups, those in `own` (NULL-terminated) first. For an unknown key, the error suggests the
 * most similar key. */
stk_status stki_source_read(const stki_node *map, const stki_source_group *const *own, stki_document *document,
                            const stki_source **out, stk_error *err);
/* Prints "Accepted by: csv, text." for the docs of a group's table; returns false if it is not the table of a group. */
bool stki_source_about(const stki_option_table *table, FILE *to);

#endif
