/* Tests of exporting and importing tensors with DLPack, both versions: every dtype, any strides, lifetimes on both
 * sides, structures as other libraries write them, and rejected structures. */
#include "allocate.h"
#include "device_table.h"
#include "dlpack_type.h"
#include "faults.h"
#include "io_files.h"
#include "leak_check.h"
#include "npy_open.h"
#include "reader.h"
#include "stk_test.h"
#include "storage.h"
#include "tensor_model.h"
#include <dlpack/dlpack.h>
#include <stoker/stoker.h>

static uint64_t state = 9;

static int64_t refs_of(const stk_tensor *tensor)
{
    return stk_storage_refs(tensor->storage);
}

static stk_tensor counted(stk_dtype dtype, int ndim, const int64_t *shape)
{
    stk_tensor tensor;
    stk_error err;

    assert_ok(stk_tensor_zeros(dtype, ndim, shape, NULL, &tensor, &err));
    for (int64_t i = 0; i < stk_tensor_nbytes(&tensor); i++)
        ((uint8_t *)tensor.data)[i] = (uint8_t)(i % 251);
    return tensor;
}

/* ---- there and back ---- */

static void assert_same_view(const stk_tensor *a, const stk_tensor *b)
{
    assert_ptr_equal(a->data, b->data);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->ndim, b->ndim);
    for (int i = 0; i < a->ndim; i++) {
        assert_int_equal(a->shape[i], b->shape[i]);
        assert_int_equal(a->strides[i], b->strides[i]);
    }
}

static void test_every_dtype(void **unused)
{
    static const struct {
        stk_dtype dtype;
        int code, bits;
    } rows[] = {{STK_BOOL, 6, 8},       {STK_U8, 1, 8},      {STK_I8, 0, 8},   {STK_U16, 1, 16}, {STK_I16, 0, 16},
                {STK_U32, 1, 32},       {STK_I32, 0, 32},    {STK_U64, 1, 64}, {STK_I64, 0, 64}, {STK_F16, 2, 16},
                {STK_BF16, 4, 16},      {STK_F32, 2, 32},    {STK_F64, 2, 64}, {STK_C64, 5, 64}, {STK_C128, 5, 128},
                {STK_F8_E4M3FN, 10, 8}, {STK_F8_E5M2, 12, 8}};
    stk_error err;

    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stk_tensor tensor = counted(rows[i].dtype, 2, (const int64_t[]){2, 3}), back;
        struct DLManagedTensor *old;
        struct DLManagedTensorVersioned *raw;
        stk_dlpack_versioned *versioned;
        assert_ok(stk_tensor_to_dlpack_versioned(&tensor, &raw, &err));
        versioned = (void *)raw;
        assert_int_equal(versioned->major, 1);
        assert_int_equal(versioned->flags, 0);
        assert_int_equal(versioned->tensor.code, rows[i].code);
        assert_int_equal(versioned->tensor.bits, rows[i].bits);
        assert_int_equal(versioned->tensor.lanes, 1);
        assert_int_equal(versioned->tensor.device_type, kDLCPU);
        assert_int_equal(versioned->tensor.strides[0], 3);
        assert_int_equal(versioned->tensor.strides[1], 1);
        assert_int_equal(refs_of(&tensor), 2);
        assert_ok(stk_tensor_from_dlpack_versioned(raw, &back, &err));
        assert_same_view(&tensor, &back);
        stk_tensor_release(&back);
        assert_int_equal(refs_of(&tensor), 1);
        if (rows[i].code >= 10) {
            assert_status(stk_tensor_to_dlpack(&tensor, &old, &err), STK_E_UNSUPPORTED);
        } else {
            assert_ok(stk_tensor_to_dlpack(&tensor, &old, &err));
            assert_int_equal(old->dl_tensor.dtype.code, rows[i].dtype == STK_BOOL ? kDLUInt : rows[i].code);
            assert_int_equal(old->dl_tensor.dtype.bits, rows[i].bits);
            assert_int_equal(old->dl_tensor.device.device_type, kDLCPU);
            assert_int_equal(old->dl_tensor.byte_offset, 0);
            old->deleter(old);
        }
        assert_int_equal(refs_of(&tensor), 1);
        stk_tensor_release(&tensor);
    }
    for (int code = 0; code < 20; code++)
        for (int bits = 0; bits < 256; bits += 8) {
            stk_dtype dtype = stki_dlpack_dtype(code, bits, 1);
            bool listed = false;
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                if (rows[i].code == code && rows[i].bits == bits) {
                    assert_int_equal(dtype, rows[i].dtype);
                    listed = true;
                }
            assert_true(listed || dtype == STK_DTYPE_NONE);
            assert_int_equal(stki_dlpack_dtype(code, bits, 2), STK_DTYPE_NONE);
        }
}

