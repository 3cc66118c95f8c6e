/* loadbench_effective.c: see loadbench_effective.h. */
#include "loadbench_effective.h"
#include "error.h"
#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *map, const char *name)
{
    const char *text = json_string_value(json_object_get(map, name));

    return text ? text : "";
}

stk_status lb_effective_read(const stk_loader *loader, struct lb_effective *out, stk_error *err)
{
    const json_t *options, *plan;

    *out = (struct lb_effective){.all = json_loads(stk_loader_options_json(loader), 0, NULL)};
    if (!out->all)
        return stki_fail_memory(err, 4096, "the options in effect");
    options = json_object_get(out->all, "loader");
    plan = json_object_get(out->all, "plan");
    snprintf(out->device, sizeof out->device, "%s", text_of(plan, "device"));
    if (out->device[0])
        snprintf(out->convert, sizeof out->convert, "loader.convert=%.30s", text_of(options, "convert"));
    out->timeout_ns = json_integer_value(json_object_get(options, "timeout_ns"));
    out->batch_size = json_integer_value(json_object_get(options, "batch_size"));
    out->random = strcmp(text_of(options, "order"), "random") == 0;
    return STK_OK;
}

void lb_effective_fini(struct lb_effective *effective)
{
    json_decref(effective->all);
    *effective = (struct lb_effective){.all = NULL};
}

const json_t *lb_effective_field(const struct lb_effective *effective, const char *name)
{
    return json_object_get(json_object_get(effective->all, "fields"), name);
}

const json_t *lb_effective_plan(const struct lb_effective *effective, const char *name)
{
    return json_object_get(json_object_get(effective->all, "plan"), name);
}
