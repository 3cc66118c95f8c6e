/* batch.c: a batch as a mapping. Its tensors are created on first use and cached. The slot is reused after the batch
 * and all objects that share its memory have been deleted. */
#include "core.h"
#include "stream.h"

core_batch *core_batch_new(core_loader *loader)
{
    PyTypeObject *type = core_hooks.batch_type ? (PyTypeObject *)core_hooks.batch_type : core_batch_type;
    core_batch *self = (core_batch *)PyType_GenericAlloc(type, 0);

    if (!self)
        return NULL;
    self->loader = loader;
    self->names = loader->names;
    Py_INCREF((PyObject *)loader);
    Py_INCREF(self->names);
    self->device_slot = -1;
    if ((self->values = PyDict_New()))
        return self;
    Py_DECREF((PyObject *)self);
    return NULL;
}

void core_batch_set(core_batch *self, stk_batch *batch)
{
    self->batch = batch;
    self->rows = stk_batch_rows(batch);
    self->valid_rows = stk_batch_valid_rows(batch);
    self->epoch = stk_batch_epoch(batch);
    self->step = stk_batch_step(batch);
    self->global_step = stk_batch_global_step(batch);
    self->last_of_epoch = stk_batch_last_of_epoch(batch);
    self->device_slot = stk_batch_device_slot(batch);
    self->failed = stk_batch_failed(batch);
}

/* Releases this object's reference to the batch, after the work queued in torch's current streams. */
static void end_hold(core_batch *self)
{
    stk_stream *streams[CORE_MOST_STREAMS];
    stk_batch *batch = self->batch;
    PyObject *type, *value, *trace;
    int count;

    self->batch = NULL;
    if (!batch)
        return;
    PyErr_Fetch(&type, &value, &trace);
    count = core_current_streams(self->loader, streams);
    if (count < 0) {
        PyErr_WriteUnraisable((PyObject *)self);
        count = 0;
    }
    PyErr_Restore(type, value, trace);
    for (int i = 1; i < count; i++)
        if (stk_batch_retain(batch, NULL, NULL) == STK_OK)
            stk_batch_release_on(batch, streams[i]);
    stk_batch_release_on(batch, count ? streams[0] : NULL);
}

static void dealloc(PyObject *object)
{
    core_batch *self = (core_batch *)object;

    Py_XDECREF(self->values);
    Py_XDECREF(self->more);
    Py_XDECREF(self->tensors);
    Py_XDECREF(self->row_tensors);
    end_hold(self);
    Py_XDECREF(self->names);
    Py_XDECREF((PyObject *)self->loader);
    core_free(object);
}

static bool check(const core_batch *self)
{
    if (!self->released)
        return true;
    core_refuse(STK_E_CLOSED, "the batch has been released");
    return false;
}

/* ---- tensors ---- */

/* Converts to the library that `to` names. Steals the reference to the tensor. */
static PyObject *convert(const core_batch *self, core_tensor *tensor)
{
    const int to = self->loader ? self->loader->to : CORE_TO_NONE;
    PyObject *out;

    if (!tensor || to == CORE_TO_NONE)
        return (PyObject *)tensor;
    if (to == CORE_TO_TORCH && core_hooks.to_torch && tensor->tensor.dtype != STK_F8_E4M3FN &&
        tensor->tensor.dtype != STK_F8_E5M2) { /* the fast path */
        stk_stream *streams[CORE_MOST_STREAMS];
        const int count = tensor->place == CORE_ORDINARY ? 0 : core_current_streams(tensor->loader, streams);
        PyObject *capsule = count < 0 ? NULL : core_capsule(tensor, false, false, streams, count);

        out = capsule ? PyObject_CallFunctionObjArgs(core_hooks.to_torch, capsule, NULL) : NULL;
        Py_XDECREF(capsule);
    } else {
        out = PyObject_CallFunctionObjArgs(core_hooks.convert[to], (PyObject *)tensor, NULL);
    }
    Py_DECREF((PyObject *)tensor);
    return out;
}

