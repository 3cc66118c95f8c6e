/* loader.h: the data loader. A loader reads the samples of a data set in a defined order, converts them in one pass
 * into batch tensors, and prefetches the next batches.
 *
 *     stk_loader *loader;
 *     stk_batch *batch;
 *     stk_error err;
 *     stk_status status = stk_loader_open_file("digits.yaml", NULL, 0, &loader, &err);
 *     while (status == STK_OK && (status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
 *         stk_tensor images;
 *         stk_batch_tensor(batch, "image", &images, NULL);
 *         … train on images.data …
 *         stk_batch_release(batch);
 *     }
 *     if (status != STK_END) fprintf(stderr, "%s\n", err.message);
 *     stk_loader_destroy(loader);
 *
 * If the option `device` names a device, the tensors of a batch are copied to its memory in advance; indices and mask
 * are in ordinary memory. stk_loader_next_on does not block until the copy is done; instead, work queued in the stream
 * after the call runs after the copy. After stk_batch_release_on, the slot is refilled only when the stream has
 * executed the work that was queued in it before (docs/guides/gpu.md).
 *
 *     while ((status = stk_loader_next_on(loader, stream, 60 * 1000000000LL, &batch, &err)) == STK_OK) {
 *         … queue the training step in `stream` …
 *         stk_batch_release_on(batch, stream);
 *     }
 *
 * Threads: stk_loader_next may be called by one thread at a time. stk_batch_release and all queries may be called from
 * any thread. Close and destroy may not run concurrently with another call on the same loader. Batches are a pure
 * function of data, options and seed: the bytes are the same for any number of workers.
 *
 * Fork: in a child process, calls on a loader of the parent fail with STK_E_FORKED (except queries of properties that
 * were fixed when it was opened), and stk_loader_destroy only frees the handle.
 *
 * Do not truncate or modify files while a loader has them open.
 *
 * Mapped files and SIGBUS (sigbus_guard, on by default): reading a page of a mapped file that was truncated raises
 * SIGBUS. The first loader (or reader) that maps a file installs a handler for the whole process, once. It handles
 * addresses in stoker's own mappings and calls the previous handler for all others. Records read from a file that was
 * truncated, modified or replaced fail with STK_E_TRUNCATED or STK_E_CORRUPT instead of being delivered. Handlers that
 * the program installs later should call the previous handler for addresses that are not their own, and threads that
 * call stk_loader_next with STK_WORKERS_INLINE must not block SIGBUS. Tensors that are views of a mapping and are read
 * outside of the loader are not checked: after a truncation they may read as zeros. With STK_ACCESS_PREAD nothing is
 * mapped, but files are still checked for changes. With STK_GUARD_OFF no handler is installed and nothing is checked.
 */
#ifndef STOKER_LOADER_H
#define STOKER_LOADER_H

#include <stoker/device.h>
#include <stoker/status.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stk_loader stk_loader;
typedef struct stk_batch stk_batch;
struct DLManagedTensor; /* from <dlpack/dlpack.h>, version 0.6 */

#define STK_WORKERS_AUTO 0      /* one per available processor; the ranks of a machine share its processors */
#define STK_WORKERS_INLINE (-1) /* no threads: stk_loader_next does the work in the calling thread */
#define STK_EPOCHS_ENDLESS (-1)
#define STK_TIMEOUT_INFINITE (-1)
#define STK_NO_ERRORS (-1) /* max_errors, max_error_fraction: no sample may fail (in a config: 0) */

/* The orders are defined in docs/internals/order.md. */
typedef enum stk_order {
    STK_ORDER_SEQUENTIAL = 0,
    STK_ORDER_RANDOM = 1,
    STK_ORDER_BLOCK = 2,
    STK_ORDER_WEIGHTED = 3
} stk_order;
/* STK_ORDER_BLOCK: whether the samples of `block_window` blocks are shuffled together, or only the blocks. */
typedef enum stk_block_rows { STK_BLOCK_ROWS_SHUFFLED = 0, STK_BLOCK_ROWS_IN_ORDER = 1 } stk_block_rows;
/* When an epoch over several data sets ends: before the first of them would repeat, or when all have been used up. */
typedef enum stk_mixture_stop { STK_STOP_FIRST_EXHAUSTED = 0, STK_STOP_ALL_EXHAUSTED = 1 } stk_mixture_stop;
typedef enum stk_last_batch {
    STK_LAST_BATCH_PARTIAL = 0,
    STK_LAST_BATCH_DROP = 1,
    STK_LAST_BATCH_PAD = 2
} stk_last_batch;
typedef enum stk_access { STK_ACCESS_AUTO = 0, STK_ACCESS_MMAP = 1, STK_ACCESS_PREAD = 2 } stk_access;
typedef enum stk_pin { STK_PIN_AUTO = 0, STK_PIN_TRUE = 1, STK_PIN_FALSE = 2 } stk_pin;
typedef enum stk_helps { STK_HELPS_AUTO = 0, STK_HELPS_TRUE = 1, STK_HELPS_FALSE = 2 } stk_helps;
typedef enum stk_convert_by { STK_CONVERT_AUTO = 0, STK_CONVERT_HOST = 1, STK_CONVERT_DEVICE = 2 } stk_convert_by;
typedef enum stk_guard { STK_GUARD_ON = 0, STK_GUARD_OFF = 1 } stk_guard;
typedef enum stk_resume { STK_RESUME_STRICT = 0, STK_RESUME_FORCE = 1 } stk_resume;
typedef enum stk_on_error { STK_ON_ERROR_FAIL = 0, STK_ON_ERROR_SKIP = 1, STK_ON_ERROR_SUBSTITUTE = 2 } stk_on_error;
typedef enum stk_digest { STK_DIGEST_NONE = 0, STK_DIGEST_ORDER = 1, STK_DIGEST_BYTES = 2 } stk_digest;
typedef enum stk_launcher { STK_LAUNCHER_AUTO = 0, STK_LAUNCHER_NONE = 1 } stk_launcher; /* docs/reference/ranks.md */
typedef enum stk_stores { STK_STORES_AUTO = 0, STK_STORES_CACHED = 1, STK_STORES_STREAMING = 2 } stk_stores;

