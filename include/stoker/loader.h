/* loader.h: the front door. A loader reads samples of a data set in a stated order, converts them in one pass into
 * batch tensors, and has the next batch ready before the training loop asks for it.
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
 * On a device (`device`): the tensors of a batch are in the device's memory, copied there before they are asked for;
 * indices and mask stay in ordinary memory. With stk_loader_next_on nothing waits on the host: what is queued in the
 * stream after it comes after the copy, and stk_batch_release_on lets the slot be filled anew only when the stream has
 * come so far (docs/gpu.md).
 *
 *     while ((status = stk_loader_next_on(loader, stream, 60 * 1000000000LL, &batch, &err)) == STK_OK) {
 *         … queue the training step in `stream` …
 *         stk_batch_release_on(batch, stream);
 *     }
 *
 * Threads: stk_loader_next is for one thread at a time; stk_batch_release and everything that only asks may be called
 * from any thread; close and destroy while no other call on that loader runs. Batches are a pure function of data,
 * options and seed: the same bytes for any number of workers. Fork: in a child process every call on a loader of the
 * parent answers STK_E_FORKED; stk_loader_destroy then only lets go of the handle. Files should not be cut or written
 * to while a loader has them open.
 *
 * Mapped files and SIGBUS (sigbus_guard, on by default): reading a page of a mapped file that was cut raises SIGBUS.
 * The first loader (or reader) that maps a file installs a handler for the whole process, once, which looks at
 * addresses in stoker's own mappings alone and calls the handler that was there before for everything else. The records
 * read from such a file, or from one that was written to or replaced, fail with STK_E_TRUNCATED or STK_E_CORRUPT
 * instead of being delivered. Handlers that the program installs later should pass on what they do not know, and
 * threads that call stk_loader_next with STK_WORKERS_INLINE must not block SIGBUS. Tensors that are views of a mapping,
 * not copies, and are looked at outside of the loader, are not watched: after a cut they may read as zeros. With
 * STK_ACCESS_PREAD nothing is mapped; files are watched for changes all the same. With STK_GUARD_OFF no handler is
 * installed and nothing is watched.
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
struct DLManagedTensor; /* of <dlpack/dlpack.h>, version 0.6 */

#define STK_WORKERS_AUTO 0      /* as many as the process may use processors */
#define STK_WORKERS_INLINE (-1) /* none: stk_loader_next does the work in the caller's thread */
#define STK_EPOCHS_ENDLESS (-1)
#define STK_TIMEOUT_INFINITE (-1)
#define STK_NO_ERRORS (-1) /* of max_errors and max_error_fraction: what a config's 0 is */

/* docs/order.md defines them. */
typedef enum stk_order {
    STK_ORDER_SEQUENTIAL = 0,
    STK_ORDER_RANDOM = 1,
    STK_ORDER_BLOCK = 2,
    STK_ORDER_WEIGHTED = 3
} stk_order;
/* STK_ORDER_BLOCK: the samples of the blocks are shuffled, or only the blocks. */
typedef enum stk_block_rows { STK_BLOCK_ROWS_SHUFFLED = 0, STK_BLOCK_ROWS_IN_ORDER = 1 } stk_block_rows;
/* When an epoch over several data sets ends: before the first of them begins again, or when each has been used up. */
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
typedef enum stk_launcher { STK_LAUNCHER_AUTO = 0, STK_LAUNCHER_NONE = 1 } stk_launcher; /* docs/ranks.md */
typedef enum stk_stores { STK_STORES_AUTO = 0, STK_STORES_CACHED = 1, STK_STORES_STREAMING = 2 } stk_stores;

/* ---- a transform of one's own --------------------------------------------------------------------------------------
 *
 * What stoker has not: a function from a sample to a sample, named in a field's list of transforms as its first step,
 * `transforms: [{call: NAME}, …]`. The steps behind it see what it makes as if the file held that (source.layout says
 * how).
 *
 * Threads: any number of workers call `run` at the same time, each for another sample; what `context` points to is the
 * function's own business, and must stay while a loader is open that names the transform. `run` must be a pure function
 * of its input and of `random`, else batches depend on the number of workers. It should not allocate: it is called for
 * every sample. It must not call this loader.
 */
