/* packed_reader.c: see packed_reader.h. A window is assembled in a worker's scratch memory, piece by piece, from views
 * of the documents. Documents that have to be read are read into a second scratch. The three readers share the plan and
 * the document reader, which are reference-counted. */
#include "packed_reader.h"
#include "allocate.h"
#include "error.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <string.h>

struct shared {
    stki_counter refs;
    stki_reader *documents;
    stki_packing plan;
    char value[16]; /* padding value, in the dtype and byte order of a document */
};

struct packed {
    stki_reader base; /* first member */
    struct shared *shared;
    enum stki_packed_tensor tensor; /* the tensor of the windows that this reader delivers */
};

static const struct packed *packed_of(const stki_reader *base)
{
    return (const struct packed *)(const void *)base;
}

static void release(struct shared *s)
{
    if (!s || !stki_unref(&s->refs))
        return;
    stki_reader_destroy(s->documents);
    stki_packing_fini(&s->plan);
    stki_free(s);
}

static void packed_destroy(stki_reader *base)
{
    struct packed *p = (struct packed *)(void *)base;

    release(p->shared);
    stki_free(base->path);
    stki_free(p);
}

/* ---- values ---- */

/* Copies one piece of a document. */
static stk_status copy_piece(const struct shared *s, const stki_piece *piece, char *to, stki_scratch *scratch,
                             stk_error *err)
{
    const stki_reader *documents = s->documents;
    int64_t size = stk_dtype_size(documents->dtype);
    stk_tensor document;
    stk_status status = documents->ops->read(documents, piece->document, NULL, scratch, &document, err);

    if (status != STK_OK)
        return status;
    if (document.shape[0] < piece->start + piece->length)
        status = stki_fail_at(err, STK_E_CORRUPT,
                              (stki_place){documents->path, piece->document, -1,
                                           STKI_TEXT("%" PRId64 " elements", document.shape[0]),
                                           STKI_TEXT("at least %" PRId64, piece->start + piece->length)},
                              "the document is shorter than when the file was opened");
    else if (document.strides[0] == size)
        memcpy(to, (const char *)document.data + piece->start * size, (size_t)(piece->length * size));
    else
        stki_copy_strided(to, documents->dtype, &size, (const char *)document.data + piece->start * document.strides[0],
                          documents->dtype, document.strides, false, 1, &piece->length);
    stki_reader_done(documents, &document);
    return status;
}

static void fill_empty(const struct shared *s, char *to, int64_t count, int64_t size)
{
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * size, s->value, (size_t)size);
}

/* Describes a window as a view of the worker's memory. */
static void describe_window(const stki_reader *base, void *data, stk_tensor *out)
{
    *out = (stk_tensor){.data = data,
                        .dtype = base->dtype,
                        .ndim = 1,
                        .flags = STK_TENSOR_READONLY | (base->swapped ? STK_TENSOR_SWAPPED : 0),
                        .shape = {base->shape[0]},
                        .strides = {base->strides[0]}};
}

static stk_status packed_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct shared *s = packed_of(base)->shared;
    int64_t size = base->strides[0], at = 0;
    stki_scratch *second;
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK || (status = stki_scratch_reserve(scratch, base->max_bytes, err)) != STK_OK ||
        (status = stki_scratch_second(scratch, &second, err)) != STK_OK)
        return status;
    for (int64_t i = s->plan.first[index]; i < s->plan.first[index + 1] && status == STK_OK; i++) {
        status = copy_piece(s, &s->plan.pieces[i], (char *)scratch->data + at * size, second, err);
        at += s->plan.pieces[i].length;
    }
    fill_empty(s, (char *)scratch->data + at * size, base->shape[0] - at, size);
    describe_window(base, scratch->data, out);
    return status;
}

/* Prefetches the documents of the windows. */
static void packed_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct shared *s = packed_of(base)->shared;
    int64_t documents[128], n = 0;

    for (int64_t w = 0; w < count; w++)
        for (int64_t i = s->plan.first[indices[w]]; i < s->plan.first[indices[w] + 1]; i++) {
            documents[n++] = s->plan.pieces[i].document;
            if (n == sizeof documents / sizeof *documents) {
                s->documents->ops->will_need(s->documents, documents, n);
                n = 0;
            }
        }
    if (n > 0)
        s->documents->ops->will_need(s->documents, documents, n);
}

static const stki_reader_ops packed_ops = {.format = "packed", .read = packed_read, .destroy = packed_destroy},
                             packed_advising_ops = {.format = "packed",
                                                    .read = packed_read,
                                                    .will_need = packed_will_need,
                                                    .destroy = packed_destroy};

/* Returns the range from the first to the last byte of the window's documents, including the bytes between them. */
static int packed_place(const stki_reader *base, int64_t index, stki_range *out)
{
    const struct shared *s = packed_of(base)->shared;
    const stki_reader *documents = s->documents;
    int64_t from = INT64_MAX, end = 0;

    for (int64_t i = s->plan.first[index]; i < s->plan.first[index + 1]; i++) {
        stki_range ranges[STKI_PLACES];
        const int count =
            documents->place ? documents->place(documents->placer, s->plan.pieces[i].document, ranges) : 0;

        if (count == 0)
            return 0;
        for (int k = 0; k < count; k++) {
            from = ranges[k].offset < from ? ranges[k].offset : from;
            end = ranges[k].offset + ranges[k].bytes > end ? ranges[k].offset + ranges[k].bytes : end;
        }
    }
    out[0] = from < end ? (stki_range){from, end - from} : (stki_range){0, 0};
    return 1;
}

/* ---- segments and positions ---- */