/* ---- custom transforms ----
 *
 * A custom transform is a function of the program that maps a sample to a sample. A config names it as the first step
 * in a field's list of transforms: `transforms: [{call: NAME}, …]`. The following steps process its result as if it
 * were in the file (with the layout source.layout).
 *
 * Threads: any number of workers call `run` concurrently, each for a different sample. `context` must stay valid while
 * a loader that uses the transform is open, and `run` must synchronize access to it. `run` must be a pure function of
 * its input and of `random`, otherwise batches depend on the number of workers. It is called for every sample, so it
 * should not allocate memory. It must not call functions of the loader that calls it.
 */
typedef struct stk_transform_call {
    uint32_t struct_size; /* set by the library */
    int64_t sample;       /* index of the sample in its file */
    uint64_t random; /* a function of seed, epoch and position, for seeding a generator; the same for every field */
} stk_transform_call;

typedef struct stk_transform {
    uint32_t struct_size; /* set by STK_TRANSFORM_INIT */
    uint32_t unused;
    const char *name; /* 1 to 63 bytes; copied */
    /* Called once when a loader is opened. `in` has the dtype and shape of the samples (the largest shape, if they
     * vary) and no data. Set dtype, ndim and shape of `out`, which is initialized to `in`. If it returns anything other
     * than STK_OK, opening the loader fails with the error's message. NULL: `run` changes neither dtype nor shape. */
    stk_status (*shape)(void *context, const stk_tensor *in, stk_tensor *out, stk_error *err);
    /* Called for each sample. `in`: the sample, read-only, with any strides, possibly in the opposite byte order
     * (STK_TENSOR_SWAPPED). `out`: row-major memory of the declared shape, 64-byte aligned, uninitialized: write all of
     * it and nothing else. Both are valid only during the call. Any status other than STK_OK is an error in that
     * sample, reported with file, record and the error's message. A status that describes the run (STK_E_TIMEOUT,
     * _BUSY, _CLOSED, _FORKED, _CONFIG, _BAD_ARG, _EMPTY, _CANCELLED, any positive or unknown one) is reported as
     * STK_E_BAD_VALUE and named in the message. STK_E_MEMORY always ends the run. */
    stk_status (*run)(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                      stk_error *err);
    void *context;
} stk_transform;
#define STK_TRANSFORM_INIT STK_OPTS_INIT(stk_transform)

/* Registers the transform under its name in this process, for loaders opened later. A transform registered before under
 * the same name is replaced. Any thread. STK_E_LIMIT: 64 transforms are registered. */
STK_API stk_status stk_transform_register(const stk_transform *transform, stk_error *err);

/* One named field. Strings are copied. Members "in the config language" hold the text of a config value; an empty
 * string is the same as NULL. */
typedef struct stk_field_opts {
    uint32_t struct_size; /* set by STK_FIELD_OPTS_INIT */
    uint32_t path_count;
    const char *name;
    const char *const *paths; /* the shards of the field, one or more files, in this order */
    const char *synthetic;  /* instead of paths: a synthetic source, in the config language, "{count: 1000, shape: [8],
                               dtype: u8}" */
    stk_dtype source_dtype; /* dtype in the file, if its format has no name for it (bfloat16 in .npy); NONE: the one
                               that the file states */
    stk_dtype dtype;        /* dtype of the batch; NONE: the one that the transforms produce */
    const char *source_layout; /* layout of a sample in the file: "chw", "hwc" ("nchw", "nhwc" mean the same); NULL:
                                  "hwc" for image files, otherwise not an image */
    const char *layout;     /* layout of the batch: "nchw", "nhwc", "channels_last" (NCHW shape over NHWC memory); NULL:
                               the layout of the samples */
    const char *transforms; /* in the config language, "[{normalize: imagenet}]"; NULL: none */
    const char *source;     /* other keys of `source`, in the config language, "{name: image, format: hdf5}"; NULL: none
                             */
    const char *pad;    /* in the config language, "batch", "128", "{to: 128, value: -1, truncate: true}"; NULL: none */
    const char *views;  /* in the config language, "{inputs: [0, -1], targets: [1, null]}"; NULL: none */
    const char *ragged; /* "true", "{max_bytes: 8MiB}": the images of a batch may have different shapes; NULL: they have
                           the same shape */
} stk_field_opts;
#define STK_FIELD_OPTS_INIT STK_OPTS_INIT(stk_field_opts)

