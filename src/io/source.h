/* source.h: the options in `source` of a field. Each kind of source owns its options: a group is a table with the
 * struct that it fills, and lies beside the code that reads the values (raw.c, csv.c, …). A format lists the groups
 * that any of its members takes (format.h); a member may take fewer of them (container.h). An option that was given and
 * that no group of the member holds is refused when the file is opened, and already with the config where source.format
 * is given.
 *
 * The format is not known before the file is opened, so all groups read the map first. The values are allocated in the
 * config's document and live as long; they do not change after they were read, so any thread may use them.
 */
#ifndef STKI_SOURCE_H
#define STKI_SOURCE_H

#include "option.h"

#define STKI_SOURCE_SECTION "dataset.fields.NAME.source"
/* The table of a group: STKI_SOURCE_TABLE("tables of text", csv_rows). */
#define STKI_SOURCE_TABLE(what, rows) STKI_OPTION_TABLE(STKI_SOURCE_SECTION " (" what ")", rows)

struct stki_member;
struct stki_container;
struct stki_reader_opts;
struct stki_source;

typedef struct stki_source_group {
    const stki_option_table *table;
    int64_t bytes; /* of the struct that the table fills */
    /* Reads nodes into other members of the struct and checks what rows cannot; NULL: nothing. `map` is NULL for the
     * defaults. */
    stk_status (*check)(const stki_node *map, void *values, stk_error *err);
    /* Of options that work above the formats, which are in no list of a format: NULL if the member takes this one, else
     * what does: "arrays". `source` is what the whole map says; the container is NULL where samples come from no file.
     */
    const char *(*refuses)(const stki_option *row, const struct stki_source *source,
                           const struct stki_container *container, const struct stki_member *member);
} stki_source_group;

/* The values of one map: groups[i] filled parts[i]. */
typedef struct stki_source {
    const stki_node *map;
    int count;
    const stki_source_group **groups;
    const char **takers; /* of groups[i]: the formats that take it, "csv, text" */
    stki_option_part *parts;
} stki_source;

/* Fills the struct of the group's table. */
stk_status stki_source_defaults(const stki_source_group *group, void *values, stk_error *err);
/* Copies the values of a group to its struct; the defaults where opts->source is NULL. */
void stki_source_values(const struct stki_reader_opts *opts, const stki_source_group *group, void *out);
/* Whether the group is in a list that ends with NULL, or that is NULL. */
bool stki_source_holds(const stki_source_group *const *list, const stki_source_group *group);
/* Whether all formats read the same values from both. NULL holds the defaults. */
bool stki_source_equal(const stki_source *a, const stki_source *b);
/* STK_E_CONFIG: an option was given that no member of this format takes. */
stk_status stki_source_check_format(const stki_source *source, const char *format,
                                    const stki_source_group *const *groups, stk_error *err);
/* STK_E_CONFIG: an option was given that this member does not take. */
stk_status stki_source_check_member(const struct stki_reader_opts *opts, const struct stki_container *container,
                                    int64_t member, stk_error *err);
/* The same for samples that come from no file; `varying`: of sizes of their own. */
stk_status stki_source_check_synthetic(const stki_source *source, bool varying, stk_error *err);
#endif
