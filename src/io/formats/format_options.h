/* format_options.h: the options of all formats, which a map `source` is read by (source.h). */
#ifndef STKI_FORMAT_OPTIONS_H
#define STKI_FORMAT_OPTIONS_H

#include "source.h"

/* Group number i of those of all formats, each once. NULL: i is too large. */
const stki_source_group *stki_source_group_at(int i);
/* Its table: a `choice` of the section's own table. */
const stki_option_table *stki_source_table_at(int i);

/* Reads the map by all groups, those in `own` (ended by NULL) first. An unknown key names the nearest of all. */
stk_status stki_source_read(const stki_node *map, const stki_source_group *const *own, stki_document *document,
                            const stki_source **out, stk_error *err);
/* "Taken by: csv, text." for the docs of a group's table; false: it is no such table. */
bool stki_source_about(const stki_option_table *table, FILE *to);

#endif
