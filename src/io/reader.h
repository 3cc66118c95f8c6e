/* reader.h: a file of a field, or another source of samples, as tensor views. Every format implements this table; data
 * sets only use the table. A reader has one owner, which destroys it; all other functions are thread-safe.
 *
 * Errors concern only one record: after a failed read, the reader can be used for all other records. */
#ifndef STKI_READER_H
#define STKI_READER_H

#include "counter.h"
#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_reader stki_reader;

/* The part of a sample that was read, if not the whole. */
typedef struct stki_given {
    int64_t scale;     /* 0: the whole sample; otherwise 1, 2, 4 or 8: a part of the sample scaled by 1 / scale */
    int64_t top, left; /* first pixel of the part, whose size is that of the tensor */
    int64_t whole_height, whole_width; /* size of the whole scaled sample */
} stki_given;

/* The part of a sample that is needed, so that a reader can do less work: the box that is used, and the smallest height
 * and width that are enough (a JPEG may be decoded at half size). A reader may return more: a larger box, or the whole
 * sample. NULL: everything. */
typedef struct stki_want {
    int ndim;
    int64_t start[STK_MAX_DIMS], length[STK_MAX_DIMS];
    int64_t enough_height, enough_width; /* size of the box after scaling; 0: no scaling */
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
    uint64_t draw;               /* random draw for the next sample, which readers that run user code pass to it */
    stki_counter warnings;       /* samples decoded despite warnings; any thread may read it */
} stki_scratch;

void stki_scratch_init(stki_scratch *scratch);
void stki_scratch_fini(stki_scratch *scratch);
/* Makes `data` at least `bytes` long, aligned to 64; the content is discarded. */
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
    /* Sets `out` to sample `index` (without a sample axis). `out` is read-only and valid until `done`; it is a view of
     * the mapping, of `scratch` (one sample at a time), or of a reference-counted block (out->storage has the
     * reference). STK_E_RANGE: index outside [0, count). */
    stk_status (*read)(const stki_reader *reader, int64_t index, const stki_want *want, stki_scratch *scratch,
                       stk_tensor *out, stk_error *err);
    /* Returns the address of a sample, with the reader's strides, in a block shared by several samples, which *kept
     * (NULL: not needed) keeps alive until it is released. Several may be held at once. STK_AGAIN: this sample must be
     * read. NULL: not supported. */
    stk_status (*pin)(const stki_reader *reader, int64_t index, stki_scratch *scratch, const char **address,
                      stk_storage **kept, stk_error *err);
    /* Releases a sample. NULL: stk_tensor_release(out) does it. */
    void (*done)(const stki_reader *reader, stk_tensor *out);
    /* Variable shapes only: the shape of a sample without reading it. NULL: every sample has the reader's shape. */
    stk_status (*shape)(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err);
    /* For samples that are separate files: the path of one, for messages, in `buffer`. False: too long. NULL: all have
     * the reader's path. */
    bool (*path)(const stki_reader *reader, int64_t index, char *buffer, int64_t size);
    /* The location of a sample in a text file, for messages: "line 7, column 2 (class)". NULL: the number is
     * sufficient. */
    void (*where)(const stki_reader *reader, int64_t index, char *buffer, int size);
    /* Announces samples that will be read soon, in this order. Never blocks for long, never fails. NULL: not used. */
    void (*will_need)(const stki_reader *reader, const int64_t *indices, int64_t count);
    /* Samples [index, result) were never written to the file and are fill values. Returns `index` if this one was
     * written. NULL: all were written. */
    int64_t (*filled_until)(const stki_reader *reader, int64_t index);
    /* Samples [index, result) all fail as `index` did. NULL: each has to be read. */
    int64_t (*fails_until)(const stki_reader *reader, int64_t index);
    void (*destroy)(stki_reader *reader);
} stki_reader_ops;