static stk_status part_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                            stk_tensor *out, stk_error *err)
{
    const struct packed *p = packed_of(base);
    const stki_packing *plan = &p->shared->plan;
    int32_t *to, segment = 0;
    int64_t at = 0;
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK || (status = stki_scratch_reserve(scratch, base->max_bytes, err)) != STK_OK)
        return status;
    to = scratch->data;
    for (int64_t i = plan->first[index]; i < plan->first[index + 1]; i++) {
        segment++;
        for (int64_t k = 0; k < plan->pieces[i].length; k++)
            to[at++] = p->tensor == STKI_PACKED_SEGMENTS ? segment : (int32_t)k;
    }
    memset(to + at, 0, (size_t)(base->shape[0] - at) * sizeof *to);
    describe_window(base, to, out);
    return STK_OK;
}

static const stki_reader_ops part_ops = {.format = "packed", .read = part_read, .destroy = packed_destroy};

/* ---- opening ---- */

static int64_t length_of(void *context, int64_t document)
{
    int64_t shape[STK_MAX_DIMS];

    return stki_reader_shape(context, document, shape, NULL) == STK_OK ? shape[0] : -1;
}

/* Creates a reader of the windows, which retains the shared part. */
static stk_status make(struct shared *s, const stki_reader_ops *ops, stk_dtype dtype, struct packed **out,
                       stk_error *err)
{
    struct packed *p = stki_zalloc(sizeof *p);
    char *path = stki_strdup(s->documents->path);

    if (!p || !path) {
        stki_free(p);
        stki_free(path);
        return stki_fail_memory(err, sizeof *p, "packed windows");
    }
    stki_ref(&s->refs);
    p->shared = s;
    p->base.ops = ops;
    p->base.path = path;
    p->base.count = s->plan.windows;
    p->base.dtype = dtype;
    p->base.ndim = 1;
    p->base.shape[0] = s->plan.length;
    p->base.strides[0] = stk_dtype_size(dtype);
    p->base.max_bytes = s->plan.length * p->base.strides[0];
    p->base.copies = true;
    p->base.access = s->documents->access;
    p->base.note = s->documents->note;
    p->base.file_bytes = -1;
    p->base.data_offset = -1;
    *out = p;
    return STK_OK;
}

static stk_status check(const stki_reader *documents, const stki_pack_opts *opts, struct shared *s, stk_error *err)
{
    static const int64_t none[1] = {0};
    int64_t back = 0;

    if (documents->ndim != 1 || !documents->variable)
        return stki_fail_at(
            err, STK_E_CONFIG,
            (stki_place){documents->path, -1, -1,
                         STKI_TEXT("samples of %s size with %d %s", documents->variable ? "varying" : "equal",
                                   documents->ndim, documents->ndim == 1 ? "axis" : "axes"),
                         "documents: samples of varying size with one axis (see source.documents)"},
            "source.pack: the samples are not documents");
    stki_copy_strided(s->value, documents->dtype, none, &opts->value, STK_I64, none, false, 0, none);
    stki_copy_strided(&back, STK_I64, none, s->value, documents->dtype, none, false, 0, none);
    if (back != opts->value)
        return stki_fail_at(
            err, STK_E_CONFIG,
            (stki_place){documents->path, -1, -1, STKI_TEXT("%" PRId64, opts->value),
                         STKI_TEXT("a value that fits in %s, the type of the stored tokens",
                                   stk_dtype_long_name(documents->dtype))},
            "source.pack.value (windows are filled before dtype and cast; to exclude the padding from a loss, "
            "mask elements whose NAME.segments is 0, or use pad: {value: …} without pack)");
    if (documents->swapped)
        for (int64_t i = 0, n = stk_dtype_size(documents->dtype); i < n / 2; i++) {
            char byte = s->value[i];

            s->value[i] = s->value[n - 1 - i];
            s->value[n - 1 - i] = byte;
        }
    return STK_OK;
}

stk_status stki_packed_open(stki_reader *documents, const stki_pack_opts *opts, stki_reader **out, stk_error *err)
{
    struct shared *s = stki_zalloc(sizeof *s);
    stki_packing_opts plan = {.length = opts->length,
                              .overlap = opts->overlap,
                              .apart = opts->apart,
                              .length_of = length_of,
                              .context = documents,
                              .documents = documents->count};
    struct packed *p = NULL;
    stk_status status;

    if (!s) {
        stki_reader_destroy(documents);
        return stki_fail_memory(err, sizeof *s, "packed windows");
    }
    stki_count_set(&s->refs, 1);
    s->documents = documents;
    status = check(documents, opts, s, err);
    if (status == STK_OK)
        status = stki_fail_place(err, stki_packing_plan(&plan, &s->plan, err), documents->path, -1, NULL);
    if (status == STK_OK)
        status = make(s, documents->ops->will_need ? &packed_advising_ops : &packed_ops, documents->dtype, &p, err);
    if (status == STK_OK) {
        p->base.swapped = documents->swapped;
        p->base.file = documents->file;
        p->base.place = packed_place;
        p->base.placer = &p->base;
        *out = &p->base;
    }
    release(s);
    return status;
}

const stki_packing *stki_packed_plan(const stki_reader *reader)
{
    return reader->ops->read == packed_read ? &packed_of(reader)->shared->plan : NULL;
}

stk_status stki_packed_tensor_open(const stki_reader *packed, enum stki_packed_tensor tensor, stki_reader **out,
                                   stk_error *err)
{
    struct packed *p;
    stk_status status;

    if (!stki_packed_plan(packed))
        return stki_fail(err, STK_E_UNSUPPORTED, "%s: only packed windows have segments and positions", packed->path);
    status = make(packed_of(packed)->shared, &part_ops, STK_I32, &p, err);
    if (status != STK_OK)
        return status;
    p->tensor = tensor;
    *out = &p->base;
    return STK_OK;
}
