/* queries.c: methods and attributes that describe a loader. Longer results are JSON, which the package's Python code
 * parses. */
#include "core.h"
#include "open_lists.h"

/* ---- strings ---- */

static PyObject *options_json(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);

    (void)unused;
    return loader ? core_text(stk_loader_options_json(loader)) : NULL;
}

static PyObject *explain(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    char *text;

    (void)unused;
    if (!loader)
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    text = stk_loader_explain(loader);
    Py_END_ALLOW_THREADS
    return core_own_text(text);
}

static PyObject *option(PyObject *object, PyObject *args)
{
    stk_loader *loader = core_loader_get(object);
    const char *name;
    stk_error err;
    char *text;

    if (!loader || !PyArg_ParseTuple(args, "s", &name))
        return NULL;
    text = stk_loader_option(loader, name, &err);
    return text ? core_own_text(text) : core_raise(&err);
}

/* [(note, whether it requires no attention), …] */
static PyObject *notes(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    PyObject *out = loader ? PyList_New(0) : NULL;

    (void)unused;
    for (int i = 0; out && i < stk_loader_note_count(loader); i++) {
        PyObject *note = Py_BuildValue("(NO)", core_text(stk_loader_note(loader, i)),
                                       stki_loader_note_is_fact(loader, i) ? Py_True : Py_False);

        if (!note || PyList_Append(out, note) < 0)
            Py_CLEAR(out);
        Py_XDECREF(note);
    }
    return out;
}

static PyObject *classes(PyObject *object, PyObject *args)
{
    stk_loader *loader = core_loader_get(object);
    const char *const *names;
    int64_t count;
    int field;
    stk_error err;
    PyObject *out;

    if (!loader || !PyArg_ParseTuple(args, "i", &field))
        return NULL;
    if (stk_loader_classes(loader, field, &names, &count, &err) != STK_OK)
        return core_raise(&err);
    if (!names)
        Py_RETURN_NONE;
    out = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t i = 0; out && i < (Py_ssize_t)count; i++) {
        PyObject *name = core_text(names[i]);

        if (!name || PyList_SetItem(out, i, name) < 0)
            Py_CLEAR(out);
    }
    return out;
}

/* ---- numbers ---- */

static PyObject *samples(PyObject *object, void *unused)
{
    stk_loader *loader = core_loader_get(object);

    (void)unused;
    return loader ? PyLong_FromLongLong(stk_loader_samples(loader)) : NULL;
}

static PyObject *steps_per_epoch(PyObject *object, void *unused)
{
    stk_loader *loader = core_loader_get(object);

    (void)unused;
    return loader ? PyLong_FromLongLong(stk_loader_steps_per_epoch(loader)) : NULL;
}

