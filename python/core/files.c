/* files.c: opening any file that a loader reads: its members, each as an array or sample by sample. */
#include "core.h"
#include "format.h"

typedef struct core_file {
    PyObject ob_base;
    stki_container *container;
} core_file;

typedef struct core_member {
    PyObject ob_base;
    core_file *file;
    int64_t number;
    stki_reader *reader; /* created when the first sample is requested */
} core_member;

static PyTypeObject *file_type, *member_type;

static const stki_member *member_of(const core_member *self)
{
    return &self->file->container->members[self->number];
}

/* ---- members ---- */

static void member_dealloc(PyObject *object)
{
    core_member *self = (core_member *)object;

    stki_reader_destroy(self->reader);
    Py_XDECREF((PyObject *)self->file);
    core_free(object);
}

static bool open_reader(core_member *self)
{
    const stki_reader_opts opts = {.pattern = STKI_PATTERN_RANDOM};
    stki_reader *reader;
    stk_error err;
    stk_status status;

    if (self->reader)
        return true;
    Py_BEGIN_ALLOW_THREADS
    status = stki_container_reader(self->file->container, self->number, &opts, &reader, &err);
    Py_END_ALLOW_THREADS
    if (status != STK_OK) {
        core_raise(&err);
        return false;
    }
    if (self->reader) /* another thread created it in the meantime */
        stki_reader_destroy(reader);
    else
        self->reader = reader;
    return true;
}

static stk_status read_copy(const stki_reader *reader, int64_t index, stk_tensor *out, stk_error *err)
{
    stki_scratch scratch;
    stk_tensor sample;
    stk_status status;

    stki_scratch_init(&scratch);
    status = reader->ops->read(reader, index, NULL, &scratch, &sample, err);
    if (status == STK_OK) {
        status = stk_tensor_clone(&sample, out, err);
        stki_reader_done(reader, &sample);
    }
    stki_scratch_fini(&scratch);
    return status;
}

static PyObject *wrapped(stk_tensor *tensor)
{
    PyObject *out = (PyObject *)core_tensor_new(tensor, NULL, NULL, CORE_ORDINARY);

    stk_tensor_release(tensor);
    return out;
}

static PyObject *member_sample(PyObject *object, PyObject *args)
{
    core_member *self = (core_member *)object;
    long long index, at;
    stk_tensor tensor;
    stk_error err;
    stk_status status;

    if (!PyArg_ParseTuple(args, "L", &index) || !open_reader(self))
        return NULL;
    at = index < 0 ? index + self->reader->count : index;
    if (at < 0 || at >= self->reader->count)
        return PyErr_Format(PyExc_IndexError, "%s: found index %lld, but there are %lld samples",
                            self->file->container->path, index, (long long)self->reader->count);
    Py_BEGIN_ALLOW_THREADS
    status = read_copy(self->reader, at, &tensor, &err);
    Py_END_ALLOW_THREADS
    return status == STK_OK ? wrapped(&tensor) : core_raise(&err);
}

static PyObject *member_tensor(PyObject *object, PyObject *unused)
{
    core_member *self = (core_member *)object;
    const stki_reader_opts opts = {0};
    stki_array array;
    stk_tensor tensor;
    stk_error err;
    stk_status status;

    (void)unused;
    Py_BEGIN_ALLOW_THREADS
    status = stki_container_array(self->file->container, self->number, &opts, &array, &err);
    if (status == STK_OK) {
        status = stki_array_tensor(&array, self->file->container->path, &tensor, &err);
        stki_array_release(&array);
    }
    Py_END_ALLOW_THREADS
    if (status != STK_OK)
        return core_raise(&err);
    tensor.flags |= STK_TENSOR_READONLY;
    return wrapped(&tensor);
}

static PyObject *member_shape(PyObject *object, void *unused)
{
    const stki_member *member = member_of((core_member *)object);
    const int records = member->kind == STKI_MEMBER_RECORDS;
    PyObject *out = PyTuple_New(member->ndim + records);

    (void)unused;
    if (out && records)
        PyTuple_SetItem(out, 0, PyLong_FromLongLong(member->count));
    for (int i = 0; out && i < member->ndim; i++)
        PyTuple_SetItem(out, i + records,
                        member->shape[i] < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(member->shape[i]));
    return out;
}

static PyObject *member_name(PyObject *object, void *unused)
{
    (void)unused;
    return core_text(member_of((core_member *)object)->name);
}

static PyObject *member_dtype(PyObject *object, void *unused)
{
    (void)unused;
    return core_text(stk_dtype_long_name(member_of((core_member *)object)->dtype));
}

static PyObject *member_layout(PyObject *object, void *unused)
{
    const char *layout = member_of((core_member *)object)->layout;

    (void)unused;
    return core_text(layout ? layout : "");
}

