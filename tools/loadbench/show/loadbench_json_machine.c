/* loadbench_json_machine.c: the parts of the JSON result that say what was measured on and with which data. */
#include "loadbench_json_parts.h"
#include <gnu/libc-version.h>
#include <string.h>

json_t *lb_json_gpu(const struct lb_gpu *gpu)
{
    json_t *json = lb_json_group(json_object(), LB_OF_GPU, gpu);

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
    json_t *json = lb_json_group(json_object(), LB_OF_DATA, facts);

    lb_json_set(json, "fingerprints", fingerprints_json(facts));
    lb_json_set(json, "fields", fields_json(facts));
    return json;
}
