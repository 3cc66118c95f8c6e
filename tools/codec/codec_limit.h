/* codec_limit.h: measures the decoding libraries alone, from memory and on the same bytes as the loader: libjpeg-turbo
 * on the JPEG images of a field, libdeflate on the chunks of an HDF5 data set. */
#ifndef CODEC_LIMIT_H
#define CODEC_LIMIT_H

#include <stdint.h>
#include <stoker/status.h>

struct codec_ask {
    int threads;
    int64_t most_bytes; /* memory limit; 0: 128 MiB, which is the maximum */
    int64_t time_ns;    /* duration in ns of each of three measurements, of which the median counts */
    const char *const *paths;
    int path_count;
    const char *source;      /* keys of `source` in the config language, "{name: image}"; NULL: none */
    const char *name;        /* of the field */
    const _Atomic int *stop; /* not 0: stops without a result; NULL: never stops */
};

struct codec_limit {
    double samples_per_s; /* 0: no such data in these files, see `missing` */
    double bytes_per_s;   /* size when decompressed */
    int items;            /* number of images or chunks measured */
    int64_t packed_bytes; /* their compressed size */
    char missing[256];
};

/* Decodes whole images to RGB: up to CODEC_ITEMS of them, from all over the data. */
enum { CODEC_ITEMS = 256 };
stk_status codec_jpeg(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);
/* Decompresses chunks of the data set `name` of an HDF5 file, along axis 0. Filters other than deflate are not
 * decoded. */
stk_status codec_inflate(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);

const char *codec_jpeg_version(void);    /* "libjpeg-turbo 2.1.5" */
const char *codec_deflate_version(void); /* "libdeflate 1.14" */

const char *codec_hdf5_version(void); /* "HDF5 1.10.8" */

#endif