static core_tensor *tensor_of(const core_batch *self, PyObject *name)
{
    stk_tensor tensor;
    stk_error err;
    PyObject *bytes = PyUnicode_AsUTF8String(name);

    if (!bytes)
        return NULL;
    if (stk_batch_tensor(self->batch, PyBytes_AsString(bytes), &tensor, &err) != STK_OK) {
        Py_DECREF(bytes);
        core_raise(&err);
        return NULL;
    }
    Py_DECREF(bytes);
    return core_tensor_new(&tensor, self->batch, self->loader, self->loader->place);
}

static PyObject *unknown(const core_batch *self, PyObject *name)
{
    PyObject *hint = self->loader && self->loader->ragged && PyUnicode_Check(name)
                         ? PyDict_GetItemWithError(self->loader->ragged, name)
                         : NULL;

    PyObject *message = NULL, *exception = NULL;

    if (hint)
        message = Py_NewRef(hint);
    else if (!PyErr_Occurred())
        message = PyUnicode_FromFormat("found the name %R, expected one of %R", name, self->names);
    if (message && core_hooks.key_error)
        exception = PyObject_CallFunction(core_hooks.key_error, "Os", message, stk_status_name(STK_E_NOT_FOUND));
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    Py_XDECREF(message);
    return NULL;
}

static PyObject *subscript(PyObject *object, PyObject *name)
{
    core_batch *self = (core_batch *)object;
    PyObject *value = PyDict_GetItemWithError(self->values, name);
    int known;

    if (value)
        return Py_NewRef(value);
    if (PyErr_Occurred() || !check(self))
        return NULL;
    known = PyUnicode_Check(name) ? PySequence_Contains(self->names, name) : 0;
    if (known <= 0)
        return known < 0 ? NULL : unknown(self, name);
    if (self->tensors) {
        PyObject *tensor = PyDict_GetItemWithError(self->tensors, name);

        value = tensor ? convert(self, (core_tensor *)Py_NewRef(tensor)) : NULL;
    } else {
        value = convert(self, tensor_of(self, name));
    }
    if (value && PyDict_SetItem(self->values, name, value) < 0)
        Py_CLEAR(value);
    return value;
}

static Py_ssize_t length(PyObject *object)
{
    return PyTuple_Size(((core_batch *)object)->names);
}

static int contains(PyObject *object, PyObject *name)
{
    return PySequence_Contains(((core_batch *)object)->names, name);
}

static PyObject *iterate(PyObject *object)
{
    return PyObject_GetIter(((core_batch *)object)->names);
}

/* ---- indices, mask, sources ---- */

/* Returns a tensor over `data`, which has one number per row. */
static core_tensor *rows_of(const core_batch *self, const void *data, stk_dtype dtype)
{
    stk_tensor tensor;
    stk_error err;
    const int64_t rows = self->rows;

    if (stk_tensor_borrow((void *)(uintptr_t)data, dtype, 1, &rows, NULL, &tensor, &err) == STK_OK)
        return core_tensor_new(&tensor, self->batch, self->loader, CORE_ORDINARY);
    core_raise(&err);
    return NULL;
}

static core_tensor *make_more(const core_batch *self, const char *name)
{
    if (strcmp(name, "indices") == 0)
        return rows_of(self, stk_batch_indices(self->batch), STK_I64);
    if (strcmp(name, "sources") == 0)
        return rows_of(self, stk_batch_sources(self->batch), STK_I32);
    return rows_of(self, stk_batch_mask(self->batch), STK_BOOL);
}

static const char *const more_names[] = {"indices", "mask", "sources"};

static PyObject *get_more(PyObject *object, void *name)
{
    core_batch *self = (core_batch *)object;
    PyObject *value = self->more ? PyDict_GetItemString(self->more, name) : NULL;
    PyObject *kept = self->row_tensors ? PyDict_GetItemString(self->row_tensors, name) : NULL;

    if (value)
        return Py_NewRef(value);
    if (!check(self) || (!self->more && !(self->more = PyDict_New())))
        return NULL;
    if (!self->batch && !kept)
        return PyErr_Format(PyExc_AttributeError, "this batch has no %s", (const char *)name);
    value = convert(self, kept ? (core_tensor *)Py_NewRef(kept) : make_more(self, name));
    if (value && PyDict_SetItemString(self->more, name, value) < 0)
        Py_CLEAR(value);
    return value;
}

/* ---- copies ---- */

