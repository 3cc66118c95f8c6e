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
    STKI_TAR_LINK = 101,
    STKI_TAR_EXTRA_LIMIT = 1 << 20,
    STKI_TAR_EXTENSIONS = 1024,
    STKI_TAR_EXTENSION_NAME = 232,
    /* Where old GNU tar says that the map of a sparse member goes on: in the header, and in a block of the map. */
    STKI_TAR_GNU_MORE = 482,
    STKI_TAR_GNU_BLOCK_MORE = 504
};

/* ---- tar_header.c: single blocks ---- */

enum stki_tar_what {
    STKI_TAR_FILE,
    STKI_TAR_SPARSE,     /* a file with a map of its stored bytes in the header, by old GNU tar */
    STKI_TAR_HARD_LINK,  /* another name of an earlier member: no data follows */
    STKI_TAR_SYMLINK,    /* no data follows */
    STKI_TAR_SKIP,       /* a folder or a device: no data follows */
    STKI_TAR_OTHER,      /* a volume label or the names in a folder (incremental archives); its data are not a file's */
    STKI_TAR_LONG_NAME,  /* its data is the name of the next member */
    STKI_TAR_LONG_LINK,  /* the name of a link */
    STKI_TAR_PAX,        /* its data are records about the next member */
    STKI_TAR_PAX_GLOBAL, /* about all that follow */
    STKI_TAR_END         /* a block of zeros */
};

typedef struct stki_tar_header {
    enum stki_tar_what what;
    int64_t size;             /* of the data behind it; links and SKIP: 0 */
    char name[STKI_TAR_NAME]; /* with the prefix in front; as it is, not checked */
    char link[STKI_TAR_LINK]; /* what a link points to */
} stki_tar_header;

/* `block` has 512 bytes and lies at `offset` of `path`. */
stk_status stki_tar_read_header(const void *block, int64_t offset, const char *path, stki_tar_header *out,
                                stk_error *err);
/* A number of 12 bytes, octal or binary; `offset` and `what` are for messages. */
stk_status stki_tar_number(const unsigned char *field, int64_t offset, const char *path, const char *what, int64_t *out,
                           stk_error *err);
/* Is the checksum right? What a tar archive is known by. */
bool stki_tar_checksum_holds(const void *block);

/* Where the map of a sparse member is. */
enum stki_tar_map {
    STKI_TAR_MAP_NONE,
    STKI_TAR_MAP_RECORDS, /* GNU 0.0: one record for each offset and each number of bytes */
    STKI_TAR_MAP_RECORD,  /* GNU 0.1: one record */
    STKI_TAR_MAP_DATA,    /* GNU 1.0: in front of the data */
    STKI_TAR_MAP_HOLES    /* Solaris: one record with the ends of holes and data in turn; the holes are stored, too */
};

/* Text inside an extended header; NULL: none. */
typedef struct stki_tar_text {
    const char *text;
    int64_t bytes;
} stki_tar_text;

typedef struct stki_tar_pax {
    stki_tar_text path, sparse_path /* of a sparse member; before `path` */, link;
    int64_t size; /* -1: none */
    enum stki_tar_map map;
    stki_tar_text map_text; /* of MAP_RECORD and MAP_HOLES */
    int64_t real_size;      /* of the whole sparse file; -1: none */
    int64_t star_size;      /* SCHILY.realsize: the same of star, which keeps its map elsewhere; -1: none */
    /* The key of the first record by which the member's data are not the bytes of its file in a way that is not read:
     * a part of a member that is divided over several archives, or another sparse format. */
    stki_tar_text encoded;
} stki_tar_pax;

#define STKI_TAR_NO_PAX ((stki_tar_pax){.size = -1, .real_size = -1, .star_size = -1})

typedef struct stki_tar_record {
    const char *key, *value;
    int64_t key_bytes, bytes;
} stki_tar_record;

/* The record "LENGTH key=value\n" at *at, which moves behind it. STK_END: there is none left. */
stk_status stki_tar_next_record(const char *text, int64_t length, int64_t offset, const char *path, int64_t *at,
                                stki_tar_record *out, stk_error *err);
