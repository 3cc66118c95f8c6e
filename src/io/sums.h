/* sums.h: checksums of records in a file next to the data, FILE.sums: the XXH3-64 of each record's values as
 * little-endian bytes in C order (packed.h). `stoker verify --write-sums` writes them; `source: {sums: true}` checks
 * every record that is read. The format is little-endian:
 *
 *     0    8   89 53 54 4B 53 55 4D 0A ("\x89STKSUM\n")
 *     8    4   version, 1
 *     12   4   members
 *     16   8   bytes of FILE; -1: a folder
 *     24   8   bytes of this file
 *     32   8   XXH3-64 of everything from 40 on
 *     40       for each member, padded with zeros to a multiple of 8:
 *                  8   records
 *                  8   offset of their checksums, a multiple of 8
 *                  4   bytes of the name
 *                  4   bytes of `how`
 *                      the name, then `how` it was read: uint8 [28, 28] or uint8 varying; source.key="title"
 *     ...      the sums, 8 bytes each
 *
 * Thread-safe after open. */
#ifndef STKI_SUMS_H
#define STKI_SUMS_H

#include "container.h"

typedef struct stki_sums stki_sums;

enum { STKI_SUMS_HOW = 2048 };

bool stki_sums_exist(const char *data_path);
/* Returns the checksum of a tensor's values. */
uint64_t stki_sums_of(const stk_tensor *tensor);
/* Describes how a reader's records are read: dtype, shape and the options that change values. Checksums are valid only
 * for the same description. */
void stki_sums_how(const stki_reader *reader, const stki_reader_opts *opts, char how[STKI_SUMS_HOW]);

/* Opens FILE.sums. STK_E_NOT_FOUND: it does not exist. STK_E_MISMATCH: it was written for a FILE of another size.
 * STK_E_CORRUPT, STK_E_TRUNCATED, STK_E_UNSUPPORTED: it is damaged or not a supported checksum file. */
stk_status stki_sums_open(const char *data_path, stki_sums **out, stk_error *err);
void stki_sums_close(stki_sums *sums); /* NULL is allowed */
/* Finds the member's checksums. STK_E_NOT_FOUND: there are none for this member. STK_E_MISMATCH: they are for records
 * that were read with other options, or for another number of records. */
stk_status stki_sums_find(const stki_sums *sums, const char *member, const char *how, int64_t count, int64_t *first,
                          stk_error *err);
/* Compares the checksum of record `index` with the stored one. STK_E_CORRUPT: it is wrong; the error contains `path`,
 * the record, and the found and the expected checksum. */
stk_status stki_sums_check(const stki_sums *sums, int64_t first, int64_t index, uint64_t sum, const char *path,
                           stk_error *err);

/* Validates the bytes of a checksum file as stki_sums_open does. */
stk_status stki_sums_validate(const void *bytes, int64_t count, const char *path, stk_error *err);

typedef struct stki_sums_member {
    const char *name, *how;
    int64_t count;
    const uint64_t *sums;
} stki_sums_member;

stk_status stki_sums_write(const char *data_path, const stki_sums_member *members, int64_t count, stk_error *err);

/* Wraps a reader (takes ownership, even on failure): every record read is checked against `member` of FILE.sums, where
 * FILE is the container's path. The whole record is read, even if only a part is requested, and there is no fast path.
 */
stk_status stki_sums_reader(stki_reader *inner, const char *data_path, const char *member, const stki_reader_opts *opts,
                            stki_reader **out, stk_error *err);

#endif