typedef struct stk_transform_call {
    uint32_t struct_size;
    int64_t sample;  /* its number in its file */
    uint64_t random; /* drawn by (seed, epoch, position): start a generator with it. The same for every field. */
} stk_transform_call;

typedef struct stk_transform {
    uint32_t struct_size; /* set by STK_TRANSFORM_INIT */
    uint32_t unused;
    const char *name; /* copied; at most 63 letters */
    /* Called once when a loader is opened: `in` has dtype and shape of the samples (the largest, where shapes vary) and
     * no data; set dtype, ndim and shape of `out`, which begins as a copy of `in`. NULL: what comes out is as what goes
     * in. Any status but STK_OK refuses the config with the error's message. */
    stk_status (*shape)(void *context, const stk_tensor *in, stk_tensor *out, stk_error *err);
    /* Called for each sample. `in`: the sample, read-only, of any strides, perhaps in the other byte order
     * (STK_TENSOR_SWAPPED). `out`: row-major memory of the announced shape, 64-byte aligned, not cleared: fill all of
     * it, change nothing else. Both are borrowed for the call. Any status but STK_OK is an error of that sample, which
     * the loader reports with file and record and the error's message. One that would say how the run goes on
     * (STK_E_TIMEOUT, _BUSY, _CLOSED, _FORKED, _CONFIG, _BAD_ARG, _EMPTY, _CANCELLED, any above 0, any unknown) is
     * reported as STK_E_BAD_VALUE and named in the message. STK_E_MEMORY ends the run, as elsewhere. */
    stk_status (*run)(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                      stk_error *err);
    void *context;
} stk_transform;
#define STK_TRANSFORM_INIT STK_OPTS_INIT(stk_transform)

/* Makes the transform known by its name in this process, for loaders opened from then on; a name that is there is given
 * the new function. Any thread. STK_E_LIMIT: there are 64. */
STK_API stk_status stk_transform_register(const stk_transform *transform, stk_error *err);

/* One named field. Texts are copied. Those in the config language may be empty, which is the same as NULL. */
typedef struct stk_field_opts {
    uint32_t struct_size; /* set by STK_FIELD_OPTS_INIT */
    uint32_t path_count;
    const char *name;
    const char *const *paths; /* the shards of the field, one file or several, in this order */
    const char *synthetic;    /* instead of paths: a made-up source in the config language, "{count: 1000, shape: [8],
                                 dtype: u8}" */
    stk_dtype source_dtype;   /* names a type that the file can't hold (bfloat16 in .npy); NONE: as the file says */
    stk_dtype dtype;          /* of the batch; NONE: as the transforms leave it */
    const char
        *source_layout; /* of a sample in the file: "chw", "hwc" ("nchw", "nhwc" mean the same); NULL: not an image */
    const char
        *layout; /* of the batch: "nchw", "nhwc", "channels_last" (NCHW shape over NHWC memory); NULL: as the source */
    const char *transforms; /* in the config language, "[{normalize: imagenet}]"; NULL: none */
    const char *source; /* further keys of `source` in the config language, "{name: image, format: hdf5}"; NULL: none
                         */
    const char *pad;    /* in the config language, "batch", "128", "{to: 128, value: -1, truncate: true}"; NULL: none */
    const char *views;  /* in the config language, "{inputs: [0, -1], targets: [1, null]}"; NULL: none */
    const char *ragged; /* images keep shapes of their own: "true", "{max_bytes: 8MiB}"; NULL: they do not */
} stk_field_opts;
#define STK_FIELD_OPTS_INIT STK_OPTS_INIT(stk_field_opts)

