/* foreign_file.h: what a file is that no reader here takes, by its first bytes and whatever its name says: compressed
 * files, a Git LFS pointer, a page that a server sent instead of the file. Pure; any thread.
 */
#ifndef STKI_FOREIGN_FILE_H
#define STKI_FOREIGN_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { STKI_KIND_BYTES = 64 }; /* of the beginning are enough */

/* Whether raw data that begins so is nevertheless raw data. */
enum stki_kind_certainty {
    STKI_KIND_POSSIBLE, /* by chance */
    STKI_KIND_LIKELY,   /* only if the config says that it is */
    STKI_KIND_SURE      /* never */
};

typedef struct stki_file_kind {
    const char *what;   /* "a gzip file", "a Git LFS pointer" */
    const char *advice; /* "gunzip it"; "": nothing but another file */
    bool text;          /* it is text itself: other text may begin so */
    enum stki_kind_certainty certainty;
} stki_file_kind;

/* NULL: none of those that are known. `text`: the file should be text, and kinds whose signs are letters need a NUL,
 * too. */
const stki_file_kind *stki_file_kind_of(const void *head, int64_t count, bool text);

/* What a folder is that is a data set of another program: "a Zarr store". NULL: nothing known. */
const char *stki_folder_kind_of(const char *path);

/* Why there is no file of this path, for messages: it is a URL, or begins with ~. "": no idea. */
const char *stki_file_missing_because(const char *path);

#endif
