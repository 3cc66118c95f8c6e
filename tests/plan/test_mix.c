/* stki-threads */
/* Tests of mixup, cutmix, erasing and one-hot labels. Mixed rows are compared with those of a second loader without
 * mixing, for several ranks, layouts and dtypes; distributions must match torchvision's, and the bits must be the same
 * with any number of workers. */
#include "faults.h"
#include "io_files.h"
#include "late_steps.h"
#include "loader_test.h"
#include "order_statistics.h"
#include "test_random.h"
#include <math.h>

static stk_error err;

enum { HEIGHT = 20, WIDTH = 30, COUNT = 23, CLASSES = 11, DRAWS = 40000 };

static void write_data(void)
{
    static uint8_t images[COUNT][HEIGHT][WIDTH][3];
    static uint16_t labels[COUNT];
    uint64_t random = 5;

    for (size_t i = 0; i < sizeof images; i++)
        ((uint8_t *)images)[i] = (uint8_t)stkt_random(&random);
    for (int i = 0; i < COUNT; i++)
        labels[i] = (uint16_t)stkt_random_in(&random, 0, CLASSES - 1);
    stkt_write_npy(stkt_path("images.npy"), "|u1", "False", "(23, 20, 30, 3)", 64, images, sizeof images);
    stkt_write_npy(stkt_path("labels.npy"), "<u2", "False", "(23,)", 64, labels, sizeof labels);
}

/* The images and labels of one epoch as f32, row by row in the loader's layout. */
typedef struct run {
    int64_t rows, elements, steps[64], step_count; /* rows of each step */
    float *images;                                 /* rows x elements */
    float *labels;                                 /* rows x CLASSES, or rows */
    float *partners, *shares;                      /* or NULL */
    uint64_t hash;
} run;

static float as_float(const stk_tensor *t, int64_t row, int64_t i)
{
    const int64_t n = t->ndim > 1 ? stk_tensor_numel(t) / (t->shape[0] ? t->shape[0] : 1) : 1;
    const char *element = (const char *)t->data + (row * n + i) * stk_dtype_size(t->dtype);

    return t->dtype == STK_F32   ? *(const float *)(const void *)element
           : t->dtype == STK_U8  ? (float)*(const uint8_t *)element
           : t->dtype == STK_I8  ? (float)*(const int8_t *)element
           : t->dtype == STK_U16 ? (float)*(const uint16_t *)(const void *)element
                                 : NAN;
}

static run run_loader(const char *image, const char *label, const char *loader_keys)
{
    run r = {.hash = 1};
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, %s}, label: {path: %s, %s}}}\n"
                        "loader: {seed: 4, order: random, %s}",
                        stkt_path("images.npy"), image, stkt_path("labels.npy"), label, loader_keys));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor x, y, z;
        const int64_t rows = stk_batch_rows(batch);

        assert_ok(stk_batch_tensor(batch, "image", &x, &err));
        assert_ok(stk_batch_tensor(batch, "label", &y, &err));
        r.hash = stkt_hash_batch(r.hash, loader, batch);
        r.elements = 3 * HEIGHT * WIDTH;
        r.images = realloc(r.images, (size_t)((r.rows + rows) * r.elements) * sizeof(float));
        r.labels = realloc(r.labels, (size_t)((r.rows + rows) * CLASSES) * sizeof(float));
        r.partners = realloc(r.partners, (size_t)(r.rows + rows) * sizeof(float));
        r.shares = realloc(r.shares, (size_t)(r.rows + rows) * sizeof(float));
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t k = 0; k < r.elements; k++)
                r.images[(r.rows + i) * r.elements + k] = as_float(&x, i, k);
            for (int64_t k = 0; k < (y.ndim > 1 ? CLASSES : 1); k++)
                r.labels[(r.rows + i) * CLASSES + k] = as_float(&y, i, k);
            if (stk_batch_tensor(batch, "label_mix", &z, NULL) == STK_OK)
                r.partners[r.rows + i] = as_float(&z, i, 0);
            if (stk_batch_tensor(batch, "mix_lambda", &z, NULL) == STK_OK)
                r.shares[r.rows + i] = as_float(&z, i, 0);
        }
        r.steps[r.step_count++] = rows;
        r.rows += rows;
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    stk_loader_destroy(loader);
    return r;
}

