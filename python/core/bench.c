/* bench.c: loadbench inside the extension module, and Python iterables as its source. The GIL is handled as in a
 * training loop: the iterable may release it while it produces or waits for a batch, and it is released during a
 * step. */
#include "core.h"
#include "error.h"
#include "loadbench_machine.h"
#include "loadbench_main.h"

struct iterable {
    struct lb_source base;
    const char *name;
    PyObject *make;    /* () -> iterable, called once per repeat */
    PyObject *samples; /* (batch) -> int; NULL: the first axis of the first tensor */
    PyObject *of, *at; /* the iterable, and the iterator over it; NULL: not opened */
    Py_ssize_t length; /* batches per epoch; -1: unknown */
    Py_ssize_t count;  /* batches so far in this epoch */
    int64_t bytes;
    PyThreadState *away;                /* the saved thread state while a step runs */
    PyObject *type, *value, *traceback; /* the exception that was raised */
};

enum { DEPTH = 8 };

static stk_status fail(struct iterable *self, const char *what, stk_error *err)
{
    PyObject *brief;
    stk_status status;

    if (self->type) /* the first exception is reported */
        PyErr_Clear();
    else
        PyErr_Fetch(&self->type, &self->value, &self->traceback);
    PyErr_NormalizeException(&self->type, &self->value, &self->traceback);
    if (self->value && (brief = PyObject_GetAttrString(self->value, "brief"))) { /* a usage error */
        const char *text = PyUnicode_AsUTF8AndSize(brief, NULL);

        status = stki_fail(err, STK_E_CONFIG, "%s", text ? text : "");
        Py_DECREF(brief);
        return status;
    }
    PyErr_Clear();
    return stki_fail(err, STK_E_CANCELLED, "%s: an exception was raised while %s", self->name, what);
}

/* Clears an exception that only means that an object does not have an attribute or a length. False: a different
 * exception is set, such as that of Ctrl-C. */
static bool forgive(void)
{
    if (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
        PyErr_ExceptionMatches(PyExc_NotImplementedError))
        PyErr_Clear();
    return !PyErr_Occurred();
}

/* ---- contents of a batch: tensors in tuples, lists and dicts ---- */

/* Returns the length of the first axis of the first tensor. -1: there is none, or an exception is set. */
static int64_t first_axis(PyObject *item, int depth)
{
    PyObject *shape, *length, *value;
    Py_ssize_t at = 0;
    int64_t out = -1;

    if (PyObject_TypeCheck(item, core_batch_type))
        return ((core_batch *)item)->valid_rows;
    if (depth < DEPTH && PyTuple_Check(item) && PyTuple_Size(item) > 0)
        return first_axis(PyTuple_GetItem(item, 0), depth + 1);
    if (depth < DEPTH && PyList_Check(item) && PyList_Size(item) > 0)
        return first_axis(PyList_GetItem(item, 0), depth + 1);
    if (depth < DEPTH && PyDict_Check(item) && PyDict_Next(item, &at, NULL, &value))
        return first_axis(value, depth + 1);
    if (!(shape = PyObject_GetAttrString(item, "shape"))) {
        (void)forgive();
        return -1;
    }
    if (PySequence_Check(shape) && PySequence_Size(shape) > 0 && (length = PySequence_GetItem(shape, 0)) != NULL) {
        out = PyLong_AsLongLong(length);
        Py_DECREF(length);
    }
    Py_DECREF(shape);
    return out;
}

static int64_t batch_bytes(const core_batch *batch)
{
    int64_t sum = 0;

    for (Py_ssize_t i = 0; batch->batch && i < PyTuple_Size(batch->names); i++) {
        stk_tensor tensor;
        const char *const name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(batch->names, i), NULL);
        if (!name)
            PyErr_Clear(); /* the name cannot be encoded as UTF-8 */
        else if (stk_batch_tensor(batch->batch, name, &tensor, NULL) == STK_OK)
            sum += stk_tensor_numel(&tensor) * stk_dtype_size(tensor.dtype);
    }
    return sum;
}

/* Returns the total bytes of all tensors, which are objects with an attribute nbytes. May leave an exception set. */
static int64_t bytes_of(PyObject *item, int depth)
{
    PyObject *value, *number;
    Py_ssize_t at = 0;
    int64_t sum = 0;

    if (PyObject_TypeCheck(item, core_batch_type))
        return batch_bytes((core_batch *)item);
    if (depth < DEPTH && PyTuple_Check(item)) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(item) && !PyErr_Occurred(); i++)
            sum += bytes_of(PyTuple_GetItem(item, i), depth + 1);
        return sum;
    }
    if (depth < DEPTH && PyList_Check(item)) {
        for (Py_ssize_t i = 0; !PyErr_Occurred() && i < PyList_Size(item); i++)
            sum += bytes_of(PyList_GetItem(item, i), depth + 1);
        return sum;
    }
    if (depth < DEPTH && PyDict_Check(item)) {
        while (!PyErr_Occurred() && PyDict_Next(item, &at, NULL, &value))
            sum += bytes_of(value, depth + 1);
        return sum;
    }
    if ((number = PyObject_GetAttrString(item, "nbytes")) != NULL) {
        sum = PyLong_Check(number) ? PyLong_AsLongLong(number) : 0;
        Py_DECREF(number);
    } else {
        (void)forgive();
    }
    return sum;
}