static void test_any_view(void **unused)
{
    stk_error err;

    (void)unused;
    for (int round = 0; round < 200; round++) {
        stk_tensor tensor = counted(STK_I32, 3, (const int64_t[]){4, 5, 6}), view, next, back;
        struct DLManagedTensor *managed;
        char *low, *high;
        int dims[3] = {round % 3, (round + 1) % 3, (round + 2) % 3}, axis = (int)stkt_random_in(&state, 0, 2);
        assert_ok(stk_tensor_permute(&tensor, dims, &view, &err));
        assert_ok(
            stk_tensor_slice(&view, axis, stkt_random_in(&state, 0, 3), 6, stkt_random_in(&state, 1, 3), &next, &err));
        stk_tensor_release(&view);
        assert_ok(stk_tensor_flip(&next, (axis + round) % 3, &view, &err));
        stk_tensor_release(&next);
        assert_ok(stk_tensor_to_dlpack(&view, &managed, &err));
        assert_ok(stk_tensor_from_dlpack(managed, &back, &err));
        assert_same_view(&view, &back);
        /* the storage spans exactly the bytes from the first to the last element */
        low = high = back.data;
        for (int64_t n = 0; n < stk_tensor_numel(&back); n++) {
            char *at = stkt_element(&back, n);
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
        assert_ptr_equal(stk_storage_data(back.storage), low);
        assert_int_equal(stk_storage_bytes(back.storage), stk_tensor_numel(&back) ? high + 4 - low : 0);
        stk_tensor_release(&view);
        stk_tensor_release(&tensor); /* only the import keeps the memory alive */
        for (int64_t n = 0; n < stk_tensor_numel(&back); n++) {
            int32_t x;
            memcpy(&x, stkt_element(&back, n), sizeof x);
            assert_int_not_equal(x, 0);
        }
        stk_tensor_release(&back);
    }
}

/* ---- lifetime ---- */

static int freed;

static void count_free(void *context)
{
    (void)context;
    freed++;
}

static void test_export_keeps_the_memory(void **unused)
{
    static float memory[6] = {1, 2, 3, 4, 5, 6};
    struct DLManagedTensor *first, *second;
    stk_tensor tensor;
    stk_error err;

    (void)unused;
    freed = 0;
    assert_ok(stk_tensor_wrap(memory, STK_F32, 2, (const int64_t[]){2, 3}, NULL, count_free, NULL, &tensor, &err));
    assert_ok(stk_tensor_to_dlpack(&tensor, &first, &err));
    assert_ok(stk_tensor_to_dlpack(&tensor, &second, &err));
    stk_tensor_release(&tensor);
    assert_int_equal(freed, 0);
    second->deleter(second);
    assert_int_equal(freed, 0);
    assert_ptr_equal(first->dl_tensor.data, memory);
    first->deleter(first);
    assert_int_equal(freed, 1);
}

static int deleted;

static void count_delete(DLManagedTensor *self)
{
    (void)self;
    deleted++;
}

static void count_delete_versioned(stk_dlpack_versioned *self)
{
    (void)self;
    deleted++;
}

static void test_import_ends_once(void **unused)
{
    float memory[6] = {0, 1, 2, 3, 4, 5};
    int64_t shape[] = {2, 2};
    DLManagedTensor managed = {.dl_tensor = {.data = memory,
                                             .device = {kDLCPU, 0},
                                             .ndim = 2,
                                             .dtype = {kDLFloat, 32, 1},
                                             .shape = shape,
                                             .byte_offset = 8},
                               .deleter = count_delete};
    stk_tensor tensor, view;
    stk_error err;

    (void)unused;
    deleted = 0;
    assert_ok(stk_tensor_from_dlpack(&managed, &tensor, &err)); /* without strides: row-major */
    assert_int_equal(tensor.strides[0], 8);
    assert_true(*(float *)tensor.data == 2);
    assert_ok(stk_tensor_select(&tensor, 0, 1, &view, &err));
    stk_tensor_release(&tensor);
    assert_int_equal(deleted, 0);
    assert_true(*(float *)view.data == 4);
    stk_tensor_release(&view);
    assert_int_equal(deleted, 1);
    managed.deleter = NULL;
    assert_ok(stk_tensor_from_dlpack(&managed, &tensor, &err));
    stk_tensor_release(&tensor);
}

static void test_read_only(void **unused)
{
    stk_tensor tensor = counted(STK_F32, 1, (const int64_t[]){3}), back;
    struct DLManagedTensorVersioned *raw;
    struct DLManagedTensor *old;
    stk_error err;

    (void)unused;
    tensor.flags |= STK_TENSOR_READONLY;
    assert_status(stk_tensor_to_dlpack(&tensor, &old, &err), STK_E_UNSUPPORTED);
    assert_ok(stk_tensor_to_dlpack_versioned(&tensor, &raw, &err));
    assert_int_equal(((stk_dlpack_versioned *)(void *)raw)->flags, STK_DLPACK_READ_ONLY);
    assert_ok(stk_tensor_from_dlpack_versioned(raw, &back, &err));
    assert_status(stk_tensor_zero(&back, &err), STK_E_BAD_ARG);
    stk_tensor_release(&back);
    stk_tensor_release(&tensor);
}

/* ---- rejected tensors ---- */

static void test_refused_exports(void **unused)
{
    stk_tensor tensor = counted(STK_F32, 2, (const int64_t[]){2, 3}), other;
    float memory[3] = {0};
    struct DLManagedTensor *out;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_borrow(memory, STK_F32, 1, (const int64_t[]){3}, NULL, &other, &err));
    assert_status(stk_tensor_to_dlpack(&other, &out, &err), STK_E_UNSUPPORTED);
    assert_says("borrowed");
    tensor.flags = STK_TENSOR_SWAPPED;
    assert_status(stk_tensor_to_dlpack(&tensor, &out, &err), STK_E_UNSUPPORTED);
    tensor.flags = 0;
    tensor.storage->mapping = true;
    assert_status(stk_tensor_to_dlpack(&tensor, &out, &err), STK_E_UNSUPPORTED);
    assert_says("mapped file");
    tensor.storage->mapping = false;
    other = tensor;
    other.strides[0] = 10; /* as in a view of one member of packed structs */
    assert_status(stk_tensor_to_dlpack(&other, &out, &err), STK_E_BAD_STRIDE);
    other.shape[0] = 1;
    assert_ok(stk_tensor_to_dlpack(&other, &out, &err)); /* the stride of an axis of length 1 is not used */
    out->deleter(out);
    assert_int_equal(refs_of(&tensor), 1);
    stk_tensor_release(&tensor);
}

