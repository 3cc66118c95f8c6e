/* config_together.c: keys that do nothing without another one. Such a key is refused by name: whoever wrote it expects
 * something of it. Where a later source (an including file, --set) took away what it needs, it becomes a note. */
#include "config.h"
#include "error.h"
#include <string.h>

typedef struct dependent {
    const char *key, *needs; /* what it needs, as it would be written */
    const char *master;      /* the key whose change may have taken that away */
    bool met;
    bool noted; /* programs that take a device where there is one say it for all: never refused */
} dependent;

static stk_status check(stki_loader_config *config, const stki_node *section, const dependent *of, stk_error *err)
{
    const stki_node *node = stki_node_get(section, of->key), *master = stki_node_get(section, of->master);

    if (!node || of->met)
        return STK_OK;
    if (!of->noted && (!master || master->layer <= node->layer))
        return stki_fail_key(err, node, "does nothing without %s", of->needs);
    stki_config_note(config, "loader.%s does nothing without %s (%s)", of->key, of->needs,
                     master ? master->file : node->file);
    return STK_OK;
}

stk_status stki_config_together(stki_loader_config *config, const stki_node *section, stk_error *err)
{
    static const char lenient[] = "on_error: skip or substitute";
    bool survives = config->on_error != STK_ON_ERROR_FAIL;
    stk_status status = STK_OK;

    for (int i = 0; i < config->dataset_count; i++)
        survives |= config->datasets[i].on_error > STK_ON_ERROR_FAIL;

    const dependent all[] = {
        {"bucket_window", "bucket_by", "bucket_by", config->bucket_by != NULL},
        {"mixture_stop", "datasets", "datasets", config->dataset_count > 0},
        {"max_errors", lenient, "on_error", survives},
        {"max_error_fraction", lenient, "on_error", survives},
        {"error_list", lenient, "on_error", survives},
        {"device_prefetch", "device: cuda or host", "device", strcmp(config->device, "cpu") != 0, true},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0] && status == STK_OK; i++)
        status = check(config, section, &all[i], err);
    return status;
}
