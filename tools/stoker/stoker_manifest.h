/* stoker_manifest.h: what a preparation job's manifest says, held against the files: `stoker verify
 * NAME.manifest.json`, and shown: `stoker inspect NAME.manifest.json`. */
#ifndef STOKER_MANIFEST_H
#define STOKER_MANIFEST_H

#include "counter.h"
#include "manifest.h"
#include <stdbool.h>

/* By its name. */
bool st_is_manifest(const char *path);

/* A file that is to be as the manifest says. */
struct st_listed {
    char *path;
    int64_t bytes, rows; /* rows -1: an input, which has none */
    uint64_t xxh3;
    bool has_sum;
    const char *names, *contents; /* of a folder: sums of its files' names and sizes, and of what is in them; or NULL */
    char *fault;                  /* NULL: it is */
};

struct st_manifest_check {
    const stki_manifest *list;
    struct st_listed *files; /* the parts, then the inputs */
    int64_t file_count, bytes;
    int64_t unsummed;            /* inputs of which the manifest knows no sum */
    char *fault;                 /* of the manifest itself */
    stki_counter checked, ended; /* bytes; files */
    stki_counter faults, unchecked;
    void (*progress)(const struct st_manifest_check *check); /* a few times a second; or NULL */
};

/* `stoker inspect`: the exit status. */
int st_manifest_inspect(const char *path, bool json);
/* `stoker verify`: the exit status. */
int st_manifest_verify(const char *path, bool inputs, int threads, bool json);

#endif
