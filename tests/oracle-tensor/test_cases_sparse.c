/* test_cases_sparse.c: sparse tensors (COO and CSR) and their checks. */
#include "test_cases.h"
#include <inttypes.h>

static void destroy_coo(void *object)
{
    stk_coo_release(object);
    free(object);
}

static void destroy_csr(void *object)
{
    stk_csr_release(object);
    free(object);
}

static const tc_type coo_type = {"COO tensor", destroy_coo};
static const tc_type csr_type = {"CSR matrix", destroy_csr};

/* The sparse tensor of a register: one of the two is set. */
struct either {
    const stk_coo *coo;
    const stk_csr *csr;
};

static struct either either_of(tc *m, const char *name)
{
    struct either found = {0};

    for (int i = 0; i < TC_REGISTERS; i++)
        if (!strcmp(m->registers[i].name, name)) {
            const tc_value *value = &m->registers[i].value;
            found.coo = value->type == &coo_type ? value->object : NULL;
            found.csr = value->type == &csr_type ? value->object : NULL;
        }
    if (!found.coo && !found.csr)
        tc_bad(m, "register %s holds no sparse tensor", name);
    return found;
}

static stk_status give_coo(stk_status status, const stk_coo *made, tc_value *out)
{
    if (!status) {
        *out = (tc_value){.type = &coo_type, .object = calloc(1, sizeof *made)};
        *(stk_coo *)out->object = *made;
    }
    return status;
}

static stk_status give_csr(stk_status status, const stk_csr *made, tc_value *out)
{
    if (!status) {
        *out = (tc_value){.type = &csr_type, .object = calloc(1, sizeof *made)};
        *(stk_csr *)out->object = *made;
    }
    return status;
}

static stk_status give_tensor(const stk_tensor *tensor, tc_value *out)
{
    stk_tensor_retain(tensor);
    out->tensor = *tensor;
    return STK_OK;
}

/* ---- COO ---- */

static stk_status op_coo(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[STK_MAX_DIMS];
    int ndim = tc_list(m, arg[2], shape, STK_MAX_DIMS);
    stk_coo made;

    return give_coo(stk_coo_create(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), ndim, shape, &made, err), &made, out);
}

static stk_status op_coo_from_dense(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_coo made;
    return give_coo(stk_coo_from_dense(tc_tensor(m, arg[0]), tc_dtype(m, arg[1]), &made, err), &made, out);
}

static stk_status op_coalesce(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_coo *coo = tc_object(m, arg[0], &coo_type);
    stk_coo made;

    return coo ? give_coo(stk_coo_coalesce(coo, &made, err), &made, out) : STK_E_BAD_ARG;
}

static stk_status op_coo_indices(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_coo *coo = tc_object(m, arg[0], &coo_type);
    (void)err;
    return coo ? give_tensor(&coo->indices, out) : STK_E_BAD_ARG;
}

static stk_status op_coo_values(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_coo *coo = tc_object(m, arg[0], &coo_type);
    (void)err;
    return coo ? give_tensor(&coo->values, out) : STK_E_BAD_ARG;
}

static stk_status op_to_dense(tc *m, char **arg, tc_value *out, stk_error *err)
{
    struct either sparse = either_of(m, arg[0]);

    if (sparse.coo)
        return stk_coo_to_dense(sparse.coo, &out->tensor, err);
    return sparse.csr ? stk_csr_to_dense(sparse.csr, &out->tensor, err) : STK_E_BAD_ARG;
}

static stk_status op_coo_from_csr(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    stk_coo made;

    return csr ? give_coo(stk_coo_from_csr(csr, &made, err), &made, out) : STK_E_BAD_ARG;
}

/* ---- CSR ---- */

static stk_status op_csr(tc *m, char **arg, tc_value *out, stk_error *err)
{
    int64_t shape[2] = {0};
    stk_csr made;

    if (tc_list(m, arg[3], shape, 2) != 2)
        tc_bad(m, "not the shape of a matrix: %s", arg[3]);
    return give_csr(stk_csr_create(tc_tensor(m, arg[0]), tc_tensor(m, arg[1]), tc_tensor(m, arg[2]), shape[0], shape[1],
                                   &made, err),
                    &made, out);
}

