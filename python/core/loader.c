/* loader.c: a loader and its epochs. Every call that may block releases the GIL and checks for signals ten times per
 * second. A batch is marked as used when it is taken, and no Python code runs between that and the return of next (with
 * copy=True, the tensors are copied in between). So a saved position is always the one after the batch that was
 * returned last: Ctrl-C takes effect either before a batch is taken, or in the code that called next. */
#include "core.h"
#include "open_lists.h"
#include "stream.h"
#include "thread.h"
#include <time.h>

#define SLICE_NS 100000000LL      /* the longest delay of Ctrl-C */
#define FIRST_SLICE_NS 20000000LL /* time before the first and the second check whether all slots are held */
#define WARN_NS 1000000000LL      /* time to wait for a slot while all are held before a warning is issued */

stk_loader *core_loader_get(PyObject *self)
{
    stk_loader *loader = ((core_loader *)self)->loader;

    if (!loader)
        core_refuse(STK_E_CLOSED, "the loader has not been opened");
    return loader;
}

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

bool core_loader_enter(core_loader *self)
{
    PyLockStatus got = PyThread_acquire_lock(self->turn, 0) ? PY_LOCK_ACQUIRED : PY_LOCK_FAILURE;

    while (got != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS
        got = PyThread_acquire_lock_timed(self->turn, SLICE_NS / 1000, 1);
        Py_END_ALLOW_THREADS
        if (got != PY_LOCK_ACQUIRED && PyErr_CheckSignals() < 0)
            return false;
    }
    return true;
}

void core_loader_leave(core_loader *self)
{
    PyThread_release_lock(self->turn);
}

/* ---- open and close ---- */

static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    core_loader *self = (core_loader *)PyType_GenericAlloc(type, 0);

    (void)args, (void)kwargs;
    if (self)
        self->generation = stki_fork_generation();
    return (PyObject *)self;
}

/* Gets the buffer of 8-byte numbers that an object exports, and sets *count. None exports no numbers. */
static bool numbers(PyObject *list, Py_buffer *view, int64_t *count)
{
    if (list == Py_None)
        return true;
    if (PyObject_GetBuffer(list, view, PyBUF_C_CONTIGUOUS) < 0)
        return false;
    *count = (int64_t)(view->len / 8);
    return true;
}

static bool open_it(core_loader *self, PyObject *path, PyObject *text, PyObject *base, char **sets, int set_count,
                    const stki_open_lists *lists)
{
    const char *file = path != Py_None ? PyBytes_AsString(path) : NULL;
    const char *config = text != Py_None ? PyBytes_AsString(text) : NULL;
    const char *folder = base != Py_None ? PyBytes_AsString(base) : NULL;
    stk_error err;
    stk_status status;

    if (PyErr_Occurred())
        return false;
    Py_BEGIN_ALLOW_THREADS
    status =
        stki_loader_open_lists(file, config, folder, (const char *const *)sets, set_count, lists, &self->loader, &err);
    Py_END_ALLOW_THREADS
    if (status == STK_OK)
        return true;
    core_raise(&err);
    return false;
}

static bool read_names(core_loader *self)
{
    const int count = stk_loader_tensor_count(self->loader);
    char name[512];
    stk_error err;

    self->names = PyTuple_New(count);
    for (int i = 0; self->names && i < count; i++) {
        PyObject *text;

        if (stk_loader_tensor_name(self->loader, i, name, sizeof name, &err) != STK_OK) {
            core_raise(&err);
            return false;
        }
        if (!(text = core_text(name)))
            return false;
        PyUnicode_InternInPlace(&text);
        if (PyTuple_SetItem(self->names, i, text) < 0)
            return false;
    }
    return self->names != NULL;
}

/* (path or None, text or None, folder or None, sets: all bytes; indices, weights: buffers or None; how many of the
 * sets, from the first, are ranks of torch.distributed). */
