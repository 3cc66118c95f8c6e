/* reader.h: the interface through which a file of a field, or another source of samples, provides its samples as tensor
 * views. Every format implements stki_reader_ops; data sets use nothing else. A reader has one owner, which destroys
 * it; all other functions are thread-safe.
 *
 * An error affects only one record: after a failed read, the reader can be used for all other records. */
#ifndef STKI_READER_H
#define STKI_READER_H

#include "counter.h"
#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_reader stki_reader;

/* The part of a sample that was read, if it is not the whole sample. */
typedef struct stki_given {
    int64_t scale;     /* 0: the whole sample; otherwise 1, 2, 4 or 8: a part of the sample scaled by 1 / scale */
    int64_t top, left; /* first pixel of the part, whose size is that of the tensor */
    int64_t whole_height, whole_width; /* size of the whole scaled sample */
} stki_given;

/* The part of a sample that is needed, so that a reader can do less work: the box that is used, and its minimum height
 * and width after scaling (a JPEG may be decoded at half size). A reader may return more, such as a larger box or the
 * whole sample. A NULL pointer requests the whole sample. */
typedef struct stki_want {
    int ndim;
    int64_t start[STK_MAX_DIMS], length[STK_MAX_DIMS];
    int64_t enough_height, enough_width; /* minimum size of the box after scaling; 0: no scaling */
    stki_given *given;                   /* zeroed by the caller; set by a reader that returns a part */
} stki_want;

/* A worker's private memory. stki_scratch_reserve grows it, and it is reused for all samples, so that nothing is
 * allocated after warm-up. */
typedef struct stki_scratch {
    void *data;
    int64_t capacity;
    struct stki_decoder *decoder; /* for images; created at first use (stki_scratch_decoder in decode.h) */
    void (*destroy_decoder)(struct stki_decoder *decoder);
    struct stki_scratch *second; /* for readers that wrap readers; created at first use */
    uint64_t draw;               /* random number for the next sample, which readers pass to user code */
    stki_counter warnings;       /* number of samples decoded despite warnings; any thread may read it */
} stki_scratch;

void stki_scratch_init(stki_scratch *scratch);
void stki_scratch_fini(stki_scratch *scratch);
/* Ensures that `data` has at least `bytes` bytes, aligned to 64. Its content is discarded. */
stk_status stki_scratch_reserve(stki_scratch *scratch, int64_t bytes, stk_error *err);
/* Returns a second scratch with the same lifetime. */
stk_status stki_scratch_second(stki_scratch *scratch, stki_scratch **out, stk_error *err);

/* A range of bytes in a file. */
typedef struct stki_range {
    int64_t offset, bytes;
} stki_range;
enum { STKI_PLACES = 32 };

typedef struct stki_reader_ops {
    const char *format; /* "npy" */
    /* Sets `out` to sample `index` (without a sample axis). `out` is read-only and valid until `done`. It is a view of
     * the mapping, of `scratch` (one sample at a time), or of a reference-counted block, to which out->storage holds a
     * reference. STK_E_RANGE: index is outside [0, count). */
    stk_status (*read)(const stki_reader *reader, int64_t index, const stki_want *want, stki_scratch *scratch,
                       stk_tensor *out, stk_error *err);
    /* Returns the address of a sample that has the reader's strides and is in a block shared by several samples. *kept
     * keeps the block alive until it is released; NULL: nothing has to be released. Several blocks may be held at once.
     * STK_AGAIN: this sample must be read with `read`. NULL: not supported. */
    stk_status (*pin)(const stki_reader *reader, int64_t index, stki_scratch *scratch, const char **address,
                      stk_storage **kept, stk_error *err);
    /* Releases a sample. NULL: stk_tensor_release(out) does it. */
    void (*done)(const stki_reader *reader, stk_tensor *out);
    /* Only for variable shapes: returns the shape of a sample without reading it. NULL: every sample has the reader's
     * shape. */
    stk_status (*shape)(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err);
    /* Only for samples that are separate files: stores the path of a sample, for messages, in `buffer`. Returns false
     * if it is too long. NULL: all samples have the reader's path. */
    bool (*path)(const stki_reader *reader, int64_t index, char *buffer, int64_t size);
    /* Stores the location of a sample in a text file, for messages, such as "line 7, column 2 (class)". NULL: the
     * sample number is sufficient. */
    void (*where)(const stki_reader *reader, int64_t index, char *buffer, int size);
    /* Prefetches samples that will be read soon, in this order. Never blocks for long and never fails. NULL: not
     * supported. */
    void (*will_need)(const stki_reader *reader, const int64_t *indices, int64_t count);
    /* Returns the end of a range of samples, starting at `index`, that were never written to the file and are fill
     * values. Returns `index` if this sample was written. NULL: all samples were written. */
    int64_t (*filled_until)(const stki_reader *reader, int64_t index);
    /* Returns the end of a range of samples that all fail as sample `index` did. NULL: each sample has to be read. */
    int64_t (*fails_until)(const stki_reader *reader, int64_t index);
    void (*destroy)(stki_reader *reader);
} stki_reader_ops;