static bool set_copy(PyObject *copies, PyObject *name, core_tensor *tensor, stk_stream *stream)
{
    PyObject *copy = tensor ? (PyObject *)core_tensor_copy(tensor, tensor->place == CORE_CUDA ? stream : NULL) : NULL;
    const bool done = copy && name && PyDict_SetItem(copies, name, copy) == 0;

    Py_XDECREF((PyObject *)tensor);
    Py_XDECREF(copy);
    return done;
}

/* Fills tensors and row_tensors of `to` with copies, made in `stream` if they are on a device. Runs no Python code, so
 * that no signal can interrupt it; the copies are converted on first use. */
static bool copy_all(const core_batch *from, core_batch *to, stk_stream *stream)
{
    PyObject *const tensors = PyDict_New(), *const rows = PyDict_New();
    bool done = tensors && rows;

    for (Py_ssize_t i = 0; done && i < PyTuple_Size(from->names); i++) {
        PyObject *name = PyTuple_GetItem(from->names, i);
        PyObject *kept = from->tensors ? PyDict_GetItemWithError(from->tensors, name) : NULL;

        done = set_copy(tensors, name, kept ? (core_tensor *)Py_NewRef(kept) : tensor_of(from, name), stream);
    }
    for (size_t i = 0; done && i < sizeof more_names / sizeof more_names[0]; i++) {
        PyObject *name = PyUnicode_FromString(more_names[i]);
        PyObject *kept = name && from->row_tensors ? PyDict_GetItemWithError(from->row_tensors, name) : NULL;

        done = set_copy(rows, name, kept ? (core_tensor *)Py_NewRef(kept) : make_more(from, more_names[i]), stream);
        Py_XDECREF(name);
    }
    if (!done) {
        Py_XDECREF(tensors);
        Py_XDECREF(rows);
        return false;
    }
    to->tensors = tensors;
    to->row_tensors = rows;
    return true;
}

bool core_batch_detach(core_batch *self, stk_stream *stream)
{
    if (!copy_all(self, self, stream))
        return false;
    self->device_slot = -1;
    stk_batch_release_on(self->batch, stream);
    self->batch = NULL;
    return true;
}

static PyObject *refuse_moved(void)
{
    return core_refuse(STK_E_UNSUPPORTED, "the batch was moved by batch.to(), so its tensors are torch tensors: use "
                                          "batch[name] instead of clone() or tensor()");
}

/* Returns a batch with the same numbers (rows, epoch, step, …) and without tensors. */
static core_batch *twin(const core_batch *self)
{
    core_batch *out = core_batch_new(self->loader);

    if (!out)
        return NULL;
    out->rows = self->rows, out->valid_rows = self->valid_rows;
    out->epoch = self->epoch, out->step = self->step, out->global_step = self->global_step;
    out->last_of_epoch = self->last_of_epoch;
    out->failed = self->failed;
    return out;
}

static PyObject *clone(PyObject *object, PyObject *unused)
{
    const core_batch *self = (core_batch *)object;
    stk_stream *streams[CORE_MOST_STREAMS] = {NULL};
    core_batch *out;
    bool copied;

    (void)unused;
    if (!check(self))
        return NULL;
    if (!self->batch && !self->tensors)
        return refuse_moved();
    if ((self->loader->place == CORE_CUDA && core_current_streams(self->loader, streams) < 0) || !(out = twin(self)))
        return NULL;
    stki_stream_retain(streams[0]);
    copied = copy_all(self, out, streams[0]);
    stki_stream_release(streams[0]);
    if (copied)
        return (PyObject *)out;
    Py_DECREF((PyObject *)out);
    return NULL;
}

/* with_values(values, more): a batch with the same numbers and the tensors of these dicts. */
static PyObject *with_values(PyObject *object, PyObject *args)
{
    const core_batch *self = (core_batch *)object;
    PyObject *values, *more;
    core_batch *out;

    if (!PyArg_ParseTuple(args, "O!O!", &PyDict_Type, &values, &PyDict_Type, &more) || !(out = twin(self)))
        return NULL;
    Py_XDECREF(out->values);
    out->values = Py_NewRef(values);
    out->more = Py_NewRef(more);
    return (PyObject *)out;
}

static PyObject *release(PyObject *object, PyObject *unused)
{
    core_batch *self = (core_batch *)object;

    (void)unused;
    self->released = true;
    PyDict_Clear(self->values);
    Py_CLEAR(self->more);
    Py_CLEAR(self->tensors);
    Py_CLEAR(self->row_tensors);
    end_hold(self);
    Py_RETURN_NONE;
}

