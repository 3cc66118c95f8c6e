/* synthetic.c: generates samples for tests, and for measuring everything except reading.
 *
 * The bytes of sample i are a stream of 64-bit words, word w = mix(key(seed, i) + (w + 1) * GOLDEN), little-endian (mix
 * is the finalizer of splitmix64). A mask makes each element a finite value: integers keep all bits, and bool keeps the
 * lowest bit; floats and the parts of complex numbers keep their mantissa and get the exponent of 1, which makes them
 * uniform on [1, 2). Elements do not straddle words, except complex128, whose two halves are separate elements. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "reader.h"
#include "thread.h"
#include <inttypes.h>
#include <string.h>

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

enum { HELD_BYTES = 64 << 20 };

struct synthetic {
    stki_reader base; /* first member */
    stki_synthetic_opts opts;
    char *held;
    int64_t held_bytes, distinct;
    stk_tensor sample; /* describes every sample, except for its address */
};

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t key_of(const stki_synthetic_opts *opts, int64_t index)
{
    return mix(mix((uint64_t)opts->seed + GOLDEN) + (uint64_t)index);
}

static void masks_of(stk_dtype dtype, uint64_t *keep, uint64_t *set)
{
    *keep = UINT64_MAX;
    *set = 0;
    switch (dtype) {
    case STK_BOOL:
        *keep = UINT64_C(0x0101010101010101);
        break;
    case STK_F16:
        *keep = UINT64_C(0x03FF03FF03FF03FF);
        *set = UINT64_C(0x3C003C003C003C00);
        break;
    case STK_BF16:
        *keep = UINT64_C(0x007F007F007F007F);
        *set = UINT64_C(0x3F803F803F803F80);
        break;
    case STK_F32:
    case STK_C64:
        *keep = UINT64_C(0x007FFFFF007FFFFF);
        *set = UINT64_C(0x3F8000003F800000);
        break;
    case STK_F64:
    case STK_C128:
        *keep = UINT64_C(0x000FFFFFFFFFFFFF);
        *set = UINT64_C(0x3FF0000000000000);
        break;
    case STK_F8_E4M3FN:
        *keep = UINT64_C(0x0707070707070707);
        *set = UINT64_C(0x3838383838383838);
        break;
    case STK_F8_E5M2:
        *keep = UINT64_C(0x0303030303030303);
        *set = UINT64_C(0x3C3C3C3C3C3C3C3C);
        break;
    default:
        break;
    }
}

static int64_t row_bytes(const stki_synthetic_opts *opts) /* bytes of one step along axis 0; checked at open */
{
    int64_t bytes = stk_dtype_size(opts->dtype);

    for (int i = 1; i < opts->ndim; i++)
        bytes *= opts->shape[i];
    return bytes;
}

void stki_synthetic_fill(const stki_synthetic_opts *opts, int64_t index, int64_t length, void *out)
{
    int64_t bytes = opts->ndim > 0 ? length * row_bytes(opts) : row_bytes(opts);
    uint64_t keep, set, word, state = key_of(opts, index);
    char *to = out;

    masks_of(opts->dtype, &keep, &set);
    for (; bytes >= 8; bytes -= 8, to += 8) {
        word = (mix(state += GOLDEN) & keep) | set;
        memcpy(to, &word, 8);
    }
    if (bytes > 0) {
        word = (mix(state + GOLDEN) & keep) | set;
        memcpy(to, &word, (size_t)bytes);
    }
}

int64_t stki_synthetic_length(const stki_synthetic_opts *opts, int64_t index)
{
    if (opts->ndim == 0)
        return 1;
    if (opts->min_length < 0)
        return opts->shape[0];
    return opts->min_length +
           (int64_t)(mix(key_of(opts, index) ^ GOLDEN) % (uint64_t)(opts->shape[0] - opts->min_length + 1));
}

static const struct synthetic *synthetic_of(const stki_reader *base)
{
    return (const struct synthetic *)(const void *)base;
}

static int64_t block_of(const struct synthetic *s, int64_t index)
{
    return s->opts.form == STKI_SYNTHETIC_MEMORY ? index % s->distinct : index;
}

