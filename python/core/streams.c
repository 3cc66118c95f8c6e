/* streams.c: streams of other libraries, wrapped in handles that belong to a loader. Closing the loader destroys the
 * handles, which records an event after the last work of each; exported tensors keep a reference to their handle and
 * wait for that event. So a stream may be destroyed once the tensors exported for it have been deleted, or the loader
 * is closed. */
#include "core.h"
#include <pthread.h>
#include <stdlib.h>

enum { LEGACY = 1, PER_THREAD = 2 }; /* the special stream numbers of __dlpack__ and CUDA */

struct core_known {
    struct core_known *next;
    stk_device *device;
    void *native;
    pthread_t thread; /* used for PER_THREAD, which is a different stream in each thread */
    stk_stream *stream;
};

static bool is(const struct core_known *known, stk_device *device, void *native)
{
    return known->device == device && known->native == native &&
           ((intptr_t)native != PER_THREAD || pthread_equal(known->thread, pthread_self()));
}

/* NULL: an exception is set. */
static stk_stream *stream_of(core_loader *loader, stk_device *device, void *native)
{
    struct core_known *known = loader->streams;
    stk_error err;

    while (known && !is(known, device, native))
        known = known->next;
    if (known)
        return known->stream;
    if (!(known = malloc(sizeof *known))) {
        PyErr_NoMemory();
        return NULL;
    }
    *known = (struct core_known){.next = loader->streams, .device = device, .native = native, .thread = pthread_self()};
    if (stk_stream_wrap(device, native, &known->stream, &err) != STK_OK) {
        free(known);
        core_raise(&err);
        return NULL;
    }
    loader->streams = known;
    return known->stream;
}

void core_streams_close(core_loader *loader)
{
    struct core_known *known = loader->streams;

    loader->streams = NULL;
    while (known) {
        struct core_known *next = known->next;

        stk_stream_destroy(known->stream);
        free(known);
        known = next;
    }
}

bool core_stream_from(PyObject *number, core_loader *loader, stk_stream **out)
{
    intptr_t native = LEGACY;

    *out = NULL;
    if (number != Py_None) {
        native = (intptr_t)PyLong_AsLongLong(number);
        if (native == -1 && PyErr_Occurred())
            return false;
        if (native == -1)
            return true;
        if (native <= 0) {
            PyErr_Format(
                PyExc_BufferError,
                "__dlpack__: found stream %lld, expected -1 (none), 1 (legacy), 2 (per thread) or a cudaStream_t",
                (long long)native);
            return false;
        }
    }
    return (*out = stream_of(loader, loader->device, (void *)native)) != NULL;
}

/* Stores the stream of a pair (device index, native stream) returned by the hook. */
static bool add(core_loader *loader, PyObject *pair, stk_stream **out)
{
    stk_device *device = loader->device;
    stk_error err;
    int index;
    long long native;
    char name[32];

    if (!PyArg_ParseTuple(pair, "iL", &index, &native))
        return false;
    PyOS_snprintf(name, sizeof name, "cuda:%d", index);
    if (!device && stk_device_find(name, &device, &err) != STK_OK) {
        core_raise(&err);
        return false;
    }
    return (*out = stream_of(loader, device, (void *)(intptr_t)(native ? native : LEGACY))) != NULL;
}

int core_current_streams(core_loader *loader, stk_stream *out[CORE_MOST_STREAMS])
{
    PyObject *pairs;
    int count = 0;

    if (!loader || loader->place == CORE_ORDINARY || !core_hooks.streams)
        return 0;
    pairs = PyObject_CallFunction(core_hooks.streams, "i",
                                  loader->place == CORE_CUDA ? stk_device_index(loader->device) : -1);
    if (!pairs)
        return -1;
    for (Py_ssize_t i = 0; count >= 0 && i < PyList_Size(pairs) && count < CORE_MOST_STREAMS; i++)
        count = add(loader, PyList_GetItem(pairs, i), &out[count]) ? count + 1 : -1;
    Py_DECREF(pairs);
    return count;
}
