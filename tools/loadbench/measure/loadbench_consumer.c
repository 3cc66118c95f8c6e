/* loadbench_consumer.c: `null` only counts batches. `touch` reads every byte once, at memory speed; its sum is part of
 * the result, so the compiler cannot remove the reads. */
#include "loadbench_consumer.h"
#include "loadbench_device.h"
#include "loadbench_step.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#endif

typedef uint64_t vector __attribute__((vector_size(32)));

/* Two sums in vector registers: gcc 12 keeps anything wider in memory, which is several times slower. */
static inline __attribute__((always_inline)) uint64_t sum_words(const unsigned char *bytes, int64_t count)
{
    const int64_t width = (int64_t)sizeof(vector);
    vector even = {0}, odd = {0}, words;
    uint64_t sum = 0;
    int64_t at = 0;

    for (; at + 2 * width <= count; at += 2 * width) {
        memcpy(&words, bytes + at, sizeof words);
        even += words;
        memcpy(&words, bytes + at + width, sizeof words);
        odd += words;
    }
    for (; at < count; at += 8) {
        uint64_t rest = 0;
        memcpy(&rest, bytes + at, count - at < 8 ? (size_t)(count - at) : 8);
        sum += rest;
    }
    even += odd;
    return sum + even[0] + even[1] + even[2] + even[3];
}

static uint64_t sum_plain(const unsigned char *bytes, int64_t count)
{
    return sum_words(bytes, count);
}

#ifdef WIDE
static WIDE uint64_t sum_wide(const unsigned char *bytes, int64_t count)
{
    return sum_words(bytes, count);
}
#endif

static uint64_t sum_run(const unsigned char *bytes, int64_t count)
{
#ifdef WIDE
    if (__builtin_cpu_supports("avx2"))
        return sum_wide(bytes, count);
#endif
    return sum_plain(bytes, count);
}

struct axis {
    int64_t length, stride; /* stride >= 0 */
};

/* Compares axes by stride, largest first, which gives the order in memory. */
static int compare_axes(const void *a, const void *b)
{
    const struct axis *x = a, *y = b;
    return (x->stride < y->stride) - (x->stride > y->stride);
}

uint64_t lb_tensor_sum(const stk_tensor *tensor)
{
    const unsigned char *base = tensor->data;
    int64_t run = stk_dtype_size(tensor->dtype), index[STK_MAX_DIMS] = {0};
    struct axis axes[STK_MAX_DIMS];
    int count = 0;
    uint64_t sum = 0;

    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t length = tensor->shape[i], stride = tensor->strides[i];
        if (length == 0)
            return 0;
        if (length == 1)
            continue;
        if (stride < 0) /* starts at the lowest address and traverses the axis in reverse */
            base += stride * (length - 1);
        axes[count++] = (struct axis){length, stride < 0 ? -stride : stride};
    }
    qsort(axes, (size_t)count, sizeof *axes, compare_axes);
    while (count > 0 && axes[count - 1].stride == run)
        run *= axes[--count].length;

    for (;;) { /* iterates over the remaining axes */
        const unsigned char *at = base;
        int i = count - 1;
        for (int k = 0; k < count; k++)
            at += index[k] * axes[k].stride;
        sum += sum_run(at, run);
        while (i >= 0 && ++index[i] == axes[i].length)
            index[i--] = 0;
        if (i < 0)
            return sum;
    }
}

static stk_status take_nothing(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err)
{
    (void)state, (void)batch, (void)err;
    return STK_OK;
}

static stk_status take_all_bytes(struct lb_consumer_state *state, const stk_batch *batch, stk_error *err)
{
    for (int i = 0; i < state->field_count; i++) {
        stk_tensor tensor, here;
        stk_status status = stk_batch_tensor(batch, state->field_names[i], &tensor, err);
        if (status == STK_OK) /* returns the tensor itself unless it is on a device */
            status = stk_tensor_to_device(&tensor, NULL, &here, err);
        if (status != STK_OK)
            return status;
        state->checksum += lb_tensor_sum(&here);
        stk_tensor_release(&here);
    }
    return STK_OK;
}

const struct lb_consumer lb_consumers[] = {
    [LB_CONSUMER_NULL] = {"null", "counts the batches", take_nothing, NULL, NULL, NULL},
    [LB_CONSUMER_TOUCH] = {"touch", "reads every byte of every tensor", take_all_bytes, NULL, NULL, NULL},
    [LB_CONSUMER_DEVICE] = {"device", "keeps a stream of the loader's device busy for one step per batch",
                            lb_device_take, lb_device_begin, lb_device_settle, lb_device_end},
    [LB_CONSUMER_STEP] = {"step", "sleeps for the duration of a training step", lb_step_take, lb_step_begin, NULL,
                          lb_step_end},
};
const char *const lb_consumer_words[] = {"null", "touch", "device", "step", NULL};
