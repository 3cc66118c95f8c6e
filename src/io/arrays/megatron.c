/* megatron.c: Megatron's token files as a container. Its members are "documents" and "sequences" (records of varying
 * length), "tokens" (the whole .bin as one array), "document_index" (the list of documents) and, if the file has them,
 * "modes".
 *
 * A document is a run of sequences. If they are consecutive in the .bin, as usual, the document is a view; otherwise
 * its sequences are copied to scratch memory. The index is used directly from its mapping, or from a copy in memory if
 * files are not mapped. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

enum member { DOCUMENTS, SEQUENCES, TOKENS, DOCUMENT_INDEX, MODES };
enum { ALIGNMENT = 64, UNIT_BYTES = 4 << 20, ADVISE_AT_ONCE = 128 };

struct megatron {
    stki_container base; /* first member */
    stki_file *idx, *bin;
    const char *bytes; /* the .idx */
    void *copy;        /* owned copy of the .idx if it is not mapped */
    stki_megatron_index index;
};

struct spans {
    stki_reader base; /* first member */
    const struct megatron *set;
    bool documents; /* false: sequences */
    int64_t max_bytes;
};

static struct megatron *set_of(const stki_container *base)
{
    return (struct megatron *)(uintptr_t)base;
}

static int64_t length_of(const struct megatron *set, int64_t sequence)
{
    int32_t length;

    memcpy(&length, set->bytes + set->index.lengths + 4 * sequence, sizeof length);
    return length;
}

static int64_t offset_of(const struct megatron *set, int64_t sequence)
{
    int64_t offset;

    memcpy(&offset, set->bytes + set->index.offsets + 8 * sequence, sizeof offset);
    return offset;
}

static int64_t first_of(const struct megatron *set, int64_t document)
{
    int64_t first;

    memcpy(&first, set->bytes + set->index.list + 8 * document, sizeof first);
    return first;
}

/* ---- records ---- */

/* The sequences of a record, and its location in the .bin. */
struct span {
    int64_t first, last; /* sequences [first, last) */
    int64_t tokens;
    int64_t offset; /* valid if contiguous */
    bool together;
};

static const struct spans *spans_of(const stki_reader *base)
{
    return (const struct spans *)(const void *)base;
}

static stk_status fail_changed(const struct spans *s, int64_t index, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){s->set->idx->path, index, -1, NULL, NULL},
                        "the index changed while it was open");
}

static stk_status locate(const struct spans *s, int64_t index, struct span *out, stk_error *err)
{
    const struct megatron *set = s->set;
    int64_t size = stk_dtype_size(set->index.dtype), end = 0;
    stk_status status = stki_reader_check_index(&s->base, index, err);

    if (status != STK_OK)
        return status;
    *out = (struct span){.first = index, .last = index + 1, .together = true};
    if (s->documents) {
        out->first = first_of(set, index);
        out->last = first_of(set, index + 1);
        if (out->first < 0 || out->last < out->first || out->last > set->index.sequences)
            return fail_changed(s, index, err);
    }
    for (int64_t i = out->first; i < out->last; i++) {
        int64_t length = length_of(set, i), offset = offset_of(set, i);

        if (length < 0 || !stki_inside(offset, length * size, set->bin->size))
            return fail_changed(s, index, err);
        if (length == 0)
            continue;
        out->together = out->together && (out->tokens == 0 || offset == end);
        out->offset = out->tokens == 0 ? offset : out->offset;
        out->tokens += length; /* cannot overflow: a length is below 2^31, and the size of the file limits the number of
                                  sequences */
        end = offset + length * size;
    }
    if (s->max_bytes == 0 || out->tokens <= s->max_bytes / size)
        return STK_OK;
    return stki_fail_at(err, STK_E_LIMIT,
                        (stki_place){s->base.path, index, out->offset,
                                     STKI_TEXT("%" PRId64 " tokens of %" PRId64 " bytes", out->tokens, size),
                                     STKI_TEXT("at most %" PRId64 " bytes (max_bytes)", s->max_bytes)},
                        "the record is too long");
}

