/* hdf5_differential.h: reads generated HDF5 files in every way that stoker can and compares the bytes with those of
 * H5Dread. */
#ifndef STKT_HDF5_DIFFERENTIAL_H
#define STKT_HDF5_DIFFERENTIAL_H

#include "cmocka_all.h"
#include "container.h"
#include "format.h"
#include "hdf5_files.h"
#include "hdf5_reader.h"
#include "io_files.h"
#include "tensor_internal.h"

typedef struct stkt_tally {
    int files, refused, chunked, in_memory; /* how samples were read */
    int alone;                              /* number of files opened without libhdf5 */
} stkt_tally;

/* The bytes of a tensor in row-major order, in the file's byte order. */
static inline int64_t stkt_bytes_of(const stk_tensor *t, unsigned char *to)
{
    int64_t strides[STK_MAX_DIMS], bytes;
    static const stk_dtype raw[] = {[1] = STK_U8, [2] = STK_U16, [4] = STK_U32, [8] = STK_U64, [16] = STK_C128};
    stk_dtype dtype = raw[stk_dtype_size(t->dtype)];

    assert_int_equal(stki_row_major(dtype, t->ndim, t->shape, strides, &bytes, NULL), STK_OK);
    stki_copy_strided(to, dtype, strides, t->data, dtype, t->strides, false, t->ndim, t->shape);
    return stk_tensor_nbytes(t);
}

static inline void stkt_compare_whole(const stki_container *c, const stki_reader_opts *opts, const stkt_hdf5 *h,
                                      const unsigned char *expected)
{
    int64_t bytes = stkt_hdf5_count(h) * (int64_t)h->item;
    unsigned char *got = malloc((size_t)bytes + 1);
    stki_array array;
    stk_tensor tensor;
    stk_error err;

    if (stki_container_array(c, 0, opts, &array, &err) || stki_array_tensor(&array, c->path, &tensor, &err))
        fail_msg("%s: %s", h->about, err.message);
    assert_int_equal(stkt_bytes_of(&tensor, got), bytes);
    if (memcmp(got, expected, (size_t)bytes))
        fail_msg("%s: the whole array differs", h->about);
    stk_tensor_release(&tensor);
    stki_array_release(&array);
    free(got);
}

/* Copies the sample's box from the whole array. */
static inline void stkt_expect_sample(const stkt_hdf5 *h, const stki_reader_opts *opts, int64_t index,
                                      const unsigned char *expected, unsigned char *to)
{
    int64_t outer = 1, inner = (int64_t)h->item, along = (int64_t)h->shape[opts->axis];
    int64_t length = opts->window_length > 0 ? opts->window_length : 1;
    int64_t step = opts->window_length == 0 ? 1 : opts->window_stride > 0 ? opts->window_stride : length;

    for (int i = 0; i < h->rank; i++)
        if (i != opts->axis)
            *(i < opts->axis ? &outer : &inner) *= (int64_t)h->shape[i];
    for (int64_t k = 0; k < outer; k++)
        memcpy(to + k * length * inner, expected + (k * along + index * step) * inner, (size_t)(length * inner));
}

static inline void stkt_compare_samples(const stki_container *c, const stki_reader_opts *opts, const stkt_hdf5 *h,
                                        const unsigned char *expected, uint64_t *r, stkt_tally *tally)
{
    stki_reader *reader;
    stki_scratch scratch;
    stki_hdf5_counts counts;
    stk_error err;
    int64_t room;
    unsigned char *got, *wanted;

    if (stki_container_reader(c, 0, opts, &reader, &err))
        fail_msg("%s: %s", h->about, err.message);
    stki_scratch_init(&scratch);
    room = reader->max_bytes + 1;
    got = malloc((size_t)room);
    wanted = malloc((size_t)room);
    for (int64_t i = 0; i < reader->count; i++) {
        int64_t index = stkt_below(r, 4) ? i : stkt_below(r, reader->count), bytes;
        stk_tensor sample;

        if (reader->ops->read(reader, index, NULL, &scratch, &sample, &err))
            fail_msg("%s: sample %d: %s", h->about, (int)index, err.message);
        assert_true(sample.flags & STK_TENSOR_READONLY);
        for (int k = 0; k < sample.ndim; k++)
            assert_true(sample.shape[k] < 2 || sample.strides[k] == reader->strides[k]);
        if (stki_reader_address(reader, index)) /* the fast path must return the same bytes */
            assert_ptr_equal(stki_reader_address(reader, index), sample.data);
        bytes = stkt_bytes_of(&sample, got);
        assert_int_equal(bytes, reader->max_bytes);
        stkt_expect_sample(h, opts, index, expected, wanted);
        if (memcmp(got, wanted, (size_t)bytes))
            fail_msg("%s: axis %d window %d/%d: sample %d differs", h->about, opts->axis, (int)opts->window_length,
                     (int)opts->window_stride, (int)index);
        stki_reader_done(reader, &sample);
    }
    if (stki_hdf5_reader_counts(reader, &counts))
        tally->chunked++;
    else
        tally->in_memory++;
    free(got);
    free(wanted);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static inline void stkt_differential(uint64_t seed, stkt_tally *tally)
{
    const char *path = stkt_path("differential.h5");
    uint64_t state = seed, *r = &state;
    stki_container *container;
    unsigned char *expected;
    stkt_hdf5 h;
    stk_error err;

    stkt_hdf5_make(path, seed, &h);
    expected = h.refused ? NULL : stkt_hdf5_read(path, &h);
    if (!expected) { /* the fill value is undefined */
        tally->refused++;
        STKT_MUST(H5Tclose(h.type));
        return;
    }
    tally->files++;
    for (int mode = 0; mode < 2; mode++) {
        stki_reader_opts opts = {.access = mode ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP,
                                 .cache_bytes = stkt_below(r, 2) ? 1 : 0,
                                 .axis = (int)stkt_below(r, h.rank)};

        if (stki_container_open(path, &opts, &container, &err))
            fail_msg("%s: %s", h.about, err.message);
        tally->alone += H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_FILE) == 0;
        stkt_compare_whole(container, &opts, &h, expected);
        stkt_compare_samples(container, &opts, &h, expected, r, tally);
        opts.window_length = 1 + stkt_below(r, 4);
        opts.window_stride = stkt_below(r, 4);
        stkt_compare_samples(container, &opts, &h, expected, r, tally);
        stki_container_release(container);
    }
    free(expected);
    STKT_MUST(H5Tclose(h.type));
}

#endif
