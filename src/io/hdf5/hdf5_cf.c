/* hdf5_cf.c: applies the attributes with which NetCDF files pack numbers (CF conventions, section 8.1, and _Unsigned of
 * the NetCDF users' guide): value * scale_factor + add_offset, and NaN if the stored value is _FillValue or
 * missing_value. The arithmetic is done in double precision with two roundings, and the result is rounded to the
 * delivered type. _Unsigned is applied first: "true" interprets signed integers, including fill values, as unsigned
 * integers with the same bits, and "false" does the reverse. It does not affect other types. */
#include "allocate.h"
#include "error.h"
#include "hdf5_reader.h"
#include "tensor_internal.h"
#include "thread.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

struct attribute {
    bool there;
    double value;
};

struct packing {
    struct attribute scale, offset, fill, missing;
    stk_dtype stored; /* type of the stored values after _Unsigned */
    bool computes;    /* false: the stored numbers are delivered unchanged */
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

/* ---- attributes ---- */

/* Returns true if the attribute was read without the library, or is known to be missing. */
static bool parse_attribute(const stki_hdf5_dataset *d, const char *name, stki_hdf5_attribute *out)
{
    return stki_hdf5_file_parsed(d->home) &&
           stki_hdf5_attribute_find(&d->home->super, d->header, name, out, NULL) == STK_OK;
}

/* Called between enter and leave. */
static stk_status ask_attribute(const stki_hdf5_dataset *d, const char *name, struct attribute *out, stk_error *err)
{
    hid_t attribute, space;
    hssize_t count;
    stk_status status = stki_hdf5_dataset_need(d, err);

    if (status != STK_OK || H5Aexists(d->id, name) <= 0)
        return status;
    attribute = H5Aopen(d->id, name, H5P_DEFAULT);
    space = attribute < 0 ? -1 : H5Aget_space(attribute);
    count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    if (count != 1 || H5Aread(attribute, H5T_NATIVE_DOUBLE, &out->value) < 0)
        status = stki_hdf5_fail(err, STK_E_UNSUPPORTED, d->path, d->name, "a packing attribute is not a number");
    else
        out->there = true;
    if (space >= 0)
        (void)H5Sclose(space);
    if (attribute >= 0)
        (void)H5Aclose(attribute);
    return status;
}

static stk_status read_attribute(const stki_hdf5_dataset *d, const char *name, struct attribute *out, stk_error *err)
{
    stki_hdf5_attribute parsed;
    stki_hdf5_guard guard;
    stk_status status;

    if (parse_attribute(d, name, &parsed) && parsed.kind != STKI_HDF5_TEXT) {
        out->there = parsed.kind == STKI_HDF5_NUMBER;
        out->value = out->there ? parsed.number : out->value;
        return STK_OK;
    }
    stki_hdf5_enter(&guard, false);
    stki_apart_note(d->path, d->name, "reading attributes", 0);
    status = ask_attribute(d, name, out, err);
    stki_hdf5_leave(&guard);
    return status;
}

enum { TEXT_ROOM = 16 };

/* Reads a short string; "?" if it is long or not a string. Called between enter and leave. */
static void ask_text(hid_t attribute, char text[TEXT_ROOM])
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    bool one = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    size_t bytes = type < 0 || H5Tget_class(type) != H5T_STRING ? 0 : H5Tget_size(type);
    char *varying = NULL;

    stki_text(text, TEXT_ROOM, "?");
    if (one && bytes > 0 && H5Tis_variable_str(type) > 0) {
        if (H5Aread(attribute, type, &varying) >= 0 && varying)
            stki_text(text, TEXT_ROOM, "%s", varying);
        if (varying)
            (void)H5free_memory(varying);
    } else if (one && bytes > 0 && bytes < TEXT_ROOM) {
        memset(text, 0, TEXT_ROOM);
        if (H5Aread(attribute, type, text) < 0)
            stki_text(text, TEXT_ROOM, "?");
    }
    if (space >= 0)
        (void)H5Sclose(space);
    if (type >= 0)
        (void)H5Tclose(type);
}

