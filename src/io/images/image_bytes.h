/* image_bytes.h: a reader that decodes another reader's samples, which are the bytes of image files: rows of an HDF5
 * data set, for example. */
#ifndef STKI_IMAGE_BYTES_H
#define STKI_IMAGE_BYTES_H

#include "container.h"

/* source.images: the samples of a member are encoded images. */
extern const stki_source_group stki_image_bytes_source;

/* For a container's `finish`: replaces *reader if source.images is true. Bytes after the end of an image are ignored,
 * so rows of fixed length can be padded. STK_E_UNSUPPORTED: the samples are not rows of bytes. STK_E_CONFIG: image
 * options were given without source.images. */
stk_status stki_image_bytes_finish(const stki_container *container, int64_t member, const stki_reader_opts *opts,
                                   stki_reader **reader, stk_error *err);

#endif
