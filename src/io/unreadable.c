/* unreadable.c: the reader of a text file with a single sample that could not be opened; every read returns the same
 * error. */
#include "allocate.h"
#include "error.h"
#include "files.h"

struct unreadable {
    stki_reader base; /* first member */
    stk_error error;
};

static stk_status give_error(const stki_reader *base, int64_t index, stk_error *err)
{
    const struct unreadable *u = (const struct unreadable *)(const void *)base;
    stk_status status = stki_reader_check_index(base, index, err);

    if (status != STK_OK)
        return status;
    if (err)
        *err = u->error;
    return stki_fail_record(err, u->error.status, index);
}

static stk_status unreadable_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                  stk_tensor *out, stk_error *err)
{
    (void)want, (void)scratch, (void)out;
    return give_error(base, index, err);
}

static stk_status unreadable_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    (void)shape;
    return give_error(base, index, err);
}

static void unreadable_destroy(stki_reader *base)
{
    stki_free(base->path);
    stki_free(base);
}

static const stki_reader_ops unreadable_ops = {
    .format = "text", .read = unreadable_read, .shape = unreadable_shape, .destroy = unreadable_destroy};

stk_status stki_unreadable_text(const char *path, const stk_error *error, stki_reader **out, stk_error *err)
{
    struct unreadable *u = stki_zalloc(sizeof *u);

    if (!u)
        return stki_fail_memory(err, sizeof *u, path);
    u->error = *error;
    u->base = (stki_reader){.ops = &unreadable_ops,
                            .path = stki_strdup(path),
                            .count = 1,
                            .dtype = STK_U8,
                            .ndim = 1,
                            .strides = {1},
                            .variable = true,
                            .copies = true,
                            .access = "none",
                            .file_bytes = -1,
                            .data_offset = -1};
    if (!u->base.path) {
        unreadable_destroy(&u->base);
        return stki_fail_memory(err, (int64_t)sizeof *u, path);
    }
    *out = &u->base;
    return STK_OK;
}
