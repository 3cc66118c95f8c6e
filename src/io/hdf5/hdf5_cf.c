/* hdf5_cf.c: the attributes by which NetCDF files pack numbers (CF conventions, section 8.1), undone as the samples are
 * read: value * scale_factor + add_offset, and NaN where the stored value is _FillValue or missing_value. Computed in
 * double precision, two roundings, then rounded to the type that is delivered. */
#include "allocate.h"
#include "error.h"
#include "hdf5_reader.h"
#include "tensor_internal.h"
#include "thread.h"
#include <math.h>
#include <string.h>

struct attribute {
    bool there;
    double value;
};

struct packing {
    struct attribute scale, offset, fill, missing;
};

struct spare {
    struct spare *next;
    stki_scratch scratch;
};

struct cf {
    stki_reader base; /* first member */
    stki_reader *inner;
    struct packing packing;
    stki_mutex lock; /* guards spares */
    struct spare *spares;
};

/* ---- attributes ----------------------------------------------------------------------------------------------------
 */

static stk_status read_attribute(const stki_hdf5_dataset *d, const char *name, struct attribute *out, stk_error *err)
{
    hid_t attribute, space;
    hssize_t count;
    stk_status status = STK_OK;

    if (H5Aexists(d->id, name) <= 0)
        return STK_OK;
    attribute = H5Aopen(d->id, name, H5P_DEFAULT);
    space = attribute < 0 ? -1 : H5Aget_space(attribute);
    count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (count != 1 || H5Aread(attribute, H5T_NATIVE_DOUBLE, &out->value) < 0)
        status = stki_hdf5_fail(err, STK_E_UNSUPPORTED, d->path, d->name, "a packing attribute that is no number");
    else
        out->there = true;
    if (space >= 0)
        (void)H5Sclose(space);
    if (attribute >= 0)
        (void)H5Aclose(attribute);
    return status;
}

static stk_status read_packing(const stki_hdf5_dataset *d, struct packing *out, stk_error *err)
{
    stki_hdf5_guard guard;
    stk_status status;

    *out = (struct packing){.scale = {false, 1}, .offset = {false, 0}};
    stki_hdf5_enter(&guard, false);
    status = read_attribute(d, "scale_factor", &out->scale, err);
    if (!status)
        status = read_attribute(d, "add_offset", &out->offset, err);
    if (!status)
        status = read_attribute(d, "_FillValue", &out->fill, err);
    if (!status)
        status = read_attribute(d, "missing_value", &out->missing, err);
    stki_hdf5_leave(&guard);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------------
 */

static struct spare *take_spare(struct cf *cf)
{
    struct spare *spare;

    stki_lock(&cf->lock);
    spare = cf->spares;
    if (spare)
        cf->spares = spare->next;
    stki_unlock(&cf->lock);
    return spare ? spare : stki_zalloc(sizeof *spare);
}

static void give_spare(struct cf *cf, struct spare *spare)
{
    stki_lock(&cf->lock);
    spare->next = cf->spares;
    cf->spares = spare;
    stki_unlock(&cf->lock);
}

static bool is_fill(const struct attribute *fill, double x)
{
    return fill->there && (x == fill->value || (isnan(fill->value) && isnan(x)));
}

static void unpack(const struct packing *p, double *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double x = values[i];

        values[i] = is_fill(&p->fill, x) || is_fill(&p->missing, x) ? NAN : x * p->scale.value + p->offset.value;
    }
}

static stk_status convert(const struct cf *cf, const stk_tensor *sample, stki_scratch *scratch, stk_tensor *out,
                          stk_error *err)
{
    const stki_reader *base = &cf->base;
    int64_t strides[STK_MAX_DIMS], bytes, count = stk_tensor_numel(sample);
    stk_status status = stki_row_major(STK_F64, base->ndim, base->shape, strides, &bytes, err);

    if (!status)
        status = stki_scratch_reserve(scratch, bytes, err);
    if (status)
        return status;
    stki_copy_strided(scratch->data, STK_F64, strides, sample->data, sample->dtype, sample->strides,
                      (sample->flags & STK_TENSOR_SWAPPED) != 0, sample->ndim, sample->shape);
    unpack(&cf->packing, scratch->data, count);
    if (base->dtype == STK_F32) { /* in place: an element is written where only earlier ones were read */
        const double *from = scratch->data;
        char *to = scratch->data;
        for (int64_t i = 0; i < count; i++) {
            float x = (float)from[i];
            memcpy(to + 4 * i, &x, 4);
        }
    }
    *out = (stk_tensor){.data = scratch->data, .dtype = base->dtype, .ndim = base->ndim, .flags = STK_TENSOR_READONLY};
    memcpy(out->shape, base->shape, sizeof base->shape);
    memcpy(out->strides, base->strides, sizeof base->strides);
    return STK_OK;
}

