/* tensor.c: one tensor: shape, dtype, strides, and the buffer protocol (PEP 3118), through which NumPy and memoryview
 * use its memory without a copy. */
#include "core.h"
#include "stream.h"

core_tensor *core_tensor_new(const stk_tensor *tensor, stk_batch *batch, core_loader *loader, enum core_place place)
{
    core_tensor *self = (core_tensor *)PyType_GenericAlloc(core_tensor_type, 0);
    stk_error err;

    if (!self)
        return NULL;
    if (batch && stk_batch_retain(batch, NULL, &err) != STK_OK) {
        Py_DECREF((PyObject *)self);
        core_raise(&err);
        return NULL;
    }
    self->tensor = *tensor;
    stk_tensor_retain(&self->tensor);
    self->batch = batch;
    self->place = place;
    self->loader = loader;
    Py_XINCREF((PyObject *)loader);
    return self;
}

core_tensor *core_tensor_copy(const core_tensor *self, stk_stream *stream)
{
    stk_tensor copy;
    stk_stream *before = stream ? stk_stream_set_current(self->tensor.device, stream) : NULL;
    stk_error err;
    stk_status status;
    core_tensor *out;

    stki_stream_retain(stream); /* the loader may be closed meanwhile */
    Py_BEGIN_ALLOW_THREADS
    status = stk_tensor_clone_as(&self->tensor, STK_LAYOUT_KEEP, &copy, &err);
    Py_END_ALLOW_THREADS
    if (stream)
        stk_stream_set_current(self->tensor.device, before);
    if (status != STK_OK) {
        stki_stream_release(stream);
        core_raise(&err);
        return NULL;
    }
    out = core_tensor_new(&copy, NULL, self->loader, self->place == CORE_CUDA ? CORE_CUDA : CORE_ORDINARY);
    stk_tensor_release(&copy);
    if (out)
        out->made_in = stream;
    else
        stki_stream_release(stream);
    return out;
}

static void dealloc(PyObject *object)
{
    core_tensor *self = (core_tensor *)object;

    stk_batch_release(self->batch);
    stk_tensor_release(&self->tensor);
    stki_stream_release(self->made_in);
    Py_XDECREF((PyObject *)self->loader);
    Py_XDECREF(self->keep);
    core_free(object);
}

/* ---- attributes ---- */

static PyObject *axes(const int64_t *numbers, int count)
{
    PyObject *out = PyTuple_New(count);

    for (int i = 0; out && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);

        if (!number || PyTuple_SetItem(out, i, number) < 0)
            Py_CLEAR(out);
    }
    return out;
}

static PyObject *get_shape(PyObject *object, void *unused)
{
    const core_tensor *self = (core_tensor *)object;

    (void)unused;
    return axes(self->tensor.shape, self->tensor.ndim);
}

static PyObject *get_strides(PyObject *object, void *unused)
{
    const core_tensor *self = (core_tensor *)object;

    (void)unused;
    return axes(self->tensor.strides, self->tensor.ndim);
}

static PyObject *get_dtype(PyObject *object, void *unused)
{
    (void)unused;
    return core_text(stk_dtype_long_name(((core_tensor *)object)->tensor.dtype));
}

static PyObject *get_device(PyObject *object, void *unused)
{
    const core_tensor *self = (core_tensor *)object;

    (void)unused;
    return core_text(self->place == CORE_CUDA ? stk_device_name(self->tensor.device) : "cpu");
}

static PyObject *get_ndim(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((core_tensor *)object)->tensor.ndim);
}

static PyObject *get_nbytes(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(stk_tensor_nbytes(&((core_tensor *)object)->tensor));
}

static PyObject *get_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(stk_tensor_numel(&((core_tensor *)object)->tensor));
}

static PyObject *get_readonly(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong((((core_tensor *)object)->tensor.flags & STK_TENSOR_READONLY) != 0);
}

static PyObject *get_pinned(PyObject *object, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((core_tensor *)object)->place == CORE_PINNED);
}

/* NumPy's and PEP 3118's names of dtypes. 64-bit integers are "l" and "L", because NumPy's int64 is C's long; "q" would
 * become longlong, whose scalars are not instances of int64. */