/* One of several data sets that are mixed. Strings and lists are copied. */
typedef struct stk_dataset_opts {
    uint32_t struct_size; /* set by STK_DATASET_OPTS_INIT */
    uint32_t field_count;
    const stk_field_opts *fields; /* field names must be the same in every data set; dtype, layout and transforms are
                                     taken from the first data set, and the others must omit or repeat them */
    const char *name;             /* name of the data set; NULL: its number */
    double weight;                /* share of an epoch, relative to the other weights; 0: the data set is not used */
    const int64_t *indices;       /* a subset of its samples; NULL: all */
    int64_t index_count;
    const char *manifest, *pair; /* see stk_loader_opts */
} stk_dataset_opts;
#define STK_DATASET_OPTS_INIT STK_OPTS_INIT(stk_dataset_opts)

/* Members that are 0 or NULL take their default values. Strings are as in stk_field_opts. */
typedef struct stk_loader_opts {
    uint32_t struct_size; /* set by STK_LOADER_OPTS_INIT */
    uint32_t field_count;
    const stk_field_opts *fields;
    int64_t batch_size;        /* rows per batch on this rank; 0: 1 */
    int64_t global_batch_size; /* rows per step on all ranks; replaces batch_size; 0: batch_size * world_size */
    stk_order order;
    uint64_t seed;       /* of the order and of random transforms */
    int64_t num_workers; /* 0: STK_WORKERS_AUTO; STK_WORKERS_INLINE; or 1 to 1024 */
    int64_t prefetch;    /* number of slots, including leased ones: 1 to 1024; 0: 4, or up to 16 if they are small */
    /* What happens to an incomplete last step of an epoch. PARTIAL: it is divided among the ranks like the others;
     * DROP: it is omitted; PAD: it is completed with the epoch's first samples, whose mask is 0. */
    stk_last_batch last_batch;
    int64_t num_epochs;       /* 0: 1; STK_EPOCHS_ENDLESS */
    stk_pin pin_memory;       /* whether the slots are in pinned memory; AUTO: if `device` is a GPU */
    int64_t memory_budget;    /* limit in bytes for all slots and the indexes of text files, tables and HDF5 chunks; 0:
                                 half of the free memory */
    int64_t timeout_ns;       /* timeout of stk_loader_next in ns; 0: 60 s; STK_TIMEOUT_INFINITE */
    int64_t close_timeout_ns; /* total time in ns that close and destroy wait for stuck workers, copies and streams; 0:
                                 1 s; STK_TIMEOUT_INFINITE */
    int64_t rank;             /* in [0, world_size) */
    int64_t world_size;       /* 0: rank and world_size come from the launcher; without a launcher, rank 0 of 1 */
    stk_access access;        /* whether files are mapped or read with pread; AUTO: mapped if possible */
    stk_stores stores;        /* whether batches use streaming stores; AUTO: if the slots exceed 80 % of the L3 cache */
    int64_t tile_bytes;       /* output bytes of one unit of work; 0: 512 KiB */
    const int64_t *indices;   /* a subset of the samples, applied before the order; copied */
    int64_t index_count;
    bool allow_empty;     /* an epoch without steps is not an error: next returns STK_END immediately */
    int64_t block_window; /* STK_ORDER_BLOCK: number of chunks or pages whose samples are shuffled together; 0: as many
                             as fit in half of cache_bytes, at most 64 */
    int64_t cache_bytes;  /* bytes of decompressed chunks kept for all loaders of the process; the largest value of the
                             open loaders applies; 0: 256 MiB */
    /* What happens if a sample cannot be read or decoded (docs/reference/errors.md). */
    stk_on_error on_error;
    int64_t max_errors;        /* number of samples that may fail; 0: no limit; STK_NO_ERRORS: none; needs on_error */
    double max_error_fraction; /* the same as a fraction of an epoch, 0 to 1; 0: 0.01; STK_NO_ERRORS: none */
    const char *error_list;    /* file to which failed samples are written, as JSON Lines; NULL: none */
    const char *resume_from;   /* file written by stk_loader_save_file to resume from; NULL: start at the beginning */
    stk_resume resume;     /* whether a state with a different data set, seed, batch, order or transform is accepted */
    stk_digest digest;     /* computes a digest of the delivered rows: stk_loader_digest */
    stk_launcher launcher; /* whether rank and world_size are read from the launcher's environment */
    int64_t replication;   /* number of neighboring ranks that read the same data; 0: 1 */
    int64_t replication_blocks; /* number of equal blocks of ranks that read the same data; 0: 1 */
    stk_guard sigbus_guard;     /* ON: truncated mapped files cause errors in their records, not a crash (see above) */
    /* Further options of the order (docs/internals/order.md). */
    int64_t epoch_length;  /* number of positions in an epoch; 0: the number of samples */
    const double *weights; /* STK_ORDER_WEIGHTED: one weight per sample; copied */
    int64_t weight_count;
    const char *weights_from;         /* instead of weights, in the config language: "weights.npy", "{field: weight}" */
    const char *split;                /* in the config language: "train", "{part: val, fraction: 0.1, method: hash}" */
    const stk_dataset_opts *datasets; /* instead of `fields`: data sets that are mixed by weight */
    int64_t dataset_count;
    stk_mixture_stop mixture_stop; /* when an epoch over `datasets` ends, if epoch_length is 0 */
    const char *bucket_by;   /* name of a field of varying length: each batch contains samples of similar length */
    int64_t bucket_window;   /* number of global batches whose samples are sorted together; 0: 100; needs bucket_by */
    const char *device;      /* where batches are delivered: "cuda:0", "host"; NULL: "cpu", which is ordinary memory */
    int64_t device_prefetch; /* number of batches on the device, including held ones: 1 to 64; 0: 2; needs a device */
    stk_convert_by convert;  /* whether the workers (HOST) or the device convert the rows; AUTO: the faster one, as
                                measured at open */
    /* Optional callback that returns memory of the caller for the rows of a field on the device, one buffer for each of
     * the device_prefetch slots. Called while the loader opens, for every field and slot; `bytes` is the size of the
     * field's tensor in a full batch. The memory must stay valid until the loader is destroyed and the batches held are
     * released. If close returned STK_E_TIMEOUT and abandoned copies, the memory must also stay valid until the device
     * is idle, because these copies may still write to it. Return NULL for all slots of a field to use the loader's own
     * memory. Not called for fields whose rows differ in length. Even for a field with buffers of the caller, the
     * loader reserves space in its own device slots; it uses this space only if the device converts the field. */
    void *(*device_buffer)(void *context, const char *field, int slot, int64_t bytes);
    void *device_buffer_context;
    /* Path of NAME.manifest.json, written by the preparation job that wrote the files (docs/reference/prep.md). When
     * the loader opens, names and sizes of the files are compared with it. NULL: no comparison. With `datasets`, each
     * has its own. */
    const char *manifest;
    /* How samples that are files are paired, in the config language: "name", "position", "{strip: [_image, _mask]}";
     * NULL: by name in folders and patterns, by position in lists. With `datasets`, each has its own. */
    const char *pair;
    stk_block_rows block_rows; /* STK_ORDER_BLOCK; with STK_BLOCK_ROWS_IN_ORDER, block_window has no effect */
    stk_helps consumer_helps;  /* whether the thread that calls next computes rows while it waits for a batch
                                  (docs/internals/threads.md) */
} stk_loader_opts;
#define STK_LOADER_OPTS_INIT STK_OPTS_INIT(stk_loader_opts)

