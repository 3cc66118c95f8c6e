/* image_folder.h: sets of image files, and single image files, as containers. */
#ifndef STKI_IMAGE_FOLDER_H
#define STKI_IMAGE_FOLDER_H

#include "container.h"

/* Opens a folder with the members "image", "label" (if there are labels) and "path". */
stk_status stki_image_folder_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                       stk_error *err);
/* Adds the names of a folder's class folders, in order. Nothing else is read. */
stk_status stki_image_folder_classes(const char *path, stki_classes *out, stk_error *err);
/* Opens a text file that lists images, with the members "image", "label" (if there are labels) and "path". */
stk_status stki_image_list_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                     stk_error *err);
/* Opens files whose names have image extensions, in this order and one sample each, with the members "image" and
 * "path". */
stk_status stki_image_files_container(char *const *paths, int64_t count, const stki_reader_opts *opts,
                                      stki_container **out, stk_error *err);
/* Open one JPEG or PNG file with the member "image", which has one sample. The message of STK_E_UNSUPPORTED says what
 * the file is instead. */
stk_status stki_jpeg_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
stk_status stki_png_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);

#endif
