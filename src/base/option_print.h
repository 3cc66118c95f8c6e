/* option_print.h: what of a config is compared, by saved positions and by preparation jobs: a line for each option that
 * may change what is delivered and whose value is not its default.
 *
 *     dataset.fields.image.pad.to=128
 *     dataset.fields.image.source.shape=[3,4]
 *
 * Only what differs from the default, so that an option added later leaves old lines as they are. A changed default of
 * an option that is ON_SAMPLES or ON_FAILURES, or a changed meaning of a value, needs a higher STKI_STATE_VERSION
 * (state.h); otherwise old and new positions would be taken for one another.
 *
 * Values are effective: 64MiB and 67108864, `pad: 128` and `pad: {to: 128}`, a default that is written and one that is
 * not are the same. Values that depend on the machine belong to rows ON_NOTHING, which are never printed.
 */
#ifndef STKI_OPTION_PRINT_H
#define STKI_OPTION_PRINT_H

#include "option.h"

typedef struct stki_printed {
    char *path;          /* "dataset.fields.image.pad.to" */
    char *value;         /* JSON in ASCII; a long one is cut and ends with its hash */
    const char *section; /* of the row's table */
    const char *name;    /* of the row */
    bool failure;        /* ON_FAILURES */
} stki_printed;

/* Zeroed before the first use, but for `failures` and `written`. */
typedef struct stki_print {
    bool failures; /* rows ON_FAILURES too: failed samples may be left out or replaced */
    bool written;  /* rows STKI_PATH and STKI_BY_VALUE too, as they are written: for who has not opened the data */
    stki_printed *lines;
    int count;
    int64_t room;
    bool failed; /* memory ran out: lines are missing */
} stki_print;

/* Adds the options of `map`, which `table` reads, below `path`. A key without a row is added as it is written. */
void stki_print_map(stki_print *print, const stki_option_table *table, const stki_node *map, const char *path);
/* The same for a map that several tables read; keys without a row are left out. */
void stki_print_parts(stki_print *print, const stki_option_part *parts, int count, const stki_node *map,
                      const char *path);
/* Adds one line; takes over `value` (NULL: memory ran out). `section` and `name` must outlive the print. */
void stki_print_json(stki_print *print, const char *section, const char *name, const char *path, json_t *value);
/* The same for a value that opening has found, as text. */
void stki_print_text(stki_print *print, const char *name, const char *path, const char *format, ...) STK_PRINTF(4, 5);
/* A line as it was printed elsewhere; of no row. */
void stki_print_line(stki_print *print, const char *path, int64_t path_bytes, const char *value, bool failure);
/* Sorts the lines by path. STK_E_MEMORY if any is missing. */
stk_status stki_print_end(stki_print *print, stk_error *err);
/* {"PATH": VALUE}, new JSON. NULL: no memory. */
json_t *stki_print_object(const stki_print *print);
void stki_print_fini(stki_print *print); /* fine on a zeroed one */

#endif