bool stki_tar_record_is(const stki_tar_record *record, const char *key);
/* Decimal digits at `text`; returns how many, 0 also if the number does not fit. */
int64_t stki_tar_decimal(const char *text, int64_t length, int64_t *out);
/* The records of `text`, which lies at `offset`. Later ones win; `out` keeps what no record names. */
stk_status stki_tar_read_pax(const char *text, int64_t length, int64_t offset, const char *path, stki_tar_pax *out,
                             stk_error *err);

/* Splits a member's name: bytes of the key and where the extension begins. False: it is no part of a sample. */
bool stki_tar_split_name(const char *name, int64_t length, int64_t *key_bytes, int64_t *extension_at);

/* ---- tar_sparse.c: members of which only some bytes are stored ---- */

/* The bytes from `at` on of a sparse member lie at `offset` of the archive. The last run of a member has no bytes. */
typedef struct stki_tar_run {
    int64_t at, bytes, offset;
} stki_tar_run;

/* A growing array; capacity doubles. */
typedef struct stki_tar_array {
    void *data;
    int64_t count, room; /* in elements */
} stki_tar_array;

stk_status stki_tar_reserve(stki_tar_array *array, int64_t more, int64_t each, stk_error *err);

typedef struct stki_tar_sparse {
    int64_t offset;       /* of the stored data; 1.0: moved behind the map */
    int64_t stored, size; /* bytes there (1.0: with the map), and of the whole file */
    const char *pax_text; /* of MAP_RECORDS */
    int64_t pax_bytes, pax_offset;
} stki_tar_sparse;

/* Adds the runs of one member. Ascending, inside the file and as many bytes as are stored, or STK_E_CORRUPT. */
stk_status stki_tar_sparse_pax(const stki_file *file, const stki_tar_pax *pax, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err);
/* The same by the header of old GNU tar, `block`. member->offset is that of the block behind the header and is moved
 * behind the blocks of a longer map; sets member->size. */
stk_status stki_tar_sparse_gnu(const stki_file *file, const unsigned char *block, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err);

/* ---- tar_index.c: the whole archive ---- */

/* As they lie in the file of a kept index. */
typedef struct stki_tar_entry {
    int64_t offset, size;   /* of the data; sparse: `offset` is that of the stored bytes, `size` that of the file */
    uint32_t height, width; /* of an image as it is stored; 0: not known */
    uint32_t extension;
    uint16_t orientation; /* of an image, 1 to 8 */
    uint16_t sparse;      /* 1: the runs from `offset` on are its stored bytes, the others are 0 */
} stki_tar_entry;

typedef struct stki_tar_extension {
    char name[STKI_TAR_EXTENSION_NAME]; /* in lower case, ended by a NUL */
    int64_t count;                      /* samples that have it */
    int64_t smallest, largest;          /* bytes */
} stki_tar_extension;

typedef struct stki_tar_index {
    int64_t sample_count, entry_count, key_bytes, run_count;
    int extension_count;
    int64_t skipped; /* files that belong to no sample */
    int64_t links;   /* symbolic links, and hard links to files that are no members */
    int64_t others;  /* devices, volume labels, names of folders */
    const stki_tar_extension *extensions;
    const uint32_t *first; /* sample_count + 1: the entries of a sample are first[i] to first[i + 1] - 1 */
    const stki_tar_entry *entries;
    const int64_t *key_at; /* sample_count + 1: the key of a sample is keys[key_at[i]] to keys[key_at[i + 1] - 1] */
    const char *keys;
    const stki_tar_run *runs; /* of sparse members, by offset */
    /* who owns all that: a mapped file, or blocks */
    stki_file *kept;
    void *blocks[6];
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
/* The bytes of a member in the archive's mapping. NULL: they have to be read. */
const void *stki_tar_index_mapped(const stki_file *file, const stki_tar_entry *entry);
/* `count` bytes of a member from `at` on; both inside it. */
stk_status stki_tar_index_read(const stki_tar_index *index, const stki_file *file, const stki_tar_entry *entry,
                               int64_t at, void *to, int64_t count, stk_error *err);
/* The same of runs that are not an index's yet; `runs` has run_count. */
stk_status stki_tar_runs_read(const stki_tar_run *runs, int64_t run_count, const stki_file *file,
                              const stki_tar_entry *entry, int64_t at, void *to, int64_t count, stk_error *err);

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