/* A mapping of a file cannot be exported, but a copy can. */
static void test_mapping_stays(void **unused)
{
    const int32_t values[] = {1, 2, 3};
    const char *path = stkt_path("mapped.npy");
    stki_reader_opts opts = {.access = STKI_ACCESS_MMAP};
    struct DLManagedTensorVersioned *out;
    stk_tensor array, view, copy;
    stk_error err;

    (void)unused;
    stkt_write_npy(path, "<i4", "False", "(3,)", 64, values, sizeof values);
    assert_ok(stkt_npy_tensor(path, &opts, &array, &err));
    assert_ok(stk_tensor_slice(&array, 0, 1, 3, 1, &view, &err));
    assert_status(stk_tensor_to_dlpack_versioned(&view, &out, &err), STK_E_UNSUPPORTED);
    assert_says("mapped file");
    assert_ok(stk_tensor_clone(&view, &copy, &err));
    assert_ok(stk_tensor_to_dlpack_versioned(&copy, &out, &err));
    ((stk_dlpack_versioned *)(void *)out)->deleter((void *)out);
    stk_tensor_release(&copy);
    stk_tensor_release(&view);
    stk_tensor_release(&array);
}

static void refuse_import(stk_dlpack_tensor tensor, stk_status expected)
{
    stk_dlpack_versioned managed = {.major = 1, .minor = 7, .deleter = count_delete_versioned, .tensor = tensor};
    stk_tensor out;
    stk_error err;

    deleted = 0;
    assert_status(stk_tensor_from_dlpack_versioned((void *)&managed, &out, &err), expected);
    assert_int_equal(deleted, 0);
}