/* One of several data sets that are mixed. Texts and lists are copied. */
typedef struct stk_dataset_opts {
    uint32_t struct_size; /* set by STK_DATASET_OPTS_INIT */
    uint32_t field_count;
    const stk_field_opts *fields; /* the same names in every data set; dtype, layout and transforms are those of the
                                     first one's, the others leave them out or repeat them */
    const char *name;             /* NULL: its number */
    double weight;                /* its share of an epoch beside the others'; 0: none, it is left out */
    const int64_t *indices;       /* a subset of its samples; NULL: all */
    int64_t index_count;
    const char *manifest; /* as that of stk_loader_opts */
    const char *pair;     /* the same */
} stk_dataset_opts;
#define STK_DATASET_OPTS_INIT STK_OPTS_INIT(stk_dataset_opts)

/* Zero is the default of every member. Texts in the config language may be empty, which is the same as NULL. */
typedef struct stk_loader_opts {
    uint32_t struct_size; /* set by STK_LOADER_OPTS_INIT */
    uint32_t field_count;
    const stk_field_opts *fields;
    int64_t batch_size;        /* rows of a batch of this rank; 0: 1 */
    int64_t global_batch_size; /* rows of a step over all ranks, instead of batch_size; 0: batch_size * world_size */
    stk_order order;
    uint64_t seed;
    int64_t num_workers; /* 0: STK_WORKERS_AUTO; STK_WORKERS_INLINE; or 1 to 1024 */
    int64_t prefetch;    /* slots in all, including held ones: 1 to 1024; 0: 4, or up to 16 small ones */
    stk_last_batch last_batch;
    int64_t num_epochs; /* 0: 1; STK_EPOCHS_ENDLESS */
    stk_pin pin_memory;
    int64_t memory_budget;    /* bytes of all slots together, and of what readers of text and tables hold to find
                                 samples; 0: half of the free memory */
    int64_t timeout_ns;       /* of stk_loader_next; 0: 60 s; STK_TIMEOUT_INFINITE */
    int64_t close_timeout_ns; /* how long close waits for a stuck worker; 0: 1 s; STK_TIMEOUT_INFINITE */
    int64_t rank;             /* of [0, world_size) */
    int64_t world_size;       /* 0: rank and world_size as the launcher says, else 0 of 1 */
    stk_access access;
    stk_stores stores;
    int64_t tile_bytes;     /* output bytes of one unit of work; 0: 512 KiB */
    const int64_t *indices; /* a subset of the samples, applied before the order; copied */
    int64_t index_count;
    bool allow_empty;     /* an epoch without a step is then no error: next returns STK_END at once */
    int64_t block_window; /* STK_ORDER_BLOCK: chunks or pages whose samples are shuffled together; 0: as many as half of
                             cache_bytes holds, at most 64 */
    int64_t cache_bytes;  /* bytes of unpacked chunks kept for all loaders of the process; the largest of any open one
                             counts; 0: 256 MiB */
    /* Of a sample that cannot be read or made (docs/errors.md). */
    stk_on_error on_error;
    int64_t max_errors; /* more failed samples than this end the run; 0: unlimited; STK_NO_ERRORS; needs on_error */
    double max_error_fraction; /* more than this share of an epoch's do, 0 to 1; 0: 0.01; STK_NO_ERRORS */
    const char *error_list;    /* a file that they are listed in, a line of JSON each; NULL: none */
    const char *resume_from;   /* a file of stk_loader_save_file to go on from; NULL: the beginning */
    stk_resume resume;         /* what becomes of a state of another data set, seed, batch, order or transform */
    stk_digest digest;         /* of the stream: stk_loader_digest */
    stk_launcher launcher;
    int64_t replication;        /* so many neighbouring ranks read the same data; 0: 1 */
    int64_t replication_blocks; /* the ranks are so many equal blocks that read the same data; 0: 1 */
    stk_guard sigbus_guard;     /* a mapped file that is cut is an error of its records (above) */
    /* The order, beyond its kind (docs/order.md). */
    int64_t epoch_length;             /* positions of an epoch; 0: as many as there are samples */
    const double *weights;            /* STK_ORDER_WEIGHTED: one a sample; copied */
    int64_t weight_count;             /* of them */
    const char *weights_from;         /* instead, in the config language: "weights.npy", "{field: weight}" */
    const char *split;                /* in the config language: "train", "{part: val, fraction: 0.1, method: hash}" */
    const stk_dataset_opts *datasets; /* instead of `fields`: data sets that are mixed by weight */
    int64_t dataset_count;
    stk_mixture_stop mixture_stop; /* where epoch_length is 0 */
    const char *bucket_by;         /* a field of varying length: batches of samples of about the same length */
    int64_t bucket_window;         /* global batches whose samples are sorted together; 0: 100; needs bucket_by */
    const char *device;            /* where the batches are delivered: "cuda:0", "host"; NULL: "cpu", ordinary memory */
    int64_t device_prefetch; /* batches on the device in all, the held ones counted: 1 to 64; 0: 2; needs a device */
    stk_convert_by convert;  /* who makes the rows: the workers, or the device from the stored samples */
    /* The loader delivers the field's rows in this memory of the caller's, one piece for each of the device_prefetch
     * slots, as long as the loader lives (batches still held included): called while it opens, for every field and
     * slot; `bytes` is room for a full batch. NULL for all slots of a field: the loader's own memory. Rows that differ
     * in length never are. The loader's own slots on the device keep their layout: what the field would have there
     * stays unused, unless the device converts it. */
    void *(*device_buffer)(void *context, const char *field, int slot, int64_t bytes);
    void *device_buffer_context;
    /* NAME.manifest.json of the preparation job that made the files (docs/prep.md): they are compared with it at open,
     * by name and size. NULL: they are not. With `datasets` each has its own. */
    const char *manifest;
    /* How samples that are files go together, in the config language: "name", "position", "{strip: [_image, _mask]}";
     * NULL: folders and patterns by name, lists by position. With `datasets` each has its own. */
    const char *pair;
    stk_block_rows block_rows; /* STK_ORDER_BLOCK; block_window has no effect on rows in order */
    stk_helps consumer_helps; /* the thread that calls next makes rows while it waits (docs/threads.md) */
} stk_loader_opts;
#define STK_LOADER_OPTS_INIT STK_OPTS_INIT(stk_loader_opts)

