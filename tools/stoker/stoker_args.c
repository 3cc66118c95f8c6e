/* stoker_args.c: see stoker_args.h. */
#include "stoker_args.h"
#include "config.h"
#include "error.h"
#include <string.h>

stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err)
{
    stki_field_config field = {.name = "FIELD"};
    stk_status status;

    *document = NULL;
    *out = (stki_reader_opts){0};
    if (!text)
        return STK_OK;
    status = stki_document_parse(text, (int64_t)strlen(text), "--source", STKI_NO_INCLUDE, document, err);
    if (!status)
        status = stki_config_source(stki_document_root(*document), *document, &field, err);
    if (!status && field.classes.node)
        status = stki_fail_key(err, field.classes.node,
                               "belongs to a field of a config: this looks at one file, whose "
                               "names stay names");
    if (!status)
        *out = field.source;
    return status;
}
