/* npy_open.h: opens an .npy file, whatever its name, as a reader or as one tensor. `opts` may be NULL. */
#ifndef STKT_NPY_OPEN_H
#define STKT_NPY_OPEN_H

#include "array.h"
#include "format.h"
#include "npy.h"

static const stki_reader_opts stkt_npy_defaults;

static inline stk_status stkt_npy_reader(const char *path, const stki_reader_opts *opts, stki_reader **out,
                                         stk_error *err)
{
    stki_container *npy;
    stk_status status = stki_npy_container(path, opts ? opts : &stkt_npy_defaults, &npy, err);

    if (status != STK_OK)
        return status;
    stki_container_complete(npy);
    status = stki_container_reader(npy, 0, opts ? opts : &stkt_npy_defaults, out, err);
    stki_container_release(npy);
    return status;
}

/* The file stays open and mapped until the last reference to the tensor is released. */
static inline stk_status stkt_npy_tensor(const char *path, const stki_reader_opts *opts, stk_tensor *out,
                                         stk_error *err)
{
    stki_container *npy;
    stki_array array;
    stk_status status = stki_npy_container(path, opts ? opts : &stkt_npy_defaults, &npy, err);

    if (status != STK_OK)
        return status;
    stki_container_complete(npy);
    status = stki_container_array(npy, 0, opts, &array, err);
    stki_container_release(npy);
    if (status != STK_OK)
        return status;
    status = stki_array_tensor(&array, path, out, err);
    stki_array_release(&array);
    return status;
}

#endif