/* ---- open and close ------------------------------------------------------------------------------------------------
 */

STK_API stk_status stk_loader_open(const stk_loader_opts *opts, stk_loader **out, stk_error *err);
/* A config file (README, docs/config.md); `sets` are assignments such as "loader.batch_size=256" applied on top of it.
 */
STK_API stk_status stk_loader_open_file(const char *path, const char *const *sets, int set_count, stk_loader **out,
                                        stk_error *err);
/* A config text; relative paths in it start from `base_dir` (NULL: the working directory). */
STK_API stk_status stk_loader_open_text(const char *text, const char *base_dir, const char *const *sets, int set_count,
                                        stk_loader **out, stk_error *err);
/* Reads and checks a config as stk_loader_open_file does, without opening any data. */
STK_API stk_status stk_loader_check_file(const char *path, const char *const *sets, int set_count, stk_error *err);
/* The same config as one text that means the same from any folder: includes, variables and assignments are applied, and
 * the paths of options are absolute. Sections of other programs are in it. Free *out with stk_text_free. */
STK_API stk_status stk_loader_config_text(const char *path, const char *const *sets, int set_count, char **out,
                                          stk_error *err);
/* Stops the workers and waits for them, within close_timeout plus the running tiles. Batches still held stay valid
 * until they are released. May be called twice. STK_E_TIMEOUT: that many workers (see the message) are stuck in a call;
 * they keep what they use and end when the call returns. */
STK_API stk_status stk_loader_close(stk_loader *loader, stk_error *err);
/* Closes if that has not been done, and frees the handle. NULL is fine. */
STK_API void stk_loader_destroy(stk_loader *loader);

/* ---- batches
 * --------------------------------------------------------------------------------------------------------- */