static int init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    core_loader *self = (core_loader *)object;
    PyObject *path, *text, *base, *sets, *indices, *weights;
    Py_buffer views[2] = {{NULL}, {NULL}};
    stki_open_lists lists = {NULL};
    bool opened = false;
    char *texts[256];
    Py_ssize_t count;

    if (self->loader)
        return PyErr_SetString(PyExc_RuntimeError, "the loader is open"), -1;
    if ((kwargs && PyDict_Size(kwargs) > 0) || !PyArg_ParseTuple(args, "OOOO!OOi", &path, &text, &base, &PyTuple_Type,
                                                                 &sets, &indices, &weights, &lists.rank_sets))
        return -1;
    if ((count = PyTuple_Size(sets)) > 256)
        return PyErr_SetString(PyExc_ValueError, "more than 256 options"), -1;
    if (lists.rank_sets < 0 || lists.rank_sets > count)
        return PyErr_Format(PyExc_ValueError, "ranks: found %d", lists.rank_sets), -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (!(texts[i] = PyBytes_AsString(PyTuple_GetItem(sets, i))))
            return -1;
    if (!self->turn && !(self->turn = PyThread_allocate_lock()))
        return PyErr_NoMemory(), -1;
    if (numbers(indices, &views[0], &lists.index_count) && numbers(weights, &views[1], &lists.weight_count)) {
        lists.indices = views[0].buf;
        lists.weights = views[1].buf;
        opened = open_it(self, path, text, base, texts, (int)count, &lists);
    }
    for (int i = 0; i < 2; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
    return opened && read_names(self) ? 0 : -1;
}

/* Sets members that are derived from the options: (timeout in ns, to, copy, restart, device or None, pinned, ragged,
 * is_alone). On the host device, next waits for the copy, because other libraries treat its memory as ordinary
 * memory. */
static PyObject *configure(PyObject *object, PyObject *args)
{
    core_loader *self = (core_loader *)object;
    long long timeout;
    int to, copy, restart, pinned, is_alone;
    const char *device;
    PyObject *ragged;
    stk_error err;

    if (!PyArg_ParseTuple(args, "LippzpO!p", &timeout, &to, &copy, &restart, &device, &pinned, &PyDict_Type, &ragged,
                          &is_alone))
        return NULL;
    if (to < 0 || to >= CORE_TO_END)
        return PyErr_Format(PyExc_ValueError, "to: found %d", to);
    self->timeout_ns = timeout;
    self->to = to;
    self->copy = copy != 0;
    self->restart = restart != 0;
    self->is_alone = is_alone != 0;
    if (device && stk_device_find(device, &self->device, &err) != STK_OK)
        return core_raise(&err);
    self->on_device = device != NULL;
    self->place = device && stk_device_get_kind(self->device) == STK_DEVICE_CUDA ? CORE_CUDA
                  : pinned && !device                                            ? CORE_PINNED
                                                                                 : CORE_ORDINARY;
    Py_XDECREF(self->ragged);
    self->ragged = Py_NewRef(ragged);
    Py_RETURN_NONE;
}

static void dealloc(PyObject *object)
{
    core_loader *self = (core_loader *)object;

    if (self->loader) {
        Py_BEGIN_ALLOW_THREADS
        stk_loader_destroy(self->loader);
        Py_END_ALLOW_THREADS
    }
    core_streams_close(self);
    if (self->turn)
        PyThread_free_lock(self->turn);
    Py_XDECREF(self->names);
    Py_XDECREF(self->ragged);
    core_free(object);
}

