/* beton.h: FFCV's record files (.beton, version 2). All numbers are little-endian, and nothing is aligned in the file:
 *
 *     0            header, 24 bytes: u16 version, u16 fields F, u32 page size P, u64 samples N, u64 offset of the table
 *     24           F field descriptors of 1041 bytes: u8 kind, 16 bytes of name, 1024 bytes of arguments
 *     24 + 1041 F  N rows of a fixed size, one per sample: numbers, and pointers to regions
 *     data_start   pages of P bytes, from the next multiple of P on. A region never crosses a page
 *     table        allocations, 24 bytes each, to the end of the file: u64 sample, u64 pointer, u64 size
 *
 * The parsers in this header work on bytes in memory and check every value. */
#ifndef STKI_BETON_H
#define STKI_BETON_H

#include "container.h"
#include "thread.h"

enum stki_beton_kind {
    STKI_BETON_FLOAT = 0,
    STKI_BETON_INT = 1,
    STKI_BETON_IMAGE = 2,
    STKI_BETON_BYTES = 3,
    STKI_BETON_NDARRAY = 4,
    STKI_BETON_JSON = 5,
    STKI_BETON_TENSOR = 6,
    STKI_BETON_CUSTOM = 255
};

enum {
    STKI_BETON_HEADER = 24,
    STKI_BETON_FIELD = 1041,
    STKI_BETON_NAME = 16,
    STKI_BETON_ARGUMENTS = 1024,
    STKI_BETON_ENTRY = 24,
    STKI_BETON_JPEG = 0, /* mode of an image */
    STKI_BETON_RAW = 1,
    STKI_BETON_DESCR = 64 /* size of a type string */
};

typedef struct stki_beton_layout {
    int field_count;
    int64_t page_bytes, sample_count, row_bytes;
    int64_t rows, rows_end; /* offsets of the rows in the file */
    int64_t data_start;
    int64_t table; /* offset of the table of allocations */
    int64_t entry_count, page_count;
} stki_beton_layout;

typedef struct stki_beton_field {
    char name[STKI_BETON_NAME + 1];
    enum stki_beton_kind kind;
    int64_t row_offset;
    stk_dtype dtype; /* FLOAT f64, INT i64, IMAGE, BYTES and JSON u8 */
    bool swapped;
    char descr[STKI_BETON_DESCR];                 /* arrays: NumPy's type string */
    int ndim;                                     /* arrays: number of axes */
    int64_t shape[STK_MAX_DIMS], bytes, descr_at; /* descr_at: offset of the type string in the file */
} stki_beton_field;

/* ---- beton_header.c ---- */

/* Parses the header. `head`: the first min(24, file_bytes) bytes. Sets field_count, page_bytes, sample_count and table;
 * checks that the descriptors are inside the file. */
stk_status stki_beton_read_header(const void *head, int64_t file_bytes, const char *path, stki_beton_layout *out,
                                  stk_error *err);
/* Parses descriptor `index`. If out->kind is not CUSTOM, STK_E_UNSUPPORTED and STK_E_UNSAFE mean only that an array's
 * element type cannot be read; other fields can still be read. */
stk_status stki_beton_read_field(const void *descriptor, int index, const char *path, stki_beton_field *out,
                                 stk_error *err);
/* Computes the offsets of fields in a row and of all parts in the file, and checks their bounds. */
stk_status stki_beton_lay_out(stki_beton_layout *layout, stki_beton_field *fields, int64_t file_bytes, const char *path,
                              stk_error *err);
/* Returns the size and alignment of a kind of field in a row. */
void stki_beton_row_size(enum stki_beton_kind kind, int64_t *bytes, int64_t *alignment);
const char *stki_beton_kind_name(enum stki_beton_kind kind);

/* ---- beton_index.c ---- */

/* The table of allocations, after all entries have been checked. If the entries are sorted by sample and every sample
 * has the same number of them, nothing is kept in memory. Otherwise 4 bytes are kept per sample and, if the entries of
 * a sample are not consecutive, 4 more bytes per entry. */
typedef struct stki_beton_table {
    const stki_file *file; /* borrowed, like layout */
    const stki_beton_layout *layout;
    int64_t per_sample; /* number of entries per sample; -1: it varies, see `first` */
    uint32_t *first;    /* first entry of each sample (with `order`: sample_count + 1 starts); NO_ENTRY: none */
    uint32_t *order;    /* NULL: the entries of a sample are consecutive */
} stki_beton_table;

void stki_beton_table_fini(stki_beton_table *table);
/* Returns the number of bytes allocated to `sample` at `pointer`, the largest if there are several; -1: none. */
stk_status stki_beton_table_find(const stki_beton_table *table, int64_t sample, uint64_t pointer, int64_t *bytes,
                                 stk_error *err);

/* ---- beton.c, beton_reader.c ---- */

typedef struct stki_beton_lazy {
    stki_mutex lock;
    bool made; /* guarded by lock; the table is constant once set */
    stki_beton_table table;
} stki_beton_lazy;

typedef struct stki_beton {
    stki_container base; /* first member */
    stki_file *file;
    stki_beton_layout layout;
    stki_beton_field *fields;
    stki_beton_lazy *lazy; /* the table, which is read when it is first needed */
} stki_beton;

stk_status stki_beton_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes ownership of the file, even on failure. */
stk_status stki_beton_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
bool stki_beton_matches(const char *head, int64_t length);
/* beton_index.c: returns the table of allocations, which is read once; thread-safe. */
stk_status stki_beton_table_of(const stki_beton *beton, const stki_beton_table **out, stk_error *err);
/* For a field that is not an array: fails with STK_E_MISMATCH if the type named by the user (NONE: none) differs from
 * the field's type. */
stk_status stki_beton_check_type(const stki_beton_field *field, stk_dtype named, const char *path, stk_error *err);
/* Creates a reader of a field with regions. */
stk_status stki_beton_reader(const stki_beton *beton, int field, const stki_reader_opts *opts, stki_reader **out,
                             stk_error *err);

#endif
