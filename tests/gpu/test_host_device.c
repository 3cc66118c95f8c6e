/* stki-threads */
/* Tests of the host device through its device table, and of errors for devices that do not exist. */
#include "allocate.h"
#include "convert.h"
#include "faults.h"
#include "host_device.h"
#include "host_faults.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include <inttypes.h>
#include <stoker/stoker.h>

static stk_device *host(void)
{
    stk_device *device = NULL;
    stk_error err;

    assert_ok(stk_device_find("host", &device, &err));
    return device;
}

/* ---- names ---- */

static void devices_are_found_by_name(void **state)
{
    stk_device *first = NULL, *same = NULL, *second = NULL;
    stk_error err;

    (void)state;
    assert_ok(stk_device_find("host", &first, &err));
    assert_ok(stk_device_find("host:0", &same, &err));
    assert_ok(stk_device_find("host:1", &second, &err));
    assert_ptr_equal(first, same);
    assert_ptr_not_equal(first, second);
    assert_string_equal(stk_device_name(first), "host");
    assert_string_equal(stk_device_name(second), "host:1");
    assert_int_equal(stk_device_index(second), 1);
    assert_int_equal(stk_device_get_kind(second), STK_DEVICE_HOST);
    assert_ok(stk_device_find("host:7", &second, &err));
}

static void unknown_names_are_rejected(void **state)
{
    static const char *names[] = {"host:8", "host:", "host:x", "host:12", "host:-1"};
    stk_device *device = NULL;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_status(stk_device_find(names[i], &device, &err), STK_E_DEVICE);
        assert_says(names[i]);
        assert_says("host:7");
        assert_null(device);
    }
    assert_status(stk_device_find("hosts", &device, &err), STK_E_DEVICE);
    assert_says("hosts");
    assert_says("host"); /* lists the devices */
}

/* Rows F12 and W83 (libffcv/ffcv#148): without a GPU, the call immediately returns a clear status. */
static void a_missing_gpu_gives_a_clear_status(void **state)
{
    stk_device *device = NULL;
    stk_error err = {0};

    (void)state;
    if (stk_cuda_device_count(&err) > 0)
        skip();
    assert_true(err.message[0] != 0);
    assert_status(stk_device_find("cuda:0", &device, &err), STK_E_DEVICE);
    assert_null(device);
    assert_says("cuda");
    assert_status(stk_device_find("cuda", &device, &err), STK_E_DEVICE);
    assert_ok(stk_device_find("host", &device, &err)); /* the other devices still work */
}

static void properties_are_those_of_the_machine(void **state)
{
    stk_device_properties all = {.struct_size = sizeof all};
    struct {
        uint32_t struct_size;
        char model[16];
        char beyond[16];
    } few = {.struct_size = 20};
    stk_error err;

    (void)state;
    assert_ok(stk_device_get_properties(host(), &all, &err));
    assert_true(all.model[0] != 0);
    assert_true(all.total_bytes > 0 && all.free_bytes > 0 && all.free_bytes <= all.total_bytes);
    assert_true(all.processors >= 1 && all.pins);
    assert_int_equal(all.driver_version, 0);
    memset(few.beyond, '#', sizeof few.beyond);
    assert_ok(stk_device_get_properties(host(), (stk_device_properties *)(void *)&few, &err));
    assert_int_equal(few.beyond[0], '#'); /* a program built for an older version gets only the members that it knows */
}

/* ---- memory ---- */

static int64_t counted(enum stki_memory_kind kind)
{
    stki_memory_stats stats;

    stki_memory_read(kind, &stats);
    return stats.bytes;
}

static int64_t allocated(stk_device *device)
{
    stk_device_memory_stats stats = {.struct_size = sizeof stats};
    stk_error err;

    assert_ok(stk_device_get_memory_stats(device, STK_MEMORY_DEVICE, &stats, &err));
    return stats.allocated_bytes;
}