static void run_free(run *r)
{
    free(r->images);
    free(r->labels);
    free(r->partners);
    free(r->shares);
}

#define AUGMENT "{random_horizontal_flip: {}}, {normalize: {mean: [0.4, 0.5, 0.6], std: 0.25, scale: unit}}"
#define ONE_HOT "transforms: [{one_hot: 11}]"

/* ---- mixup ---- */

static float round_to(const char *kind, float y)
{
    if (strcmp(kind, "i8") != 0)
        return y;
    y = rintf(y) + 3;
    return y < -128 ? -128 : y > 127 ? 127 : y;
}

/* Each row must be the mix, in f32, of the unmixed rows of a second loader in the proportion that the labels show. */
static void check_mixup(const char *kind, const char *layout, const char *keys, bool by_pair)
{
    static const char *const quantize = ", {quantize: {scale: 0.02, zero_point: 3}}",
                             *const scaled = ", {scale: 49.99999888241291}"; /* 1 / 0.02f, as f32 */
    const bool i8 = strcmp(kind, "i8") == 0;
    char image[512], plain[512], step[128];
    run mixed, unmixed;
    int64_t at = 0;

    snprintf(step, sizeof step, ", {mixup: {alpha: 0.7, labels: label%s}}", by_pair ? ", lambda: pair" : "");
    snprintf(image, sizeof image, "layout: %s, transforms: [%s%s%s]", layout, AUGMENT, i8 ? quantize : "", step);
    snprintf(plain, sizeof plain, "layout: %s, transforms: [%s%s]", layout, AUGMENT, i8 ? scaled : "");
    mixed = run_loader(image, ONE_HOT, keys);
    unmixed = run_loader(plain, ONE_HOT, keys);
    assert_int_equal(mixed.rows, unmixed.rows);
    for (int64_t s = 0; s < mixed.step_count; at += mixed.steps[s++])
        for (int64_t p = 0; p < mixed.steps[s]; p++) {
            const int64_t other = (p ^ 1) < mixed.steps[s] ? p ^ 1 : p;
            const float *own = unmixed.images + (at + p) * mixed.elements,
                        *its = unmixed.images + (at + other) * mixed.elements;
            const float *label = unmixed.labels + (at + p) * CLASSES,
                        *its_label = unmixed.labels + (at + other) * CLASSES;
            const float *found = mixed.labels + (at + p) * CLASSES;
            float share = 1, rest = 0;

            for (int k = 0; k < CLASSES; k++) {
                if (label[k] == 1 && its_label[k] == 0)
                    share = found[k];
                if (its_label[k] == 1 && label[k] == 0)
                    rest = found[k];
                if (label[k] == 0 && its_label[k] == 0)
                    assert_true(found[k] == 0);
            }
            assert_true(fabsf(share + rest - 1) < 1e-6f);
            if (other == p)
                assert_true(share == 1);
            if (memcmp(label, its_label, CLASSES * sizeof *label) == 0 && other != p)
                continue; /* both rows have one class, so the labels do not show lambda */
            for (int64_t i = 0; i < mixed.elements; i++) {
                const float y = round_to(kind, other == p ? own[i] : fmaf(own[i], share, its[i] * rest));

                if (mixed.images[(at + p) * mixed.elements + i] != y)
                    fail_msg("%s %s row %lld element %lld: found %g, expected %g", kind, layout, (long long)p,
                             (long long)i, (double)mixed.images[(at + p) * mixed.elements + i], (double)y);
            }
        }
    run_free(&mixed);
    run_free(&unmixed);
}

static void mixup_rows(void **state)
{
    static const char *const layouts[] = {"nchw", "nhwc", "channels_last"};

    (void)state;
    for (int l = 0; l < 3; l++) {
        check_mixup("f32", layouts[l], "batch_size: 6, num_workers: 2", false);
        check_mixup("i8", layouts[l], "batch_size: 7, num_workers: 2, last_batch: pad", true);
    }
    check_mixup("f32", "nchw", "batch_size: 9, num_workers: 0, tile_bytes: 1024, last_batch: drop", true);
}

/* ---- cutmix ---- */

/* Each pixel is from the row itself or from its partner. The pixels of the partner form a box whose share the labels
 * show. */
