/* train_digits_gpu.c: trains a network with one hidden layer on a device. Batches are copied to the device's memory
 * ahead of time, and all other tensors are also on the device.
 *     train_digits_gpu DEVICE tests/data/digits_images.npy tests/data/digits_labels.npy
 *
 * New in this example: a loader that delivers on a device ("cuda:0", or "host", which works anywhere), a stream in
 * which the complete step is queued without waiting (next_on, release_on), arithmetic on tensors into buffers that are
 * allocated once, and memory statistics of the device.
 *
 * Matrix products on a GPU use cuBLAS if it was found (CMakeLists.txt); otherwise, and on the host device, they use the
 * library's own kernels. The loop waits for the device once per epoch, to print the loss.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#ifdef DIGITS_CUBLAS
#include <cublas_v2.h>
#endif

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, EPOCHS = 20, BATCH = 32 };

static const double RATE = 0.05, MOMENTUM = 0.9;

static stk_device *device;
static stk_stream *stream; /* everything is queued here, in order */
static stk_error err;

static void must(stk_status status)
{
    if (status < 0) {
        fprintf(stderr, "train_digits_gpu: %s\n", err.message);
        exit(1);
    }
}

/* ---- matrix products ---- */

#ifdef DIGITS_CUBLAS
static cublasHandle_t cublas;

static void must_cublas(cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        fprintf(stderr, "train_digits_gpu: cuBLAS: %s\n", cublasGetStatusString(status));
        exit(1);
    }
}

/* Returns whether a matrix, or a transposed view of one, is transposed as seen by cuBLAS, and stores the distance
 * between its rows. */
static cublasOperation_t layout_of(const stk_tensor *matrix, int *distance)
{
    const int axis = matrix->strides[1] == (int64_t)sizeof(float) ? 0 : 1;

    *distance = (int)(matrix->strides[axis] / (int64_t)sizeof(float));
    return axis == 0 ? CUBLAS_OP_N : CUBLAS_OP_T;
}

/* cuBLAS is column-major, so our row-major out = a b is out' = b' a' there. */
static void cublas_product(const stk_tensor *a, const stk_tensor *b, stk_tensor *out)
{
    const float one = 1, zero = 0;
    int of_a, of_b;
    const cublasOperation_t turn_a = layout_of(a, &of_a), turn_b = layout_of(b, &of_b);

    must_cublas(cublasSgemm(cublas, turn_b, turn_a, (int)b->shape[1], (int)a->shape[0], (int)a->shape[1], &one, b->data,
                            of_b, a->data, of_a, &zero, out->data, (int)out->shape[1]));
}
#endif

static void start_products(void)
{
#ifdef DIGITS_CUBLAS
    if (stk_device_get_kind(device) == STK_DEVICE_CUDA) {
        must_cublas(cublasCreate(&cublas));
        must_cublas(cublasSetStream(cublas, stk_stream_native(stream)));
    }
#endif
}

static void end_products(void)
{
#ifdef DIGITS_CUBLAS
    if (cublas)
        must_cublas(cublasDestroy(cublas));
#endif
}

static void product(const stk_tensor *a, const stk_tensor *b, stk_tensor *out)
{
#ifdef DIGITS_CUBLAS
    if (cublas) {
        cublas_product(a, b, out);
        return;
    }
#endif
    must(stk_tensor_matmul_into(a, b, out, &err));
}

/* ---- the model ---- */

/* A parameter of the model with its gradient, its velocity and the change of the current step. */
typedef struct parameter {
    stk_tensor value, gradient, velocity, change;
} parameter;

/* Parameters, and buffers of a step for a full batch; a smaller last batch uses their first rows. */
typedef struct network {
    parameter weights1, bias1, weights2, bias2;
    stk_tensor hidden, active, hidden_gradient, scores, right, squares; /* [BATCH, …] */
    stk_tensor classes, loss;                                           /* i64 [1, CLASSES], f32 [] */
} network;

static stk_tensor zeros(stk_dtype dtype, int ndim, int64_t rows, int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    stk_tensor made;

    must(stk_tensor_zeros(dtype, ndim, shape, device, &made, &err));
    return made;
}

