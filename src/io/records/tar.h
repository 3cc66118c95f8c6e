/* tar.h: tar archives as samples, as in WebDataset: consecutive files with the same key (the path up to the first dot
 * of the base name) form a sample, and the rest of the name after that dot is the file's extension. An index contains
 * the location of each file's data, so that samples can be read in any order. */
#ifndef STKI_TAR_H
#define STKI_TAR_H

#include "container.h"

enum {
    STKI_TAR_BLOCK = 512,
    STKI_TAR_NAME = 257,
    STKI_TAR_LINK = 101,
    STKI_TAR_EXTRA_LIMIT = 1 << 20,
    STKI_TAR_EXTENSIONS = 1024,
    STKI_TAR_EXTENSION_NAME = 232,
    /* Offsets of the flags of old GNU tar for a continued sparse map: in the header, and in a block of the map. */
    STKI_TAR_GNU_MORE = 482,
    STKI_TAR_GNU_BLOCK_MORE = 504
};

/* ---- tar_header.c: single blocks ---- */

enum stki_tar_what {
    STKI_TAR_FILE,
    STKI_TAR_SPARSE,    /* a file with a sparse map in the header (old GNU tar) */
    STKI_TAR_HARD_LINK, /* a hard link to an earlier member; no data follows */
    STKI_TAR_SYMLINK,   /* a symbolic link; no data follows */
    STKI_TAR_SKIP,      /* a folder or a device; no data follows */
    STKI_TAR_OTHER, /* a volume label or a directory listing (incremental archives); its data is not that of a file */
    STKI_TAR_LONG_NAME,  /* its data is the name of the next member */
    STKI_TAR_LONG_LINK,  /* its data is the link target of the next member */
    STKI_TAR_PAX,        /* its data consists of records about the next member */
    STKI_TAR_PAX_GLOBAL, /* its data consists of records about all following members */
    STKI_TAR_END         /* a block of zeros */
};

typedef struct stki_tar_header {
    enum stki_tar_what what;
    int64_t size;             /* size of the data that follows; links and SKIP: 0 */
    char name[STKI_TAR_NAME]; /* the name, including the prefix; not validated */
    char link[STKI_TAR_LINK]; /* target of a link */
} stki_tar_header;

/* Parses a header. `block`: the 512 bytes at `offset` of `path`. */
stk_status stki_tar_read_header(const void *block, int64_t offset, const char *path, stki_tar_header *out,
                                stk_error *err);
/* Parses a 12-byte number, octal or binary; `offset` and `what` are for messages. */
stk_status stki_tar_number(const unsigned char *field, int64_t offset, const char *path, const char *what, int64_t *out,
                           stk_error *err);
/* Whether the checksum is valid; used to recognize tar archives. */
bool stki_tar_checksum_holds(const void *block);

/* Location of the map of a sparse member. */
enum stki_tar_map {
    STKI_TAR_MAP_NONE,
    STKI_TAR_MAP_RECORDS, /* GNU 0.0: one record for each offset and each number of bytes */
    STKI_TAR_MAP_RECORD,  /* GNU 0.1: one record */
    STKI_TAR_MAP_DATA,    /* GNU 1.0: the map precedes the data */
    STKI_TAR_MAP_HOLES /* Solaris: one record that contains the ends of holes and data alternately; holes are stored too
                        */
};

/* Text inside an extended header; text NULL: none. */
typedef struct stki_tar_text {
    const char *text;
    int64_t bytes;
} stki_tar_text;

typedef struct stki_tar_pax {
    stki_tar_text path, sparse_path /* name of a sparse member; takes precedence over `path` */, link;
    int64_t size; /* -1: none */
    enum stki_tar_map map;
    stki_tar_text map_text; /* for MAP_RECORD and MAP_HOLES */
    int64_t real_size;      /* size of the whole sparse file; -1: none */
    int64_t star_size;      /* SCHILY.realsize: the same as written by star, which stores its map elsewhere; -1: none */
    /* The key of the first record that makes the member's data unsupported: part of a file that spans several archives,
     * or another sparse format. */
    stki_tar_text encoded;
} stki_tar_pax;

