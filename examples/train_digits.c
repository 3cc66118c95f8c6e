/* train_digits.c: a complete training loop: softmax regression by stochastic gradient descent on 1,797 handwritten
 * digits.
 *     train_digits tests/data/digits_images.npy tests/data/digits_labels.npy [WORKERS]
 *
 * New in this example: options in C structs instead of a config file, two fields, a subset by `indices` (every fifth
 * sample is held out), and several epochs in one loop. Batches depend only on data, options and seed, so the printed
 * numbers are bit-identical for any number of workers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>

enum { PIXELS = 64, CLASSES = 10, EPOCHS = 30, BATCH = 32 };

static const float RATE = 0.5f;

typedef struct softmax_model {
    float weights[CLASSES][PIXELS];
    float bias[CLASSES];
} softmax_model;

typedef struct files {
    const char *images, *labels;
    int64_t workers;
} files;

static void must(stk_status status, const stk_error *err)
{
    if (status < 0) {
        fprintf(stderr, "train_digits: %s\n", err->message);
        exit(1);
    }
}

/* ---- data ---- */

static stk_loader *open_loader(const files *from, const int64_t *indices, int64_t count, stk_order order,
                               int64_t epochs)
{
    stk_field_opts fields[2] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;
    stk_error err;

    fields[0].name = "image";
    fields[0].paths = &from->images;
    fields[0].path_count = 1;
    fields[0].transforms = "[scale: 0.0625]"; /* u8 values 0 to 16 become f32 from 0 to 1 */
    fields[1].name = "label";
    fields[1].paths = &from->labels;
    fields[1].path_count = 1;
    opts.fields = fields;
    opts.field_count = 2;
    opts.batch_size = BATCH;
    opts.order = order;
    opts.seed = 1;
    opts.num_epochs = epochs;
    opts.num_workers = from->workers;
    opts.indices = indices;
    opts.index_count = count;
    must(stk_loader_open(&opts, &loader, &err), &err);
    return loader;
}

/* Returns the samples whose number modulo 5 is in [first, first + keep). */
static int64_t *of_every_five(int64_t samples, int64_t first, int64_t keep, int64_t *count)
{
    int64_t *indices = malloc((size_t)samples * sizeof *indices);

    if (!indices)
        exit(1);
    *count = 0;
    for (int64_t i = 0; i < samples; i++)
        if (i % 5 >= first && i % 5 < first + keep)
            indices[(*count)++] = i;
    return indices;
}

/* Returns the number of rows and the tensors of a batch: f32 [rows, 8, 8] and i64 [rows], both row-major, valid until
 * the batch is released. */
static int64_t look_at(const stk_batch *batch, const float **images, const int64_t **labels)
{
    stk_tensor image, label;
    stk_error err;

    must(stk_batch_tensor(batch, "image", &image, &err), &err);
    must(stk_batch_tensor(batch, "label", &label, &err), &err);
    if (image.dtype != STK_F32 || stk_tensor_numel(&image) != image.shape[0] * PIXELS || label.dtype != STK_I64) {
        fprintf(stderr, "train_digits: expected images of 64 values and i64 labels\n");
        exit(1);
    }
    *images = image.data;
    *labels = label.data;
    for (int64_t i = 0; i < label.shape[0]; i++) {
        if ((*labels)[i] < 0 || (*labels)[i] >= CLASSES) {
            fprintf(stderr, "train_digits: sample %lld has label %lld\n", (long long)stk_batch_indices(batch)[i],
                    (long long)(*labels)[i]);
            exit(1);
        }
    }
    return image.shape[0];
}

/* ---- the model ---- */

static void scores_of(const softmax_model *model, const float *image, float *scores)
{
    for (int c = 0; c < CLASSES; c++) {
        scores[c] = model->bias[c];
        for (int p = 0; p < PIXELS; p++)
            scores[c] += model->weights[c][p] * image[p];
    }
}

static int best_of(const float *scores)
{
    int best = 0;

    for (int c = 1; c < CLASSES; c++)
        best = scores[c] > scores[best] ? c : best;
    return best;
}

/* Converts scores to probabilities in place. */
static void softmax(float *scores)
{
    float top = scores[best_of(scores)], sum = 0;

    for (int c = 0; c < CLASSES; c++)
        sum += scores[c] = expf(scores[c] - top);
    for (int c = 0; c < CLASSES; c++)
        scores[c] /= sum;
}

