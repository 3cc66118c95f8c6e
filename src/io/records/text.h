/* text.h: text files as samples: lines, paragraphs, documents between separators, or the whole file; and JSON Lines,
 * where the value of one key of each line is the sample. Samples are bytes, u8 of varying length.
 *
 * One pass at open finds the start of each sample. The starts take 2.5 bytes of memory per sample (places.h); line
 * numbers for messages take 8 bytes per 1,024 samples. The end of a sample follows from the start of the next one. */
#ifndef STKI_TEXT_H
#define STKI_TEXT_H

#include "container.h"
#include "file.h"
#include "json_text.h"
#include "places.h"

enum { STKI_TEXT_SEPARATOR = 256 /* maximum length of a separator */, STKI_TEXT_MARKS = 1024 };

typedef struct stki_text_index {
    int64_t count;
    stki_places start;  /* count + 1 entries; the last one is the end of the samples */
    int64_t *line;      /* line number, from 1, of sample 1024 * k; owned */
    int64_t held_bytes; /* memory used */
    int64_t longest;    /* size of the longest sample, or (JSON Lines) of the longest line */
    int64_t left_out;   /* number of blank lines (JSON Lines) or empty documents */
    bool carriage;      /* whether any line ends in CR LF */
} stki_text_index;

/* The type of a key's values, which is determined by the first value. */
enum stki_jsonl_kind { STKI_JSONL_TEXT, STKI_JSONL_NUMBER, STKI_JSONL_LIST };

/* The values of a key in a JSON Lines file. */
typedef struct stki_jsonl_column {
    char *key;  /* owned by the list of columns */
    bool reals; /* source.dtype: float64: numbers are F64 even if all are integers or some exceed the range of I64 */
    stk_dtype integers;        /* stki_reader_opts.integers */
    enum stki_jsonl_kind kind; /* the members below are only for numbers and lists */
    stk_dtype dtype;           /* I64, F64 */
    int64_t width;             /* length of a list; -1: varies */
    int64_t most;              /* length of the longest list */
    int64_t rounded;           /* an integer that F64 cannot represent; 0: none */
    int64_t rounded_line;      /* its sample */
    stk_error *error;          /* why the column cannot be read; owned by the list of columns; NULL: it can be read */
} stki_jsonl_column;

typedef struct stki_text_file {
    stki_container base; /* first member */
    stki_file *file;
    enum stki_text_unit unit;
    char separator[STKI_TEXT_SEPARATOR + 1];
    int64_t separator_bytes;
    int64_t begins; /* offset after a byte order mark */
    stki_text_index index;
    bool json;                  /* the file is JSON Lines; the members below are used only then */
    stki_jsonl_column column;   /* the values that are the samples */
    stki_jsonl_column *columns; /* columns of all fields that are opened together; owned */
    int column_count;
    stki_container *lender; /* another container of the file, which owns the index; retained. NULL: this one owns it */
} stki_text_file;

/* ---- text.c ---- */

extern const stki_source_group stki_text_source, stki_jsonl_source;
typedef struct stki_jsonl_options {
    const char *key;
} stki_jsonl_options;
bool stki_text_whole(const stki_reader_opts *opts); /* source.unit: file */
stk_status stki_text_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
stk_status stki_jsonl_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Both take ownership of the file, even on failure. */
stk_status stki_text_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
stk_status stki_jsonl_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

/* Identifies a file that is not 8-bit text by its first bytes, for example "a gzip file" or "UTF-16 text"; NULL:
 * nothing was recognized. `markup`: HTML and XML are accepted. *begins: size of a UTF-8 byte order mark. *advice: what
 * the user can do about it. */
const char *stki_text_refuse(const char *head, int64_t length, bool markup, int64_t *begins, const char **advice);

/* ---- text_index.c ---- */

stk_status stki_text_index_build(const stki_text_file *text, stki_text_index *out, stk_error *err);
void stki_text_index_fini(stki_text_index *index);
/* Locates sample `index`, excluding its line terminator, the blank lines after its paragraph, or its separator. */
stk_status stki_text_sample(const stki_text_file *text, int64_t index, int64_t *at, int64_t *bytes, stk_error *err);
/* Returns the line number of the start of the sample, from 1; 0: unknown. */
int64_t stki_text_line(const stki_text_file *text, int64_t index);

/* ---- jsonl.c ---- */

/* Chooses the key (source.key, or the field's name if the first record has it, otherwise "text") and determines the
 * type of its values and, in the same pass, the types for opts->together. For numbers and lists, every line of valid
 * JSON is checked. STK_E_MISMATCH: a value has another type. */
stk_status stki_jsonl_look(stki_text_file *text, const stki_reader_opts *opts, stk_error *err);
/* Returns the keys of the first line, a new reference. NULL: it is not an object, cannot be read, or exceeds 1 MiB. */
json_t *stki_jsonl_keys(const stki_text_file *text);
void stki_jsonl_fini(stki_text_file *text);
/* Finds the value of the key in line `index`, which is at offset `at`. */
stk_status stki_jsonl_find(const stki_text_file *text, int64_t index, int64_t at, const char *line, int64_t bytes,
                           stki_json_span *out, stk_error *err);
/* Stores the numbers of a value as `dtype`, and their count in *count. `to` has room for column.most numbers; NULL:
 * they are only counted. */
stk_status stki_jsonl_numbers(const stki_text_file *text, stk_dtype dtype, int64_t index, int64_t at,
                              const stki_json_span *value, void *to, int64_t *count, stk_error *err);

/* ---- text_reader.c ---- */

stk_status stki_text_reader(const stki_text_file *text, const stki_reader_opts *opts, stki_reader **out,
                            stk_error *err);

#endif
