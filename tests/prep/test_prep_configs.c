/* stki-threads */
/* Runs the example jobs of configs/prep with small data: loaders must be able to open the outputs, and the contents
 * must be correct. */
#include "faults.h"
#include "jpeg_decode.h"
#include "jpeg_header.h"
#include "jpeg_make.h"
#include "prep_test.h"
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

enum { IMAGES = 40 };
static const char *const classes[] = {"ant", "bee", "cat"};

static int class_of(int i)
{
    return i / 14;
}

static stkt_jpeg how_of(int i)
{
    return (stkt_jpeg){.width = 280 + 5 * i, .height = 300 - 3 * i, .quality = 80};
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *to = fopen(path, "wb");

    assert_non_null(to);
    assert_int_equal(fwrite(bytes, 1, size, to), size);
    assert_int_equal(fclose(to), 0);
}

static const char *image_path(int i)
{
    return stkt_path(stkt_text("set/%s/%02d.jpg", classes[class_of(i)], i));
}

static int setup(void **state)
{
    (void)state;
    assert_int_equal(mkdir(stkt_path("set"), 0700), 0);
    for (int c = 0; c < 3; c++)
        assert_int_equal(mkdir(stkt_path(stkt_text("set/%s", classes[c])), 0700), 0);
    for (int i = 0; i < IMAGES; i++) {
        stkt_jpeg how = how_of(i);
        uint8_t *pixels = malloc((size_t)how.width * (size_t)how.height * 3), *to = pixels;
        stkt_bytes file;

        for (int y = 0; y < how.height; y++) /* smooth, so that JPEG compresses it well */
            for (int x = 0; x < how.width; x++)
                for (int c = 0; c < 3; c++)
                    *to++ = (uint8_t)(x / 4 + y / 5 + 20 * c + (i * 7) % 60);
        how.pixels = pixels;
        file = stkt_jpeg_make(&how);
        write_file(image_path(i), file.data, file.size);
        free(file.data);
        free(pixels);
    }
    return 0;
}

static char ran[64][64];
static int ran_count;

/* Runs a job of configs/prep; `in` and `out` are in the test's folder. rows -1: any number. */
static void run_job(const char *name, const char *in, const char *out, int64_t rows)
{
    char path[600];
    stk_prep *job;
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    snprintf(path, sizeof path, "%s/../configs/prep/%s", STKT_TESTS_DIR, name);
    snprintf(ran[ran_count++ % 64], sizeof ran[0], "%s", name);
    assert_int_equal(setenv("IN", stkt_path(in), 1), 0);
    assert_int_equal(setenv("OUT", stkt_path(out), 1), 0);
    assert_ok(stk_prep_open_file(path, NULL, 0, NULL, &job, &err));
    assert_ok(stk_prep_run(job, &err));
    assert_ok(stk_prep_get_result(job, &result, &err));
    assert_true(result.complete);
    assert_true(rows < 0 || result.rows == rows);
    assert_int_equal(result.skipped, 0);
    stk_prep_destroy(job);
}

/* A loader of these fields, in order, with batches of one row. */
static stk_loader *open_loader(const char *fields)
{
    stk_loader *loader;
    stk_error err;

    assert_ok(stk_loader_open_text(stkt_text("dataset: {fields: {%s}}\nloader: {num_workers: 0}\n", fields), NULL, NULL,
                                   0, &loader, &err));
    return loader;
}

static stk_batch *next(stk_loader *loader)
{
    stk_batch *batch;
    stk_error err;

    assert_ok(stk_loader_next(loader, &batch, &err));
    assert_int_equal(stk_batch_rows(batch), 1);
    return batch;
}

static stk_tensor tensor_of(const stk_batch *batch, const char *name)
{
    stk_tensor tensor;
    stk_error err;

    assert_ok(stk_batch_tensor(batch, name, &tensor, &err));
    return tensor;
}

static void at_end(stk_loader *loader)
{
    stk_batch *batch;

    assert_int_equal(stk_loader_next(loader, &batch, NULL), STK_END);
    stk_loader_destroy(loader);
}

/* ---- images ---- */

/* Each class must be as frequent as in the folder, sides must be 256, and the pixels close to those of a loader that
 * scales the same files. */