static parameter make_parameter(int64_t rows, int64_t columns, double scale, uint64_t seed)
{
    const int64_t shape[2] = {rows, columns};
    parameter made = {.gradient = zeros(STK_F32, 2, rows, columns),
                      .velocity = zeros(STK_F32, 2, rows, columns),
                      .change = zeros(STK_F32, 2, rows, columns)};

    must(stk_tensor_randn(STK_F32, 2, shape, seed, device, &made.value, &err));
    must(stk_tensor_mul_scalar_into(&made.value, stk_real(scale), &made.value, &err));
    return made;
}

static network make_network(void)
{
    network made = {
        .weights1 = make_parameter(PIXELS, HIDDEN, sqrt(2.0 / PIXELS), 1),
        .bias1 = make_parameter(1, HIDDEN, 0, 2),
        .weights2 = make_parameter(HIDDEN, CLASSES, sqrt(1.0 / HIDDEN), 3),
        .bias2 = make_parameter(1, CLASSES, 0, 4),
        .hidden = zeros(STK_F32, 2, BATCH, HIDDEN),
        .active = zeros(STK_BOOL, 2, BATCH, HIDDEN),
        .hidden_gradient = zeros(STK_F32, 2, BATCH, HIDDEN),
        .scores = zeros(STK_F32, 2, BATCH, CLASSES),
        .right = zeros(STK_BOOL, 2, BATCH, CLASSES),
        .squares = zeros(STK_F32, 2, BATCH, CLASSES),
        .loss = zeros(STK_F32, 0, 0, 0),
    };
    stk_tensor line;

    must(stk_tensor_arange(STK_I64, stk_int(0), stk_int(CLASSES), stk_int(1), device, &line, &err));
    must(stk_tensor_unsqueeze(&line, 0, &made.classes, &err));
    stk_tensor_release(&line);
    return made;
}

static void release_all(stk_tensor *tensors[], int count)
{
    for (int i = 0; i < count; i++)
        stk_tensor_release(tensors[i]);
}

static void end_parameter(parameter *p)
{
    release_all((stk_tensor *[]){&p->value, &p->gradient, &p->velocity, &p->change}, 4);
}

static void end_network(network *net)
{
    end_parameter(&net->weights1);
    end_parameter(&net->bias1);
    end_parameter(&net->weights2);
    end_parameter(&net->bias2);
    release_all((stk_tensor *[]){&net->hidden, &net->active, &net->hidden_gradient, &net->scores, &net->right,
                                 &net->squares, &net->classes, &net->loss},
                8);
}

/* Views of the first rows of the buffers, for one step. */
typedef struct step {
    int64_t rows;
    stk_tensor images, labels; /* f32 [rows, PIXELS], i64 [rows, 1] */
    stk_tensor hidden, active, hidden_gradient, scores, right, squares;
} step;

static stk_tensor first_rows(const stk_tensor *buffer, int64_t rows)
{
    stk_tensor view;

    must(stk_tensor_narrow(buffer, 0, 0, rows, &view, &err));
    return view;
}

static step begin_step(const network *net, const stk_batch *batch)
{
    step s;
    stk_tensor image, label; /* borrowed from the batch */

    must(stk_batch_tensor(batch, "image", &image, &err));
    must(stk_batch_tensor(batch, "label", &label, &err));
    s.rows = image.shape[0];
    must(stk_tensor_view(&image, 2, (int64_t[]){s.rows, PIXELS}, &s.images, &err));
    must(stk_tensor_unsqueeze(&label, 1, &s.labels, &err));
    s.hidden = first_rows(&net->hidden, s.rows);
    s.active = first_rows(&net->active, s.rows);
    s.hidden_gradient = first_rows(&net->hidden_gradient, s.rows);
    s.scores = first_rows(&net->scores, s.rows);
    s.right = first_rows(&net->right, s.rows);
    s.squares = first_rows(&net->squares, s.rows);
    return s;
}

static void end_step(step *s)
{
    release_all((stk_tensor *[]){&s->images, &s->labels, &s->hidden, &s->active, &s->hidden_gradient, &s->scores,
                                 &s->right, &s->squares},
                8);
}

/* scores = max(0, images weights1 + bias1) weights2 + bias2 */
static void forward(network *net, step *s)
{
    const stk_scalar zero = stk_real(0);

    product(&s->images, &net->weights1.value, &s->hidden);
    must(stk_tensor_add_into(&s->hidden, &net->bias1.value, &s->hidden, &err));
    must(stk_tensor_clamp_into(&s->hidden, &zero, NULL, &s->hidden, &err));
    product(&s->hidden, &net->weights2.value, &s->scores);
    must(stk_tensor_add_into(&s->scores, &net->bias2.value, &s->scores, &err));
}

