/* oracle_arrays.c: files of named arrays. Each file is read through a mapping and with pread, and each array both whole
 * and sample by sample. All results must agree with the manifest. For a file that must be rejected, opening it or
 * reading a member must fail with the class in the manifest. */
#include "format.h"
#include "oracle.h"
#include "sha256.h"
#include "source_opts.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void check_shape(struct outcome *o, const json_t *item, stk_dtype dtype, int ndim, const int64_t *shape)
{
    const char *alias = oracle_text(item, "alias_dtype");
    const char *expected = *alias ? alias : oracle_text(item, "dtype");
    const json_t *sizes = json_object_get(item, "shape");

    if (strcmp(stk_dtype_long_name(dtype), expected))
        oracle_wrong(o, "%s: dtype: found %s, expected %s", oracle_text(item, "name"), stk_dtype_long_name(dtype),
                     expected);
    if ((size_t)ndim != json_array_size(sizes))
        oracle_wrong(o, "%s: axes: found %d, expected %zu", oracle_text(item, "name"), ndim, json_array_size(sizes));
    for (int i = 0; i < ndim && (size_t)i < json_array_size(sizes); i++)
        if (shape[i] != json_integer_value(json_array_get(sizes, (size_t)i)))
            oracle_wrong(o, "%s: axis %d: found %" PRId64, oracle_text(item, "name"), i, shape[i]);
}

static void check_bytes(struct outcome *o, const json_t *item, const char *how, const char *bytes, int64_t count)
{
    char digest[65];

    stkt_sha256_of(bytes, (size_t)count, digest);
    if (strcmp(digest, oracle_text(item, "sha256")))
        oracle_wrong(o, "%s: values read by %s: found sha256 %s, expected %s", oracle_text(item, "name"), how, digest,
                     oracle_text(item, "sha256"));
}

static void read_whole(struct outcome *o, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                       const json_t *item)
{
    stki_array array;
    stk_tensor tensor;
    char *bytes;
    int64_t count;

    o->status = stki_container_array(c, member, opts, &array, &o->err);
    if (o->status)
        return;
    o->status = stki_array_tensor(&array, c->path, &tensor, &o->err);
    stki_array_release(&array);
    if (o->status)
        return;
    count = stk_tensor_nbytes(&tensor);
    bytes = malloc((size_t)count + 1);
    oracle_copy_out(bytes, &tensor);
    if (item) {
        check_shape(o, item, tensor.dtype, tensor.ndim, tensor.shape);
        check_bytes(o, item, opts->access == STKI_ACCESS_PREAD ? "pread, whole" : "mmap, whole", bytes, count);
    }
    if (!(tensor.flags & STK_TENSOR_READONLY))
        oracle_wrong(o, "the tensor of a file is writable");
    free(bytes);
    stk_tensor_release(&tensor);
}

static void check_reader(struct outcome *o, const stki_reader *reader, const stki_reader_opts *opts, const json_t *item)
{
    stki_scratch scratch;
    int64_t shape[STK_MAX_DIMS + 1];
    char *bytes = malloc((size_t)(reader->count * reader->max_bytes) + 1), *end = bytes;

    stki_scratch_init(&scratch);
    shape[0] = reader->count;
    memcpy(shape + 1, reader->shape, sizeof *shape * (size_t)reader->ndim);
    if (item)
        check_shape(o, item, reader->dtype, reader->ndim + 1, shape);
    for (int64_t i = 0; i < reader->count && !o->status; i++) {
        stk_tensor sample;
        o->status = reader->ops->read(reader, i, NULL, &scratch, &sample, &o->err);
        if (o->status)
            break;
        end = oracle_copy_out(end, &sample);
        stki_reader_done(reader, &sample);
    }
    if (!o->status && item)
        check_bytes(o, item, opts->access == STKI_ACCESS_PREAD ? "pread, by sample" : "mmap, by sample", bytes,
                    end - bytes);
    stki_scratch_fini(&scratch);
    free(bytes);
}

static void read_samples(struct outcome *o, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                         const json_t *item)
{
    stki_reader *reader;

    o->status = stki_container_reader(c, member, opts, &reader, &o->err);
    if (o->status)
        return;
    check_reader(o, reader, opts, item);
    stki_reader_destroy(reader);
}

/* A container may have arrays, samples, or both; a scalar has no samples. */
static void read_member(struct outcome *o, const stki_container *c, int64_t member, const stki_reader_opts *opts,
                        const json_t *item)
{
    struct outcome whole = *o, samples = *o;
    bool no_axis = c->members[member].ndim == 0;

    read_whole(&whole, c, member, opts, item);
    read_samples(&samples, c, member, opts, item);
    if (!whole.status && no_axis && samples.status != STK_E_UNSUPPORTED)
        oracle_wrong(&whole, "an array without axes was opened for its samples");
    if (!whole.status && !no_axis && samples.status) /* a container that has arrays must also have samples */
        whole.status = samples.status, whole.err = samples.err;
    *o = whole.status == STK_E_UNSUPPORTED && !no_axis ? samples : whole;
    if (!o->wrong[0] && samples.wrong[0])
        *o = samples;
}

