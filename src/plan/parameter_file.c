/* parameter_file.c: see parameter_file.h. */
#include "parameter_file.h"
#include "allocate.h"
#include "error.h"
#include <string.h>

static char *resolve(const stki_node *node, const char *text, const char *base_dir)
{
    const char *slash = node->line > 0 ? strrchr(node->file, '/') : NULL;

    if (*text == '/' || node->line == 0 || (!base_dir && !slash))
        return stki_strdup(text);
    return base_dir ? stki_format("%s/%s", base_dir, text)
                    : stki_format("%.*s/%s", (int)(slash - node->file), node->file, text);
}

stk_status stki_parameters_open(const stki_node *node, const char *base_dir, const char *field,
                                stki_document **document, const stki_node **out, stk_error *err)
{
    const char *text;
    const stki_node *root, *fields;
    char *path;
    stk_status status = stki_node_text(node, &text, err);

    if (status != STK_OK)
        return status;
    path = resolve(node, text, base_dir);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(text), "a path");
    status = stki_document_open(path, document, err);
    if (status == STK_OK) {
        root = stki_document_root(*document);
        fields = stki_node_get(root, "fields");
        *out = fields ? stki_node_get(fields, field) : root;
        if (!*out) {
            status = stki_fail_node(err, node, "%s has no parameters for the field %s", path, field);
            stki_document_destroy(*document);
        }
    }
    stki_free(path);
    return status;
}
