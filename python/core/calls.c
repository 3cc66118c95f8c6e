/* calls.c: custom transforms in Python. A worker acquires the GIL to run one, so only one runs at a time. */
#include "core.h"
#include "error.h"

/* Returns a tensor that is only valid during a call; after it, nothing may refer to its memory. */
static core_tensor *lend(const stk_tensor *tensor)
{
    return core_tensor_new(tensor, NULL, NULL, CORE_ORDINARY);
}

/* Invalidates the tensor after the call. False: something still refers to it. */
static bool take_back(core_tensor *tensor)
{
    bool free;

    if (!tensor)
        return true;
    free = tensor->exports == 0 && Py_REFCNT((PyObject *)tensor) == 1;
    tensor->ended = true;
    Py_DECREF((PyObject *)tensor);
    return free;
}

static stk_status failed(stk_error *err, const char *message)
{
    if (err) {
        *err = (stk_error){.status = STK_E_BAD_VALUE, .record = -1, .offset = -1};
        PyOS_snprintf(err->message, sizeof err->message, "%s", message);
    }
    return STK_E_BAD_VALUE;
}

/* Converts the current exception to an error with its type and text. */
static stk_status from_exception(stk_error *err)
{
    PyObject *type, *value, *trace, *name, *text, *bytes;
    stk_status status;

    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    name = PyType_GetName((PyTypeObject *)type);
    text = PyUnicode_FromFormat("%S: %S", name ? name : Py_None, value ? value : Py_None);
    bytes = text ? PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace") : NULL;
    if (!bytes)
        PyErr_Clear();
    status = failed(err, bytes ? PyBytes_AsString(bytes) : "an exception");
    if (bytes && value &&
        core_hooks.raised) { /* so that the error has the exception as its cause, with the traceback */
        PyObject *quoted = core_text(PyBytes_AsString(bytes)), *kept = NULL;

        if (trace)
            PyException_SetTraceback(value, trace);
        if (quoted)
            kept = PyObject_CallFunctionObjArgs(core_hooks.raised, value, quoted, NULL);
        if (!kept)
            PyErr_Clear();
        Py_XDECREF(kept);
        Py_XDECREF(quoted);
    }
    if (PyErr_GivenExceptionMatches(type, PyExc_MemoryError)) {
        status = STK_E_MEMORY;
        if (err)
            err->status = status;
    }
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

/* Calls context(in, out, random, sample). If Ctrl-C interrupts it (a loader without workers runs in the program's own
 * thread), the call is repeated, and the signal is raised again for the caller of next. */
static stk_status call(PyObject *function, const stk_tensor *in, const stk_tensor *out, const stk_transform_call *what,
                       stk_error *err)
{
    core_tensor *from = lend(in), *to = from ? lend(out) : NULL;
    PyObject *done = NULL;
    bool interrupted = false, back;
    stk_status status = STK_OK;

    while (to && !done) {
        done = PyObject_CallFunction(function, "OOKL", (PyObject *)from, (PyObject *)to,
                                     (unsigned long long)what->random, (long long)what->sample);
        if (done || interrupted || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
            break;
        PyErr_Clear();
        interrupted = true;
    }
    if (!done)
        status = from_exception(err);
    Py_XDECREF(done);
    back = take_back(from);
    if ((!take_back(to) || !back) && status == STK_OK)
        status = failed(err, "the function kept a reference to its input, whose memory is reused: keep a copy instead");
    if (interrupted)
        PyErr_SetInterrupt();
    return status;
}

static stk_status run(void *context, const stk_transform_call *what, const stk_tensor *in, stk_tensor *out,
                      stk_error *err)
{
    PyGILState_STATE gil;
    stk_tensor native = *in, target = *out;
    stk_status status = STK_OK;

    stk_tensor_retain(&native);
    stk_tensor_retain(&target);
    if (in->flags & STK_TENSOR_SWAPPED) {
        stk_tensor_release(&native);
        status = stk_tensor_clone(in, &native, err);
    }
    if (status == STK_OK) {
        native.flags |= STK_TENSOR_READONLY;
        gil = PyGILState_Ensure();
        status = call(PyTuple_GetItem(context, 0), &native, &target, what, err);
        PyGILState_Release(gil);
        stk_tensor_release(&native);
    }
    stk_tensor_release(&target);
    return status;
}

/* Reads (name of the dtype, shape), the result of the function. */
static stk_status read_form(PyObject *form, stk_tensor *out, stk_error *err)
{
    const char *dtype;
    PyObject *shape;

    if (!PyArg_ParseTuple(form, "sO!", &dtype, &PyTuple_Type, &shape))
        return from_exception(err);
    out->dtype = stk_dtype_find(dtype);
    if (out->dtype == STK_DTYPE_NONE)
        return failed(err, STKI_TEXT("dtype: found %.32s, expected a dtype such as float32 or uint8", dtype));
    if (PyTuple_Size(shape) > STK_MAX_DIMS)
        return failed(err, "the transform's result has too many axes");
    out->ndim = (int32_t)PyTuple_Size(shape);
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    return PyErr_Occurred() ? from_exception(err) : STK_OK;
}

static stk_status shape(void *context, const stk_tensor *in, stk_tensor *out, stk_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *axes = PyTuple_New(in->ndim), *form = NULL;
    stk_status status;

    for (int i = 0; axes && i < in->ndim; i++)
        if (PyTuple_SetItem(axes, i, PyLong_FromLongLong(in->shape[i])) < 0)
            Py_CLEAR(axes);
    if (axes)
        form = PyObject_CallFunction(PyTuple_GetItem(context, 1), "sO", stk_dtype_long_name(in->dtype), axes);
    status = form ? read_form(form, out, err) : from_exception(err);
    Py_XDECREF(form);
    Py_XDECREF(axes);
    PyGILState_Release(gil);
    return status;
}

/* register(name, run, shape): the functions are never freed, because loaders may use them at any time. */
PyObject *core_register(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *run_it, *shape_it, *context;
    stk_transform transform = STK_TRANSFORM_INIT;
    stk_error err;

    (void)module;
    if (!PyArg_ParseTuple(args, "sOO", &name, &run_it, &shape_it) || !(context = PyTuple_Pack(2, run_it, shape_it)))
        return NULL;
    transform.name = name;
    transform.shape = shape;
    transform.run = run;
    transform.context = context;
    if (stk_transform_register(&transform, &err) == STK_OK)
        Py_RETURN_NONE;
    Py_DECREF(context);
    return core_raise(&err);
}