static void cutmix_rows(void **state)
{
    static const char *const layouts[] = {"nchw", "nhwc", "channels_last"};
    int64_t boxes = 0;

    (void)state;
    for (int l = 0; l < 3; l++) {
        char image[512], plain[512];
        run mixed, unmixed;
        int64_t at = 0;

        snprintf(image, sizeof image, "layout: %s, transforms: [%s, {cutmix: {labels: label, lambda: pair}}]",
                 layouts[l], AUGMENT);
        snprintf(plain, sizeof plain, "layout: %s, transforms: [%s]", layouts[l], AUGMENT);
        mixed = run_loader(image, "transforms: []", "batch_size: 5, num_workers: 2");
        unmixed = run_loader(plain, "transforms: []", "batch_size: 5, num_workers: 2");
        for (int64_t s = 0; s < mixed.step_count; at += mixed.steps[s++])
            for (int64_t p = 0; p < mixed.steps[s]; p++) {
                const int64_t other = (p ^ 1) < mixed.steps[s] ? p ^ 1 : p, n = mixed.elements;
                const float *own = unmixed.images + (at + p) * n, *its = unmixed.images + (at + other) * n;
                const float *found = mixed.images + (at + p) * n;
                int64_t foreign = 0, top = HEIGHT, bottom = 0, left = WIDTH, right = 0;

                assert_true(mixed.labels[(at + p) * CLASSES] == unmixed.labels[(at + p) * CLASSES]);
                assert_true(mixed.partners[at + p] == unmixed.labels[(at + other) * CLASSES]);
                for (int64_t y = 0; y < HEIGHT; y++)
                    for (int64_t x = 0; x < WIDTH; x++) {
                        bool is_own = true, is_its = true;

                        for (int64_t c = 0; c < 3; c++) {
                            const int64_t i = l == 0 ? (c * HEIGHT + y) * WIDTH + x : (y * WIDTH + x) * 3 + c;

                            is_own = is_own && found[i] == own[i];
                            is_its = is_its && found[i] == its[i];
                        }
                        assert_true(is_own || is_its);
                        if (is_own)
                            continue;
                        foreign++;
                        top = y < top ? y : top;
                        bottom = y + 1 > bottom ? y + 1 : bottom;
                        left = x < left ? x : left;
                        right = x + 1 > right ? x + 1 : right;
                    }
                if (foreign > 0)
                    assert_int_equal(foreign, (bottom - top) * (right - left));
                assert_true(fabs(mixed.shares[at + p] - (1 - (double)foreign / (HEIGHT * WIDTH))) < 1e-6);
                boxes += foreign > 0;
            }
        run_free(&mixed);
        run_free(&unmixed);
    }
    assert_true(boxes > 20);
}

/* ---- ranks and workers ---- */

/* Pairs may be split between three ranks; together the ranks give the rows of a single one. */
static void check_ranks(const char *loader_keys)
{
    static const char *const image = "layout: nchw, transforms: [" AUGMENT ", {mixup: {labels: label}}, {cutmix: {}}]";
    run whole = run_loader(image, ONE_HOT, loader_keys), parts[3];
    int64_t at = 0, taken[3] = {0};

    for (int r = 0; r < 3; r++) {
        char keys[128];

        snprintf(keys, sizeof keys, "%s, world_size: 3, rank: %d", loader_keys, r);
        parts[r] = run_loader(image, ONE_HOT, keys);
    }
    for (int64_t s = 0; s < whole.step_count; s++)
        for (int r = 0; r < 3; r++)
            for (int64_t i = 0; i < parts[r].steps[s]; i++, at++, taken[r]++) {
                assert_memory_equal(whole.images + at * whole.elements, parts[r].images + taken[r] * whole.elements,
                                    (size_t)whole.elements * sizeof(float));
                assert_memory_equal(whole.labels + at * CLASSES, parts[r].labels + taken[r] * CLASSES,
                                    CLASSES * sizeof(float));
            }
    assert_int_equal(at, whole.rows);
    run_free(&whole);
    for (int r = 0; r < 3; r++)
        run_free(&parts[r]);
}

static void ranks_agree(void **state)
{
    (void)state;
    check_ranks("global_batch_size: 10, num_workers: 2");
    check_ranks("global_batch_size: 10, num_workers: 2, last_batch: pad");
    /* one rank has only padding in its first step */
    check_ranks("global_batch_size: 3, num_workers: 2, last_batch: pad");
    check_ranks("global_batch_size: 5, num_workers: 2, last_batch: pad");
}