static PyObject *close_it(PyObject *object, PyObject *unused)
{
    core_loader *self = (core_loader *)object;
    stk_error err;
    stk_status status;

    (void)unused;
    if (!self->loader || self->closed)
        Py_RETURN_NONE;
    stk_loader_cancel(self->loader); /* ends the wait of another thread */
    if (stki_fork_generation() == self->generation && !core_loader_enter(self))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status = stk_loader_close(self->loader, &err);
    Py_END_ALLOW_THREADS
    self->closed = true;
    core_streams_close(self);
    if (stki_fork_generation() == self->generation)
        core_loader_leave(self);
    if (status != STK_OK && status != STK_E_FORKED)
        return core_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *cancel(PyObject *object, PyObject *unused)
{
    (void)unused;
    stk_loader_cancel(((core_loader *)object)->loader);
    Py_RETURN_NONE;
}

/* ---- next ---- */

/* An iterator, which delivers the rest of an epoch. */
typedef struct core_epoch {
    PyObject ob_base;
    core_loader *loader;
    int64_t number;       /* number of this iterator among those of the loader */
    int64_t epochs_ended; /* the loader's epochs_ended when this iterator took its first batch */
    bool ended, any;
} core_epoch;

/* Returns whether the caller holds all slots, so that no batch can be produced. */
static bool all_held(const core_loader *self, int64_t *slots)
{
    stk_loader_stats stats = {.struct_size = sizeof stats};

    if (stk_loader_get_stats(self->loader, &stats, NULL) != STK_OK)
        return false;
    *slots = self->on_device ? stats.device_slots : stats.slots;
    return *slots > 0 && (self->on_device ? stats.device_slots_held : stats.slots_leased) == *slots;
}

/* Returns whether another thread could release a slot; true if that is unknown. */
static bool has_other_threads(void)
{
    PyObject *function = PySys_GetObject("_current_frames"); /* borrowed */
    PyObject *frames = function ? PyObject_CallNoArgs(function) : NULL;
    const bool others = !frames || PyDict_Size(frames) != 1;

    if (!frames)
        PyErr_Clear(); /* not a KeyboardInterrupt, because a C function handles no signals */
    Py_XDECREF(frames);
    return others;
}

/* status: STK_E_BUSY, or STK_E_TIMEOUT if another thread may still release a slot. */
static stk_error all_held_error(const core_loader *self, int64_t slots, stk_status status)
{
    stk_error err = {.status = status, .record = -1, .offset = -1};
    const char *option = self->on_device ? "device_prefetch" : "prefetch";
    char held[128];

    if (slots == 1)
        PyOS_snprintf(held, sizeof held, "the only slot (loader.%s) is held by a batch or a tensor that still exists",
                      option);
    else
        PyOS_snprintf(held, sizeof held, "all %lld slots (loader.%s) are held by batches or tensors that still exist",
                      (long long)slots, option);
    PyOS_snprintf(err.message, sizeof err.message,
                  "%s, so no batch can be produced: keep batch.clone() instead of the batch, or open the loader with "
                  "copy=True or a larger %s",
                  held, option);
    return err;
}

static void raise_all_held(const core_loader *self, int64_t slots, stk_status status)
{
    const stk_error err = all_held_error(self, slots, status);

    core_raise(&err);
}

/* Called when all slots have been held for `ns`, according to at least two checks. False: an exception is set. Another
 * thread may release a slot, but many programs have threads that never do, such as those of a notebook or a progress
 * bar, so a warning explains the wait. */
static bool may_wait_for_slot(core_loader *self, int64_t slots, int64_t ns)
{
    if (!has_other_threads()) {
        raise_all_held(self, slots, STK_E_BUSY);
        return false;
    }
    if (self->has_warned || ns < WARN_NS)
        return true;
    self->has_warned = true;
    return PyErr_WarnEx(PyExc_RuntimeWarning, all_held_error(self, slots, STK_E_TIMEOUT).message, 1) == 0;
}

static stk_status ask(core_loader *self, stk_stream *stream, int64_t ns, stk_batch **out, stk_error *err)
{
    stk_status status;

    Py_BEGIN_ALLOW_THREADS
    status = stk_loader_next_on(self->loader, stream, ns, out, err);
    Py_END_ALLOW_THREADS
    return status;
}

/* STK_OK: *out is a batch, marked as used. STK_END: no more batches. Otherwise, an exception is set. */
static stk_status wait_for_batch(core_loader *self, stk_stream *stream, int64_t limit, stk_batch **out)
{
    const int64_t start = now_ns();
    int64_t slice = FIRST_SLICE_NS, slots, held_since = -1;
    stk_error err;

    for (;;) {
        const int64_t left = limit < 0 ? INT64_MAX : limit - (now_ns() - start);
        const bool last = left <= slice;
        const stk_status status = ask(self, stream, left < 0 ? 0 : last ? left : slice, out, &err);

        if (status == STK_OK)
            stk_batch_mark_used(*out);
        if (status >= 0)
            return status;
        if (status != STK_E_TIMEOUT) {
            core_raise(&err);
            return status;
        }
        if (PyErr_CheckSignals() < 0)
            return status;
        slice = SLICE_NS;
        if (!all_held(self, &slots)) {
            held_since = -1;
        } else if (held_since < 0) {
            held_since = now_ns();
            slice = FIRST_SLICE_NS;
        } else if (!may_wait_for_slot(self, slots, now_ns() - held_since)) {
            return status;
        }
        if (last) {
            if (held_since >= 0)
                raise_all_held(self, slots, STK_E_TIMEOUT);
            else
                core_raise(&err);
            return status;
        }
    }
}

/* STK_OK: the iterator may take a batch. STK_END: its epoch has ended, perhaps in another thread or by a call to
 * loader.next(). Otherwise, an exception is set. */
static stk_status check_epoch(const core_loader *self, core_epoch *epoch)
{
    if (epoch->number != self->iterators) {
        core_refuse(STK_E_BUSY,
                    "this iterator is invalid, because a newer one of the same loader was created: iterators share the "
                    "loader's position, so a nested loop needs its own loader, stoker.Loader(**loader.config())");
        return STK_E_BUSY;
    }
    if (!epoch->any)
        epoch->epochs_ended = self->epochs_ended;
    return epoch->epochs_ended == self->epochs_ended ? STK_OK : STK_END;
}

/* *stream: the stream in which the batch will be used, retained; NULL: none. */
static stk_status take_in_turn(core_loader *self, core_epoch *epoch, int64_t limit, core_batch *batch,
                               stk_stream **stream)
{
    stk_stream *streams[CORE_MOST_STREAMS] = {NULL};
    stk_batch *taken;
    stk_status status;

    if (epoch && (status = check_epoch(self, epoch)) != STK_OK)
        return status;
    if (self->place == CORE_CUDA && core_current_streams(self, streams) < 0)
        return STK_E_DEVICE;
    stki_stream_retain(*stream = streams[0]);
    status = wait_for_batch(self, streams[0], limit, &taken);
    if (status != STK_OK)
        return status;
    core_batch_set(batch, taken);
    self->epoch = batch->epoch;
    self->is_unfinished = !batch->last_of_epoch;
    self->epochs_ended += batch->last_of_epoch;
    if (epoch)
        epoch->any = true;
    return STK_OK;
}

/* Returns the next batch, for an iterator or (epoch NULL) a call to loader.next(). NULL without an exception: the
 * end. */
static core_batch *take(core_loader *self, core_epoch *epoch, int64_t limit)
{
    const bool forked =
        stki_fork_generation() != self->generation; /* another thread of the parent may have held the lock */
    stk_stream *stream = NULL;
    core_batch *batch;
    stk_status status = STK_E_CLOSED;
    bool taken;

    if (self->closed)
        core_refuse(STK_E_CLOSED, "the loader is closed");
    if (!self->loader || self->closed || !(batch = core_batch_new(self)))
        return core_loader_get((PyObject *)self), NULL;
    if (forked || core_loader_enter(self)) {
        status = take_in_turn(self, epoch, limit, batch, &stream);
        if (!forked)
            core_loader_leave(self);
    }
    taken = status == STK_OK && (!self->copy || core_batch_detach(batch, stream));
    stki_stream_release(stream);
    if (taken)
        return batch;
    Py_DECREF((PyObject *)batch);
    return NULL;
}

static PyObject *next(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"timeout", NULL};
    core_loader *self = (core_loader *)object;
    PyObject *timeout = Py_None;
    int64_t limit = self->timeout_ns;
    core_batch *batch;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:next", keywords, &timeout))
        return NULL;
    if (timeout != Py_None) {
        const double seconds = PyFloat_AsDouble(timeout);

        if (PyErr_Occurred())
            return NULL;
        if (!(seconds >= 0))
            return core_refuse(STK_E_BAD_ARG, "timeout: found a negative number, expected at least 0 seconds");
        limit = seconds < 9e9 ? (int64_t)(seconds * 1e9) : -1;
    }
    if (self->is_alone) {
        PyObject *checked = PyObject_CallMethod(object, "_check_ranks", NULL);

        if (!checked)
            return NULL;
        Py_DECREF(checked);
        self->is_alone = false;
    }
    batch = take(self, NULL, limit);
    if (!batch && !PyErr_Occurred())
        Py_RETURN_NONE;
    return (PyObject *)batch;
}

