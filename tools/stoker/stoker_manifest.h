/* stoker_manifest.h: checks files against the manifest of a preparation job (`stoker verify NAME.manifest.json`) and
 * prints manifests (`stoker inspect NAME.manifest.json`). */
#ifndef STOKER_MANIFEST_H
#define STOKER_MANIFEST_H

#include "counter.h"
#include "manifest.h"
#include <stdbool.h>

/* Whether the file is a manifest, according to its name. */
bool st_is_manifest(const char *path);

/* A file listed in the manifest. */
struct st_listed {
    char *path;
    int64_t bytes, rows; /* rows -1: an input */
    uint64_t xxh3;
    bool has_sum;
    const char *names, *contents; /* for a folder: hash of file names and sizes, hash of contents; otherwise NULL */
    char *fault;                  /* NULL: matches the manifest */
};

struct st_manifest_check {
    const stki_manifest *list;
    struct st_listed *files; /* parts, then inputs */
    int64_t file_count, bytes;
    int64_t unsummed;            /* inputs without a checksum in the manifest */
    char *fault;                 /* a fault of the manifest itself */
    stki_counter checked, ended; /* bytes; files */
    stki_counter faults, unchecked;
    void (*progress)(const struct st_manifest_check *check); /* called a few times per second; may be NULL */
};

/* `stoker inspect`; returns the exit status. */
int st_manifest_inspect(const char *path, bool json);
/* `stoker verify`; returns the exit status. */
int st_manifest_verify(const char *path, bool inputs, int threads, bool json);

#endif