/* ---- open and close ---- */

/* Opens a loader, which must be freed with stk_loader_destroy. STK_E_CONFIG: an option is invalid. A file that cannot
 * be used has another status, such as STK_E_NOT_FOUND or STK_E_CORRUPT. */
STK_API stk_status stk_loader_open(const stk_loader_opts *opts, stk_loader **out, stk_error *err);
/* Opens the loader that a config file describes (docs/reference/config.md). `sets` are assignments that override values
 * of the file, such as "loader.batch_size=256"; an assignment with ?=, such as "loader.num_epochs?=0", applies only if
 * the file does not set the option. */
STK_API stk_status stk_loader_open_file(const char *path, const char *const *sets, int set_count, stk_loader **out,
                                        stk_error *err);
/* Opens the loader that a config given as text describes. Relative paths in it are relative to `base_dir` (NULL: the
 * working directory). */
STK_API stk_status stk_loader_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                        stk_loader **out, stk_error *err);
/* Reads and checks a config as stk_loader_open_file does, without opening any data. */
STK_API stk_status stk_loader_check_file(const char *path, const char *const *sets, int set_count, stk_error *err);
/* Returns the config as one self-contained string that means the same in any folder: includes, variables and
 * assignments are applied, and paths are absolute. Sections of other programs are kept. Free *out with stk_text_free.
 */
STK_API stk_status stk_loader_config_text(const char *path, const char *const *sets, int set_count, char **out,
                                          stk_error *err);