_Static_assert(sizeof(long) == 8, "l and L are the formats of 64-bit integers only if long has 64 bits");
static const struct format {
    stk_dtype dtype;
    const char *buffer, *array;
} formats[] = {
    {STK_BOOL, "?", "|b1"}, {STK_U8, "B", "|u1"},     {STK_I8, "b", "|i1"},  {STK_U16, "H", "<u2"},
    {STK_I16, "h", "<i2"},  {STK_U32, "I", "<u4"},    {STK_I32, "i", "<i4"}, {STK_U64, "L", "<u8"},
    {STK_I64, "l", "<i8"},  {STK_F16, "e", "<f2"},    {STK_F32, "f", "<f4"}, {STK_F64, "d", "<f8"},
    {STK_C64, "Zf", "<c8"}, {STK_C128, "Zd", "<c16"},
};

static const struct format *format_of(stk_dtype dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (formats[i].dtype == dtype)
            return &formats[i];
    return NULL;
}

static PyObject *get_cuda_interface(PyObject *object, void *unused)
{
    const core_tensor *self = (core_tensor *)object;
    const struct format *format = format_of(self->tensor.dtype);

    (void)unused;
    if (self->place != CORE_CUDA || !format)
        return PyErr_Format(PyExc_AttributeError,
                            self->place != CORE_CUDA
                                ? "__cuda_array_interface__: the tensor is in ordinary memory"
                                : "__cuda_array_interface__ does not support its dtype; use DLPack");
    /* No stream: the batch was requested in the consumer's current stream, which already waits for the copy. */
    return Py_BuildValue("{sNsss(KO)sNsisO}", "shape", axes(self->tensor.shape, self->tensor.ndim), "typestr",
                         format->array, "data", (unsigned long long)(uintptr_t)self->tensor.data,
                         self->tensor.flags & STK_TENSOR_READONLY ? Py_True : Py_False, "strides",
                         axes(self->tensor.strides, self->tensor.ndim), "version", 3, "stream", Py_None);
}

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "The lengths of its axes.", NULL},
    {"strides", get_strides, NULL, "The strides of its axes in bytes.", NULL},
    {"dtype", get_dtype, NULL, "The name of its dtype: \"float32\", \"bfloat16\", \"bool\", …", NULL},
    {"device", get_device, NULL, "\"cpu\" or \"cuda:N\".", NULL},
    {"ndim", get_ndim, NULL, "The number of axes.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of its elements.", NULL},
    {"size", get_size, NULL, "The number of elements.", NULL},
    {"readonly", get_readonly, NULL, "Whether its memory is read-only, for example because it is a mapped file.", NULL},
    {"is_pinned", get_pinned, NULL, "Whether it is in page-locked memory, which a GPU can copy asynchronously.", NULL},
    {"__cuda_array_interface__", get_cuda_interface, NULL, "For tensors on a GPU whose dtype exists in NumPy.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- the buffer protocol ---- */

static const char *bits_format(int64_t size)
{
    return size == 1 ? "B" : "H"; /* bf16 and the 8-bit floats */
}

static int refuse(Py_buffer *view, const char *why)
{
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

static bool is_fortran(const stk_tensor *tensor)
{
    return stk_tensor_has_layout(tensor, STK_LAYOUT_COLUMN_MAJOR);
}

static int get_buffer(PyObject *object, Py_buffer *view, int flags)
{
    core_tensor *self = (core_tensor *)object;
    const stk_tensor *tensor = &self->tensor;
    const struct format *format = format_of(tensor->dtype);
    const bool row_major = stk_tensor_is_contiguous(tensor);

    if (self->ended)
        return refuse(view, "the tensor was valid only during the call to the transform");
    if (self->place == CORE_CUDA)
        return refuse(view, "the tensor is on a GPU: copy it to the CPU first");
    if (!format)
        return refuse(view,
                      "buffers have no format for its dtype: use DLPack, or Tensor.numpy(), which uses ml_dtypes");
    if (tensor->flags & STK_TENSOR_SWAPPED)
        return refuse(view, "the tensor is in the opposite byte order: copy it first");
    if ((flags & PyBUF_WRITABLE) && (tensor->flags & STK_TENSOR_READONLY))
        return refuse(view, "the tensor is read-only");
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !row_major)
        return refuse(view, "the tensor is not contiguous, and the consumer does not support strides");
    if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !row_major) ||
        ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran(tensor)) ||
        ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !row_major && !is_fortran(tensor)))
        return refuse(view, "the tensor is not contiguous in the order that the consumer requires");
    *view = (Py_buffer){
        .buf = tensor->data,
        .obj = Py_NewRef(object),
        .len = (Py_ssize_t)stk_tensor_nbytes(tensor),
        .itemsize = (Py_ssize_t)stk_dtype_size(tensor->dtype),
        .readonly = (tensor->flags & STK_TENSOR_READONLY) != 0,
        .ndim = tensor->ndim,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format->buffer : NULL,
        .shape = flags & PyBUF_ND ? (Py_ssize_t *)self->tensor.shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (Py_ssize_t *)self->tensor.strides : NULL,
    };
    self->exports++;
    return 0;
}

