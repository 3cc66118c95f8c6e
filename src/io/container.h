/* container.h: an open file or folder with named members. Every format is a container: the members of an .npz file are
 * its arrays, those of an HDF5 file its data sets, those of a .beton file its fields, those of a tar file the
 * extensions of its samples, and those of an image folder "image", "label" and "path". An .npy file has one member,
 * whose name is "". `stoker inspect` lists the members; a field of a data set reads one of them. Immutable and
 * thread-safe after open. Reference-counted, because readers retain their container. */
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
    STKI_MEMBER_ARRAY,   /* one array; samples are along one of its axes */
    STKI_MEMBER_RECORDS, /* samples of varying size, such as images or text */
    STKI_MEMBER_OTHER    /* only listed by inspect, such as a number in a .pt file or a text file in a zip archive */
};

typedef struct stki_member {
    char *name; /* owned */
    enum stki_member_kind kind;
    stk_dtype dtype;
    bool swapped;
    int ndim;           /* ARRAY: axes of the array; RECORDS: axes of one sample */
    int64_t *shape;     /* owned, ndim numbers; -1: varying axis of records */
    int64_t *strides;   /* bytes; owned; NULL: not applicable (chunked, compressed, records) */
    int64_t count;      /* RECORDS: number of samples */
    bool inferred;      /* the type was inferred from text, so other files of the field may have names, not numbers */
    const char *layout; /* "contiguous", "fortran", "strided", "chunked", "compact", "external", "virtual", "deflated",
                           "records"; static */
    int64_t offset;     /* offset of the data in the file; -1: not contiguous */
    stk_status status;  /* not STK_OK: the member cannot be read */
    char *why;          /* the message of `status`; owned */
    json_t *details;    /* object with additional information for inspect (chunks, filters, value); owned, or NULL */
    const stki_source_group *const
        *groups;      /* option groups that the member accepts, NULL-terminated; static. NULL: those of its format */
    bool names_files; /* its samples are files, whose members determine the accepted options */
} stki_member;

/* A member whose samples are numbers of named classes. Everything is owned by the container. */
typedef struct stki_class_column {
    const stki_classes *names;
    const int64_t *numbers; /* `count` class numbers, one per sample */
    int64_t count;
} stki_class_column;

enum { STKI_FORMAT_HEAD = 1024 }; /* number of leading bytes that are passed to `matches` of a format */

typedef struct stki_container_ops {
    const char *format; /* "npz" */
    /* Returns the member as an array, which the caller releases with stki_array_release. A compressed member is
     * unpacked into memory (up to source.memory_limit). NULL, or STK_E_UNSUPPORTED: the member is not an array. */
    stk_status (*array)(const stki_container *container, int64_t member, const stki_reader_opts *opts, stki_array *out,
                        stk_error *err);
    /* Returns a reader of the member's samples. NULL: the reader is derived from `array`. */
    stk_status (*reader)(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                         stki_reader **out, stk_error *err);
    /* Returns the class names and numbers of the member's samples. False, or NULL: the samples are not named classes. A
     * member that was rejected because numbers were expected may nevertheless have class names. */
    bool (*classes)(const stki_container *container, int64_t member, stki_class_column *out);
    /* Only if `named` is not 0: stores the name of a sample's file, relative to the container's folder. Returns false
     * if it is too long. */
    bool (*name)(const stki_container *container, int64_t index, char *buffer, int64_t size);
    /* Only if `named` is not 0: reorders the samples, so that order[i] becomes sample i. Called before a reader is
     * created. */
    stk_status (*arrange)(stki_container *container, const int64_t *order, stk_error *err);
    void (*destroy)(stki_container *container); /* frees the format's members and the struct */
} stki_container_ops;

/* The type of stki_container_open, which opens any file or folder. Formats call it through a pointer, because they
 * cannot include format.h. */
typedef stk_status stki_open_fn(const char *path, const struct stki_reader_opts *opts, stki_container **out,
                                stk_error *err);

/* May replace *reader with a wrapper, depending on opts. On failure the reader is destroyed. */
typedef stk_status stki_finish_fn(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                  stki_reader **reader, stk_error *err);

struct stki_container {
    const stki_container_ops *ops;
    const stki_source_group *const *groups; /* option groups that its format accepts; set by stki_container_open */
    stki_open_fn *open;                     /* for members whose samples are files; set by stki_container_open */
    stki_finish_fn *finish;                 /* post-processing of readers, or NULL; set by stki_container_open */
    stki_counter refs;
    char *path; /* owned */
    int64_t member_count;
    stki_member *members; /* owned */
    json_t *details;      /* additional information about the file, for inspect; owned, or NULL */
    int64_t named;   /* number of samples (the same for all members) if every sample is a named file; otherwise 0 */
    bool listed;     /* the samples are ordered by a list; false: sorted by name */
    bool partial;    /* only the member requested by opts->name is listed; the file may have others */
    char **warnings; /* harmless irregularities, such as duplicate names; owned */
    int warning_count;
};

/* For formats: allocates a zeroed object of `bytes` whose first member is the container, and initializes the common
 * part (refs 1, path copied). */
stk_status stki_container_create(int64_t bytes, const stki_container_ops *ops, const char *path, void *out,
                                 stk_error *err);
/* Adds a member, zeroed except for name (copied), shape (copied, may be NULL) and offset -1. */
stk_status stki_container_add(stki_container *container, const char *name, int ndim, const int64_t *shape,
                              stki_member **out, stk_error *err);
stk_status stki_member_set_strides(stki_member *member, const int64_t *strides, stk_error *err);
/* Marks a member as unreadable with the message of `cause`. */
void stki_member_refuse(stki_member *member, const stk_error *cause);
/* Removes all members. */
void stki_container_clear(stki_container *container);
void stki_container_warn(stki_container *container, const char *format, ...) STK_PRINTF(2, 3);
/* Frees the common part and the struct; called at the end of ops->destroy. */
void stki_container_free(stki_container *container);

stki_container *stki_container_retain(const stki_container *container);
void stki_container_release(stki_container *container); /* NULL is allowed */
/* Finds the member opts->name, whose leading slash may be omitted, or, if the name is NULL, the member opts->prefer or
 * the only array or records member. STK_E_NOT_FOUND: there is none. STK_E_CONFIG: there are several. Both messages list
 * the first members. */
stk_status stki_container_find(const stki_container *container, const stki_reader_opts *opts, int64_t *out,
                               stk_error *err);
/* For an unreadable member, these functions fail with the member's error. */
stk_status stki_container_array(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                stki_array *out, stk_error *err);
stk_status stki_container_reader(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                 stki_reader **out, stk_error *err);

#endif
