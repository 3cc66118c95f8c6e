/* loader_option.c: returns an option of a loader, or a derived value, by its dotted name, and the tables of all options
 * as JSON. */
#include "allocate.h"
#include "core.h"
#include "error.h"
#include "loader_handle.h"
#include <stdlib.h>
#include <string.h>

/* Serializes and releases the JSON value. The result can be freed with stk_text_free. */
static char *dump(json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY) : NULL,
         *counted = text ? stki_strdup(text) : NULL;

    json_decref(json);
    free(text);
    return counted;
}

/* Returns the rest of `name` after the key; NULL: it does not start with the key. Keys of options in effect end with
 * their unit, which `name` omits. Keys of fields may contain dots. */
static const char *behind(const char *name, const char *key)
{
    static const char *const units[] = {"", "_bytes", "_ns"};
    const size_t length = strlen(key);

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const size_t unit = strlen(units[i]), rest = length - unit;

        if (length > unit && strcmp(key + rest, units[i]) == 0 && strncmp(name, key, rest) == 0 &&
            (name[rest] == '.' || !name[rest]))
            return name + rest + (name[rest] == '.');
    }
    return NULL;
}

static json_t *find(json_t *json, const char *name)
{
    const char *key;
    json_t *item;

    if (!*name)
        return json;
    json_object_foreach(json, key, item)
    {
        const char *rest = behind(name, key);
        json_t *found = rest ? find(item, rest) : NULL;

        if (found)
            return found;
    }
    return NULL;
}

char *stk_loader_option(const stk_loader *loader, const char *name, stk_error *err)
{
    stk_status status = stki_loader_check(loader, err);
    json_t *echo, *value;
    char *text;

    if (status != STK_OK || !name) {
        if (status == STK_OK)
            (void)stki_fail(err, STK_E_BAD_ARG, "name: found NULL, expected a name such as loader.prefetch");
        return NULL;
    }
    echo = json_loads(loader->options_json, 0, NULL);
    value = json_incref(find(echo, name));
    json_decref(echo);
    if (!value)
        value = stki_sections_value(stki_config_sections, stki_document_root(loader->core->config->document), name);
    if (!value) {
        (void)stki_fail(err, STK_E_NOT_FOUND,
                        "found the name \"%.200s\", expected an option such as loader.prefetch, or a path in "
                        "stk_loader_options_json such as plan.slots",
                        name);
        return NULL;
    }
    if (!(text = dump(value)))
        (void)stki_fail_memory(err, 256, "an option");
    return text;
}

char *stk_loader_options_tables(void)
{
    return dump(stki_sections_json(stki_config_sections));
}
