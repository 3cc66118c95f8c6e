/* option.h: option tables. One row an option: name, type, where it lies in its struct, range, default, unit, help.
 * Config files, `--set`, --help-options, the JSON echo and the man pages all come from the rows, so they cannot differ.
 *
 *     static const stki_option rows[] = {
 *         STKI_INT(struct opts, batch_size, 32, 1, 1 << 30, "rows", "Rows of a batch"),
 *         …
 *     };
 *     static const stki_option_table table = {"loader", rows, sizeof rows / sizeof rows[0]};
 */
#ifndef STKI_OPTION_H
#define STKI_OPTION_H

#include "document.h"
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

enum stki_option_type {
    STKI_OPT_BOOL,   /* bool */
    STKI_OPT_INT,    /* int64_t */
    STKI_OPT_DOUBLE, /* double */
    STKI_OPT_SIZE,   /* int64_t, bytes */
    STKI_OPT_TIME,   /* int64_t, ns */
    STKI_OPT_TEXT,   /* const char *, pointing into the document (or the default); NULL if absent and without default */
    STKI_OPT_ENUM,   /* int, index into `words` */
    STKI_OPT_NODE    /* const stki_node *: anything; the owner of the table reads it itself */
};

typedef struct stki_option {
    const char *name;
    enum stki_option_type type;
    int64_t offset;
    double low, high;     /* numbers, sizes (bytes) and times (ns) */
    const char *fallback; /* the default as it would be written in a config; NULL: none */
    const char *const
        *words; /* enums, ended by NULL; for an INT: words[i] stands for the value words_base - i, e.g. "auto" */
    int64_t words_base;
    const char *unit;     /* "rows", "bytes", "" */
    const char *help;     /* one sentence without a full stop */
    const char *alias_of; /* not NULL: this row is a synonym, read by the owner after the pass (see drop_last) */
} stki_option;

typedef struct stki_option_table {
    const char *section; /* "loader" */
    const stki_option *rows;
    int count;
} stki_option_table;

/* Fills the struct with the defaults. */
void stki_options_defaults(const stki_option_table *table, void *values);
/* Reads a map into the struct (defaults stay where a key is absent; map NULL is fine). An unknown key names the nearest
 * known one. `seen` (may be NULL, `count` flags) says which rows were given. */
stk_status stki_options_read(const stki_option_table *table, const stki_node *map, void *values, bool *seen,
                             stk_error *err);
/* The range check alone, for structs filled through the C API: "loader.batch_size: found 0, expected 1 to 1073741824
 * rows". */
stk_status stki_options_check(const stki_option_table *table, const void *values, stk_error *err);
/* The effective values (nodes left out) under their names, with the unit in the key where there is one: "timeout_ns",
 * "memory_budget_bytes". */
json_t *stki_options_json(const stki_option_table *table, const void *values);
/* A table for people: name, type or words, default, range, help. */
void stki_options_help(const stki_option_table *table, FILE *to);

#endif
