/* class_file.h: the names of classes that a file or a folder has, whatever its format. */
#ifndef STKI_CLASS_FILE_H
#define STKI_CLASS_FILE_H

#include "classes.h"

/* Adds the names that a file or folder has: class folders, a list of images, a table of text or lines of JSON (the
 * member that opts->name or opts->prefer names): sorted. Of any other text, one a line: in that order, and *ordered is
 * set. */
stk_status stki_classes_of_path(const char *path, const stki_reader_opts *opts, stki_classes *out, bool *ordered,
                                stk_error *err);

#endif
