/* faulty.c: see faulty.h. It offers no fast path, so that every read goes through it. Apart from its faults, it behaves
 * like the inner reader. */
#include "faulty.h"
#include "allocate.h"
#include "counter.h"
#include "error.h"
#include "thread.h"
#include <inttypes.h>

struct faulty {
    stki_reader base; /* first member */
    stki_reader *inner;
    stki_faulty_opts opts;
    stki_counter reads;
    stki_mutex lock;
    stki_cond woken_up;
    bool woken; /* guarded by lock */
};

static const struct faulty *faulty_of(const stki_reader *base)
{
    return (const struct faulty *)(const void *)base;
}

static void sleep_until_woken(struct faulty *f)
{
    stki_lock(&f->lock);
    while (!f->woken)
        (void)stki_wait(&f->woken_up, &f->lock, INT64_MAX);
    stki_unlock(&f->lock);
}

static stk_status faulty_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                              stk_tensor *out, stk_error *err)
{
    const struct faulty *f = faulty_of(base);
    char path[STKI_RECORD_PATH];
    struct faulty *shared = (struct faulty *)(uintptr_t)f; /* the counter and the lock are thread-safe */
    int64_t number = atomic_fetch_add_explicit(&shared->reads, 1, memory_order_relaxed) + 1;

    if (f->opts.all_slow_ns > 0)
        stki_sleep_ns(f->opts.all_slow_ns);
    if (index == f->opts.slow_at && f->opts.slow_ns == INT64_MAX)
        sleep_until_woken(shared);
    else if (index == f->opts.slow_at && f->opts.slow_ns > 0)
        stki_sleep_ns(f->opts.slow_ns);
    if (index == f->opts.fail_at || (f->opts.fail_from_read >= 0 && number >= f->opts.fail_from_read))
        return stki_fail_at(err, f->opts.status,
                            (stki_place){stki_reader_path(base, index, path), index, -1, NULL, NULL},
                            "made to fail (read %" PRId64 ")", number);
    return f->inner->ops->read(f->inner, index, want, scratch, out, err);
}

static void faulty_done(const stki_reader *base, stk_tensor *out)
{
    stki_reader_done(faulty_of(base)->inner, out);
}

static stk_status faulty_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct faulty *f = faulty_of(base);

    return f->inner->ops->shape(f->inner, index, shape, err);
}

static bool faulty_path(const stki_reader *base, int64_t index, char *buffer, int64_t size)
{
    const struct faulty *f = faulty_of(base);

    return f->inner->ops->path && f->inner->ops->path(f->inner, index, buffer, size);
}

static void faulty_will_need(const stki_reader *base, const int64_t *indices, int64_t count)
{
    const struct faulty *f = faulty_of(base);

    if (f->inner->ops->will_need)
        f->inner->ops->will_need(f->inner, indices, count);
}

static void faulty_destroy(stki_reader *base)
{
    struct faulty *f = (struct faulty *)(void *)base;

    stki_reader_destroy(f->inner);
    stki_cond_fini(&f->woken_up);
    stki_mutex_fini(&f->lock);
    stki_free(base->path);
    stki_free(f);
}

static const stki_reader_ops fixed_ops = {.format = "faulty",
                                          .read = faulty_read,
                                          .done = faulty_done,
                                          .path = faulty_path,
                                          .will_need = faulty_will_need,
                                          .destroy = faulty_destroy};
static const stki_reader_ops variable_ops = {.format = "faulty",
                                             .read = faulty_read,
                                             .done = faulty_done,
                                             .path = faulty_path,
                                             .shape = faulty_shape,
                                             .will_need = faulty_will_need,
                                             .destroy = faulty_destroy};

stk_status stki_faulty_open(stki_reader *inner, const stki_faulty_opts *opts, stki_reader **out, stk_error *err)
{
    struct faulty *f = stki_zalloc(sizeof *f);
    char *path = stki_strdup(inner->path);

    if (!f || !path) {
        stki_reader_destroy(inner);
        stki_free(f);
        stki_free(path);
        return stki_fail_memory(err, sizeof *f, "a faulty reader");
    }
    f->base = *inner; /* properties of the samples are unchanged */
    f->base.ops = inner->variable ? &variable_ops : &fixed_ops;
    f->base.path = path;
    f->base.base = NULL;
    f->base.unit_base = NULL;
    f->base.copies = true;
    f->inner = inner;
    f->opts = *opts;
    stki_mutex_init(&f->lock);
    stki_cond_init(&f->woken_up);
    *out = &f->base;
    return STK_OK;
}

void stki_faulty_wake(stki_reader *reader)
{
    struct faulty *f = (struct faulty *)(void *)reader;

    stki_lock(&f->lock);
    f->woken = true;
    stki_wake_all(&f->woken_up);
    stki_unlock(&f->lock);
}
