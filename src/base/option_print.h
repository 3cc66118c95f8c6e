/* option_print.h: the part of a config that saved positions and preparation jobs compare: one line for each option that
 * can change what is delivered and does not have its default value.
 *
 *     dataset.fields.image.pad.to=128
 *     dataset.fields.image.source.shape=[3,4]
 *
 * Defaults are omitted so that adding an option does not change existing lines. If a change affects the default of an
 * option that is ON_SAMPLES or ON_FAILURES, or the meaning of one of its values, increment STKI_STATE_VERSION
 * (state.h); otherwise old and new positions would be treated as equal.
 *
 * Lines contain effective values: 64MiB and 67108864, `pad: 128` and `pad: {to: 128}`, and an explicit and an implicit
 * default are the same. Options whose values depend on the machine are ON_NOTHING, which is never printed. */
#ifndef STKI_OPTION_PRINT_H
#define STKI_OPTION_PRINT_H

#include "option.h"

typedef struct stki_printed {
    char *path;          /* "dataset.fields.image.pad.to" */
    char *value;         /* JSON in ASCII; a long value is truncated and ends with its hash */
    const char *section; /* section of the row's table */
    const char *name;    /* name of the row */
    bool failure;        /* ON_FAILURES */
} stki_printed;

/* Must be zeroed before use, except for `failures` and `written`. */
typedef struct stki_print {
    bool failures; /* include rows ON_FAILURES: failed samples may be skipped or replaced */
    bool written;  /* include rows STKI_PATH and STKI_BY_VALUE as written: for callers that have not opened the data */
    stki_printed *lines;
    int count;
    int64_t room;
    bool failed; /* memory was exhausted: lines are missing */
} stki_print;

/* Adds the options of `map`, which `table` describes, with paths below `path`. A key without a row is added as written.
 */
void stki_print_map(stki_print *print, const stki_option_table *table, const stki_node *map, const char *path);
/* Like stki_print_map, for a map that several tables read; keys without a row are omitted. */
void stki_print_parts(stki_print *print, const stki_option_part *parts, int count, const stki_node *map,
                      const char *path);
/* Adds one line. Takes ownership of `value` (NULL: out of memory). `section` and `name` must outlive `print`. */
void stki_print_json(stki_print *print, const char *section, const char *name, const char *path, json_t *value);
/* Like stki_print_json, for a text value that is determined when the data is opened. */
void stki_print_text(stki_print *print, const char *name, const char *path, const char *format, ...) STK_PRINTF(4, 5);
/* Adds a line that was printed elsewhere and has no row. */
void stki_print_line(stki_print *print, const char *path, int64_t path_bytes, const char *value, bool failure);
/* Sorts the lines by path. STK_E_MEMORY if any is missing. */
stk_status stki_print_end(stki_print *print, stk_error *err);
/* Returns new JSON, {"PATH": VALUE}. NULL: out of memory. */
json_t *stki_print_object(const stki_print *print);
void stki_print_fini(stki_print *print); /* a zeroed struct is allowed */

#endif
