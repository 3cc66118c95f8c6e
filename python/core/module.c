/* module.c: the module stoker._core. The package's Python code sets hooks: functions that create exceptions and convert
 * tensors, and that import other libraries on first use. */
#include "core.h"
#include "transform.h"

struct core_hooks core_hooks;
PyTypeObject *core_queries_type, *core_loader_type, *core_epoch_type, *core_batch_type, *core_tensor_type;
static int64_t home = -1; /* the interpreter that has imported the module */

PyObject *core_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape");
}

PyObject *core_own_text(char *text)
{
    PyObject *out = text ? core_text(text) : PyErr_NoMemory();

    stk_text_free(text);
    return out;
}

PyObject *core_raise(const stk_error *err)
{
    PyObject *exception;

    if (!core_hooks.error) {
        PyErr_SetString(PyExc_RuntimeError, err->message);
        return NULL;
    }
    exception = PyObject_CallFunction(core_hooks.error, "sNNLLNN", stk_status_name(err->status),
                                      core_text(err->message), core_text(err->file), (long long)err->record,
                                      (long long)err->offset, core_text(err->found), core_text(err->expected));
    if (exception)
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_XDECREF(exception);
    return NULL;
}

PyObject *core_refuse(stk_status status, const char *message)
{
    stk_error err = {.status = status, .record = -1, .offset = -1};

    PyOS_snprintf(err.message, sizeof err.message, "%s", message);
    return core_raise(&err);
}

void core_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    release(self);
    Py_DECREF(type);
}

/* ---- hooks ---- */

static const struct {
    const char *name;
    PyObject **place;
} hooks[] = {
    {"error", &core_hooks.error},
    {"key_error", &core_hooks.key_error},
    {"raised", &core_hooks.raised},
    {"streams", &core_hooks.streams},
    {"to_torch", &core_hooks.to_torch},
    {"torch", &core_hooks.convert[CORE_TO_TORCH]},
    {"numpy", &core_hooks.convert[CORE_TO_NUMPY]},
    {"jax", &core_hooks.convert[CORE_TO_JAX]},
    {"batch", &core_hooks.batch_type},
};

static PyObject *set_hook(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *value;

    (void)module;
    if (!PyArg_ParseTuple(args, "sO", &name, &value))
        return NULL;
    for (size_t i = 0; i < sizeof hooks / sizeof hooks[0]; i++)
        if (strcmp(hooks[i].name, name) == 0) {
            PyObject *old = *hooks[i].place;

            *hooks[i].place = value == Py_None ? NULL : Py_NewRef(value);
            Py_XDECREF(old);
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_KeyError, "no hook '%s'", name);
}

static PyObject *tables(PyObject *module, PyObject *unused)
{
    char *text;

    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS
    text = stk_loader_options_tables();
    Py_END_ALLOW_THREADS
    return core_own_text(text);
}

/* [(name, example, example), …] */
static PyObject *transforms(PyObject *module, PyObject *unused)
{
    PyObject *out = PyList_New(0);
    const stki_operation *operation;

    (void)module, (void)unused;
    for (int i = 0; out && (operation = stki_fold_operation(i)); i++) {
        PyObject *item = Py_BuildValue("(sss)", operation->name, operation->examples[0], operation->examples[1]);

        if (!item || PyList_Append(out, item) < 0)
            Py_CLEAR(out);
        Py_XDECREF(item);
    }
    return out;
}

static PyMethodDef methods[] = {
    {"transforms", transforms, METH_NOARGS, "The transforms and examples of their parameters."},
    {"set_hook", set_hook, METH_VARARGS, "set_hook(name, value): for the package itself."},
    {"register", core_register, METH_VARARGS, "register(name, run, shape): a custom transform."},
    {"prep", core_prep, METH_VARARGS, "Opens and runs a preparation job, or plans it."},
    {"preview", core_preview, METH_VARARGS, "preview(images, count, path): writes a contact sheet."},
    {"open_file", core_open_file, METH_VARARGS, "open_file(path): a File."},
    {"loadbench", core_loadbench, METH_VARARGS, "The program loadbench, for the package itself."},
    {"options_tables", tables, METH_NOARGS, "The tables of all config keys, as JSON."},
    {NULL},
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, (PyObject *)base);

    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

static int execute(PyObject *module)
{
    const int64_t interpreter = PyInterpreterState_GetID(PyInterpreterState_Get());

    if (home >= 0) {
        PyErr_SetString(PyExc_ImportError, home == interpreter
                                               ? "stoker._core cannot be imported a second time"
                                               : "stoker._core can be used in only one interpreter of a process");
        return -1;
    }
    if (!(core_tensor_type = add_type(module, &core_tensor_spec, NULL)) ||
        !(core_batch_type = add_type(module, &core_batch_spec, NULL)) ||
        !(core_queries_type = add_type(module, &core_queries_spec, NULL)) ||
        !(core_loader_type = add_type(module, &core_loader_spec, core_queries_type)) ||
        !(core_epoch_type = add_type(module, &core_epoch_spec, NULL)) || !core_files_add(module) ||
        PyModule_AddStringConstant(module, "version", stk_version()) < 0)
        return -1;
    home = interpreter;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "stoker._core",
    .m_doc = "stoker's loader in C; use the package stoker.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