static PyGetSetDef getters[] = {
    {"samples", samples, NULL,
     "Number of positions in an epoch: samples of the data set or its subset, or epoch_length.", NULL},
    {"steps_per_epoch", steps_per_epoch, NULL, "Number of batches per epoch, the same on every rank.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* A member of a struct of int64_t. */
struct member {
    const char *name;
    size_t offset;
};

static PyObject *dict_of(const void *from, const struct member *members, size_t count)
{
    PyObject *out = PyDict_New();

    for (size_t i = 0; out && i < count; i++) {
        int64_t value;
        PyObject *number;

        memcpy(&value, (const char *)from + members[i].offset, sizeof value);
        number = PyLong_FromLongLong(value);
        if (!number || PyDict_SetItemString(out, members[i].name, number) < 0)
            Py_CLEAR(out);
        Py_XDECREF(number);
    }
    return out;
}

#define M(name)                                 \
    {                                           \
#name, offsetof(stk_loader_stats, name) \
    }
static const struct member loader_members[] = {
    M(batches),
    M(rows),
    M(batch_bytes),
    M(bytes_read),
    M(bytes_written),
    M(tiles),
    M(order_ns),
    M(read_ns),
    M(convert_ns),
    M(wait_slot_ns),
    M(wait_work_ns),
    M(wait_next_ns),
    M(first_batch_ns),
    M(slots),
    M(slots_ready),
    M(slots_leased),
    M(slot_bytes),
    M(pinned_bytes),
    M(errors),
    M(warnings),
    M(device_batches),
    M(device_bytes),
    M(device_copy_ns),
    M(device_convert_ns),
    M(device_exposed_ns),
    M(device_wait_batch_ns),
    M(device_wait_slot_ns),
    M(device_slots),
    M(device_slots_ready),
    M(device_slots_held),
    M(device_slot_bytes),
    M(skipped),
    M(substituted),
    M(decode_ns),
    M(inflate_ns),
    M(call_ns),
    M(page_ns),
    M(unpacked_bytes),
    M(packed_bytes),
    M(helped_ns),
};
#undef M
/* The list has all members after struct_size and workers. */
_Static_assert(sizeof loader_members / sizeof loader_members[0] * sizeof(int64_t) + 2 * sizeof(uint32_t) ==
                   sizeof(stk_loader_stats),
               "a member of stk_loader_stats is missing");

static PyObject *stats(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    stk_loader_stats now = {.struct_size = sizeof now};
    stk_error err;
    PyObject *out, *workers;

    (void)unused;
    if (!loader)
        return NULL;
    if (stk_loader_get_stats(loader, &now, &err) != STK_OK)
        return core_raise(&err);
    out = dict_of(&now, loader_members, sizeof loader_members / sizeof loader_members[0]);
    workers = PyLong_FromLong((long)now.workers);
    if (out && (!workers || PyDict_SetItemString(out, "workers", workers) < 0))
        Py_CLEAR(out);
    Py_XDECREF(workers);
    return out;
}

/* {reason: number of samples that were skipped or replaced}, without zeros. */
static PyObject *failures(PyObject *object, PyObject *unused)
{
#define STK_X(value, identifier, name, text) value,
    static const int reasons[] = {STK_STATUS_LIST(STK_X)};
#undef STK_X
    stk_loader *loader = core_loader_get(object);
    PyObject *out = loader ? PyDict_New() : NULL;

    (void)unused;
    for (size_t i = 0; out && i < sizeof reasons / sizeof reasons[0]; i++) {
        const int64_t count = reasons[i] < 0 ? stk_loader_failed(loader, (stk_status)reasons[i]) : 0;
        PyObject *number = count > 0 ? PyLong_FromLongLong(count) : NULL;

        if (count > 0 && (!number || PyDict_SetItemString(out, stk_status_name((stk_status)reasons[i]), number) < 0))
            Py_CLEAR(out);
        Py_XDECREF(number);
    }
    return out;
}

static PyObject *digest(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    stk_digest_info info;
    stk_error err;

    (void)unused;
    if (!loader)
        return NULL;
    return stk_loader_digest(loader, &info, &err) == STK_OK ? core_text(info.text) : core_raise(&err);
}

/* [(name, weight, samples, first, positions), …] */
static PyObject *datasets(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    PyObject *out = loader ? PyList_New(0) : NULL;
    stk_error err;

    (void)unused;
    for (int i = 0; out && i < stk_loader_dataset_count(loader); i++) {
        stk_dataset_info info;
        PyObject *item;

        if (stk_loader_dataset(loader, i, &info, &err) != STK_OK) {
            Py_DECREF(out);
            return core_raise(&err);
        }
        item = Py_BuildValue("(NdLLL)", core_text(info.name), info.weight, (long long)info.samples,
                             (long long)info.first, (long long)info.positions);
        if (!item || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

static PyObject *field(PyObject *object, int index)
{
    stk_field_info info;
    stk_error err;
    PyObject *shape, *out;

    if (stk_loader_field(((core_loader *)object)->loader, index, &info, &err) != STK_OK)
        return core_raise(&err);
    shape = PyTuple_New(info.ndim);
    for (int i = 0; shape && i < info.ndim; i++)
        if (PyTuple_SetItem(shape, i, info.shape[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(info.shape[i])) < 0)
            Py_CLEAR(shape);
    out = Py_BuildValue("(NssNsss)", core_text(info.name), stk_dtype_long_name(info.source_dtype),
                        stk_dtype_long_name(info.dtype), shape, info.layout, info.kernel, info.access);
    return out;
}

/* [(name, source dtype, dtype, shape, layout, kernel, access), …] */
static PyObject *fields(PyObject *object, PyObject *unused)
{
    stk_loader *loader = core_loader_get(object);
    PyObject *out = loader ? PyList_New(0) : NULL;

    (void)unused;
    for (int i = 0; out && i < stk_loader_field_count(loader); i++) {
        PyObject *item = field(object, i);

        if (!item || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

static PyMethodDef methods[] = {
    {"_options_json", options_json, METH_NOARGS, NULL},
    {"_classes", classes, METH_VARARGS, NULL},
    {"_fields", fields, METH_NOARGS, NULL},
    {"_datasets", datasets, METH_NOARGS, NULL},
    {"_option", option, METH_VARARGS, NULL},
    {"_notes", notes, METH_NOARGS, NULL},
    {"_failures", failures, METH_NOARGS, NULL},
    {"_stats", stats, METH_NOARGS, NULL},
    {"explain", explain, METH_NOARGS,
     "explain()\n--\n\nA description of the loader: fields, files, transforms, order, memory. Reads no samples."},
    {"digest", digest, METH_NOARGS,
     "digest()\n--\n\nThe digest of everything delivered so far, 32 hexadecimal digits; requires loader.digest."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Methods and attributes that describe a loader."},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0, NULL},
};

PyType_Spec core_queries_spec = {
    .name = "stoker._core.LoaderQueries",
    .basicsize = sizeof(core_loader),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};
