/* hdf5_parse.h: reads HDF5 files without the library, from the structures described in the HDF5 File Format
 * Specification (version 3.0); comments refer to its sections. libhdf5 can crash on damaged files and serializes all
 * calls with one lock, so ordinary files are read without it. Anything unsupported or inconsistent is rejected with
 * STK_E_UNSUPPORTED or STK_E_CORRUPT, and the caller uses the library.
 *
 * Every structure is copied from the file once and decoded from the copy. Offsets are checked against the end of the
 * file, loops are bounded by the size of the file, and no function recurses along addresses. Thread-safe. */
#ifndef STKI_HDF5_PARSE_H
#define STKI_HDF5_PARSE_H

#include "file.h"

struct stki_hdf5_dataset;
struct stki_hdf5_type;

/* II.A "Disk Format: Level 0A - Format Signature and Superblock". */
typedef struct stki_hdf5_super {
    const stki_file *file;  /* borrowed */
    int64_t base;           /* offset to which all addresses are relative */
    bool plain;             /* the superblock is fully supported and the file is complete */
    bool unsummed;          /* for fuzzing: checksums are not checked */
    uint64_t root;          /* if plain: address of the root group's object header */
    int leaf_k, internal_k; /* if plain: half of the maximum number of entries in group nodes */
} stki_hdf5_super;

/* Finds the superblock. STK_E_CORRUPT, STK_E_TRUNCATED: there is no signature at any of the possible offsets. */
stk_status stki_hdf5_find_signature(const stki_file *file, int64_t *at, stk_error *err);
stk_status stki_hdf5_super_read(const stki_file *file, stki_hdf5_super *out, stk_error *err);

/* ---- bytes ---- */

#define STKI_HDF5_UNDEFINED UINT64_MAX /* the undefined address */

/* Decodes a little-endian number. */
static inline uint64_t stki_hdf5_number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

/* Returns the binary logarithm of x > 0, rounded down. */
static inline int stki_hdf5_log2(uint64_t x)
{
    return 63 - __builtin_clzll(x);
}

/* A cursor over bytes. Reading beyond the end returns zeros and sets `bad`. */
typedef struct stki_hdf5_cursor {
    const unsigned char *at;
    int64_t left;
    bool bad;
} stki_hdf5_cursor;

static inline const unsigned char *stki_hdf5_skip(stki_hdf5_cursor *c, int64_t bytes)
{
    const unsigned char *at = c->at;

    c->bad = c->bad || bytes < 0 || bytes > c->left;
    if (c->bad)
        return NULL;
    c->at += bytes;
    c->left -= bytes;
    return at;
}

static inline uint64_t stki_hdf5_take(stki_hdf5_cursor *c, int bytes)
{
    const unsigned char *at = stki_hdf5_skip(c, bytes);

    return at ? stki_hdf5_number(at, bytes) : 0;
}

/* Converts an address to an offset in the file. STK_E_CORRUPT: the `bytes` bytes at the address are not inside the
 * file; the message names `what`. */
stk_status stki_hdf5_place(const stki_file *file, int64_t base, uint64_t address, int64_t bytes, const char *what,
                           int64_t *place, stk_error *err);
/* Like stki_hdf5_place, but also copies the bytes to `to`. */
stk_status stki_hdf5_copy(const stki_hdf5_super *super, uint64_t address, void *to, int64_t bytes, const char *what,
                          stk_error *err);
stk_status stki_hdf5_corrupt(const stki_hdf5_super *super, uint64_t address, const char *what, stk_error *err);
stk_status stki_hdf5_unsupported(const stki_hdf5_super *super, uint64_t address, const char *what, stk_error *err);
/* Computes the checksum of metadata: Jenkins' lookup3 with an initial value of 0. */
uint32_t stki_hdf5_sum(const void *bytes, int64_t count);
/* Whether the last 4 bytes are the checksum of the preceding ones. */
bool stki_hdf5_sum_fits(const stki_hdf5_super *super, const unsigned char *bytes, int64_t count);

/* ---- object headers (IV.A) ---- */

enum {
    STKI_HDF5_DATASPACE = 0x01,
    STKI_HDF5_LINK_INFO = 0x02,
    STKI_HDF5_DATATYPE = 0x03,
    STKI_HDF5_OLD_FILL = 0x04,
    STKI_HDF5_FILL = 0x05,
    STKI_HDF5_LINK = 0x06,
    STKI_HDF5_EXTERNAL_FILES = 0x07,
    STKI_HDF5_LAYOUT = 0x08,
    STKI_HDF5_PIPELINE = 0x0B,
    STKI_HDF5_ATTRIBUTE = 0x0C,
    STKI_HDF5_ATTRIBUTE_INFO = 0x15,
    STKI_HDF5_SYMBOL_TABLE = 0x11
};

typedef struct stki_hdf5_message {
    int type;
    bool shared;   /* `data` is only a reference to the actual message */
    int64_t place; /* offset in the file */
    stki_hdf5_cursor data;
} stki_hdf5_message;

