/* stki-threads */
/* Tests of memory accounting, profile and recording: numbers that can be checked by hand, the text of reports, holders
 * of storages, and many threads. */
#include "allocate.h"
#include "device_table.h"
#include "faults.h"
#include "profile_scope.h"
#include "stk_test.h"
#include "test_device.h"
#include <jansson.h>
#include <pthread.h>
#include <stoker/stoker.h>
#include <time.h>

static stk_memory_row memory_row(const char *device, const char *kind)
{
    stk_memory_row rows[16];
    int count = stk_memory_read(rows, 16);

    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].device, device) && !strcmp(rows[i].kind, kind))
            return rows[i];
    fail_msg("no row %s %s", device, kind);
    return rows[0];
}

static stk_profile_row profile_row(const char *name)
{
    stk_profile_row rows[256];
    int count = stk_profile_read(STK_PROFILE_BY_NAME, rows, 256);

    for (int i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name))
            return rows[i];
    return (stk_profile_row){.name = name};
}

static stk_tensor zeros(stk_device *device, int64_t count)
{
    stk_tensor tensor;
    stk_error err;

    assert_ok(stk_tensor_zeros(STK_F32, 1, &count, device, &tensor, &err));
    return tensor;
}

/* ---- accounting ---- */

static void test_accounting(void **unused)
{
    stk_device *device = stki_device_test();
    stk_memory_row before = memory_row("cpu", "host"), now, there = memory_row("test", "device");
    stk_tensor large = zeros(NULL, 1 << 20), away = zeros(device, 1000);

    (void)unused;
    now = memory_row("cpu", "host");
    assert_true(now.allocated_bytes >= before.allocated_bytes + (4 << 20));
    assert_true(now.reserved_bytes == now.allocated_bytes);
    assert_true(now.peak_bytes >= now.allocated_bytes && now.largest_bytes >= 4 << 20);
    assert_true(now.blocks > before.blocks && now.allocations > before.allocations);
    now = memory_row("test", "device");
    assert_int_equal(now.allocated_bytes - there.allocated_bytes, 4000);
    assert_int_equal(now.blocks - there.blocks, 1);
    assert_int_equal(now.largest_bytes, 4000);
    stk_tensor_release(&large);
    stk_tensor_release(&away);
    now = memory_row("cpu", "host");
    assert_int_equal(now.allocated_bytes, before.allocated_bytes);
    assert_true(now.peak_bytes >= before.allocated_bytes + (4 << 20));
    assert_int_equal(memory_row("test", "device").allocated_bytes, there.allocated_bytes);
    assert_int_equal(memory_row("test", "device").peak_bytes, 4000);
    stk_memory_reset_peaks();
    now = memory_row("cpu", "host");
    assert_true(now.peak_bytes < before.allocated_bytes + (4 << 20));
    assert_int_equal(memory_row("test", "device").peak_bytes, there.allocated_bytes);
    assert_int_equal(memory_row("cpu", "pinned").allocated_bytes, 0);
}

static void test_memory_summary(void **unused)
{
    stk_tensor away = zeros(stki_device_test(), 384);
    char *text;
    stk_error err;

    (void)unused;
    assert_ok(stk_memory_summary(&text, &err));
    assert_non_null(strstr(text, "device   kind       allocated"));
    assert_non_null(strstr(text, "\ncpu      host   "));
    assert_non_null(strstr(text, "\ntest     device      1.50 KiB     1.50 KiB"));
    stk_text_free(text);
    stk_tensor_release(&away);
}

/* ---- profile ---- */

static void inner(void)
{
    STKI_PROFILE("test inner");
    struct timespec pause = {.tv_nsec = 3000000};
    stk_tensor tensor = zeros(NULL, 25);

    nanosleep(&pause, NULL);
    stk_tensor_release(&tensor);
}

/* The same name at another place in the code shares the row. */
static void inner_elsewhere(void)
{
    STKI_PROFILE("test inner");
}

static void outer_and_inner(void)
{
    STKI_PROFILE("test outer");
    struct timespec pause = {.tv_nsec = 3000000};

    nanosleep(&pause, NULL);
    inner();
    inner();
    inner_elsewhere();
}