static void check_beton(const char *out, double most_apart)
{
    stk_loader *made = open_loader(stkt_text("image: {path: %s, ragged: true}, label: {path: %s}", out, out)),
               *plain = open_loader(stkt_text("image: {path: %s, ragged: true, transforms: [{resize: {longer: 256}}]}, "
                                              "label: {path: %s}",
                                              stkt_path("set"), stkt_path("set")));
    uint8_t *images[IMAGES];
    int64_t sizes[IMAGES][2], labels[IMAGES], seen = 0;
    stk_batch *batch;

    for (int i = 0; i < IMAGES; i++) {
        stk_tensor values, shapes;

        batch = next(plain);
        values = tensor_of(batch, "image.values");
        shapes = tensor_of(batch, "image.shapes");
        memcpy(sizes[i], shapes.data, sizeof sizes[i]);
        labels[i] = *(const int64_t *)tensor_of(batch, "label").data;
        images[i] = malloc((size_t)(sizes[i][0] * sizes[i][1] * 3));
        memcpy(images[i], values.data, (size_t)(sizes[i][0] * sizes[i][1] * 3));
        stk_batch_release(batch);
    }
    for (int n = 0; n < IMAGES; n++) {
        const uint8_t *pixels;
        const int64_t *shape;
        double apart = 0;
        int i = 0;

        batch = next(made);
        pixels = tensor_of(batch, "image.values").data;
        shape = tensor_of(batch, "image.shapes").data;
        while (i < IMAGES && (sizes[i][0] != shape[0] || sizes[i][1] != shape[1] ||
                              labels[i] != *(const int64_t *)tensor_of(batch, "label").data || seen >> i & 1))
            i++;
        assert_in_range(i, 0, IMAGES - 1);
        seen |= INT64_C(1) << i;
        assert_int_equal(shape[0] > shape[1] ? shape[0] : shape[1], 256);
        for (int64_t k = 0; k < shape[0] * shape[1] * 3; k++)
            apart += abs(pixels[k] - images[i][k]);
        apart /= (double)(shape[0] * shape[1] * 3);
        if (apart > most_apart)
            fail_msg("%s: image %d: pixels are %f apart", out, n, apart);
        stk_batch_release(batch);
    }
    for (int i = 0; i < IMAGES; i++)
        free(images[i]);
    at_end(made);
    at_end(plain);
}

static int64_t bytes_of(const char *path)
{
    struct stat about;

    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

static void folders_to_beton(void **state)
{
    int64_t raw, jpeg, mixed;

    (void)state;
    run_job("imagenet-beton.yaml", "set", "raw.beton", IMAGES);
    run_job("imagenet-beton-jpeg.yaml", "set", "jpeg.beton", IMAGES);
    run_job("imagenet-beton-mixed.yaml", "set", "mixed.beton", IMAGES);
    check_beton(stkt_path("raw.beton"), 0);
    check_beton(stkt_path("jpeg.beton"), 2);
    check_beton(stkt_path("mixed.beton"), 2);
    raw = bytes_of(stkt_path("raw.beton"));
    jpeg = bytes_of(stkt_path("jpeg.beton"));
    mixed = bytes_of(stkt_path("mixed.beton"));
    assert_true(jpeg <= mixed && mixed <= raw);
}

/* Only .beton can store, for each image, whether it is encoded. */
static void a_mixture_in_other_files(void **state)
{
    static const char *const endings[] = {"npy", "tar", "h5", "npz", "pt", "safetensors"};
    char path[600];
    stk_prep *job;
    stk_error err = {0};

    (void)state;
    snprintf(path, sizeof path, "%s/../configs/prep/imagenet-beton-mixed.yaml", STKT_TESTS_DIR);
    assert_int_equal(setenv("IN", stkt_path("set"), 1), 0);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        assert_int_equal(setenv("OUT", stkt_path(stkt_text("mixture.%s", endings[i])), 1), 0);
        assert_ok(stk_prep_open_file(path, NULL, 0, NULL, &job, &err));
        assert_status(stk_prep_run(job, &err), STK_E_CONFIG);
        assert_says("write a .beton");
        stk_prep_destroy(job);
    }
}

