/* segments.c: see segments.h. */
#include "segments.h"
#include "allocate.h"
#include "bisect.h"
#include "error.h"
#include "tensor_internal.h"
#include "windows.h"
#include <inttypes.h>
#include <string.h>

struct segments {
    stki_reader base; /* first member */
    stki_reader_ops ops;
    stki_reader *inner;
    stki_segments_opts opts;
    int64_t *first; /* number of the first segment of each inner sample, followed by the total number */
};

static const struct segments *segments_of(const stki_reader *base)
{
    return (const struct segments *)(const void *)base;
}

/* Returns the inner sample that contains segment `index`. */
static int64_t whole_of(const struct segments *s, int64_t index)
{
    return stki_bisect(s->first, 0, s->inner->count - 1, index);
}

/* Returns the number of segments in a sample with this many rows: rows, or windows of rows. */
static int64_t count_of(const struct segments *s, int64_t rows)
{
    return s->opts.length > 0 ? stki_window_count(rows, s->opts.length, s->opts.dilation, s->opts.step) : rows;
}

static bool fits(const struct segments *s, const int64_t *shape)
{
    return memcmp(shape + 1, s->inner->shape + 1, (size_t)(s->inner->ndim - 1) * sizeof *shape) == 0;
}

static stk_status segments_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                stk_tensor *out, stk_error *err)
{
    const struct segments *s = segments_of(base);
    const stki_reader *inner = s->inner;
    const int axes = s->opts.length > 0 ? 0 : 1;
    int64_t whole, start, stride;
    char path[STKI_RECORD_PATH];
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK)
        return status;
    whole = whole_of(s, index);
    start = (index - s->first[whole]) * s->opts.step;
    status = inner->ops->read(inner, whole, NULL, scratch, out, err);
    if (status != STK_OK)
        return status;
    if (!fits(s, out->shape) || count_of(s, out->shape[0]) != s->first[whole + 1] - s->first[whole]) {
        status = stki_fail_at(err, STK_E_MISMATCH,
                              (stki_place){stki_reader_path(inner, whole, path), whole, -1,
                                           STKI_SHAPE(out->ndim, out->shape), STKI_SHAPE(inner->ndim, inner->shape)},
                              "source.window: axes after the first differ from those of the other files, or the file "
                              "changed since it was opened");
        stki_reader_done(inner, out);
        return status;
    }
    stride = out->strides[0];
    out->data = (char *)out->data + start * stride;
    out->ndim = base->ndim;
    memmove(out->strides, out->strides + axes, (size_t)base->ndim * sizeof out->strides[0]);
    if (s->opts.length > 0)
        out->strides[0] = stride * s->opts.dilation;
    memcpy(out->shape, base->shape, (size_t)base->ndim * sizeof out->shape[0]);
    return STK_OK;
}

static void segments_done(const stki_reader *base, stk_tensor *out)
{
    stki_reader_done(segments_of(base)->inner, out);
}

static bool segments_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const struct segments *s = segments_of(base);

    return index >= 0 && index < base->count && s->inner->ops->path(s->inner, whole_of(s, index), buffer, size);
}

static void segments_destroy(stki_reader *base)
{
    struct segments *s = (struct segments *)(void *)base;

    stki_reader_destroy(s->inner);
    stki_free(s->first);
    stki_free(base->path);
    stki_free(s);
}

static stk_status describe(struct segments *s, stk_error *err)
{
    stki_reader *base = &s->base;
    const stki_reader *inner = s->inner;
    const int axes = s->opts.length > 0 ? 0 : 1;

    if (inner->ndim == 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){inner->path, -1, -1, "a sample without axes (a scalar)", "at least one axis"},
                            "source.window: the samples have no axis for windows");
    for (int64_t i = 0; i < inner->count; i++) {
        int64_t shape[STK_MAX_DIMS];
        const bool known = stki_reader_shape(inner, i, shape, NULL) == STK_OK && fits(s, shape);

        s->first[i + 1] = s->first[i] + (known ? count_of(s, shape[0]) : s->opts.missing);
    }
    base->count = s->first[inner->count];
    base->dtype = inner->dtype;
    base->swapped = inner->swapped;
    base->ndim = inner->ndim - axes;
    memcpy(base->shape, inner->shape + axes, (size_t)base->ndim * sizeof base->shape[0]);
    if (s->opts.length > 0)
        base->shape[0] = s->opts.length;
    return stki_row_major(base->dtype, base->ndim, base->shape, base->strides, &base->max_bytes, err);
}

stk_status stki_segments_open(stki_reader *inner, const stki_segments_opts *opts, stki_reader **out, stk_error *err)
{
    struct segments *s = stki_zalloc(sizeof *s);
    stk_status status;

    if (!s) {
        stki_reader_destroy(inner);
        return stki_fail_memory(err, sizeof *s, "a reader");
    }
    s->inner = inner;
    s->opts = *opts;
    s->opts.step = opts->length > 0 ? opts->step : 1;
    s->ops = (stki_reader_ops){.format = inner->ops->format,
                               .read = segments_read,
                               .done = segments_done,
                               .path = inner->ops->path ? segments_path : NULL,
                               .destroy = segments_destroy};
    s->base = (stki_reader){.ops = &s->ops,
                            .path = stki_strdup(inner->path),
                            .windows = opts->length > 0,
                            .copies = true,
                            .access = inner->access,
                            .note = inner->note,
                            .file_bytes = inner->file_bytes,
                            .data_offset = -1,
                            .file = inner->file,
                            .unit_count = inner->count,
                            .group_count = inner->count};
    s->first = stki_zalloc_array(inner->count + 1, sizeof *s->first);
    s->base.unit_first = s->base.group_first = s->first;
    status = s->base.path && s->first
                 ? describe(s, err)
                 : stki_fail_memory(err, (inner->count + 1) * (int64_t)sizeof *s->first, "segments of files");
    if (status == STK_OK && s->opts.length > 0)
        s->base.strides[0] *= s->opts.dilation;
    if (status != STK_OK) {
        segments_destroy(&s->base);
        return status;
    }
    *out = &s->base;
    return STK_OK;
}
