/* spool.h: the rows of one piece in a separate file, for formats that are written in one pass and for jobs with several
 * tasks. Little-endian:
 *
 *     "STKROWS1"
 *     for each row, for each field:  8 size, 8 length, 4 height, 4 width, 4 channels, 4 encoding, the bytes, zeros
 *         up to a multiple of 8
 *     JSON: metadata of the piece
 *     8 offset of the JSON, 8 rows, 8 XXH3-64 of everything before, "STKROWSE"
 *
 * A piece gets its final name when it is complete and synced.
 */
#ifndef STKI_SPOOL_H
#define STKI_SPOOL_H

#include "sink.h"

typedef struct stki_spool_writer stki_spool_writer;

/* Returns the size of a value of `size` bytes in a piece. */
int64_t stki_spool_value_bytes(int64_t size);

stk_status stki_spool_create(const char *path, int field_count, stki_spool_writer **out, stk_error *err);
stk_status stki_spool_append(stki_spool_writer *spool, const stki_sink_value *values, int64_t rows, stk_error *err);
/* Returns the number of bytes written so far. */
int64_t stki_spool_written(const stki_spool_writer *spool);
/* `known`: metadata of the piece. Frees the writer. May be called by any thread. */
stk_status stki_spool_commit(stki_spool_writer *spool, const json_t *known, stk_error *err);
void stki_spool_abort(stki_spool_writer *spool); /* NULL is allowed */

typedef struct stki_spool stki_spool;

/* Reads the metadata of the piece, as a new JSON value. STK_E_NOT_FOUND: not written yet. STK_E_TRUNCATED,
 * STK_E_CORRUPT. */
stk_status stki_spool_known(const char *path, json_t **out, stk_error *err);
/* Opens a piece and checks the checksum of the whole file. */
stk_status stki_spool_open(const char *path, int field_count, stki_spool **out, stk_error *err);
int64_t stki_spool_rows(const stki_spool *spool);
/* Returns the next `rows` rows, borrowed from the mapped file until close. */
stk_status stki_spool_next(stki_spool *spool, stki_sink_value *values, int64_t rows, stk_error *err);
void stki_spool_close(stki_spool *spool); /* NULL is allowed */

#endif