static PyObject *tensor(PyObject *object, PyObject *name)
{
    core_batch *self = (core_batch *)object;
    PyObject *kept;
    int known;

    if (!check(self) || (known = PySequence_Contains(self->names, name)) < 0)
        return NULL;
    if (!known)
        return unknown(self, name);
    if (self->tensors && (kept = PyDict_GetItemWithError(self->tensors, name)))
        return Py_NewRef(kept);
    if (self->batch)
        return (PyObject *)tensor_of(self, name);
    return refuse_moved();
}

/* (field index): [(path, record) of each row, …] */
static PyObject *origins(PyObject *object, PyObject *args)
{
    const core_batch *self = (core_batch *)object;
    char path[4096];
    int64_t record;
    int field;
    stk_error err;
    PyObject *out;

    if (!PyArg_ParseTuple(args, "i", &field) || !check(self))
        return NULL;
    if (!self->batch)
        return core_refuse(
            STK_E_UNSUPPORTED,
            "origins: a copy of a batch does not record the files of its samples: pass the original batch");
    out = PyList_New((Py_ssize_t)self->rows);
    for (Py_ssize_t i = 0; out && i < (Py_ssize_t)self->rows; i++) {
        PyObject *item;

        if (stk_batch_origin(self->batch, field, i, path, sizeof path, &record, &err) != STK_OK) {
            Py_DECREF(out);
            return core_raise(&err);
        }
        item = Py_BuildValue("(NL)", core_text(path), (long long)record);
        if (!item || PyList_SetItem(out, i, item) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *refuse_copies(PyObject *object, PyObject *args)
{
    (void)object, (void)args;
    return PyErr_Format(
        PyExc_TypeError,
        "a stoker.Batch cannot be pickled or copied, because its tensors are in the loader's memory: use "
        "batch.clone() for a copy in its own memory, or dict(batch) and copies of its tensors");
}

static PyMethodDef methods[] = {
    {"clone", clone, METH_NOARGS, "clone()\n--\n\nA copy in its own memory, which does not hold a slot of the loader."},
    {"release", release, METH_NOARGS,
     "release()\n--\n\nReleases the slot before the batch is deleted. Existing tensors of the batch stay valid and "
     "hold the slot."},
    {"tensor", tensor, METH_O, "tensor(name)\n--\n\nThe tensor as a stoker.Tensor, independent of `to`."},
    {"_origins", origins, METH_VARARGS, NULL},
    {"_with_values", with_values, METH_VARARGS, NULL},
    {"__reduce_ex__", refuse_copies, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

#define NUMBER(name, doc)                                                        \
    {                                                                            \
#name, T_LONGLONG, (Py_ssize_t)offsetof(core_batch, name), READONLY, doc \
    }

static PyMemberDef members[] = {
    NUMBER(rows, "Number of rows, including padding; can be 0 on one of several ranks."),
    NUMBER(valid_rows, "Number of rows without padding."),
    NUMBER(epoch, "The epoch, from 0."),
    NUMBER(step, "The step in its epoch, from 0."),
    NUMBER(failed, "Number of samples that failed and were skipped or replaced."),
    NUMBER(global_step, "The step over all epochs, from 0."),
    NUMBER(device_slot, "Index among the device_prefetch slots on the device; -1: in host memory."),
    {"last_of_epoch", T_BOOL, (Py_ssize_t)offsetof(core_batch, last_of_epoch), READONLY,
     "Whether this is the last batch of its epoch."},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"indices", get_more, NULL, "int64 [rows]: the sample or window number of each row.", "indices"},
    {"mask", get_more, NULL, "bool [rows]: false for rows of padding.", "mask"},
    {"sources", get_more, NULL, "int32 [rows]: the index of each row's data set.", "sources"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A mapping of names to tensors."},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getters},
    {Py_tp_iter, (void *)iterate},
    {Py_mp_subscript, (void *)subscript},
    {Py_mp_length, (void *)length},
    {Py_sq_contains, (void *)contains},
    {0, NULL},
};

PyType_Spec core_batch_spec = {
    .name = "stoker._core.Batch",
    .basicsize = sizeof(core_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