static void workers_change_nothing(void **state)
{
    static const char *const images[] = {
        "transforms: [{random_resized_crop: [20, 30]}, {color_jitter: {brightness: 0.4, contrast: 0.4}}, {normalize: "
        "imagenet}, {random_erasing: {p: 0.7, value: random}}, {mixup: {labels: label}}, {cutmix: {}}]",
        "transforms: [{cutout: 5}, {mixup: {alpha: 0.2, labels: label, lambda: pair, p: 0.5}}]"};
    static const int workers[] = {0, 1, 4, 16};

    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t first = 0;

        for (int n = 0; n < 12; n++) {
            char keys[128];
            run r;

            snprintf(keys, sizeof keys, "batch_size: 6, num_workers: %d, num_epochs: 3, tile_bytes: %d", workers[n % 4],
                     n % 3 ? 1024 : 65536);
            r = run_loader(images[i], i ? "transforms: []" : ONE_HOT, keys);
            assert_true(n == 0 || r.hash == first);
            first = r.hash;
            run_free(&r);
        }
    }
}

/* ---- labels ---- */

static void one_hot_rows(void **state)
{
    run plain = run_loader("transforms: []", "transforms: []", "batch_size: 4, num_workers: 2");
    run smooth = run_loader("transforms: []", "transforms: [{one_hot: 11}, {label_smoothing: 0.1}]",
                            "batch_size: 4, num_workers: 2");

    (void)state;
    for (int64_t i = 0; i < plain.rows; i++)
        for (int k = 0; k < CLASSES; k++)
            assert_true(smooth.labels[i * CLASSES + k] ==
                        (float)(k == (int)plain.labels[i * CLASSES] ? 0.9 + 0.1 / 11 : 0.1 / 11));
    run_free(&plain);
    run_free(&smooth);
}

static void label_out_of_range(void **state)
{
    stk_loader *loader;
    stk_batch *batch;

    (void)state;
    assert_ok(stkt_open(&loader,
                        "dataset: {fields: {label: {path: %s, transforms: [{one_hot: 10}]}}}\nloader: {batch_size: 23}",
                        stkt_path("labels.npy")));
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_E_RANGE);
    assert_true(strstr(err.message, "labels.npy") && strstr(err.message, "expected 0 to 9"));
    stk_loader_destroy(loader);
}

/* ---- erasing ---- */

