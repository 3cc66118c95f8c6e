/* loadbench_spec.h: the specification of --make: which files, of which format, with which fields of which values. */
#ifndef LOADBENCH_SPEC_H
#define LOADBENCH_SPEC_H

#include "loadbench_values.h"
#include "option.h"
#include <stdbool.h>

/* The sections of a specification: `make`, each item of `make.files`, and each of its `fields`. */
extern const stki_option_table lb_make_table, lb_make_file_table, lb_make_field_table;
/* The sections that loadbench reads itself, `bench` and `make`, ended by NULL. */
extern const stki_option_table *const lb_sections[];

enum lb_format {
    LB_FORMAT_AUTO, /* by the ending */
    LB_FORMAT_NPY,
    LB_FORMAT_NPZ,
    LB_FORMAT_HDF5,
    LB_FORMAT_PT,
    LB_FORMAT_SAFETENSORS,
    LB_FORMAT_RAW,
    LB_FORMAT_BETON,
    LB_FORMAT_TAR,
    LB_FORMAT_IMAGES /* a folder of JPEG files, in folders of classes where there are labels */
};
extern const char *const lb_format_words[];

/* One field: what a row of it is. */
struct lb_made_field {
    const char *name; /* "" in a file of one array without names */
    /* as written */
    const char *dtype;
    int64_t seed, classes, quality;
    const stki_node *shape;
    int values, draw, encode;
    double low, high, mean, std, value, compressibility, spread, detail;
    /* worked out */
    int ndim;
    int64_t lengths[STK_MAX_DIMS]; /* of a row; with `spread` those that it is spread about */
    int64_t row_elements, row_bytes, largest_bytes;
    struct lb_values_ask ask;
};

enum { LB_MADE_FIELDS = 32 };

struct lb_made_file {
    struct lb_made_field alone; /* the field of a file that has no `fields`; its rows share the table of files */
    const char *path;
    int64_t count, level, chunk_rows;
    int format;
    const stki_node *fields;
    /* worked out */
    char *full_path, *place; /* where it will be, and the same absolute, for comparing */
    bool is_there;
    int field_count;
    struct lb_made_field made[LB_MADE_FIELDS];
    int64_t bytes; /* of all rows, unpacked; where rows differ in length about that */
};

/* Reads the document into `files` (room for LB_MADE_FILES, zeroed). Whatever is wrong is said
 * with its place. lb_spec_fini also after a failure. */
enum { LB_MADE_FILES = 64 };
stk_status lb_spec_read(stki_document *document, struct lb_made_file *files, int *count, stk_error *err);
void lb_spec_fini(struct lb_made_file *files, int count);

/* The lengths of row `row`: the field's own, or drawn about them. */
void lb_made_lengths(const struct lb_made_field *field, int64_t row, int64_t *lengths);
/* The file as --make prints it: "2000 rows of u8 [224, 224, 3]; i64 []". */
void lb_made_describe(const struct lb_made_file *file, char *out, int size);

#endif