static void turned_product(const stk_tensor *a, const stk_tensor *b, stk_tensor *out)
{
    stk_tensor turned;

    must(stk_tensor_transpose(a, 0, 1, &turned, &err));
    product(&turned, b, out);
    stk_tensor_release(&turned);
}

/* The loss of a sample is half the squared distance of its scores from 1 for the correct class and 0 for the others, so
 * the difference itself is the gradient. */
static void backward(network *net, step *s)
{
    const int rows = 0;
    stk_tensor turned, sum;

    must(stk_tensor_eq_into(&s->labels, &net->classes, &s->right, &err));
    must(stk_tensor_sub_into(&s->scores, &s->right, &s->scores, &err));
    must(stk_tensor_mul_into(&s->scores, &s->scores, &s->squares, &err));
    must(stk_tensor_sum(&s->squares, 0, NULL, false, STK_DTYPE_NONE, &sum, &err));
    must(stk_tensor_add_into(&net->loss, &sum, &net->loss, &err));
    stk_tensor_release(&sum); /* safe: its memory is reused only after the add, which is queued in the same stream */

    turned_product(&s->hidden, &s->scores, &net->weights2.gradient);
    must(stk_tensor_sum_into(&s->scores, 1, &rows, true, &net->bias2.gradient, &err));
    must(stk_tensor_transpose(&net->weights2.value, 0, 1, &turned, &err));
    product(&s->scores, &turned, &s->hidden_gradient);
    stk_tensor_release(&turned);
    must(stk_tensor_gt_scalar_into(&s->hidden, stk_real(0), &s->active, &err));
    must(stk_tensor_mul_into(&s->hidden_gradient, &s->active, &s->hidden_gradient, &err));
    turned_product(&s->images, &s->hidden_gradient, &net->weights1.gradient);
    must(stk_tensor_sum_into(&s->hidden_gradient, 1, &rows, true, &net->bias1.gradient, &err));
}

/* velocity = MOMENTUM velocity + gradient; value -= RATE / rows velocity */
static void descend(parameter *p, int64_t rows)
{
    must(stk_tensor_mul_scalar_into(&p->velocity, stk_real(MOMENTUM), &p->velocity, &err));
    must(stk_tensor_add_into(&p->velocity, &p->gradient, &p->velocity, &err));
    must(stk_tensor_mul_scalar_into(&p->velocity, stk_real(RATE / (double)rows), &p->change, &err));
    must(stk_tensor_sub_into(&p->value, &p->change, &p->value, &err));
}

/* ---- data ---- */

