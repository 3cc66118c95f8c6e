/* loadbench_show.c: --show-config. The output is a config that says the same from any folder: includes and variables
 * are resolved, paths are absolute, and `bench` shows every option. */
#include "allocate.h"
#include "error.h"
#include "loadbench_config.h"
#include "text_check.h"
#include <stdlib.h>
#include <string.h>

/* A path as the loader takes it: from the folder of the file that names it; one of --set from the working directory.
 * NULL: no memory. */
static char *absolute_path(const stki_node *node)
{
    const char *text = node->text, *beside = strncmp(node->file, "--set", 5) == 0 ? NULL : strrchr(node->file, '/');
    char *folder = NULL, *real = NULL, *path = NULL;

    if (text[0] == '/')
        return stki_strdup(text);
    if (beside)
        folder = stki_format("%.*s", beside == node->file ? 1 : (int)(beside - node->file), node->file);
    real = realpath(folder ? folder : ".", NULL);
    if (real)
        path = stki_format("%s/%s", strcmp(real, "/") == 0 ? "" : real, text);
    free(real);
    stki_free(folder);
    return path ? path : stki_strdup(text);
}

/* A text as a config writes it in quotes. NULL: no memory. */
static char *quote(const char *text)
{
    json_t *string = json_string(text); /* NULL: no UTF-8 */
    char *plain = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL, *out = NULL;

    json_decref(string);
    out = plain ? stki_zalloc((int64_t)(2 * strlen(plain) + 1)) : NULL;
    for (char *from = plain, *to = out; out && *from; from++) {
        if (*from == '$')
            *to++ = '$';
        *to++ = *from;
    }
    free(plain);
    return out;
}

static bool is_utf8(const char *text)
{
    uint32_t code;
    int bytes = 1;

    for (; *text && bytes > 0; text += bytes)
        bytes = stki_utf8_next(text, (int64_t)strlen(text), &code);
    return bytes > 0;
}

static stk_status set_path(stki_document *document, const stki_node *node, stk_error *err)
{
    char where[512], *path = absolute_path(node), *value = path ? quote(path) : NULL;
    stk_status status;

    stki_node_path(node, where, sizeof where);
    if (value)
        status = stki_document_set_value(document, where, value, node->file, err);
    else if (path && !is_utf8(path))
        status = stki_fail(err, STK_E_UNSUPPORTED, "%s: %s is not UTF-8, which a config has to be", where, path);
    else
        status = stki_fail_memory(err, 4096, "a path");
    stki_free(value);
    stki_free(path);
    return status;
}

static stk_status set_paths(stki_document *document, stk_error *err)
{
    const stki_node *root = stki_document_root(document);
    const stki_node *dataset = stki_node_get(root, "dataset"), *manifest = stki_node_get(dataset, "manifest");
    const stki_node *fields = stki_node_get(dataset, "fields");
    stk_status status = manifest ? set_path(document, manifest, err) : STK_OK;

    for (int i = 0; fields && fields->kind == STKI_NODE_MAP && i < fields->count && status == STK_OK; i++) {
        const stki_node *path = stki_node_get(fields->items[i], "path");
        if (path && path->kind == STKI_NODE_SCALAR)
            status = set_path(document, path, err);
        for (int k = 0; path && path->kind == STKI_NODE_LIST && k < path->count && status == STK_OK; k++)
            status = set_path(document, path->items[k], err);
    }
    return status;
}

static stk_status set_bench(const struct lb_config *config, stk_error *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    stk_status status;

    if (memory)
        stki_options_write(&lb_bench_table, &config->bench, 0, memory);
    if (!memory || fclose(memory) != 0)
        status = stki_fail_memory(err, 4096, "the options in effect");
    else
        status = stki_document_set_value(config->document, "bench", text, "the options in effect", err);
    free(text);
    return status;
}

stk_status lb_config_show(const struct lb_config *config, FILE *to, stk_error *err)
{
    stk_status status = set_paths(config->document, err);

    if (status == STK_OK)
        status = set_bench(config, err);
    if (status == STK_OK)
        stki_document_write(config->document, to);
    return status;
}
