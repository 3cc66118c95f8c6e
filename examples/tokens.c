/* tokens.c: reads llm.c token shards as batches for next-token prediction.
 *     tokens SHARD.bin …
 * A row has T + 1 tokens; `inputs` and `targets` are two views of it. Windows never cross the end of a shard, and begin
 * at a different offset in each epoch. */
#include <stdio.h>
#include <stoker/stoker.h>

enum { T = 64, BATCH = 8, EPOCHS = 2 };

int main(int argc, char **argv)
{
    char window[96];
    stk_field_opts tokens = STK_FIELD_OPTS_INIT;
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    stk_status status;

    if (argc < 2) {
        fprintf(stderr, "usage: tokens SHARD.bin ...\n");
        return 2;
    }
    snprintf(window, sizeof window, "{window: {length: %d, stride: %d, offsets: shifted}}", T + 1, T);
    tokens.name = "tokens";
    tokens.paths = (const char *const *)(argv + 1);
    tokens.path_count = (uint32_t)(argc - 1);
    tokens.source = window;
    tokens.dtype = STK_I32;
    tokens.views = "{inputs: [0, -1], targets: [1, null]}";
    opts.fields = &tokens;
    opts.field_count = 1;
    opts.order = STK_ORDER_RANDOM;
    opts.batch_size = BATCH;
    opts.num_epochs = EPOCHS;
    status = stk_loader_open(&opts, &loader, &err);
    while (status == STK_OK && (status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor inputs, targets; /* [rows, T] each, over the same bytes */

        if (stk_batch_tensor(batch, "inputs", &inputs, &err) != STK_OK ||
            stk_batch_tensor(batch, "targets", &targets, &err) != STK_OK)
            return 1;
        if (stk_batch_step(batch) == 0)
            printf("epoch %lld: %lld windows of %lld, the first %d predicts %d\n", (long long)stk_batch_epoch(batch),
                   (long long)stk_loader_samples(loader), (long long)inputs.shape[1], *(const int32_t *)inputs.data,
                   *(const int32_t *)targets.data);
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fprintf(stderr, "%s\n", err.message);
    if (status != STK_END)
        return 1;
    stk_loader_destroy(loader);
    return 0;
}
