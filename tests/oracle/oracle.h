/* oracle.h: what the checks of all formats share. A check reads one entry of the manifest and notes what is wrong. */
#ifndef ORACLE_H
#define ORACLE_H

#include "container.h"
#include <jansson.h>

struct outcome {
    stk_status status; /* of reading */
    stk_error err;
    char wrong[512]; /* not "": read, and the values are not what they should be */
};

/* The first thing that is wrong stays. */
void oracle_wrong(struct outcome *o, const char *format, ...) STK_PRINTF(2, 3);
/* The text of a key, or "". */
const char *oracle_text(const json_t *object, const char *key);
/* Copies a tensor to `to` in C order and native bytes; returns the end. */
char *oracle_copy_out(char *to, const stk_tensor *tensor);
/* Is `status` what the entry or item expects or accepts? Notes it if not, and a message that does not name the file. */
void oracle_judge(struct outcome *o, const json_t *expecting, const char *path, const char *how);

/* One for each kind of format: path is the file, entry its line of the manifest. */
void oracle_arrays(struct outcome *o, const char *path, const json_t *entry);
void oracle_beton(struct outcome *o, const char *path, const json_t *entry);
void oracle_webdataset(struct outcome *o, const char *path, const json_t *entry);
void oracle_megatron(struct outcome *o, const char *path, const json_t *entry);

/* oracle_records.c: a file that is packed by gzip is unpacked into a temporary one, whose path comes back. */
const char *oracle_unpacked(const char *path, const json_t *entry, char *buffer, size_t size);
void oracle_remove(const char *unpacked, const char *path);
/* Reads every member of the file to the first failure, which goes into `o`. */
void oracle_read_all(struct outcome *o, const char *path, const stki_reader_opts *opts);
/* One record: its SHA-256 in C order as hex; *count is set to its bytes. False: noted in `o`. The shape that the reader
 * tells without reading must be the one that comes. */
bool oracle_record(struct outcome *o, const stki_reader *reader, int64_t index, stki_scratch *scratch, char digest[65],
                   int64_t *count);
void oracle_jpeg(struct outcome *o, const char *path, const json_t *entry);
void oracle_jpeg_folder(struct outcome *o, const char *path, const json_t *entry);

#endif