/* Returns the class names, ordered by class number, or None. */
static PyObject *member_classes(PyObject *object, PyObject *unused)
{
    const core_member *self = (core_member *)object;
    const stki_container *container = self->file->container;
    stki_class_column column;
    PyObject *out;

    (void)unused;
    if (!container->ops->classes || !container->ops->classes(container, self->number, &column))
        Py_RETURN_NONE;
    out = PyList_New((Py_ssize_t)column.names->count);
    for (Py_ssize_t i = 0; out && i < (Py_ssize_t)column.names->count; i++)
        if (PyList_SetItem(out, i, core_text(stki_classes_name(column.names, i))) < 0)
            Py_CLEAR(out);
    return out;
}

static Py_ssize_t member_length(PyObject *object)
{
    core_member *self = (core_member *)object;

    return open_reader(self) ? (Py_ssize_t)self->reader->count : -1;
}

static PyMethodDef member_methods[] = {
    {"sample", member_sample, METH_VARARGS, "sample(index)\n--\n\nA copy of one sample, as a Tensor."},
    {"tensor", member_tensor, METH_NOARGS,
     "tensor()\n--\n\nThe whole array as a read-only Tensor; a view of the mapped file if possible."},
    {"classes", member_classes, METH_NOARGS, "classes()\n--\n\nThe class names, ordered by class number, or None."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef member_getters[] = {
    {"name", member_name, NULL, "Its name in the file; \"\" in a file with a single array.", NULL},
    {"shape", member_shape, NULL, "Its shape, with the number of samples first; None for an axis that varies.", NULL},
    {"dtype", member_dtype, NULL, "The name of its dtype.", NULL},
    {"layout", member_layout, NULL, "Layout in the file: \"contiguous\", \"chunked\", \"records\", …", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot member_slots[] = {
    {Py_tp_doc, "A member of a file."}, {Py_tp_dealloc, (void *)member_dealloc}, {Py_tp_methods, member_methods},
    {Py_tp_getset, member_getters},     {Py_mp_length, (void *)member_length},   {0, NULL},
};

static PyType_Spec member_spec = {
    .name = "stoker._core.Member",
    .basicsize = sizeof(core_member),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = member_slots,
};

/* ---- files ---- */

static void file_dealloc(PyObject *object)
{
    stki_container_release(((core_file *)object)->container);
    core_free(object);
}

/* Returns the members in order. */
static PyObject *file_members(PyObject *object, PyObject *unused)
{
    core_file *self = (core_file *)object;
    PyObject *out = PyList_New(0);

    (void)unused;
    for (int64_t i = 0; out && i < self->container->member_count; i++) {
        core_member *member = (core_member *)PyType_GenericAlloc(member_type, 0);

        if (member) {
            member->file = (core_file *)Py_NewRef(object);
            member->number = i;
        }
        if (!member || PyList_Append(out, (PyObject *)member) < 0)
            Py_CLEAR(out);
        Py_XDECREF((PyObject *)member);
    }
    return out;
}

/* Returns the name of a sample's file, if samples are files. */
static PyObject *file_sample_name(PyObject *object, PyObject *args)
{
    const stki_container *container = ((core_file *)object)->container;
    long long index;
    char name[STKI_RECORD_PATH];

    if (!PyArg_ParseTuple(args, "L", &index))
        return NULL;
    if (!container->ops->name || index < 0 || index >= container->named ||
        !container->ops->name(container, index, name, sizeof name))
        Py_RETURN_NONE;
    return core_text(name);
}

static PyObject *file_format(PyObject *object, void *unused)
{
    (void)unused;
    return core_text(((core_file *)object)->container->ops->format);
}

static PyMethodDef file_methods[] = {
    {"members", file_members, METH_NOARGS, NULL},
    {"sample_name", file_sample_name, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef file_getters[] = {
    {"format", file_format, NULL, "The name of its format.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot file_slots[] = {
    {Py_tp_doc, "An open file."},
    {Py_tp_dealloc, (void *)file_dealloc},
    {Py_tp_methods, file_methods},
    {Py_tp_getset, file_getters},
    {0, NULL},
};

static PyType_Spec file_spec = {
    .name = "stoker._core.File",
    .basicsize = sizeof(core_file),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = file_slots,
};

bool core_files_add(PyObject *module)
{
    return (file_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &file_spec, NULL)) != NULL &&
           (member_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &member_spec, NULL)) != NULL &&
           PyModule_AddType(module, file_type) == 0 && PyModule_AddType(module, member_type) == 0;
}

PyObject *core_open_file(PyObject *module, PyObject *args)
{
    const stki_reader_opts opts = {0};
    PyObject *path;
    const char *text;
    core_file *self;
    stki_container *container;
    stk_error err;
    stk_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path))
        return NULL;
    text = PyBytes_AsString(path);
    Py_BEGIN_ALLOW_THREADS
    status = stki_container_open(text, &opts, &container, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (status != STK_OK)
        return core_raise(&err);
    self = (core_file *)PyType_GenericAlloc(file_type, 0);
    if (self)
        self->container = container;
    else
        stki_container_release(container);
    return (PyObject *)self;
}