struct stki_reader {
    const stki_reader_ops *ops;
    char *path;    /* path, for messages; owned */
    int64_t count; /* samples */
    stk_dtype dtype;
    int ndim;                    /* axes of one sample */
    int64_t shape[STK_MAX_DIMS]; /* shape of one sample; if variable: the largest size of each axis */
    bool image;                  /* samples are known to be images: height, width, channels of u8 or u16 */
    bool indices;                /* the images contain class or palette numbers, which cannot be interpolated */
    const char *ending;          /* samples are documents with this extension: "txt", "json", "bin"; NULL: arrays */
    bool untyped;                /* there are no samples, and the file does not specify their type */
    bool lists;                  /* samples are lists of equal length, which may differ in other shards */
    const char *remedy;          /* what to do if another shard has a different dtype, for messages; NULL: none */
    bool variable;               /* shapes differ in axis 0 or more; ops->shape is set */
    bool swapped;                /* samples have the opposite byte order (STK_TENSOR_SWAPPED) */
    bool draws;                  /* `read` uses the scratch's `draw` */
    bool windows;                /* samples are windows along opts->axis (opts->window_length) */
    int64_t longest_group;       /* windows: number of samples in the longest group; 0: unknown */
    bool copies;                 /* `read` decodes or copies to scratch, so samples are not divided into parts */
    const char *access;          /* access in effect: "mmap", "pread", "memory", "none" */
    const char *note;            /* a note for the user, such as why the file is not mapped; or NULL */
    int64_t max_bytes;           /* maximum size of one sample */
    /* The fast path: if base is not NULL, every sample i is at base + i * sample_stride with the strides below,
     * readable at any time. */
    const void *base;
    /* The same in units of unit_length samples: sample i is at unit_base[i / unit_length] + i % unit_length *
     * sample_stride. NULL: base is not NULL, or the fast path is not available. */
    const void *const *unit_base;
    int64_t sample_stride;
    int64_t strides[STK_MAX_DIMS]; /* strides of every sample unless shapes vary; valid even if base is NULL */
    int64_t stored_bytes; /* decoded size of the samples that the file contains; the others are fill values. 0: the file
                             contains all samples */
    int64_t held_bytes;   /* memory that grows with the number of samples; part of the byte budget */
    int64_t file_bytes, data_offset; /* size of the file, and offset of its data; -1: not from a single file */
    /* The file of the samples, which is checked for changes after samples were used (stki_file_intact). NULL: there is
     * none, or each sample's storage refers to its own file (stki_array_file). */
    const struct stki_file *file;
    /* Returns the number of ranges of `file` from which a sample is read, at most STKI_PLACES, and stores them in
     * `out`; 0: unknown. Must be called with the member `placer`. A wrapping reader that does not change sample numbers
     * copies these two members. NULL: always unknown. */
    int (*place)(const stki_reader *placer, int64_t index, stki_range *out);
    const stki_reader *placer;
    /* Units that are best read together (chunks, pages), for `order: block`. unit_first has unit_count + 1 sample
     * numbers; NULL: every unit has unit_length samples except possibly the last. unit_length 0: no units. */
    const int64_t *unit_first;
    int64_t unit_count, unit_length;
    /* Groups of samples that windows do not cross (files of one sample each, HDF5 groups): group_count + 1 sample
     * numbers. NULL: all samples form one group, or the folders of ops->path are the groups. */
    const int64_t *group_first;
    int64_t group_count;
};

