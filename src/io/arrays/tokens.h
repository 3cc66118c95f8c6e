/* tokens.h: token files and raw data. llm.c: a header of 1,024 bytes, then tokens. Megatron: an index (.idx) and raw
 * tokens (.bin). Raw: only values, whose dtype and shape are given in the config. */
#ifndef STKI_TOKENS_H
#define STKI_TOKENS_H

#include "container.h"

enum { STKI_LLMC_HEADER = 1024, STKI_LLMC_READ = 12, STKI_MEGATRON_HEADER = 34 };

/* ---- one_array.c ---- */

/* Creates a container of a single array named "". Takes ownership of the array, even on failure. `format` is static. */
stk_status stki_one_array(const char *path, const char *format, const stki_array *array, stki_container **out,
                          stk_error *err);

/* ---- llmc.c ---- */

/* Parses the header of a file of llm.c. `head`: the first min(STKI_LLMC_READ, file_bytes) bytes. On success, the file
 * contains exactly `count` tokens. */
stk_status stki_llmc_read_header(const void *head, int64_t file_bytes, const char *path, stk_dtype *dtype,
                                 int64_t *count, stk_error *err);
bool stki_llmc_matches(const char *head, int64_t length);
stk_status stki_llmc_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

/* ---- raw.c ---- */

extern const stki_source_group stki_raw_source;
stk_status stki_raw_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

/* ---- megatron_index.c ---- */

typedef struct stki_megatron_index {
    stk_dtype dtype;
    int64_t sequences, documents;          /* the list of documents has documents + 1 entries, or none if it is empty */
    int64_t lengths, offsets, list, modes; /* offset of each part in the .idx; modes -1: none */
} stki_megatron_index;

/* Parses the header of an .idx. `head`: the first min(34, file_bytes) bytes. On success, all parts are inside the
 * file. */
stk_status stki_megatron_read_header(const void *head, int64_t file_bytes, const char *path, stki_megatron_index *out,
                                     stk_error *err);
/* Checks that every sequence is inside a .bin of bin_bytes and that documents are in order. `bytes`: the whole .idx. */
stk_status stki_megatron_check(const stki_megatron_index *index, const void *bytes, int64_t bin_bytes, const char *path,
                               stk_error *err);

/* ---- megatron.c ---- */

bool stki_megatron_matches(const char *head, int64_t length);
stk_status stki_megatron_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