static void release_buffer(PyObject *object, Py_buffer *view)
{
    (void)view;
    ((core_tensor *)object)->exports--;
}

/* ---- methods ---- */

/* Returns a tensor over the same memory. A dtype without a buffer format is replaced by an unsigned integer dtype of
 * the same size. */
static PyObject *bits(PyObject *object, PyObject *unused)
{
    core_tensor *self = (core_tensor *)object, *out;
    stk_tensor tensor = self->tensor;

    (void)unused;
    if (!format_of(tensor.dtype))
        tensor.dtype = stk_dtype_find(*bits_format(stk_dtype_size(tensor.dtype)) == 'B' ? "u8" : "u16");
    out = core_tensor_new(&tensor, self->batch, self->loader, self->place);
    if (out && !self->batch && !tensor.storage)
        out->keep = Py_NewRef(object);
    return (PyObject *)out;
}

static PyObject *clone(PyObject *object, PyObject *unused)
{
    const core_tensor *self = (core_tensor *)object;
    stk_stream *streams[CORE_MOST_STREAMS] = {NULL};

    (void)unused;
    if (self->place == CORE_CUDA && core_current_streams(self->loader, streams) < 0)
        return NULL;
    return (PyObject *)core_tensor_copy(self, streams[0]);
}

static PyObject *convert(PyObject *object, enum core_to to)
{
    PyObject *hook = core_hooks.convert[to];

    return hook ? PyObject_CallFunctionObjArgs(hook, object, NULL)
                : PyErr_Format(PyExc_RuntimeError, "the package stoker has been unloaded");
}

static PyObject *as_numpy(PyObject *object, PyObject *unused)
{
    (void)unused;
    return convert(object, CORE_TO_NUMPY);
}

static PyObject *as_torch(PyObject *object, PyObject *unused)
{
    (void)unused;
    return convert(object, CORE_TO_TORCH);
}

static PyObject *as_jax(PyObject *object, PyObject *unused)
{
    (void)unused;
    return convert(object, CORE_TO_JAX);
}

static PyObject *as_array(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"dtype", "copy", NULL};
    PyObject *dtype = Py_None, *copy = Py_None, *array, *out;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:__array__", keywords, &dtype, &copy) ||
        !(array = convert(object, CORE_TO_NUMPY)))
        return NULL;
    if (dtype == Py_None)
        out = copy == Py_True ? PyObject_CallMethod(array, "copy", NULL) : Py_NewRef(array);
    else
        out = PyObject_CallMethod(array, "astype", "OssOO", dtype, "K", "unsafe", Py_True,
                                  copy == Py_True ? Py_True : Py_False);
    if (out && out != array && copy == Py_False) {
        Py_CLEAR(out);
        PyErr_SetString(PyExc_ValueError, "__array__: a different dtype requires a copy, but copy=False was given");
    }
    Py_DECREF(array);
    return out;
}

