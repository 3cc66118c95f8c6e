/* dlpack.c: tensors as DLPack capsules, with the versioned struct (1.1) if the consumer requests it, and the older one
 * otherwise. A capsule that is not consumed deletes its tensor. */
#include "core.h"
#include "dlpack_type.h"
#include "stream.h"
#include <stddef.h>
#include <stdlib.h>

enum { READ_ONLY = STK_DLPACK_READ_ONLY, ON_CPU = 1 };

/* DLManagedTensor, before version 1. */
struct plain {
    stk_dlpack_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct plain *self);
};

/* An exported tensor, in one allocation. */
struct export
{
    union {
        stk_dlpack_versioned versioned;
        struct plain plain;
    } managed;            /* first, because the deleters cast its address to the struct */
    stk_batch *batch;     /* held once per stream, at least once; or NULL */
    stk_storage *storage; /* a reference, or NULL */
    int stream_count;
    stk_stream *streams[CORE_MOST_STREAMS];
    int64_t axes[]; /* shape, strides */
};

static void end_holds(struct export *e, int count)
{
    for (int i = 0; i < count; i++) {
        stk_batch_release_on(e->batch, e->streams[i]);
        stki_stream_release(e->streams[i]);
    }
}

static void delete_export(struct export *e)
{
    if (e->batch)
        end_holds(e, e->stream_count);
    stk_storage_release(e->storage);
    free(e);
}

static void delete_versioned(stk_dlpack_versioned *self)
{
    delete_export((struct export *)(void *)self);
}

static void delete_plain(struct plain *self)
{
    delete_export((struct export *)(void *)self);
}

static const char *const names[] = {"dltensor", "dltensor_versioned"};

static void drop_capsule(PyObject *capsule)
{
    for (int i = 0; i < 2; i++)
        if (PyCapsule_IsValid(capsule, names[i])) /* otherwise a consumer has taken and renamed it */
            delete_export(PyCapsule_GetPointer(capsule, names[i]));
}

/* Retains the batch once per stream. */
static bool hold(struct export *e, stk_stream *const *streams, int count, stk_error *err)
{
    e->stream_count = count ? count : 1;
    for (int i = 0; i < e->stream_count; i++) {
        e->streams[i] = count ? streams[i] : NULL;
        if (stk_batch_retain(e->batch, e->streams[i], err) != STK_OK) {
            end_holds(e, i);
            return false;
        }
        stki_stream_retain(e->streams[i]);
    }
    return true;
}

/* For a copy on a device: makes the streams, which the caller has retained, wait for the stream of the copy, and keeps
 * its memory until they are done. */
static bool order(const core_tensor *self, stk_stream *const *streams, int count, stk_error *err)
{
    stk_status status = STK_OK;

    Py_BEGIN_ALLOW_THREADS
    for (int i = 0; i < count && status == STK_OK; i++) {
        if (streams[i] == self->made_in)
            continue;
        status = stk_tensor_record_stream(&self->tensor, streams[i], err);
        if (status == STK_OK && self->made_in)
            status = stki_stream_follow(streams[i], self->made_in, err);
    }
    Py_END_ALLOW_THREADS
    return status == STK_OK;
}

static bool describe(const core_tensor *self, bool versioned, stk_dlpack_tensor *out, int64_t *axes)
{
    const stk_tensor *tensor = &self->tensor;
    const int64_t size = stk_dtype_size(tensor->dtype);
    stki_dlpack_type type;

    /* Version 0.6 has neither bool nor 8-bit floats, but consumers of unversioned capsules accept the type code of
     * bool. */
    if (!stki_dlpack_type_of(tensor->dtype, versioned || tensor->dtype == STK_BOOL, &type)) {
        PyErr_Format(PyExc_BufferError,
                     "%s: DLPack before version 1 has no such dtype; use a consumer that passes max_version=(1, 1)",
                     stk_dtype_long_name(tensor->dtype));
        return false;
    }
    if (tensor->flags & STK_TENSOR_SWAPPED) {
        PyErr_SetString(PyExc_BufferError, "the tensor is in the opposite byte order; copy it first (tensor.clone())");
        return false;
    }
    if (!versioned && (tensor->flags & STK_TENSOR_READONLY)) {
        PyErr_SetString(
            PyExc_BufferError,
            "the tensor is read-only, which DLPack before version 1 cannot express; copy it (tensor.clone())");
        return false;
    }
    *out = (stk_dlpack_tensor){.data = tensor->data,
                               .device_type = self->place == CORE_CUDA ? STK_DEVICE_CUDA : ON_CPU,
                               .device_id = self->place == CORE_CUDA ? stk_device_index(tensor->device) : 0,
                               .ndim = tensor->ndim,
                               .code = type.code,
                               .bits = type.bits,
                               .lanes = 1,
                               .shape = axes,
                               .strides = axes + tensor->ndim};
    for (int i = 0; i < tensor->ndim; i++) {
        axes[i] = tensor->shape[i];
        axes[tensor->ndim + i] = tensor->strides[i] / size;
        if (tensor->strides[i] % size != 0 && tensor->shape[i] > 1) {
            PyErr_SetString(PyExc_BufferError,
                            "DLPack strides are in elements, but these are not multiples of the element size; copy it "
                            "(tensor.clone())");
            return false;
        }
    }
    return true;
}