/* Copies the sequences of a record into the scratch memory. */
static stk_status gather(const struct spans *s, const struct span *span, stki_scratch *scratch, stk_error *err)
{
    const struct megatron *set = s->set;
    int64_t size = stk_dtype_size(set->index.dtype), bytes, done = 0;
    stk_status status;

    if (!stki_mul(span->tokens, size, &bytes))
        return stki_fail_memory(err, INT64_MAX, "a document");
    status = stki_scratch_reserve(scratch, bytes > 0 ? bytes : 1, err);
    for (int64_t i = span->first; i < span->last && status == STK_OK; i++) {
        int64_t part = length_of(set, i) * size;

        if (part < 0 || part > bytes - done)
            return fail_changed(s, -1, err);
        status = stki_file_read(set->bin, offset_of(set, i), (char *)scratch->data + done, part, err);
        done += part;
    }
    return status;
}

static stk_status spans_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                             stk_tensor *out, stk_error *err)
{
    const struct spans *s = spans_of(base);
    const stki_file *bin = s->set->bin;
    struct span span;
    stk_status status = locate(s, index, &span, err);

    (void)want;
    if (status != STK_OK)
        return status;
    if (bin->map && span.together) {
        out->data = (void *)(uintptr_t)((const char *)bin->map + span.offset);
    } else {
        status = gather(s, &span, scratch, err);
        out->data = scratch->data;
    }
    out->storage = NULL;
    out->device = NULL;
    out->dtype = base->dtype;
    out->ndim = 1;
    out->flags = STK_TENSOR_READONLY;
    out->reserved = 0;
    out->shape[0] = span.tokens;
    out->strides[0] = stk_dtype_size(base->dtype);
    return stki_fail_record(err, status, index);
}

static stk_status spans_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    struct span span;
    stk_status status = locate(spans_of(base), index, &span, err);

    if (status == STK_OK)
        shape[0] = span.tokens;
    return status;
}

static void spans_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct spans *s = spans_of(base);
    stki_range ranges[ADVISE_AT_ONCE];
    int64_t n = 0;

    if (!stki_file_advice_due(s->set->bin))
        return;
    for (int64_t i = 0; i < count; i++) {
        struct span span;

        if (locate(s, indices[i], &span, NULL) == STK_OK && span.tokens > 0 && span.together)
            ranges[n++] = (stki_range){span.offset, span.tokens * stk_dtype_size(base->dtype)};
        if (n == ADVISE_AT_ONCE || i == count - 1) {
            stki_file_will_need_ranges(s->set->bin, ranges, n);
            n = 0;
        }
    }
}

static int spans_place(const stki_reader *base, int64_t index, stki_range *out)
{
    struct span span;

    if (locate(spans_of(base), index, &span, NULL) != STK_OK || !span.together)
        return 0;
    out[0] = (stki_range){span.offset, span.tokens * stk_dtype_size(base->dtype)};
    return 1;
}

static void spans_destroy(stki_reader *base)
{
    struct spans *s = (struct spans *)(void *)base;

    stki_container_release((stki_container *)(uintptr_t)&s->set->base);
    stki_free(base->path);
    stki_free(s);
}

static const stki_reader_ops spans_ops = {.format = "megatron",
                                          .read = spans_read,
                                          .shape = spans_shape,
                                          .will_need = spans_will_need,
                                          .destroy = spans_destroy};

static int64_t longest(const struct spans *s)
{
    int64_t most = 0;

    for (int64_t i = 0; i < s->base.count; i++) {
        struct span span;

        if (locate(s, i, &span, NULL) == STK_OK && span.tokens > most)
            most = span.tokens;
    }
    return most;
}