static stk_status synthetic_shape(const stki_reader *base, int64_t index, int64_t *shape, stk_error *err)
{
    const struct synthetic *s = synthetic_of(base);
    stk_status status = stki_reader_check_index(base, index, err);

    if (status != STK_OK)
        return status;
    memcpy(shape, base->shape, sizeof *shape * (size_t)base->ndim);
    if (base->ndim > 0)
        shape[0] = stki_synthetic_length(&s->opts, block_of(s, index));
    return STK_OK;
}

static stk_status fill_block(const struct synthetic *s, int64_t index, int64_t length, stk_tensor *out, stk_error *err)
{
    int64_t bytes = s->opts.ndim > 0 ? length * row_bytes(&s->opts) : row_bytes(&s->opts);
    stk_status status = stk_storage_create(NULL, bytes, &out->storage, err);

    if (status != STK_OK)
        return status;
    out->data = stk_storage_data(out->storage);
    stki_synthetic_fill(&s->opts, index, length, out->data);
    return STK_OK;
}

static stk_status synthetic_read(const stki_reader *base, int64_t index, const stki_want *want, stki_scratch *scratch,
                                 stk_tensor *out, stk_error *err)
{
    const struct synthetic *s = synthetic_of(base);
    stk_tensor sample = s->sample;
    int64_t block = block_of(s, index);
    stk_status status = stki_reader_check_index(base, index, err);

    (void)want;
    if (status != STK_OK)
        return status;
    if (s->opts.read_ns > 0)
        stki_sleep_ns(s->opts.read_ns);
    if (base->ndim > 0)
        sample.shape[0] = stki_synthetic_length(&s->opts, block);
    if (s->opts.form == STKI_SYNTHETIC_MEMORY) {
        sample.data = s->held + block * base->max_bytes;
    } else if (s->opts.form == STKI_SYNTHETIC_SCRATCH) {
        status = stki_scratch_reserve(scratch, base->max_bytes, err);
        sample.data = scratch->data;
        if (status == STK_OK)
            stki_synthetic_fill(&s->opts, index, sample.shape[0], sample.data);
    } else {
        status = fill_block(s, index, sample.shape[0], &sample, err);
    }
    if (status == STK_OK)
        *out = sample;
    return status;
}

static void synthetic_destroy(stki_reader *base)
{
    struct synthetic *s = (struct synthetic *)(void *)base;

    stki_block_free(&stki_heap, s->held, s->held_bytes, 64);
    stki_free(base->path);
    stki_free(s);
}

static const stki_reader_ops fixed_ops = {.format = "synthetic", .read = synthetic_read, .destroy = synthetic_destroy};
static const stki_reader_ops variable_ops = {
    .format = "synthetic", .read = synthetic_read, .shape = synthetic_shape, .destroy = synthetic_destroy};

static stk_status check(const stki_synthetic_opts *o, int64_t *max_bytes, stk_error *err)
{
    int64_t bytes = stk_dtype_size(o->dtype);
    bool empty = false;

    if (bytes == 0)
        return stki_fail(err, STK_E_BAD_DTYPE, "synthetic: invalid dtype %d", (int)o->dtype);
    if (o->ndim < 0 || o->ndim >= STK_MAX_DIMS)
        return stki_fail(err, STK_E_UNSUPPORTED, "synthetic: found %d axes per sample, expected 0 to %d", o->ndim,
                         STK_MAX_DIMS - 1);
    if (o->count < 0)
        return stki_fail(err, STK_E_RANGE, "synthetic: count: found %" PRId64 ", expected 0 or more", o->count);
    for (int i = 0; i < o->ndim; i++) {
        empty = empty || o->shape[i] == 0;
        if (o->shape[i] < 0 || !stki_mul(bytes, o->shape[i] ? o->shape[i] : 1, &bytes))
            return stki_fail(err, STK_E_BAD_SHAPE,
                             "synthetic: shape: found size %" PRId64 " on axis %d, expected sizes of at least 0 whose "
                             "product fits in 63 bits",
                             o->shape[i], i);
    }
    if (o->min_length >= 0 && (o->ndim == 0 || o->min_length > o->shape[0]))
        return stki_fail(err, STK_E_RANGE, "synthetic: min_length: found %" PRId64 ", expected 0 to the size of axis 0",
                         o->min_length);
    *max_bytes = empty ? 0 : bytes;
    return STK_OK;
}

