/* ops.h: arithmetic on tensors: element by element, over dimensions, matrix products, and the loss of a classifier.
 * torch's semantics; docs/tensor.md has the rules in full.
 *
 * Three forms. `stk_tensor_add(&a, &b, &out, &err)` makes a fresh tensor, which the caller releases. `…_into` writes
 * into a tensor that is there and has exactly the right shape. In place is `_into` with the first operand as `out` too.
 * Fresh results are row-major, except that operands in one common dense layout (channels-last, say) keep it.
 *
 * Operands and outputs are on one device; a CPU tensor without axes may join any (STK_E_BAD_DEVICE). Work on memory
 * that the processor cannot reach is done on a copy of it. Everything runs in the calling thread; any thread may call
 * anything, on different outputs. On failure `out` and its elements are untouched.
 *
 * An output may not be read-only (STK_E_BAD_ARG), may not have two indices in one place, and may not overlap an
 * operand, both being blocks of memory without gaps, unless it is the same view of it (STK_E_BAD_OVERLAP). Complex,
 * 8-bit float and byte-swapped tensors are for copies and casts: STK_E_UNSUPPORTED.
 */
#ifndef STOKER_OPS_H
#define STOKER_OPS_H

#include <stoker/scalar.h>
#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- element-wise ------------------------------------------------------------------------------------------------ */