/* Stops the copies to a device and the workers, which first finish their current tiles. Waits for copies and workers
 * for at most close_timeout in total. Batches still held stay valid until they are released. May be called more than
 * once. STK_E_TIMEOUT: some copies, or some workers (which the message lists and which may be stuck in a system call),
 * did not finish in time; the resources that they use are freed once they finish. */
STK_API stk_status stk_loader_close(stk_loader *loader, stk_error *err);
/* Closes the loader if it is open, and frees the handle. Then waits for streams that still use its memory, for the rest
 * of close_timeout. Memory that streams still use after that is freed by a background thread once they are done with
 * it; memory of held batches is freed when they are released. NULL is allowed. */
STK_API void stk_loader_destroy(stk_loader *loader);

/* ---- batches ---- */

/* Returns the next batch, in order. STK_END: all num_epochs epochs are finished (not returned between epochs, see
 * stk_batch_last_of_epoch). STK_E_TIMEOUT: no batch was ready in time; the message says what the workers are doing, and
 * the call may be repeated. STK_E_CANCELLED: stk_loader_cancel was called, even if the loader has been closed since.
 * STK_E_CLOSED: the loader is closed. Any other error concerns the data of this batch; later calls return it again,
 * until stk_loader_restore or stk_loader_seek clears it. After a copy to a device has failed, the loader cannot
 * continue. */
STK_API stk_status stk_loader_next(stk_loader *loader, stk_batch **out, stk_error *err);
/* Like stk_loader_next, with a timeout in ns; STK_TIMEOUT_INFINITE never times out. With a timeout of 0, it does not
 * block; with STK_WORKERS_INLINE, each such call computes one part of the batch, so repeated calls complete the batch.
 */
STK_API stk_status stk_loader_next_timeout(stk_loader *loader, int64_t timeout_ns, stk_batch **out, stk_error *err);
/* For a loader with a device: returns the next batch without blocking on its copy. Work queued later in `stream`, a
 * stream of that device, runs after the copy. With a NULL stream, and in stk_loader_next, the host blocks until the
 * copy is done, for at most the timeout. STK_E_BAD_DEVICE: the stream belongs to another device. For a loader without a
 * device, this is stk_loader_next_timeout. */
STK_API stk_status stk_loader_next_on(stk_loader *loader, stk_stream *stream, int64_t timeout_ns, stk_batch **out,
                                      stk_error *err);
/* Releases the batch in stream order: work already queued in `stream` may still use it. Does not block: a slot on the
 * device is refilled after that work in stream order, and a slot in ordinary memory once the stream, which may belong
 * to any device, has executed that work. With a NULL stream, as with stk_batch_release, no work that is still queued or
 * running may use the batch. */
STK_API void stk_batch_release_on(stk_batch *batch, stk_stream *stream);
/* Releases the batch; its tensors must not be used any more. Several batches may be held at once and released in any
 * order, even after close. NULL is allowed. */
STK_API void stk_batch_release(stk_batch *batch);
/* Makes stk_loader_save count the batch as released; its tensors stay valid until it is actually released. NULL is
 * allowed. */
STK_API void stk_batch_mark_used(stk_batch *batch);
/* Retains the batch: its tensors stay valid until it has been released one more time, by stk_batch_release or
 * stk_batch_release_on. On a device, work queued later in `stream` runs after the copy that fills the batch; pass NULL
 * if only the stream given to stk_loader_next_on will use the batch. Any thread. */
STK_API stk_status stk_batch_retain(stk_batch *batch, stk_stream *stream, stk_error *err);

/* Returns the tensor of a field, [rows, …], on the loader's device. The tensor is borrowed and valid until the batch is
 * released. A field of varying length has two tensors, "NAME.values" [total, …] and "NAME.offsets" i64 [rows + 1]. With
 * `ragged` (images that keep their shapes), "NAME.values" is u8 [total], and there is also "NAME.shapes" i64 [rows, 3].
 * With `pad` the tensors are "NAME" [rows, length, …], "NAME.mask" bool [rows, length], true for elements of the
 * sample, and "NAME.lengths" i64 [rows]. The name of a view returns its range of the field's tensor (and of its mask).
 * STK_E_NOT_FOUND: the batch has no such tensor; the message lists the names. */
STK_API stk_status stk_batch_tensor(const stk_batch *batch, const char *name, stk_tensor *out, stk_error *err);
/* Exports the tensor as DLPack. The export keeps the batch alive: its slot is reused only after the batch has been
 * released and every deleter has run. Deleters may run in any order, on any thread, even after close and destroy.
 * Strides are in elements. STK_E_UNSUPPORTED: DLPack 0.6 does not have the dtype. On a device, the tensor is ready for
 * work in the stream given to stk_loader_next_on; work that uses it must be finished, or be queued in that stream, when
 * the deleter runs. A tensor of the host device is exported as a CPU tensor, so synchronize the stream before reading
 * the exported tensor. */