static void memory_is_counted_by_kind(void **state)
{
    static const int64_t sizes[] = {0, 1, 4097, 5 << 20};
    stk_device *device = host();
    void *block = NULL, *pinned = NULL;
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t on_device = counted(STKI_MEM_DEVICE), of_pinned = counted(STKI_MEM_PINNED);
        assert_ok(device->ops->alloc(device, sizes[i], &block, &err));
        assert_ok(device->ops->alloc_pinned(device, sizes[i], &pinned, &err));
        assert_int_equal((uintptr_t)block % 256, 0);
        assert_int_equal((uintptr_t)pinned % 4096, 0);
        memset(block, 1, (size_t)sizes[i]); /* ordinary memory */
        memset(pinned, 1, (size_t)sizes[i]);
        assert_int_equal(counted(STKI_MEM_DEVICE), on_device + sizes[i]);
        assert_int_equal(counted(STKI_MEM_PINNED), of_pinned + sizes[i]);
        device->ops->free(device, block, sizes[i]);
        device->ops->free_pinned(device, pinned, sizes[i]);
        assert_int_equal(counted(STKI_MEM_DEVICE), on_device);
        assert_int_equal(counted(STKI_MEM_PINNED), of_pinned);
    }
    device->ops->free(device, NULL, 0);
    device->ops->free_pinned(device, NULL, 0);
}

static void each_device_has_its_own_count(void **state)
{
    stk_device *device = host(), *other = NULL;
    stk_tensor t;
    int64_t before, elsewhere;
    stk_error err;

    (void)state;
    assert_ok(stk_device_find("host:1", &other, &err));
    before = allocated(device);
    elsewhere = allocated(other);
    assert_ok(stk_tensor_empty(STK_F32, 2, (int64_t[]){100, 10}, device, &t, &err));
    assert_true(allocated(device) >= before + 4000);
    assert_int_equal(allocated(other), elsewhere);
    stk_tensor_release(&t);
    assert_int_equal(allocated(device), before);
}

static void no_memory_is_an_error_that_names_the_device(void **state)
{
    stk_device *device = host();
    int64_t before = counted(STKI_MEM_DEVICE);
    void *block = NULL;
    stk_error err;

    (void)state;
    stki_memory_fail_at(1);
    assert_status(device->ops->alloc(device, 100, &block, &err), STK_E_MEMORY);
    assert_says("host");
    stki_memory_fail_at(1);
    assert_status(device->ops->alloc_pinned(device, 100, &block, &err), STK_E_MEMORY);
    assert_status(device->ops->alloc(device, INT64_MAX, &block, &err), STK_E_MEMORY);
    stki_memory_fail_at(0);
    assert_int_equal(counted(STKI_MEM_DEVICE), before);
}

/* Memory that a stream still writes is neither reused nor freed, and nothing waits for it. */
static void freed_memory_stays_with_its_stream(void **state)
{
    stk_device *device = host();
    stk_stream *stream = NULL;
    stk_tensor t, other;
    static char src[3 << 20];
    void *address;
    stk_error err;

    (void)state;
    assert_ok(stk_stream_create(device, &stream, &err));
    stk_stream_set_current(device, stream);
    assert_ok(stk_tensor_empty(STK_U8, 1, (int64_t[]){sizeof src}, device, &t, &err));
    address = t.data;
    stkt_host_set_faults(device, stream, &(stkt_host_faults){.delay_ns = STKT_HOST_HOLD});
    assert_ok(device->ops->copy(device, t.data, true, src, false, sizeof src, stream, &err));
    stk_tensor_release(&t);
    stk_stream_set_current(device, NULL);
    assert_ok(stk_device_empty_cache(device, &err));
    assert_ok(stk_tensor_empty(STK_U8, 1, (int64_t[]){sizeof src}, device, &other, &err));
    assert_ptr_not_equal(other.data, address);
    stk_tensor_release(&other);
    stkt_host_set_faults(device, stream, NULL);
    assert_ok(
        stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err)); /* AddressSanitizer detects writes to freed memory */
    stk_stream_destroy(stream);
    assert_ok(stk_device_empty_cache(device, &err));
}

/* ---- operations ---- */

static void fills_of_every_width(void **state)
{
    stk_device *device = host();
    stk_stream *stream = NULL;
    stk_error err;

    (void)state;
    assert_ok(stk_stream_create(device, &stream, &err));
    for (int width = 1; width <= 16; width++) {
        for (int64_t count = 0; count < 40; count += 13) {
            char pattern[16], at[16 * 40 + 1];
            for (int i = 0; i < width; i++)
                pattern[i] = (char)(i + 1);
            memset(at, '#', sizeof at);
            assert_ok(device->ops->fill(device, at, pattern, width, count, stream, &err));
            memset(pattern, 0, sizeof pattern); /* the pattern was copied */
            assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
            for (int64_t i = 0; i < width * count; i++)
                assert_int_equal(at[i], i % width + 1);
            assert_int_equal(at[width * count], '#');
        }
    }
    stk_stream_destroy(stream);
}

