/* path.h: the parts of a path. */
#ifndef STKI_PATH_H
#define STKI_PATH_H

/* Returns the part after the last slash. */
const char *stki_base_name(const char *path);
/* Returns the folder of a path, "." if it has no slash, or the path of `name` in that folder; free with stki_free.
 * NULL: out of memory. */
char *stki_folder_of(const char *path);
char *stki_beside(const char *path, const char *name);

#endif