#define STKI_TAR_NO_PAX ((stki_tar_pax){.size = -1, .real_size = -1, .star_size = -1})

typedef struct stki_tar_record {
    const char *key, *value;
    int64_t key_bytes, bytes;
} stki_tar_record;

/* Parses the record "LENGTH key=value\n" at *at and advances *at past it. STK_END: there are no more records. */
stk_status stki_tar_next_record(const char *text, int64_t length, int64_t offset, const char *path, int64_t *at,
                                stki_tar_record *out, stk_error *err);
bool stki_tar_record_is(const stki_tar_record *record, const char *key);
/* Parses decimal digits. Returns the number of digits, or 0 if there are none or the value overflows. */
int64_t stki_tar_decimal(const char *text, int64_t length, int64_t *out);
/* Parses the records of `text`, which is at `offset`. The last one wins; members of `out` without a record are
 * unchanged. */
stk_status stki_tar_read_pax(const char *text, int64_t length, int64_t offset, const char *path, stki_tar_pax *out,
                             stk_error *err);

/* Splits a member's name: sets the length of the key and the offset of the extension. Returns false if the member is
 * not part of a sample. */
bool stki_tar_split_name(const char *name, int64_t length, int64_t *key_bytes, int64_t *extension_at);

/* ---- tar_sparse.c: sparse members ---- */

/* A run of stored bytes: bytes [at, at + bytes) of a sparse member are stored at `offset` in the archive. The last run
 * of a member is empty. */
typedef struct stki_tar_run {
    int64_t at, bytes, offset;
} stki_tar_run;

/* An array whose capacity doubles as it grows. */
typedef struct stki_tar_array {
    void *data;
    int64_t count, room; /* in elements */
} stki_tar_array;

stk_status stki_tar_reserve(stki_tar_array *array, int64_t more, int64_t each, stk_error *err);

typedef struct stki_tar_sparse {
    int64_t offset;       /* offset of the stored data; GNU 1.0: advanced past the map */
    int64_t stored, size; /* size of the stored data (GNU 1.0: including the map), and of the whole file */
    const char *pax_text; /* for MAP_RECORDS */
    int64_t pax_bytes, pax_offset;
} stki_tar_sparse;

/* Adds the runs of one member. STK_E_CORRUPT: the runs are not in ascending order, are out of bounds, or do not have as
 * many bytes as are stored. */
stk_status stki_tar_sparse_pax(const stki_file *file, const stki_tar_pax *pax, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err);
/* Like stki_tar_sparse_pax, for a map that starts in `block`, a header of old GNU tar. member->offset must be the
 * offset of the block after the header; it is advanced past additional map blocks. Sets member->size. */
stk_status stki_tar_sparse_gnu(const stki_file *file, const unsigned char *block, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err);

/* ---- tar_index.c: the index of an archive ---- */

/* This is also the layout of an entry in a cached index file. */
typedef struct stki_tar_entry {
    int64_t offset, size;   /* range of the data; sparse: `offset` of the stored bytes, `size` of the whole file */
    uint32_t height, width; /* size of an image as stored; 0: unknown */
    uint32_t extension;
    uint16_t orientation; /* orientation of an image, 1 to 8 */
    uint16_t sparse;      /* 1: only the runs from `offset` on are stored; all other bytes are 0 */
} stki_tar_entry;

typedef struct stki_tar_extension {
    char name[STKI_TAR_EXTENSION_NAME]; /* in lower case, NUL-terminated */
    int64_t count;                      /* number of samples that have this extension */
    int64_t smallest, largest;          /* bytes */
} stki_tar_extension;

