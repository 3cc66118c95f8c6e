/* csv.h: tables of text, RFC 4180: a header line names the columns, every other record has one cell of each. A member
 * is a column: whole numbers (i64), numbers (f64), or texts (u8 of varying length); or, said by the reader's options,
 * paths of files that are the samples.
 *
 * One pass when the file is opened checks every record and finds what the columns are. Where each begins is held, in
 * two and a half bytes a record (places.h). Numbers are held too by readers of their column, 8 bytes each; texts
 * are read from the file.
 */
#ifndef STKI_CSV_H
#define STKI_CSV_H

#include "container.h"
#include "file.h"
#include "places.h"

enum { STKI_CSV_COLUMNS = 4096, STKI_CSV_RECORD = 64 << 20 /* most bytes of one record */ };

/* ---- csv_record.c: one record in memory; pure ---- */

/* A cell, without its quotes. */
typedef struct stki_csv_cell {
    const char *at;
    int64_t length; /* as it stands */
    int64_t quotes; /* pairs of quotes inside, which mean one each */
} stki_csv_cell;

typedef struct stki_csv_problem {
    int64_t at;                   /* byte of the record */
    int column;                   /* from 0 on */
    const char *found, *expected; /* static texts */
} stki_csv_problem;

enum stki_csv_result {
    STKI_CSV_RECORD_READ,
    STKI_CSV_MORE,    /* the bytes end inside the record, and are not the last ones */
    STKI_CSV_BROKEN,  /* *problem says where and why */
    STKI_CSV_TOO_MANY /* cells */
};

typedef struct stki_csv_want {
    stki_csv_cell *cells;
    int most; /* cells that a record may have */
    int only; /* this column alone goes to cells[0]; -1: all of them */
} stki_csv_want;

/* The record at the beginning of the bytes. `last`: the file ends with them. *used: bytes with the end of the line. The
 * cells are of `bytes`; an empty line is a record of one empty cell. */
enum stki_csv_result stki_csv_read(const char *bytes, int64_t count, bool last, char delimiter,
                                   const stki_csv_want *want, int *cell_count, int64_t *used,
                                   stki_csv_problem *problem);
static inline int64_t stki_csv_bytes(const stki_csv_cell *cell) /* of the text that a cell means */
{
    return cell->length - cell->quotes;
}
void stki_csv_text(const stki_csv_cell *cell, char *to); /* writes that many */
/* Blanks around a number are fine. False: it is none, or (whole) does not fit. */
bool stki_csv_whole(const stki_csv_cell *cell, int64_t *out);
bool stki_csv_number(const stki_csv_cell *cell, double *out); /* nan and inf in any case too */
/* strtod as in the C locale. */
double stki_decimal(const char *text);

/* ---- csv_table.c ---- */

enum stki_csv_kind { STKI_CSV_WHOLE, STKI_CSV_REAL, STKI_CSV_TEXT };

/* Which cells have no value, and what they become. */
typedef struct stki_csv_missing {
    const stki_node *words; /* NULL: those of pandas */
    bool given, whole;      /* a value is; it is a whole number */
    int64_t value;          /* if it is */
    double real;
} stki_csv_missing;

/* A cell that is one of the words, as it stands. Nothing else is compared but the words, so "0" may be one. */
bool stki_csv_is_missing(const stki_csv_missing *missing, const stki_csv_cell *cell);

typedef struct stki_csv_column {
    char *name;              /* of the header; owned */
    enum stki_csv_kind kind; /* what all its cells are that have a value */
    int64_t missing;         /* cells without */
    int64_t longest;         /* bytes of a cell's text */
    int64_t first_text;      /* the record whose cell made the column TEXT */
} stki_csv_column;

typedef struct stki_csv {
    stki_container base; /* first member; members are the columns */
    stki_file *file;
    char delimiter;
    bool header; /* the first record has the names */
    bool picked; /* the columns of `columns` are the one member */
    stki_csv_missing missing;
    int column_count;
    stki_csv_column *columns;
    int64_t count;
    stki_places start; /* count + 1: the last one is where the file ends */
} stki_csv;

/* What the files are that a column names. */
enum stki_listed {
    STKI_LISTED_NOTHING /* the cells are the samples */,
    STKI_LISTED_IMAGES,
    STKI_LISTED_ARRAYS,
    STKI_LISTED_BYTES
};

extern const stki_source_group stki_csv_source;
enum stki_listed stki_csv_listed(const stki_reader_opts *opts);
void stki_csv_set_options(stki_csv *csv, const stki_reader_opts *opts);
/* The columns of `columns` in their order, each once; `picked` has column_count entries. *count 0: the option was not
 * given. STK_E_NOT_FOUND: a name or a pattern that fits none. */
stk_status stki_csv_pick(const stki_csv *csv, const stki_reader_opts *opts, int *picked, int *count, stk_error *err);

/* The header and where each record begins; `begins`: where the header does. */
stk_status stki_csv_read_all(stki_csv *csv, int64_t begins, stk_error *err);
/* The line of the file that a record begins in, from 1 on; 0: not to be had. Looks at the file from its beginning. */
int64_t stki_csv_line(const stki_csv *csv, int64_t record);
/* One cell of a record whose bytes are in memory. */
stk_status stki_csv_cell_of(const stki_csv *csv, int column, int64_t record, const char *bytes, stki_csv_cell *out,
                            stk_error *err);

/* One cell of every record, in order: `take` gets the record's number. Stops at its first failure. Column -1: all
 * cells, of which `cell` is the first. */
typedef struct stki_csv_walk {
    const stki_csv *csv;
    int column;
    void *context;
    stk_status (*take)(void *context, int64_t record, const stki_csv_cell *cell, stk_error *err);
} stki_csv_walk;
stk_status stki_csv_walk_run(const stki_csv_walk *walk, stk_error *err);
/* A cell is not what it must be: names file, record, line and column. */
stk_status stki_csv_fail(const stki_csv *csv, int column, int64_t record, stk_status status, const stki_csv_cell *found,
                         const char *expected, stk_error *err);

/* ---- csv_reader.c, csv_files.c ---- */

/* A column of numbers, or those of `columns`, as one array. */
stk_status stki_csv_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                          stk_error *err);

/* A column's samples as the options say: numbers, texts, files. */
stk_status stki_csv_reader(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                           stk_error *err);
/* The samples are the files that a column names. */
stk_status stki_csv_files(const stki_csv *csv, int column, const stki_reader_opts *opts, stki_reader **out,
                          stk_error *err);

/* ---- csv.c ---- */

stk_status stki_csv_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes the file over, also when it fails. */
stk_status stki_csv_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
