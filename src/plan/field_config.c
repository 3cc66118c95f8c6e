/* field_config.c: see field_config.h. */
#include "field_config.h"
#include "error.h"
#include <stdarg.h>
#include <stdio.h>

stk_status stki_fail_field(stk_error *err, const stki_field_config *config, stk_status status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (config->node && status == STK_E_CONFIG)
        return stki_fail_node(err, config->node, "%s", text);
    return stki_fail(err, status, "dataset.fields.%s: %s", config->name, text);
}
