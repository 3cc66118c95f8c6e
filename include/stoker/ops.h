/* ops.h: arithmetic on tensors: element-wise operations, reductions, matrix products, and the loss of a classifier. The
 * semantics are torch's; docs/reference/tensor.md has the rules.
 *
 * `stk_tensor_add(&a, &b, &out, &err)` creates a new tensor, which the caller releases. `…_into` writes to an existing
 * tensor of exactly the right shape; with the first operand as `out` it works in place. New results are row-major,
 * unless all operands have the same dense layout (such as channels-last), which is kept.
 *
 * Operands and outputs must be on one device (otherwise STK_E_BAD_DEVICE), except that CPU tensors without axes may be
 * combined with tensors on any device. Operations on the CPU run in the calling thread. An operation on another device
 * is queued in the calling thread's current stream if the device has a kernel for it; otherwise it runs in the calling
 * thread, and tensors that the processor cannot access are copied to ordinary memory and back. Any thread may call any
 * function, but concurrent calls must not have the same output. On failure `out` and its elements are unchanged.
 *
 * An output may not be read-only (STK_E_BAD_ARG). No two of its elements may share an address, and it may not overlap
 * an operand unless it is the same view (STK_E_BAD_OVERLAP; not detected for views with gaps). Complex, 8-bit float and
 * byte-swapped tensors can only be copied and cast; everything else fails with STK_E_UNSUPPORTED.
 */
#ifndef STOKER_OPS_H
#define STOKER_OPS_H

#include <stoker/scalar.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element-wise ---- */

/* An operand: a tensor or a number. */
typedef struct stk_operand {
    const stk_tensor *tensor; /* NULL: the operand is `scalar` */
    stk_scalar scalar;
} stk_operand;

static inline stk_operand stk_operand_tensor(const stk_tensor *tensor)
{
    stk_operand operand;
    operand.tensor = tensor;
    operand.scalar = stk_bool(false);
    return operand;
}

static inline stk_operand stk_operand_scalar(stk_scalar scalar)
{
    stk_operand operand;
    operand.tensor = (const stk_tensor *)0;
    operand.scalar = scalar;
    return operand;
}

/* X(identifier, name) */
#define STK_BINARY_LIST(X)      \
    X(STK_ADD, add)             \
    X(STK_SUB, sub)             \
    X(STK_MUL, mul)             \
    X(STK_DIV, div)             \
    X(STK_FLOOR_DIV, floor_div) \
    X(STK_TRUNC_DIV, trunc_div) \
    X(STK_EQ, eq)               \
    X(STK_NE, ne)               \
    X(STK_LT, lt)               \
    X(STK_LE, le)               \
    X(STK_GT, gt)               \
    X(STK_GE, ge)

typedef enum stk_binary_op {
#define STK_X(identifier, name) identifier,
    STK_BINARY_LIST(STK_X)
#undef STK_X
        STK_BINARY_OPS
} stk_binary_op;

/* The common dtype of the operands. Categories: bool < integer < real. Tensors with axes determine the result; tensors
 * without axes, and then numbers (as bool, i64, f32), affect it only if their category is higher. Within a category the
 * larger dtype wins; u8 with i8 is i16, f16 with bf16 is f32. STK_E_BAD_DTYPE: u16, u32 or u64 together with another
 * integer dtype or bool.
 */
STK_API stk_status stk_result_dtype(const stk_operand *operands, int count, stk_dtype *out, stk_error *err);

/* a op b, after broadcasting to a common shape (STK_E_BAD_BROADCAST) and casting to the common dtype. Integers wrap;
 * f16 and bf16 are computed in f32 and rounded once; f32 and f64 are plain IEEE operations. div of integers returns
 * f32. add and mul of bool are OR and AND; sub, floor_div and trunc_div of bool fail with STK_E_BAD_DTYPE, and
 * floor_div and trunc_div of integers by 0 with STK_E_DIV_ZERO. Comparisons return bool. */
STK_API stk_status stk_tensor_binary(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out, stk_error *err);
/* The same, written to `out`, which must have the broadcast shape (STK_E_BAD_BROADCAST). The result is cast to the
 * dtype of `out`: from real to integer, and from anything but bool to bool, this fails with STK_E_BAD_DTYPE; narrowing
 * within a category is allowed. */
STK_API stk_status stk_tensor_binary_into(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out,
                                          stk_error *err);

/* stk_tensor_add(a, b, out, err), stk_tensor_add_scalar, stk_tensor_add_into, stk_tensor_add_scalar_into, and the same
 * four functions for every name in the list above. */
#define STK_X(identifier, name)                                                                                  \
    static inline stk_status stk_tensor_##name(const stk_tensor *a, const stk_tensor *b, stk_tensor *out,        \
                                               stk_error *err)                                                   \
    {                                                                                                            \
        return stk_tensor_binary(identifier, stk_operand_tensor(a), stk_operand_tensor(b), out, err);            \
    }                                                                                                            \
    static inline stk_status stk_tensor_##name##_scalar(const stk_tensor *a, stk_scalar b, stk_tensor *out,      \
                                                        stk_error *err)                                          \
    {                                                                                                            \
        return stk_tensor_binary(identifier, stk_operand_tensor(a), stk_operand_scalar(b), out, err);            \
    }                                                                                                            \
    static inline stk_status stk_tensor_##name##_into(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, \
                                                      stk_error *err)                                            \
    {                                                                                                            \
        return stk_tensor_binary_into(identifier, stk_operand_tensor(a), stk_operand_tensor(b), out, err);       \
    }                                                                                                            \
    static inline stk_status stk_tensor_##name##_scalar_into(const stk_tensor *a, stk_scalar b, stk_tensor *out, \
                                                             stk_error *err)                                     \
    {                                                                                                            \
        return stk_tensor_binary_into(identifier, stk_operand_tensor(a), stk_operand_scalar(b), out, err);       \
    }
