/* play_create.c: operations that create tensors. */
#include "error.h"
#include "play_ops.h"
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stoker/create.h>
#include <string.h>

static double as_real(stk_scalar scalar)
{
    return scalar.kind == STK_SCALAR_INT    ? (double)scalar.as.i
           : scalar.kind == STK_SCALAR_BOOL ? scalar.as.b
                                            : scalar.as.f;
}

static stk_status take_shape(struct pl_call *call, stk_dtype dtype, int *ndim, int64_t *shape, stk_error *err)
{
    stk_status status = pl_take_ints(call->command, "the shape", STK_MAX_DIMS, shape, ndim, err);

    for (int i = 0; status == STK_OK && i < *ndim; i++)
        if (shape[i] < 0)
            return stki_fail(err, STK_E_BAD_SHAPE, "%s: shape %s: sizes must not be negative", call->command->op,
                             PL_SHAPE(*ndim, shape));
    return status != STK_OK ? status : pl_afford(call->command->op, dtype, *ndim, shape, err);
}

static stk_status create_zeros(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim;
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_F32, &dtype, err);

    status = status != STK_OK ? status : take_shape(call, dtype, &ndim, shape, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    return strcmp(call->command->op, "ones") == 0 ? stk_tensor_ones(dtype, ndim, shape, NULL, &call->out, err)
                                                  : stk_tensor_zeros(dtype, ndim, shape, NULL, &call->out, err);
}

/* As in torch: integers are i64, other numbers f32. */
static stk_dtype dtype_of(stk_scalar scalar)
{
    return scalar.kind == STK_SCALAR_BOOL ? STK_BOOL : scalar.kind == STK_SCALAR_INT ? STK_I64 : STK_F32;
}

static stk_status create_full(struct pl_call *call, stk_error *err)
{
    struct pl_command *command = call->command;
    struct pl_item *last = NULL;
    int64_t shape[STK_MAX_DIMS];
    int ndim;
    stk_dtype dtype;
    stk_status status = pl_take_dtype(command, STK_DTYPE_NONE, &dtype, err);

    if (status != STK_OK)
        return status;
    for (int i = 0; i < command->item_count; i++)
        if (!command->items[i].used && command->items[i].kind == PL_NUMBER)
            last = &command->items[i];
    if (!last)
        return stki_fail(err, STK_E_CONFIG, "full: missing value: full 2 3 VALUE");
    last->used = true;
    dtype = dtype ? dtype : dtype_of(last->number);
    status = take_shape(call, dtype, &ndim, shape, err);
    status = status != STK_OK ? status : pl_take_end(command, err);
    return status != STK_OK ? status : stk_tensor_full(dtype, ndim, shape, last->number, NULL, &call->out, err);
}

static stk_status create_arange(struct pl_call *call, stk_error *err)
{
    stk_scalar bounds[3];
    int count = 0;
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_DTYPE_NONE, &dtype, err);

    if (status != STK_OK)
        return status;
    while (count < 3 && pl_take_number(call->command, &bounds[count]))
        count++;
    if (count == 0)
        return stki_fail(err, STK_E_CONFIG, "arange: missing end: arange [START] END [STEP]");
    status = pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    if (count == 1) {
        bounds[1] = bounds[0];
        bounds[0] = stk_int(0);
    }
    if (count < 3)
        bounds[2] = stk_int(1);
    for (int i = 0; !dtype && i < 3; i++)
        dtype = bounds[i].kind == STK_SCALAR_REAL ? STK_F32 : STK_DTYPE_NONE;
    dtype = dtype ? dtype : STK_I64;
    double length = (as_real(bounds[1]) - as_real(bounds[0])) / as_real(bounds[2]);
    if (length > 0 && length < 1e18) {
        status = pl_afford("arange", dtype, 1, (const int64_t[]){(int64_t)length}, err);
        if (status != STK_OK)
            return status;
    }
    return stk_tensor_arange(dtype, bounds[0], bounds[1], bounds[2], NULL, &call->out, err);
}