static stk_status op_csr_from_dense(tc *m, char **arg, tc_value *out, stk_error *err)
{
    stk_csr made;
    return give_csr(stk_csr_from_dense(tc_tensor(m, arg[0]), tc_dtype(m, arg[1]), &made, err), &made, out);
}

static stk_status op_csr_from_coo(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_coo *coo = tc_object(m, arg[0], &coo_type);
    stk_csr made;

    return coo ? give_csr(stk_csr_from_coo(coo, &made, err), &made, out) : STK_E_BAD_ARG;
}

static stk_status op_csr_crow(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    (void)err;
    return csr ? give_tensor(&csr->row_starts, out) : STK_E_BAD_ARG;
}

static stk_status op_csr_col(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    (void)err;
    return csr ? give_tensor(&csr->columns, out) : STK_E_BAD_ARG;
}

static stk_status op_csr_values(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    (void)err;
    return csr ? give_tensor(&csr->values, out) : STK_E_BAD_ARG;
}

static stk_status op_spmm(tc *m, char **arg, tc_value *out, stk_error *err)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    return csr ? stk_csr_matmul(csr, tc_tensor(m, arg[1]), &out->tensor, err) : STK_E_BAD_ARG;
}

/* ---- checks ---- */

static bool check_nnz(tc *m, char **arg)
{
    struct either sparse = either_of(m, arg[0]);
    int64_t entries;

    if (m->broken)
        return false;
    entries = sparse.coo ? stk_coo_entries(sparse.coo) : stk_csr_entries(sparse.csr);
    return entries == tc_int(m, arg[1]) || tc_say(m, "got %" PRId64, entries);
}

static bool check_coalesced(tc *m, char **arg)
{
    const stk_coo *coo = tc_object(m, arg[0], &coo_type);
    return coo && (coo->coalesced == (tc_int(m, arg[1]) != 0) ||
                   tc_say(m, coo->coalesced ? "it is coalesced" : "it is not coalesced"));
}

static bool check_spbytes(tc *m, char **arg)
{
    struct either sparse = either_of(m, arg[0]);
    int64_t bytes;

    if (m->broken)
        return false;
    bytes = sparse.coo ? stk_coo_bytes(sparse.coo) : stk_csr_bytes(sparse.csr);
    return bytes == tc_int(m, arg[1]) || tc_say(m, "got %" PRId64, bytes);
}

static bool check_csrcount(tc *m, char **arg)
{
    const stk_csr *csr = tc_object(m, arg[0], &csr_type);
    return csr && (2 * stk_csr_entries(csr) + csr->shape[0] == tc_int(m, arg[1]) ||
                   tc_say(m, "got %" PRId64 " entries in %" PRId64 " rows", stk_csr_entries(csr), csr->shape[0]));
}

static const tc_op tc_ops[] = {
    {"coo", 3, 1, op_coo},
    {"coo_from_dense", 2, 1, op_coo_from_dense},
    {"coalesce", 1, 1, op_coalesce},
    {"coo_indices", 1, 1, op_coo_indices},
    {"coo_values", 1, 1, op_coo_values},
    {"to_dense", 1, 1, op_to_dense},
    {"coo_from_csr", 1, 1, op_coo_from_csr},
    {"csr", 4, 1, op_csr},
    {"csr_from_dense", 2, 1, op_csr_from_dense},
    {"csr_from_coo", 1, 1, op_csr_from_coo},
    {"csr_crow", 1, 1, op_csr_crow},
    {"csr_col", 1, 1, op_csr_col},
    {"csr_values", 1, 1, op_csr_values},
    {"spmm", 2, 1, op_spmm},
};

static const tc_check tc_checks[] = {
    {"nnz", 2, check_nnz},
    {"coalesced", 2, check_coalesced},
    {"spbytes", 2, check_spbytes},
    {"csrcount", 2, check_csrcount},
};

TC_REGISTER
