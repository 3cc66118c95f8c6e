/* reader.h: one field's file, or one source of samples, as tensor views. Every format implements this table; the
 * datasets above it know nothing else. A reader has one owner; all other calls are safe from any number of threads at
 * once.
 *
 * Errors belong to the record they name: a failed read leaves the reader usable for every other record.
 */
#ifndef STKI_READER_H
#define STKI_READER_H

#include "counter.h"
#include <stdbool.h>
#include <stoker/tensor.h>

typedef struct stki_reader stki_reader;

/* Which part of a sample came, where a reader gave less than the whole of it. */
typedef struct stki_given {
    int64_t scale;     /* 0: the whole sample; else 1, 2, 4 or 8: of the sample scaled by 1 / scale … */
    int64_t top, left; /* … the given part begins at this pixel; its size is the tensor's own */
    int64_t whole_height, whole_width; /* of the whole sample so scaled */
} stki_given;

/* What the plan can use of a sample, so that a reader may do less: the box of the sample it looks at, and the smallest
 * height and width that are enough (a JPEG may be decoded at half size). A reader is free to give more: a larger box,
 * or the whole sample. NULL: everything. */
typedef struct stki_want {
    int ndim;
    int64_t start[STK_MAX_DIMS], length[STK_MAX_DIMS];
    int64_t enough_height, enough_width; /* of the box after scaling; 0: no scaling wanted */
    stki_given *given;                   /* the caller sets it to zeros; a reader that heeds this fills it */
} stki_want;

/* A worker's private memory. Grows by stki_scratch_reserve and is kept from sample to sample, so that nothing is
 * allocated once it is warm. */
typedef struct stki_scratch {
    void *data;
    int64_t capacity;
    struct stki_decoder *decoder; /* of images; made at first use (stki_scratch_decoder in decode.h) */
    void (*destroy_decoder)(struct stki_decoder *decoder);
    struct stki_scratch *second; /* for readers over readers; made at first use */
    uint64_t draw;         /* drawn for the sample that is read next; readers that run code of the user hand it on */
    stki_counter warnings; /* samples that were decoded in spite of warnings; any thread may look */
} stki_scratch;

void stki_scratch_init(stki_scratch *scratch);
void stki_scratch_fini(stki_scratch *scratch);
/* At least `bytes`, 64-byte aligned; the content is lost. */
stk_status stki_scratch_reserve(stki_scratch *scratch, int64_t bytes, stk_error *err);
/* Another scratch, which lives as long. */
stk_status stki_scratch_second(stki_scratch *scratch, stki_scratch **out, stk_error *err);

/* Bytes of a file. */
typedef struct stki_range {
    int64_t offset, bytes;
} stki_range;
enum { STKI_PLACES = 32 };

typedef struct stki_reader_ops {
    const char *format; /* "npy" */
    /* Point `out` at sample `index` (axes of the sample alone, no sample axis). `out` is read-only and valid until
     * `done`; it is a view of the mapping, of `scratch` (one sample at a time), or of a counted block (out->storage
     * holds the reference). STK_E_RANGE: index outside [0, count). */
    stk_status (*read)(const stki_reader *reader, int64_t index, const stki_want *want, stki_scratch *scratch,
                       stk_tensor *out, stk_error *err);
    /* Where a sample lies, with the reader's strides, in a block that several samples share and that *kept (NULL: not
     * needed) keeps alive until it is released. Several may be held at once. STK_AGAIN: not this one, it has to be
     * read. NULL: no sample lies so. */
    stk_status (*pin)(const stki_reader *reader, int64_t index, stki_scratch *scratch, const char **address,
                      stk_storage **kept, stk_error *err);
    /* NULL: stk_tensor_release(out) is enough. */
    void (*done)(const stki_reader *reader, stk_tensor *out);
    /* Variable shapes only: the shape of a sample without reading it. NULL: every sample has the reader's own shape. */
    stk_status (*shape)(const stki_reader *reader, int64_t index, int64_t *shape, stk_error *err);
    /* Samples that are files of their own: the path of one, for messages, in `buffer`. False: longer than that. NULL:
     * they are all of the reader's path. */
    bool (*path)(const stki_reader *reader, int64_t index, char *buffer, int64_t size);
    /* Where a sample stands in a text file, for messages: "line 7, column 2 (class)". NULL: its number says enough. */
    void (*where)(const stki_reader *reader, int64_t index, char *buffer, int size);
    /* These samples will be read soon, in this order. Never blocks for long, never fails. NULL: no use for it. */
    void (*will_need)(const stki_reader *reader, const int64_t *indices, int64_t count);
    /* Samples from `index` up to the returned one (not included) have nothing in the file, as they were never written:
     * they are fill values. `index` itself: this one has. NULL: all have. */
    int64_t (*filled_until)(const stki_reader *reader, int64_t index);
    void (*destroy)(stki_reader *reader);
} stki_reader_ops;