static stk_loader *open_loader(const char *const paths[2], const int64_t *indices, int64_t count, stk_order order,
                               int64_t epochs)
{
    stk_field_opts fields[2] = {STK_FIELD_OPTS_INIT, STK_FIELD_OPTS_INIT};
    stk_loader_opts opts = STK_LOADER_OPTS_INIT;
    stk_loader *loader;

    fields[0].name = "image";
    fields[0].paths = &paths[0];
    fields[0].path_count = 1;
    fields[0].transforms = "[scale: 0.0625]"; /* u8 values 0 to 16 become f32 from 0 to 1 */
    fields[1].name = "label";
    fields[1].paths = &paths[1];
    fields[1].path_count = 1;
    opts.fields = fields;
    opts.field_count = 2;
    opts.batch_size = BATCH;
    opts.order = order;
    opts.seed = 1;
    opts.num_epochs = epochs;
    opts.indices = indices;
    opts.index_count = count;
    opts.device = device ? stk_device_name(device) : NULL;
    opts.device_prefetch = device ? 3 : 0; /* one in use, one ready, one being copied */
    must(stk_loader_open(&opts, &loader, &err));
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

static int64_t samples_of(const char *const paths[2])
{
    stk_loader *all = open_loader(paths, NULL, 0, STK_ORDER_SEQUENTIAL, 1);
    const int64_t samples = stk_loader_samples(all);

    stk_loader_destroy(all);
    return samples;
}

/* ---- the loop ---- */

/* Returns for how many rows of the step the highest score is that of the label. */
static int64_t count_right(const step *s)
{
    stk_tensor best, hits, sum;
    stk_scalar count;

    must(stk_tensor_argmax(&s->scores, 1, true, &best, &err));
    must(stk_tensor_eq(&best, &s->labels, &hits, &err));
    must(stk_tensor_sum(&hits, 0, NULL, false, STK_DTYPE_NONE, &sum, &err));
    must(stk_tensor_get(&sum, 0, NULL, &count, &err)); /* waits */
    release_all((stk_tensor *[]){&best, &hits, &sum}, 3);
    return count.as.i;
}

/* Returns the accuracy over the next epoch of `loader`, which repeats the data endlessly. */
static double accuracy(network *net, stk_loader *loader)
{
    int64_t right = 0, seen = 0;

    for (bool last = false; !last;) {
        stk_batch *batch;
        step s;

        must(stk_loader_next_on(loader, stream, STK_TIMEOUT_INFINITE, &batch, &err));
        s = begin_step(net, batch);
        forward(net, &s);
        right += count_right(&s);
        seen += s.rows;
        end_step(&s);
        last = stk_batch_last_of_epoch(batch);
        stk_batch_release_on(batch, stream);
    }
    return (double)right / (double)seen;
}

static void report(network *net, const stk_batch *batch, stk_loader *training, stk_loader *held_out)
{
    stk_scalar loss;

    must(stk_tensor_get(&net->loss, 0, NULL, &loss, &err)); /* waits for the epoch's last step */
    must(stk_tensor_zero(&net->loss, &err));
    printf("epoch %2lld  loss %.6f  accuracy %.2f %%\n", (long long)stk_batch_epoch(batch) + 1,
           loss.as.f / 2 / (double)stk_loader_samples(training), 100 * accuracy(net, held_out));
}

static void train(network *net, stk_loader *training, stk_loader *held_out)
{
    stk_batch *batch;
    stk_status status;

    while ((status = stk_loader_next_on(training, stream, STK_TIMEOUT_INFINITE, &batch, &err)) == STK_OK) {
        step s = begin_step(net, batch);

        forward(net, &s);
        backward(net, &s);
        descend(&net->weights1, s.rows);
        descend(&net->bias1, s.rows);
        descend(&net->weights2, s.rows);
        descend(&net->bias2, s.rows);
        end_step(&s);
        if (stk_batch_last_of_epoch(batch))
            report(net, batch, training, held_out);
        stk_batch_release_on(batch, stream); /* the slot is refilled after the work queued so far */
    }
    must(status);
}

static void print_memory(void)
{
    stk_device_memory_stats stats = {.struct_size = sizeof stats};

    must(stk_device_get_memory_stats(device, STK_MEMORY_DEVICE, &stats, &err));
    printf("memory of %s: %lld bytes at the peak, %lld reserved; %lld of %lld allocations went to the driver\n",
           stk_device_name(device), (long long)stats.allocated_peak, (long long)stats.reserved_bytes,
           (long long)stats.driver_allocations, (long long)stats.allocations);
}

int main(int argc, char **argv)
{
    int64_t samples, training_count, held_out_count, *training_indices, *held_out_indices;
    const char *paths[2];
    stk_loader *training, *held_out;
    network net;

    if (argc != 4) {
        fprintf(stderr, "usage: train_digits_gpu DEVICE IMAGES.npy LABELS.npy\n");
        return 2;
    }
    paths[0] = argv[2];
    paths[1] = argv[3];
    samples = samples_of(paths);
    must(stk_device_find(argv[1], &device, &err));
    must(stk_stream_create(device, &stream, &err));
    stk_stream_set_current(device, stream); /* operations on tensors of the device are queued there */
    start_products();
    training_indices = of_every_five(samples, 0, 4, &training_count);
    held_out_indices = of_every_five(samples, 4, 1, &held_out_count);
    training = open_loader(paths, training_indices, training_count, STK_ORDER_RANDOM, EPOCHS);
    held_out = open_loader(paths, held_out_indices, held_out_count, STK_ORDER_SEQUENTIAL, STK_EPOCHS_ENDLESS);
    net = make_network();
    printf("%lld samples to train on, %lld held out, on %s\n", (long long)training_count, (long long)held_out_count,
           stk_device_name(device));
    train(&net, training, held_out);
    print_memory();

    end_products();
    end_network(&net);
    stk_loader_destroy(training);
    stk_loader_destroy(held_out);
    stk_stream_destroy(stream);
    free(training_indices);
    free(held_out_indices);
    return 0;
}
