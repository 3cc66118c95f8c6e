/* test_cases_checks.c: checks of tensors. */
#include "test_cases.h"
#include <inttypes.h>
#include <math.h>

/* ---- geometry ---- */

static bool same_list(int count, const int64_t *a, int other_count, const int64_t *b)
{
    return count == other_count && (count == 0 || !memcmp(a, b, sizeof *a * (size_t)count));
}

static bool check_shape(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[2], shape, STK_MAX_DIMS);

    if (tensor->dtype == tc_dtype(m, arg[1]) && same_list(tensor->ndim, tensor->shape, ndim, shape))
        return true;
    return tc_say(m, "got %s %s", stk_dtype_name(tensor->dtype), tc_list_text(tensor->ndim, tensor->shape));
}

static bool check_meta(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t wanted[STK_MAX_DIMS], strides[STK_MAX_DIMS], offset = 0;
    int ndim = tc_list(m, arg[3], wanted, STK_MAX_DIMS);
    char flags[3] = {stk_tensor_is_contiguous(tensor) ? '1' : '0', stk_tensor_is_channels_last(tensor) ? '1' : '0', 0};

    if (!check_shape(m, arg))
        return false;
    if (stk_tensor_element_strides(tensor, strides, &offset, &m->err) != STK_OK)
        return tc_say(m, "%s", m->err.message);
    if (same_list(tensor->ndim, strides, ndim, wanted) && offset == tc_int(m, arg[4]) && !strcmp(flags, arg[5]))
        return true;
    return tc_say(m, "got strides %s offset %" PRId64 " flags %s", tc_list_text(tensor->ndim, strides), offset, flags);
}

static bool check_bstrides(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t wanted[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[1], wanted, STK_MAX_DIMS);

    return same_list(tensor->ndim, tensor->strides, ndim, wanted) ||
           tc_say(m, "got %s", tc_list_text(tensor->ndim, tensor->strides));
}

static bool check_nbytes(tc *m, char **arg)
{
    int64_t bytes = stk_tensor_nbytes(tc_tensor(m, arg[0]));
    return bytes == tc_int(m, arg[1]) || tc_say(m, "got %" PRId64, bytes);
}

static bool check_numel(tc *m, char **arg)
{
    int64_t count = stk_tensor_numel(tc_tensor(m, arg[0]));
    return count == tc_int(m, arg[1]) || tc_say(m, "got %" PRId64, count);
}

static bool check_offsetof(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t index[STK_MAX_DIMS], offset;
    int count = tc_list(m, arg[1], index, STK_MAX_DIMS);

    if (stk_tensor_offset_of(tensor, count, index, &offset, &m->err) != STK_OK)
        tc_say(m, "%s", m->err.message);
    else
        return offset == tc_int(m, arg[2]) * stk_dtype_size(tensor->dtype) ||
               tc_say(m, "got byte offset %" PRId64, offset);
    return false;
}

/* ---- storage ---- */

static bool check_shares(tc *m, char **arg)
{
    bool shares = tc_tensor(m, arg[0])->storage == tc_tensor(m, arg[1])->storage;
    return shares == (tc_int(m, arg[2]) != 0) || tc_say(m, shares ? "they share" : "they do not share");
}

static bool check_sameptr(tc *m, char **arg)
{
    bool same = tc_tensor(m, arg[0])->data == tc_tensor(m, arg[1])->data;
    return same == (tc_int(m, arg[2]) != 0) || tc_say(m, same ? "the addresses are equal" : "the addresses differ");
}

static bool check_refs(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t refs = tensor->storage ? stk_storage_refs(tensor->storage) : 0;

    return refs == tc_int(m, arg[1]) || tc_say(m, "got %" PRId64, refs);
}

static bool check_device(tc *m, char **arg)
{
    const char *name = stk_device_name(tc_tensor(m, arg[0])->device);
    return !strcmp(name, stk_device_name(tc_device(m, arg[1]))) || tc_say(m, "got %s", name);
}

/* ---- elements ---- */