static void test_refused_imports(void **unused)
{
    float memory[6] = {0};
    int64_t shape[33] = {2, 3}, strides[33] = {3, 1};
    stk_dlpack_tensor good = {.data = memory,
                              .device_type = kDLCPU,
                              .ndim = 2,
                              .code = 2,
                              .bits = 32,
                              .lanes = 1,
                              .shape = shape,
                              .strides = strides},
                      bad;
    stk_dlpack_versioned managed = {.major = 1, .deleter = count_delete_versioned, .tensor = good};
    stk_tensor out;
    stk_error err;

    (void)unused;
    deleted = 0;
    assert_ok(stk_tensor_from_dlpack_versioned((void *)&managed, &out, &err));
    assert_false(stk_tensor_is_pinned(&out));
    stk_tensor_release(&out);
    assert_int_equal(deleted, 1);
    managed.tensor.device_type = kDLCUDAHost;
    assert_ok(stk_tensor_from_dlpack_versioned((void *)&managed, &out, &err));
    assert_ptr_equal(out.device, stk_device_cpu());
    assert_true(stk_tensor_is_pinned(&out));
    stk_tensor_release(&out);
    managed.tensor.device_type = kDLCPU;
    managed.major = 2;
    assert_status(stk_tensor_from_dlpack_versioned((void *)&managed, &out, &err), STK_E_UNSUPPORTED);
    bad = good, bad.bits = 24;
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.lanes = 4;
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.code = 3; /* opaque handles */
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.ndim = 33;
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.ndim = -1;
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.shape = NULL;
    refuse_import(bad, STK_E_BAD_ARG);
    bad = good, bad.data = NULL;
    refuse_import(bad, STK_E_BAD_ARG);
    bad = good, bad.byte_offset = UINT64_MAX;
    refuse_import(bad, STK_E_BAD_ARG);
    bad = good, bad.device_type = kDLMetal;
    refuse_import(bad, STK_E_UNSUPPORTED);
    bad = good, bad.device_type = kDLCUDA, bad.device_id = 63;
    refuse_import(bad, STK_E_BAD_DEVICE);
    shape[0] = -1;
    refuse_import(good, STK_E_BAD_SHAPE);
    shape[0] = INT64_MAX;
    refuse_import(good, STK_E_BAD_SHAPE);
    shape[0] = 2;
    strides[0] = INT64_MAX / 2;
    refuse_import(good, STK_E_BAD_SHAPE);
    shape[0] = 1; /* the stride of an axis of length 1 may be anything */
    managed = (stk_dlpack_versioned){.major = 1, .deleter = count_delete_versioned, .tensor = good};
    assert_ok(stk_tensor_from_dlpack_versioned((void *)&managed, &out, &err));
    stk_tensor_release(&out);
}

static void test_empty_and_scalar(void **unused)
{
    stk_tensor empty = counted(STK_F32, 2, (const int64_t[]){0, 3}), scalar = counted(STK_F32, 0, NULL), back;
    struct DLManagedTensor *managed;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_to_dlpack(&empty, &managed, &err));
    managed->dl_tensor.data = NULL; /* as many libraries set for empty tensors */
    assert_ok(stk_tensor_from_dlpack(managed, &back, &err));
    assert_int_equal(stk_tensor_numel(&back), 0);
    stk_tensor_release(&back);
    assert_ok(stk_tensor_to_dlpack(&scalar, &managed, &err));
    assert_ok(stk_tensor_from_dlpack(managed, &back, &err));
    assert_same_view(&scalar, &back);
    stk_tensor_release(&back);
    stk_tensor_release(&scalar);
    stk_tensor_release(&empty);
}

static void test_failing_allocations(void **unused)
{
    stk_tensor tensor = counted(STK_F32, 2, (const int64_t[]){2, 3}), back;
    struct DLManagedTensor *managed = NULL;
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    stk_memory_record_stop(); /* otherwise the recorder's own allocations would fail */
    stki_memory_read(STKI_MEM_HOST, &before);
    stki_memory_fail_at(1);
    assert_status(stk_tensor_to_dlpack(&tensor, &managed, &err), STK_E_MEMORY);
    stki_memory_fail_at(0);
    assert_int_equal(refs_of(&tensor), 1);
    assert_ok(stk_tensor_to_dlpack(&tensor, &managed, &err));
    stki_memory_fail_at(1);
    assert_status(stk_tensor_from_dlpack(managed, &back, &err), STK_E_MEMORY);
    stki_memory_fail_at(0);
    managed->deleter(managed);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.blocks, before.blocks);
    stk_tensor_release(&tensor);
    stk_memory_record_start();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_any_view),
        cmocka_unit_test(test_export_keeps_the_memory),
        cmocka_unit_test(test_import_ends_once),
        cmocka_unit_test(test_read_only),
        cmocka_unit_test(test_refused_exports),
        cmocka_unit_test(test_mapping_stays),
        cmocka_unit_test(test_refused_imports),
        cmocka_unit_test(test_empty_and_scalar),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
