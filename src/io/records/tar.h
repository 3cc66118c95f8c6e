/* tar.h: tar archives as samples, in the way of WebDataset: files that follow one another and share a key (the path up
 * to the first dot of the base name) are one sample, and what is behind that dot is the file's extension. An index says
 * where each file's data lies, so that samples can be read in any order.
 */
#ifndef STKI_TAR_H
#define STKI_TAR_H

#include "container.h"

enum {
    STKI_TAR_BLOCK = 512,
    STKI_TAR_NAME = 257,
    STKI_TAR_EXTRA_LIMIT = 1 << 20,
    STKI_TAR_EXTENSIONS = 1024,
    STKI_TAR_EXTENSION_NAME = 232
};

/* ---- tar_header.c: single blocks ---- */

enum stki_tar_what {
    STKI_TAR_FILE,
    STKI_TAR_SKIP,       /* a folder, a link, a device: no data follows */
    STKI_TAR_LONG_NAME,  /* its data is the name of the next member */
    STKI_TAR_LONG_LINK,  /* the name of a link */
    STKI_TAR_PAX,        /* its data are records about the next member */
    STKI_TAR_PAX_GLOBAL, /* about all that follow */
    STKI_TAR_END         /* a block of zeros */
};

typedef struct stki_tar_header {
    enum stki_tar_what what;
    int64_t size;             /* of the data behind it; SKIP: 0 */
    char name[STKI_TAR_NAME]; /* with the prefix in front; as it is, not checked */
} stki_tar_header;

/* `block` has 512 bytes and lies at `offset` of `path`. */
stk_status stki_tar_read_header(const void *block, int64_t offset, const char *path, stki_tar_header *out,
                                stk_error *err);
/* Is the checksum right? What a tar archive is known by. */
bool stki_tar_checksum_holds(const void *block);

typedef struct stki_tar_pax {
    const char *path; /* inside the text; NULL: none */
    int64_t path_bytes;
    int64_t size; /* -1: none */
    /* The first record that says that the member's data are not the bytes of its file: a sparse file, or a part of a
     * member that is divided over several archives. NULL: none. */
    const char *encoded;
    int64_t encoded_bytes;
} stki_tar_pax;

/* The records "LENGTH key=value\n" of `text`, which lies at `offset`. Later ones win; `out` keeps what no record names.
 */
stk_status stki_tar_read_pax(const char *text, int64_t length, int64_t offset, const char *path, stki_tar_pax *out,
                             stk_error *err);

/* Splits a member's name: bytes of the key and where the extension begins. False: it is no part of a sample. */
bool stki_tar_split_name(const char *name, int64_t length, int64_t *key_bytes, int64_t *extension_at);

/* ---- tar_index.c: the whole archive ---- */

/* As they lie in the file of a kept index. */
typedef struct stki_tar_entry {
    int64_t offset, size;   /* of the data */
    uint32_t height, width; /* of an image as it is stored; 0: not known */
    uint32_t extension;
    uint32_t orientation; /* of an image, 1 to 8 */
} stki_tar_entry;

typedef struct stki_tar_extension {
    char name[STKI_TAR_EXTENSION_NAME]; /* in lower case, ended by a NUL */
    int64_t count;                      /* samples that have it */
    int64_t smallest, largest;          /* bytes */
} stki_tar_extension;

typedef struct stki_tar_index {
    int64_t sample_count, entry_count, key_bytes;
    int extension_count;
    int64_t skipped; /* files that belong to no sample */
    const stki_tar_extension *extensions;
    const uint32_t *first; /* sample_count + 1: the entries of a sample are first[i] to first[i + 1] - 1 */
    const stki_tar_entry *entries;
    const int64_t *key_at; /* sample_count + 1: the key of a sample is keys[key_at[i]] to keys[key_at[i + 1] - 1] */
    const char *keys;
    /* who owns all that: a mapped file, or blocks */
    stki_file *kept;
    void *blocks[5];
    const char *source; /* "built", "kept" */
} stki_tar_index;

enum stki_tar_kind {
    STKI_TAR_IMAGE, /* jpg, jpeg, png */
    STKI_TAR_NPY,
    STKI_TAR_CLASS, /* cls: a whole number as text */
    STKI_TAR_BYTES  /* everything else */
};

/* By the last part of an extension: "seg.png" is an image. */
enum stki_tar_kind stki_tar_kind_of(const char *extension);
/* How it is read: images that are not decoded are bytes. */
enum stki_tar_kind stki_tar_kind_read(const char *extension, const stki_decode_opts *decode);

/* One pass over the headers of the archive. */
stk_status stki_tar_index_build(const stki_file *file, stki_tar_index *out, stk_error *err);
void stki_tar_index_fini(stki_tar_index *index);
/* The entry of a sample with this extension. STK_E_NOT_FOUND names the sample; STK_E_CORRUPT: a kept index that points
 * outside. The entry's bytes are inside the archive. */
stk_status stki_tar_index_find(const stki_tar_index *index, const stki_file *file, int64_t sample, int extension,
                               const stki_tar_entry **out, stk_error *err);

/* ---- tar_cache.c: an index kept in a file ---- */

/* False: there is none that belongs to this archive (size and time); it is to be built. */
bool stki_tar_cache_load(const char *path, const stki_file *archive, stki_tar_index *out);
stk_status stki_tar_cache_store(const char *path, const stki_file *archive, const stki_tar_index *index,
                                stk_error *err);
/* Where the index of an archive is kept: beside it, or in the folder `where`. NULL: no memory. Free by stki_free. */
char *stki_tar_cache_path(const char *archive, const char *where);

/* ---- webdataset.c, webdataset_reader.c ---- */

typedef struct stki_webdataset {
    stki_container base; /* first member; members are the extensions */
    stki_file *file;
    stki_tar_index index;
} stki_webdataset;

extern const stki_source_group stki_tar_source;
stk_status stki_webdataset_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes the file over, also when it fails. */
stk_status stki_webdataset_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
bool stki_webdataset_matches(const char *head, int64_t length);
stk_status stki_webdataset_reader(const stki_webdataset *set, int extension, const stki_reader_opts *opts,
                                  stki_reader **out, stk_error *err);

#endif