/* The fill value is in the units that pixels have at that position in the list. */
static void erased_values(void **state)
{
    static const struct {
        const char *transforms, *plain;
        float value[3];
    } cases[] = {
        {"[{cutout: {size: [4, 6], fill: [7, 8, 9]}}]", "[]", {7, 8, 9}},
        {"[{normalize: imagenet}, {cutout: {size: [4, 6], fill: 0.5}}]", "[{normalize: imagenet}]", {0.5f, 0.5f, 0.5f}},
        {"[{cutout: {size: [4, 6], fill: 128}}, {scale: 0.5}, {normalize: {mean: [1, 2, 3], std: 2}}]",
         "[{scale: 0.5}, {normalize: {mean: [1, 2, 3], std: 2}}]",
         {31.5f, 31, 30.5f}},
        {"[{scale: 0.5}, {cutout: {size: [4, 6], fill: 64}}, {quantize: {scale: 2, zero_point: 1, dtype: u8}}]",
         "[{scale: 0.5}, {quantize: {scale: 2, zero_point: 1, dtype: u8}}]",
         {33, 33, 33}},
        {"[{hue: 0.1}, {cutout: {size: [4, 6], fill: 12}}]", "[{hue: 0.1}]", {12, 12, 12}},
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        char image[512], plain[512];
        run erased, whole;

        snprintf(image, sizeof image, "layout: nchw, transforms: %s", cases[k].transforms);
        snprintf(plain, sizeof plain, "layout: nchw, transforms: %s", cases[k].plain);
        erased = run_loader(image, "transforms: []", "batch_size: 4, num_workers: 2, stores: streaming");
        whole = run_loader(plain, "transforms: []", "batch_size: 4, num_workers: 2");
        for (int64_t i = 0; i < erased.rows; i++)
            for (int c = 0; c < 3; c++) {
                const float *x = erased.images + (i * 3 + c) * HEIGHT * WIDTH,
                            *y = whole.images + (i * 3 + c) * HEIGHT * WIDTH;
                int64_t filled = 0;

                for (int n = 0; n < HEIGHT * WIDTH; n++) {
                    if (x[n] != y[n] && x[n] != cases[k].value[c])
                        fail_msg("case %zu channel %d: found %g, expected %g or %g", k, c, (double)x[n], (double)y[n],
                                 (double)cases[k].value[c]);
                    filled += x[n] == cases[k].value[c];
                }
                assert_true(filled >= 24 && filled < 24 + 40);
            }
        run_free(&erased);
        run_free(&whole);
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void expect_alike(const char *what, double *x, double *y, int n)
{
    double most = 0;

    qsort(x, (size_t)n, sizeof *x, ascending);
    qsort(y, (size_t)n, sizeof *y, ascending);
    for (int i = 0, k = 0; i < n && k < n;) {
        const double value = x[i] < y[k] ? x[i] : y[k];

        while (i < n && x[i] <= value)
            i++;
        while (k < n && y[k] <= value)
            k++;
        most = fmax(most, fabs((double)(i - k)) / n);
    }
    if (most > 1.95 * sqrt(2.0 / n))
        fail_msg("%s: distance %.4f of %d values", what, most, n);
}

static double uniform(uint64_t *random)
{
    return (double)(stkt_random(random) >> 11) * 0x1p-53;
}

/* torchvision.transforms.RandomErasing.get_params with other random numbers. */
static void torch_erasing(uint64_t *random, int height, int width, int *out)
{
    for (int try = 0; try < 10; try++) {
        const double target = height * width * (0.02 + 0.31 * uniform(random));
        const double aspect = exp(log(0.3) + (log(3.3) - log(0.3)) * uniform(random));
        const int h = (int)nearbyint(sqrt(target * aspect)), w = (int)nearbyint(sqrt(target / aspect));

        if (h >= height || w >= width)
            continue;
        out[0] = (int)stkt_random_in(random, 0, height - h);
        out[1] = (int)stkt_random_in(random, 0, width - w);
        out[2] = h;
        out[3] = w;
        return;
    }
    memset(out, 0, 4 * sizeof *out);
}

static void erasing_as_torchvision(void **state)
{
    const stki_erase erase = {.draw = stki_draw_name("a", "b"), .p = 1, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}};
    stki_erase half = erase;
    double *values[2][5];
    uint64_t random = 3;
    int64_t erased = 0;

    (void)state;
    half.p = 0.5;
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 5; k++)
            values[s][k] = malloc(DRAWS * sizeof(double));
    for (int64_t i = 0; i < DRAWS; i++) {
        const stki_occasion occasion = {9, i};
        stki_rectangle box = {0};
        stki_draw draw;
        int torch[4];

        if (!stki_erase_draw(&erase, &occasion, 40, 90, &draw, &box))
            box = (stki_rectangle){0};
        torch_erasing(&random, 40, 90, torch);
        for (int k = 0; k < 5; k++) {
            const int64_t found[] = {box.top, box.left, box.height, box.width, box.height * box.width};

            values[0][k][i] = (double)found[k];
            values[1][k][i] = k < 4 ? torch[k] : torch[2] * torch[3];
        }
        erased += stki_erase_draw(&half, &occasion, 40, 90, &draw, &box);
    }
    for (int k = 0; k < 5; k++)
        expect_alike(((const char *const[]){"top", "left", "height", "width", "area"})[k], values[0][k], values[1][k],
                     DRAWS);
    assert_true(fabs((double)erased - 0.5 * DRAWS) < 4 * sqrt(0.25 * DRAWS));
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 5; k++)
            free(values[s][k]);
}

/* ---- lambda ---- */