/* Reads a string in lower case; "" if the attribute is missing. */
static stk_status read_text(const stki_hdf5_dataset *d, const char *name, char text[TEXT_ROOM], stk_error *err)
{
    stki_hdf5_attribute parsed;
    stki_hdf5_guard guard;
    hid_t attribute;
    bool there = false;
    stk_status status = STK_OK;

    memset(text, 0, TEXT_ROOM);
    if (parse_attribute(d, name, &parsed) && parsed.kind != STKI_HDF5_NUMBER) {
        there = parsed.kind == STKI_HDF5_TEXT;
        if (there)
            memcpy(text, parsed.text, TEXT_ROOM);
    } else {
        stki_hdf5_enter(&guard, false);
        stki_apart_note(d->path, d->name, "reading attributes", 0);
        status = stki_hdf5_dataset_need(d, err);
        if (status == STK_OK && H5Aexists(d->id, name) > 0 && (attribute = H5Aopen(d->id, name, H5P_DEFAULT)) >= 0) {
            there = true;
            ask_text(attribute, text);
            (void)H5Aclose(attribute);
        }
        stki_hdf5_leave(&guard);
    }
    if (there && text[0] == '\0')
        text[0] = '?';
    for (int i = 0; i < TEXT_ROOM; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    return status;
}

static stk_dtype with_sign(stk_dtype dtype, bool has_sign)
{
    static const stk_dtype pairs[][2] = {{STK_U8, STK_I8}, {STK_U16, STK_I16}, {STK_U32, STK_I32}, {STK_U64, STK_I64}};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (dtype == pairs[i][0] || dtype == pairs[i][1])
            return pairs[i][has_sign];
    return dtype;
}

/* Sets `stored`. */
static stk_status read_sign(const stki_hdf5_dataset *d, stk_dtype *stored, stk_error *err)
{
    char text[TEXT_ROOM];
    stk_status status = read_text(d, "_Unsigned", text, err);

    *stored = d->type.dtype;
    if (status != STK_OK || text[0] == '\0')
        return status;
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){d->path, -1, -1, text, "\"true\" or \"false\""},
                            "%s: invalid attribute _Unsigned", d->name);
    *stored = with_sign(*stored, text[0] == 'f');
    return STK_OK;
}

/* Reinterprets the bits of a fill value in the type `to`, which has the opposite signedness. */
static void take_sign(struct attribute *fill, stk_dtype from, stk_dtype to)
{
    const double all = ldexp(1, 8 * (int)stk_dtype_size(to));

    if (from == to)
        return;
    if (with_sign(to, false) == to && fill->value < 0)
        fill->value += all;
    else if (with_sign(to, true) == to && fill->value >= all / 2)
        fill->value -= all;
}

static stk_status read_packing(const stki_hdf5_dataset *d, struct packing *out, stk_error *err)
{
    stk_status status;

    *out = (struct packing){.scale = {false, 1}, .offset = {false, 0}};
    if ((status = read_attribute(d, "scale_factor", &out->scale, err)) != STK_OK ||
        (status = read_attribute(d, "add_offset", &out->offset, err)) != STK_OK ||
        (status = read_attribute(d, "_FillValue", &out->fill, err)) != STK_OK ||
        (status = read_attribute(d, "missing_value", &out->missing, err)) != STK_OK ||
        (status = read_sign(d, &out->stored, err)) != STK_OK)
        return status;
    take_sign(&out->fill, d->type.dtype, out->stored);
    take_sign(&out->missing, d->type.dtype, out->stored);
    out->computes = out->scale.there || out->offset.there || out->fill.there || out->missing.there;
    if (out->computes && (out->stored == STK_C64 || out->stored == STK_C128))
        return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){d->path, -1, -1, "complex numbers", "real numbers"},
                            "%s: source.cf: the values cannot be scaled", d->name);
    return STK_OK;
}

/* Returns the dtype of computed values. */
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

/* ---- computing ---- */

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

/* Unpacks `stored` into `to`, in row-major order. `to` must have room for f64 elements, even if the result is f32. */
static stk_status compute(const struct packing *p, const stk_tensor *stored, void *to, stk_error *err)
{
    int64_t strides[STK_MAX_DIMS], bytes, count = stk_tensor_numel(stored);
    stk_status status = stki_row_major(STK_F64, stored->ndim, stored->shape, strides, &bytes, err);

    if (status != STK_OK)
        return status;
    stki_copy_strided(to, STK_F64, strides, stored->data, p->stored, stored->strides,
                      (stored->flags & STK_TENSOR_SWAPPED) != 0, stored->ndim, stored->shape);
    unpack(p, to, count);
    if (unpacked_dtype(p->stored) ==
        STK_F32) { /* works in place, because element i only overwrites bytes of elements that have been read */
        const double *from = to;
        for (int64_t i = 0; i < count; i++) {
            float x = (float)from[i];
            memcpy((char *)to + 4 * i, &x, 4);
        }
    }
    return STK_OK;
}