static void test_nested_operations(void **unused)
{
    stk_profile_row outer, inside, made;

    (void)unused;
    outer_and_inner(); /* not profiled */
    assert_int_equal(profile_row("test outer").calls, 0);
    stk_profile_start();
    stk_profile_reset();
    outer_and_inner();
    stk_profile_stop();
    outer_and_inner();
    outer = profile_row("test outer");
    inside = profile_row("test inner");
    made = profile_row("zeros");
    assert_int_equal(outer.calls, 1);
    assert_int_equal(inside.calls, 3);
    assert_int_equal(made.calls, 2);
    assert_int_equal(inside.allocated_bytes, 200);
    assert_int_equal(outer.allocated_bytes, 200);
    assert_true(outer.time_ns >= 9000000 && outer.time_ns >= outer.own_ns + inside.time_ns);
    assert_true(outer.own_ns >= 3000000);
    assert_true(inside.own_ns >= 6000000 && inside.own_ns + made.time_ns <= inside.time_ns);
    stk_profile_reset();
    assert_int_equal(profile_row("test outer").calls, 0);
}

static void test_orders(void **unused)
{
    stk_profile_row rows[64];
    stk_tensor a = zeros(NULL, 1000), b, c;
    stk_error err;
    int count;

    (void)unused;
    stk_profile_start();
    stk_profile_reset();
    for (int i = 0; i < 5; i++) {
        assert_ok(stk_tensor_slice(&a, 0, 0, 10, 1, &b, &err));
        stk_tensor_release(&b);
    }
    assert_ok(stk_tensor_clone(&a, &b, &err));
    assert_ok(stk_tensor_to(&a, STK_F64, &c, &err));
    stk_profile_stop();
    count = stk_profile_read(STK_PROFILE_BY_CALLS, rows, 64);
    assert_true(count >= 3);
    assert_string_equal(rows[0].name, "slice");
    assert_int_equal(rows[0].calls, 5);
    count = stk_profile_read(STK_PROFILE_BY_BYTES, rows, 64);
    assert_string_equal(rows[0].name, "to");
    assert_int_equal(rows[0].allocated_bytes, 8000);
    count = stk_profile_read(STK_PROFILE_BY_NAME, rows, 64);
    for (int i = 1; i < count; i++)
        assert_true(strcmp(rows[i - 1].name, rows[i].name) < 0);
    count = stk_profile_read(STK_PROFILE_BY_TIME, rows, 64);
    for (int i = 1; i < count; i++)
        assert_true(rows[i - 1].own_ns >= rows[i].own_ns);
    rows[1].name = "untouched";
    assert_int_equal(stk_profile_read(STK_PROFILE_BY_NAME, rows, 1), count);
    assert_string_equal(rows[1].name, "untouched");
    stk_tensor_release(&a);
    stk_tensor_release(&b);
    stk_tensor_release(&c);
}

static void test_profile_summary(void **unused)
{
    stk_tensor a;
    char *text;
    stk_error err;

    (void)unused;
    stk_profile_start();
    stk_profile_reset();
    a = zeros(NULL, 1 << 18);
    stk_profile_stop();
    assert_ok(stk_profile_summary(STK_PROFILE_BY_BYTES, &text, &err));
    assert_non_null(strstr(text, "operation"));
    assert_non_null(strstr(text, "zeros                         1"));
    assert_non_null(strstr(text, "1.00 MiB"));
    stk_text_free(text);
    stk_tensor_release(&a);
}

/* ---- recording ---- */

static void test_holders(void **unused)
{
    stk_tensor base, view, copy;
    stk_holder holders[8];
    stk_error err;

    (void)unused;
    stk_memory_record_start();
    stk_tag_push("epoch 1");
    assert_ok(stk_tensor_arange(STK_I32, stk_int(0), stk_int(12), stk_int(1), NULL, &base, &err));
    stk_tag_pop();
    assert_int_equal(stk_storage_holders(base.storage, holders, 8), 1);
    assert_string_equal(holders[0].operation, "arange");
    assert_string_equal(holders[0].tag, "epoch 1");
    assert_int_equal(holders[0].references, 1);
    STK_TAG_HERE();
    assert_ok(stk_tensor_slice(&base, 0, 2, 9, 3, &view, &err));
    stk_tag_pop();
    assert_int_equal(stk_storage_holders(base.storage, holders, 8), 2);
    assert_string_equal(holders[0].operation, "slice");
    assert_non_null(strstr(holders[0].tag, "test_profile.c:"));
    assert_int_equal(holders[0].ndim, 1);
    assert_int_equal(holders[0].shape[0], 3);
    assert_int_equal(holders[0].strides[0], 12);
    assert_int_equal(holders[0].offset_bytes, 8);
    assert_int_equal(holders[0].dtype, STK_I32);
    copy = view; /* a copy of the struct, counted afterwards */
    stk_tensor_retain(&copy);
    assert_int_equal(stk_storage_holders(base.storage, holders, 8), 2);
    assert_int_equal(holders[0].references, 2);
    stk_tensor_release(&view);
    assert_int_equal(stk_storage_holders(copy.storage, holders, 8), 2);
    stk_tensor_release(&base);
    assert_int_equal(stk_storage_holders(copy.storage, holders, 8), 1);
    assert_string_equal(holders[0].operation, "slice");
    stk_storage_retain(copy.storage); /* not held by a tensor, so only the reference count shows it */
    assert_int_equal(stk_storage_holders(copy.storage, holders, 8), 1);
    assert_int_equal(stk_storage_refs(copy.storage), 2);
    stk_storage_release(copy.storage);
    holders[0].operation = "untouched";
    assert_int_equal(stk_storage_holders(copy.storage, holders, 0), 1);
    assert_string_equal(holders[0].operation, "untouched");
    stk_tensor_release(&copy);
    stk_memory_record_stop();
}

