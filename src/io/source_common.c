/* source_common.c: see source_common.h. */
#include "source_common.h"

typedef struct limit_options {
    int64_t header_limit, memory_limit;
} limit_options;

static const stki_option dtype_rows[] = {
    STKI_STRING(
        stki_dtype_options, dtype, NULL,
        "Type of data for which the format has no name: bfloat16, float8_e4m3fn, float8_e5m2; for raw data, any dtype",
        .examples = STKI_EXAMPLES("bfloat16", "float8_e4m3fn")),
};
static const stki_option header_rows[] = {
    STKI_SIZE(limit_options, header_limit, 1MiB, 64, INT64_MAX, "Maximum size of a header", .effect = STKI_ON_FAILURES),
};
static const stki_option memory_rows[] = {
    STKI_SIZE(limit_options, memory_limit, 4GiB, 0, INT64_MAX, "Maximum size of a decompressed member",
              .effect = STKI_ON_FAILURES),
};
static const stki_option verify_rows[] = {
    STKI_BOOL(stki_verify_options, verify, false, "Check the checksums stored in the file, even if the data is mapped",
              .effect = STKI_ON_FAILURES),
};
static const stki_option_table dtype_table = STKI_SOURCE_TABLE("dtype", dtype_rows),
                               header_table = STKI_SOURCE_TABLE("headers", header_rows),
                               memory_table = STKI_SOURCE_TABLE("compressed members", memory_rows),
                               verify_table = STKI_SOURCE_TABLE("checksums", verify_rows);

static stk_status check_dtype(const stki_node *map, void *values, stk_error *err)
{
    stki_dtype_options *o = values;

    o->found = o->dtype ? stk_dtype_find(o->dtype) : STK_DTYPE_NONE;
    if (!o->dtype || o->found != STK_DTYPE_NONE)
        return STK_OK;
    return stki_fail_value(err, stki_node_get(map, "dtype"),
                           "a dtype such as float32 (or f32), bfloat16, uint8, int64");
}

const stki_source_group stki_dtype_source = {&dtype_table, sizeof(stki_dtype_options), check_dtype, NULL};
const stki_source_group stki_header_source = {&header_table, sizeof(limit_options), NULL, NULL};
const stki_source_group stki_memory_source = {&memory_table, sizeof(limit_options), NULL, NULL};
const stki_source_group stki_verify_source = {&verify_table, sizeof(stki_verify_options), NULL, NULL};

int64_t stki_header_limit(const stki_reader_opts *opts)
{
    limit_options limits;

    stki_source_values(opts, &stki_header_source, &limits);
    return limits.header_limit;
}

int64_t stki_memory_limit(const stki_reader_opts *opts)
{
    limit_options limits;

    stki_source_values(opts, &stki_memory_source, &limits);
    return limits.memory_limit;
}