/* Returns the address of a sample by the fast path; NULL: not available. */
static inline const char *stki_reader_address(const stki_reader *reader, int64_t index)
{
    if (reader->base)
        return (const char *)reader->base + index * reader->sample_stride;
    if (!reader->unit_base)
        return NULL;
    return (const char *)reader->unit_base[index / reader->unit_length] +
           index % reader->unit_length * reader->sample_stride;
}

static inline void stki_reader_done(const stki_reader *reader, stk_tensor *out)
{
    if (reader->ops->done)
        reader->ops->done(reader, out);
    else
        stk_tensor_release(out);
}

/* Returns the shape of one sample. */
static inline stk_status stki_reader_shape(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err)
{
    if (reader->variable)
        return reader->ops->shape(reader, index, shape, err);
    for (int i = 0; i < reader->ndim; i++)
        shape[i] = reader->shape[i];
    return STK_OK;
}

enum { STKI_RECORD_PATH = 4096 }; /* large enough for the path of a sample */

/* Returns the path of a sample's file, for messages, possibly in `buffer`. */
static inline const char *stki_reader_path(const stki_reader *reader, int64_t index, char buffer[STKI_RECORD_PATH])
{
    return reader->ops->path && reader->ops->path(reader, index, buffer, STKI_RECORD_PATH) ? buffer : reader->path;
}

enum { STKI_READER_WHERE = 160 };
/* Stores the location of a sample in its file, followed by a colon, in `buffer` ("" if there is none) and returns
 * `buffer`. */
const char *stki_reader_where(const stki_reader *reader, int64_t index, char buffer[STKI_READER_WHERE]);

/* Every `read` and `shape` must call this first. STK_E_RANGE: there is no such sample. */
stk_status stki_reader_check_index(const stki_reader *reader, int64_t index, stk_error *err);
/* Fails with STK_E_LIMIT if samples of one shape are larger than `max_bytes` (0: unlimited). If shapes vary, each
 * sample is checked when it is read. */
stk_status stki_reader_check_size(const stki_reader *reader, int64_t max_bytes, stk_error *err);
void stki_reader_destroy(stki_reader *reader); /* NULL is allowed */

/* By default, files are watched: reading from a changed file is an error. UNGUARDED: like AUTO, but not watched, and
 * truncation of a mapped file kills the process (see guard.h). UNWATCHED: like PREAD, but not watched. */
enum stki_access {
    STKI_ACCESS_AUTO,
    STKI_ACCESS_MMAP,
    STKI_ACCESS_PREAD,
    STKI_ACCESS_UNGUARDED,
    STKI_ACCESS_UNWATCHED
};
static inline bool stki_access_watches(enum stki_access access)
{
    return access != STKI_ACCESS_UNGUARDED && access != STKI_ACCESS_UNWATCHED;
}
enum stki_pattern { STKI_PATTERN_SEQUENTIAL, STKI_PATTERN_RANDOM };

/* The unit of samples in a text file. */
enum stki_text_unit { STKI_TEXT_LINES, STKI_TEXT_PARAGRAPHS, STKI_TEXT_WHOLE, STKI_TEXT_DOCUMENTS };

/* Options for decoding images. */
typedef struct stki_decode_opts {
    bool none;            /* images are not decoded: samples are the bytes of the file, u8 of varying length */
    bool gray;            /* one channel instead of RGB */
    bool index;           /* with gray: the channel is the stored palette index or gray sample of a PNG */
    bool deep;            /* samples of 16 bits, as stored (u16) */
    bool upright;         /* apply the EXIF orientation */
    bool fast;            /* DCT scaling, fast upsampling and fast DCT: results differ from an exact decode */
    bool accept_warnings; /* on_warning: accept */
    int64_t max_bytes;    /* maximum size of a decoded image; 0: 1 GiB */
} stki_decode_opts;