/* The output must contain the original files, each with its label, in any order. */
static void check_tar(const char *out, int images, int64_t *which)
{
    stk_loader *made = open_loader(stkt_text(
        "image: {path: %s, source: {name: jpg, decode: none}}, label: {path: %s, source: {name: cls}}", out, out));

    images = images < 0 ? (int)stk_loader_samples(made) : images;
    for (int n = 0; n < images; n++) {
        stk_batch *batch = next(made);
        const stk_tensor values = tensor_of(batch, "image.values");
        int i = 0;

        for (; i < IMAGES; i++) {
            int64_t bytes;
            char *file = stkt_read_all(image_path(i), &bytes);
            const bool same = bytes == values.shape[0] && memcmp(file, values.data, (size_t)bytes) == 0;

            free(file);
            if (same)
                break;
        }
        assert_in_range(i, 0, IMAGES - 1);
        assert_false(*which >> i & 1);
        *which |= INT64_C(1) << i;
        assert_int_equal(*(const int64_t *)tensor_of(batch, "label").data, class_of(i));
        stk_batch_release(batch);
    }
    at_end(made);
}

static void folders_to_tar(void **state)
{
    int64_t which = 0;

    (void)state;
    run_job("imagenet-tar.yaml", "set", "kept.tar", IMAGES);
    check_tar(stkt_path("kept-00000.tar"), IMAGES, &which);
    assert_int_equal(which, (INT64_C(1) << IMAGES) - 1);
}

/* Different files with the same pixels, which have restart markers. */
static void folders_to_crops(void **state)
{
    int64_t which = 0;
    stk_loader *made, *files;

    (void)state;
    run_job("imagenet-crops.yaml", "set", "crops.tar", IMAGES);
    made = open_loader(stkt_text("image: {path: %s, source: {name: jpg}, ragged: true}", stkt_path("crops-00000.tar")));
    files =
        open_loader(stkt_text("image: {path: %s, source: {name: jpg, decode: none}}", stkt_path("crops-00000.tar")));
    for (int n = 0; n < IMAGES; n++) {
        stk_batch *image = next(made), *file = next(files);
        const int64_t *shape = tensor_of(image, "image.shapes").data;
        const stk_tensor bytes = tensor_of(file, "image.values");
        stki_jpeg_header header;
        stk_error err;
        int i = 0;

        while (i < IMAGES && how_of(i).width != shape[1])
            i++;
        assert_in_range(i, 0, IMAGES - 1);
        assert_int_equal(how_of(i).height, shape[0]);
        which |= INT64_C(1) << i;
        {
            stkt_bytes stored = stkt_bytes_read(image_path(i));
            uint8_t *pixels = stkt_jpeg_plain(stored, JCS_RGB, 1, false);

            assert_memory_equal(tensor_of(image, "image.values").data, pixels, (size_t)(shape[0] * shape[1] * 3));
            free(pixels);
            free(stored.data);
        }
        assert_ok(stki_jpeg_read_header(bytes.data, bytes.shape[0], &header, &err));
        assert_int_equal(header.restart, (how_of(i).width + 7) / 8 % 2 == 0 ? 2 : 1);
        stk_batch_release(image);
        stk_batch_release(file);
    }
    assert_int_equal(which, (INT64_C(1) << IMAGES) - 1);
    at_end(made);
    at_end(files);
}

static void folders_to_npy(void **state)
{
    stk_loader *made, *plain;

    (void)state;
    run_job("folder-npy.yaml", "set", "images.npy", IMAGES);
    made = open_loader(stkt_text("image: {path: %s}, label: {path: %s}", stkt_path("images.image.npy"),
                                 stkt_path("images.label.npy")));
    plain =
        open_loader(stkt_text("image: {path: %s, transforms: [{resize: 256}, {center_crop: 224}]}, label: {path: %s}",
                              stkt_path("set"), stkt_path("set")));
    for (int n = 0; n < IMAGES; n++) {
        stk_batch *a = next(made), *b = next(plain);
        const stk_tensor image = tensor_of(a, "image");

        assert_int_equal(image.ndim, 4);
        assert_int_equal(image.shape[1], 224);
        assert_int_equal(image.shape[2], 224);
        assert_int_equal(image.shape[3], 3);
        assert_memory_equal(image.data, tensor_of(b, "image").data, 224 * 224 * 3);
        assert_int_equal(*(const int64_t *)tensor_of(a, "label").data, class_of(n));
        stk_batch_release(a);
        stk_batch_release(b);
    }
    at_end(made);
    at_end(plain);
}

