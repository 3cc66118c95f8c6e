/* hdf5_type.h: conversion between HDF5 datatypes and dtypes. Called between stki_hdf5_enter and leave. */
#ifndef STKI_HDF5_TYPE_H
#define STKI_HDF5_TYPE_H

#include "hdf5_library.h"
#include <stoker/tensor.h>

/* Whether and how elements vary in length. */
enum stki_hdf5_varying {
    STKI_HDF5_SAME,
    STKI_HDF5_FIXED,  /* fixed-size strings, as bytes */
    STKI_HDF5_STRING, /* char * */
    STKI_HDF5_VLEN    /* hvl_t */
};
enum stki_hdf5_padding { STKI_HDF5_TERMINATED, STKI_HDF5_NULLS, STKI_HDF5_SPACES };

typedef struct stki_hdf5_type {
    stk_dtype dtype;
    bool swapped;
    bool raw;                       /* the file's bytes are the elements; false: the library has to convert them */
    enum stki_hdf5_varying varying; /* `dtype` is the dtype of the items, u8 for strings */
    enum stki_hdf5_padding padding; /* padding of FIXED */
    int inner_ndim;                 /* number of axes of an array type, which follow those of the data set */
    int64_t inner[STK_MAX_DIMS];
    int64_t bytes; /* size of one element of the data set, including the inner axes */
} stki_hdf5_type;

/* Describes a float type without padding: bit positions count from the lowest bit. stki_hdf5_float_dtype returns
 * STK_DTYPE_NONE if there is no such dtype. */
typedef struct stki_hdf5_float {
    int64_t size, sign, exponent_at, exponent_bits, mantissa_bits, bias;
} stki_hdf5_float;
stk_dtype stki_hdf5_float_dtype(const stki_hdf5_float *about);
stk_dtype stki_hdf5_whole_dtype(int64_t size, bool is_signed);

/* Describes a type. STK_E_UNSUPPORTED: there is no such dtype; the message names the class of the type. */
stk_status stki_hdf5_type_read(hid_t type, const char *path, const char *name, stki_hdf5_type *out, stk_error *err);
/* Returns the memory type for H5Dread: the file's type if that is raw, so that nothing is converted. The caller closes
 * the ID; negative: failure. */
hid_t stki_hdf5_type_in_memory(hid_t type, const stki_hdf5_type *about);
/* Like stki_hdf5_type_in_memory, for a field of a compound type, which is always read in native byte order. */
hid_t stki_hdf5_type_of_field(hid_t type, const stki_hdf5_type *about);
/* Returns the file type for a dtype: little-endian, bool as h5py's enum, complex numbers as {r, i}. The caller closes
 * the ID; negative: failure. */
hid_t stki_hdf5_type_make(stk_dtype dtype);

#endif
