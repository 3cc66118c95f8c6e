/* beton.h: FFCV's record files, .beton version 2. Everything is little-endian and nothing is aligned in the file:
 *
 *     0            header, 24 bytes: u16 version, u16 fields F, u32 page size P, u64 samples N, u64 place of the table
 *     24           F field descriptors of 1041 bytes: u8 kind, 16 bytes of name, 1024 bytes of arguments
 *     24 + 1041 F  N rows of a fixed size, one a sample: numbers, and pointers to regions
 *     data_start   pages of P bytes, from the next multiple of P on. A region never crosses a page
 *     table        allocations, 24 bytes each, to the end of the file: u64 sample, u64 pointer, u64 size
 *
 * The parsers here work on bytes they are given and trust none of them.
 */
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
    STKI_BETON_JPEG = 0, /* modes of an image */
    STKI_BETON_RAW = 1,
    STKI_BETON_DESCR = 64 /* room for a type string */
};

typedef struct stki_beton_layout {
    int field_count;
    int64_t page_bytes, sample_count, row_bytes;
    int64_t rows, rows_end; /* of the metadata, from the start of the file */
    int64_t data_start;
    int64_t table; /* of the allocations */
    int64_t entry_count, page_count;
} stki_beton_layout;

typedef struct stki_beton_field {
    char name[STKI_BETON_NAME + 1];
    enum stki_beton_kind kind;
    int64_t row_offset;
    stk_dtype dtype; /* FLOAT f64, INT i64, IMAGE, BYTES and JSON u8 */
    bool swapped;
    char descr[STKI_BETON_DESCR];                 /* arrays: NumPy's type string */
    int ndim;                                     /* of an array */
    int64_t shape[STK_MAX_DIMS], bytes, descr_at; /* descr_at: where the type string stands in the file */
} stki_beton_field;

/* ---- beton_header.c ---- */

/* `head`: the first min(24, file_bytes) bytes. Sets field_count, page_bytes, sample_count and table; the descriptors
 * are inside the file. */
stk_status stki_beton_read_header(const void *head, int64_t file_bytes, const char *path, stki_beton_layout *out,
                                  stk_error *err);
/* One descriptor, the index-th. STK_E_UNSUPPORTED and STK_E_UNSAFE concern an array's element type alone if out->kind
 * is not CUSTOM: other fields can still be read. */
stk_status stki_beton_read_field(const void *descriptor, int index, const char *path, stki_beton_field *out,
                                 stk_error *err);
/* Where each field lies in a row, and where everything lies in the file; checks that it does. */
stk_status stki_beton_lay_out(stki_beton_layout *layout, stki_beton_field *fields, int64_t file_bytes, const char *path,
                              stk_error *err);
/* Bytes of a kind in a row, and its alignment there. */
void stki_beton_row_size(enum stki_beton_kind kind, int64_t *bytes, int64_t *alignment);
const char *stki_beton_kind_name(enum stki_beton_kind kind);

/* ---- beton_index.c ---- */

/* The table of allocations, checked entry by entry. Where every sample has as many entries as every other, one sample
 * after the other, nothing is held in memory; else 4 bytes a sample; where the entries of one sample lie apart, 4 bytes
 * an entry more. */
typedef struct stki_beton_table {
    const stki_file *file; /* borrowed, as is layout */
    const stki_beton_layout *layout;
    int64_t per_sample; /* entries of each; -1: look into `first` */
    uint32_t *first;    /* of each sample, sample_count + 1 with `order`; NO_ENTRY: it has none */
    uint32_t *order;    /* NULL: the entries of a sample follow one another */
} stki_beton_table;

void stki_beton_table_fini(stki_beton_table *table);
/* Bytes allocated to `sample` at `pointer`, the most where there are several; -1: none. */
stk_status stki_beton_table_find(const stki_beton_table *table, int64_t sample, uint64_t pointer, int64_t *bytes,
                                 stk_error *err);

/* ---- beton.c, beton_reader.c ---- */

typedef struct stki_beton_lazy {
    stki_mutex lock;
    bool made; /* guarded by lock; the table is fixed from then on */
    stki_beton_table table;
} stki_beton_lazy;

typedef struct stki_beton {
    stki_container base; /* first member */
    stki_file *file;
    stki_beton_layout layout;
    stki_beton_field *fields;
    stki_beton_lazy *lazy; /* the table, made when a field first needs it */
} stki_beton;

stk_status stki_beton_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes the file over, also when it fails. */
stk_status stki_beton_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
bool stki_beton_matches(const char *head, int64_t length);
/* beton_index.c: the table of allocations; made once, any thread. */
stk_status stki_beton_table_of(const stki_beton *beton, const stki_beton_table **out, stk_error *err);
/* STK_E_MISMATCH: the user names another type (NONE: none) than a field that is no array has. */
stk_status stki_beton_check_type(const stki_beton_field *field, stk_dtype named, const char *path, stk_error *err);
/* The samples of a field that has regions. */
stk_status stki_beton_reader(const stki_beton *beton, int field, const stki_reader_opts *opts, stki_reader **out,
                             stk_error *err);

#endif
