/* Requests a GPU on a machine that may have none (rows F12 and W83): the result is a device or a status that says what
 * is missing, immediately and the same each time. Loading the library must not have called CUDA. */
#include "stk_test.h"
#include <stoker/device.h>

static stk_error err;

static void a_gpu_or_a_reason(void **state)
{
    stk_device *device = NULL;

    (void)state;
    for (int i = 0; i < 2; i++) {
        int count = stk_cuda_device_count(&err);
        stk_status status;

        if (count == 0)
            assert_says("cuda: ");
        status = stk_device_find("cuda", &device, &err);
        if (count > 0) {
            assert_ok(status);
            assert_string_equal(stk_device_name(device), "cuda:0");
        } else {
            assert_int_equal(status, STK_E_DEVICE);
            assert_null(device);
            assert_says("cuda: ");
            if (i == 0)
                printf("%s\n", err.message);
        }
    }
}

static void no_gpu_is_visible(void **state)
{
    stk_device *device = NULL;

    (void)state;
    if (stk_cuda_device_count(&err) > 0) /* the driver has already read the variable */
        return;
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_status(stk_device_find("cuda:0", &device, &err), STK_E_DEVICE);
    assert_null(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_gpu_or_a_reason), cmocka_unit_test(no_gpu_is_visible)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