/* The `remedy` of formats without dtypes. */
#define STKI_NUMBERS_REMEDY "; source.dtype: float64 also reads integers as floats"

/* Options for opening a file. Zero is the default of every option. Options that exist only for some formats are in
 * `source`. */
typedef struct stki_reader_opts {
    enum stki_access access;
    enum stki_pattern pattern; /* the access pattern announced to the kernel */
    bool by_units;             /* samples are read unit by unit (order: block) */
    bool numbers;              /* the field converts its samples, so text is rejected as probably unintended */
    stk_dtype integers; /* the integer dtype (or bool) to which the field casts its samples without arithmetic: numbers
                           in text that it cannot represent are errors. NONE: any number is accepted */
    const struct stki_source *source; /* the config's `source` (source.h); NULL: none */
    bool lenient; /* options in `source` that do not apply are ignored, because they may be meant for other files */
    const struct stki_source_group
        *withheld;         /* for files named by a table: the table's option group, which is ignored; or NULL */
    const char *format;    /* "npz", "hdf5", …; NULL: determined by content and name */
    const char *name;      /* the member, data set or field; NULL: `prefer` if it exists, otherwise the only one */
    const char *prefer;    /* name of the data set's field */
    stk_dtype alias_dtype; /* source.dtype: the type of the data if the file cannot specify it (bfloat16 as V2, raw
                              data, tokens); NONE: as in the file */
    int axis;              /* axis of the array along which samples are counted */
    /* window_length > 0: samples are windows along `axis`, and keep that axis. window_stride: number of elements from
     * one window to the next (0: window_length). window_dilation: distance between elements of a window (0: 1). */
    int64_t window_length, window_stride, window_dilation;
    int64_t max_bytes;   /* maximum size of samples of varying size; 0: that of the largest in the file */
    int64_t cache_bytes; /* size of the cache of decoded chunks; 0: 64 MiB */
    bool verify;         /* check the file's own checksums, even if data is mapped */
    bool sums;           /* check every record against FILE.sums (sums.h) */
    /* Used only while a container is opened. `like`: an open container of the same file, whose index can be shared, or
     * NULL. `together`: the options of all fields that read the same files, so that a format can scan each file once
     * for all of them. */
    const struct stki_container *like;
    const struct stki_reader_opts *together;
    int together_count;
} stki_reader_opts;

/* Options of synthetic samples, which are a pure function of (seed, index). The form states how the reader returns
 * them. */
enum stki_synthetic_form {
    STKI_SYNTHETIC_MEMORY,  /* views of one block created at open, like a mapping, with base set */
    STKI_SYNTHETIC_SCRATCH, /* written to the worker's scratch by each read */
    STKI_SYNTHETIC_BLOCK    /* a new block per read */
};

typedef struct stki_synthetic_opts {
    int64_t count, seed;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    enum stki_synthetic_form form;
    int64_t min_length; /* >= 0: axis 0 varies from min_length to shape[0]; -1: fixed */
    int64_t distinct; /* MEMORY: number of distinct samples (sample i is block i mod distinct); 0: up to 64 MiB. base is
                         set if this is 1 or the number of samples */
    int64_t read_ns;  /* duration of a sleep in every read, to simulate a slow disk */
} stki_synthetic_opts;

#define STKI_SYNTHETIC_OPTS_INIT \
    {                            \
        .min_length = -1         \
    }

stk_status stki_synthetic_open(const stki_synthetic_opts *opts, stki_reader **out, stk_error *err);
/* Computes the bytes of sample `index`, with `length` on axis 0, so that tests can compare them. With MEMORY, sample i
 * of the reader has index i mod distinct. */
void stki_synthetic_fill(const stki_synthetic_opts *opts, int64_t index, int64_t length, void *out);
/* Returns the size of axis 0 of sample `index`: shape[0], or between min_length and shape[0]. Returns 1 for samples
 * without axes. */
int64_t stki_synthetic_length(const stki_synthetic_opts *opts, int64_t index);

#endif
