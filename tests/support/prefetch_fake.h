/* prefetch_fake.h: a source for prefetchers in tests, which delivers numbered batches of known bytes in a ring of a few
 * host buffers and overwrites each as soon as it is returned, and a consumer that checks the bytes. */
#ifndef STKT_PREFETCH_FAKE_H
#define STKT_PREFETCH_FAKE_H

#include "clock.h"
#include "error.h"
#include "host_device.h"
#include "prefetch_internal.h"
#include "stk_test.h"
#include <stdatomic.h>

enum { FAKE_BUFFERS = 24, FAKE_SMALL = 24, FAKE_GAP = 8 };

typedef struct fake {
    /* What the source delivers. */
    int64_t batches;
    int buffers;
    int64_t bytes;            /* of the first part; the second has FAKE_SMALL bytes */
    int64_t short_bytes;      /* size of the last batch's first part; 0: same as the others */
    int64_t error_at;         /* this batch fails; -1: none */
    _Atomic int64_t stall_at; /* this batch never arrives; -1: none */

    stki_mutex lock;
    stki_cond cond;
    char *memory[FAKE_BUFFERS];
    bool out[FAKE_BUFFERS];
    int64_t next, released;
    bool ended;
} fake;

/* Byte i of a part of a batch. */
static inline char fake_byte(int64_t batch, int part, int64_t i)
{
    return (char)(batch * 31 + part * 101 + i * 7 + i / 251);
}

static inline void fake_init(fake *f, int64_t batches, int buffers, int64_t bytes)
{
    memset(f, 0, sizeof *f);
    f->batches = batches;
    f->buffers = buffers;
    f->bytes = bytes;
    f->error_at = -1;
    f->stall_at = -1;
    stki_mutex_init(&f->lock);
    stki_cond_init(&f->cond);
    for (int i = 0; i < buffers; i++)
        assert_non_null(f->memory[i] = calloc(1, (size_t)(bytes + FAKE_GAP + FAKE_SMALL)));
}

static inline void fake_fini(fake *f)
{
    for (int i = 0; i < f->buffers; i++) {
        assert_false(f->out[i]);
        free(f->memory[i]);
    }
    stki_cond_fini(&f->cond);
    stki_mutex_fini(&f->lock);
}

static inline int64_t fake_length(const fake *f, int64_t batch)
{
    return f->short_bytes && batch == f->batches - 1 ? f->short_bytes : f->bytes;
}

static inline int fake_free_buffer(const fake *f)
{
    for (int i = 0; i < f->buffers; i++)
        if (!f->out[i])
            return i;
    return -1;
}

static inline stk_status fake_next(void *context, int slot, int64_t deadline_ns, stki_prefetch_load *loads, void **held,
                                   stk_error *err)
{
    fake *f = context;
    bool in_time = true;
    int buffer = -1;

    (void)slot;
    stki_lock(&f->lock);
    while (f->next < f->batches && f->next != f->error_at && in_time &&
           ((buffer = fake_free_buffer(f)) < 0 || f->next == f->stall_at))
        in_time = stki_wait(&f->cond, &f->lock, deadline_ns);
    if (f->next < f->batches && f->next != f->error_at && !in_time) {
        stki_unlock(&f->lock);
        return STK_E_TIMEOUT;
    }
    if (f->next == f->error_at || f->next == f->batches) {
        stki_unlock(&f->lock);
        return f->next == f->error_at ? stki_fail(err, STK_E_CORRUPT, "batch %lld is bad", (long long)f->error_at)
                                      : STK_END;
    }
    f->out[buffer] = true;
    for (int64_t i = 0; i < fake_length(f, f->next); i++)
        f->memory[buffer][i] = fake_byte(f->next, 0, i);
    for (int64_t i = 0; i < FAKE_SMALL; i++)
        f->memory[buffer][f->bytes + FAKE_GAP + i] = fake_byte(f->next, 1, i);
    loads[0] = (stki_prefetch_load){f->memory[buffer], fake_length(f, f->next), fake_length(f, f->next)};
    loads[1] = (stki_prefetch_load){f->memory[buffer] + f->bytes + FAKE_GAP, FAKE_SMALL, 1};
    *held = f->memory[buffer];
    f->next++;
    stki_unlock(&f->lock);
    return STK_OK;
}

static inline void fake_release(void *context, void *held)
{
    fake *f = context;

    stki_lock(&f->lock);
    for (int i = 0; i < f->buffers; i++)
        if (f->memory[i] == held) {
            assert_true(f->out[i]);
            f->out[i] = false;
            /* a copy still in progress would deliver these bytes */
            memset(held, 0xEE, (size_t)(f->bytes + FAKE_GAP + FAKE_SMALL));
        }
    f->released++;
    stki_wake_all(&f->cond);
    stki_unlock(&f->lock);
}

static inline void fake_ended(void *context)
{
    fake *f = context;

    stki_lock(&f->lock);
    f->ended = true;
    stki_wake_all(&f->cond);
    stki_unlock(&f->lock);
}

static inline void fake_wake(fake *f)
{
    atomic_store(&f->stall_at, -1);
    stki_lock(&f->lock);
    stki_wake_all(&f->cond);
    stki_unlock(&f->lock);
}

static inline void fake_wait_ended(fake *f)
{
    int64_t deadline = stki_deadline_ns(60 * STKI_SECOND);

    stki_lock(&f->lock);
    while (!f->ended)
        assert_true(stki_wait(&f->cond, &f->lock, deadline));
    stki_unlock(&f->lock);
}

static inline stk_device *host_device(void)
{
    stk_device *device;
    stk_error err;

    assert_ok(stk_device_find("host", &device, &err));
    return device;
}

static inline stki_prefetch *fake_start(fake *f, int depth)
{
    const stki_prefetch_part parts[] = {{.copy_offset = 0, .copy_bytes = f->bytes},
                                        {.copy_offset = f->bytes + FAKE_GAP, .copy_bytes = FAKE_SMALL}};
    const stki_prefetch_opts opts = {.device = host_device(),
                                     .depth = depth,
                                     .slot_bytes = f->bytes + FAKE_GAP + FAKE_SMALL,
                                     .part_count = 2,
                                     .parts = parts,
                                     .upstream = {f, fake_next, fake_release, fake_ended}};
    stki_prefetch *prefetch;
    stk_error err;

    assert_ok(stki_prefetch_create(&opts, &prefetch, &err));
    return prefetch;
}

/* Checks the bytes of a batch in host memory. */
static inline void check_bytes(const fake *f, int64_t batch, const char *first, const char *second)
{
    for (int64_t i = 0; i < fake_length(f, batch); i++)
        if (first[i] != fake_byte(batch, 0, i))
            fail_msg("batch %lld: byte %lld is %d, expected %d", (long long)batch, (long long)i, first[i],
                     fake_byte(batch, 0, i));
    for (int64_t i = 0; i < FAKE_SMALL; i++)
        if (second[i] != fake_byte(batch, 1, i))
            fail_msg("batch %lld: byte %lld of the second part is %d, expected %d", (long long)batch, (long long)i,
                     second[i], fake_byte(batch, 1, i));
}

#endif
