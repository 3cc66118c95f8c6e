/* foreign_file.h: identifies unsupported files by their first bytes, regardless of their names: compressed files, Git
 * LFS pointers, error pages sent by a server. Pure functions; thread-safe. */
#ifndef STKI_FOREIGN_FILE_H
#define STKI_FOREIGN_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_KIND_BYTES = 64 }; /* number of first bytes that suffice */

/* How likely a file with this signature is raw data. */
enum stki_kind_certainty {
    STKI_KIND_POSSIBLE, /* the signature can occur in raw data by chance */
    STKI_KIND_LIKELY,   /* raw data only if the config says that it is */
    STKI_KIND_SURE      /* never raw data */
};

typedef struct stki_file_kind {
    const char *what;   /* "a gzip file", "a Git LFS pointer" */
    const char *advice; /* "gunzip it"; "": none */
    bool text;          /* the format is text, so other text may start in the same way */
    enum stki_kind_certainty certainty;
} stki_file_kind;

/* NULL: unknown. `text`: the file is expected to be text; then signatures of letters also require a NUL. */
const stki_file_kind *stki_file_kind_of(const void *head, int64_t count, bool text);

/* Identifies folders that are data sets of other programs: "a Zarr store". NULL: unknown. */
const char *stki_folder_kind_of(const char *path);

/* Returns a possible reason why the file does not exist, for messages: it is a URL, or starts with ~. "": none. */
const char *stki_file_missing_because(const char *path);

#endif