static stk_status cf_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                          stk_tensor *out, stk_error *err)
{
    struct cf *cf = (struct cf *)(uintptr_t)base;
    struct spare *spare = take_spare(cf);
    stk_tensor sample;
    stk_status status;

    (void)want;
    if (!spare)
        return stki_fail_memory(err, sizeof *spare, "a sample");
    status = cf->inner->ops->read(cf->inner, index, NULL, &spare->scratch, &sample, err);
    if (!status) {
        status = convert(cf, &sample, scratch, out, err);
        stki_reader_done(cf->inner, &sample);
    }
    give_spare(cf, spare);
    return status;
}

static void cf_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct cf *cf = (const struct cf *)(const void *)base;

    if (cf->inner->ops->will_need)
        cf->inner->ops->will_need(cf->inner, indices, count);
}

static void cf_destroy(stki_reader *base)
{
    struct cf *cf = (struct cf *)(void *)base;
    struct spare *next;

    for (struct spare *s = cf->spares; s; s = next) {
        next = s->next;
        stki_scratch_fini(&s->scratch);
        stki_free(s);
    }
    stki_reader_destroy(cf->inner);
    stki_mutex_fini(&cf->lock);
    stki_free(base->path);
    stki_free(cf);
}

static const stki_reader_ops cf_ops = {
    .format = "hdf5", .read = cf_read, .will_need = cf_will_need, .destroy = cf_destroy};

static stk_dtype unpacked_dtype(stk_dtype stored)
{
    switch (stored) {
    case STK_U32:
    case STK_I32:
    case STK_U64:
    case STK_I64:
    case STK_F64:
        return STK_F64;
    default:
        return STK_F32;
    }
}

static stk_status describe(struct cf *cf, stk_error *err)
{
    const stki_reader *inner = cf->inner;

    cf->base = *inner;
    cf->base.ops = &cf_ops;
    cf->base.dtype = unpacked_dtype(inner->dtype);
    cf->base.swapped = false;
    cf->base.copies = true;
    cf->base.base = NULL;
    cf->base.unit_base = NULL;
    cf->base.sample_stride = 0;
    cf->base.path = stki_strdup(inner->path);
    if (!cf->base.path)
        return stki_fail_memory(err, (int64_t)strlen(inner->path) + 1, inner->path);
    if (inner->max_bytes == 0) /* an axis of no elements */
        return stki_row_major(cf->base.dtype, inner->ndim, inner->shape, cf->base.strides, &(int64_t){0}, err);
    return stki_row_major(cf->base.dtype, inner->ndim, inner->shape, cf->base.strides, &cf->base.max_bytes, err);
}

static stk_status wrap(const struct packing *packing, stki_reader *inner, stki_reader **out, stk_error *err)
{
    struct cf *cf = stki_zalloc(sizeof *cf);
    stk_status status;

    if (!cf) {
        stki_reader_destroy(inner);
        return stki_fail_memory(err, sizeof *cf, "a reader");
    }
    stki_mutex_init(&cf->lock);
    cf->inner = inner;
    cf->packing = *packing;
    status = describe(cf, err);
    if (status)
        cf_destroy(&cf->base);
    else
        *out = &cf->base;
    return status;
}

stk_status stki_hdf5_cf_reader(const stki_hdf5_dataset *d, stki_reader *inner, stki_reader **out, stk_error *err)
{
    struct packing packing;
    stk_status status = read_packing(d, &packing, err);

    if (!status && (inner->dtype == STK_C64 || inner->dtype == STK_C128))
        status = stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){d->path, -1, -1, "complex numbers", NULL},
                              "%s: cf: nothing to scale", d->name);
    if (status) {
        stki_reader_destroy(inner);
        return status;
    }
    if (packing.scale.there || packing.offset.there || packing.fill.there || packing.missing.there)
        return wrap(&packing, inner, out, err);
    *out = inner;
    return STK_OK;
}
