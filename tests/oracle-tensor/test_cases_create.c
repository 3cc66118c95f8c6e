/* test_cases_create.c: operations that create tensors. */
#include "test_cases.h"
#include <inttypes.h>

static stk_status op_zeros(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_zeros(tc_dtype(m, arg[0]), ndim, shape, m->device, &out->tensor, err);
}

static stk_status op_ones(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_ones(tc_dtype(m, arg[0]), ndim, shape, m->device, &out->tensor, err);
}

static stk_status op_empty(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_empty(tc_dtype(m, arg[0]), ndim, shape, m->device, &out->tensor, err);
}

static stk_status op_full(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_full(tc_dtype(m, arg[0]), ndim, shape, tc_scalar(m, arg[2]), m->device, &out->tensor, err);
}

static stk_status op_arange(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_arange(tc_dtype(m, arg[0]), tc_number(m, arg[1]), tc_number(m, arg[2]), tc_number(m, arg[3]),
                             m->device, &out->tensor, err);
}

static stk_status op_linspace(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_linspace(tc_dtype(m, arg[0]), tc_real(m, arg[1]), tc_real(m, arg[2]), tc_int(m, arg[3]),
                               m->device, &out->tensor, err);
}

static stk_status op_eye(tc *m, char **arg, tc_value *out, stk_error *err)
{
    return stk_tensor_eye(tc_dtype(m, arg[0]), tc_int(m, arg[1]), tc_int(m, arg[2]), m->device, &out->tensor, err);
}

static stk_status op_rand(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_rand(tc_dtype(m, arg[0]), ndim, shape, (uint64_t)tc_int(m, arg[2]), m->device, &out->tensor, err);
}

static stk_status op_randn(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);

    return stk_tensor_randn(tc_dtype(m, arg[0]), ndim, shape, (uint64_t)tc_int(m, arg[2]), m->device, &out->tensor,
                            err);
}

static stk_status op_data(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], bytes;
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);
    unsigned char *data;
    stk_status status;

    bytes = tc_hex(m, arg[2], &data);
    status = stk_tensor_from_array(tc_dtype(m, arg[0]), data, bytes, ndim, shape, m->device, &out->tensor, err);
    free(data);
    return status;
}

/* A tensor of type `dtype` from row-major values of type `own` at `data`. */
static stk_status converted(tc *m, stk_dtype dtype, stk_dtype own, const void *data, int ndim, const int64_t *shape,
                            tc_value *out, stk_error *err)
{
    stk_tensor numbers;
    int64_t count = 1;
    stk_status status;

    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    status = stk_tensor_from_array(own, data, count * stk_dtype_size(own), ndim, shape, m->device, &numbers, err);
    if (status)
        return status;
    status = stk_tensor_to(&numbers, dtype, &out->tensor, err);
    stk_tensor_release(&numbers);
    return status;
}

static stk_status op_gen(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS], count = 1, low = tc_int(m, arg[3]), high = tc_int(m, arg[4]), div = tc_int(m, arg[5]);
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);
    uint64_t state = (uint64_t)tc_int(m, arg[2]);
    int64_t *numbers;
    stk_status status;

    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    numbers = calloc((size_t)count + 1, sizeof *numbers);
    if (!numbers)
        abort();
    for (int64_t i = 0; i < count; i++) {
        double quotient;
        numbers[i] = cf_gen(&state, low, high);
        quotient = (double)numbers[i] / (double)div;
        if (div != 1)
            memcpy(&numbers[i], &quotient, sizeof quotient);
    }
    status = converted(m, tc_dtype(m, arg[0]), div == 1 ? STK_I64 : STK_F64, numbers, ndim, shape, out, err);
    free(numbers);
    return status;
}

static stk_status op_bits(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_dtype dtype = tc_dtype(m, arg[0]);
    int64_t count = tc_int(m, arg[1]), size = stk_dtype_size(dtype);
    uint64_t start = (uint64_t)tc_int(m, arg[2]);
    unsigned char *data = calloc((size_t)(count * size) + 8, 1);
    stk_status status;

    if (!data)
        abort();
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < size && k < 8; k++)
            data[i * size + k] = (unsigned char)((start + (uint64_t)i) >> (8 * k));
    status = stk_tensor_from_array(dtype, data, count * size, 1, &count, m->device, &out->tensor, err);
    free(data);
    return status;
}

