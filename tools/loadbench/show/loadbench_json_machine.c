/* loadbench_json_machine.c: the parts of the JSON result that say what was measured on and with which data. */
#include "loadbench_json_parts.h"
#include <gnu/libc-version.h>
#include <string.h>

json_t *lb_json_machine(const struct lb_machine *machine)
{
    json_t *json = json_object();

    lb_json_set(json, "cpu", lb_json_text(machine->cpu));
    lb_json_set(json, "architecture", json_string(machine->architecture));
    lb_json_set(json, "cores_allowed", json_integer(machine->cores_allowed));
    lb_json_set(json, "cores_online", json_integer(machine->cores_online));
    lb_json_set(json, "last_level_cache_bytes", json_integer(machine->cache_bytes));
    lb_json_set(json, "memory_bytes", json_integer(machine->memory_bytes));
    lb_json_set(json, "memory_available_bytes", json_integer(machine->memory_available_bytes));
    lb_json_set(json, "transparent_huge_pages", json_string(machine->huge_pages));
    lb_json_set(json, "kernel", lb_json_text(machine->kernel));
    lb_json_set(json, "cgroup_cpu_quota_cores",
                machine->cpu_quota > 0 ? lb_json_number(machine->cpu_quota) : json_null());
    lb_json_set(json, "cgroup_memory_limit_bytes",
                machine->memory_limit > 0 ? json_integer(machine->memory_limit) : json_null());
    return json;
}

json_t *lb_json_storage(const struct lb_place *place)
{
    json_t *json = json_object();

    lb_json_set(json, "file_system", lb_json_text(place->type));
    lb_json_set(json, "source", lb_json_text(place->source));
    lb_json_set(json, "mount", lb_json_text(place->mount));
    lb_json_set(json, "disk_model", lb_json_text(place->model));
    lb_json_set(json, "disk_rotational", place->rotational < 0 ? json_null() : json_boolean(place->rotational));
    if (place->read_ahead_bytes >= 0)
        lb_json_set(json, "read_ahead_bytes", json_integer(place->read_ahead_bytes));
    return json;
}

json_t *lb_json_gpu(const struct lb_gpu *gpu)
{
    json_t *json = json_object();

    lb_json_set(json, "model", lb_json_text(gpu->model));
    lb_json_set(json, "bus", lb_json_text(gpu->bus));
    lb_json_set(json, "link_speed", lb_json_text(gpu->link_speed));
    if (gpu->link_width > 0)
        lb_json_set(json, "link_lane_count", json_integer(gpu->link_width));
    lb_json_set(json, "memory_bytes", json_integer(gpu->memory_bytes));
    lb_json_set(json, "driver", json_sprintf("%d.%d", gpu->driver_version / 1000, gpu->driver_version % 1000 / 10));
    lb_json_set(json, "runtime", json_sprintf("%d.%d", gpu->runtime_version / 1000, gpu->runtime_version % 1000 / 10));
    return json;
}

json_t *lb_json_versions(void)
{
    json_t *json = json_object();

    lb_json_set(json, "stoker", json_string(stk_version()));
    lb_json_set(json, "jpeg", json_string(codec_jpeg_version()));
    lb_json_set(json, "deflate", json_string(codec_deflate_version()));
    lb_json_set(json, "hdf5", json_string(codec_hdf5_version()));
    lb_json_set(json, "libc", json_sprintf("glibc %s", gnu_get_libc_version()));
    lb_json_set(json, "compiler",
                json_string(
#if defined(__clang__)
                    "clang " __clang_version__
#else
                    "gcc " __VERSION__
#endif
                    ));
    return json;
}

/* -1 where it varies. */
static json_t *shape_json(const struct lb_field *field)
{
    json_t *list = json_array();

    for (int i = 0; i < field->ndim; i++)
        json_array_append_new(list, json_integer(field->lengths[i]));
    return list;
}

static json_t *fields_json(const struct lb_facts *facts)
{
    json_t *list = json_array();

    for (int i = 0; i < facts->field_count; i++) {
        const struct lb_field *field = &facts->fields[i];
        json_t *json = json_object();
        lb_json_set(json, "name", lb_json_text(field->name));
        lb_json_set(json, "source_dtype", json_string(stk_dtype_name(field->source_dtype)));
        lb_json_set(json, "dtype", json_string(stk_dtype_name(field->dtype)));
        lb_json_set(json, "shape", shape_json(field));
        lb_json_set(json, "layout", json_string(field->layout));
        lb_json_set(json, "kernel", lb_json_text(field->kernel));
        lb_json_set(json, "access", json_string(field->access));
        lb_json_set(json, "sample_bytes", json_integer(field->sample_bytes));
        json_array_append_new(list, json);
    }
    return list;
}

/* The data set, and with it the order and the transforms, as a saved position knows them. */
static json_t *fingerprints_json(const struct lb_facts *facts)
{
    const json_t *prints = lb_effective_plan(&facts->effective, "fingerprints");

    return prints ? json_deep_copy(prints) : json_null();
}

json_t *lb_json_data(const struct lb_facts *facts)
{
    json_t *json = json_object();

    lb_json_set(json, "sample_count", json_integer(facts->samples));
    lb_json_set(json, "batches_per_epoch", json_integer(facts->steps_per_epoch));
    lb_json_set(json, "fingerprints", fingerprints_json(facts));
    lb_json_set(json, "fields", fields_json(facts));
    return json;
}

/* The clock that everything is measured with. */
json_t *lb_json_timer(const struct lb_timer *timer)
{
    json_t *json = json_object();

    lb_json_set(json, "reading_ns", lb_json_number(timer->overhead_ns));
    lb_json_set(json, "resolution_ns", json_integer(timer->resolution_ns));
    return json;
}
