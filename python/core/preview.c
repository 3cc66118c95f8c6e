/* preview.c: a contact sheet of the images of a batch. */
#include "core.h"
#include "sheet.h"

static stk_status draw(const stk_tensor *images, int64_t count, const char *path, stk_error *err)
{
    struct sheet *sheet = NULL;
    stk_status status = sheet_create(count, &sheet, err);

    for (int64_t i = 0; i < count && status == STK_OK; i++) {
        stk_tensor image;

        status = stk_tensor_select(images, 0, i, &image, err);
        if (status == STK_OK) {
            status = sheet_draw(sheet, &image, "the batch", i, err);
            stk_tensor_release(&image);
        }
    }
    if (status == STK_OK)
        status = sheet_save(sheet, path, err);
    sheet_destroy(sheet);
    return status;
}

PyObject *core_preview(PyObject *module, PyObject *args)
{
    PyObject *object, *path;
    core_tensor *images;
    long long count;
    const char *text;
    stk_error err;
    stk_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!LO&", core_tensor_type, &object, &count, PyUnicode_FSConverter, &path))
        return NULL;
    images = (core_tensor *)object;
    text = PyBytes_AsString(path);
    if (images->tensor.ndim < 3 || images->place == CORE_CUDA) {
        Py_DECREF(path);
        return PyErr_Format(PyExc_ValueError, images->place == CORE_CUDA
                                                  ? "the images are on a GPU"
                                                  : "its rows are not images, which have two or three axes");
    }
    if (count > images->tensor.shape[0])
        count = images->tensor.shape[0];
    if (count > SHEET_MOST)
        count = SHEET_MOST;
    Py_BEGIN_ALLOW_THREADS
    status = draw(&images->tensor, count, text, &err);
    Py_END_ALLOW_THREADS
    Py_DECREF(path);
    if (status != STK_OK)
        return core_raise(&err);
    Py_RETURN_NONE;
}