/* ---- an epoch ---- */

/* Moves to a saved position, or to a step of an epoch. */
static PyObject *move(PyObject *object, const char *text, Py_ssize_t bytes, int64_t epoch, int64_t step)
{
    core_loader *self = (core_loader *)object;
    const bool forked = stki_fork_generation() != self->generation;
    stk_error err;
    stk_status status;

    if (!core_loader_get(object) || (!forked && !core_loader_enter(self)))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    status =
        text ? stk_loader_restore(self->loader, text, bytes, &err) : stk_loader_seek(self->loader, epoch, step, &err);
    Py_END_ALLOW_THREADS
    if (status == STK_OK)
        self->is_unfinished = false;
    if (!forked)
        core_loader_leave(self);
    if (status != STK_OK)
        return core_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *iterate(PyObject *object)
{
    core_loader *loader = (core_loader *)object;
    core_epoch *self;

    if (!core_loader_get(object))
        return NULL;
    if (loader->restart && loader->is_unfinished) {
        PyObject *moved = move(object, NULL, 0, loader->epoch + 1, 0);

        if (!moved)
            return NULL;
        Py_DECREF(moved);
    }
    if (!(self = (core_epoch *)PyType_GenericAlloc(core_epoch_type, 0)))
        return NULL;
    self->loader = (core_loader *)Py_NewRef(object);
    self->number = ++loader->iterators;
    return (PyObject *)self;
}

static void epoch_dealloc(PyObject *object)
{
    Py_XDECREF((PyObject *)((core_epoch *)object)->loader);
    core_free(object);
}

static PyObject *epoch_iterate(PyObject *object)
{
    return Py_NewRef(object);
}

static PyObject *epoch_next(PyObject *object)
{
    core_epoch *self = (core_epoch *)object;
    core_batch *batch;
    stk_error err = {.status = STK_END, .record = -1, .offset = -1};

    if (self->ended || !(batch = take(self->loader, self, self->loader->timeout_ns))) {
        if (self->ended || PyErr_Occurred())
            return NULL;
        self->ended = true;
        if (self->any || stk_loader_steps_per_epoch(self->loader->loader) == 0)
            return NULL;
        PyOS_snprintf(
            err.message, sizeof err.message,
            "the loader has delivered all of its epochs (loader.num_epochs): omit num_epochs for an endless loader, "
            "or go back with loader.seek(epoch)");
        return core_raise(&err);
    }
    self->ended = batch->last_of_epoch;
    return (PyObject *)batch;
}

static PyType_Slot epoch_slots[] = {
    {Py_tp_doc, "The rest of an epoch."},
    {Py_tp_dealloc, (void *)epoch_dealloc},
    {Py_tp_iter, (void *)epoch_iterate},
    {Py_tp_iternext, (void *)epoch_next},
    {0, NULL},
};

PyType_Spec core_epoch_spec = {
    .name = "stoker._core.Epoch",
    .basicsize = sizeof(core_epoch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = epoch_slots,
};

/* ---- positions ---- */

static PyObject *state(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    char saved[STK_STATE_MAX];
    int64_t bytes;
    stk_error err;

    (void)unused;
    if (!loader)
        return NULL;
    if (stk_loader_save(loader, saved, sizeof saved, &bytes, &err) != STK_OK)
        return core_raise(&err);
    return core_own_text(stk_state_json(saved, bytes, NULL));
}

static PyObject *restore(PyObject *object, PyObject *args)
{
    const char *text;
    Py_ssize_t bytes;

    return PyArg_ParseTuple(args, "y#", &text, &bytes) ? move(object, text, bytes, 0, 0) : NULL;
}

static PyObject *seek(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"epoch", "step", NULL};
    long long epoch, step = 0;

    return PyArg_ParseTupleAndKeywords(args, kwargs, "L|L:seek", keywords, &epoch, &step)
               ? move(object, NULL, 0, epoch, step)
               : NULL;
}

static PyObject *refuse_copies(PyObject *object, PyObject *args)
{
    (void)object, (void)args;
    return PyErr_Format(
        PyExc_TypeError,
        "a stoker.Loader cannot be pickled or copied, because it has threads and memory of this process: "
        "send loader.config(), and open stoker.Loader(**config) in the other process");
}

/* ---- the type ---- */

static PyMethodDef methods[] = {
    {"_configure", configure, METH_VARARGS, NULL},
    {"_state", state, METH_NOARGS, NULL},
    {"_restore", restore, METH_VARARGS, NULL},
    {"next", (PyCFunction)(void (*)(void))next, METH_VARARGS | METH_KEYWORDS,
     "next(timeout=None)\n--\n\n"
     "The next batch, of this epoch or the following one; None at the end of the last of num_epochs.\n\n"
     "timeout: seconds; None: loader.timeout. Raises TimeoutError if no batch was ready in that time; next can then be "
     "called again."},
    {"seek", (PyCFunction)(void (*)(void))seek, METH_VARARGS | METH_KEYWORDS,
     "seek(epoch, step=0)\n--\n\nMoves to a step of an epoch; prefetched batches are discarded."},
    {"cancel", cancel, METH_NOARGS,
     "cancel()\n--\n\nAsks the loader to stop: next raises an exception, even if it is already waiting. For use by "
     "other threads and signal handlers."},
    {"close", close_it, METH_NOARGS,
     "close()\n--\n\nStops the workers. Existing batches and tensors stay valid. May be called repeatedly."},
    {"__reduce_ex__", refuse_copies, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *get_names(PyObject *object, void *unused)
{
    (void)unused;
    return core_loader_get(object) ? Py_NewRef(((core_loader *)object)->names) : NULL;
}

static PyObject *get_closed(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((core_loader *)object)->closed);
}

static PyGetSetDef getters[] = {
    {"names", get_names, NULL, "The names of a batch's tensors: those of the fields, then the views. A tuple.", NULL},
    {"closed", get_closed, NULL, "Whether close has been called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A loader; use stoker.Loader."},
    {Py_tp_new, (void *)create},
    {Py_tp_init, (void *)init},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_iter, (void *)iterate},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec core_loader_spec = {
    .name = "stoker._core.Loader",
    .basicsize = sizeof(core_loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};
