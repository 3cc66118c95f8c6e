/* source.h: the options in `source` of a field. Each kind of source owns its options: a group is an option table and
 * the struct that it fills, and is defined next to the code that uses the values (raw.c, csv.c, …). A format lists the
 * groups that any of its members accepts (format.h); a member may accept fewer (container.h). An option that does not
 * belong to any group of the member is rejected when the file is opened, or when the config is read if source.format is
 * given.
 *
 * The format is unknown until the file is opened, so all groups read the map first. The values are allocated in the
 * config's document and have its lifetime. They are immutable, so any thread may use them. */
#ifndef STKI_SOURCE_H
#define STKI_SOURCE_H

#include "option.h"

#define STKI_SOURCE_SECTION "dataset.fields.NAME.source"
/* Defines the table of a group, for example STKI_SOURCE_TABLE("tables of text", csv_rows). */
#define STKI_SOURCE_TABLE(what, rows) STKI_OPTION_TABLE(STKI_SOURCE_SECTION " (" what ")", rows)

struct stki_member;
struct stki_container;
struct stki_reader_opts;
struct stki_source;

typedef struct stki_source_group {
    const stki_option_table *table;
    int64_t bytes; /* size of the struct that the table fills */
    /* Parses nodes into other members of the struct, and makes checks that the rows cannot express; NULL: none. `map`
     * is NULL for the defaults. */
    stk_status (*check)(const stki_node *map, void *values, stk_error *err);
    /* For options that are implemented above the formats and that formats do not list. Returns NULL if the member
     * accepts the option; otherwise returns what accepts it, such as "arrays". `source`: the whole map; the container
     * is NULL for samples that do not come from a file. */
    const char *(*refuses)(const stki_option *row, const struct stki_source *source,
                           const struct stki_container *container, const struct stki_member *member);
} stki_source_group;

/* The values of one map: parts[i] was filled by groups[i]. */
typedef struct stki_source {
    const stki_node *map;
    int count;
    const stki_source_group **groups;
    const char **takers; /* formats that accept groups[i], such as "csv, text" */
    stki_option_part *parts;
} stki_source;

/* Fills the group's struct with the defaults. */
stk_status stki_source_defaults(const stki_source_group *group, void *values, stk_error *err);
/* Copies the values of a group, or the defaults if opts->source is NULL, to the group's struct. */
void stki_source_values(const struct stki_reader_opts *opts, const stki_source_group *group, void *out);
/* Whether the group is in a NULL-terminated list, which may itself be NULL. */
bool stki_source_holds(const stki_source_group *const *list, const stki_source_group *group);
/* Whether `a` and `b` have the same values in all groups of formats. NULL equals only NULL. */
bool stki_source_equal(const stki_source *a, const stki_source *b);
/* Fails with STK_E_CONFIG if an option was given that no member of this format accepts. */
stk_status stki_source_check_format(const stki_source *source, const char *format,
                                    const stki_source_group *const *groups, stk_error *err);
/* Fails with STK_E_CONFIG if an option was given that this member does not accept, unless opts->lenient. */
stk_status stki_source_check_member(const struct stki_reader_opts *opts, const struct stki_container *container,
                                    int64_t member, stk_error *err);
/* Like stki_source_check_member, for samples that do not come from a file. `varying`: their size varies. */
stk_status stki_source_check_synthetic(const stki_source *source, bool varying, stk_error *err);
#endif
