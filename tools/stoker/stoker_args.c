/* stoker_args.c: see stoker_args.h. */
#include "stoker_args.h"
#include "config.h"
#include "error.h"
#include <string.h>
#include <unistd.h>

/* Rejects options that only affect loaders. */
static stk_status refuse_of_field(const stki_node *map, const stki_field_config *field, stk_error *err)
{
    const struct {
        bool given;
        const char *key;
    } options[] = {{field->window.length > 0, "window"},
                   {field->tokens.documents, "documents"},
                   {field->tokens.packed, "pack"},
                   {field->sample_per_file, "sample_per_file"},
                   {field->source_layout != NULL, "layout"}};

    if (field->classes.node)
        return stki_fail_key(
            err, field->classes.node,
            "applies only to a field of a config: this command reads a single file without numbering its class names");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (options[i].given)
            return stki_fail_key(
                err, stki_node_get(map, options[i].key),
                "applies only to a field of a config: this command reads a single file as it is stored");
    return STK_OK;
}

stk_status st_args_check(const stki_container *container, int64_t only, const stki_reader_opts *opts, stk_error *err)
{
    stk_status first = STK_OK;
    stk_error own;

    for (int64_t i = 0; i < container->member_count; i++) {
        const stki_member *member = &container->members[i];
        stki_reader *reader;
        stk_status status;

        if ((only >= 0 && i != only) || member->status != STK_OK || member->kind == STKI_MEMBER_OTHER)
            continue;
        status = stki_container_reader(container, i, opts, &reader, first == STK_OK ? err : &own);
        if (status == STK_OK) {
            stki_reader_destroy(reader);
            return STK_OK;
        }
        first = first == STK_OK ? status : first;
    }
    return first;
}

stk_status st_args_find(const stki_container *container, const stki_reader_opts *opts, int64_t *out, stk_error *err)
{
    const stk_status status = stki_container_find(container, opts, out, err);

    if (status == STK_E_NOT_FOUND && opts->name && access(opts->name, F_OK) == 0)
        return stki_fail(err, STK_E_NOT_FOUND,
                         "%s: there is no member %s; to read the file of this name, run the command for each file",
                         container->path, opts->name);
    return status;
}

stk_status st_args_source(const char *text, stki_document **document, stki_reader_opts *out, stk_error *err)
{
    stki_field_config field = {.name = "FIELD"};
    stk_status status;

    *document = NULL;
    *out = (stki_reader_opts){0};
    if (!text)
        return STK_OK;
    status = stki_document_parse(text, (int64_t)strlen(text), "--source", STKI_NO_INCLUDE, document, err);
    if (status == STK_OK)
        status = stki_config_source(stki_document_root(*document), *document, &field, err);
    if (status == STK_OK)
        status = refuse_of_field(stki_document_root(*document), &field, err);
    if (status == STK_OK)
        *out = field.source;
    return status;
}
