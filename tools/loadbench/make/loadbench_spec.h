/* loadbench_spec.h: the specification of --make: files, their formats, fields and values. */
#ifndef LOADBENCH_SPEC_H
#define LOADBENCH_SPEC_H

#include "loadbench_values.h"
#include "option.h"
#include <stdbool.h>

/* The sections of a specification: `make`, each item of `make.files`, and each of its `fields`. */
extern const stki_option_table lb_make_table, lb_make_file_table, lb_make_field_table;
/* The sections that loadbench reads itself, `bench` and `make`, NULL-terminated. */
extern const stki_option_table *const lb_sections[];

enum lb_format {
    LB_FORMAT_AUTO, /* chosen by the extension */
    LB_FORMAT_NPY,
    LB_FORMAT_NPZ,
    LB_FORMAT_HDF5,
    LB_FORMAT_PT,
    LB_FORMAT_SAFETENSORS,
    LB_FORMAT_RAW,
    LB_FORMAT_BETON,
    LB_FORMAT_TAR,
    LB_FORMAT_IMAGES /* a folder of JPEG files, in class folders if there are labels */
};
extern const char *const lb_format_words[];

/* A field of a file: how its rows are generated and stored. */
struct lb_made_field {
    const char *name; /* "" in a file with a single unnamed array */
    /* read from the specification */
    const char *dtype;
    int64_t seed, classes, quality;
    const stki_node *shape;
    int values, draw, encode;
    double low, high, mean, std, value, compressibility, spread, detail;
    /* derived from the members above */
    int ndim;
    int64_t lengths[STK_MAX_DIMS]; /* shape of a row; the mean if there is a `spread` */
    int64_t row_elements, row_bytes, largest_bytes;
    struct lb_values_ask ask;
};

enum { LB_MADE_FIELDS = 32 };

struct lb_made_file {
    struct lb_made_field alone; /* the field of a file without `fields`; its option rows are in the table of files */
    const char *path;
    int64_t count, level, chunk_rows;
    int format;
    const stki_node *fields;
    /* derived from the members above */
    char *full_path, *place; /* path, and the absolute path for comparisons */
    bool is_there;
    int field_count;
    struct lb_made_field made[LB_MADE_FIELDS];
    int64_t bytes; /* bytes of all rows, uncompressed; approximate if lengths vary */
};

/* Parses the document into `files` (room for LB_MADE_FILES, zeroed). Errors contain their position in the document.
 * Call lb_spec_fini even after a failure. */
enum { LB_MADE_FILES = 64 };
stk_status lb_spec_read(stki_document *document, struct lb_made_file *files, int *count, stk_error *err);
void lb_spec_fini(struct lb_made_file *files, int count);

/* Sets the shape of row `row`: that of the field or, with a spread, random lengths around it. */
void lb_made_lengths(const struct lb_made_field *field, int64_t row, int64_t *lengths);
/* Describes the file as --make prints it: "2000 rows of image u8 [224, 224, 3], label i64 []". */
void lb_made_describe(const struct lb_made_file *file, char *out, int size);

#endif
