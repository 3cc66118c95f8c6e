/* path.c: see path.h. */
#include "path.h"
#include "allocate.h"
#include <string.h>

const char *stki_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *stki_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? stki_format("%.*s", slash == path ? 1 : (int)(slash - path), path) : stki_strdup(".");
}

char *stki_beside(const char *path, const char *name)
{
    return stki_format("%.*s%s", (int)(stki_base_name(path) - path), path, name);
}