static bool compare_bytes(tc *m, const stk_tensor *tensor, const unsigned char *wanted, int64_t wanted_bytes, bool zero)
{
    int64_t bytes, at = 0, size = stk_dtype_size(tensor->dtype);
    unsigned char *got = tc_elements(m, tensor, &bytes);
    bool same;

    if (!got)
        return false;
    cf_canon(stk_dtype_name(tensor->dtype), got, (size_t)bytes, zero);
    while (at < bytes && at < wanted_bytes && got[at] == wanted[at])
        at++;
    same = bytes == wanted_bytes && at == bytes;
    if (bytes != wanted_bytes)
        tc_say(m, "%" PRId64 " bytes, expected %" PRId64, bytes, wanted_bytes);
    else if (!same) {
        char text[40] = "";
        for (int64_t k = 0; k < size && k < 16; k++)
            snprintf(text + 2 * k, 3, "%02x", (unsigned)got[at / size * size + k]);
        tc_say(m, "element %" PRId64 " is %s", at / size, text);
    }
    free(got);
    return same;
}

static bool compare_hex(tc *m, char **arg, bool zero)
{
    unsigned char *wanted;
    int64_t bytes = tc_hex(m, arg[1], &wanted);
    bool same = compare_bytes(m, tc_tensor(m, arg[0]), wanted, bytes, zero);

    free(wanted);
    return same;
}

static bool check_hex(tc *m, char **arg)
{
    return compare_hex(m, arg, false);
}

static bool check_hexz(tc *m, char **arg)
{
    return compare_hex(m, arg, true);
}

static bool compare_sha(tc *m, char **arg, bool zero)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t bytes;
    unsigned char *got = tc_elements(m, tensor, &bytes);
    char digest[65];

    if (!got)
        return false;
    cf_canon(stk_dtype_name(tensor->dtype), got, (size_t)bytes, zero);
    cf_sha256(got, (size_t)bytes, digest);
    free(got);
    return !strcmp(digest, arg[1]) || tc_say(m, "digest %s", digest);
}

static bool check_sha(tc *m, char **arg)
{
    return compare_sha(m, arg, false);
}

static bool check_shaz(tc *m, char **arg)
{
    return compare_sha(m, arg, true);
}

static bool check_bytes(tc *m, char **arg)
{
    const stk_tensor *tensor = tc_tensor(m, arg[0]);
    int64_t bytes = stk_tensor_nbytes(tensor);
    unsigned char *wanted = malloc((size_t)bytes + 1);
    char path[8192];
    FILE *file;
    bool same = false;

    if (!wanted)
        abort();
    snprintf(path, sizeof path, "%s/%s", m->folder, arg[1]);
    file = fopen(path, "rb");
    if (!file || fseek(file, tc_int(m, arg[2]), SEEK_SET) != 0 ||
        fread(wanted, 1, (size_t)bytes, file) != (size_t)bytes)
        tc_bad(m, "cannot read %" PRId64 " bytes from %s", bytes, path);
    else
        same = compare_bytes(m, tensor, wanted, bytes, false);
    if (file)
        fclose(file);
    free(wanted);
    return same;
}

static bool close_to(double got, double wanted, double absolute, double relative)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (isinf(wanted) || isinf(got))
        return wanted == got;
    return fabs(got - wanted) <= absolute + relative * fabs(wanted);
}

static bool check_close(tc *m, char **arg)
{
    double absolute = tc_real(m, arg[1]), relative = tc_real(m, arg[2]), *got;
    unsigned char *wanted;
    int64_t bytes = tc_hex(m, arg[3], &wanted), count, at = 0;

    got = tc_doubles(m, tc_tensor(m, arg[0]), &count);
    if (!got) {
        free(wanted);
        return false;
    }
    for (; at < count && count * 8 == bytes; at++) {
        double reference;
        memcpy(&reference, wanted + 8 * at, sizeof reference);
        if (!close_to(got[at], reference, absolute, relative)) {
            tc_say(m, "element %" PRId64 " is %.17g, expected %.17g", at, got[at], reference);
            break;
        }
    }
    if (count * 8 != bytes)
        tc_say(m, "%" PRId64 " elements, expected %" PRId64, count, bytes / 8);
    free(got);
    free(wanted);
    return count * 8 == bytes && at == count;
}

