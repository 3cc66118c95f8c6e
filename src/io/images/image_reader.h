/* image_reader.h: the images of a set as samples: u8, height x width x 3 (1 with decode->gray), each of its own size.
 */
#ifndef STKI_IMAGE_READER_H
#define STKI_IMAGE_READER_H

#include "container.h"
#include "decode.h"
#include "image_set.h"

/* The set lives in the container, which the reader keeps. With decode->none the bytes of the files instead, u8 of
 * varying length, whatever they hold. */
stk_status stki_image_reader_open(const stki_container *container, const stki_image_set *set,
                                  const stki_decode_opts *decode, stki_reader **out, stk_error *err);
/* Looks at all images: those that can be read have one shape, which becomes the reader's, or shapes of their own. Fails
 * with the error of the first image if none can be read. Before the reader is used. */
stk_status stki_image_reader_settle(stki_reader *reader, stk_error *err);
/* The paths relative to the set's root, u8, as samples of their own lengths. */
stk_status stki_image_path_reader_open(const stki_container *container, const stki_image_set *set, stki_reader **out,
                                       stk_error *err);

#endif
