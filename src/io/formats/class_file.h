/* class_file.h: class names from a file or folder of any format. */
#ifndef STKI_CLASS_FILE_H
#define STKI_CLASS_FILE_H

#include "classes.h"

/* Adds the class names of class folders, a list of images, a table or a JSON Lines file (the member opts->name or
 * opts->prefer), sorted; or of another text file, with one name per line in that order, which sets *ordered. */
stk_status stki_classes_of_path(const char *path, const stki_reader_opts *opts, stki_classes *out, bool *ordered,
                                stk_error *err);

#endif