struct stki_reader {
    const stki_reader_ops *ops;
    char *path;    /* path, for messages; owned */
    int64_t count; /* samples */
    stk_dtype dtype;
    int ndim;                    /* axes of one sample */
    int64_t shape[STK_MAX_DIMS]; /* of one sample; variable: the largest size of each axis */
    bool image;                  /* samples are known to be images: height, width, channels of u8 or u16 */
    bool indices;                /* the images contain class or palette numbers, which cannot be interpolated */
    const char *ending;          /* samples are documents with this extension: "txt", "json", "bin"; NULL: arrays */
    bool untyped;                /* there are no samples, and the file does not specify their type */
    bool lists;                  /* samples are lists, all of one length here but possibly of another in other shards */
    const char *remedy;          /* advice if another shard has another dtype; NULL: none */
    bool variable;               /* shapes differ in axis 0 or more; ops->shape is set */
    bool swapped;                /* samples have the opposite byte order (STK_TENSOR_SWAPPED) */
    bool draws;                  /* read uses the scratch's draw */
    bool windows;                /* samples are windows along opts->axis (opts->window_length) */
    int64_t longest_group;       /* windows: samples of the longest group; 0: unknown */
    bool copies;                 /* read decodes or copies to scratch, so samples are not divided into parts */
    const char *access;          /* access in effect: "mmap", "pread", "memory", "none" */
    const char *note;            /* a note for the user, such as why the file is not mapped; or NULL */
    int64_t max_bytes;           /* of one sample */
    /* The fast path: if base is not NULL, every sample i is at base + i * sample_stride with the strides below,
     * readable at any time. */
    const void *base;
    /* The same by units of unit_length samples: sample i is at unit_base[i / unit_length] + i % unit_length *
     * sample_stride. NULL if base is not NULL, or not available. */
    const void *const *unit_base;
    int64_t sample_stride;
    int64_t strides[STK_MAX_DIMS]; /* of every sample unless shapes vary, even without base */
    int64_t stored_bytes; /* decoded size of the samples that the file contains; the others are fill values. 0: it
                             contains all */
    int64_t held_bytes;   /* memory that grows with the number of samples; counted in the byte budget */
    int64_t file_bytes, data_offset; /* size of the file, and where its data starts; -1: not from one file */
    /* The file of the samples: checked for changes after samples were used (stki_file_intact). NULL: none, or each
     * sample's storage refers to its file (stki_array_file). */
    const struct stki_file *file;
    /* The ranges of `file` from which a sample is made, at most STKI_PLACES; called with `placer`; 0: unknown. A
     * wrapping reader that does not change sample numbers copies these two members. NULL: always unknown. */
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

/* The address of a sample by the fast path; NULL: not available. */
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

/* The shape of one sample. */
static inline stk_status stki_reader_shape(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err)
{
    if (reader->variable)
        return reader->ops->shape(reader, index, shape, err);
    for (int i = 0; i < reader->ndim; i++)
        shape[i] = reader->shape[i];
    return STK_OK;
}

enum { STKI_RECORD_PATH = 4096 }; /* large enough for the path of a sample */

/* The file of a sample, for messages; possibly in `buffer`. */
static inline const char *stki_reader_path(const stki_reader *reader, int64_t index, char buffer[STKI_RECORD_PATH])
{
    return reader->ops->path && reader->ops->path(reader, index, buffer, STKI_RECORD_PATH) ? buffer : reader->path;
}

enum { STKI_READER_WHERE = 160 };
/* The location of a sample in its file, followed by a colon, or ""; in `buffer`, which is returned. */
const char *stki_reader_where(const stki_reader *reader, int64_t index, char buffer[STKI_READER_WHERE]);

/* STK_E_RANGE: no such sample. Called first by every read and shape. */
stk_status stki_reader_check_index(const stki_reader *reader, int64_t index, stk_error *err);
/* For samples of one shape: STK_E_LIMIT if they are larger than `max_bytes` (0: unlimited). If shapes vary, each is
 * checked when it is read. */
stk_status stki_reader_check_size(const stki_reader *reader, int64_t max_bytes, stk_error *err);
void stki_reader_destroy(stki_reader *reader); /* NULL is allowed */

/* By default files are watched: reading from a changed file is an error. UNGUARDED: like AUTO, but not watched, and
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
    bool deep;            /* stored samples of 16 bits, u16 */
    bool upright;         /* apply the EXIF orientation */
    bool fast;            /* DCT scaling, fast upsampling and fast DCT: results differ from an exact decode */
    bool accept_warnings; /* on_warning: accept */
    int64_t max_bytes;    /* limit of a decoded image; 0: 1 GiB */
} stki_decode_opts;

