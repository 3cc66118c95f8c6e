/* oracle.h: shared by the checks of all formats. A check reads one entry of the manifest and records what is wrong. */
#ifndef ORACLE_H
#define ORACLE_H

#include "container.h"
#include <jansson.h>

struct outcome {
    stk_status status; /* of the read */
    stk_error err;
    char wrong[512]; /* if not empty: the read succeeded, but the values are wrong */
};

/* Records a mismatch; only the first one is kept. */
void oracle_wrong(struct outcome *o, const char *format, ...) STK_PRINTF(2, 3);
/* The string under a key, or "". */
const char *oracle_text(const json_t *object, const char *key);
/* Copies a tensor to `to` in C order and native byte order; returns the end. */
char *oracle_copy_out(char *to, const stk_tensor *tensor);
/* Records a mismatch if `status` is neither what the entry or item expects nor what it accepts, or if the error message
 * does not name the file. */
void oracle_judge(struct outcome *o, const json_t *expecting, const char *path, const char *how);

/* One function per kind of format. `path` is the file and `entry` its manifest entry. */
void oracle_arrays(struct outcome *o, const char *path, const json_t *entry);
void oracle_beton(struct outcome *o, const char *path, const json_t *entry);
void oracle_webdataset(struct outcome *o, const char *path, const json_t *entry);
void oracle_megatron(struct outcome *o, const char *path, const json_t *entry);

/* In oracle_records.c. Decompresses a gzip file into a temporary file and returns its path; for other files, returns
 * `path`. */
const char *oracle_unpacked(const char *path, const json_t *entry, char *buffer, size_t size);
void oracle_remove(const char *unpacked, const char *path);
/* Reads every member of the file up to the first failure, which is recorded in `o`. */
void oracle_read_all(struct outcome *o, const char *path, const stki_reader_opts *opts);
/* Reads one record: its SHA-256 in C order as hex, and its bytes in *count. Returns false on failure, with the status
 * in `o`. Also checks that the record's shape matches the shape that the reader reports without reading the record. */
bool oracle_record(struct outcome *o, const stki_reader *reader, int64_t index, stki_scratch *scratch, char digest[65],
                   int64_t *count);
void oracle_jpeg(struct outcome *o, const char *path, const json_t *entry);
void oracle_jpeg_folder(struct outcome *o, const char *path, const json_t *entry);

#endif
