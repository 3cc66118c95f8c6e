/* manifest.h: the list of files in the manifest that a preparation job leaves beside its output
 * (docs/reference/prep.md), as far as a loader or a checker needs it: which files the data set is made of, how large
 * they are, how many rows they hold, and their sums. */
#ifndef STKI_MANIFEST_H
#define STKI_MANIFEST_H

#include "digest.h"
#include <jansson.h>
#include <stoker/status.h>

typedef struct stki_manifest_file {
    const char *name; /* as the manifest has it, relative to its folder */
    char *path;
    int64_t rows, bytes;
    uint64_t xxh3; /* XXH3-64 of the file */
} stki_manifest_file;

typedef struct stki_manifest {
    char *path;       /* of the manifest */
    json_t *manifest; /* all of it */
    stki_manifest_file *files;
    int count;
    stki_u128 fingerprint; /* of the data set, as the manifest says it */
} stki_manifest;

/* STK_E_CORRUPT: no manifest, or one whose fingerprint is not that of its files. */
stk_status stki_manifest_open(const char *path, stki_manifest *out, stk_error *err);
void stki_manifest_fini(stki_manifest *list); /* fine on a zeroed one */

/* What makes two outputs the same: names, rows, bytes and sums of their files, in this order. */
stki_u128 stki_manifest_fingerprint(const stki_manifest_file *files, int count);

/* Are all files there, and of the sizes that are listed? Reads no data. STK_E_NOT_FOUND, STK_E_MISMATCH. */
stk_status stki_manifest_check(const stki_manifest *list, stk_error *err);
/* Does it list the file at `path`, with the size that it has? */
bool stki_manifest_fits(const stki_manifest *list, const char *path);
/* STK_E_MISMATCH: the file at `path` is none of its files. */
stk_status stki_manifest_has(const stki_manifest *list, const char *path, stk_error *err);

#endif