typedef struct stki_tar_index {
    int64_t sample_count, entry_count, key_bytes, run_count;
    int extension_count;
    int64_t skipped; /* files that do not belong to a sample */
    int64_t links;   /* symbolic links, and hard links to files that are not members */
    int64_t others;  /* devices, volume labels, directory listings */
    int64_t end;     /* offset of the end-of-archive marker; -1: none */
    int64_t beyond;  /* number of bytes from the first data after that marker to the end of the file; 0: none */
    const stki_tar_extension *extensions;
    const uint32_t *first; /* sample_count + 1 numbers: the entries of sample i are [first[i], first[i + 1]) */
    const stki_tar_entry *entries;
    const int64_t *key_at; /* sample_count + 1: the key of sample i is in keys, from key_at[i] up to key_at[i + 1] */
    const char *keys;
    const stki_tar_run *runs; /* runs of sparse members, sorted by offset */
    /* owner of the memory: a mapped file, or blocks */
    stki_file *kept;
    void *blocks[6];
    const char *source; /* "built", "kept" */
} stki_tar_index;

enum stki_tar_kind {
    STKI_TAR_IMAGE, /* jpg, jpeg, png */
    STKI_TAR_NPY,
    STKI_TAR_CLASS, /* cls: an integer as text */
    STKI_TAR_BYTES  /* everything else */
};

/* Returns the kind of file according to the last part of the extension: "seg.png" is an image. */
enum stki_tar_kind stki_tar_kind_of(const char *extension);
/* Like stki_tar_kind_of, but images that are not decoded count as bytes. */
enum stki_tar_kind stki_tar_kind_read(const char *extension, const stki_decode_opts *decode);

/* Builds the index from the headers of the archive, in one pass, or in two if there are hard links. */
stk_status stki_tar_index_build(const stki_file *file, stki_tar_index *out, stk_error *err);
void stki_tar_index_fini(stki_tar_index *index);
/* Returns the entry of a sample with this extension, checked to be inside the archive. STK_E_NOT_FOUND: the sample has
 * no such file; the message names the sample. STK_E_CORRUPT: the entry, which is from a cached index, is invalid. */
stk_status stki_tar_index_find(const stki_tar_index *index, const stki_file *file, int64_t sample, int extension,
                               const stki_tar_entry **out, stk_error *err);
/* Returns the address of a member in the archive's mapping. NULL: it must be read. */
const void *stki_tar_index_mapped(const stki_file *file, const stki_tar_entry *entry);
/* Reads `count` bytes at offset `at` of a member; they must be inside the member. */
stk_status stki_tar_index_read(const stki_tar_index *index, const stki_file *file, const stki_tar_entry *entry,
                               int64_t at, void *to, int64_t count, stk_error *err);
/* Like stki_tar_index_read, for runs that are not yet part of an index. `runs` has run_count entries. */
stk_status stki_tar_runs_read(const stki_tar_run *runs, int64_t run_count, const stki_file *file,
                              const stki_tar_entry *entry, int64_t at, void *to, int64_t count, stk_error *err);

/* ---- tar_cache.c: an index cached in a file ---- */

/* Returns false if there is no valid index for this archive (for its size and time), so that it must be built. */
bool stki_tar_cache_load(const char *path, const stki_file *archive, stki_tar_index *out);
stk_status stki_tar_cache_store(const char *path, const stki_file *archive, const stki_tar_index *index,
                                stk_error *err);
/* Returns the path of an archive's cached index, which is next to the archive or in the folder `where`; NULL: out of
 * memory. Free it with stki_free. */
char *stki_tar_cache_path(const char *archive, const char *where);

/* ---- webdataset.c, webdataset_reader.c ---- */

typedef struct stki_webdataset {
    stki_container base; /* first member; members are the extensions */
    stki_file *file;
    stki_tar_index index;
} stki_webdataset;

extern const stki_source_group stki_tar_source;
stk_status stki_webdataset_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Takes ownership of the file, even on failure. */
stk_status stki_webdataset_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out, stk_error *err);
bool stki_webdataset_matches(const char *head, int64_t length);
stk_status stki_webdataset_reader(const stki_webdataset *set, int extension, const stki_reader_opts *opts,
                                  stki_reader **out, stk_error *err);

#endif