static void parts_of_a_folder(void **state)
{
    int64_t train = 0, val = 0;

    (void)state;
    run_job("split-train.yaml", "set", "train.tar", -1);
    run_job("split-val.yaml", "set", "val.tar", -1);
    check_tar(stkt_path("train.tar"), -1, &train);
    check_tar(stkt_path("val.tar"), -1, &val);
    assert_int_equal(train & val, 0);
    assert_int_equal(train | val, (INT64_C(1) << IMAGES) - 1);
    assert_true(val != 0);
}

static void run_by(const char *name, const char *in, const char *out, const char *set, stk_prep_result *result)
{
    char path[600];
    stk_prep *job;
    stk_error err = {0};

    snprintf(path, sizeof path, "%s/../configs/prep/%s", STKT_TESTS_DIR, name);
    assert_int_equal(setenv("IN", stkt_path(in), 1), 0);
    assert_int_equal(setenv("OUT", stkt_path(out), 1), 0);
    assert_ok(stk_prep_open_file(path, &set, 1, NULL, &job, &err));
    assert_ok(stk_prep_run(job, &err));
    assert_ok(stk_prep_get_result(job, result, &err));
    stk_prep_destroy(job);
}

/* Encoders give the same bytes with any number of threads. */
static void any_number_of_workers(void **state)
{
    stk_prep_result result = {.struct_size = sizeof result};

    (void)state;
    run_by("imagenet-beton-mixed.yaml", "set", "inline.beton", "prep.num_workers=0", &result);
    run_by("imagenet-beton-mixed.yaml", "set", "one.beton", "prep.num_workers=1", &result);
    run_by("imagenet-beton-mixed.yaml", "set", "eight.beton", "prep.num_workers=8", &result);
    stkt_same_file(stkt_path("inline.beton"), stkt_path("one.beton"));
    stkt_same_file(stkt_path("inline.beton"), stkt_path("eight.beton"));
}

/* An image that an encoder rejects is left out with the name of its file, like one that a reader rejects. */
static void files_that_are_not_images(void **state)
{
    stk_prep_result result = {.struct_size = sizeof result};
    int64_t bytes, which = 0;
    char *list;

    (void)state;
    stkt_write_file(stkt_path("set/cat/zz.jpg"), "GIF89a, whatever its name says", 30);
    run_by("imagenet-tar.yaml", "set", "most.tar", "prep.max_error_fraction=0.5", &result);
    assert_int_equal(result.rows, IMAGES);
    assert_int_equal(result.skipped, 1);
    check_tar(stkt_path("most-00000.tar"), IMAGES, &which);
    list = stkt_read_all(stkt_path("most.skipped.jsonl"), &bytes);
    assert_non_null(list);
    assert_non_null(strstr(list, "cat/zz.jpg"));
    assert_non_null(strstr(list, "GIF"));
    free(list);
    assert_int_equal(remove(stkt_path("set/cat/zz.jpg")), 0);
}

/* Classes by name, one of which is left out, and only images below 256 pixels. */
static void a_table_to_tar(void **state)
{
    char text[IMAGES * 40] = "number,class,path\n";
    int64_t which = 0, wanted = 0;

    (void)state;
    for (int i = IMAGES - 1; i >= 0; i--) {
        const stkt_jpeg how = how_of(i);

        sprintf(text + strlen(text), "%d,\"%s\",set/%s/%02d.jpg\n", i, classes[class_of(i)], classes[class_of(i)], i);
        if (class_of(i) != 2 && how.height >= 256 && how.width >= 256)
            wanted |= INT64_C(1) << i;
    }
    stkt_write_file(stkt_path("index.csv"), text, strlen(text));
    run_job("csv-tar.yaml", "index.csv", "table.tar", -1);
    check_tar(stkt_path("table.tar"), -1, &which);
    assert_int_equal(which, wanted);
}

/* Class names listed in the config, in its order. */
static void a_table_by_names(void **state)
{
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err = {0};

    (void)state;
    assert_ok(stkt_prep_run(NULL, &result, &err,
                            stkt_text("dataset: {fields: {label: {path: %s, source: {name: class, classes: [cat, ant, "
                                      "bee]}}}}\nprep: {filter: {label: {keep: [bee, 0]}}}\noutput: {path: %s}\n",
                                      stkt_path("index.csv"), stkt_path("names.npy"))));
    assert_int_equal(result.rows, IMAGES - 14); /* without ants */
    assert_int_equal(
        stkt_prep_run(NULL, NULL, &err,
                      stkt_text("dataset: {fields: {label: {path: %s, source: {name: class, classes: [cat, "
                                "ant, bee]}}}}\nprep: {filter: {label: {keep: [be]}}}\noutput: {path: "
                                "%s}\n",
                                stkt_path("index.csv"), stkt_path("names2.npy"))),
        STK_E_CONFIG);
    assert_says("bee");
}