static void describe(struct spans *s)
{
    const struct megatron *set = s->set;
    stki_reader *base = &s->base;
    int64_t size = stk_dtype_size(set->index.dtype), most;

    base->count = s->documents ? set->index.documents : set->index.sequences;
    base->dtype = set->index.dtype;
    base->ndim = 1;
    most = s->max_bytes > 0 ? s->max_bytes / size : longest(s);
    base->shape[0] = most;
    base->max_bytes = most > INT64_MAX / size ? INT64_MAX : most * size;
    base->variable = true;
    base->copies = !set->bin->map || s->documents;
    base->access = set->bin->access;
    base->note = set->bin->note;
    base->file_bytes = set->bin->size;
    base->file = set->bin;
    base->place = spans_place;
    base->placer = base;
    base->data_offset = 0;
    if (base->count > 0)
        base->unit_length = 1 + (int64_t)((double)base->count / ((double)set->bin->size / UNIT_BYTES + 1));
    if (base->unit_length > 0)
        base->unit_count = (base->count + base->unit_length - 1) / base->unit_length;
}

static stk_status open_spans(const struct megatron *set, bool documents, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    struct spans *s = stki_zalloc(sizeof *s);
    char *path = stki_strdup(set->base.path);

    if (!s || !path) {
        stki_free(s);
        stki_free(path);
        return stki_fail_memory(err, sizeof *s, set->base.path);
    }
    (void)stki_container_retain(&set->base);
    s->base.ops = &spans_ops;
    s->base.path = path;
    s->set = set;
    s->documents = documents;
    s->max_bytes = opts->max_bytes;
    describe(s);
    *out = &s->base;
    return STK_OK;
}

/* ---- the container ---- */

static stk_status set_array(const stki_container *base, int64_t member, const stki_reader_opts *opts, stki_array *out,
                            stk_error *err)
{
    const struct megatron *set = set_of(base);
    const stki_member *m = &base->members[member];
    stki_file *file = member == TOKENS ? set->bin : set->idx;

    (void)opts, (void)err;
    *out = (stki_array){.file = stki_file_retain(file),
                        .offset = m->offset,
                        .dtype = m->dtype,
                        .ndim = 1,
                        .shape = {m->shape[0]},
                        .strides = {stk_dtype_size(m->dtype)}};
    return STK_OK;
}

static stk_status set_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                             stki_reader **out, stk_error *err)
{
    const struct megatron *set = set_of(base);
    stki_array array;
    stk_status status;

    if (opts->alias_dtype != STK_DTYPE_NONE && opts->alias_dtype != base->members[member].dtype)
        return stki_fail_at(err, STK_E_MISMATCH,
                            (stki_place){base->path, -1, -1, stk_dtype_long_name(base->members[member].dtype),
                                         STKI_TEXT("%s (source.dtype)", stk_dtype_long_name(opts->alias_dtype))},
                            "the type of %s differs from the configured one", base->members[member].name);
    if (member == DOCUMENTS || member == SEQUENCES)
        return open_spans(set, member == DOCUMENTS, opts, out, err);
    status = set_array(base, member, opts, &array, err);
    if (status == STK_OK)
        status = stki_array_reader(&array, "megatron", array.file->path, opts, out, err);
    stki_array_release(&array);
    return status;
}

static void set_destroy(stki_container *base)
{
    struct megatron *set = set_of(base);

    if (set->copy)
        stki_block_free(&stki_heap, set->copy, set->idx->size, ALIGNMENT);
    stki_file_close(set->idx);
    stki_file_close(set->bin);
    stki_container_free(base);
}

static const stki_container_ops ops = {
    .format = "megatron", .array = set_array, .reader = set_reader, .destroy = set_destroy};

