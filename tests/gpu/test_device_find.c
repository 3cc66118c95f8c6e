/* A statically linked program that refers only to stk_device_find must find all kinds of devices. They do not register
 * themselves, so the linker must find them through this function. */
#include "cmocka_all.h"
#include <stoker/device.h>
#include <string.h>

static void finds_host(void **state)
{
    stk_device *device = NULL;
    stk_error err;

    (void)state;
    assert_int_equal(stk_device_find("host", &device, &err), STK_OK);
    assert_non_null(device);
}

/* Without a GPU, the error gives the reason from the provider of cuda devices; it does not say that the name is
 * unknown. */
static void finds_cuda(void **state)
{
    stk_device *device = NULL;
    stk_error err;
    stk_status status = stk_device_find("cuda", &device, &err);

    (void)state;
    assert_true(status == STK_OK || status == STK_E_DEVICE);
    if (status == STK_E_DEVICE)
        assert_null(strstr(err.message, "there are:"));
}

static void lists_the_devices(void **state)
{
    stk_device *device = NULL;
    stk_error err;

    (void)state;
    assert_int_equal(stk_device_find("abacus", &device, &err), STK_E_DEVICE);
    assert_non_null(strstr(err.message, "cpu, host, cuda"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_host),
        cmocka_unit_test(finds_cuda),
        cmocka_unit_test(lists_the_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
