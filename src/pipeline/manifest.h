/* manifest.h: reads the manifest that a preparation job writes next to its output (docs/reference/prep.md): the list of
 * the data set's files with their sizes, row counts and checksums. */
#ifndef STKI_MANIFEST_H
#define STKI_MANIFEST_H

#include "digest.h"
#include <jansson.h>
#include <stoker/status.h>

typedef struct stki_manifest_file {
    const char *name; /* as in the manifest, relative to its folder */
    char *path;
    int64_t rows, bytes;
    uint64_t xxh3; /* XXH3-64 of the file */
} stki_manifest_file;

typedef struct stki_manifest {
    char *path;
    json_t *manifest; /* the whole document */
    stki_manifest_file *files;
    int count;
    stki_u128 fingerprint; /* of the data set, as recorded in the manifest */
} stki_manifest;

/* STK_E_CORRUPT: not a manifest, or its fingerprint does not match its list of files. */
stk_status stki_manifest_open(const char *path, stki_manifest *out, stk_error *err);
void stki_manifest_fini(stki_manifest *list); /* a zeroed struct is allowed */

/* Returns the fingerprint of an output, a hash of the names, rows, bytes and checksums of its files, in this order. */
stki_u128 stki_manifest_fingerprint(const stki_manifest_file *files, int count);

/* Checks that all files exist with the listed sizes, without reading their contents. STK_E_NOT_FOUND, STK_E_MISMATCH.
 */
stk_status stki_manifest_check(const stki_manifest *list, stk_error *err);
/* Whether the manifest lists the file at `path` with its current size. */
bool stki_manifest_fits(const stki_manifest *list, const char *path);
/* STK_E_MISMATCH: the file at `path` is not listed. */
stk_status stki_manifest_has(const stki_manifest *list, const char *path, stk_error *err);

#endif