typedef struct stki_hdf5_header {
    struct stki_hdf5_block *blocks; /* memory that contains the messages */
    stki_hdf5_message *messages;
    int64_t count, capacity;
} stki_hdf5_header;

/* `address` is relative to the base. On failure there is nothing to free. */
stk_status stki_hdf5_header_read(const stki_hdf5_super *super, uint64_t address, stki_hdf5_header *out, stk_error *err);
void stki_hdf5_header_fini(stki_hdf5_header *header);
/* Returns the only message of a type; NULL: there is none, or there are several, which sets *several. */
const stki_hdf5_message *stki_hdf5_header_find(const stki_hdf5_header *header, int type, bool *several);

enum stki_hdf5_kind { STKI_HDF5_IS_DATASET, STKI_HDF5_IS_GROUP, STKI_HDF5_IS_OTHER };

/* STK_E_UNSUPPORTED: the kind cannot be determined. */
stk_status stki_hdf5_header_kind(const stki_hdf5_super *super, const stki_hdf5_header *header, enum stki_hdf5_kind *out,
                                 stk_error *err);

/* ---- groups: hdf5_links.c ---- */

typedef struct stki_hdf5_link {
    const char *name;
    enum {
        STKI_HDF5_HARD,
        STKI_HDF5_SOFT,
        STKI_HDF5_EXTERN,
        STKI_HDF5_BY_NAME
    } kind;             /* BY_NAME: resolve with the library */
    uint64_t header;    /* hard: address of the object header */
    const char *target; /* soft: path; extern: name of the file */
    const char *path;   /* extern: path in that file */
} stki_hdf5_link;

/* Calls `visit` with each link of a group, sorted by name, or, if `only` is not NULL, only with the link that has this
 * name. `visit` must copy what it needs later. Stops at the first status other than STK_OK and returns it. */
stk_status stki_hdf5_links_visit(const stki_hdf5_super *super, uint64_t group, const char *only,
                                 stk_status (*visit)(void *context, const stki_hdf5_link *link, stk_error *err),
                                 void *context, stk_error *err);

/* ---- links and attributes in a heap, and version 2 B-trees: hdf5_dense.c ---- */

enum { /* types of version 2 B-trees */
       STKI_HDF5_LINKS_BY_NAME = 5,
       STKI_HDF5_ATTRIBUTES_BY_NAME = 8,
       STKI_HDF5_UNFILTERED_CHUNKS = 10,
       STKI_HDF5_FILTERED_CHUNKS = 11
};

/* `object` is valid only during the call. */
typedef stk_status stki_hdf5_object_visit(void *context, stki_hdf5_cursor object, stk_error *err);

/* Calls `visit` with each object of a heap to which the tree of this type refers, or, if `name` is not NULL, only with
 * those whose names have the same hash. Stops at the first status other than STK_OK and returns it. */
stk_status stki_hdf5_dense_visit(const stki_hdf5_super *super, uint64_t heap, uint64_t tree, int type, const char *name,
                                 stki_hdf5_object_visit *visit, void *context, stk_error *err);

/* Calls `visit` with each record of a version 2 B-tree of this type, in order. Stops at the first status other than
 * STK_OK and returns it. */
typedef stk_status stki_hdf5_record_visit(void *context, const unsigned char *record, int bytes, stk_error *err);
stk_status stki_hdf5_tree_visit(const stki_hdf5_super *super, uint64_t tree, int type, stki_hdf5_record_visit *visit,
                                void *context, stk_error *err);

/* ---- data sets: hdf5_describe.c ---- */

typedef struct stki_hdf5_space {
    int rank;
    int64_t shape[STK_MAX_DIMS], largest[STK_MAX_DIMS]; /* largest: -1: unlimited */
} stki_hdf5_space;

/* Decode messages. They return false if the message is not supported or there is no dtype for the values. */
bool stki_hdf5_space_parse(stki_hdf5_cursor data, stki_hdf5_space *out);
bool stki_hdf5_type_parse(stki_hdf5_cursor data, struct stki_hdf5_type *out);

/* A scalar attribute. */
typedef struct stki_hdf5_attribute {
    enum { STKI_HDF5_ABSENT, STKI_HDF5_NUMBER, STKI_HDF5_TEXT } kind;
    double number;
    char text[16]; /* NUL-terminated */
} stki_hdf5_attribute;

/* STK_E_UNSUPPORTED: the attribute exists but is of another kind. */
stk_status stki_hdf5_attribute_find(const stki_hdf5_super *super, uint64_t header, const char *name,
                                    stki_hdf5_attribute *out, stk_error *err);

/* Sets type, shape, layout, grid, pipeline, fill and the data of a compact data set. On failure, *out is unchanged. */
stk_status stki_hdf5_describe(const stki_hdf5_super *super, uint64_t header, struct stki_hdf5_dataset *out,
                              stk_error *err);

#endif
