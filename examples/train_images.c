/* train_images.c: trains on the images of any config: softmax regression on the pixels of the field "image" (f32) with
 * the classes of the field "label".
 *     train_images CONFIG.yaml CLASSES [EPOCHS]
 *
 * New in this example: everything about the data is in the config (docs/guides/imagenet.md creates one), and the
 * program gets the number of values per row from the batch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>

static const float RATE = 0.001f;

typedef struct softmax_model {
    int64_t pixels, classes;
    float *weights;  /* [classes][pixels], then [classes] of bias */
    float *gradient; /* the same */
    float *scores;   /* [classes] */
} softmax_model;

static void must(stk_status status, const stk_error *err)
{
    if (status < 0) {
        fprintf(stderr, "train_images: %s\n", err->message);
        exit(1);
    }
}

static void expect(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "train_images: %s\n", what);
        exit(1);
    }
}

/* ---- the model ---- */

static void model_make(softmax_model *model, int64_t pixels, int64_t classes)
{
    model->pixels = pixels;
    model->classes = classes;
    model->weights = calloc((size_t)(classes * (pixels + 1)), sizeof(float));
    model->gradient = calloc((size_t)(classes * (pixels + 1)), sizeof(float));
    model->scores = calloc((size_t)classes, sizeof(float));
    expect(model->weights && model->gradient && model->scores, "out of memory");
}

static void model_free(softmax_model *model)
{
    free(model->weights);
    free(model->gradient);
    free(model->scores);
}

/* Computes the probabilities of the classes for one image, and returns the class with the highest one. */
static int64_t predict(const softmax_model *model, const float *image)
{
    const float *bias = model->weights + model->classes * model->pixels;
    float sum = 0;
    int64_t best = 0;

    for (int64_t c = 0; c < model->classes; c++) {
        model->scores[c] = bias[c];
        for (int64_t p = 0; p < model->pixels; p++)
            model->scores[c] += model->weights[c * model->pixels + p] * image[p];
        best = model->scores[c] > model->scores[best] ? c : best;
    }
    const float top = model->scores[best];
    for (int64_t c = 0; c < model->classes; c++)
        sum += model->scores[c] = expf(model->scores[c] - top);
    for (int64_t c = 0; c < model->classes; c++)
        model->scores[c] /= sum;
    return best;
}

static void add_gradient(const softmax_model *model, const float *image, int64_t label)
{
    model->scores[label] -= 1;
    for (int64_t c = 0; c < model->classes; c++) {
        for (int64_t p = 0; p < model->pixels; p++)
            model->gradient[c * model->pixels + p] += model->scores[c] * image[p];
        model->gradient[model->classes * model->pixels + c] += model->scores[c];
    }
}

static void step(const softmax_model *model, int64_t rows)
{
    for (int64_t i = 0; i < model->classes * (model->pixels + 1); i++) {
        model->weights[i] -= RATE * model->gradient[i] / (float)rows;
        model->gradient[i] = 0;
    }
}

/* ---- the loop ---- */

typedef struct tally {
    double loss;
    int64_t right, seen;
} tally;

static void train_on(softmax_model *model, const stk_batch *batch, int64_t classes, tally *sums)
{
    stk_tensor image, label;
    stk_error err;
    const int64_t rows = stk_batch_rows(batch);

    must(stk_batch_tensor(batch, "image", &image, &err), &err);
    must(stk_batch_tensor(batch, "label", &label, &err), &err);
    expect(image.dtype == STK_F32 && stk_tensor_is_contiguous(&image) && label.dtype == STK_I64,
           "expected f32 images, and labels with dtype: i64");
    if (rows == 0)
        return;
    if (!model->weights)
        model_make(model, stk_tensor_numel(&image) / rows, classes);
    for (int64_t i = 0; i < rows; i++) {
        const float *pixels = (const float *)image.data + i * model->pixels;
        const int64_t class = ((const int64_t *)label.data)[i];

        expect(class >= 0 && class < classes, "a label is not below CLASSES");
        sums->right += predict(model, pixels) == class;
        sums->loss -= log((double)model->scores[class] + 1e-30);
        add_gradient(model, pixels, class);
    }
    step(model, rows);
    sums->seen += rows;
}

int main(int argc, char **argv)
{
    const char *set[] = {argc > 3 ? argv[3] : ""};
    char epochs[64];
    softmax_model model = {0};
    tally sums = {0};
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;
    stk_error err;

    if (argc < 3) {
        fprintf(stderr, "usage: train_images CONFIG.yaml CLASSES [EPOCHS]\n");
        return 2;
    }
    snprintf(epochs, sizeof epochs, "loader.num_epochs=%s", set[0]);
    set[0] = epochs;
    must(stk_loader_open_file(argv[1], set, argc > 3, &loader, &err), &err);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        const int64_t epoch = stk_batch_epoch(batch);
        const bool last = stk_batch_last_of_epoch(batch);

        train_on(&model, batch, atoll(argv[2]), &sums);
        stk_batch_release(batch);
        if (last) {
            printf("epoch %lld: %lld images, loss %.4f, accuracy %.1f %%\n", (long long)epoch + 1, (long long)sums.seen,
                   sums.loss / (double)sums.seen, 100 * (double)sums.right / (double)sums.seen);
            sums = (tally){0};
        }
    }
    must(status, &err);
    stk_loader_destroy(loader);
    model_free(&model);
    return 0;
}