/* Every kind of view is listed as a holder with its final geometry, and disappears when it is released. */
static void test_every_view_is_a_holder(void **unused)
{
    stk_tensor base, views[16];
    stk_holder holders[32];
    stk_error err;
    int count = 0;

    (void)unused;
    stk_memory_record_start();
    assert_ok(stk_tensor_zeros(STK_F32, 3, (const int64_t[]){2, 1, 6}, NULL, &base, &err));
    assert_ok(stk_tensor_slice(&base, 2, 1, 5, 2, &views[count++], &err));
    assert_ok(stk_tensor_narrow(&base, 2, 1, 3, &views[count++], &err));
    assert_ok(stk_tensor_select(&base, 2, 4, &views[count++], &err));
    assert_ok(stk_tensor_flip(&base, 0, &views[count++], &err));
    assert_ok(stk_tensor_transpose(&base, 0, 2, &views[count++], &err));
    assert_ok(stk_tensor_permute(&base, (const int[]){2, 0, 1}, &views[count++], &err));
    assert_ok(stk_tensor_squeeze(&base, 1, &views[count++], &err));
    assert_ok(stk_tensor_squeeze_all(&base, &views[count++], &err));
    assert_ok(stk_tensor_unsqueeze(&base, 1, &views[count++], &err));
    assert_ok(stk_tensor_view(&base, 2, (const int64_t[]){3, 4}, &views[count++], &err));
    assert_ok(stk_tensor_expand(&base, 3, (const int64_t[]){2, 5, 6}, &views[count++], &err));
    assert_ok(stk_tensor_diagonal(&base, 1, 0, 2, &views[count++], &err));
    assert_ok(stk_tensor_from_storage(base.storage, 4, STK_U8, 1, (const int64_t[]){3}, NULL, &views[count++], &err));
    assert_int_equal(stk_storage_holders(base.storage, holders, 32), count + 1);
    for (int i = 0; i < count; i++) {
        const stk_holder *holder = &holders[count - 1 - i]; /* newest first */
        assert_int_equal(holder->ndim, views[i].ndim);
        assert_int_equal(holder->dtype, views[i].dtype);
        assert_int_equal(holder->offset_bytes, stk_tensor_offset_bytes(&views[i]));
        for (int axis = 0; axis < views[i].ndim; axis++) {
            assert_int_equal(holder->shape[axis], views[i].shape[axis]);
            assert_int_equal(holder->strides[axis], views[i].strides[axis]);
        }
        stk_tensor_release(&views[i]);
    }
    assert_int_equal(stk_storage_holders(base.storage, holders, 32), 1);
    stk_tensor_release(&base);
    stk_memory_record_stop();
}

static int frees;

static void count_free(void *context)
{
    (void)context;
    frees++;
}

