/* finishers.c: what can be done to rows between loader and sink; a line each. */
#include "finish.h"
#include <string.h>

const stki_finisher_ops *const stki_finishers[] = {
    &stki_finish_keep,
    &stki_finish_jpeg,
    NULL,
};

const stki_finisher_ops *stki_finisher_find(const char *name)
{
    for (int i = 0; stki_finishers[i]; i++)
        if (!strcmp(stki_finishers[i]->name, name))
            return stki_finishers[i];
    return NULL;
}
