/* Row S02 (pytorch/pytorch#24090): an image of one pixel is both NCHW and NHWC, so its strides do not determine the
 * layout. The declared layouts must determine the shape of the batch. */
#include "loader_test.h"

static void batch_has(const char *source, const char *shape, const char *layout, const int64_t *expected)
{
    stk_loader *loader = NULL;
    stk_field_info info;
    stk_batch *batch;
    stk_tensor tensor;
    stk_error err;
    uint8_t bytes[6];

    assert_int_equal(
        stkt_open(&loader,
                  "{dataset: {fields: {image: {synthetic: {count: 2, shape: %s, seed: 3}, source: {layout: "
                  "%s}, layout: %s}}}, loader: {batch_size: 2, num_workers: 0}}",
                  shape, source, layout),
        STK_OK);
    assert_ok(stk_loader_field(loader, 0, &info, &err));
    assert_string_equal(info.layout, layout);
    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_ok(stk_batch_tensor(batch, "image", &tensor, &err));
    assert_int_equal(tensor.ndim, 4);
    for (int i = 0; i < 4; i++)
        assert_int_equal(tensor.shape[i], expected[i]);
    assert_true(stk_tensor_is_contiguous(&tensor)); /* always true for one pixel */
    assert_ok(stk_tensor_to_bytes(&tensor, bytes, sizeof bytes, &err));
    for (int i = 0; i < 6; i++) { /* the same values in any layout */
        static uint8_t first[6];
        static bool known;
        first[i] = known ? first[i] : bytes[i];
        assert_int_equal(bytes[i], first[i]);
        known = known || i == 5;
    }
    stk_batch_release(batch);
    stk_loader_destroy(loader);
}

static void test_one_pixel(void **unused)
{
    static const int64_t nchw[] = {2, 3, 1, 1}, nhwc[] = {2, 1, 1, 3};

    (void)unused;
    batch_has("nchw", "[3, 1, 1]", "nchw", nchw);
    batch_has("nchw", "[3, 1, 1]", "nhwc", nhwc);
    batch_has("nchw", "[3, 1, 1]", "channels_last", nchw);
    batch_has("nhwc", "[1, 1, 3]", "nhwc", nhwc);
    batch_has("nhwc", "[1, 1, 3]", "nchw", nchw);
    batch_has("nhwc", "[1, 1, 3]", "channels_last", nchw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_pixel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