static void test_leaks(void **unused)
{
    static float memory[4];
    stk_tensor before = zeros(NULL, 3), kept, view, wrapped;
    char *text;
    int64_t count;
    stk_error err;

    (void)unused;
    assert_ok(stk_memory_leaks(&text, &count, &err)); /* nothing is being recorded */
    assert_int_equal(count, 0);
    assert_string_equal(text, "");
    stk_text_free(text);
    stk_memory_record_start();
    kept = zeros(NULL, 1000);
    assert_ok(stk_tensor_transpose(&kept, 0, 0, &view, &err));
    assert_ok(stk_tensor_wrap(memory, STK_F32, 1, (const int64_t[]){4}, NULL, count_free, NULL, &wrapped, &err));
    stk_tensor_release(&before); /* created before the recording, so it is not listed */
    assert_ok(stk_memory_leaks(&text, &count, &err));
    assert_int_equal(count, 2);
    assert_non_null(strstr(text, "3.91 KiB on cpu, by zeros, 2 references\n"));
    assert_non_null(strstr(text, "    held as f32 [1000], by transpose\n"));
    assert_non_null(strstr(text, "16 on cpu (external memory), by wrap, 1 references\n"));
    stk_text_free(text);
    stk_tensor_release(&kept);
    stk_tensor_release(&wrapped);
    assert_ok(stk_memory_leaks(&text, &count, &err));
    assert_int_equal(count, 1);
    assert_null(strstr(text, "external memory"));
    stk_text_free(text);
    stk_memory_record_stop(); /* while the view exists */
    assert_int_equal(stk_storage_holders(view.storage, NULL, 0), 0);
    stk_memory_record_start(); /* a new recording does not contain it */
    assert_ok(stk_memory_leaks(&text, &count, &err));
    assert_int_equal(count, 0);
    stk_text_free(text);
    stk_tensor_release(&view);
    stk_memory_record_stop();
    assert_int_equal(frees, 1);
}

static void test_tags_nest(void **unused)
{
    char long_tag[200];
    stk_holder holder;
    stk_tensor tensor;

    (void)unused;
    memset(long_tag, 'x', sizeof long_tag - 1);
    long_tag[sizeof long_tag - 1] = '\0';
    stk_memory_record_start();
    stk_tag_pop(); /* an unmatched pop does nothing */
    stk_tag_push("outer");
    for (int i = 0; i < 20; i++)
        stk_tag_push("inner");
    for (int i = 0; i < 20; i++)
        stk_tag_pop();
    tensor = zeros(NULL, 1);
    assert_int_equal(stk_storage_holders(tensor.storage, &holder, 1), 1);
    assert_string_equal(holder.tag, "outer");
    stk_tensor_release(&tensor);
    stk_tag_push(long_tag);
    tensor = zeros(NULL, 1);
    assert_int_equal(stk_storage_holders(tensor.storage, &holder, 1), 1);
    assert_int_equal(strlen(holder.tag), 63);
    stk_tensor_release(&tensor);
    stk_tag_pop();
    stk_tag_push(NULL);
    tensor = zeros(NULL, 1);
    assert_int_equal(stk_storage_holders(tensor.storage, &holder, 1), 1);
    assert_string_equal(holder.tag, "");
    stk_tensor_release(&tensor);
    stk_tag_pop();
    stk_tag_pop();
    stk_memory_record_stop();
}

static void test_snapshot(void **unused)
{
    stk_tensor kept, view;
    json_t *root, *storages, *storage, *holder;
    json_error_t where;
    char *text;
    stk_error err;

    (void)unused;
    stk_memory_record_start();
    stk_profile_start();
    stk_profile_reset();
    stk_tag_push("say \"hi\"\n\\ \x01 \xc3\xa4 \xff");
    kept = zeros(NULL, 100);
    stk_tag_pop();
    assert_ok(stk_tensor_flip(&kept, 0, &view, &err));
    assert_ok(stk_memory_snapshot(&text, &err));
    stk_profile_stop();
    root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    if (!root)
        fail_msg("line %d: %s\n%s", where.line, where.text, text);
    assert_int_equal(json_integer_value(json_object_get(root, "schema")), 1);
    assert_true(json_is_true(json_object_get(root, "recording")));
    assert_true(json_array_size(json_object_get(root, "memory")) >= 3);
    assert_true(json_array_size(json_object_get(root, "operations")) >= 2);
    storages = json_object_get(root, "storages");
    assert_int_equal(json_array_size(storages), 1);
    storage = json_array_get(storages, 0);
    assert_int_equal(json_integer_value(json_object_get(storage, "bytes")), 400);
    assert_int_equal(json_integer_value(json_object_get(storage, "references")), 2);
    assert_string_equal(json_string_value(json_object_get(storage, "operation")), "zeros");
    assert_string_equal(json_string_value(json_object_get(storage, "tag")),
                        "say \"hi\"\n\\ \x01 \xc3\xa4 \xef\xbf\xbd");
    assert_int_equal(json_array_size(json_object_get(storage, "holders")), 2);
    holder = json_array_get(json_object_get(storage, "holders"), 0);
    assert_string_equal(json_string_value(json_object_get(holder, "operation")), "flip");
    assert_int_equal(json_integer_value(json_object_get(holder, "offset_bytes")), 396);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(holder, "strides_bytes"), 0)), -4);
    json_decref(root);
    stk_text_free(text);
    stk_memory_record_stop();
    assert_ok(stk_memory_snapshot(&text, &err));
    root = json_loads(text, 0, &where);
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "storages")), 0);
    json_decref(root);
    stk_text_free(text);
    stk_tensor_release(&view);
    stk_tensor_release(&kept);
}