/* `remedy` of formats without dtypes. */
#define STKI_NUMBERS_REMEDY "; source.dtype: float64 also reads integers as floats"

/* Options for opening a file. Zero is the default everywhere; options of only some formats are in `source`. */
typedef struct stki_reader_opts {
    enum stki_access access;
    enum stki_pattern pattern; /* the advice given to the kernel */
    bool by_units;             /* samples are read unit by unit (order: block) */
    bool numbers;              /* the field converts its samples, so text is rejected, because it may be unintended */
    const struct stki_source *source; /* the config's `source` (source.h); NULL: none */
    bool lenient; /* options in `source` may be meant for other files: those that do not apply are ignored */
    const struct stki_source_group
        *withheld;         /* for files named by a table: the table's option group, which is ignored; or NULL */
    const char *format;    /* "npz", "hdf5", …; NULL: by content and name */
    const char *name;      /* the member, data set or field; NULL: `prefer` if it exists, otherwise the only one */
    const char *prefer;    /* the name of the field of the data set */
    stk_dtype alias_dtype; /* source.dtype: the type of the data if the file cannot name it (bfloat16 as V2, raw data,
                              tokens); NONE: as in the file */
    int axis;              /* axis of an array along which samples are counted */
    /* length > 0: samples are windows along `axis`, and keep the axis; `stride`: elements from one window to the next
     * (0: length); `dilation`: distance of the elements of a window (0: 1). */
    int64_t window_length, window_stride, window_dilation;
    int64_t max_bytes;   /* limit of samples of varying size; 0: the largest in the file */
    int64_t cache_bytes; /* decoded chunks kept for all threads; 0: 64 MiB */
    bool verify;         /* check the file's own checksums, even if data is mapped */
    bool sums;           /* check every record against FILE.sums (sums.h) */
    /* Only while a container is opened. `like`: an open container of the same file, whose index can be shared, or NULL.
     * `together`: the options of all fields that read the same files, so that a format can scan a file once for all of
     * them. */
    const struct stki_container *like;
    const struct stki_reader_opts *together;
    int together_count;
} stki_reader_opts;

/* Options of synthetic samples, which are a pure function of (seed, index). The form is how the reader returns them. */
enum stki_synthetic_form {
    STKI_SYNTHETIC_MEMORY,  /* views of one block created at open, like a mapping, with base set */
    STKI_SYNTHETIC_SCRATCH, /* written to the worker's scratch at each read */
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
                         set if they are all samples, or one */
    int64_t read_ns;  /* duration of a sleep in every read, to simulate a slow disk */
} stki_synthetic_opts;

#define STKI_SYNTHETIC_OPTS_INIT \
    {                            \
        .min_length = -1         \
    }

stk_status stki_synthetic_open(const stki_synthetic_opts *opts, stki_reader **out, stk_error *err);
/* Computes the bytes of sample `index`, with `length` on axis 0, so that tests can compare them. (MEMORY: sample i of
 * the reader has index i mod distinct.) */
void stki_synthetic_fill(const stki_synthetic_opts *opts, int64_t index, int64_t length, void *out);
/* The size of axis 0 of sample `index`: shape[0], or between min_length and shape[0]. 1 for samples without axes. */
int64_t stki_synthetic_length(const stki_synthetic_opts *opts, int64_t index);

#endif
