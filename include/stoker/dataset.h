/* dataset.h: writing data sets. To read them, use a loader (loader.h).
 *
 *     stk_npy_writer *writer;
 *     int64_t shape[3] = {224, 224, 3};
 *     stk_status status = stk_npy_create("images.npy", STK_U8, 3, shape, false, &writer, &err);
 *     if (status == STK_OK) {
 *         … stk_npy_append(writer, rows, count, &err) as often as needed; stop at a failure …
 *         status = stk_npy_commit(writer, &err);
 *     }
 *
 * If a required argument is NULL, STK_E_BAD_ARG is returned. A writer may be used by one thread at a time. The file
 * gets its final name only after everything has been written, synced and checked; until then it is a temporary file in
 * the same folder, which is removed on failure. A failed commit leaves an existing file of that name unchanged, unless
 * the folder cannot be synced after the rename: then the new file, which is complete, is kept, but after a power
 * failure the old one may be there instead.
 */
#ifndef STOKER_DATASET_H
#define STOKER_DATASET_H

#include <stoker/status.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stki_npy_writer stk_npy_writer;

/* Creates a .npy file of rows of this dtype and shape; the array's shape is the number of rows followed by `row_shape`
 * (row_ndim 0: the array is a vector). Commit replaces an existing file of the same name. STK_E_UNSUPPORTED: the dtype
 * is bf16 or an 8-bit float, for which .npy has no name, and `alias` is not set. With `alias`, such rows are stored as
 * ml_dtypes stores them, and the loader reads the file with `source: {dtype: …}`. */
STK_API stk_status stk_npy_create(const char *path, stk_dtype dtype, int row_ndim, const int64_t *row_shape, bool alias,
                                  stk_npy_writer **out, stk_error *err);
/* Appends `count` rows, row-major and little-endian. After a failure, only abort and commit may be called, and commit
 * fails too. */
STK_API stk_status stk_npy_append(stk_npy_writer *writer, const void *rows, int64_t count, stk_error *err);
/* Finishes the file and frees the writer, even on failure. */
STK_API stk_status stk_npy_commit(stk_npy_writer *writer, stk_error *err);
/* Deletes the unfinished file and frees the writer. NULL is allowed. */
STK_API void stk_npy_abort(stk_npy_writer *writer);

/* ---- files of several arrays ----
 *
 *     stk_writer_opts opts = STK_WRITER_OPTS_INIT;
 *     stk_writer *writer;
 *     stk_status status = stk_writer_create("set.npz", NULL, &opts, &writer, &err);
 *     if (status == STK_OK) {
 *         … stk_writer_add(writer, "labels", &labels, &err), or begin, append as often as needed, end …
 *         status = stk_writer_commit(writer, &err);      (or stk_writer_abort(writer) after a failure)
 *     }
 *
 * As above, a writer may be used by one thread at a time, and the file gets its final name when commit succeeds.
 */

typedef struct stki_writer stk_writer;

typedef struct stk_writer_opts {
    uint32_t struct_size; /* set by STK_WRITER_OPTS_INIT */
    int32_t level;        /* npz, HDF5: deflate level, 1 to 9; 0: no compression */
    int64_t chunk_rows;   /* HDF5: rows per chunk; 0: contiguous if not compressed, otherwise chosen automatically */
    int32_t threads;      /* number of threads that compress; 0: one per processor */
    bool alias;           /* npy, npz: store dtypes without a name in the format as raw bytes, as in stk_npy_create */
} stk_writer_opts;

#define STK_WRITER_OPTS_INIT STK_OPTS_INIT(stk_writer_opts)

/* `format`: "npy" (one array), "npz", "pt" (torch.load reads it, even with weights_only=True), "safetensors", "hdf5",
 * "raw" (the values of one array without a header; extension .raw or .bin); NULL: chosen by the extension of `path`.
 * `opts` may be NULL (all defaults). STK_E_UNSUPPORTED: there is no such format, or it does not support the requested
 * compression or chunks. */
STK_API stk_status stk_writer_create(const char *path, const char *format, const stk_writer_opts *opts,
                                     stk_writer **out, stk_error *err);