/* Checks a Python value that is stored with the tensors. */
static void check_leaf(struct outcome *o, const stki_member *member, const json_t *item)
{
    const json_t *value = json_object_get(member->details, "value");

    if (strcmp(oracle_text(member->details, "py"), oracle_text(item, "py")))
        oracle_wrong(o, "%s: found a %s, expected %s", member->name, oracle_text(member->details, "py"),
                     oracle_text(item, "py"));
    if (!json_equal(value, json_object_get(item, "value")))
        oracle_wrong(o, "%s: the value differs", member->name);
}

static void check_strides(struct outcome *o, const stki_member *member, const json_t *item)
{
    const json_t *strides = json_object_get(item, "stride"), *stride;
    size_t i;

    json_array_foreach(strides, i,
                       stride) if ((int)i < member->ndim && member->strides &&
                                   member->strides[i] != json_integer_value(stride) * stk_dtype_size(member->dtype))
        oracle_wrong(o, "%s: stride %zu: found %" PRId64 " bytes", member->name, i, member->strides[i]);
}

static stki_reader_opts options(const json_t *entry, const json_t *item, enum stki_access access)
{
    static const struct {
        const char *in_manifest, *name;
    } names[] = {{"tokens_raw", "raw"}, {"tokens_llmc", "llmc"}, {"tokens_megatron", "megatron"}, {"raw", "raw"}};
    const json_t *params = json_object_get(entry, "params"), *shape = json_object_get(params, "shape");
    const char *alias = oracle_text(item, "alias_dtype"), *dtype = oracle_text(params, "dtype");
    json_t *source = json_object();
    stki_reader_opts opts;
    char *text;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(oracle_text(entry, "format"), names[i].in_manifest))
            json_object_set_new(source, "format", json_string(names[i].name));
    if (*alias || *dtype)
        json_object_set_new(source, "dtype", json_string(*alias ? alias : dtype));
    if (!strcmp(oracle_text(source, "format"), "raw")) {
        json_t *sample = json_array();

        for (size_t i = 1; i < json_array_size(shape); i++)
            json_array_append(sample, json_array_get(shape, i));
        json_object_set_new(source, "shape", sample);
        json_object_set_new(source, "offset", json_integer(json_integer_value(json_object_get(params, "offset"))));
        json_object_set_new(source, "byte_order",
                            json_string(strcmp(oracle_text(params, "byte_order"), "big") ? "little" : "big"));
        if (json_integer_value(json_array_get(shape, 0)) > 0)
            json_object_set(source, "count", json_array_get(shape, 0));
    }
    text = json_dumps(source, 0);
    opts = *stkt_source(text);
    opts.access = access;
    free(text);
    json_decref(source);
    return opts;
}

static void run_item(struct outcome *o, const char *path, const json_t *entry, const json_t *item,
                     enum stki_access access)
{
    stki_reader_opts opts = options(entry, item, access);
    const char *error = oracle_text(item, "error");
    stki_container *container;
    int64_t member;

    opts.name = oracle_text(item, "name");
    o->status = stki_container_open(path, &opts, &container, &o->err);
    oracle_judge(o, entry, path, "opening");
    if (o->status)
        return;
    o->status = stki_container_find(container, &opts, &member, &o->err);
    if (!o->status && *oracle_text(item, "py"))
        check_leaf(o, &container->members[member], item);
    else if (!o->status)
        read_member(o, container, member, &opts, *oracle_text(item, "sha256") ? item : NULL);
    if (!o->status && *oracle_text(item, "sha256"))
        check_strides(o, &container->members[member], item);
    if (*error) {
        oracle_judge(o, item, path, opts.name);
        o->status = STK_OK;
    } else if (*oracle_text(item, "expect") || (o->status && json_object_get(item, "accept"))) {
        oracle_judge(o, item, path, opts.name);
        o->status = STK_OK;
    } else {
        oracle_judge(o, entry, path, opts.name);
    }
    stki_container_release(container);
}

/* Reads all members, or only the one that must fail, up to the first failure. */
static void run_refused(struct outcome *o, const char *path, const json_t *entry, enum stki_access access)
{
    stki_reader_opts opts = options(entry, NULL, access);
    const char *only = oracle_text(entry, "item_name");
    stki_container *container = NULL;

    opts.verify = true;
    o->status = stki_container_open(path, &opts, &container, &o->err);
    for (int64_t i = 0; !o->status && i < container->member_count; i++)
        if ((!*only || !strcmp(only, container->members[i].name)) && container->members[i].kind != STKI_MEMBER_OTHER)
            read_member(o, container, i, &opts, NULL);
        else if (container->members[i].status && (!*only || !strcmp(only, container->members[i].name)))
            o->status = stki_container_array(container, i, &opts, &(stki_array){0}, &o->err);
    oracle_judge(o, entry, path, "reading");
    stki_container_release(container);
}

void oracle_arrays(struct outcome *o, const char *path, const json_t *entry)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    const json_t *items = json_object_get(entry, "items"), *item;
    size_t k;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(oracle_text(entry, "expect"), "ok")) {
            run_refused(o, path, entry, modes[i]);
            continue;
        }
        if (json_array_size(items) == 0) {
            stki_reader_opts opts = options(entry, NULL, modes[i]);
            stki_container *container = NULL;

            o->status = stki_container_open(path, &opts, &container, &o->err);
            oracle_judge(o, entry, path, "opening");
            if (!o->status && container->member_count)
                oracle_wrong(o, "found %" PRId64 " members, expected none", container->member_count);
            stki_container_release(container);
        }
        json_array_foreach(items, k, item) run_item(o, path, entry, item, modes[i]);
    }
}