STK_BINARY_LIST(STK_X)
#undef STK_X

/* Clamps to [low, high]; NULL: no bound on that side. STK_E_BAD_ARG: both bounds are NULL. If low > high, the result is
 * high. A NaN element or bound gives NaN. The dtype of the result is the common dtype of tensor and bounds. */
STK_API stk_status stk_tensor_clamp(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high,
                                    stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_clamp_into(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high,
                                         stk_tensor *out, stk_error *err);

/* ---- reductions ----
 * `dims` lists the `dim_count` dimensions to reduce, without repetition (STK_E_BAD_DIM); NULL: all. With `keep`, they
 * remain as axes of length 1.
 */

/* The sum. bool and integers are summed as i64 and wrap. If `dtype` is not STK_DTYPE_NONE, elements are cast to it
 * first. Reals are added in f64 with compensation and rounded once. The sum of no elements is 0. */
STK_API stk_status stk_tensor_sum(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                                  stk_tensor *out, stk_error *err);
/* The same, written to `out`, whose dtype is used as `dtype` and whose shape must be that of the sum
 * (STK_E_BAD_BROADCAST). */
STK_API stk_status stk_tensor_sum_into(const stk_tensor *tensor, int dim_count, const int *dims, bool keep,
                                       stk_tensor *out, stk_error *err);
/* The mean; NaN if there are no elements. STK_E_BAD_DTYPE: `dtype`, or the tensor's dtype if that is NONE, is not real.
 */
STK_API stk_status stk_tensor_mean(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                                   stk_tensor *out, stk_error *err);
/* Minimum and maximum; NaN if any element is NaN. STK_E_EMPTY_REDUCE: there are no elements. */
STK_API stk_status stk_tensor_amin(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                                   stk_error *err);
STK_API stk_status stk_tensor_amax(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                                   stk_error *err);
/* The minimum or maximum along one dimension and its i64 index; of equal elements, the index of the first. Either
 * output may be NULL. STK_E_EMPTY_REDUCE as in stk_tensor_amin. */
STK_API stk_status stk_tensor_min(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                                  stk_error *err);
STK_API stk_status stk_tensor_max(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                                  stk_error *err);
/* Like stk_tensor_min and stk_tensor_max, but only the index. dim STK_ALL_DIMS: the index in the flattened tensor.
 * STK_E_EMPTY_REDUCE as in stk_tensor_amin. */
#define STK_ALL_DIMS INT32_MIN
STK_API stk_status stk_tensor_argmin(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_argmax(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err);

/* ---- matrix products ---- */

/* Follows NumPy: the last two axes form matrices, and the axes before them are broadcast. A tensor with one axis is
 * treated as a row if it is `a` and as a column if it is `b`; the axis of length 1 added for this is removed from the
 * result. Strides may be arbitrary. Integers wrap, bool is the OR of ANDs, f16 and bf16 are accumulated in f32. f32 and
 * f64 use a CBLAS library if there is one (docs/reference/tensor.md says which, and with how many threads); without it,
 * every machine gives the same bits. STK_E_BAD_DTYPE: the operands have different dtypes. STK_E_BAD_DIM: an operand has
 * no axes. STK_E_BAD_SHAPE: the number of columns of `a` is not the number of rows of `b`. */
STK_API stk_status stk_tensor_matmul(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err);
/* The same, written to `out`, which must have the shape (STK_E_BAD_SHAPE) and dtype of the result, and may not overlap
 * a or b (STK_E_BAD_OVERLAP). */
STK_API stk_status stk_tensor_matmul_into(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err);

/* ---- classification ---- */

/* x - log(sum(exp(x))) along `dim`, computed in f64 and rounded once. STK_E_BAD_DTYPE: the dtype is not real. */
STK_API stk_status stk_tensor_log_softmax(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);

typedef enum stk_reduction {
    /* Weighted mean over the samples that are not ignored; for probabilities, mean over all samples. */
    STK_REDUCTION_MEAN = 0,
    STK_REDUCTION_SUM = 1,
    STK_REDUCTION_NONE = 2 /* one loss per sample */
} stk_reduction;

/* Members that are 0 or NULL take their default values. */
typedef struct stk_cross_entropy_opts {
    uint32_t struct_size; /* set by STK_CROSS_ENTROPY_OPTS_INIT */
    stk_reduction reduction;
    const stk_tensor *weight; /* one weight per class, of the logits' dtype; NULL: all 1 */
    bool has_ignore_index;    /* false: ignore_index is -100, as in torch */
    int64_t ignore_index;     /* samples with this target are ignored */
    double label_smoothing;   /* in [0, 1] */
} stk_cross_entropy_opts;
#define STK_CROSS_ENTROPY_OPTS_INIT STK_OPTS_INIT(stk_cross_entropy_opts)

/* Logits: real, [samples, classes, …], or [classes] for one sample. Target: class indices, i64 or u8, of the logits'
 * shape without the class axis; or probabilities, real, of the logits' shape. `opts` NULL: all defaults.
 * STK_E_BAD_INDEX: a target is neither a class nor ignored. STK_E_BAD_SHAPE, STK_E_BAD_DTYPE: shapes or dtypes do not
 * match. */
STK_API stk_status stk_tensor_cross_entropy(const stk_tensor *logits, const stk_tensor *target,
                                            const stk_cross_entropy_opts *opts, stk_tensor *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