/* The next batch, in order. STK_END: after num_epochs epochs (never between epochs: the batch says last_of_epoch).
 * STK_E_TIMEOUT: nothing came in time, the message says what is being waited for; not sticky: call again. Any other
 * error: belongs to the data, is reported with its batch's place in the order, and stays. */
STK_API stk_status stk_loader_next(stk_loader *loader, stk_batch **out, stk_error *err);
/* With a timeout of its own, in ns: 0 asks and returns at once, STK_TIMEOUT_INFINITE waits. */
STK_API stk_status stk_loader_next_timeout(stk_loader *loader, int64_t timeout_ns, stk_batch **out, stk_error *err);
/* For a loader with a device: without waiting for the copy. What is queued in `stream`, which is of that device, comes
 * after it from now on. NULL, and stk_loader_next: the host waits for the copy, within the timeout. STK_E_BAD_DEVICE: a
 * stream of another device. Without a device: the same as stk_loader_next_timeout. */
STK_API stk_status stk_loader_next_on(stk_loader *loader, stk_stream *stream, int64_t timeout_ns, stk_batch **out,
                                      stk_error *err);
/* Ends the lease for all that is queued in `stream` after this; what was queued before still finds the batch. Does not
 * wait: a slot on the device is filled again behind it in stream order, and one in ordinary memory when a worker sees
 * that the stream, of any device, has come so far. NULL, and stk_batch_release: nothing is queued that uses the batch.
 */
STK_API void stk_batch_release_on(stk_batch *batch, stk_stream *stream);
/* Ends the lease: its tensors are not to be touched any more. Several batches may be held at once and released in any
 * order, also after close. NULL is fine. */
STK_API void stk_batch_release(stk_batch *batch);

/* The tensor of a field, rows first: [rows, …], on the loader's device. Borrowed: valid until the batch is released. A
 * field of varying shape is two parts: "NAME.values" [total, …] and "NAME.offsets" i64 [rows + 1]; with `ragged`
 * (images in shapes of their own) values are u8 [total], and there is "NAME.shapes" i64 [rows, 3] too. With `pad` it is
 * "NAME" [rows, length, …], "NAME.mask" bool [rows, length], 1 where a row has an element of its own, and
 * "NAME.lengths" i64 [rows]. A view is the part of its field's tensor that it names (and of its mask). STK_E_NOT_FOUND
 * names the tensors there are. */
STK_API stk_status stk_batch_tensor(const stk_batch *batch, const char *name, stk_tensor *out, stk_error *err);
/* The same as DLPack, holding the batch: its slot is free when the batch is released and every deleter has run, in any
 * order, on any thread, also after close and destroy. Strides in elements, as DLPack has them. On a device: ready for
 * work in the stream that was given to stk_loader_next_on; what uses it must be done, or be queued in that stream, when
 * the deleter runs. Memory of the host device is DLPack's CPU memory: synchronise first. */
STK_API stk_status stk_batch_dlpack(stk_batch *batch, const char *name, struct DLManagedTensor **out, stk_error *err);
/* The same for work in any stream, such as the one that __dlpack__(stream=...) names. On a device: what is queued in
 * `stream` from now on comes behind the copy, and the slot is filled again behind what is queued there when the deleter
 * runs; export once for each stream. In ordinary memory: the stream, of any device, is the one in which copies from the
 * tensor are queued. Its handle may be destroyed before the deleter runs. NULL: nothing is queued. */
STK_API stk_status stk_batch_dlpack_on(stk_batch *batch, const char *name, stk_stream *stream,
                                       struct DLManagedTensor **out, stk_error *err);

/* Padding included. 0 can happen: with `partial` and several ranks the last step may leave a rank without rows, so that
 * all ranks have the same number of steps. */
STK_API int64_t stk_batch_rows(const stk_batch *batch);
STK_API int64_t stk_batch_valid_rows(const stk_batch *batch); /* rows whose mask is 1 */
/* The sample of each row, or the number of its window (docs/order.md). Several data sets are counted through: those of
 * data set d begin at its `first`. */