static int64_t samples_of(struct iterable *self, PyObject *item)
{
    PyObject *number;
    int64_t out;

    if (!self->samples)
        return first_axis(item, 0);
    if (!(number = PyObject_CallFunctionObjArgs(self->samples, item, NULL)))
        return -1;
    out = PyLong_AsLongLong(number);
    Py_DECREF(number);
    return out;
}

/* ---- the source ---- */

static stk_status close_iterable(struct lb_source *source, stk_error *err)
{
    struct iterable *self = (struct iterable *)source;

    (void)err;
    Py_CLEAR(self->at);
    Py_CLEAR(self->of);
    return STK_OK;
}

static stk_status open_iterable(struct lb_source *source, stk_error *err)
{
    struct iterable *self = (struct iterable *)source;

    (void)close_iterable(source, NULL); /* left over from a repeat that failed */
    self->bytes = 0;
    self->count = 0;
    if (!(self->of = PyObject_CallNoArgs(self->make)) || !(self->at = PyObject_GetIter(self->of)))
        return fail(self, "it was opened", err);
    self->length = PyObject_Size(self->of);
    return self->length >= 0 || forgive() ? STK_OK : fail(self, "its length was requested", err);
}

/* Starts the next epoch. False: there is none, because the iterable is its own iterator or the last epoch was empty, or
 * an exception is set. */
static bool begin_epoch(struct iterable *self)
{
    PyObject *next;

    if (self->count == 0 || self->at == self->of)
        return false;
    self->count = 0;
    next = PyObject_GetIter(self->of);
    if (!next || next == self->at) {
        Py_XDECREF(next);
        return false;
    }
    Py_DECREF(self->at);
    self->at = next;
    return true;
}

static stk_status next_item(struct lb_source *source, stk_stream *stream, int64_t timeout_ns, struct lb_taken *out,
                            stk_error *err)
{
    struct iterable *self = (struct iterable *)source;
    PyObject *item;

    (void)stream, (void)timeout_ns;
    while (!(item = PyIter_Next(self->at)) && !PyErr_Occurred() && begin_epoch(self))
        continue;
    if (!item)
        return PyErr_Occurred() ? fail(self, "it produced a batch", err) : STK_END;
    *out = (struct lb_taken){item, samples_of(self, item), ++self->count == self->length};
    if (out->samples < 0) {
        Py_DECREF(item);
        return PyErr_Occurred()
                   ? fail(self, "its samples were counted", err)
                   : stki_fail(err, STK_E_CONFIG,
                               "%s: its batches contain no tensor whose first axis is the number of samples; "
                               "use --samples to say how to count them",
                               self->name);
    }
    self->bytes += bytes_of(item, 0);
    if (!PyErr_Occurred())
        return STK_OK;
    Py_DECREF(item);
    return fail(self, "its bytes were counted", err);
}

static void release_item(struct lb_source *source, const struct lb_taken *taken, stk_stream *stream)
{
    (void)source, (void)stream;
    Py_DECREF((PyObject *)taken->batch);
}

static void stats_of(const struct lb_source *source, stk_loader_stats *out)
{
    out->batch_bytes = ((const struct iterable *)source)->bytes;
}

static void step(struct lb_source *source, bool begins)
{
    struct iterable *self = (struct iterable *)source;

    if (begins)
        self->away = PyEval_SaveThread();
    else
        PyEval_RestoreThread(self->away);
}

/* ---- loadbench ---- */

static PyObject *run(int argc, char **argv, struct iterable *self)
{
    const int code = lb_main(argc, argv, self ? &self->base : NULL);

    if (!self)
        return PyLong_FromLong(code);
    (void)close_iterable(&self->base, NULL);
    if (self->type) {
        PyErr_Restore(self->type, self->value, self->traceback);
        return NULL;
    }
    return PyLong_FromLong(code);
}

PyObject *core_loadbench(PyObject *module, PyObject *args)
{
    PyObject *words, *make = Py_None, *samples = Py_None, *out = NULL;
    struct iterable self = {.base = {open_iterable, close_iterable, next_item, release_item, stats_of, step, NULL}};
    char **argv;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!|OO", &PyList_Type, &words, &make, &samples))
        return NULL;
    const Py_ssize_t count = PyList_Size(words);
    if (!(argv = PyMem_Calloc((size_t)count + 1, sizeof *argv)))
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        if (!(argv[i] = PyBytes_AsString(PyList_GetItem(words, i))))
            goto end;
    if (make != Py_None) {
        self.name = count > 1 ? argv[1] : "the iterable";
        self.make = make;
        self.samples = samples == Py_None ? NULL : samples;
        lb_count_children(true);
    }
    out = run((int)count, argv, make != Py_None ? &self : NULL);
end:
    PyMem_Free(argv);
    return out;
}
