/* class_file.h: class names from a file or folder of any format. */
#ifndef STKI_CLASS_FILE_H
#define STKI_CLASS_FILE_H

#include "classes.h"

/* Adds the class names found at `path`. Those of class folders, a list of images, a table or a JSON Lines file (the
 * member opts->name or opts->prefer) are sorted. Any other text file contains one name per line; the names keep the
 * order of the file, and *ordered is set. */
stk_status stki_classes_of_path(const char *path, const stki_reader_opts *opts, stki_classes *out, bool *ordered,
                                stk_error *err);

#endif