STK_API const int64_t *stk_batch_indices(const stk_batch *batch);
STK_API const int32_t *stk_batch_sources(const stk_batch *batch); /* which data set each row is from; 0 where one is */
STK_API const uint8_t *stk_batch_mask(const stk_batch *batch);    /* 1: a sample; 0: padding */
STK_API int64_t stk_batch_epoch(const stk_batch *batch);          /* from 0 */
STK_API int64_t stk_batch_step(const stk_batch *batch);           /* in its epoch, from 0 */
STK_API int64_t stk_batch_global_step(const stk_batch *batch);    /* over all epochs, from 0 */
STK_API bool stk_batch_last_of_epoch(const stk_batch *batch);
/* Which of the device_prefetch slots it lies in: batches in one slot have their tensors at the same addresses, over the
 * whole run. -1: in ordinary memory. */
STK_API int stk_batch_device_slot(const stk_batch *batch);

/* ---- stop and go on (docs/resume.md)
 * --------------------------------------------------------------------------------- */

#define STK_STATE_MAX 256 /* bytes that are enough for every state */

/* The position of the consumer: the first step that has not been released, all before it having been. It takes no
 * longer at the end of a data set than at its beginning, and is the same on every rank at one step (but for the digest,
 * which is each rank's own). The end of an epoch is the beginning of the next one. Any thread; also after an error, a
 * cancel and a close. */
STK_API stk_status stk_loader_save(const stk_loader *loader, void *state, int64_t capacity, int64_t *bytes,
                                   stk_error *err);
/* Goes on there: a state of stk_loader_save, or JSON (stk_state_json, or written by hand). Batches that are held stay
 * valid; what had been prefetched is dropped; a data error that had ended the run is forgotten. Workers, prefetch, rank
 * and world size may be others than when it was saved. STK_E_MISMATCH names what differs: seed, order, samples, global
 * batch, data set, transforms (loader.resume: force accepts that). STK_E_CORRUPT: damaged. After a failure the loader
 * is where it was. For the thread that calls next. */
STK_API stk_status stk_loader_restore(stk_loader *loader, const void *state, int64_t bytes, stk_error *err);
/* The same by way of a file of JSON, which appears complete or not at all. */
STK_API stk_status stk_loader_save_file(const stk_loader *loader, const char *path, stk_error *err);
STK_API stk_status stk_loader_restore_file(stk_loader *loader, const char *path, stk_error *err);
/* A state as JSON. Free with stk_text_free. NULL: no state, or no memory. */
STK_API char *stk_state_json(const void *state, int64_t bytes, stk_error *err);
/* Goes on at a step of an epoch; who leaves an epoch early goes to (epoch + 1, 0) with the same workers. The digest
 * begins anew there. For the thread that calls next. */
STK_API stk_status stk_loader_seek(stk_loader *loader, int64_t epoch, int64_t step, stk_error *err);
/* Asks the loader to stop: next returns STK_E_CANCELLED, within a tenth of a second where it is waiting. Close and
 * destroy are still to be called. Any thread, and handlers of signals: it only sets a flag. NULL is fine. */
STK_API void stk_loader_cancel(stk_loader *loader);

/* The sum modulo 2^128 of the digests of all samples that were released, in whatever order: for any number of workers
 * the same; those of all ranks add up to that of one. Needs loader.digest. */
typedef struct stk_digest_info {
    uint64_t word[2];             /* low, high */
    char text[40];                /* 32 hexadecimal digits, the highest first */
    int64_t first_step, end_step; /* over all epochs: the steps that are in it, without end_step */
} stk_digest_info;

STK_API stk_status stk_loader_digest(const stk_loader *loader, stk_digest_info *out, stk_error *err);

/* ---- asking
 * ------------------------------------------------------------------------------------------------------------ */

/* Positions of an epoch: the samples of the data set (the subset, if there is one), or epoch_length. */
STK_API int64_t stk_loader_samples(const stk_loader *loader);
STK_API int64_t stk_loader_steps_per_epoch(const stk_loader *loader); /* the same on every rank */
STK_API int stk_loader_field_count(const stk_loader *loader);

