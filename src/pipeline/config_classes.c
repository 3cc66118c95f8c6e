/* config_classes.c: reads source.classes of a field: a list of names, the word sorted, a file, or {from: PATH}. Files
 * are read when the data set is opened (field_classes.c). */
#include "allocate.h"
#include "classes.h"
#include "config.h"
#include "error.h"
#include <string.h>

typedef struct classes_options {
    const stki_node *from;
} classes_options;

static const char *const words[] = {"sorted", NULL}; /* values that are not paths */

static const stki_option rows[] = {
    STKI_NODE(classes_options, from,
              "A folder of class folders, a list of images, a CSV or JSON lines (all their names in bytewise order), a "
              "text file with one name per line, or the manifest of a preparation job",
              .words = words, .flags = STKI_PATH, .examples = STKI_EXAMPLES("train", "[train-a, train-b]")),
};
const stki_option_table stki_classes_table =
    STKI_OPTION_TABLE_WITH("dataset.fields.NAME.source.classes", rows, .shorthand = "from");

static stk_status check_list(const stki_node *list, stk_error *err)
{
    stki_classes names = {0};
    stk_status status = list->count > 0 ? STK_OK : stki_fail_value(err, list, "a list of names");

    for (int i = 0; i < list->count && status == STK_OK; i++) {
        const char *name;
        int64_t number;

        status = stki_node_text(list->items[i], &name, err);
        if (status == STK_OK && !*name)
            status = stki_fail_value(err, list->items[i], "the name of a class");
        if (status == STK_OK)
            status = stki_classes_add(&names, name, &number, err);
        if (status == STK_OK && number != i)
            status = stki_fail_value(err, list->items[i], "distinct names");
    }
    stki_classes_fini(&names);
    return status;
}

static stk_status read_paths(const stki_node *from, stki_class_config *classes, stk_error *err)
{
    const bool list = from->kind == STKI_NODE_LIST;
    const int count = list ? from->count : 1;
    stk_status status = STK_OK;

    if (from->kind == STKI_NODE_MAP || count == 0)
        return stki_fail_value(err, from, "a path or a list of paths");
    classes->from = STKI_CLASSES_FILES;
    classes->paths = stki_zalloc_array(count, sizeof *classes->paths);
    if (!classes->paths)
        return stki_fail_memory(err, count * (int64_t)sizeof *classes->paths, "a list of paths");
    for (; classes->path_count < count && status == STK_OK; classes->path_count++)
        status =
            stki_node_file(list ? from->items[classes->path_count] : from, &classes->paths[classes->path_count], err);
    return status;
}

static stk_status read_node(stki_loader_config *config, const stki_node *node, stki_class_config *classes,
                            stk_error *err)
{
    classes_options o = {0};
    stk_status status;

    if (node->kind == STKI_NODE_LIST) {
        classes->from = STKI_CLASSES_LISTED;
        classes->list = node;
        return check_list(node, err);
    }
    if (node->kind == STKI_NODE_SCALAR && strcmp(node->text, words[0]) == 0) {
        classes->from = STKI_CLASSES_SORTED;
        return STK_OK;
    }
    if (node->kind == STKI_NODE_SCALAR)
        return read_paths(node, classes, err);
    stki_options_defaults(&stki_classes_table, &o);
    if ((status = stki_config_options(config, &stki_classes_table, node, &o, err)) != STK_OK)
        return status;
    return o.from ? read_paths(o.from, classes, err)
                  : stki_fail_node(err, node, "from is missing: the file or folder that contains the names");
}

stk_status stki_config_classes(stki_loader_config *config, const stki_node *source, stki_class_config *classes,
                               stk_error *err)
{
    const stki_node *unknown = stki_node_get(source, "unknown_class");
    stk_status status = STK_OK;

    if (classes->node && stki_node_is_null(classes->node))
        classes->node = NULL;
    if (classes->node)
        status = read_node(config, classes->node, classes, err);
    if (status == STK_OK && unknown && classes->node && classes->from != STKI_CLASSES_LISTED &&
        classes->from != STKI_CLASSES_FILES)
        status = stki_fail_key(
            err, unknown,
            "has no effect without classes, which is a list of names, {from: PATH}, or sorted (all names that occur)");
    return status;
}
