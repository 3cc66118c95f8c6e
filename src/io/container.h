/* container.h: an open file (or folder) with named members. Every format is a container: an .npy has one member "", an
 * .npz its arrays, an HDF5 file its datasets, a .beton its fields, a tar the extensions of its samples, an image folder
 * "image", "label" and "path". `stoker inspect` lists members, a field of a data set is one of them. Read-only and safe
 * from any thread after open; counted, since readers keep the container they came from.
 */
#ifndef STKI_CONTAINER_H
#define STKI_CONTAINER_H

#include "array.h"
#include "classes.h"
#include "counter.h"
#include "reader.h"
#include "source.h"
#include <jansson.h>

typedef struct stki_container stki_container;

enum stki_member_kind {
    STKI_MEMBER_ARRAY,   /* one array; samples lie along one of its axes */
    STKI_MEMBER_RECORDS, /* samples of their own sizes: images, texts */
    STKI_MEMBER_OTHER    /* shown by inspect and nothing else: a number in a .pt, a text member of a zip */
};

typedef struct stki_member {
    char *name; /* owned */
    enum stki_member_kind kind;
    stk_dtype dtype;
    bool swapped;
    int ndim;           /* ARRAY: of the array; RECORDS: of one sample */
    int64_t *shape;     /* owned, ndim numbers; varying axes of records: -1 */
    int64_t *strides;   /* bytes; owned; NULL where there are none to speak of (chunked, compressed, records) */
    int64_t count;      /* RECORDS: samples */
    bool inferred;      /* numbers, since every text here is one; in another file they could be names */
    const char *layout; /* "contiguous", "fortran", "strided", "chunked", "compact", "external", "virtual", "deflated",
                           "records"; static */
    int64_t offset;     /* of the data in the file; -1: not in one place */
    stk_status status;  /* not STK_OK: it cannot be read */
    char *why;          /* the message of `status`; owned */
    json_t *details;    /* an object with what else inspect shows (chunks, filters, value); owned, or NULL */
    const stki_source_group *const *groups; /* of options, that it takes, ended by NULL; static. NULL: its format's */
    bool names_files; /* its samples are files, whose own members say which options of formats they take */
} stki_member;

/* A member whose samples are numbers of named classes. It belongs to the container. */
typedef struct stki_class_column {
    const stki_classes *names;
    const int64_t *numbers; /* count of them */
    int64_t count;
} stki_class_column;

enum { STKI_FORMAT_HEAD = 1024 }; /* bytes of a file's beginning that a format may look at */

typedef struct stki_container_ops {
    const char *format; /* "npz" */
    /* The member as an array; a compressed one is unpacked into memory (under opts->memory_limit). The caller releases
     * what it gets by stki_array_release. NULL, or STK_E_UNSUPPORTED: it has none. */
    stk_status (*array)(const stki_container *container, int64_t member, const stki_reader_opts *opts, stki_array *out,
                        stk_error *err);
    /* The member's samples. NULL: made of `array`. */
    stk_status (*reader)(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                         stki_reader **out, stk_error *err);
    /* False, or NULL: the member's samples are no classes that have names here. A member may have names and be refused
     * as an array of numbers: then numbers were expected of it. */
    bool (*classes)(const stki_container *container, int64_t member, stki_class_column *out);
    /* Where `named` is not 0: the name of a sample's file, relative to the container's own folder. False: longer. */
    bool (*name)(const stki_container *container, int64_t index, char *buffer, int64_t size);
    /* The same: puts the samples in another order: order[i] is what becomes sample i. Before a reader is made. */
    stk_status (*arrange)(stki_container *container, const int64_t *order, stk_error *err);
    void (*destroy)(stki_container *container); /* what is behind the struct's own; frees the struct */
} stki_container_ops;

/* Opens any file or folder: stki_container_open of format.h, which lies above the formats. */
typedef stk_status stki_open_fn(const char *path, const struct stki_reader_opts *opts, stki_container **out,
                                stk_error *err);

/* May replace *reader by one over it, as opts ask. Destroys it on failure. */
typedef stk_status stki_finish_fn(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                  stki_reader **reader, stk_error *err);

struct stki_container {
    const stki_container_ops *ops;
    const stki_source_group *const *groups; /* of options, that its format takes; set by stki_container_open */
    stki_open_fn *open;                     /* for members whose samples are files; set by the same */
    stki_finish_fn *finish;                 /* what happens to readers before they are used, or NULL; set by the same */
    stki_counter refs;
    char *path; /* owned */
    int64_t member_count;
    stki_member *members; /* owned */
    json_t *details;      /* of the file, for inspect; owned, or NULL */
    int64_t named;        /* samples, the same of all members, that are files with names of their own; 0: none */
    bool listed;          /* a list says in which order they come; else they are sorted by name */
    bool partial;         /* has the member that opts->name asked for and no other, though the file may */
    char **warnings;      /* what is odd but harmless: two members of one name; owned */
    int warning_count;
};

/* For the formats: sets the common part up (refs 1, path copied) inside an object of `bytes` whose first member is the
 * container, zeroed. */
stk_status stki_container_create(int64_t bytes, const stki_container_ops *ops, const char *path, void *out,
                                 stk_error *err);
/* One more member, zeroed but for name (copied), shape (copied, may be NULL) and offset -1. */
stk_status stki_container_add(stki_container *container, const char *name, int ndim, const int64_t *shape,
                              stki_member **out, stk_error *err);
stk_status stki_member_set_strides(stki_member *member, const int64_t *strides, stk_error *err);
/* Marks a member as not readable, with the message of `cause`. */
void stki_member_refuse(stki_member *member, const stk_error *cause);
/* Takes all members away again. */
void stki_container_clear(stki_container *container);
void stki_container_warn(stki_container *container, const char *format, ...) STK_PRINTF(2, 3);
/* Frees the common part and the struct; what ops->destroy ends with. */
void stki_container_free(stki_container *container);

stki_container *stki_container_retain(const stki_container *container);
void stki_container_release(stki_container *container); /* NULL is fine */
/* STK_E_NOT_FOUND names members that are near or all there are. A slash before a member's name may be left out. name
 * NULL: opts->prefer, else the only readable one. */
stk_status stki_container_find(const stki_container *container, const stki_reader_opts *opts, int64_t *out,
                               stk_error *err);
/* Refuses a member that cannot be read with its own message. */
stk_status stki_container_array(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                stki_array *out, stk_error *err);
stk_status stki_container_reader(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                 stki_reader **out, stk_error *err);

#endif
