/* ops_promote.c: see ops_promote.h; stk_result_dtype. */
#include "ops_promote.h"
#include "dtype.h"
#include "error.h"

bool stki_can_store(stk_dtype from, stk_dtype to)
{
    enum stki_category source = stki_dtype_category(from), target = stki_dtype_category(to);

    return target == STKI_CATEGORY_BOOL ? source == STKI_CATEGORY_BOOL
                                        : source <= STKI_CATEGORY_WHOLE || source <= target;
}

stk_dtype stki_compute_dtype(stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 ? STK_F32 : dtype;
}

static bool computable(stk_dtype dtype)
{
    return dtype >= STK_BOOL && dtype <= STK_F64;
}

stk_status stki_check_computable(const stk_tensor *tensor, const char *what, stk_error *err)
{
    stk_status status = stki_dtype_check(tensor->dtype, err);

    if (status != STK_OK)
        return status;
    if (!computable(tensor->dtype))
        return stki_fail(err, STK_E_UNSUPPORTED, "%s: %s tensors can only be copied and cast", what,
                         stk_dtype_name(tensor->dtype));
    if (tensor->flags & STK_TENSOR_SWAPPED)
        return stki_fail(err, STK_E_UNSUPPORTED, "%s: the tensor is in the opposite byte order; make a copy first",
                         what);
    return STK_OK;
}

/* ---- promotion ---- */

static bool is_wide_unsigned(stk_dtype dtype)
{
    return dtype == STK_U16 || dtype == STK_U32 || dtype == STK_U64;
}

static stk_dtype promote_whole(stk_dtype a, stk_dtype b)
{
    if (a == STK_U8 || b == STK_U8) {
        stk_dtype other = a == STK_U8 ? b : a;
        return other == STK_I8 ? STK_I16 : other;
    }
    return stk_dtype_size(a) > stk_dtype_size(b) ? a : b;
}

static stk_dtype promote_real(stk_dtype a, stk_dtype b)
{
    if (stk_dtype_size(a) == stk_dtype_size(b)) /* f16 with bf16 */
        return STK_F32;
    return stk_dtype_size(a) > stk_dtype_size(b) ? a : b;
}

/* The common dtype of `a` and `b`; NONE stands for no dtype yet. */
static stk_status promote(stk_dtype a, stk_dtype b, stk_dtype *out, stk_error *err)
{
    enum stki_category of_a = stki_dtype_category(a), of_b = stki_dtype_category(b);

    if (a == b || a == STK_DTYPE_NONE || b == STK_DTYPE_NONE)
        *out = a == STK_DTYPE_NONE ? b : a;
    else if ((is_wide_unsigned(a) || is_wide_unsigned(b)) && of_a != STKI_CATEGORY_REAL && of_b != STKI_CATEGORY_REAL)
        return stki_fail(
            err, STK_E_BAD_DTYPE,
            "%s and %s have no common dtype: u16, u32 and u64 combine only with themselves and real dtypes",
            stk_dtype_name(a), stk_dtype_name(b));
    else if (of_a != of_b)
        *out = of_a > of_b ? a : b;
    else
        *out = of_a == STKI_CATEGORY_REAL ? promote_real(a, b) : promote_whole(a, b);
    return STK_OK;
}

/* Combines two tiers: `high` is kept unless `low` has a higher category. */
static stk_status join(stk_dtype high, stk_dtype low, stk_dtype *out, stk_error *err)
{
    *out = high;
    if (high != STK_DTYPE_NONE && low != STK_DTYPE_NONE && stki_dtype_category(high) >= stki_dtype_category(low))
        return STK_OK;
    return promote(high, low, out, err);
}

static stk_dtype scalar_dtype(stk_scalar scalar)
{
    return scalar.kind == STK_SCALAR_BOOL ? STK_BOOL : scalar.kind == STK_SCALAR_REAL ? STK_F32 : STK_I64;
}

static stk_status check_operand(const stk_operand *operand, stk_error *err)
{
    if (operand->tensor)
        return stki_check_computable(operand->tensor, "arithmetic", err);
    if (operand->scalar.kind == STK_SCALAR_COMPLEX)
        return stki_fail(err, STK_E_UNSUPPORTED, "arithmetic: complex numbers can only be copied and cast");
    return STK_OK;
}

stk_status stk_result_dtype(const stk_operand *operands, int count, stk_dtype *out, stk_error *err)
{
    enum { WITH_AXES, WITHOUT_AXES, NUMBERS, TIERS };
    stk_dtype tiers[TIERS] = {STK_DTYPE_NONE, STK_DTYPE_NONE, STK_DTYPE_NONE}, result;
    stk_status status = STK_OK;

    for (int i = 0; i < count && status == STK_OK; i++) {
        const stk_tensor *tensor = operands[i].tensor;
        int tier = !tensor ? NUMBERS : tensor->ndim > 0 ? WITH_AXES : WITHOUT_AXES;
        status = check_operand(&operands[i], err);
        status = status != STK_OK ? status
                                  : promote(tiers[tier], tensor ? tensor->dtype : scalar_dtype(operands[i].scalar),
                                            &tiers[tier], err);
    }
    status = status != STK_OK ? status : join(tiers[WITHOUT_AXES], tiers[NUMBERS], &result, err);
    status = status != STK_OK ? status : join(tiers[WITH_AXES], result, &result, err);
    if (status == STK_OK)
        *out = result;
    return status;
}