STK_API stk_status stk_batch_dlpack(stk_batch *batch, const char *name, struct DLManagedTensor **out, stk_error *err);
/* Like stk_batch_dlpack, for work in another stream, such as the one passed to __dlpack__(stream=...). For a batch on a
 * device, work queued later in `stream` runs after the copy that fills the batch, and the slot is refilled only after
 * the work that is queued in `stream` when the deleter runs; export once for each stream. For a batch in ordinary
 * memory, `stream`, which may belong to any device, is the stream in which the caller queues copies from the tensor;
 * the slot is refilled only after the copies that are queued when the deleter runs. The stream's handle may be
 * destroyed before the deleter runs. NULL: no work that uses the tensor is queued. */
STK_API stk_status stk_batch_dlpack_on(stk_batch *batch, const char *name, stk_stream *stream,
                                       struct DLManagedTensor **out, stk_error *err);

/* Number of rows, including padding. Can be 0: all ranks have the same number of steps, so with `partial` a rank may
 * have no rows in the last step of an epoch. */
STK_API int64_t stk_batch_rows(const stk_batch *batch);
STK_API int64_t stk_batch_valid_rows(const stk_batch *batch); /* number of rows whose mask is 1 */
/* The arrays that the next three functions return have one element per row, are in ordinary memory, and are valid until
 * the batch is released.
 *
 * The sample number of each row, or the number of its window (docs/internals/order.md). Samples are numbered across all
 * data sets: those of data set d begin at its `first`. */
STK_API const int64_t *stk_batch_indices(const stk_batch *batch);
STK_API const int32_t *stk_batch_sources(const stk_batch *batch); /* index of each row's data set; 0 without mixing */
STK_API const uint8_t *stk_batch_mask(const stk_batch *batch);    /* 1: a sample; 0: padding */
/* Number of samples of the batch that failed and were skipped or replaced (loader.on_error). */
STK_API int64_t stk_batch_failed(const stk_batch *batch);
/* Stores where a field's sample in a row comes from: the path of its file in `path`, NUL-terminated and truncated to
 * `size` bytes, and its index in that file (0 if each file is a sample) in `*record`. For a window, both refer to its
 * first sample. STK_E_RANGE: there is no such row or field. */
STK_API stk_status stk_batch_origin(const stk_batch *batch, int field, int64_t row, char *path, int size,
                                    int64_t *record, stk_error *err);
STK_API int64_t stk_batch_epoch(const stk_batch *batch);       /* epoch, counted from 0 */
STK_API int64_t stk_batch_step(const stk_batch *batch);        /* step in its epoch, counted from 0 */
STK_API int64_t stk_batch_global_step(const stk_batch *batch); /* step over all epochs, counted from 0 */
STK_API bool stk_batch_last_of_epoch(const stk_batch *batch);
/* The device slot of the batch, in [0, device_prefetch). The tensors of a slot have the same addresses for the whole
 * run. -1: the batch is in ordinary memory. */
STK_API int stk_batch_device_slot(const stk_batch *batch);

/* ---- saving and resuming (docs/reference/resume.md) ---- */

#define STK_STATE_MAX 256 /* bytes, enough for every state */

/* Saves the consumer's position: the first step that has not been released. The cost does not depend on the position.
 * The state at a given step is the same on every rank, except that `digest` and on_error other than FAIL add a part
 * that is specific to the rank. The end of an epoch is saved as the beginning of the next one. May be called from any
 * thread, and also after an error, a cancellation or a close. STK_E_BAD_ARG: the state does not fit into `capacity`
 * bytes. */
STK_API stk_status stk_loader_save(const stk_loader *loader, void *state, int64_t capacity, int64_t *bytes,
                                   stk_error *err);
/* Moves the loader to a saved position: a state from stk_loader_save, or JSON (from stk_state_json, or hand-written).
 * Batches that are held stay valid, prefetched ones are discarded, and a data error that ended the run is cleared.
 * Workers, prefetch, rank and world size may differ from those of the saved run. STK_E_MISMATCH: seed, order, samples,
 * global batch, data set or transforms differ from those of the saved run; the message says which. With loader.resume:
 * force, they may differ. STK_E_CORRUPT: the state is damaged. STK_E_RANGE: the position is beyond the end of the run.
 * On failure the position does not change. Call it from the thread that calls next. */
STK_API stk_status stk_loader_restore(stk_loader *loader, const void *state, int64_t bytes, stk_error *err);
/* Like the two functions above, but with a JSON file. Saving replaces the file atomically. */
STK_API stk_status stk_loader_save_file(const stk_loader *loader, const char *path, stk_error *err);
STK_API stk_status stk_loader_restore_file(stk_loader *loader, const char *path, stk_error *err);
/* Returns a state as JSON; free it with stk_text_free. NULL: not a state, or out of memory. */
STK_API char *stk_state_json(const void *state, int64_t bytes, stk_error *err);
/* Moves the loader to a step of an epoch; seek to (epoch + 1, 0) to leave an epoch early. The workers keep running. The
 * digest starts again at this step. STK_E_RANGE: there is no such epoch or step. Call it from the thread that calls
 * next. */
