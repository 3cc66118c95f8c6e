/* codec_limit.h: what the libraries that unpack data do by themselves, on the same bytes as the loader, from memory:
 * libjpeg-turbo on the JPEG images of a field, libdeflate on the chunks of an HDF5 data set. */
#ifndef CODEC_LIMIT_H
#define CODEC_LIMIT_H

#include <stdint.h>
#include <stoker/status.h>

struct codec_ask {
    int threads;
    int64_t most_bytes; /* that it may keep in memory; 0: 128 MiB, which is the most */
    int64_t time_ns;    /* of one of three measurements; the middle one counts */
    const char *const *paths;
    int path_count;
    const char *source;      /* keys of `source` in the config language, "{name: image}"; NULL: none */
    const char *name;        /* of the field */
    const _Atomic int *stop; /* not 0: end soon, with nothing measured; NULL: nobody asks for that */
};

struct codec_limit {
    double samples_per_s; /* 0: nothing of the kind is in these files, `missing` says so */
    double bytes_per_s;   /* unpacked */
    int items;            /* images or chunks that were measured */
    int64_t packed_bytes; /* of them */
    char missing[256];
};

/* Whole images to RGB. Up to CODEC_ITEMS of them, from all over the data. */
enum { CODEC_ITEMS = 256 };
stk_status codec_jpeg(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);
/* Chunks of the data set `name` of an HDF5 file, along axis 0. Other filters than deflate are not undone. */
stk_status codec_inflate(const struct codec_ask *ask, struct codec_limit *out, stk_error *err);

const char *codec_jpeg_version(void);    /* "libjpeg-turbo 2.1.5" */
const char *codec_deflate_version(void); /* "libdeflate 1.14" */

const char *codec_hdf5_version(void); /* "HDF5 1.10.8" */

#endif