PyObject *core_capsule(core_tensor *self, bool versioned, bool copied, stk_stream *const *streams, int count)
{
    const size_t bytes = sizeof(struct export) + 2 * (size_t)self->tensor.ndim * sizeof(int64_t);
    struct export *e = malloc(bytes);
    stk_dlpack_tensor *described;
    stk_error err;
    PyObject *capsule;
    bool ready;

    if (!e)
        return PyErr_NoMemory();
    memset(e, 0, sizeof *e);
    if (versioned) {
        e->managed.versioned = (stk_dlpack_versioned){
            .major = STK_DLPACK_MAJOR,
            .minor = STK_DLPACK_MINOR,
            .manager_ctx = e,
            .deleter = delete_versioned,
            .flags = (self->tensor.flags & STK_TENSOR_READONLY ? (uint64_t)READ_ONLY : 0) |
                     (copied ? (uint64_t)STK_DLPACK_IS_COPIED : 0),
        };
        described = &e->managed.versioned.tensor;
    } else {
        e->managed.plain = (struct plain){.manager_ctx = e, .deleter = delete_plain};
        described = &e->managed.plain.tensor;
    }
    e->batch = self->batch;
    if (!describe(self, versioned, described, e->axes)) {
        free(e);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        stki_stream_retain(streams[i]);
    ready = e->batch ? hold(e, streams, count, &err) : self->place != CORE_CUDA || order(self, streams, count, &err);
    for (int i = 0; i < count; i++)
        stki_stream_release(streams[i]);
    if (!ready) {
        free(e);
        return core_raise(&err);
    }
    e->storage = self->tensor.storage;
    if (e->storage)
        stk_storage_retain(e->storage);
    capsule = PyCapsule_New(e, names[versioned], drop_capsule);
    if (!capsule)
        delete_export(e);
    return capsule;
}

PyObject *core_tensor_dlpack_device(PyObject *object, PyObject *unused)
{
    const core_tensor *self = (core_tensor *)object;

    (void)unused;
    return self->place == CORE_CUDA ? Py_BuildValue("(ii)", STK_DEVICE_CUDA, stk_device_index(self->tensor.device))
                                    : Py_BuildValue("(ii)", ON_CPU, 0);
}

static bool is_tuple(PyObject *value, const char *name)
{
    if (PyTuple_Check(value))
        return true;
    PyErr_Format(PyExc_TypeError, "__dlpack__: %s: found %R, expected a tuple of two integers", name, value);
    return false;
}

/* Sets *out to whether the consumer accepts versioned capsules. False: an exception is set. */
static bool wants_versions(PyObject *max_version, bool *out)
{
    int major = 0, minor = 0;

    if (max_version != Py_None && !is_tuple(max_version, "max_version"))
        return false;
    if (max_version != Py_None && !PyArg_ParseTuple(max_version, "ii", &major, &minor))
        return false;
    *out = major >= 1;
    return true;
}

/* Checks that the consumer requests the device of the tensor. False: an exception is set. */
static bool is_there(const core_tensor *self, PyObject *device)
{
    int type, index;

    if (device == Py_None)
        return true;
    if (!is_tuple(device, "dl_device") || !PyArg_ParseTuple(device, "ii", &type, &index))
        return false;
    if (self->place == CORE_CUDA ? type == STK_DEVICE_CUDA && index == stk_device_index(self->tensor.device)
                                 : type == ON_CPU)
        return true;
    PyErr_SetString(PyExc_BufferError,
                    "__dlpack__: the tensor is not on dl_device; import it on its own device and then move it");
    return false;
}

PyObject *core_tensor_dlpack(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"stream", "max_version", "dl_device", "copy", NULL};
    core_tensor *self = (core_tensor *)object, *copy;
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copied = Py_None, *capsule;
    stk_stream *streams[CORE_MOST_STREAMS] = {NULL};
    int count = 0, wants_copy;
    bool versioned;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", keywords, &stream, &max_version, &device,
                                     &copied) ||
        !wants_versions(max_version, &versioned) || !is_there(self, device) ||
        (wants_copy = PyObject_IsTrue(copied)) < 0)
        return NULL;
    if (self->ended)
        return PyErr_Format(PyExc_ValueError,
                            "the tensor was valid only during the call to the transform; copy it there");
    if (!self->batch && !self->tensor.storage)
        return PyErr_Format(PyExc_BufferError, "the tensor is valid only during the call to the transform; copy it");
    if (self->place == CORE_CUDA) {
        if (!core_stream_from(stream, self->loader, &streams[0]))
            return NULL;
        count = streams[0] != NULL;
    } else if ((count = core_current_streams(self->loader, streams)) < 0) {
        return NULL;
    }
    if (!wants_copy)
        return core_capsule(self, versioned, false, streams, count);
    if (self->place != CORE_CUDA)
        count = 0, streams[0] = NULL;
    stki_stream_retain(streams[0]);
    copy = core_tensor_copy(self, streams[0]);
    capsule = copy ? core_capsule(copy, versioned, true, streams, count) : NULL;
    stki_stream_release(streams[0]);
    Py_XDECREF((PyObject *)copy);
    return capsule;
}
