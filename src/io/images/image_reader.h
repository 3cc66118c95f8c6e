/* image_reader.h: the images of a set as samples: u8, height x width x 3 (1 with decode->gray), of varying size. */
#ifndef STKI_IMAGE_READER_H
#define STKI_IMAGE_READER_H

#include "container.h"
#include "decode.h"
#include "image_set.h"

/* Creates a reader of the images of a set, which belongs to the container. The reader retains the container. With
 * decode->none, samples are the bytes of the files, u8 of varying length, with any content. */
stk_status stki_image_reader_open(const stki_container *container, const stki_image_set *set,
                                  const stki_decode_opts *decode, stki_reader **out, stk_error *err);
/* Checks all images: if all readable images have the same shape, it becomes the shape of the reader. Fails with the
 * error of the first image if none can be read. Call before the reader is used. */
stk_status stki_image_reader_settle(stki_reader *reader, stk_error *err);
/* Creates a reader whose samples are the paths relative to the set's root, as u8 of varying length. */
stk_status stki_image_path_reader_open(const stki_container *container, const stki_image_set *set, stki_reader **out,
                                       stk_error *err);

#endif