/* ---- arrays ---- */

static void hdf5_with_other_chunks(void **state)
{
    enum { ROWS = 100, WIDTH = 200 };
    const int64_t shape[] = {WIDTH};
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *writer;
    stk_loader *made;
    float row[WIDTH];
    stk_error err;

    (void)state;
    assert_ok(stk_writer_create(stkt_path("in.h5"), NULL, &opts, &writer, &err));
    assert_ok(stk_writer_begin(writer, "x", STK_F32, 1, shape, ROWS, &err));
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < WIDTH; k++)
            row[k] = (float)(r * 3 + k / 7);
        assert_ok(stk_writer_append(writer, row, 1, &err));
    }
    assert_ok(stk_writer_end(writer, &err));
    assert_ok(stk_writer_commit(writer, &err));
    run_job("hdf5-rechunk.yaml", "in.h5", "out.h5", ROWS);
    assert_true(bytes_of(stkt_path("out.h5")) < bytes_of(stkt_path("in.h5")) / 2);
    made = open_loader(stkt_text("x: {path: %s}", stkt_path("out.h5")));
    for (int r = 0; r < ROWS; r++) {
        stk_batch *batch = next(made);
        const float *values = tensor_of(batch, "x").data;

        for (int k = 0; k < WIDTH; k++)
            assert_true(values[k] == (float)(r * 3 + k / 7));
        stk_batch_release(batch);
    }
    at_end(made);
}

/* Dequantized with the scale that the job found, each value must be within half a step of the original or at the end of
 * the range; and loaders that quantize the floats with the job's statistics must get the same integers. */
static void npy_to_int8(void **state)
{
    enum { ROWS = 300, WIDTH = 64 };
    const int64_t shape[] = {WIDTH};
    stk_npy_writer *writer;
    stk_loader *made, *plain;
    float row[WIDTH];
    stk_error err;

    (void)state;
    assert_ok(stk_npy_create(stkt_path("x.npy"), STK_F32, 1, shape, false, &writer, &err));
    for (int r = 0; r < ROWS; r++) {
        for (int k = 0; k < WIDTH; k++)
            row[k] = (float)((r * 37 + k * 11) % 101 - 50) * 0.03f;
        assert_ok(stk_npy_append(writer, row, 1, &err));
    }
    assert_ok(stk_npy_commit(writer, &err));
    run_job("npy-int8.yaml", "x.npy", "x8.npy", ROWS);
    assert_int_equal(bytes_of(stkt_path("x8.npy")), 128 + ROWS * WIDTH);
    made = open_loader(stkt_text("x: {path: %s}", stkt_path("x8.npy")));
    plain = open_loader(stkt_text("x: {path: %s, transforms: [{quantize: {stats: %s}}]}", stkt_path("x.npy"),
                                  stkt_path("x8.stats.json")));
    for (int r = 0; r < ROWS; r++) {
        stk_batch *a = next(made), *b = next(plain);
        const stk_tensor x = tensor_of(a, "x");

        assert_int_equal(x.dtype, STK_I8);
        assert_memory_equal(x.data, tensor_of(b, "x").data, WIDTH);
        for (int k = 0; k < WIDTH; k++) {
            const double value = ((r * 37 + k * 11) % 101 - 50) * 0.03, step = 1.5 / 127;

            assert_true(fabs(((const int8_t *)x.data)[k] * step - value) < 2 * step);
        }
        stk_batch_release(a);
        stk_batch_release(b);
    }
    at_end(made);
    at_end(plain);
}

/* ---- texts ---- */