static stk_status create_linspace(struct pl_call *call, stk_error *err)
{
    stk_scalar start, end;
    int64_t count = 0;
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_F32, &dtype, err);

    if (status != STK_OK)
        return status;
    if (!pl_take_number(call->command, &start) || !pl_take_number(call->command, &end))
        return stki_fail(err, STK_E_CONFIG, "linspace: expected linspace START END COUNT");
    status = pl_take_int(call->command, "count", &count, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : pl_afford("linspace", dtype, 1, &count, err);
    return status != STK_OK ? status
                            : stk_tensor_linspace(dtype, as_real(start), as_real(end), count, NULL, &call->out, err);
}

static stk_status create_eye(struct pl_call *call, stk_error *err)
{
    int64_t shape[2] = {0, 0};
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_F32, &dtype, err);

    status = status != STK_OK ? status : pl_take_int(call->command, "number of rows", &shape[0], err);
    if (status != STK_OK)
        return status;
    shape[1] = shape[0];
    if (pl_numbers_left(call->command))
        status = pl_take_int(call->command, "number of columns", &shape[1], err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    status = status != STK_OK ? status : pl_afford("eye", dtype, 2, shape, err);
    return status != STK_OK ? status : stk_tensor_eye(dtype, shape[0], shape[1], NULL, &call->out, err);
}

static stk_status create_random(struct pl_call *call, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], seed = 0;
    int ndim;
    stk_dtype dtype;
    stk_status status = pl_take_dtype(call->command, STK_F32, &dtype, err);

    status = status != STK_OK ? status : pl_take_int_key(call->command, "seed", call->session->seed, &seed, err);
    status = status != STK_OK ? status : take_shape(call, dtype, &ndim, shape, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        return status;
    snprintf(call->remark, sizeof call->remark, "seed %" PRId64 ": the same numbers on every machine", seed);
    return strcmp(call->command->op, "rand") == 0
               ? stk_tensor_rand(dtype, ndim, shape, (uint64_t)seed, NULL, &call->out, err)
               : stk_tensor_randn(dtype, ndim, shape, (uint64_t)seed, NULL, &call->out, err);
}

static stk_status create_tensor(struct pl_call *call, stk_error *err)
{
    stk_tensor made;
    stk_scalar value;
    int64_t count = pl_numbers_left(call->command);
    stk_dtype dtype, found = STK_BOOL;
    stk_status status = pl_take_dtype(call->command, STK_DTYPE_NONE, &dtype, err);

    for (int i = 0; i < call->command->item_count; i++) {
        const struct pl_item *item = &call->command->items[i];
        if (item->kind == PL_NUMBER && dtype_of(item->number) > found)
            found = dtype_of(item->number);
    }
    found = count ? found : STK_F32;
    status = status != STK_OK ? status : stk_tensor_empty(dtype ? dtype : found, 1, &count, NULL, &made, err);
    if (status != STK_OK)
        return status;
    for (int64_t i = 0; status == STK_OK && pl_take_number(call->command, &value); i++)
        status = stk_tensor_set(&made, 1, &i, value, err);
    status = status != STK_OK ? status : pl_take_end(call->command, err);
    if (status != STK_OK)
        stk_tensor_release(&made);
    else
        call->out = made;
    return status;
}

const struct pl_op pl_create_ops[] = {
    {"arange", "[START] END [STEP] [DTYPE]", "numbers from START up to, but excluding, END", false, create_arange},
    {"zeros", "SHAPE [DTYPE]", "a shape is 2 3, (2, 3) or 2x3", false, create_zeros},
    {"ones", "SHAPE [DTYPE]", "", false, create_zeros},
    {"full", "SHAPE VALUE [DTYPE]", "one value everywhere", false, create_full},
    {"linspace", "START END COUNT [DTYPE]", "COUNT numbers, including both ends", false, create_linspace},
    {"eye", "ROWS [COLUMNS] [DTYPE]", "ones on the diagonal", false, create_eye},
    {"rand", "SHAPE [DTYPE] [seed=N]", "uniform in [0, 1)", false, create_random},
    {"randn", "SHAPE [DTYPE] [seed=N]", "normal, mean 0, standard deviation 1", false, create_random},
    {"tensor", "NUMBER… [DTYPE]", "these numbers, along one axis", false, create_tensor},
    {NULL, NULL, NULL, false, NULL},
};