STK_API stk_status stk_loader_seek(stk_loader *loader, int64_t epoch, int64_t step, stk_error *err);
/* Asks the loader to stop: next returns STK_E_CANCELLED, within 0.1 s if it is blocked. Close or destroy must still be
 * called. May be called from any thread and from signal handlers, because it only sets a flag. NULL is allowed. */
STK_API void stk_loader_cancel(stk_loader *loader);

/* The sum modulo 2^128 of the digests of all released samples. It is the same for any number of workers, and the sums
 * of all ranks add up to the sum of the same run with a single rank. STK_E_CONFIG: loader.digest is none. */
typedef struct stk_digest_info {
    uint64_t word[2];             /* the sum: low word, high word */
    char text[40];                /* 32 hexadecimal digits, the most significant first */
    int64_t first_step, end_step; /* the steps covered, [first_step, end_step), counted over all epochs */
} stk_digest_info;

STK_API stk_status stk_loader_digest(const stk_loader *loader, stk_digest_info *out, stk_error *err);

/* ---- queries ---- */

/* The number of positions in an epoch: the samples of the data set or its subset, or epoch_length. */
STK_API int64_t stk_loader_samples(const stk_loader *loader);
STK_API int64_t stk_loader_steps_per_epoch(const stk_loader *loader); /* the same on every rank */
STK_API int stk_loader_field_count(const stk_loader *loader);

/* The names that stk_batch_tensor accepts: the tensors of the fields in order, then the views. The name is copied with
 * its NUL. STK_E_BAD_ARG: `size` is too small. STK_E_RANGE: there is no tensor with that number. */
STK_API int stk_loader_tensor_count(const stk_loader *loader);
STK_API stk_status stk_loader_tensor_name(const stk_loader *loader, int index, char *name, int size, stk_error *err);

/* One of the data sets. */
typedef struct stk_dataset_info {
    const char *name;  /* valid until the loader is destroyed; "" for a single data set without a name */
    double weight;     /* share of an epoch, relative to the weights of the others */
    int64_t samples;   /* number of its samples, including those that a subset leaves out */
    int64_t first;     /* sample number of its first sample, as in stk_batch_indices */
    int64_t positions; /* number of its positions in an epoch */
} stk_dataset_info;

STK_API int stk_loader_dataset_count(const stk_loader *loader); /* 1 if no data sets are mixed */
STK_API stk_status stk_loader_dataset(const stk_loader *loader, int index, stk_dataset_info *out, stk_error *err);

typedef struct stk_field_info {
    const char *name; /* valid until the loader is destroyed */
    stk_dtype source_dtype, dtype;
    int ndim;                    /* number of axes in a batch, including the row axis */
    int64_t shape[STK_MAX_DIMS]; /* shape of a full batch; -1 for an axis that varies */
    const char *layout;          /* "", "nchw", "nhwc" or "channels_last" */
    const char *kernel;          /* name of the conversion kernel, "avx512 u8>f32 hwc3-planar streaming" */
    const char *access;          /* access to the first shard: "mmap", "pread", "memory", "library" (libhdf5), "none" */
} stk_field_info;

STK_API stk_status stk_loader_field(const stk_loader *loader, int index, stk_field_info *out, stk_error *err);
/* The class names of a field's labels (source.classes, docs/reference/formats.md): class i has the name (*names)[i], in
 * the file's encoding. The table is the same for all files and data sets of the field. If the labels have no names,
 * *names is NULL and *count is 0. The table is valid until the loader is destroyed. STK_E_RANGE: there is no field with
 * that number. */
STK_API stk_status stk_loader_classes(const stk_loader *loader, int index, const char *const **names, int64_t *count,
                                      stk_error *err);
/* All effective options, after defaults, limits and detection have been applied, as JSON. The string is valid until the
 * loader is destroyed. */
STK_API const char *stk_loader_options_json(const stk_loader *loader);
/* One effective option as JSON: 4, "random", null. Sizes are in bytes, times in ns. `name` is the name of an option
 * ("loader.timeout", "dataset.fields.image.layout", "datasets.0.weight"), or a path in stk_loader_options_json
 * ("plan.slots"). Returns NULL on failure (STK_E_NOT_FOUND: there is no such option). Free with stk_text_free. */
STK_API char *stk_loader_option(const stk_loader *loader, const char *name, stk_error *err);
/* The tables of all config keys, as JSON: [{"section": "loader", "options": [{"name": "batch_size", "type": "int",
 * "default": "1", "low": 1, "high": …, "unit": "rows", "help": …}, …]}, …]. Free with stk_text_free. NULL: out of
 * memory. */
STK_API char *stk_loader_options_tables(void);
/* Notes on the loader, one sentence each, without duplicates: where it differs from what was requested ("prefetch
 * lowered from 8 to 5: …"), and other facts, such as how well a block order shuffles. Notes may be added during a run
 * (if the error list cannot be written, for example), so read them again at its end. At most 32 are kept; if there were
 * more, the last one says how many. A note is valid until the loader is destroyed. NULL: there is no note with that
 * number. Any thread. */