static void lines_to_bytes(void **state)
{
    static const char text[] = "one line\n\nzwei \xc3\xa4\nlast";
    static const uint16_t wanted[] = {'o', 'n', 'e', ' ',  'l',  'i', 'n', 'e', 256, 256, 'z', 'w',
                                      'e', 'i', ' ', 0xc3, 0xa4, 256, 'l', 'a', 's', 't', 256};
    enum { TOKENS = sizeof wanted / sizeof wanted[0] };
    stk_loader *made;
    stk_batch *batch;

    (void)state;
    stkt_write_file(stkt_path("texts.txt"), text, sizeof text - 1);
    run_job("text-bytes.yaml", "texts.txt", "bytes.bin", 4);
    made = open_loader(
        stkt_text("tokens: {path: %s, source: {window: {length: %d}}}", stkt_path("bytes-00000.bin"), (int)TOKENS));
    batch = next(made);
    assert_int_equal(tensor_of(batch, "tokens").dtype, STK_U16);
    assert_memory_equal(tensor_of(batch, "tokens").data, wanted, sizeof wanted);
    stk_batch_release(batch);
    at_end(made);
}

/* Writes a line of JSON for each of these documents, which end with a NUL. */
static void write_lines(const char *documents, int64_t bytes, const char *path)
{
    FILE *to = fopen(path, "wb");

    assert_non_null(to);
    for (int64_t at = 0; at < bytes; at += (int64_t)strlen(documents + at) + 1) {
        json_t *line = json_pack("{s:i, s:s}", "number", 1, "text", documents + at);
        char *text = json_dumps(line, JSON_COMPACT);

        fprintf(to, "%s\n", text);
        free(text);
        json_decref(line);
    }
    assert_int_equal(fclose(to), 0);
}

/* The documents must have tiktoken's ids (from the goldens). Each occurs once, in a different order. */
static void lines_of_json_by_a_vocabulary(void **state)
{
    char path[600];
    int64_t bytes, id_bytes, at[128], lengths[128], count = 0;
    char *corpus, *ids;
    stk_loader *made;
    bool seen[128] = {false}, in_order = true;

    (void)state;
    snprintf(path, sizeof path, "%s/prep/goldens/tokens_corpus.txt", STKT_TESTS_DIR);
    corpus = stkt_read_all(path, &bytes);
    write_lines(corpus, bytes, stkt_path("texts.jsonl"));
    snprintf(path, sizeof path, "%s/prep/goldens/tokens_tiktoken_cl100k.ids", STKT_TESTS_DIR);
    ids = stkt_read_all(path, &id_bytes);
    for (int64_t next_at = 0; next_at < id_bytes / 2; count++) {
        lengths[count] = ((const uint16_t *)(void *)ids)[next_at];
        at[count] = next_at + 1;
        next_at += 1 + lengths[count];
    }
    snprintf(path, sizeof path, "%s/prep/goldens/tokens_small.tiktoken", STKT_TESTS_DIR);
    assert_int_equal(setenv("VOCABULARY", path, 1), 0);
    run_job("text-vocabulary.yaml", "texts.jsonl", "tokens.bin", count);
    made =
        open_loader(stkt_text("text: {path: %s, source: {documents: {end: 100257}}}", stkt_path("tokens-00000.bin")));
    for (int64_t n = 0; n < count; n++) {
        stk_batch *batch = next(made);
        const stk_tensor values = tensor_of(batch, "text.values");
        const uint32_t *found = values.data;
        int64_t which = 0;

        assert_int_equal(values.dtype, STK_U32);
        for (; which < count; which++) {
            int64_t k = 0;

            while (k < lengths[which] && k < values.shape[0] && found[k] == ((uint16_t *)(void *)ids)[at[which] + k])
                k++;
            if (!seen[which] && k == lengths[which] && values.shape[0] == k + 1)
                break;
        }
        assert_in_range(which, 0, count - 1);
        assert_int_equal(found[lengths[which]], 100257);
        in_order = in_order && which == n;
        seen[which] = true;
        stk_batch_release(batch);
    }
    assert_false(in_order);
    at_end(made);
    free(corpus);
    free(ids);
}