static void strided_copies_equal_those_of_the_cpu(void **state)
{
    stk_device *device = host();
    stk_stream *stream = NULL;
    float src[4][5][3], got[3][5][4], expected[3][5][4];
    int64_t shape[3] = {3, 5, 4}, from[3] = {-4, 12, 60}, to[3] = {80, 16, 4};
    stk_tensor a, b;
    stk_error err;

    (void)state;
    for (int i = 0; i < 60; i++)
        ((float *)src)[i] = (float)i - 20.5F;
    assert_ok(stk_stream_create(device, &stream, &err));
    assert_ok(stk_tensor_borrow(&src[0][0][2], STK_F32, 3, shape, from, &a, &err));
    assert_ok(stk_tensor_borrow(got, STK_I32, 3, shape, to, &b, &err));
    stki_copy_strided(expected, STK_I32, to, &src[0][0][2], STK_F32, from, false, 3, shape);
    for (int streamed = 0; streamed < 2; streamed++) {
        memset(got, 0, sizeof got);
        assert_ok(device->ops->copy_strided(device, &b, &a, streamed ? stream : NULL, &err));
        assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
        assert_memory_equal(got, expected, sizeof got);
    }
    stk_stream_destroy(stream);
}

/* HWC bytes to CHW floats, scaled and shifted per channel, as loaders do with images. */
static void a_plan_is_run_over_samples_in_a_stream(void **state)
{
    enum { SAMPLES = 5, PIXELS = 6 };
    static const float scale[3] = {0.5F, 2, 3}, shift[3] = {1, -1, 0};
    stki_convert_desc desc = {.src_dtype = STK_U8,
                              .dst_dtype = STK_F32,
                              .ndim = 2,
                              .shape = {3, PIXELS},
                              .src_strides = {1, 3},
                              .dst_strides = {4 * PIXELS, 4},
                              .affine = true,
                              .channels = 3,
                              .a = scale,
                              .b = shift};
    stk_device *device = host();
    stki_convert *convert = NULL;
    stk_stream *stream = NULL;
    unsigned char src[SAMPLES][PIXELS][3];
    float dst[SAMPLES][3][PIXELS];
    stk_error err;

    (void)state;
    for (int i = 0; i < SAMPLES * PIXELS * 3; i++)
        ((unsigned char *)src)[i] = (unsigned char)(i * 11);
    assert_ok(stki_convert_create(&desc, &convert, &err));
    assert_ok(stk_stream_create(device, &stream, &err));
    for (int count = 0; count <= SAMPLES; count += SAMPLES) {
        memset(dst, 0, sizeof dst);
        assert_ok(device->ops->convert(device, convert, dst, sizeof dst[0], src, sizeof src[0], count, stream, &err));
        assert_ok(stk_stream_synchronize(stream, STK_WAIT_FOREVER, &err));
        for (int i = 0; i < SAMPLES; i++)
            for (int c = 0; c < 3; c++)
                for (int p = 0; p < PIXELS; p++)
                    assert_true(dst[i][c][p] == (i < count ? (float)src[i][p][c] * scale[c] + shift[c] : 0));
    }
    stk_stream_destroy(stream);
    stki_convert_destroy(convert);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_found_by_name),
        cmocka_unit_test(unknown_names_are_rejected),
        cmocka_unit_test(a_missing_gpu_gives_a_clear_status),
        cmocka_unit_test(properties_are_those_of_the_machine),
        cmocka_unit_test(memory_is_counted_by_kind),
        cmocka_unit_test(each_device_has_its_own_count),
        cmocka_unit_test(no_memory_is_an_error_that_names_the_device),
        cmocka_unit_test(freed_memory_stays_with_its_stream),
        cmocka_unit_test(fills_of_every_width),
        cmocka_unit_test(strided_copies_equal_those_of_the_cpu),
        cmocka_unit_test(a_plan_is_run_over_samples_in_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
