/* parameter_file.c: see parameter_file.h. */
#include "parameter_file.h"
#include "allocate.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

enum { STATS_FORMAT = 1 };

/* Prefixes the error with the config line that names the file. */
static stk_status fail_to_open(const stki_node *node, stk_status status, stk_error *err)
{
    char path[256], where[512];

    stki_node_path(node, path, sizeof path);
    if (node->line > 0)
        snprintf(where, sizeof where, "%.200s:%d: %s", node->file, node->line, path);
    else
        snprintf(where, sizeof where, "%.200s: %s", node->file, path);
    return stki_fail_place(err, status, NULL, -1, where);
}

/* Statistics files have a version number; other parameter files have none. */
static stk_status check_format(const stki_node *root, stk_error *err)
{
    const stki_node *node = stki_node_get(root, "stoker_stats");
    int64_t format;
    stk_status status;

    if (!node)
        return STK_OK;
    status = stki_node_int(node, &format, err);
    if (status == STK_OK && format != STATS_FORMAT)
        status = stki_fail_value(err, node, "format %d: the file is from a different version of stoker", STATS_FORMAT);
    return status;
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
    path = stki_node_path_from(node, base_dir);
    if (!path)
        return stki_fail_memory(err, (int64_t)strlen(text), "a path");
    status = stki_document_open(path, document, err);
    if (status == STK_E_NOT_FOUND || status == STK_E_IO)
        status = fail_to_open(node, status, err);
    if (status == STK_OK && (status = check_format(stki_document_root(*document), err)) != STK_OK)
        stki_document_destroy(*document);
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

/* ---- statistics ---- */

bool stki_parameters_are_stats(const stki_document *document)
{
    return stki_node_get(stki_document_root(document), "stoker_stats") != NULL;
}

stk_status stki_stats_moments(const stki_node *field, const stki_node *per, const stki_node **out, stk_error *err)
{
    static const char *const words[] = {"tensor", "channel", NULL};
    const stki_node *tensor = stki_node_get(field, "tensor");
    int which = 1;
    stk_status status;

    *out = field;
    if (!stki_node_get(field, "mean"))
        return stki_fail_node(err, field, "found no mean, expected statistics of a numeric field");
    if (!per)
        return STK_OK;
    status = stki_node_word(per, words, &which, err);
    if (status != STK_OK)
        return status;
    if (which == 1 && !tensor)
        return stki_fail_value(err, per, "tensor: %s has no per-channel statistics", field->file);
    *out = which == 0 && tensor ? tensor : field;
    return STK_OK;
}

/* Writes the list of keys: "minmax, mse". */
static const char *methods_of(const stki_node *map, char *text, size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (int i = 0; i < map->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", map->keys[i]);
    return text;
}

stk_status stki_stats_calibration(const stki_node *field, const stki_node *method, const stki_node **out,
                                  stk_error *err)
{
    const stki_node *map = stki_node_get(field, "quantize");
    char known[96];
    const char *name;
    stk_status status;

    if (!map || map->kind != STKI_NODE_MAP || map->count == 0)
        return stki_fail_node(err, field, "found no calibration, expected one: add calibrate: mse to the job's stats");
    if (method->kind == STKI_NODE_MAP) {
        if (map->count > 1)
            return stki_fail_node(err, method, "%s has several calibrations, expected method to be one of %s",
                                  map->file, methods_of(map, known, sizeof known));
        *out = map->items[0];
        return STK_OK;
    }
    status = stki_node_text(method, &name, err);
    if (status != STK_OK)
        return status;
    *out = stki_node_get(map, name);
    if (!*out)
        return stki_fail_value(err, method, "one of the calibrations in %s: %s", map->file,
                               methods_of(map, known, sizeof known));
    return STK_OK;
}
