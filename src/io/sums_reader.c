/* sums_reader.c: a reader that checks records against a checksum file. Every record is read as a whole, so there is no
 * fast path; otherwise it behaves like the inner reader. */
#include "allocate.h"
#include "error.h"
#include "sums.h"
#include <string.h>

struct summed {
    stki_reader base; /* first member */
    stki_reader_ops ops;
    stki_reader *inner;
    stki_sums *sums;
    int64_t first; /* offset of the member's checksums */
};

static const struct summed *summed_of(const stki_reader *base)
{
    return (const struct summed *)(const void *)base;
}

static stk_status summed_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct summed *s = summed_of(base);
    char path[STKI_RECORD_PATH];
    stk_status status;

    (void)want; /* the checksum covers the whole record */
    status = s->inner->ops->read(s->inner, index, NULL, scratch, out, err);
    if (status != STK_OK)
        return status;
    status = stki_sums_check(s->sums, s->first, index, stki_sums_of(out), stki_reader_path(s->inner, index, path), err);
    if (status != STK_OK)
        stki_reader_done(s->inner, out);
    return status;
}

static void summed_done(const stki_reader *base, stk_tensor *out)
{
    stki_reader_done(summed_of(base)->inner, out);
}

static stk_status summed_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct summed *s = summed_of(base);

    return s->inner->ops->shape(s->inner, index, shape, err);
}

static bool summed_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const struct summed *s = summed_of(base);

    return s->inner->ops->path(s->inner, index, buffer, size);
}

static void summed_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct summed *s = summed_of(base);

    s->inner->ops->will_need(s->inner, indices, count);
}

static void summed_destroy(stki_reader *base)
{
    struct summed *s = (struct summed *)(void *)base;

    stki_reader_destroy(s->inner);
    stki_sums_close(s->sums);
    stki_free(base->path);
    stki_free(s);
}

stk_status stki_sums_reader(stki_reader *inner, const char *data_path, const char *member, const stki_reader_opts *opts,
                            stki_reader **out, stk_error *err)
{
    struct summed *s = stki_zalloc(sizeof *s);
    char how[STKI_SUMS_HOW];
    stk_status status;

    if (!s) {
        stki_reader_destroy(inner);
        return stki_fail_memory(err, sizeof *s, "checksums");
    }
    s->inner = inner;
    s->base = *inner; /* copies the description of the samples */
    s->base.path = stki_strdup(inner->path);
    s->base.ops = &s->ops;
    s->base.base = NULL;
    s->base.unit_base = NULL;
    s->base.copies = true;
    s->ops = (stki_reader_ops){.format = inner->ops->format,
                               .read = summed_read,
                               .done = summed_done,
                               .shape = inner->ops->shape ? summed_shape : NULL,
                               .path = inner->ops->path ? summed_path : NULL,
                               .will_need = inner->ops->will_need ? summed_will_need : NULL,
                               .destroy = summed_destroy};
    stki_sums_how(inner, opts, how);
    status = s->base.path ? stki_sums_open(data_path, &s->sums, err) : stki_fail_memory(err, 64, "a path");
    if (status == STK_OK)
        status = stki_sums_find(s->sums, member, how, inner->count, &s->first, err);
    if (status != STK_OK)
        summed_destroy(&s->base);
    else
        *out = &s->base;
    return status;
}