struct stki_reader {
    const stki_reader_ops *ops;
    char *path;    /* for messages; owned */
    int64_t count; /* samples */
    stk_dtype dtype;
    int ndim;                    /* axes of one sample */
    int64_t shape[STK_MAX_DIMS]; /* of one sample; where shapes vary: the largest in each axis */
    bool image;         /* samples are images that the format knows as such: height, width, channels of u8, or of u16 */
    bool indices;       /* of these images: numbers of classes, or of colors in a palette, between which nothing lies */
    const char *ending; /* samples are the bytes of documents: "txt", "json", "bin" is what a file of one is called;
                         * NULL: of arrays */
    bool untyped;       /* it has no samples, and its file does not state what they would be */
    bool lists;         /* of one length here; in other shards they may have another one */
    const char *remedy; /* what to do if another shard has another dtype; NULL: nothing in particular */
    bool variable;      /* shapes differ in axis 0 or more: ops->shape is there */
    bool swapped;       /* samples come in the other byte order (STK_TENSOR_SWAPPED) */
    bool draws;         /* read looks at the scratch's draw */
    bool windows;       /* samples are windows along opts->axis, as opts->window_length asks */
    int64_t longest_group; /* windows: samples of the longest run that they do not leave; 0: not known */
    bool copies;           /* read works: decodes or copies into scratch; a sample is then not cut into parts */
    const char *access;    /* "mmap", "pread", "memory", "none": what is really used */
    const char *note;      /* why it is not what was asked for (a failed mapping), or NULL */
    int64_t max_bytes;     /* of one sample */
    /* The fast path: where base is not NULL, every sample i is base + i * sample_stride with the strides below,
     * readable at any time. */
    const void *base;
    /* The same by units of unit_length samples: sample i is unit_base[i / unit_length] + i % unit_length *
     * sample_stride. NULL, or base is NULL. */
    const void *const *unit_base;
    int64_t sample_stride;
    int64_t strides[STK_MAX_DIMS];   /* of every sample, also without base, where shapes do not vary */
    int64_t held_bytes;              /* of memory, that grow with the number of samples; counted in the byte budget */
    int64_t file_bytes, data_offset; /* of the file; -1: not from one file */
    /* The file behind the samples: where it is mapped, it is asked after they were used whether it still is what was
     * opened (stki_file_intact). NULL: none, or a sample's storage knows it (stki_array_file). */
    const struct stki_file *file;
    /* Of which bytes of `file` a sample is made, at most STKI_PLACES ranges, asked of `placer`; 0: not known. A reader
     * over another one that keeps its numbers keeps these too. NULL: never known. */
    int (*place)(const stki_reader *placer, int64_t index, stki_range *out);
    const stki_reader *placer;
    /* What is best read together (chunks, pages), for `order: block`. unit_first holds unit_count + 1 sample numbers,
     * or is NULL: every unit has unit_length samples, the last one perhaps fewer. unit_length 0: no units. */
    const int64_t *unit_first;
    int64_t unit_count, unit_length;
    /* Runs of samples that windows do not leave (files of one sample each, HDF5 groups): group_count + 1 sample
     * numbers. NULL: all samples are one, or ops->path tells their folders. */
    const int64_t *group_first;
    int64_t group_count;
};

/* Where a sample lies, by the fast path; NULL: there is none. */
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

enum { STKI_RECORD_PATH = 4096 }; /* enough for the path of a sample */

/* The file that a sample is of, for messages; perhaps in `buffer`. */
static inline const char *stki_reader_path(const stki_reader *reader, int64_t index, char buffer[STKI_RECORD_PATH])
{
    return reader->ops->path && reader->ops->path(reader, index, buffer, STKI_RECORD_PATH) ? buffer : reader->path;
}

enum { STKI_READER_WHERE = 160 };
/* Where a sample stands in its file, with a colon behind it, or ""; in `buffer`, which is returned. */
const char *stki_reader_where(const stki_reader *reader, int64_t index, char buffer[STKI_READER_WHERE]);

/* STK_E_RANGE: no sample has that number; what every read and shape begins with. */
stk_status stki_reader_check_index(const stki_reader *reader, int64_t index, stk_error *err);
/* Arrays of one shape: STK_E_LIMIT if they are larger than `max_bytes`, where that is not 0. Where shapes vary, each is
 * checked when it is read. */
stk_status stki_reader_check_size(const stki_reader *reader, int64_t max_bytes, stk_error *err);
void stki_reader_destroy(stki_reader *reader); /* NULL is fine */

