/* csv.h: text tables (RFC 4180): a header line names the columns, and every other record has one cell per column. A
 * member is a column of integers (i64), numbers (f64), or strings (u8 of varying length), or, depending on the options,
 * of paths of files that are the samples.
 *
 * One pass at open checks every record and determines the types of the columns. The offsets of records are kept in
 * memory, 2.5 bytes each (places.h). Readers of numeric columns keep their numbers, 8 bytes each; strings are read from
 * the file. */
#ifndef STKI_CSV_H
#define STKI_CSV_H

#include "container.h"
#include "file.h"
#include "places.h"

enum { STKI_CSV_COLUMNS = 4096, STKI_CSV_RECORD = 64 << 20 /* maximum size of one record */ };

/* ---- csv_record.c: one record in memory; pure functions ---- */

/* A cell, without its quotes. */
typedef struct stki_csv_cell {
    const char *at;
    int64_t length; /* as stored */
    int64_t quotes; /* number of escaped (doubled) quotes */
} stki_csv_cell;

typedef struct stki_csv_problem {
    int64_t at;                   /* offset in the record */
    int column;                   /* from 0 */
    const char *found, *expected; /* static strings */
} stki_csv_problem;

enum stki_csv_result {
    STKI_CSV_RECORD_READ,
    STKI_CSV_MORE,    /* the bytes end inside the record, and more bytes follow in the file */
    STKI_CSV_BROKEN,  /* the record is invalid; see *problem */
    STKI_CSV_TOO_MANY /* the record has more than `most` cells */
};

typedef struct stki_csv_want {
    stki_csv_cell *cells;
    int most; /* maximum number of cells */
    int only; /* store only this column, in cells[0]; -1: all columns */
} stki_csv_want;

/* Parses the record at the beginning of the bytes. `last`: the file ends with these bytes. *used: size of the record,
 * including the line terminator. Cells point into `bytes`; an empty line is a record with one empty cell. */
enum stki_csv_result stki_csv_read(const char *bytes, int64_t count, bool last, char delimiter,
                                   const stki_csv_want *want, int *cell_count, int64_t *used,
                                   stki_csv_problem *problem);
static inline int64_t stki_csv_bytes(const stki_csv_cell *cell) /* size of the unescaped text */
{
    return cell->length - cell->quotes;
}
void stki_csv_text(const stki_csv_cell *cell, char *to); /* writes stki_csv_bytes bytes */
/* These return false if the cell is not a number or, for stki_csv_whole, is out of range. Blanks around a number are
 * allowed. */
bool stki_csv_whole(const stki_csv_cell *cell, int64_t *out);
bool stki_csv_number(const stki_csv_cell *cell, double *out); /* also accepts nan, inf and infinity in any case */
/* Like strtod in the C locale. */
double stki_decimal(const char *text);

/* ---- csv_table.c ---- */

enum stki_csv_kind { STKI_CSV_WHOLE, STKI_CSV_REAL, STKI_CSV_TEXT };

/* Which cells count as missing, and their replacement. */
typedef struct stki_csv_missing {
    const stki_node *words; /* NULL: the same as in pandas */
    bool given, whole;      /* whether there is a replacement; whether it is an integer */
    int64_t value;          /* the replacement, if it is an integer */
    double real;
} stki_csv_missing;

/* Whether the cell is one of the words. Cells are compared as text, so "0" can be such a word. */
bool stki_csv_is_missing(const stki_csv_missing *missing, const stki_csv_cell *cell);

typedef struct stki_csv_column {
    char *name;              /* from the header; owned */
    enum stki_csv_kind kind; /* the common type of all cells that are not missing */
    int64_t missing;         /* number of missing cells */
    int64_t longest;         /* size of the longest cell */
    int64_t first_text;      /* first record with a cell that is not a number */
    int64_t rounded;         /* the first integer that F64 cannot represent; 0: none */
    int64_t first_rounded;   /* its record */
} stki_csv_column;

typedef struct stki_csv {
    stki_container base; /* first member; members are the columns */
    stki_file *file;
    char delimiter;
    bool header; /* the first record contains the column names */
    bool picked; /* the columns of the option `columns` together are the only member */
    stki_csv_missing missing;
    int column_count;
    stki_csv_column *columns;
    int64_t count;
    stki_places start; /* count + 1 entries; the last one is the end of the file */
} stki_csv;

/* The kind of files named by a column. */
enum stki_listed {
    STKI_LISTED_NOTHING /* the cells are the samples */,
    STKI_LISTED_IMAGES,
    STKI_LISTED_ARRAYS,
    STKI_LISTED_BYTES
};

extern const stki_source_group stki_csv_source;
enum stki_listed stki_csv_listed(const stki_reader_opts *opts);
void stki_csv_set_options(stki_csv *csv, const stki_reader_opts *opts);
/* Resolves the option `columns` to column numbers, in the order of the option and without duplicates. `picked` has room
 * for column_count entries. *count 0: the option is not set. STK_E_NOT_FOUND: a name or pattern matches nothing. */
stk_status stki_csv_pick(const stki_csv *csv, const stki_reader_opts *opts, int *picked, int *count, stk_error *err);

/* Reads the header and finds all records; `begins`: offset of the header. */
stk_status stki_csv_read_all(stki_csv *csv, int64_t begins, stk_error *err);
/* Returns the line number of a record, from 1; 0: unknown. Scans the file from its beginning. */
int64_t stki_csv_line(const stki_csv *csv, int64_t record);
/* Finds a cell of a record whose bytes are in memory. */
stk_status stki_csv_cell_of(const stki_csv *csv, int column, int64_t record, const char *bytes, stki_csv_cell *out,
                            stk_error *err);

/* Passes one cell of every record, in order, to `take`, with the record's number. Stops at its first failure. column
 * -1: passes a pointer to the array of all cells. */
typedef struct stki_csv_walk {
    const stki_csv *csv;
    int column;
    void *context;
    stk_status (*take)(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err);
} stki_csv_walk;
stk_status stki_csv_walk_run(const stki_csv_walk *walk, stk_error *err);
/* Reports an invalid cell with its file, record, line and column. */
stk_status stki_csv_fail(const stki_csv *csv, int column, int64_t record, stk_status status, const stki_csv_cell *found,
                         const char *expected, stk_error *err);

/* ---- csv_reader.c, csv_files.c ---- */

/* Creates an array from a numeric column, or from the columns of the option `columns`. */
stk_status stki_csv_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                          stk_error *err);

/* Creates a reader of a column; depending on the options, samples are numbers, strings or files. */
stk_status stki_csv_reader(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                           stk_error *err);
/* Creates a reader whose samples are the files named by a column. */
stk_status stki_csv_files(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                          stk_error *err);

/* ---- csv.c ---- */

stk_status stki_csv_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes ownership of the file, even on failure. */
stk_status stki_csv_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
