/* hdf5_files.h: HDF5 files for tests, written by libhdf5 from a seed, and their contents as libhdf5 reads them. */
#ifndef STKT_HDF5_FILES_H
#define STKT_HDF5_FILES_H

#include "hdf5_type.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STKT_MUST(call)                                                       \
    do {                                                                      \
        if ((call) < 0) {                                                     \
            fprintf(stderr, "%s:%d: %s failed\n", __FILE__, __LINE__, #call); \
            exit(1);                                                          \
        }                                                                     \
    } while (0)

/* AddressSanitizer calls this; the result suppresses reports from inside libhdf5. When it projects a selection of
 * several axes, libhdf5 1.10 copies the bounds of more axes than there are, but does not use the additional ones. */
__attribute__((visibility("default"))) const char *__asan_default_suppressions(void);
const char *__asan_default_suppressions(void)
{
    return "interceptor_via_lib:libhdf5";
}

static inline uint64_t stkt_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* A random number in [0, n). */
static inline int64_t stkt_below(uint64_t *state, int64_t n)
{
    return (int64_t)(stkt_next(state) % (uint64_t)n);
}

typedef struct stkt_hdf5 {
    uint64_t seed;
    bool latest; /* with the newest library version bounds, which give newer chunk indexes */
    int64_t user_block;
    hid_t type;  /* the caller closes it */
    bool raw;    /* false: the library must convert elements */
    size_t item; /* bytes of an element in memory */
    int rank;
    hsize_t shape[4], largest[4], chunk[4];
    H5D_layout_t layout;
    int filters;
    bool odd_edges; /* chunks at the edge are not filtered; libhdf5 1.10.8 cannot shrink such data sets */
    bool refused;   /* libhdf5 failed to modify what it had written itself */
    char about[256];
} stkt_hdf5;

/* For calls that may fail in libhdf5 1.10 (skipped filters, data sets that shrink). */
#define STKT_MAY(h, call)                     \
    do {                                      \
        herr_t done_;                         \
        H5E_BEGIN_TRY                         \
        {                                     \
            done_ = (call);                   \
        }                                     \
        H5E_END_TRY(h)->refused |= done_ < 0; \
    } while (0)

static inline hid_t stkt_hdf5_type(uint64_t *r, bool *raw)
{
    static const stk_dtype dtypes[] = {STK_BOOL, STK_U8,   STK_I16,       STK_U16,     STK_I32, STK_U64, STK_F16,
                                       STK_F32,  STK_BF16, STK_F8_E4M3FN, STK_F8_E5M2, STK_F64, STK_C64, STK_C128};
    hsize_t inner[2] = {3, 2};
    hid_t type, array;

    *raw = true;
    switch (stkt_below(r, 8)) {
    case 0:
        return H5Tcopy(H5T_STD_I32BE);
    case 1:
        return H5Tcopy(stkt_below(r, 2) ? H5T_IEEE_F64BE : H5T_STD_U16BE);
    case 2:
        array = H5Tarray_create2(H5T_IEEE_F32LE, (unsigned)(1 + stkt_below(r, 2)), inner);
        return array;
    case 3:
        *raw = false;
        type = H5Tcopy(H5T_STD_I32LE);
        STKT_MUST(H5Tset_precision(type, 12));
        STKT_MUST(H5Tset_offset(type, 4));
        return type;
    default:
        return stki_hdf5_type_make(dtypes[stkt_below(r, (int64_t)(sizeof dtypes / sizeof dtypes[0]))]);
    }
}

/* The memory type for H5Dread: the type itself, or a native integer. */
static inline hid_t stkt_hdf5_memory_type(const stkt_hdf5 *h)
{
    return h->raw ? H5Tcopy(h->type) : H5Tcopy(H5T_NATIVE_INT32);
}

static inline int64_t stkt_hdf5_count(const stkt_hdf5 *h)
{
    int64_t count = 1;

    for (int i = 0; i < h->rank; i++)
        count *= (int64_t)h->shape[i];
    return count;
}

static inline void stkt_hdf5_filters(stkt_hdf5 *h, hid_t plist, uint64_t *r)
{
    int64_t which = stkt_below(r, 8);
    char *about = h->about + strlen(h->about);
    static const char *const names[] = {"none",          "gzip",    "shuffle gzip", "fletcher", "shuffle gzip fletcher",
                                        "fletcher gzip", "shuffle", "scale-offset"};

    if (which == 7 && (!h->raw || H5Tget_class(h->type) != H5T_INTEGER))
        which = 2;
    if (which == 5)
        STKT_MUST(H5Pset_fletcher32(plist));
    if (which == 2 || which == 4 || which == 6)
        STKT_MUST(H5Pset_shuffle(plist));
    if (which == 1 || which == 2 || which == 4 || which == 5)
        STKT_MUST(H5Pset_deflate(plist, (unsigned)stkt_below(r, 10)));
    if (which == 3 || which == 4)
        STKT_MUST(H5Pset_fletcher32(plist));
    if (which == 7)
        STKT_MUST(H5Pset_scaleoffset(plist, H5Z_SO_INT, 0));
    h->filters = H5Pget_nfilters(plist);
    h->odd_edges = h->filters > 0 && h->latest && stkt_below(r, 4) == 0;
    if (h->odd_edges)
        STKT_MUST(H5Pset_chunk_opts(plist, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
    sprintf(about, " filters: %s", names[which]);
}

static inline void stkt_hdf5_fill(const stkt_hdf5 *h, hid_t plist, uint64_t *r)
{
    unsigned char value[128];
    int64_t how = stkt_below(r, 4);

    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (unsigned char)stkt_next(r);
    if (how > 0 && h->raw)
        STKT_MUST(H5Pset_fill_value(plist, h->type, value));
    if (how > 2)
        STKT_MUST(H5Pset_fill_time(plist, stkt_below(r, 2) ? H5D_FILL_TIME_NEVER : H5D_FILL_TIME_ALLOC));
}

static inline hid_t stkt_hdf5_plist(stkt_hdf5 *h, uint64_t *r)
{
    static const H5D_alloc_time_t times[] = {H5D_ALLOC_TIME_EARLY, H5D_ALLOC_TIME_LATE, H5D_ALLOC_TIME_INCR};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);

    STKT_MUST(plist);
    if (h->layout == H5D_CHUNKED) {
        STKT_MUST(H5Pset_chunk(plist, h->rank, h->chunk));
        STKT_MUST(H5Pset_alloc_time(plist, times[stkt_below(r, 3)]));
        stkt_hdf5_filters(h, plist, r);
    } else {
        STKT_MUST(H5Pset_layout(plist, h->layout));
        if (h->layout == H5D_CONTIGUOUS)
            STKT_MUST(H5Pset_alloc_time(plist, times[stkt_below(r, 2)]));
    }
    stkt_hdf5_fill(h, plist, r);
    return plist;
}

/* Noise with long runs, which filters can compress. */
static inline void stkt_hdf5_noise(unsigned char *to, int64_t bytes, uint64_t *r)
{
    for (int64_t i = 0; i < bytes; i++)
        to[i] = stkt_below(r, 3) && i > 0 ? to[i - 1] : (unsigned char)stkt_next(r);
}

/* Writes a random box of the data set, or all of it. */
static inline void stkt_hdf5_write_part(stkt_hdf5 *h, hid_t dataset, uint64_t *r, bool all)
{
    hsize_t start[4], count[4];
    int64_t elements = 1;
    hid_t space = H5Dget_space(dataset), memory, type = stkt_hdf5_memory_type(h);
    unsigned char *bytes;

    for (int i = 0; i < h->rank; i++) {
        start[i] = all || h->shape[i] == 0 ? 0 : (hsize_t)stkt_below(r, (int64_t)h->shape[i]);
        count[i] = all                ? h->shape[i]
                   : h->shape[i] == 0 ? 0
                                      : 1 + (hsize_t)stkt_below(r, (int64_t)(h->shape[i] - start[i]));
        elements *= (int64_t)count[i];
    }
    if (elements > 0) {
        bytes = malloc((size_t)elements * h->item);
        stkt_hdf5_noise(bytes, elements * (int64_t)h->item, r);
        memory = H5Screate_simple(h->rank, count, NULL);
        STKT_MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
        STKT_MAY(h, H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, bytes));
        STKT_MUST(H5Sclose(memory));
        free(bytes);
    }
    STKT_MUST(H5Tclose(type));
    STKT_MUST(H5Sclose(space));
}

/* Writes one whole chunk unfiltered, with all its filters marked as skipped. */
static inline void stkt_hdf5_write_unfiltered(const stkt_hdf5 *h, hid_t dataset, uint64_t *r)
{
    hsize_t element[4];
    size_t bytes = h->item;
    unsigned char *chunk;

    if (stkt_hdf5_count(h) == 0 || !h->raw)
        return;
    for (int i = 0; i < h->rank; i++) {
        element[i] = (hsize_t)stkt_below(r, (int64_t)h->shape[i]) / h->chunk[i] * h->chunk[i];
        bytes *= h->chunk[i];
    }
    chunk = malloc(bytes);
    stkt_hdf5_noise(chunk, (int64_t)bytes, r);
    STKT_MUST(H5Dwrite_chunk(dataset, H5P_DEFAULT, (1u << h->filters) - 1, element, bytes, chunk));
    free(chunk);
}

static inline void stkt_hdf5_resize(stkt_hdf5 *h, hid_t dataset, uint64_t *r)
{
    for (int i = 0; i < h->rank; i++)
        if (h->largest[i] == H5S_UNLIMITED || h->largest[i] > h->shape[i])
            h->shape[i] = (hsize_t)stkt_below(r, 14);
    for (int i = 0; i < h->rank; i++)
        if (h->largest[i] != H5S_UNLIMITED && h->shape[i] > h->largest[i])
            h->shape[i] = h->largest[i];
    STKT_MAY(h, H5Dset_extent(dataset, h->shape));
}

static inline void stkt_hdf5_shape(stkt_hdf5 *h, uint64_t *r)
{
    int64_t growing = stkt_below(r, 4);

    h->rank = 1 + (int)stkt_below(r, 3);
    for (int i = 0; i < h->rank; i++) {
        h->shape[i] = (hsize_t)(stkt_below(r, 20) ? 1 + stkt_below(r, 12) : 0);
        h->chunk[i] = 1 + (hsize_t)stkt_below(r, (int64_t)h->shape[i] + 3);
        h->largest[i] = h->shape[i];
        if (h->layout == H5D_CHUNKED && growing > i)
            h->largest[i] = growing == 3 ? h->shape[i] + 5 : H5S_UNLIMITED;
        if (h->largest[i] == 0) /* the library does not allow chunks beyond the largest size */
            h->largest[i] = H5S_UNLIMITED, h->layout = H5D_CHUNKED;
        if (h->largest[i] != H5S_UNLIMITED && h->chunk[i] > h->largest[i])
            h->chunk[i] = h->largest[i];
    }
}

static inline hid_t stkt_hdf5_create_file(const char *path, const stkt_hdf5 *h)
{
    hid_t create = H5Pcreate(H5P_FILE_CREATE), access = H5Pcreate(H5P_FILE_ACCESS), file;

    STKT_MUST(H5Pset_userblock(create, (hsize_t)h->user_block));
    if (h->latest)
        STKT_MUST(H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    STKT_MUST(file);
    STKT_MUST(H5Pclose(create));
    STKT_MUST(H5Pclose(access));
    return file;
}

/* Writes a file with one data set "x", derived from the seed. The caller closes h->type. */
static inline void stkt_hdf5_make(const char *path, uint64_t seed, stkt_hdf5 *h)
{
    static const H5D_layout_t layouts[] = {H5D_CHUNKED, H5D_CHUNKED, H5D_CHUNKED, H5D_CONTIGUOUS, H5D_COMPACT};
    uint64_t state = seed * 77 + 5, *r = &state;
    hid_t file, space, plist, dataset, memory;
    int64_t parts;

    *h = (stkt_hdf5){.seed = seed, .latest = stkt_below(r, 2) != 0};
    h->user_block = stkt_below(r, 4) ? 0 : 512 << stkt_below(r, 3);
    h->type = stkt_hdf5_type(r, &h->raw);
    h->layout = layouts[stkt_below(r, 5)];
    memory = stkt_hdf5_memory_type(h);
    h->item = H5Tget_size(memory);
    STKT_MUST(H5Tclose(memory));
    stkt_hdf5_shape(h, r);
    sprintf(h->about, "seed %llu: layout %d rank %d latest %d user block %d", (unsigned long long)seed, (int)h->layout,
            h->rank, h->latest, (int)h->user_block);
    file = stkt_hdf5_create_file(path, h);
    space = H5Screate_simple(h->rank, h->shape, h->largest);
    STKT_MUST(space);
    plist = stkt_hdf5_plist(h, r);
    dataset = H5Dcreate2(file, "x", h->type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    STKT_MUST(dataset);
    parts = stkt_below(r, 5);
    if (parts == 4)
        stkt_hdf5_write_part(h, dataset, r, true);
    for (int64_t i = 0; i < parts && parts < 4; i++)
        stkt_hdf5_write_part(h, dataset, r, false);
    if (h->layout == H5D_CHUNKED && h->filters > 0 && !h->odd_edges && stkt_below(r, 3) == 0) {
        stkt_hdf5_write_unfiltered(h, dataset, r);
        STKT_MUST(H5Dclose(dataset)); /* reopens it, because the library has cached the old filter mask */
        dataset = H5Dopen2(file, "x", H5P_DEFAULT);
        STKT_MUST(dataset);
    }
    if (h->layout == H5D_CHUNKED && !h->odd_edges && stkt_below(r, 3) == 0) {
        stkt_hdf5_resize(h, dataset, r);
        if (stkt_below(r, 2))
            stkt_hdf5_write_part(h, dataset, r, false);
    }
    STKT_MAY(h, H5Dclose(dataset));
    STKT_MUST(H5Pclose(plist));
    STKT_MUST(H5Sclose(space));
    STKT_MAY(h, H5Fclose(file));
}

/* All of "x" as H5Dread reads it into a buffer of zeros; the caller frees it. Returns NULL if the library fails. */
static inline unsigned char *stkt_hdf5_read(const char *path, const stkt_hdf5 *h)
{
    int64_t bytes = stkt_hdf5_count(h) * (int64_t)h->item;
    unsigned char *values = calloc(1, (size_t)bytes + 1);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT), dataset, type = stkt_hdf5_memory_type(h);
    herr_t done;

    STKT_MUST(file);
    dataset = H5Dopen2(file, "x", H5P_DEFAULT);
    STKT_MUST(dataset);
    H5E_BEGIN_TRY
    {
        done = bytes > 0 ? H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) : 0;
    }
    H5E_END_TRY
    STKT_MUST(H5Dclose(dataset));
    STKT_MUST(H5Tclose(type));
    STKT_MUST(H5Fclose(file));
    if (done >= 0)
        return values;
    free(values);
    return NULL;
}

#endif