/* Begins array `name` (UTF-8, unique) of rows of this dtype and shape; the array's shape is the number of rows followed
 * by `row_shape`. row_ndim 0: the array is a vector; -1: a scalar, shape (). rows: the number of rows; -1: as many as
 * are appended. After any failure, including a rejected argument, only abort and commit may be called, and commit fails
 * too.
 */
STK_API stk_status stk_writer_begin(stk_writer *writer, const char *name, stk_dtype dtype, int row_ndim,
                                    const int64_t *row_shape, int64_t rows, stk_error *err);
/* Appends `count` rows, row-major and little-endian. */
STK_API stk_status stk_writer_append(stk_writer *writer, const void *rows, int64_t count, stk_error *err);
/* Ends the array. STK_E_BAD_SHAPE: fewer rows were appended than were declared in stk_writer_begin. */
STK_API stk_status stk_writer_end(stk_writer *writer, stk_error *err);
/* Writes a CPU tensor, with any strides, as one array. STK_E_BAD_DEVICE: the tensor is on another device. */
STK_API stk_status stk_writer_add(stk_writer *writer, const char *name, const stk_tensor *tensor, stk_error *err);
/* Finishes the file and frees the writer, even on failure. */
STK_API stk_status stk_writer_commit(stk_writer *writer, stk_error *err);
/* Deletes the unfinished file and frees the writer. NULL is allowed. */
STK_API void stk_writer_abort(stk_writer *writer);

/* ---- HDF5 ----
 * stoker calls libhdf5 under its own lock. If the program calls libhdf5 itself, and that build of libhdf5 is not
 * thread-safe (H5is_library_threadsafe), the program must hold this lock during its calls while stoker has HDF5 files
 * open. The lock is recursive: the same thread may call stoker while holding it. Do not fork while holding it, because
 * stoker's fork handler acquires it too.
 */
STK_API void stk_hdf5_lock(void);
STK_API void stk_hdf5_unlock(void);

/* ---- .beton ----
 * FFCV record files, which store samples of several fields in pages. The numbers of samples and fields are fixed at
 * creation. The bytes of the file do not depend on the number of threads.
 */

typedef struct stk_beton_writer stk_beton_writer;

typedef enum stk_beton_kind {
    STK_BETON_FLOAT = 0, /* f64 */
    STK_BETON_INT = 1,   /* i64 */
    STK_BETON_IMAGE = 2, /* 8-bit RGB, raw or as JPEG, of any size up to 65535 x 65535 */
    STK_BETON_BYTES = 3,
    STK_BETON_NDARRAY = 4, /* an array of one dtype and shape */
    STK_BETON_JSON = 5,
    STK_BETON_TENSOR = 6 /* stored like NDARRAY; FFCV returns it as a torch tensor */
} stk_beton_kind;

typedef struct stk_beton_field {
    const char *name; /* 1 to 16 ASCII characters, unique */
    stk_beton_kind kind;
    /* For NDARRAY and TENSOR only. The dtype must be one that NumPy has (otherwise STK_E_UNSUPPORTED). */
    stk_dtype dtype;
    int ndim;             /* 1 to 32 */
    const int64_t *shape; /* the last axis must not have length 0, because FFCV would drop that axis */
} stk_beton_field;

/* The value of one field of one sample. */
typedef struct stk_beton_value {
    double real;           /* FLOAT */
    int64_t integer;       /* INT */
    const void *bytes;     /* accessed only during append. IMAGE: height * width * 3 bytes, row by row, or a JPEG file;
                              NDARRAY, TENSOR: row-major, little-endian; JSON: UTF-8 without a NUL; BYTES: any bytes */
    int64_t size;          /* size of `bytes`; 0 for FLOAT and INT */
    int64_t height, width; /* IMAGE: size in pixels */
    bool jpeg;             /* IMAGE: `bytes` is a JPEG file with this height and width */
} stk_beton_value;

typedef struct stk_beton_opts {
    uint32_t struct_size; /* set by STK_BETON_OPTS_INIT */
    uint32_t threads;     /* number of threads that write pages; 0: one per processor; 1: only the caller's thread */
    int64_t page_bytes;   /* a power of two, 2 MiB to 2 GiB; a sample must fit into a page; 0: 8 MiB */
} stk_beton_opts;
#define STK_BETON_OPTS_INIT STK_OPTS_INIT(stk_beton_opts)