/* A tensor, or a number. */
typedef struct stk_operand {
    const stk_tensor *tensor; /* NULL: `scalar` */
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

/* The dtype in which these operands meet. Categories: bool < whole < real. Tensors with axes decide; those without, and
 * after them numbers (as bool, i64, f32), only count if their category is higher. Between equals the larger; u8 with i8
 * is i16, f16 with bf16 is f32. STK_E_BAD_DTYPE: u16, u32, u64 with another whole-number dtype or bool. */
STK_API stk_status stk_result_dtype(const stk_operand *operands, int count, stk_dtype *out, stk_error *err);

/* a op b, broadcast to a common shape (STK_E_BAD_BROADCAST) and converted to the common dtype first. Whole numbers
 * wrap; f16 and bf16 compute in f32 and round once; f32 and f64 are plain IEEE operations. div of whole numbers is f32.
 * add, mul of bool are or, and; sub, floor_div and trunc_div of bool are STK_E_BAD_DTYPE. floor_div and trunc_div of
 * whole numbers by 0: STK_E_DIV_ZERO. Comparisons give bool. */
STK_API stk_status stk_tensor_binary(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out, stk_error *err);
/* Into `out`, which has the broadcast shape (STK_E_BAD_BROADCAST). The result is cast to its dtype: real into whole and
 * anything but bool into bool are STK_E_BAD_DTYPE; inside a category it may narrow. */
STK_API stk_status stk_tensor_binary_into(stk_binary_op op, stk_operand a, stk_operand b, stk_tensor *out,
                                          stk_error *err);

/* stk_tensor_add(a, b, out, err), stk_tensor_add_scalar, stk_tensor_add_into, stk_tensor_add_scalar_into, and the same
 * for every name in the list above. */
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

/* Into [low, high]; NULL: no bound on that side (both: STK_E_BAD_ARG). low > high gives high. A NaN element or bound
 * gives NaN. The dtype is the one in which tensor and bounds meet. */
STK_API stk_status stk_tensor_clamp(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high,
                                    stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_clamp_into(const stk_tensor *tensor, const stk_scalar *low, const stk_scalar *high,
                                         stk_tensor *out, stk_error *err);

/* ---- over dimensions ----------------------------------------------------------------------------------------------
 * `dims` names `dim_count` dimensions, none twice (STK_E_BAD_DIM); NULL: all of them. `keep` leaves them with length 1.
 */

/* bool and whole numbers sum as i64 and wrap, unless `dtype` (not NONE) asks otherwise: elements are then converted to
 * it first. Reals are added in f64, errors do not grow with the length, and rounded once. No elements: 0. */
STK_API stk_status stk_tensor_sum(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                                  stk_tensor *out, stk_error *err);
/* Into `out`, whose dtype counts as the `dtype` asked for, and whose shape must be that of the sum. */
STK_API stk_status stk_tensor_sum_into(const stk_tensor *tensor, int dim_count, const int *dims, bool keep,
                                       stk_tensor *out, stk_error *err);
/* STK_E_BAD_DTYPE unless the tensor, or `dtype`, is real. No elements: NaN. */
STK_API stk_status stk_tensor_mean(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_dtype dtype,
                                   stk_tensor *out, stk_error *err);
/* Smallest and largest; a NaN beats every number. STK_E_EMPTY_REDUCE: no element to choose from. */
STK_API stk_status stk_tensor_amin(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                                   stk_error *err);
STK_API stk_status stk_tensor_amax(const stk_tensor *tensor, int dim_count, const int *dims, bool keep, stk_tensor *out,
                                   stk_error *err);
/* Along one dimension: value and i64 index of the extreme, the first one of equals. Either output may be NULL. */
STK_API stk_status stk_tensor_min(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                                  stk_error *err);
STK_API stk_status stk_tensor_max(const stk_tensor *tensor, int dim, bool keep, stk_tensor *values, stk_tensor *indices,
                                  stk_error *err);
/* The index alone. STK_ALL_DIMS: in the flattened tensor. */
#define STK_ALL_DIMS INT32_MIN
STK_API stk_status stk_tensor_argmin(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_argmax(const stk_tensor *tensor, int dim, bool keep, stk_tensor *out, stk_error *err);

/* ---- matrix products --------------------------------------------------------------------------------------------- */

/* NumPy's rules: the last two axes are matrices, those before broadcast, a tensor with one axis is a row on the left
 * and a column on the right, and loses that axis. Any strides. One dtype (STK_E_BAD_DTYPE); whole numbers wrap, bool is
 * or of ands, f16 and bf16 accumulate in f32. f32 and f64 go to a CBLAS where there is one (docs/tensor.md says which,
 * and with how many threads); without, every machine gets the same bits. */
STK_API stk_status stk_tensor_matmul(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err);
/* Into `out` of exactly that shape (STK_E_BAD_SHAPE) and dtype, which shares no memory with a or b at all
 * (STK_E_BAD_OVERLAP). */
STK_API stk_status stk_tensor_matmul_into(const stk_tensor *a, const stk_tensor *b, stk_tensor *out, stk_error *err);

/* ---- classification ---------------------------------------------------------------------------------------------- */

/* x - log(sum(exp(x))) along `dim`; real dtypes. Computed in f64, rounded once. */
STK_API stk_status stk_tensor_log_softmax(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);

typedef enum stk_reduction {
    STK_REDUCTION_MEAN = 0, /* by the weights of the samples that count; probabilities: by the number of samples */
    STK_REDUCTION_SUM = 1,
    STK_REDUCTION_NONE = 2 /* one loss a sample */
} stk_reduction;

/* Zero is the default of every member. */
typedef struct stk_cross_entropy_opts {
    uint32_t struct_size; /* set by STK_CROSS_ENTROPY_OPTS_INIT */
    stk_reduction reduction;
    const stk_tensor *weight; /* one number a class, of the logits' dtype; NULL: all 1 */
    bool has_ignore_index;    /* false: -100 is ignored, as in torch */
    int64_t ignore_index;     /* samples with this target count for nothing */
    double label_smoothing;   /* in [0, 1] */
} stk_cross_entropy_opts;
#define STK_CROSS_ENTROPY_OPTS_INIT STK_OPTS_INIT(stk_cross_entropy_opts)

/* Logits: real, [samples, classes, …], or [classes] for one sample. Target: class indices, i64 or u8, of the logits'
 * shape without the class axis; or probabilities, real, of the logits' shape. `opts` NULL: all defaults.
 * STK_E_BAD_INDEX: a target that is no class and not ignored. */
STK_API stk_status stk_tensor_cross_entropy(const stk_tensor *logits, const stk_tensor *target,
                                            const stk_cross_entropy_opts *opts, stk_tensor *out, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif
