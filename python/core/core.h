/* core.h: the extension module stoker._core. It is compiled against the limited API of Python 3.11, so that one binary
 * works with all later versions.
 *
 * module.c     the module: its types, and the hooks into the package's Python code
 * loader.c     stoker._core.Loader and the iterator over an epoch
 * queries.c    attributes and methods that describe a loader
 * batch.c      stoker._core.Batch
 * tensor.c     stoker._core.Tensor: attributes, the buffer protocol
 * dlpack.c     DLPack, both versions
 * bench.c      loadbench, which can also measure Python iterables
 * streams.c    streams of other libraries, wrapped in stoker's handles
 * calls.c      custom transforms in Python
 * prep.c       preparation jobs
 * files.c      open files, their members and samples
 * preview.c    contact sheets
 *
 * The module has global state (hooks, types) for one interpreter, and a second interpreter cannot import it. The GIL
 * protects this state and the streams of a loader. Deleters of exported tensors run without the GIL on any thread, even
 * after the interpreter has ended, so they do not access Python objects. */
#ifndef STOKER_CORE_H
#define STOKER_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stoker/stoker.h>
#include <string.h>
#include <structmember.h>

/* The library whose tensors batch[name] returns. */
enum core_to { CORE_TO_NONE, CORE_TO_TORCH, CORE_TO_NUMPY, CORE_TO_JAX, CORE_TO_END };

/* Where the batches of a loader are. */
enum core_place { CORE_ORDINARY, CORE_PINNED, CORE_CUDA };

enum { CORE_MOST_STREAMS = 16 };

/* Set by the package with set_hook when it is imported. */
struct core_hooks {
    PyObject *error;     /* (status, message, file, record, offset, found, expected) -> exception */
    PyObject *key_error; /* (message, status) -> KeyError for a name that does not exist */
    PyObject *raised;    /* (exception of a transform, text that the error message will contain) */
    PyObject *streams;   /* (index or -1) -> [(index, native), …]: torch's current streams; -1: of all its devices */
    PyObject *to_torch;  /* (capsule) -> tensor; NULL: torch has not been requested */
    PyObject *convert[CORE_TO_END]; /* (Tensor) -> tensor of that library */
    PyObject *batch_type;           /* the subclass that users get */
};
extern struct core_hooks core_hooks;
extern PyTypeObject *core_queries_type, *core_loader_type, *core_epoch_type, *core_batch_type, *core_tensor_type;

typedef struct core_loader {
    PyObject ob_base;
    stk_loader *loader;      /* NULL: not opened */
    PyThread_type_lock turn; /* held by the one thread in next, seek, restore or close */
    PyObject *names;         /* tuple of str */
    PyObject *ragged;        /* dict: name of a field without a tensor of that name -> message that names its tensors */
    int64_t timeout_ns;
    int to; /* enum core_to */
    enum core_place place;
    stk_device *device; /* where the batches are; NULL: in ordinary memory */
    struct core_known *streams;
    bool restart;                             /* a `for` loop starts a new epoch even if the last one is unfinished */
    bool is_unfinished;                       /* the last batch was not the last of its epoch; false after a seek */
    int64_t epoch;                            /* epoch of the last batch */
    int64_t epochs_ended;                     /* number of epochs whose last batch has been taken */
    int64_t iterators;                        /* number of iterators created; only the newest one is valid */
    bool copy, closed, has_warned, on_device; /* on_device: also true for the host device */
    bool is_alone;      /* opened without ranks; the first call to next checks whether there are ranks now */
    int64_t generation; /* number of forks when it was created */
} core_loader;

typedef struct core_batch {
    PyObject ob_base;
    core_loader *loader;
    stk_batch *batch;      /* held; NULL: released, a copy, or made by batch.to() */
    PyObject *names;       /* tuple of str */
    PyObject *tensors;     /* of a copy: dict name -> Tensor; otherwise NULL */
    PyObject *row_tensors; /* of a copy: dict of indices, mask, sources -> Tensor; otherwise NULL */
    PyObject *values;      /* dict name -> object returned by batch[name] */
    PyObject *more;        /* dict of indices, mask, sources -> object returned by the attribute */
    bool released;
    long long rows, valid_rows, epoch, step, global_step, device_slot, failed;
    char last_of_epoch;
} core_batch;

typedef struct core_tensor {
    PyObject ob_base;
    stk_tensor tensor;   /* owns a reference to its storage, or borrows from `batch`, `keep` or a caller */
    stk_batch *batch;    /* held, or NULL */
    core_loader *loader; /* the loader that delivered it, or NULL */
    stk_stream *made_in; /* for a copy on a device: the stream that other streams must wait for; owned */
    PyObject *keep;      /* owner of the memory, or NULL */
    enum core_place place;
    Py_ssize_t exports; /* exported buffers */
    bool ended;         /* it was only valid during a call, which has returned */
} core_tensor;

/* ---- module.c ---- */

/* Raises the package's exception for an error. Returns NULL. */
PyObject *core_raise(const stk_error *err);
/* Raises the package's exception for a status. Returns NULL. */
PyObject *core_refuse(stk_status status, const char *message);
PyObject *core_text(const char *text); /* UTF-8, other bytes escaped as Python does for paths */
PyObject *core_own_text(char *text);   /* like core_text, and frees `text`; NULL: MemoryError */
/* Frees an object of a heap type. */
void core_free(PyObject *self);

/* ---- streams.c ---- */

/* Converts a DLPack stream number on the loader's device: -1 means no stream (*out is NULL), None and 1 the legacy
 * default stream, 2 the per-thread default stream; any other number is a cudaStream_t. False: an exception is set. */
bool core_stream_from(PyObject *number, core_loader *loader, stk_stream **out);
/* Stores torch's current streams that may use the loader's batches (`loader` NULL: none). Returns their number; -1: an
 * exception is set. */
int core_current_streams(core_loader *loader, stk_stream *out[CORE_MOST_STREAMS]);
void core_streams_close(core_loader *loader);

/* ---- tensor.c ---- */

/* Returns a tensor over the memory of `tensor`. It takes references to the storage and to `batch`, which may be
 * NULL. */
core_tensor *core_tensor_new(const stk_tensor *tensor, stk_batch *batch, core_loader *loader, enum core_place place);
/* Returns a copy in its own memory; on a device it is queued in `stream` (NULL: complete on return). */
core_tensor *core_tensor_copy(const core_tensor *tensor, stk_stream *stream);
extern PyType_Spec core_tensor_spec;

/* ---- dlpack.c ---- */

/* Creates a capsule of the tensor. Its deleter records an event in each stream; the slot is reused only after these
 * events. */
PyObject *core_capsule(core_tensor *tensor, bool versioned, bool copied, stk_stream *const *streams, int count);
PyObject *core_tensor_dlpack(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *core_tensor_dlpack_device(PyObject *self, PyObject *unused);

/* ---- batch.c ---- */

/* Returns an empty batch of the loader. */
core_batch *core_batch_new(core_loader *loader);
/* Steals the caller's reference to `batch`. */
void core_batch_set(core_batch *self, stk_batch *batch);
/* Copies all tensors, on a device in `stream`, and releases the slot. Runs no Python code. False: an exception is set.
 */
bool core_batch_detach(core_batch *self, stk_stream *stream);
extern PyType_Spec core_batch_spec;

/* ---- loader.c ---- */

/* Returns the loader's handle. NULL: it is not open, and an exception is set. */
stk_loader *core_loader_get(PyObject *self);
/* Waits for other threads in next, seek, restore or close. False: an exception is set, perhaps that of Ctrl-C. */
bool core_loader_enter(core_loader *self);
void core_loader_leave(core_loader *self);
extern PyType_Spec core_loader_spec, core_epoch_spec;

/* ---- bench.c ---- */

/* loadbench([word, …], make=None, samples=None): runs the command line; `make` returns the iterable to measure. */
PyObject *core_loadbench(PyObject *module, PyObject *args);

/* ---- queries.c ---- */

/* Methods and attributes of stoker._core.LoaderQueries, the base of its loaders. */
extern PyType_Spec core_queries_spec;

/* ---- calls.c, prep.c, files.c, preview.c: functions of the module ---- */

PyObject *core_register(PyObject *module, PyObject *args);
PyObject *core_prep(PyObject *module, PyObject *args);
PyObject *core_open_file(PyObject *module, PyObject *args);
PyObject *core_preview(PyObject *module, PyObject *args);
bool core_files_add(PyObject *module);

#endif