STK_API int stk_loader_note_count(const stk_loader *loader);
STK_API const char *stk_loader_note(const stk_loader *loader, int index);
/* Describes in plain text what the loader will do: fields, shards, what each list of transforms was compiled into, how
 * often each byte is copied, order, memory. Reads no samples. Free with stk_text_free. NULL: out of memory. */
STK_API char *stk_loader_explain(const stk_loader *loader);
/* The tables of all config keys, as text. Free with stk_text_free. NULL: out of memory. */
STK_API char *stk_loader_options_help(void);

/* Counters since open. Times are in ns, summed over the workers and, if the consumer helps, the consumer. */
typedef struct stk_loader_stats {
    uint32_t struct_size;   /* set by the caller */
    uint32_t workers;       /* number of worker threads; 0: inline */
    int64_t batches, rows;  /* number of delivered batches and rows */
    int64_t batch_bytes;    /* size of the delivered tensors */
    int64_t bytes_read;     /* bytes of samples that conversions read */
    int64_t bytes_written;  /* bytes that conversions wrote to slots */
    int64_t tiles;          /* number of completed units of work (tile_bytes) */
    int64_t order_ns;       /* computing sample numbers */
    int64_t read_ns;        /* in readers: readahead requests, reads, and waits for pages of mapped files */
    int64_t convert_ns;     /* in conversion kernels */
    int64_t wait_slot_ns;   /* workers waiting for a free slot, because the consumer is slower */
    int64_t wait_work_ns;   /* workers waiting because no tile is left to claim */
    int64_t wait_next_ns;   /* the consumer waiting inside next */
    int64_t first_batch_ns; /* from open to the first delivered batch */
    int64_t slots, slots_ready, slots_leased; /* current numbers */
    int64_t slot_bytes;                       /* size of all slots together */
    int64_t pinned_bytes;                     /* part of slot_bytes in pinned memory */
    int64_t errors;                           /* failed samples, including those of batches not delivered yet */
    int64_t warnings;                         /* samples that were decoded with warnings (on_warning: accept) */
    /* For the device; 0 without one. Copies and conversions in progress are not counted yet. */
    int64_t device_batches, device_bytes;      /* batches and bytes copied to the device */
    int64_t device_copy_ns, device_convert_ns; /* time that copies and conversions took in their streams */
    int64_t device_exposed_ns;                 /* part of the two times above during which the consumer waited */
    int64_t device_wait_batch_ns; /* the copying thread waiting for a batch, because the workers are slower */
    int64_t device_wait_slot_ns;  /* the copying thread waiting for a slot, because the consumer is slower */
    int64_t device_slots, device_slots_ready, device_slots_held; /* current numbers */
    int64_t device_slot_bytes;                                   /* size of all device slots together */
    /* Numbers of skipped and substituted rows in delivered batches. A row is also skipped if the sample that is mixed
     * into it failed. */
    int64_t skipped, substituted;
    /* Parts of read_ns; the rest was spent reading files and locating the samples in them. */
    int64_t decode_ns;  /* decoding images */
    int64_t inflate_ns; /* decompressing chunks, and waiting while another worker decompresses one */
    int64_t call_ns;    /* in custom transforms (stk_transform_register) */
    int64_t page_ns;    /* blocked on pages of mapped files being read from disk */
    /* The next two describe compressed chunks. unpacked_bytes / packed_bytes is how often each chunk is decompressed
     * per pass over the data; it is above 1 if the order returns to chunks that were evicted from the cache
     * (cache_bytes). */
    int64_t unpacked_bytes; /* bytes that decompression produced */
    int64_t packed_bytes;   /* bytes of decompressed chunks, cached or not, that samples used */
    int64_t helped_ns;      /* part of order_ns, read_ns and convert_ns that the consumer spent inside next */
} stk_loader_stats;

/* The counters of one worker. */
typedef struct stk_worker_stats {
    uint32_t struct_size; /* set by the caller */
    uint32_t unused;
    int64_t order_ns, read_ns, convert_ns;           /* working */
    int64_t decode_ns, inflate_ns, call_ns, page_ns; /* parts of read_ns */
    int64_t wait_slot_ns, wait_work_ns;              /* waiting */
    int64_t tiles;
} stk_worker_stats;

/* STK_E_RANGE: `index` is outside [0, workers). In a loader without workers, the calling thread counts as worker 0. */
STK_API stk_status stk_loader_worker(const stk_loader *loader, int index, stk_worker_stats *out, stk_error *err);

/* The number of failed samples in delivered batches that were skipped or replaced because of an error with this status;
 * STK_OK: with any status. */
STK_API int64_t stk_loader_failed(const stk_loader *loader, stk_status reason);
STK_API stk_status stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
