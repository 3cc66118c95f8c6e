/* text.h: text files as samples: lines, paragraphs, documents between separators, or the whole file; and lines of JSON
 * of which one key's string is the sample. Samples are bytes, u8 of varying length.
 *
 * One pass when the file is opened finds where each sample begins, which is what is held in memory: two and a half
 * bytes a sample (places.h), and 8 for every 1,024th for line numbers in messages. Where a sample ends follows from
 * where the next one begins.
 */
#ifndef STKI_TEXT_H
#define STKI_TEXT_H

#include "container.h"
#include "file.h"
#include "json_text.h"
#include "places.h"

enum { STKI_TEXT_SEPARATOR = 256 /* most bytes of one */, STKI_TEXT_MARKS = 1024 };

typedef struct stki_text_index {
    int64_t count;
    stki_places start;  /* count + 1: the last one is where the samples end */
    int64_t *line;      /* of the file, from 1 on, that sample 1024 * k begins in; owned */
    int64_t held_bytes; /* of memory */
    int64_t longest;    /* bytes of the longest sample, or (lines of JSON) of the longest line */
    int64_t left_out;   /* blank lines of JSON, empty documents */
    bool carriage;      /* some line ends in CR LF */
} stki_text_index;

/* What the values of a key are, by the first one. */
enum stki_jsonl_kind { STKI_JSONL_TEXT, STKI_JSONL_NUMBER, STKI_JSONL_LIST };

typedef struct stki_text_file {
    stki_container base; /* first member */
    stki_file *file;
    enum stki_text_unit unit;
    char separator[STKI_TEXT_SEPARATOR + 1];
    int64_t separator_bytes;
    char *key;                 /* of JSON; NULL: the text itself is the sample */
    enum stki_jsonl_kind kind; /* of JSON; the next three of numbers and lists */
    bool reals;                /* source.dtype: float64: numbers are F64 even if all are whole, or larger ones are */
    stk_dtype dtype;           /* I64, F64 */
    int64_t width;             /* numbers of a list; -1: they differ */
    int64_t most;              /* of the longest one */
    int64_t begins;            /* behind a byte order mark */
    stki_text_index index;
} stki_text_file;

/* ---- text.c ---- */

extern const stki_source_group stki_text_source, stki_jsonl_source;
bool stki_text_whole(const stki_reader_opts *opts); /* source.unit: file */
stk_status stki_text_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
stk_status stki_jsonl_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Take the file over, also when they fail. */
stk_status stki_text_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
stk_status stki_jsonl_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);

/* What the beginning of a file is that is no text of bytes: "a gzip file", "UTF-16 text"; NULL: nothing known.
 * `markup`: HTML and XML are fine. *begins: bytes of a byte order mark of UTF-8. `advice`: what to do about it. */
const char *stki_text_refuse(const char *head, int64_t length, bool markup, int64_t *begins, const char **advice);

/* ---- text_index.c ---- */

stk_status stki_text_index_build(const stki_text_file *text, stki_text_index *out, stk_error *err);
void stki_text_index_fini(stki_text_index *index);
/* Where sample `index` lies, without the end of its line, the blank end of its paragraph or its separator. */
stk_status stki_text_sample(const stki_text_file *text, int64_t index, int64_t *at, int64_t *bytes, stk_error *err);
/* The line of the file that it begins in, from 1 on; 0: not to be had. */
int64_t stki_text_line(const stki_text_file *text, int64_t index);

/* ---- jsonl.c ---- */

/* Which key it is (`named`: of the options; NULL: the field's name, if the first record has it, else "text") and what
 * its values are. Of numbers and lists every line is looked at: one of another kind is STK_E_MISMATCH. */
stk_status stki_jsonl_look(stki_text_file *text, const char *named, const char *field, stk_error *err);
/* The value of the key in the line `index`, which lies at `at`. */
stk_status stki_jsonl_find(const stki_text_file *text, int64_t index, int64_t at, const char *line, int64_t bytes,
                           stki_json_span *out, stk_error *err);
/* The numbers of a value as `dtype`; *count: how many. `to` has room for text->most; NULL: only counted. */
stk_status stki_jsonl_numbers(const stki_text_file *text, stk_dtype dtype, int64_t index, int64_t at,
                              const stki_json_span *value, void *to, int64_t *count, stk_error *err);

/* ---- text_reader.c ---- */

stk_status stki_text_reader(const stki_text_file *text, const stki_reader_opts *opts, stki_reader **out,
                            stk_error *err);

#endif