/* The names that stk_batch_tensor knows, all there are: the fields' parts in order, then the views. The name is copied,
 * with its NUL. STK_E_BAD_ARG: `size` is too small for it. */
STK_API int stk_loader_tensor_count(const stk_loader *loader);
STK_API stk_status stk_loader_tensor_name(const stk_loader *loader, int index, char *name, int size, stk_error *err);

/* One of the data sets. */
typedef struct stk_dataset_info {
    const char *name; /* lives as long as the loader; "" where there is one data set without a name */
    double weight;
    int64_t samples;   /* subsets aside */
    int64_t first;     /* where its samples begin in stk_batch_indices */
    int64_t positions; /* of an epoch that are its own */
} stk_dataset_info;

STK_API int stk_loader_dataset_count(const stk_loader *loader); /* 1 where nothing is mixed */
STK_API stk_status stk_loader_dataset(const stk_loader *loader, int index, stk_dataset_info *out, stk_error *err);

typedef struct stk_field_info {
    const char *name; /* lives as long as the loader */
    stk_dtype source_dtype, dtype;
    int ndim;                    /* of a batch, the row axis included */
    int64_t shape[STK_MAX_DIMS]; /* of a full batch; -1 where it varies */
    const char *layout;          /* "", "nchw", "nhwc" or "channels_last" */
    const char *kernel;          /* what converts it, "avx512 u8>f32 hwc3-planar streaming" */
    const char *access;          /* how its first shard is read */
} stk_field_info;

STK_API stk_status stk_loader_field(const stk_loader *loader, int index, stk_field_info *out, stk_error *err);
/* The names of the classes that a field's labels number (source.classes, docs/formats.md): class i has the name
 * (*names)[i], in the bytes of the file. The same table for all files and data sets of the field. NULL and 0: its
 * labels have no names. Lives as long as the loader. STK_E_RANGE: there is no field of that number. */
STK_API stk_status stk_loader_classes(const stk_loader *loader, int index, const char *const **names, int64_t *count,
                                      stk_error *err);
/* Everything in effect after defaults, limits and detection, as JSON. Lives as long as the loader. */
STK_API const char *stk_loader_options_json(const stk_loader *loader);
/* One of them as JSON: 4, "random", null; sizes in bytes, times in ns. `name` is that of an option ("loader.timeout",
 * "dataset.fields.image.layout", "datasets.0.weight"), or leads into stk_loader_options_json ("plan.slots"). NULL:
 * STK_E_NOT_FOUND where there is none. Free with stk_text_free. */
STK_API char *stk_loader_option(const stk_loader *loader, const char *name, stk_error *err);
/* The tables of all config keys as JSON: [{"section": "loader", "options": [{"name": "batch_size", "type": "int",
 * "default": "1", "low": 1, "high": …, "unit": "rows", "help": …}, …]}, …]. Free with stk_text_free. NULL: no memory.
 */
STK_API char *stk_loader_options_tables(void);
/* What differs from what was asked for ("prefetch lowered from 8 to 5: …"), or is worth knowing of it (how well a block
 * order mixes, how full packed windows are), one sentence each, each once. A run may add some (a list of failed samples
 * that cannot be written), so ask again at its end. 32 are kept; where there were more the last one says how many.
 * Lives as long as the loader. Any thread. */
STK_API int stk_loader_note_count(const stk_loader *loader);
STK_API const char *stk_loader_note(const stk_loader *loader, int index);
/* What the loader is going to do, for people: fields, shards, what each list of transforms has been folded into, how
 * often a byte is moved, order, memory. No sample is read for it. Free with stk_text_free. NULL: no memory. */
STK_API char *stk_loader_explain(const stk_loader *loader);
/* The table of all config keys, for people. Free with stk_text_free. NULL: no memory. */
STK_API char *stk_loader_options_help(void);

