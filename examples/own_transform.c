/* own_transform.c: a transform written as a C function. It adds noise to generated images. The noise is different for
 * each sample and epoch, and the same for any number of workers. */
#include <stdio.h>
#include <stoker/stoker.h>

/* The result is f32 and has the shape of the input. */
static stk_status noise_shape(void *context, const stk_tensor *in, stk_tensor *out, stk_error *err)
{
    (void)context, (void)in, (void)err;
    out->dtype = STK_F32;
    return STK_OK;
}

/* Workers call this concurrently, each with its own sample. The noise depends only on `random`. */
static stk_status noise_run(void *context, const stk_transform_call *call, const stk_tensor *in, stk_tensor *out,
                            stk_error *err)
{
    const float strength = *(const float *)context;
    const unsigned char *from = in->data; /* the source's samples are u8 and contiguous */
    float *to = out->data;
    uint64_t state = call->random;

    (void)err;
    for (int64_t i = 0; i < stk_tensor_numel(in); i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        to[i] = (float)from[i] / 255.0f + strength * ((float)(state >> 40) / 16777216.0f - 0.5f);
    }
    return STK_OK;
}

int main(void)
{
    static const char config[] =
        "dataset: {fields: {image: {synthetic: {count: 64, shape: [8, 8, 3]}, source: {layout: "
        "nhwc}, layout: nchw, transforms: [{call: noise}, {random_horizontal_flip: {}}]}}}\n"
        "loader: {batch_size: 16, num_workers: 2, num_epochs: 2, seed: 1}";
    float strength = 0.1f;
    stk_transform noise = STK_TRANSFORM_INIT;
    stk_loader *loader = NULL;
    stk_batch *batch;
    stk_error err;
    stk_status status;

    noise.name = "noise";
    noise.shape = noise_shape;
    noise.run = noise_run;
    noise.context = &strength;
    status = stk_transform_register(&noise, &err);
    if (status == STK_OK)
        status = stk_loader_open_text(config, NULL, NULL, 0, &loader, &err);
    while (status == STK_OK && (status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor images;

        if (stk_batch_step(batch) == 0 && stk_batch_tensor(batch, "image", &images, NULL) == STK_OK)
            printf("epoch %d begins with %.6f\n", (int)stk_batch_epoch(batch), (double)*(const float *)images.data);
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    if (status == STK_END)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