/* The files are watched: what has changed since it was opened is refused. UNGUARDED: as AUTO, not watched, and a mapped
 * file that is cut ends the process (see guard.h). UNWATCHED: as PREAD, not watched. */
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

/* What a sample of a text file is. */
enum stki_text_unit { STKI_TEXT_LINES, STKI_TEXT_PARAGRAPHS, STKI_TEXT_WHOLE, STKI_TEXT_DOCUMENTS };

/* How images are decoded. */
typedef struct stki_decode_opts {
    bool none;    /* not at all: samples are the bytes as they stand in the file, u8 of varying length */
    bool gray;    /* one channel instead of RGB */
    bool index;   /* with gray: that channel is the palette's index, or the sample of a gray PNG, as it is stored */
    bool deep;    /* samples of 16 bits as they are stored, u16 */
    bool upright; /* apply the EXIF orientation */
    bool fast;    /* DCT scaling, fast upsampling and fast DCT: other bits than an exact decode */
    bool accept_warnings; /* on_warning: accept */
    int64_t max_bytes;    /* of one decoded image; 0: 1 GiB */
} stki_decode_opts;

/* How a file is opened. Zero is the default of everything; what only some formats take lies in `source`. */
/* For `remedy` of formats whose numbers have no dtype of their own. */
#define STKI_NUMBERS_REMEDY "; source.dtype: float64 reads whole numbers as real ones too"

typedef struct stki_reader_opts {
    enum stki_access access;
    enum stki_pattern pattern; /* the advice given to the system */
    bool by_units;             /* samples are read unit by unit (order: block) */
    bool numbers;              /* the field converts its samples: text that the user may not know of is refused */
    const struct stki_source *source; /* what the config says in `source` (source.h); NULL: nothing */
    bool lenient; /* options in `source` are for another file: those that this one does not take are left alone */
    const struct stki_source_group *withheld; /* files that a table names: the options that were for the table; NULL */
    const char *format;                       /* "npz", "hdf5", …; NULL: by content and name */
    const char *name;      /* the member, dataset or field; NULL: `prefer` if there is one, else the only one */
    const char *prefer;    /* the name of the field of the data set */
    stk_dtype alias_dtype; /* source.dtype: names the type that the file can't (bfloat16 as V2, raw data, tokens);
                              NONE: as the file says */
    int axis;              /* of an array, that the samples lie along */
    /* length > 0: windows along `axis` are the samples, which keep the axis; `stride` elements from one to the next (0:
     * length), `dilation` from one element of a window to the next (0: 1). */
    int64_t window_length, window_stride, window_dilation;
    int64_t max_bytes;   /* of one sample of varying size; 0: the largest in the file */
    int64_t cache_bytes; /* decoded chunks kept for all threads; 0: 64 MiB */
    bool verify;         /* check the sums that the file carries, also where data is mapped */
    bool sums;           /* check every record against FILE.sums (sums.h) */
} stki_reader_opts;

/* Synthetic samples, a pure function of (seed, index), in every form that a real reader can take. */
enum stki_synthetic_form {
    STKI_SYNTHETIC_MEMORY,  /* views of one block made at open: what a mapping looks like, with base set */
    STKI_SYNTHETIC_SCRATCH, /* written into the worker's scratch at each read */
    STKI_SYNTHETIC_BLOCK    /* a counted block a read */
};

typedef struct stki_synthetic_opts {
    int64_t count, seed;
    stk_dtype dtype;
    int ndim;
    int64_t shape[STK_MAX_DIMS];
    enum stki_synthetic_form form;
    int64_t min_length; /* >= 0: axis 0 varies from min_length to shape[0]; -1: fixed */
    int64_t distinct;   /* MEMORY: samples really held (sample i is block i mod distinct); 0: at most 64 MiB. base is
                           set where they are all samples, or one */
    int64_t read_ns;    /* sleep this long in every read: a slow disk */
} stki_synthetic_opts;

#define STKI_SYNTHETIC_OPTS_INIT \
    {                            \
        .min_length = -1         \
    }

stk_status stki_synthetic_open(const stki_synthetic_opts *opts, stki_reader **out, stk_error *err);
/* The value every test can recompute: the bytes of sample `index`, of `length` on axis 0, into `out`. (MEMORY: sample i
 * of the reader is index i mod distinct.) */
void stki_synthetic_fill(const stki_synthetic_opts *opts, int64_t index, int64_t length, void *out);
/* The size of axis 0 of sample `index`: shape[0], or of min_length to shape[0]. 1 for samples without axes. */
int64_t stki_synthetic_length(const stki_synthetic_opts *opts, int64_t index);

#endif