/* Counters since open. Times are summed over the workers, and the consumer where it helps. Each arrow has two clocks: working, and waiting for the
 * neighbour. */
typedef struct stk_loader_stats {
    uint32_t struct_size;  /* set by the caller */
    uint32_t workers;      /* threads; 0: inline */
    int64_t batches, rows; /* delivered */
    int64_t batch_bytes;   /* of the delivered tensors */
    int64_t bytes_read;    /* by the conversion, from the samples */
    int64_t bytes_written; /* by the conversion, into the slots */
    int64_t tiles;
    int64_t order_ns;                         /* working out which samples, and advising the readers */
    int64_t read_ns;                          /* in readers, and waiting for pages of mapped files */
    int64_t convert_ns;                       /* in kernels */
    int64_t wait_slot_ns;                     /* workers: no free slot, the consumer is slower */
    int64_t wait_work_ns;                     /* workers: a slot is being filled and has no tile left */
    int64_t wait_next_ns;                     /* consumer: inside next, nothing ready */
    int64_t first_batch_ns;                   /* from open to the first delivery */
    int64_t slots, slots_ready, slots_leased; /* now */
    int64_t slot_bytes;                       /* of all slots together */
    int64_t pinned_bytes;                     /* of them */
    int64_t errors;                           /* failed samples, those of batches not yet delivered too */
    int64_t warnings; /* samples decoded in spite of their decoder's warnings (on_warning: accept) */
    /* Of the device, 0 without one. Copies and conversions on their way are not counted yet. */
    int64_t device_batches, device_bytes;      /* copied */
    int64_t device_copy_ns, device_convert_ns; /* in their streams */
    int64_t device_exposed_ns;                 /* of the two: the consumer had come to the batch and had to wait */
    int64_t device_wait_batch_ns;              /* the copying thread: the workers are slower */
    int64_t device_wait_slot_ns;               /* the copying thread: the consumer is slower */
    int64_t device_slots, device_slots_ready, device_slots_held; /* now */
    int64_t device_slot_bytes;                                   /* of all of them together */
    int64_t skipped,
        substituted; /* rows left out of delivered batches, those lost with a mixed partner too; replaced */
    /* Of read_ns; the rest of it is the storage: reading files, and finding the samples in them. */
    int64_t decode_ns;  /* images */
    int64_t inflate_ns; /* unpacking chunks, and waiting for another worker that unpacks one */
    int64_t call_ns;    /* in transforms of one's own (stk_transform_register) */
    int64_t page_ns;    /* off the processor until pages of mapped files had come from the disk */
    /* Of chunks that are stored packed. The first by the second is how often each chunk is unpacked in a pass over the
     * data: above 1 where the order comes back to chunks that the cache (cache_bytes) has let go. */
    int64_t unpacked_bytes; /* what unpacking them gave */
    int64_t packed_bytes;   /* what samples took out of it */
    int64_t helped_ns; /* of order_ns, read_ns and convert_ns: by the thread in next (consumer_helps); in wait_next_ns */
} stk_loader_stats;

/* The same of one worker. */
typedef struct stk_worker_stats {
    uint32_t struct_size; /* set by the caller */
    uint32_t unused;
    int64_t order_ns, read_ns, convert_ns;           /* working */
    int64_t decode_ns, inflate_ns, call_ns, page_ns; /* of read_ns */
    int64_t wait_slot_ns, wait_work_ns;              /* waits that have ended */
    int64_t tiles;
} stk_worker_stats;

/* STK_E_RANGE: `index` is outside [0, workers); a loader without workers has the caller's thread as its only one. */
STK_API stk_status stk_loader_worker(const stk_loader *loader, int index, stk_worker_stats *out, stk_error *err);

/* Samples of delivered batches that had failed for this reason and were left out or replaced; STK_OK: for any. */
STK_API int64_t stk_loader_failed(const stk_loader *loader, stk_status reason);
STK_API stk_status stk_loader_get_stats(const stk_loader *loader, stk_loader_stats *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
