/* first_batch.c: opens a config and prints information about its first batch.
 *     first_batch configs/digits.yaml
 */
#include <stdio.h>
#include <stoker/stoker.h>

int main(int argc, char **argv)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_tensor images;
    stk_error err;

    if (stk_loader_open_file(argc > 1 ? argv[1] : "configs/digits.yaml", NULL, 0, &loader, &err) != STK_OK ||
        stk_loader_next(loader, &batch, &err) != STK_OK || stk_batch_tensor(batch, "image", &images, &err) != STK_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("%lld images of %s, the first is sample %lld\n", (long long)images.shape[0], stk_dtype_name(images.dtype),
           (long long)stk_batch_indices(batch)[0]);
    stk_batch_release(batch);
    stk_loader_destroy(loader);
    return 0;
}