/* Creates a .beton file. Names and shapes are copied. `opts` may be NULL (all defaults). */
STK_API stk_status stk_beton_create(const char *path, const stk_beton_field *fields, int field_count,
                                    int64_t sample_count, const stk_beton_opts *opts, stk_beton_writer **out,
                                    stk_error *err);
/* Appends `count` samples, each with a value for every field in order. STK_E_BAD_VALUE: a value has the wrong size or
 * cannot be stored in its field. STK_E_LIMIT: a sample does not fit into a page. STK_E_RANGE: more samples than were
 * declared. After a failure, only abort and commit may be called, and commit fails too. */
STK_API stk_status stk_beton_append(stk_beton_writer *writer, const stk_beton_value *values, int64_t count,
                                    stk_error *err);
/* Finishes the file and frees the writer, even on failure. STK_E_MISMATCH: fewer samples were appended than were
 * declared in stk_beton_create. */
STK_API stk_status stk_beton_commit(stk_beton_writer *writer, stk_error *err);
/* Deletes the unfinished file and frees the writer. NULL is allowed. */
STK_API void stk_beton_abort(stk_beton_writer *writer);

/* ---- tar ----
 * WebDataset archives: the files of one sample are adjacent and share a key. Headers are the same as those of Python's
 * tarfile (ustar, or pax if a name or size requires it). Times and owners are 0, so equal samples give equal bytes.
 */

typedef struct stk_tar_writer stk_tar_writer;

/* One file of a sample, stored as KEY.EXTENSION. */
typedef struct stk_tar_file {
    const char *extension; /* "jpg", "cls", "seg.png": lower case, without the leading dot */
    const void *bytes;     /* accessed only during append */
    int64_t size;          /* size of `bytes` */
} stk_tar_file;

/* Creates a .tar file. */
STK_API stk_status stk_tar_create(const char *path, stk_tar_writer **out, stk_error *err);
/* Appends a sample of one or more files. The key is UTF-8, may contain folders, has no dot after the last slash, and
 * differs from that of the previous sample (STK_E_BAD_ARG). After a failure, only abort and commit may be called, and
 * commit fails too.
 */
STK_API stk_status stk_tar_append(stk_tar_writer *writer, const char *key, const stk_tar_file *files, int file_count,
                                  stk_error *err);
/* Finishes the file and frees the writer, even on failure. */
STK_API stk_status stk_tar_commit(stk_tar_writer *writer, stk_error *err);
/* Deletes the unfinished file and frees the writer. NULL is allowed. */
STK_API void stk_tar_abort(stk_tar_writer *writer);

/* ---- tokens ----
 * Token files in the formats of llm.c, nanoGPT and Megatron, written document by document.
 */

typedef struct stk_tokens_writer stk_tokens_writer;

typedef enum stk_tokens_format {
    STK_TOKENS_LLMC = 0,    /* u16 or u32; at most 2^31 - 1 tokens per file */
    STK_TOKENS_RAW = 1,     /* nanoGPT: only the tokens, of any integer dtype, without a header */
    STK_TOKENS_MEGATRON = 2 /* NAME.bin and NAME.idx; each document is a sequence; no u64; u32 tokens below 2^31 */
} stk_tokens_format;

/* Creates a file of tokens of this dtype. For Megatron, `path` is one of the two files, or their common prefix.
 * STK_E_UNSUPPORTED: the format does not support the dtype. */
STK_API stk_status stk_tokens_create(const char *path, stk_tokens_format format, stk_dtype dtype,
                                     stk_tokens_writer **out, stk_error *err);
/* Appends a document of `count` little-endian tokens; `count` may be 0. After a failure, only abort and commit may be
 * called, and commit fails too. STK_E_LIMIT: more tokens than the format allows, or, in Megatron's format, a u32 token
 * of 2^31 or more. */
STK_API stk_status stk_tokens_append(stk_tokens_writer *writer, const void *tokens, int64_t count, stk_error *err);
/* Finishes the file and frees the writer, even on failure. Megatron's .bin is renamed before the .idx, so if only the
 * second rename fails, an existing .bin has already been replaced. */
STK_API stk_status stk_tokens_commit(stk_tokens_writer *writer, stk_error *err);
/* Deletes the unfinished file and frees the writer. NULL is allowed. */
STK_API void stk_tokens_abort(stk_tokens_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