static stk_status add_records(struct megatron *set, const char *name, int64_t count, stk_error *err)
{
    static const int64_t varying[] = {-1};
    stki_member *member;
    stk_status status = stki_container_add(&set->base, name, 1, varying, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = set->index.dtype;
    member->count = count;
    member->layout = "records";
    return STK_OK;
}

static stk_status add_array(struct megatron *set, const char *name, stk_dtype dtype, int64_t offset, int64_t count,
                            stk_error *err)
{
    const int64_t stride = stk_dtype_size(dtype);
    stki_member *member;
    stk_status status = stki_container_add(&set->base, name, 1, &count, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_ARRAY;
    member->dtype = dtype;
    member->count = count;
    member->layout = "contiguous";
    member->offset = offset;
    return stki_member_set_strides(member, &stride, err);
}

/* Adds the members in the order of enum member. */
static stk_status add_members(struct megatron *set, stk_error *err)
{
    const stki_megatron_index *index = &set->index;
    int64_t size = stk_dtype_size(index->dtype), entries = (index->modes >= 0 ? index->modes : set->idx->size);
    stk_status status = add_records(set, "documents", index->documents, err);

    entries = (entries - index->list) / 8;
    if (status == STK_OK)
        status = add_records(set, "sequences", index->sequences, err);
    if (status == STK_OK)
        status = add_array(set, "tokens", index->dtype, 0, set->bin->size / size, err);
    if (status == STK_OK && set->bin->size % size != 0)
        stki_container_warn(&set->base, "%s ends inside a token", set->bin->path);
    if (status == STK_OK)
        status = add_array(set, "document_index", STK_I64, index->list, entries, err);
    if (status == STK_OK && index->modes >= 0)
        status = add_array(set, "modes", STK_I8, index->modes, index->sequences, err);
    return status;
}

static bool ends_with(const char *text, const char *ending)
{
    size_t length = strlen(text), end = strlen(ending);

    return length >= end && !strcmp(text + length - end, ending);
}

/* Returns the path with the extension `ending`. `path` may be that of either file or their common prefix. */
static char *name_of(const char *path, const char *ending)
{
    size_t length = strlen(path);

    if (ends_with(path, ".idx") || ends_with(path, ".bin"))
        length -= 4;
    return stki_format("%.*s%s", (int)length, path, ending);
}

static stk_status open_one(const char *path, const char *ending, const stki_reader_opts *opts, stki_file **out,
                           stk_error *err)
{
    char *name = name_of(path, ending);
    stk_status status;

    if (!name)
        return stki_fail_memory(err, (int64_t)strlen(path) + 5, path);
    status = stki_file_open(name, opts->access, opts->pattern, out, err);
    stki_free(name);
    return status;
}

static stk_status load_index(struct megatron *set, stk_error *err)
{
    char head[STKI_MEGATRON_HEADER] = {0};
    const stki_file *idx = set->idx;
    stk_status status =
        stki_file_read(idx, 0, head, idx->size < STKI_MEGATRON_HEADER ? idx->size : STKI_MEGATRON_HEADER, err);

    if (status == STK_OK)
        status = stki_megatron_read_header(head, idx->size, idx->path, &set->index, err);
    if (status != STK_OK)
        return status;
    set->bytes = idx->map;
    if (!set->bytes) {
        set->copy = stki_block_alloc(&stki_heap, idx->size, ALIGNMENT);
        if (!set->copy)
            return stki_fail_memory(err, idx->size, "an index");
        status = stki_file_read(idx, 0, set->copy, idx->size, err);
        set->bytes = set->copy;
    }
    return status != STK_OK ? status : stki_megatron_check(&set->index, set->bytes, set->bin->size, idx->path, err);
}

stk_status stki_megatron_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    struct megatron *set;
    stk_status status = stki_container_create(sizeof *set, &ops, path, &set, err);

    if (status != STK_OK)
        return status;
    status = open_one(path, ".idx", opts, &set->idx, err);
    if (status == STK_OK)
        status = open_one(path, ".bin", opts, &set->bin, err);
    if (status == STK_OK)
        set->bin->beside = stki_file_retain(set->idx);
    if (status == STK_OK)
        status = load_index(set, err);
    if (status == STK_OK)
        status = add_members(set, err);
    if (status != STK_OK)
        set_destroy(&set->base);
    else
        *out = &set->base;
    return status;
}
