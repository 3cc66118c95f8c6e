/* reader_call.c: custom transforms: a table of named functions, and a reader that calls one of them for each sample of
 * another reader. The result is in the worker's memory.
 *
 * Threads. The table has a lock; a reader copies its entry when it is opened and does not access the table
 * afterwards. */
#include "allocate.h"
#include "error.h"
#include "first_steps.h"
#include "read_clock.h"
#include "tensor_internal.h"
#include "thread.h"
#include <stdio.h>
#include <string.h>

enum { MOST = 64, NAME = 64 };

/* ---- the table ---- */

static struct {
    stki_mutex lock;
    int count;
    struct entry {
        char name[NAME];
        stk_transform transform;
    } entries[MOST];
} table = {.lock = {PTHREAD_MUTEX_INITIALIZER}};

static struct entry *find(const char *name)
{
    for (int i = 0; i < table.count; i++)
        if (strcmp(table.entries[i].name, name) == 0)
            return &table.entries[i];
    return NULL;
}

stk_status stk_transform_register(const stk_transform *given, stk_error *err)
{
    stk_transform t = {0};
    struct entry *entry;
    stk_status status = STK_OK;

    if (!given || given->struct_size < 2 * sizeof(uint32_t))
        return stki_fail(err, STK_E_BAD_ARG,
                         "transform: struct_size: found %u, expected the value that STK_TRANSFORM_INIT sets",
                         given ? given->struct_size : 0);
    memcpy(&t, given, given->struct_size < sizeof t ? given->struct_size : sizeof t);
    if (!t.name || !*t.name || strlen(t.name) >= NAME)
        return stki_fail(err, STK_E_BAD_ARG, "transform: name: found \"%s\", expected 1 to %d characters",
                         t.name ? t.name : "NULL", NAME - 1);
    if (!t.run)
        return stki_fail(err, STK_E_BAD_ARG, "transform %s: run: found NULL", t.name);
    stki_lock(&table.lock);
    entry = find(t.name);
    if (!entry && table.count == MOST) {
        status =
            stki_fail(err, STK_E_LIMIT, "transform %s: there are already %d transforms, the maximum", t.name, MOST);
    } else {
        entry = entry ? entry : &table.entries[table.count++];
        snprintf(entry->name, sizeof entry->name, "%s", t.name);
        entry->transform = t;
        entry->transform.name = entry->name;
    }
    stki_unlock(&table.lock);
    return status;
}

static stk_status look_up(const char *name, const stki_node *node, stk_transform *out, stk_error *err)
{
    char known[512] = "";
    size_t used = 0;
    struct entry *entry;

    stki_lock(&table.lock);
    entry = find(name);
    if (entry)
        *out = entry->transform;
    for (int i = 0; i < table.count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", table.entries[i].name);
    stki_unlock(&table.lock);
    return entry ? STK_OK
                 : stki_fail_node(err, node, "found %s, expected the name of a registered transform (%s)", name,
                                  *known ? known : "none is registered");
}

/* ---- the reader ---- */

struct calling {
    stki_reader base; /* must be first */
    stki_reader_ops ops;
    stki_reader *inner;
    stk_transform transform;
    char name[NAME];
    int64_t bytes; /* size of an output sample */
};

static const struct calling *calling_of(const stki_reader *base)
{
    return (const struct calling *)(const void *)base;
}

/* Whether a status is not an error in a sample: it controls the run (timeout, cancelled, closed, end, bad argument), or
 * is not a valid status. If a transform returns such a status, it must not be mistaken for the loader's own. */
static bool steers(stk_status status)
{
    switch (status) {
    case STK_E_TIMEOUT:
    case STK_E_BUSY:
    case STK_E_CLOSED:
    case STK_E_FORKED:
    case STK_E_CONFIG:
    case STK_E_BAD_ARG:
    case STK_E_EMPTY:
    case STK_E_CANCELLED:
        return true;
    default:
        return status > 0 || strcmp(stk_status_name(status), "unknown") == 0;
    }
}

static stk_status call(const struct calling *c, int64_t index, uint64_t random, const stk_tensor *in, void *to,
                       stk_error *err)
{
    const stk_transform_call facts = {.struct_size = sizeof facts, .sample = index, .random = random};
    stk_tensor out = {.data = to, .dtype = c->base.dtype, .ndim = c->base.ndim, .device = stk_device_cpu()};
    stk_error own = {0};
    char path[STKI_RECORD_PATH];
    int64_t began;
    stk_status status;

    memcpy(out.shape, c->base.shape, sizeof c->base.shape);
    memcpy(out.strides, c->base.strides, sizeof c->base.strides);
    began = stki_read_call_begin();
    status = c->transform.run(c->transform.context, &facts, in, &out, &own);
    stki_read_call_end(began);
    if (status == STK_OK)
        return STK_OK;
    if (steers(status))
        return stki_fail_at(err, STK_E_BAD_VALUE,
                            (stki_place){stki_reader_path(&c->base, index, path), index, -1, NULL, NULL},
                            "call: %s: returned %d (%s), which is not a status for a sample%s%s", c->name, (int)status,
                            stk_status_name(status), own.message[0] ? ": " : "", own.message);
    return stki_fail_at(err, status, (stki_place){stki_reader_path(&c->base, index, path), index, -1, NULL, NULL},
                        "call: %s: %s", c->name, own.message[0] ? own.message : "failed without a message");
}

static stk_status calling_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                               stk_tensor *out, stk_error *err)
{
    const struct calling *c = calling_of(base);
    stki_scratch *behind;
    stk_tensor in;
    stk_status status;

    (void)want;
    if ((status = stki_scratch_second(scratch, &behind, err)) != STK_OK)
        return status;
    behind->draw = scratch->draw;
    if ((status = stki_scratch_reserve(scratch, c->bytes > 0 ? c->bytes : 1, err)) != STK_OK ||
        (status = c->inner->ops->read(c->inner, index, NULL, behind, &in, err)) != STK_OK)
        return status;
    in.flags |= STK_TENSOR_READONLY;
    status = call(c, index, scratch->draw, &in, scratch->data, err);
    stki_reader_done(c->inner, &in);
    if (status != STK_OK)
        return status;
    *out = (stk_tensor){.data = scratch->data, .dtype = base->dtype, .ndim = base->ndim, .device = stk_device_cpu()};
    memcpy(out->shape, base->shape, sizeof base->shape);
    memcpy(out->strides, base->strides, sizeof base->strides);
    return STK_OK;
}

