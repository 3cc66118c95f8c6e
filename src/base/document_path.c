/* document_path.c: resolves relative paths in a config. A path is relative to the folder of the file that contains it,
 * to base_dir in a text, and to the working directory in an assignment. */
#include "allocate.h"
#include "document_build.h"
#include "error.h"
#include "stamp.h"
#include "text_check.h"
#include <stdlib.h>
#include <string.h>

char *stki_node_path_from(const stki_node *node, const char *base_dir)
{
    const char *slash = node->line > 0 ? strrchr(node->file, '/') : NULL;

    if (node->text[0] == '/' || node->line == 0 || (!slash && !base_dir))
        return stki_strdup(node->text);
    if (slash)
        return stki_format("%.*s/%s", (int)(slash - node->file), node->file, node->text);
    return stki_format("%s/%s", base_dir, node->text);
}

stk_status stki_node_file(const stki_node *node, const char **out, stk_error *err)
{
    stk_status status = stki_node_text(node, out, err);

    if (status != STK_OK)
        return status;
    if (!**out)
        return stki_fail_value(err, node, "a path");
    *out = node->opened ? node->opened : *out;
    return STK_OK;
}

/* Copies the path into the document and frees it. NULL: out of memory. */
static stk_status keep_path(stki_document *document, char *path, const char **out, stk_error *err)
{
    const int64_t bytes = path ? (int64_t)strlen(path) + 1 : 0;
    char *text;

    if (!path)
        return stki_fail_memory(err, 0, "a path");
    text = stki_document_alloc(document, bytes, err);
    if (text)
        *out = memcpy(text, path, (size_t)bytes);
    stki_free(path);
    return text ? STK_OK : STK_E_MEMORY;
}

stk_status stki_document_resolve(stki_document *document, stki_node *node, const char *base_dir, stk_error *err)
{
    stk_status status = stki_node_file(node, &node->opened, err);

    return status == STK_OK ? keep_path(document, stki_node_path_from(node, base_dir), &node->opened, err) : status;
}

static bool names(const stki_node *node, const stki_stamp *file, const stki_node *const *except, int except_count)
{
    bool found = node->opened && stki_stamp_is_of(file, node->opened);

    for (int i = 0; i < except_count; i++)
        found = found && node != except[i];
    for (int i = 0; i < node->count && !found; i++)
        found = names(node->items[i], file, except, except_count);
    return found;
}

bool stki_document_uses(const stki_document *document, const char *file, const stki_node *const *except,
                        int except_count)
{
    stki_stamp stamp;

    if (stki_stamp_take(file, &stamp, NULL) != STK_OK)
        return false;
    for (const struct stki_document_source *source = document->sources; source; source = source->next)
        if (stki_stamp_is_of(&stamp, source->path))
            return true;
    return names(document->root, &stamp, except, except_count);
}

static bool is_utf8(const char *text)
{
    uint32_t code;
    int bytes = 1;

    for (; *text && bytes > 0; text += bytes)
        bytes = stki_utf8_next(text, (int64_t)strlen(text), &code);
    return bytes > 0;
}

static stk_status make_absolute(stki_document *document, stki_node *node, const char *folder, stk_error *err)
{
    stk_status status = STK_OK;

    if (node->opened) {
        char *path = node->opened[0] == '/' ? stki_strdup(node->opened)
                                            : stki_format("%s/%s", folder[1] ? folder : "", node->opened);

        if ((status = keep_path(document, path, &node->text, err)) != STK_OK)
            return status;
        node->quoted = true;
        return is_utf8(node->text)
                   ? STK_OK
                   : stki_fail_node(err, node, "%s is not UTF-8, but configs must be UTF-8", node->text);
    }
    for (int i = 0; i < node->count && status == STK_OK; i++)
        status = make_absolute(document, node->items[i], folder, err);
    return status;
}

stk_status stki_document_write_absolute(const stki_document *document, FILE *to, stk_error *err)
{
    char *folder = realpath(".", NULL);
    stki_document *copy = NULL;
    stk_status status = STK_OK;

    if (!folder)
        return stki_fail(err, STK_E_IO, "the path of the working directory cannot be determined");
    if ((status = stki_document_parse("", 0, "", STKI_NO_INCLUDE, &copy, err)) == STK_OK &&
        (status = stki_node_copy(copy, document->root, &(stki_location){.file = "", .depth = 1}, &copy->root, err)) ==
            STK_OK &&
        (status = make_absolute(copy, copy->root, folder, err)) == STK_OK)
        stki_document_write(copy, to);
    stki_document_destroy(copy);
    free(folder);
    return status;
}