/* If there is no memory for a record, the operation succeeds and the report mentions the loss. */
static void test_failing_allocations(void **unused)
{
    stki_memory_stats before, after;
    stk_error err;

    (void)unused;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; n <= 6; n++) {
        stk_tensor tensor = {0}, view = {0};
        int64_t leaks = 0, size = 1000; /* large enough that storage and memory are separate blocks */
        char *text = NULL;
        stk_status status;
        stk_memory_record_start();
        stki_memory_fail_at(n); /* storage, its memory, its record, the holder, the view's holder */
        status = stk_tensor_empty(STK_F32, 1, &size, NULL, &tensor, &err);
        if (!status)
            assert_ok(stk_tensor_flip(&tensor, 0, &view, &err));
        stki_memory_fail_at(0);
        assert_int_equal(status, n <= 2 ? STK_E_MEMORY : STK_OK);
        assert_ok(stk_memory_leaks(&text, &leaks, &err));
        assert_int_equal(strstr(text, "for lack of memory") != NULL, n >= 3 && n <= 5);
        stk_text_free(text);
        stk_tensor_release(&view);
        stk_tensor_release(&tensor);
        stk_memory_record_stop();
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    for (int kind = 0; kind < 4; kind++) {
        stk_status status = STK_E_MEMORY;
        int64_t leaks;
        for (int64_t n = 1; status; n++) {
            char *text = NULL;
            stki_memory_fail_at(n);
            status = kind == 0   ? stk_memory_summary(&text, &err)
                     : kind == 1 ? stk_profile_summary(STK_PROFILE_BY_TIME, &text, &err)
                     : kind == 2 ? stk_memory_leaks(&text, &leaks, &err)
                                 : stk_memory_snapshot(&text, &err);
            stki_memory_fail_at(0);
            assert_true(status == STK_OK || status == STK_E_MEMORY);
            stk_text_free(text);
            stki_memory_read(STKI_MEM_HOST, &after);
            assert_int_equal(after.blocks, before.blocks);
        }
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 400 };

static void *make_and_drop(void *context)
{
    const stk_tensor *shared = context;

    for (int i = 0; i < ROUNDS; i++) {
        stk_tensor own, view, other;
        stk_holder holders[4];
        int64_t size = 16;
        stk_tag_push("thread");
        if (stk_tensor_zeros(STK_F32, 1, &size, NULL, &own, NULL) != STK_OK)
            abort();
        stk_tag_pop();
        if (stk_tensor_flip(&own, 0, &view, NULL) != STK_OK || stk_tensor_flip(shared, 0, &other, NULL) != STK_OK)
            abort();
        (void)stk_storage_holders(shared->storage, holders, 4);
        stk_tensor_release(&own);
        stk_tensor_release(&other);
        stk_tensor_release(&view);
    }
    return NULL;
}

static void *switch_on_and_off(void *context)
{
    (void)context;
    for (int i = 0; i < ROUNDS / 4; i++) {
        char *text = NULL;
        int64_t count;
        stk_memory_record_start();
        stk_profile_start();
        if (stk_memory_leaks(&text, &count, NULL) == STK_OK)
            stk_text_free(text);
        if (stk_memory_snapshot(&text, NULL) == STK_OK)
            stk_text_free(text);
        stk_profile_stop();
        stk_memory_record_stop();
    }
    return NULL;
}

static void test_threads(void **unused)
{
    pthread_t threads[THREADS + 1];
    stk_tensor shared;
    stk_holder holder;

    (void)unused;
    for (int keep = 0; keep < 2; keep++) {
        stk_memory_record_start();
        shared = zeros(NULL, 8);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, make_and_drop, &shared), 0);
        if (keep == 0)
            assert_int_equal(pthread_create(&threads[THREADS], NULL, switch_on_and_off, NULL), 0);
        for (int i = 0; i < THREADS + (keep == 0); i++)
            pthread_join(threads[i], NULL);
        assert_int_equal(stk_storage_refs(shared.storage), 1);
        if (keep)
            assert_int_equal(stk_storage_holders(shared.storage, &holder, 1), 1);
        stk_tensor_release(&shared);
        stk_memory_record_stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accounting),
        cmocka_unit_test(test_memory_summary),
        cmocka_unit_test(test_nested_operations),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_profile_summary),
        cmocka_unit_test(test_holders),
        cmocka_unit_test(test_every_view_is_a_holder),
        cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_tags_nest),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
