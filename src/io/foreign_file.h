/* foreign_file.h: identifies unsupported files by their first bytes, regardless of their names: compressed files, Git
 * LFS pointers, error pages sent by a server. Pure functions; thread-safe. */
#ifndef STKI_FOREIGN_FILE_H
#define STKI_FOREIGN_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_KIND_BYTES = 64 }; /* number of leading bytes that are enough to identify any file */

/* How likely a file with this signature is raw data. */
enum stki_kind_certainty {
    STKI_KIND_POSSIBLE, /* the signature can occur in raw data by chance */
    STKI_KIND_LIKELY,   /* raw data only if the config says so */
    STKI_KIND_SURE      /* never raw data */
};

typedef struct stki_file_kind {
    const char *what;   /* "a gzip file", "a Git LFS pointer" */
    const char *advice; /* "gunzip it"; "": none */
    bool text;          /* the format itself is text */
    enum stki_kind_certainty certainty;
} stki_file_kind;

/* Identifies a file by its first bytes; NULL: unknown. `text`: the file is expected to be text; a short printable
 * signature of a binary format then counts only if the first bytes also contain a NUL. */
const stki_file_kind *stki_file_kind_of(const void *head, int64_t count, bool text);

/* Identifies a folder that is a data set of another program, such as "a Zarr store". NULL: unknown. */
const char *stki_folder_kind_of(const char *path);

/* Returns a possible reason why the file does not exist, for messages: it is a URL, starts with ~, or has a
 * range in braces. "": none. */
const char *stki_file_missing_because(const char *path);

#endif
