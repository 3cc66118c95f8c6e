/* codec_limit.h: measures the decoding libraries in isolation, on copies in memory of the bytes that the loader
 * decodes: libjpeg-turbo on the JPEG images of a field, libdeflate on the chunks of an HDF5 data set. */
#ifndef CODEC_LIMIT_H
#define CODEC_LIMIT_H

#include <stdint.h>
#include <stoker/status.h>

struct codec_ask {
    int threads;
    int64_t most_bytes; /* limit on compressed images or decompressed chunks; 0: 128 MiB, the maximum */
    int64_t time_ns;    /* duration of each of the three measurements; the result is their median */
    const char *const *paths;
    int path_count;
    const char *source;      /* the field's `source` key in config syntax, such as "{name: image}"; NULL: none */
    const char *name;        /* name of the field */
    const _Atomic int *stop; /* the measurement stops without a result when this becomes nonzero; may be NULL */
};

struct codec_limit {
    double samples_per_s; /* 0: not measured, for the reason in `missing` */
    double bytes_per_s;   /* decompressed bytes */
    int items;            /* number of images or chunks measured */
    int64_t packed_bytes; /* total compressed size of the items */
    char missing[256];
};

/* Decodes at most CODEC_ITEMS whole images, drawn at random from all of the data, to RGB. */
enum { CODEC_ITEMS = 256 };
stk_status codec_jpeg(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);
/* Decompresses at most CODEC_ITEMS chunks of the data set `name` of an HDF5 file. Samples are the rows of axis 0.
 * Filters other than deflate are not decoded. */
stk_status codec_inflate(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);

const char *codec_jpeg_version(void);    /* "libjpeg-turbo 2.1.5" */
const char *codec_deflate_version(void); /* "libdeflate 1.14" */

const char *codec_hdf5_version(void); /* "HDF5 1.10.8" */

#endif
