/* oracle_beton.c: .beton files written by FFCV: every field of every sample, read through a mapping and with pread. */
#include "format.h"
#include "oracle.h"
#include <inttypes.h>
#include <string.h>

/* Floats are compared bit for bit: JSON holds enough digits for that. */
static void check_number(struct outcome *o, const stki_reader *reader, int64_t index, stki_scratch *scratch,
                         const json_t *expected)
{
    stk_tensor sample;
    double real;
    int64_t whole;

    o->status = reader->ops->read(reader, index, NULL, scratch, &sample, &o->err);
    if (o->status)
        return;
    memcpy(&real, sample.data, sizeof real);
    memcpy(&whole, sample.data, sizeof whole);
    if (reader->dtype == STK_I64 ? whole != json_integer_value(expected)
                                 : memcmp(&real, &(double){json_number_value(expected)}, sizeof real) != 0)
        oracle_wrong(o, "record %" PRId64 ": found %g or %" PRId64, index, real, whole);
    stki_reader_done(reader, &sample);
}

static const char *expected_digest(const json_t *item, size_t index, const char *kind)
{
    const json_t *decoded = json_array_get(json_object_get(item, "decoded"), index);
    const json_t *sample = json_array_get(json_object_get(item, "samples"), index);

    if (!strcmp(kind, "rgb_image")) /* JPEG images have two digests: of an accurate decode and of FFCV's fast decode */
        return json_string_value(json_is_array(decoded) ? json_array_get(decoded, 0) : decoded);
    return json_string_value(json_is_array(sample) ? json_array_get(sample, 1) : sample);
}

static void check_sample(struct outcome *o, const stki_reader *reader, int64_t index, stki_scratch *scratch,
                         const json_t *item)
{
    const char *kind = oracle_text(item, "field");
    const json_t *sample = json_array_get(json_object_get(item, "samples"), (size_t)index);
    char digest[65];
    int64_t count, expected = -1;

    if (!strcmp(kind, "int") || !strcmp(kind, "float")) {
        check_number(o, reader, index, scratch, sample);
        return;
    }
    if (!oracle_record(o, reader, index, scratch, digest, &count))
        return;
    if (!strcmp(kind, "rgb_image"))
        expected = json_integer_value(json_array_get(sample, 1)) * json_integer_value(json_array_get(sample, 2)) * 3;
    else if (json_is_array(sample))
        expected = json_integer_value(json_array_get(sample, 0));
    if (expected >= 0 && count != expected)
        oracle_wrong(o, "%s, record %" PRId64 ": found %" PRId64 " bytes, expected %" PRId64, kind, index, count,
                     expected);
    if (strcmp(digest, expected_digest(item, (size_t)index, kind)))
        oracle_wrong(o, "%s, record %" PRId64 ": found sha256 %s", kind, index, digest);
}

static void check_type(struct outcome *o, const stki_reader *reader, const json_t *item)
{
    const json_t *shape = json_object_get(item, "shape");

    if (!*oracle_text(item, "dtype"))
        return;
    if (strcmp(stk_dtype_long_name(reader->dtype), oracle_text(item, "dtype")))
        oracle_wrong(o, "found %s, expected %s", stk_dtype_long_name(reader->dtype), oracle_text(item, "dtype"));
    if ((size_t)reader->ndim != json_array_size(shape))
        oracle_wrong(o, "found %d axes", reader->ndim);
    for (int i = 0; i < reader->ndim && i < (int)json_array_size(shape); i++)
        if (reader->shape[i] != json_integer_value(json_array_get(shape, (size_t)i)))
            oracle_wrong(o, "axis %d: found %" PRId64, i, reader->shape[i]);
}

static void check_units(struct outcome *o, const stki_reader *reader)
{
    if (!reader->unit_first)
        return;
    if (reader->unit_count > 0 &&
        (reader->unit_first[0] != 0 || reader->unit_first[reader->unit_count] != reader->count))
        oracle_wrong(o, "the units do not cover the samples");
    for (int64_t i = 0; i < reader->unit_count; i++)
        if (reader->unit_first[i] >= reader->unit_first[i + 1])
            oracle_wrong(o, "unit %" PRId64 " is empty", i);
}

static void check_field(struct outcome *o, const stki_container *container, int64_t member,
                        const stki_reader_opts *opts, const json_t *item)
{
    size_t count = json_array_size(json_object_get(item, "samples"));
    stki_scratch scratch;
    stki_reader *reader = NULL;

    if (strcmp(container->members[member].name, oracle_text(item, "name")))
        oracle_wrong(o, "field %" PRId64 " is named %s", member, container->members[member].name);
    o->status = stki_container_reader(container, member, opts, &reader, &o->err);
    if (o->status)
        return;
    if (reader->count != (int64_t)count)
        oracle_wrong(o, "found %" PRId64 " samples, expected %zu", reader->count, count);
    check_type(o, reader, item);
    check_units(o, reader);
    stki_scratch_init(&scratch);
    for (size_t i = 0; i < count && !o->status && !o->wrong[0]; i++)
        check_sample(o, reader, (int64_t)i, &scratch, item);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void check_whole(struct outcome *o, const char *path, const json_t *entry, const stki_reader_opts *opts)
{
    const json_t *items = json_object_get(entry, "items"), *info = json_object_get(entry, "beton");
    static const char *const keys[][2] = {{"page_size", "page_bytes"},
                                          {"num_samples", "samples"},
                                          {"row_size", "row_bytes"},
                                          {"pages", "pages"},
                                          {"allocations", "allocations"}};
    stki_container *container = NULL;

    o->status = stki_container_open(path, opts, &container, &o->err);
    if (!o->status && (size_t)container->member_count != json_array_size(items))
        oracle_wrong(o, "found %" PRId64 " fields", container->member_count);
    for (size_t i = 0; !o->status && i < sizeof keys / sizeof keys[0]; i++)
        if (!json_equal(json_object_get(info, keys[i][0]), json_object_get(container->details, keys[i][1])))
            oracle_wrong(o, "%s differs", keys[i][1]);
    for (int64_t i = 0; !o->status && !o->wrong[0] && i < container->member_count; i++)
        check_field(o, container, i, opts, json_array_get(items, (size_t)i));
    stki_container_release(container);
}

void oracle_beton(struct outcome *o, const char *path, const json_t *entry)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    char buffer[64];
    const char *file = oracle_unpacked(path, entry, buffer, sizeof buffer);

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !o->wrong[0]; i++) {
        stki_reader_opts opts = {.access = modes[i], .format = "beton"};

        if (strcmp(oracle_text(entry, "expect"), "ok"))
            oracle_read_all(o, file, &opts);
        else
            check_whole(o, file, entry, &opts);
        oracle_judge(o, entry, file, modes[i] == STKI_ACCESS_MMAP ? "mapped" : "positionally");
    }
    oracle_remove(file, path);
}