/* ---- reading ---- */

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

static stk_status convert(const struct cf *cf, const stk_tensor *sample, stki_scratch *scratch, stk_tensor *out,
                          stk_error *err)
{
    const stki_reader *base = &cf->base;
    stk_status status = stki_scratch_reserve(scratch, stk_tensor_numel(sample) * 8, err);

    if (status == STK_OK)
        status = compute(&cf->packing, sample, scratch->data, err);
    if (status != STK_OK)
        return status;
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
    if (status == STK_OK) {
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

/* If nothing is computed, the samples are those of the inner reader, with another dtype. */
static stk_status signed_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const stki_reader *inner = ((const struct cf *)(const void *)base)->inner;
    stk_status status = inner->ops->read(inner, index, want, scratch, out, err);

    if (status == STK_OK)
        out->dtype = base->dtype;
    return status;
}

static void signed_done(const stki_reader *base, stk_tensor *out)
{
    stki_reader_done(((const struct cf *)(const void *)base)->inner, out);
}

static const stki_reader_ops signed_ops = {
    .format = "hdf5", .read = signed_read, .done = signed_done, .will_need = cf_will_need, .destroy = cf_destroy};

/* ---- opening ---- */

static stk_status describe(struct cf *cf, stk_error *err)
{
    const stki_reader *inner = cf->inner;

    cf->base = *inner;
    cf->base.ops = cf->packing.computes ? &cf_ops : &signed_ops;
    cf->base.dtype = cf->packing.computes ? unpacked_dtype(cf->packing.stored) : cf->packing.stored;
    cf->base.path = stki_strdup(inner->path);
    if (!cf->base.path)
        return stki_fail_memory(err, (int64_t)strlen(inner->path) + 1, inner->path);
    if (!cf->packing.computes)
        return STK_OK;
    cf->base.swapped = false;
    cf->base.copies = true;
    cf->base.base = NULL;
    cf->base.unit_base = NULL;
    cf->base.sample_stride = 0;
    if (inner->max_bytes == 0) /* one of the axes is empty */
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
    if (status != STK_OK)
        cf_destroy(&cf->base);
    else
        *out = &cf->base;
    return status;
}

stk_status stki_hdf5_cf_reader(const stki_hdf5_dataset *d, stki_reader *inner, stki_reader **out, stk_error *err)
{
    struct packing packing;
    stk_status status = read_packing(d, &packing, err);

    if (status != STK_OK) {
        stki_reader_destroy(inner);
        return status;
    }
    if (packing.computes || packing.stored != inner->dtype)
        return wrap(&packing, inner, out, err);
    *out = inner;
    return STK_OK;
}

stk_status stki_hdf5_cf_look(const stki_hdf5_dataset *d, stk_dtype *dtype, bool *computes, stk_error *err)
{
    struct packing packing;
    stk_status status = read_packing(d, &packing, err);

    if (status != STK_OK)
        return status;
    *computes = packing.computes;
    *dtype = packing.computes ? unpacked_dtype(packing.stored) : packing.stored;
    return STK_OK;
}

stk_status stki_hdf5_cf_array(const stki_hdf5_dataset *d, const stki_reader_opts *opts, stki_array *array,
                              stk_error *err)
{
    stki_array values = {.dtype = STK_F64, .ndim = array->ndim};
    struct packing packing;
    stk_tensor stored;
    int64_t room;
    stk_status status = read_packing(d, &packing, err);

    if (status != STK_OK || !packing.computes) {
        array->dtype = status != STK_OK ? array->dtype : packing.stored;
        return status;
    }
    memcpy(values.shape, array->shape, sizeof values.shape);
    status = stki_array_row_major(&values, &room, d->path, err);
    if (status == STK_OK)
        status = stki_hdf5_check_limit(d, opts, room, "the whole data set", err);
    if (status == STK_OK)
        status = stk_storage_create(NULL, room, &values.memory, err);
    if (status == STK_OK)
        status = stki_array_tensor(array, d->path, &stored, err);
    if (status == STK_OK) {
        status = compute(&packing, &stored, stk_storage_data(values.memory), err);
        stk_tensor_release(&stored);
    }
    values.dtype = unpacked_dtype(packing.stored);
    if (status == STK_OK)
        status = stki_array_row_major(&values, &room, d->path, err);
    if (status != STK_OK) {
        stk_storage_release(values.memory);
        return status;
    }
    stki_array_release(array);
    *array = values;
    return STK_OK;
}