/* In a job given as text, the path of a vocabulary is relative to the same folder as other paths. */
static void paths_of_a_job_given_as_text(void **state)
{
    static const char text[] =
        "dataset: {fields: {text: {path: texts.jsonl}}}\noutput: {path: beside.bin, format: tokens, "
        "fields: {text: {encode: tokens, vocabulary: beside.tiktoken, split: gpt2}}}\n";
    char path[600];
    int64_t bytes;
    char *vocabulary;
    stk_prep *job;
    stk_error err = {0};

    (void)state;
    snprintf(path, sizeof path, "%s/prep/goldens/tokens_small.tiktoken", STKT_TESTS_DIR);
    vocabulary = stkt_read_all(path, &bytes);
    stkt_write_file(stkt_path("beside.tiktoken"), vocabulary, (size_t)bytes);
    free(vocabulary);
    snprintf(path, sizeof path, "%s", stkt_path("x"));
    *strrchr(path, '/') = '\0';
    assert_ok(stk_prep_open_text(text, path, NULL, 0, NULL, &job, &err));
    assert_ok(stk_prep_run(job, &err));
    stk_prep_destroy(job);
    assert_true(stkt_is_there(stkt_path("beside.bin")));
}

/* A modified vocabulary makes it a different job, even under the same file name. */
static void another_vocabulary(void **state)
{
    char path[600];
    int64_t bytes;
    char *text;
    stk_prep *job;
    stk_error err = {0};

    (void)state;
    snprintf(path, sizeof path, "%s/prep/goldens/tokens_small.tiktoken", STKT_TESTS_DIR);
    text = stkt_read_all(path, &bytes);
    stkt_write_file(stkt_path("mine.tiktoken"), text, (size_t)bytes);
    assert_int_equal(setenv("VOCABULARY", stkt_path("mine.tiktoken"), 1), 0);
    assert_int_equal(setenv("IN", stkt_path("texts.jsonl"), 1), 0);
    assert_int_equal(setenv("OUT", stkt_path("again.bin"), 1), 0);
    snprintf(path, sizeof path, "%s/../configs/prep/text-vocabulary.yaml", STKT_TESTS_DIR);
    for (int i = 0; i < 2; i++) {
        assert_ok(stk_prep_open_file(path, NULL, 0, NULL, &job, &err));
        stk_prep_cancel(job); /* leaves a work folder */
        if (i == 0)
            assert_int_equal(stk_prep_run(job, &err), STK_E_CANCELLED);
        else
            assert_int_equal(stk_prep_run(job, &err), STK_E_MISMATCH);
        stk_prep_destroy(job);
        bytes -= 20; /* drops the last one or two tokens */
        while (text[bytes - 1] != '\n')
            bytes--;
        stkt_write_file(stkt_path("mine.tiktoken"), text, (size_t)bytes);
    }
    assert_non_null(strstr(err.message, "encoders"));
    free(text);
}

/* Must run last: checks that every job in the folder was run, and that each begins with a comment that asks a
 * question. */
static void every_job_was_run(void **state)
{
    char path[600], first[200];
    DIR *folder;
    const struct dirent *entry;

    (void)state;
    snprintf(path, sizeof path, "%s/../configs/prep", STKT_TESTS_DIR);
    folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL) {
        int i = 0;
        FILE *file;

        if (!strstr(entry->d_name, ".yaml"))
            continue;
        while (i < ran_count && strcmp(ran[i], entry->d_name) != 0)
            i++;
        if (i == ran_count)
            fail_msg("no test runs configs/prep/%s", entry->d_name);
        snprintf(path, sizeof path, "%s/../configs/prep/%s", STKT_TESTS_DIR, entry->d_name);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_non_null(fgets(first, sizeof first, file));
        fclose(file);
        if (strncmp(first, "# ", 2) != 0 || !strchr(first, '?'))
            fail_msg("configs/prep/%s does not begin with a question", entry->d_name);
    }
    closedir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_to_beton),
        cmocka_unit_test(a_mixture_in_other_files),
        cmocka_unit_test(folders_to_tar),
        cmocka_unit_test(any_number_of_workers),
        cmocka_unit_test(files_that_are_not_images),
        cmocka_unit_test(a_table_to_tar),
        cmocka_unit_test(a_table_by_names),
        cmocka_unit_test(folders_to_crops),
        cmocka_unit_test(folders_to_npy),
        cmocka_unit_test(parts_of_a_folder),
        cmocka_unit_test(hdf5_with_other_chunks),
        cmocka_unit_test(npy_to_int8),
        cmocka_unit_test(lines_to_bytes),
        cmocka_unit_test(lines_of_json_by_a_vocabulary),
        cmocka_unit_test(paths_of_a_job_given_as_text),
        cmocka_unit_test(another_vocabulary),
        cmocka_unit_test(every_job_was_run),
    };

    stkt_skip_syncs(true);
    return cmocka_run_group_tests(tests, setup, NULL);
}
