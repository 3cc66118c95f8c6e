/* finishers.c: what can be done to rows between loader and sink; a line each. */
#include "error.h"
#include "finish.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const stki_finisher_ops *const stki_finishers[] = {
    &stki_finish_keep,
    &stki_finish_jpeg,
    &stki_finish_tokens,
    NULL,
};

const stki_finisher_ops *stki_finisher_find(const char *name)
{
    for (int i = 0; stki_finishers[i]; i++)
        if (!strcmp(stki_finishers[i]->name, name))
            return stki_finishers[i];
    return NULL;
}

stk_status stki_finish_refuse(stk_error *err, const stki_node *options, const stki_sink_field *in, const char *format,
                              ...)
{
    char what[512];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return options ? stki_fail_node(err, options, "%s", what)
                   : stki_fail(err, STK_E_CONFIG, "output.fields.%s: %s", in->name, what);
}