/* As in torchvision.transforms.v2: lambda from Beta(1, 1), which is uniform, and CutMix's box from lambda. */
static void lambda_as_torchvision(void **state)
{
    const stki_mix mix = {.draw = stki_draw_name("a", "mix"), .p = 1, .mixup = 1};
    const stki_mix cut = {.draw = stki_draw_name("a", "mix"), .p = 1, .cutmix = 1};
    const stki_mix either = {.draw = stki_draw_name("a", "mix"), .p = 0.5, .cutmix = 1, .mixup = 1};
    double *values[2][3];
    uint64_t random = 3;
    int64_t mixes = 0, cuts = 0;

    (void)state;
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 3; k++)
            values[s][k] = malloc(DRAWS * sizeof(double));
    for (int64_t i = 0; i < DRAWS; i++) {
        const stki_occasion occasion = {9, i};
        const double lambda = uniform(&random), r = 0.5 * sqrt(1 - lambda);
        const int x = (int)stkt_random_in(&random, 0, 89), y = (int)stkt_random_in(&random, 0, 39);
        const int x1 = (int)fmax(x - (int)(r * 90), 0), x2 = (int)fmin(x + (int)(r * 90), 90);
        const int y1 = (int)fmax(y - (int)(r * 40), 0), y2 = (int)fmin(y + (int)(r * 40), 40);
        stki_mixing m;

        stki_mix_draw(&mix, &occasion, 40, 90, &m);
        assert_true(m.mixes && !m.cuts && fabsf(m.share + m.rest - 1) < 1e-6f);
        values[0][0][i] = m.share;
        values[1][0][i] = uniform(&random);
        stki_mix_draw(&cut, &occasion, 40, 90, &m);
        assert_true(m.mixes && m.cuts);
        assert_true(fabs(m.rest - (double)(m.box.height * m.box.width) / 3600) < 1e-6);
        values[0][1][i] = (double)(m.box.height * m.box.width);
        values[1][1][i] = (double)((x2 - x1) * (y2 - y1));
        values[0][2][i] = (double)m.box.left;
        values[1][2][i] = x1;
        stki_mix_draw(&either, &occasion, 40, 90, &m);
        mixes += m.mixes;
        cuts += m.cuts;
    }
    expect_alike("lambda", values[0][0], values[1][0], DRAWS);
    expect_alike("area", values[0][1], values[1][1], DRAWS);
    expect_alike("left", values[0][2], values[1][2], DRAWS);
    assert_true(fabs((double)mixes - 0.5 * DRAWS) < 4 * sqrt(0.25 * DRAWS));
    assert_true(fabs((double)cuts - 0.25 * DRAWS) < 4 * sqrt(0.1875 * DRAWS));
    for (int s = 0; s < 2; s++)
        for (int k = 0; k < 3; k++)
            free(values[s][k]);
}

/* ---- rejected configs ---- */

static void refusals(void **state)
{
    static const struct {
        const char *image, *label, *message;
    } cases[] = {
        {"[{mixup: {labels: lable}}]", "[]", "there is no field lable"},
        {"[{mixup: {}}, {scale: 2}]", "[]", "which must come last"},
        {"[{mixup: {}}, {mixup: {}}]", "[]", "a second mixup"},
        {"[{mixup: {}}, {cutmix: {p: 0.5}}]", "[]", "found keys other than alpha"},
        {"[{mixup: {alpha: 0}}]", "[]", "0.001 to 10000"},
        {"[{cutout: 4}, {cutout: 4}]", "[]", "a second step that erases"},
        {"[{cutout: 4}, {horizontal_flip: {}}]", "[]", "steps that move pixels come first"},
        {"[{cast: f16}, {cutout: 4}]", "[]", "expected it before"},
        {"[{random_erasing: {value: random}}]", "[]", "expected f16, bf16, f32 or f64"},
        {"[{random_erasing: {value: [1, 2]}}]", "[]", "one per channel"},
        {"[{cutout: 21}]", "[]", "a box of 21 x 21 (height x width) for images of 20 x 30"},
        {"[{cutout: [20, 31]}]", "[]", "a box of 20 x 31 (height x width) for images of 20 x 30"},
        {"[{center_crop: [8, 9]}, {cutout: [8, 10]}, {cast: f32}]", "[]", "for images of 8 x 9"},
        {"[{random_erasing: {value: 300}}]", "[]", "found the value 300, expected 0 to 255: rows are uint8"},
        {"[{cutout: {size: 3, fill: [0, 255, -5]}}]", "[]", "found the value -5, expected 0 to 255"},
        {"[{cutout: {size: 3, fill: 128}}, {scale: 2}, {cast: u8}]", "[]", "which the following steps change to 256"},
        {"[{cutout: {size: 3, fill: 128}}, {cast: i8}, {mixup: {}}]", "[]", "expected -128 to 127"},
        {"[]", "[{label_smoothing: 0.1}]", "without one_hot"},
        {"[]", "[{one_hot: 3}, {label_smoothing: 0.1}, {label_smoothing: 0.1}]", "a second label_smoothing"},
        {"[]", "[{one_hot: {num_classes: 3, label_smoothing: 0.1}}, {label_smoothing: 0.1}]",
         "a second label_smoothing"},
        {"[]", "[{scale: 2}, {one_hot: 3}]", "to come first"},
        {"[{one_hot: 3}]", "[]", "one integer each"},
        {"[]", "[{one_hot: 3}, {scale: 2}]", "which must come last"},
        {"[]", "[{cast: f32}, {cutmix: {}}]", "the axes of height and width are unknown"},
        {"[]", "[{cutmix: {}}]", "expected f16, bf16, f32, u8, i8 or i32"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader = NULL;
        char text[1024];

        snprintf(text, sizeof text,
                 "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: %s}, label: {path: %s, "
                 "transforms: "
                 "%s}}}",
                 stkt_path("images.npy"), cases[i].image, stkt_path("labels.npy"), cases[i].label);
        memset(&err, 0, sizeof err);
        if (stk_loader_open_text(text, NULL, NULL, 0, &loader, &err) == STK_OK ||
            !strstr(err.message, cases[i].message))
            fail_msg("%s %s: found \"%s\", expected \"%s\"", cases[i].image, cases[i].label, err.message,
                     cases[i].message);
    }
}

/* The most extreme values that are accepted. */
static void edges(void **state)
{
    static const char *const lists[] = {
        "[{cutout: {size: [20, 30], fill: 255}}]", "[{random_erasing: {value: [0, 255, 0]}}]",
        "[{cutout: {size: 3, fill: -128}}, {cast: i8}]", "[{cutout: {size: 3, fill: 300}}, {cast: f32}]",
        "[{cutout: {size: 3, fill: 300}}, {quantize: {scale: 1, dtype: u8}}]"};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        stk_loader *loader;

        assert_ok(stkt_open(&loader, "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: %s}}}",
                            stkt_path("images.npy"), lists[i]));
        stk_loader_destroy(loader);
    }
}