static stk_status op_load(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_dtype dtype = tc_dtype(m, arg[0]);
    int64_t shape[STK_MAX_DIMS], bytes = stk_dtype_size(dtype);
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);
    char path[8192];
    unsigned char *data;
    FILE *file;
    stk_status status;

    for (int i = 0; i < ndim; i++)
        bytes *= shape[i];
    snprintf(path, sizeof path, "%s/%s", m->folder, arg[2]);
    file = fopen(path, "rb");
    data = malloc((size_t)bytes + 1);
    if (!data)
        abort();
    if (!file || fseek(file, tc_int(m, arg[3]), SEEK_SET) != 0 || fread(data, 1, (size_t)bytes, file) != (size_t)bytes)
        tc_bad(m, "cannot read %" PRId64 " bytes from %s", bytes, path);
    status = stk_tensor_from_array(dtype, data, bytes, ndim, shape, m->device, &out->tensor, err);
    free(data);
    if (file)
        fclose(file);
    return status;
}

/* ---- external memory ---- */

static struct watch {
    char name[32];
    int freed;
    unsigned char *data;
} watches[16];

static void watched_free(void *context)
{
    struct watch *watch = context;

    watch->freed++;
    free(watch->data);
    watch->data = NULL;
}

static struct watch *find_watch(tc *m, const char *name, bool make)
{
    for (int i = 0; i < 16; i++)
        if (!strcmp(watches[i].name, name))
            return &watches[i];
    for (int i = 0; i < 16 && make; i++) {
        if (watches[i].name[0])
            continue;
        snprintf(watches[i].name, sizeof watches[i].name, "%s", name);
        return &watches[i];
    }
    tc_bad(m, "no watch %s", name);
    return &watches[0];
}

static stk_status op_external(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], shape, STK_MAX_DIMS);
    struct watch *watch = find_watch(m, arg[3], true);
    unsigned char *data;
    stk_status status;

    (void)tc_hex(m, arg[2], &data);
    watch->data = data;
    watch->freed = 0;
    status = stk_tensor_wrap(data, tc_dtype(m, arg[0]), ndim, shape, NULL, watched_free, watch, &out->tensor, err);
    if (status)
        free(data);
    return status;
}

static bool check_freed(tc *m, char **arg)
{
    const struct watch *watch = find_watch(m, arg[0], false);

    return watch->freed == tc_int(m, arg[1]) || tc_say(m, "the callback ran %d times", watch->freed);
}

static stk_status op_frombuffer(tc *m, char **arg, tc_value *out, stk_error *err)
{
    static struct watch buffers[TC_REGISTERS];
    struct watch *buffer = NULL;
    int64_t bytes;
    stk_status status;

    for (int i = 0; i < TC_REGISTERS && !buffer; i++)
        if (!buffers[i].data)
            buffer = &buffers[i];
    if (!buffer)
        abort();
    bytes = tc_hex(m, arg[3], &buffer->data);
    status = stk_tensor_from_buffer(buffer->data, bytes, tc_dtype(m, arg[0]), tc_int(m, arg[1]), tc_int(m, arg[2]),
                                    watched_free, buffer, &out->tensor, err);
    if (status)
        watched_free(buffer);
    return status;
}

static const tc_op tc_ops[] = {
    {"zeros", 2, 1, op_zeros},       {"ones", 2, 1, op_ones},
    {"empty", 2, 1, op_empty},       {"full", 3, 1, op_full},
    {"arange", 4, 1, op_arange},     {"linspace", 4, 1, op_linspace},
    {"eye", 3, 1, op_eye},           {"rand", 3, 1, op_rand},
    {"randn", 3, 1, op_randn},       {"data", 3, 1, op_data},
    {"gen", 6, 1, op_gen},           {"bits", 3, 1, op_bits},
    {"load", 4, 1, op_load},         {"frombuffer", 4, 1, op_frombuffer},
    {"external", 4, 1, op_external},
};

static const tc_check tc_checks[] = {{"freed", 2, check_freed}};

TC_REGISTER