static PyObject *capsule(PyObject *object, PyObject *args)
{
    core_tensor *self = (core_tensor *)object;
    stk_stream *streams[CORE_MOST_STREAMS];
    int versioned, count;

    if (!PyArg_ParseTuple(args, "p", &versioned) || (count = core_current_streams(self->loader, streams)) < 0)
        return NULL;
    return core_capsule(self, versioned != 0, false, streams, count);
}

static PyObject *refuse_copies(PyObject *object, PyObject *args)
{
    (void)object, (void)args;
    return PyErr_Format(PyExc_TypeError,
                        "a stoker.Tensor cannot be pickled or copied, because its memory belongs to a loader: use "
                        "tensor.clone(), tensor.numpy().copy() or tensor.torch().clone()");
}

static Py_ssize_t length(PyObject *object)
{
    const core_tensor *self = (core_tensor *)object;

    if (self->tensor.ndim > 0)
        return (Py_ssize_t)self->tensor.shape[0];
    PyErr_SetString(PyExc_TypeError, "len() of a tensor without axes");
    return -1;
}

static PyObject *repr(PyObject *object)
{
    PyObject *shape = get_shape(object, NULL), *dtype = get_dtype(object, NULL), *device = get_device(object, NULL);
    PyObject *out =
        shape && dtype && device ? PyUnicode_FromFormat("<stoker.Tensor %U %S on %U>", dtype, shape, device) : NULL;

    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    Py_XDECREF(device);
    return out;
}

static PyObject *refuse_index(PyObject *object, PyObject *index)
{
    (void)object, (void)index;
    return PyErr_Format(PyExc_TypeError, "a stoker.Tensor cannot be indexed: use its numpy() or torch(), or open the "
                                         "loader with to=\"numpy\" or to=\"torch\"");
}

/* A missing attribute is probably a method of an array. */
static PyObject *get_attribute(PyObject *object, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(object, name);

    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError) && PyUnicode_ReadChar(name, 0) != '_')
        return PyErr_Format(
            PyExc_AttributeError,
            "a stoker.Tensor has no attribute '%U': use its numpy() or torch(), or open the loader with "
            "to=\"numpy\" or to=\"torch\"",
            name);
    return found;
}

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))core_tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nAs in the Python array API "
     "standard."},
    {"__dlpack_device__", core_tensor_dlpack_device, METH_NOARGS, "(device type, device id) as in DLPack."},
    {"__array__", (PyCFunction)(void (*)(void))as_array, METH_VARARGS | METH_KEYWORDS,
     "__array__(dtype=None, copy=None)\n--\n\nA NumPy array over the same memory, or a copy."},
    {"__reduce_ex__", refuse_copies, METH_VARARGS, NULL},
    {"numpy", as_numpy, METH_NOARGS,
     "numpy()\n--\n\nA NumPy array over the same memory; bfloat16 and float8 use the dtypes of ml_dtypes."},
    {"torch", as_torch, METH_NOARGS,
     "torch()\n--\n\nA torch tensor over the same memory; a copy if the tensor is read-only."},
    {"jax", as_jax, METH_NOARGS,
     "jax()\n--\n\nA JAX array, over the same memory if JAX allows it; a copy if the tensor is read-only."},
    {"clone", clone, METH_NOARGS, "clone()\n--\n\nA copy in its own memory."},
    {"_bits", bits, METH_NOARGS, "The same memory as unsigned integers, for dtypes without a buffer format."},
    {"_capsule", capsule, METH_VARARGS, "_capsule(versioned): a DLPack capsule for torch's current streams."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "A tensor of a batch or a file, for NumPy, torch, JAX and every library that supports DLPack or "
     "buffers.\n\nIts memory stays valid as long as the tensor, or an object that shares its memory, exists."},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_getset, getters},
    {Py_tp_methods, methods},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getattro, (void *)get_attribute},
    {Py_sq_length, (void *)length},
    {Py_mp_subscript, (void *)refuse_index},
    {Py_bf_getbuffer, (void *)get_buffer},
    {Py_bf_releasebuffer, (void *)release_buffer},
    {0, NULL},
};

PyType_Spec core_tensor_spec = {
    .name = "stoker._core.Tensor",
    .basicsize = sizeof(core_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};