static bool calling_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const stki_reader *inner = calling_of(base)->inner;

    return inner->ops->path(inner, index, buffer, size);
}

static void calling_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const stki_reader *inner = calling_of(base)->inner;

    inner->ops->will_need(inner, indices, count);
}

static void calling_destroy(stki_reader *base)
{
    struct calling *c = (struct calling *)(void *)base;

    stki_reader_destroy(c->inner);
    stki_free(base->path);
    stki_free(c);
}

/* Whether the reader's shape is only an upper bound that no sample reaches. For a folder of images, it is the largest
 * shape that the formats allow. */
static bool is_only_bound(const stki_reader *reader)
{
    int64_t strides[STK_MAX_DIMS], bytes;

    return reader->variable && reader->image &&
           (stki_row_major(reader->dtype, reader->ndim, reader->shape, strides, &bytes, NULL) != STK_OK ||
            bytes > reader->max_bytes);
}

/* Determines dtype and shape of the output, by default those of the input. */
static stk_status shape_of(struct calling *c, const stki_node *node, stk_error *err)
{
    stk_tensor in = {.dtype = c->inner->dtype, .ndim = c->inner->ndim, .device = stk_device_cpu()}, out;
    stk_error own = {0};
    stk_status status = STK_OK;

    memcpy(in.shape, c->inner->shape, sizeof in.shape);
    out = in;
    if (c->transform.shape)
        status = c->transform.shape(c->transform.context, &in, &out, &own);
    else if (c->inner->variable)
        return stki_fail_node(err, node, "%s needs a `shape` function, because the samples have different shapes",
                              c->name);
    if (status != STK_OK)
        return stki_fail_node(err, node, "%s: %s", c->name, own.message[0] ? own.message : "shape failed");
    if (is_only_bound(c->inner) && out.ndim == in.ndim && memcmp(out.shape, in.shape, sizeof in.shape) == 0)
        return stki_fail_node(err, node,
                              "%s does not determine the `shape` of its result, which is required because the images "
                              "have different sizes",
                              c->name);
    if (out.ndim < 0 || out.ndim >= STK_MAX_DIMS || stk_dtype_size(out.dtype) == 0)
        return stki_fail_node(err, node,
                              "%s: shape returned ndim %d and dtype %s, expected ndim 0 to %d and a valid dtype",
                              c->name, out.ndim, stk_dtype_name(out.dtype), STK_MAX_DIMS - 1);
    c->base.dtype = out.dtype;
    c->base.ndim = out.ndim;
    memcpy(c->base.shape, out.shape, sizeof out.shape);
    return stki_row_major(out.dtype, out.ndim, out.shape, c->base.strides, &c->bytes, err);
}

stk_status stki_call_reader_open(stki_reader *inner, const char *name, const stki_node *node, stki_reader **out,
                                 stk_error *err)
{
    struct calling *c = stki_zalloc(sizeof *c);
    stk_status status = c ? look_up(name, node, &c->transform, err) : stki_fail_memory(err, sizeof *c, "a reader");

    if (status != STK_OK) {
        stki_free(c);
        stki_reader_destroy(inner);
        return status;
    }
    snprintf(c->name, sizeof c->name, "%s", name);
    c->inner = inner;
    c->base = (stki_reader){.ops = &c->ops,
                            .path = stki_strdup(inner->path),
                            .count = inner->count,
                            .draws = true,
                            .copies = true,
                            .access = inner->access,
                            .note = inner->note,
                            .file_bytes = inner->file_bytes,
                            .data_offset = -1,
                            .file = inner->file,
                            .unit_first = inner->unit_first,
                            .unit_count = inner->unit_count,
                            .unit_length = inner->unit_length};
    c->ops = (stki_reader_ops){.format = inner->ops->format,
                               .read = calling_read,
                               .path = inner->ops->path ? calling_path : NULL,
                               .will_need = inner->ops->will_need ? calling_will_need : NULL,
                               .destroy = calling_destroy};
    status = c->base.path ? shape_of(c, node, err) : stki_fail_memory(err, (int64_t)strlen(inner->path), "a path");
    c->base.max_bytes = inner->max_bytes > c->bytes ? inner->max_bytes : c->bytes;
    if (status != STK_OK) {
        calling_destroy(&c->base);
        return status;
    }
    *out = &c->base;
    return STK_OK;
}