/* For STKI_SYNTHETIC_MEMORY: allocates and fills the samples, each in a block that has the size of the largest one. */
static stk_status hold(struct synthetic *s, stk_error *err)
{
    int64_t each = s->base.max_bytes, most = each ? HELD_BYTES / each : s->opts.count;

    s->distinct = s->opts.distinct > 0 ? s->opts.distinct : most > 0 ? most : 1;
    s->distinct = s->distinct < s->opts.count ? s->distinct : s->opts.count;
    s->distinct = s->distinct > 0 ? s->distinct : 1;
    if (!stki_mul(s->distinct, each, &s->held_bytes))
        return stki_fail(err, STK_E_BAD_SHAPE,
                         "synthetic: distinct: found %" PRId64 ", expected a total size in bytes that fits in 63 bits",
                         s->distinct);
    s->held = stki_block_alloc(&stki_heap, s->held_bytes, 64);
    if (!s->held)
        return stki_fail_memory(err, s->held_bytes, "synthetic samples");
    for (int64_t i = 0; i < s->distinct; i++)
        stki_synthetic_fill(&s->opts, i, stki_synthetic_length(&s->opts, i), s->held + i * each);
    /* The fast path bypasses read(), so it is not available if reads have a simulated duration. */
    if (!s->base.variable && s->opts.read_ns <= 0 && (s->distinct == 1 || s->distinct >= s->opts.count)) {
        s->base.base = s->held;
        s->base.sample_stride = s->distinct == 1 ? 0 : each;
    }
    return STK_OK;
}

static void describe(struct synthetic *s, int64_t max_bytes)
{
    const stki_synthetic_opts *o = &s->opts;
    stki_reader *base = &s->base;
    int64_t stride = stk_dtype_size(o->dtype);

    base->variable = o->min_length >= 0;
    base->ops = base->variable ? &variable_ops : &fixed_ops;
    base->count = o->count;
    base->dtype = o->dtype;
    base->ndim = o->ndim;
    base->copies = o->form != STKI_SYNTHETIC_MEMORY || o->read_ns > 0;
    base->access = o->form == STKI_SYNTHETIC_MEMORY ? "memory" : "none";
    base->max_bytes = max_bytes;
    base->file_bytes = base->data_offset = -1;
    for (int i = o->ndim - 1; i >= 0; i--) {
        base->shape[i] = o->shape[i];
        base->strides[i] = stride;
        stride *= o->shape[i] ? o->shape[i] : 1;
    }
    s->sample = (stk_tensor){.dtype = o->dtype, .ndim = o->ndim, .flags = STK_TENSOR_READONLY};
    memcpy(s->sample.shape, base->shape, sizeof base->shape);
    memcpy(s->sample.strides, base->strides, sizeof base->strides);
}

stk_status stki_synthetic_open(const stki_synthetic_opts *opts, stki_reader **out, stk_error *err)
{
    struct synthetic *s;
    int64_t max_bytes = 0;
    stk_status status = check(opts, &max_bytes, err);

    if (status != STK_OK)
        return status;
    s = stki_zalloc(sizeof *s);
    if (!s)
        return stki_fail_memory(err, sizeof *s, "a synthetic reader");
    s->opts = *opts;
    describe(s, max_bytes);
    s->base.path = stki_strdup("synthetic");
    status = s->base.path ? STK_OK : stki_fail_memory(err, 10, "a synthetic reader");
    if (status == STK_OK && opts->form == STKI_SYNTHETIC_MEMORY)
        status = hold(s, err);
    if (status != STK_OK) {
        synthetic_destroy(&s->base);
        return status;
    }
    *out = &s->base;
    return STK_OK;
}