static bool check_at(tc *m, char **arg)
{
    int64_t index[STK_MAX_DIMS];
    int count = tc_list(m, arg[1], index, STK_MAX_DIMS);
    stk_scalar got, wanted = tc_scalar(m, arg[2]);
    double a, b;

    if (stk_tensor_get(tc_tensor(m, arg[0]), count, index, &got, &m->err) != STK_OK)
        return tc_say(m, "%s", m->err.message);
    a = got.kind == STK_SCALAR_REAL ? got.as.f : got.kind == STK_SCALAR_BOOL ? got.as.b : (double)got.as.i;
    b = wanted.kind == STK_SCALAR_REAL   ? wanted.as.f
        : wanted.kind == STK_SCALAR_BOOL ? wanted.as.b
                                         : (double)wanted.as.i;
    return a == b || (isnan(a) && isnan(b)) || tc_say(m, "got %.17g", a);
}

/* Both tensors as doubles. Frees what it allocated if it fails. */
static bool two_lists(tc *m, char **arg, double **a, double **b, int64_t *a_count, int64_t *b_count)
{
    *a = tc_doubles(m, tc_tensor(m, arg[0]), a_count);
    *b = tc_doubles(m, tc_tensor(m, arg[1]), b_count);
    if (*a && *b)
        return true;
    free(*a);
    free(*b);
    return false;
}

static bool check_equal(tc *m, char **arg)
{
    const stk_tensor *left = tc_tensor(m, arg[0]), *right = tc_tensor(m, arg[1]);
    bool same = same_list(left->ndim, left->shape, right->ndim, right->shape);
    double *a, *b;
    int64_t count, other;

    if (same && two_lists(m, arg, &a, &b, &count, &other)) {
        for (int64_t i = 0; i < count; i++)
            same = same && a[i] == b[i];
        free(a);
        free(b);
    }
    return same == (tc_int(m, arg[2]) != 0) || tc_say(m, same ? "they are equal" : "they differ");
}

static bool check_errle(tc *m, char **arg)
{
    double *a, *b, worst = 0, bound = tc_real(m, arg[2]);
    int64_t count, other;

    if (!two_lists(m, arg, &a, &b, &count, &other))
        return false;
    for (int64_t i = 0; i < count && count == other; i++)
        if (!isnan(worst) && !(fabs(a[i] - b[i]) <= worst))
            worst = fabs(a[i] - b[i]); /* a NaN stays, and fails below */
    free(a);
    free(b);
    return (count == other && worst <= bound) || tc_say(m, "off by %.9g", worst);
}

static bool check_inrange(tc *m, char **arg)
{
    double low = tc_real(m, arg[1]), high = tc_real(m, arg[2]), *x, out_of_range = low;
    int64_t count;

    x = tc_doubles(m, tc_tensor(m, arg[0]), &count);
    if (!x)
        return false;
    for (int64_t i = 0; i < count; i++)
        if (!(x[i] >= low && x[i] < high))
            out_of_range = x[i];
    free(x);
    return (out_of_range >= low && out_of_range < high) || count == 0 || tc_say(m, "holds %.17g", out_of_range);
}

static bool check_stat(tc *m, char **arg)
{
    double *x, mean = 0, square = 0, deviation;
    int64_t count;

    x = tc_doubles(m, tc_tensor(m, arg[0]), &count);
    if (!x)
        return false;
    for (int64_t i = 0; i < count; i++)
        mean += x[i] / (double)count;
    for (int64_t i = 0; i < count; i++)
        square += (x[i] - mean) * (x[i] - mean) / (double)count;
    free(x);
    deviation = sqrt(square);
    if (mean >= tc_real(m, arg[1]) && mean <= tc_real(m, arg[2]) && deviation >= tc_real(m, arg[3]) &&
        deviation <= tc_real(m, arg[4]))
        return true;
    return tc_say(m, "mean %g, deviation %g", mean, deviation);
}

TC_NO_OPS

static const tc_check tc_checks[] = {
    {"shape", 3, check_shape},   {"meta", 6, check_meta},       {"bstrides", 2, check_bstrides},
    {"nbytes", 2, check_nbytes}, {"numel", 2, check_numel},     {"offsetof", 3, check_offsetof},
    {"shares", 3, check_shares}, {"sameptr", 3, check_sameptr}, {"refs", 2, check_refs},
    {"device", 2, check_device}, {"hex", 2, check_hex},         {"hexz", 2, check_hexz},
    {"sha", 2, check_sha},       {"shaz", 2, check_shaz},       {"bytes", 3, check_bytes},
    {"close", 4, check_close},   {"at", 3, check_at},           {"equal", 3, check_equal},
    {"errle", 3, check_errle},   {"inrange", 3, check_inrange}, {"stat", 5, check_stat},
};

TC_REGISTER