static void one_row_has_no_partner(void **state)
{
    (void)state;
    for (int rows = 1; rows < 3; rows++) {
        stk_loader *loader;
        bool noted = false;

        assert_ok(
            stkt_open(&loader,
                      "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: [{cutmix: {}}]}}}\n"
                      "loader: {batch_size: %d}",
                      stkt_path("images.npy"), rows));
        for (int i = 0; i < stk_loader_note_count(loader); i++)
            noted = noted || strstr(stk_loader_note(loader, i), "image: cutmix has no effect");
        assert_int_equal(noted, rows == 1);
        stk_loader_destroy(loader);
    }
}

static void no_memory(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 2000; n++) {
        stk_loader *loader = NULL;
        char text[1024];
        stk_status status;

        snprintf(
            text, sizeof text,
            "dataset: {fields: {image: {path: %s, source: {layout: nhwc}, transforms: [{random_crop: {size: 8, "
            "padding: "
            "2}}, {random_horizontal_flip: {}}, {normalize: imagenet}, {cutout: 3}, {mixup: {labels: label}}]}, label: "
            "{path: %s, transforms: [{one_hot: 11}]}}}\nloader: {num_workers: 0}",
            stkt_path("images.npy"), stkt_path("labels.npy"));
        stki_memory_fail_at(n);
        status = stk_loader_open_text(text, NULL, NULL, 0, &loader, &err);
        stki_memory_fail_at(0);
        stk_loader_destroy(loader);
        if (status == STK_OK)
            return;
        assert_int_equal(status, STK_E_MEMORY);
    }
    fail_msg("opening still fails after many allocations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mixup_rows),
                                       cmocka_unit_test(cutmix_rows),
                                       cmocka_unit_test(ranks_agree),
                                       cmocka_unit_test(workers_change_nothing),
                                       cmocka_unit_test(one_hot_rows),
                                       cmocka_unit_test(label_out_of_range),
                                       cmocka_unit_test(erased_values),
                                       cmocka_unit_test(erasing_as_torchvision),
                                       cmocka_unit_test(lambda_as_torchvision),
                                       cmocka_unit_test(refusals),
                                       cmocka_unit_test(edges),
                                       cmocka_unit_test(one_row_has_no_partner),
                                       cmocka_unit_test(no_memory)};

    write_data();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