/* Performs one step of gradient descent; returns the sum of the losses. */
static double train_on(softmax_model *model, const float *images, const int64_t *labels, int64_t rows)
{
    softmax_model gradient = {0};
    float scores[CLASSES];
    double loss = 0;

    for (int64_t i = 0; i < rows; i++) {
        const float *image = images + i * PIXELS;

        scores_of(model, image, scores);
        softmax(scores);
        loss -= log((double)scores[labels[i]] + 1e-30);
        scores[labels[i]] -= 1;
        for (int c = 0; c < CLASSES; c++) {
            gradient.bias[c] += scores[c];
            for (int p = 0; p < PIXELS; p++)
                gradient.weights[c][p] += scores[c] * image[p];
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        model->bias[c] -= RATE * gradient.bias[c] / (float)rows;
        for (int p = 0; p < PIXELS; p++)
            model->weights[c][p] -= RATE * gradient.weights[c][p] / (float)rows;
    }
    return loss;
}

/* ---- the loop ---- */

/* Returns the accuracy over the next epoch of `loader`, which repeats the data endlessly. */
static double accuracy(const softmax_model *model, stk_loader *loader)
{
    int64_t right = 0, seen = 0;

    for (bool last = false; !last;) {
        const float *images;
        const int64_t *labels;
        float scores[CLASSES];
        stk_batch *batch;
        stk_error err;

        must(stk_loader_next(loader, &batch, &err), &err);
        for (int64_t i = 0, rows = look_at(batch, &images, &labels); i < rows; i++, seen++) {
            scores_of(model, images + i * PIXELS, scores);
            right += best_of(scores) == labels[i];
        }
        last = stk_batch_last_of_epoch(batch);
        stk_batch_release(batch);
    }
    return (double)right / (double)seen;
}

static void train(softmax_model *model, stk_loader *training, stk_loader *held_out)
{
    double loss = 0;
    stk_batch *batch;
    stk_status status;
    stk_error err;

    while ((status = stk_loader_next(training, &batch, &err)) == STK_OK) {
        const float *images;
        const int64_t *labels;
        int64_t rows = look_at(batch, &images, &labels);

        loss += train_on(model, images, labels, rows);
        if (stk_batch_last_of_epoch(batch)) {
            printf("epoch %2lld  loss %.9f  accuracy %.2f %%\n", (long long)stk_batch_epoch(batch) + 1,
                   loss / (double)stk_loader_samples(training), 100 * accuracy(model, held_out));
            loss = 0;
        }
        stk_batch_release(batch);
    }
    must(status, &err);
}

/* Returns a hash of the bits of all weights, for comparing runs. */
static uint64_t fingerprint(const softmax_model *model)
{
    unsigned char bytes[sizeof *model];
    uint64_t hash = UINT64_C(14695981039346656037);

    memcpy(bytes, model, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

int main(int argc, char **argv)
{
    static softmax_model model;
    files from;
    int64_t samples, training_count, held_out_count, *training_indices, *held_out_indices;
    stk_loader *all, *training, *held_out;

    if (argc < 3) {
        fprintf(stderr, "usage: train_digits IMAGES.npy LABELS.npy [WORKERS]\n");
        return 2;
    }
    from = (files){argv[1], argv[2], argc > 3 ? atoll(argv[3]) : STK_WORKERS_AUTO};
    all = open_loader(&from, NULL, 0, STK_ORDER_SEQUENTIAL, 1); /* only to get the number of samples */
    samples = stk_loader_samples(all);
    stk_loader_destroy(all);

    training_indices = of_every_five(samples, 0, 4, &training_count);
    held_out_indices = of_every_five(samples, 4, 1, &held_out_count);
    training = open_loader(&from, training_indices, training_count, STK_ORDER_RANDOM, EPOCHS);
    held_out = open_loader(&from, held_out_indices, held_out_count, STK_ORDER_SEQUENTIAL, STK_EPOCHS_ENDLESS);
    printf("%lld samples to train on, %lld held out\n", (long long)training_count, (long long)held_out_count);
    train(&model, training, held_out);
    printf("weights %016llx\n", (unsigned long long)fingerprint(&model));

    stk_loader_destroy(training);
    stk_loader_destroy(held_out);
    free(training_indices);
    free(held_out_indices);
    return 0;
}
