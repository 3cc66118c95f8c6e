/* tokens.h: files of tokens, and raw data. llm.c: a header of 1,024 bytes, then tokens. Megatron: an index (.idx)
 * beside raw tokens (.bin). Raw: nothing but values, whose type and shape the configuration states.
 */
#ifndef STKI_TOKENS_H
#define STKI_TOKENS_H

#include "container.h"

enum { STKI_LLMC_HEADER = 1024, STKI_LLMC_READ = 12, STKI_MEGATRON_HEADER = 34 };

/* ---- one_array.c ---- */

/* A container of the one array "", which it takes over; also when it fails. `format` is static. */
stk_status stki_one_array(const char *path, const char *format, const stki_array *array, stki_container **out,
                          stk_error *err);

/* ---- llmc.c ---- */

/* `head`: the first min(STKI_LLMC_READ, file_bytes) bytes. On success the file holds exactly `count` tokens. */
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
    int64_t sequences, documents; /* entries of the list of documents are documents + 1; 0 of both where it is empty */
    int64_t lengths, offsets, list, modes; /* where each part begins in the .idx; modes -1: not there */
} stki_megatron_index;

/* `head`: the first min(34, file_bytes) bytes. On success all parts lie inside the file. */
stk_status stki_megatron_read_header(const void *head, int64_t file_bytes, const char *path, stki_megatron_index *out,
                                     stk_error *err);
/* `bytes` is the whole .idx. Every sequence lies inside a .bin of bin_bytes, the documents are in order. */
stk_status stki_megatron_check(const stki_megatron_index *index, const void *bytes, int64_t bin_bytes, const char *path,
                               stk_error *err);

/* ---- megatron.c ---- */

bool stki_megatron_matches(const char *head, int64_t length);
stk_status stki_megatron_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
