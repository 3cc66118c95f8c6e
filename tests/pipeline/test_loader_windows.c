/* stki-threads */
/* Windows over samples: clips of images from folders, arrays, tar archives and tables; the values of other fields,
 * groups, moving offsets, failed samples, resuming and ranks. Image i of a folder has a single gray value, 20 * i, and
 * its own size; in frame f of the array of clips, pixel (y, x) is (y, x, f). */
#include "faulty.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "tar_build.h"
#include <sys/stat.h>

enum { IMAGES = 10, FRAMES = 40, SIDE = 32, CROP = 8, ROOM = 1 << 20 };

/* ---- data ---- */

static stkt_bytes gray_jpeg(int i)
{
    const int height = 20 + i, width = 24 + 2 * i;
    uint8_t *pixels = malloc((size_t)(3 * height * width));
    stkt_bytes file;

    memset(pixels, 20 * i, (size_t)(3 * height * width));
    file = stkt_jpeg_make(&(stkt_jpeg){.width = width, .height = height, .quality = 100, .pixels = pixels});
    free(pixels);
    return file;
}

/* Writes `flat`, a folder of 10 images; `classes`, with 6 in a and 4 in b; `frames.tar`, the 10 images with their
 * numbers as text. */
static void write_images(void)
{
    struct stkt_tar tar = {0};

    (void)mkdir(stkt_path("flat"), 0777);
    (void)mkdir(stkt_path("flat/one"), 0777);
    (void)mkdir(stkt_path("classes"), 0777);
    (void)mkdir(stkt_path("classes/a"), 0777);
    (void)mkdir(stkt_path("classes/b"), 0777);
    for (int i = 0; i < IMAGES; i++) {
        stkt_bytes file = gray_jpeg(i);
        char name[64];

        snprintf(name, sizeof name, "flat/one/%02d.jpg", i);
        stkt_write_file(stkt_path(name), file.data, file.size);
        snprintf(name, sizeof name, "classes/%s/%02d.jpg", i < 6 ? "a" : "b", i);
        stkt_write_file(stkt_path(name), file.data, file.size);
        snprintf(name, sizeof name, "%02d.jpg", i);
        stkt_tar_put(&tar, '0', name, file.data, file.size);
        free(file.data);
    }
    stkt_tar_write(&tar, stkt_path("frames.tar"));
}

static int write_files(void **state)
{
    static uint8_t clip[FRAMES][SIDE][SIDE][3];
    static float series[1000];
    int32_t labels[FRAMES], videos[FRAMES];
    char table[1024] = "n,m\n";

    (void)state;
    for (int f = 0; f < FRAMES; f++) {
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++)
                memcpy(clip[f][y][x], (uint8_t[]){(uint8_t)y, (uint8_t)x, (uint8_t)f}, 3);
        labels[f] = 100 + f;
        videos[f] = f < 7 ? 3 : f < 9 ? 1 : 2; /* runs of 7, 2 and 31 */
        snprintf(table + strlen(table), sizeof table - strlen(table), "%d,%d\n", f, 2 * f);
    }
    for (int i = 0; i < 1000; i++)
        series[i] = (float)i;
    stkt_write_npy(stkt_path("clip.npy"), "|u1", "False", "(40, 32, 32, 3)", 64, clip, sizeof clip);
    stkt_write_npy(stkt_path("first.npy"), "|u1", "False", "(16, 32, 32, 3)", 64, clip, sizeof clip[0] * 16);
    stkt_write_npy(stkt_path("second.npy"), "|u1", "False", "(24, 32, 32, 3)", 64, clip[16], sizeof clip[0] * 24);
    stkt_write_npy(stkt_path("labels.npy"), "<i4", "False", "(40,)", 64, labels, sizeof labels);
    stkt_write_npy(stkt_path("videos.npy"), "<i4", "False", "(40,)", 64, videos, sizeof videos);
    stkt_write_npy(stkt_path("series.npy"), "<f4", "False", "(1000,)", 64, series, sizeof series);
    stkt_write_file(stkt_path("table.csv"), table, strlen(table));
    stkt_write_file(stkt_path("a.txt"), "one\nthree\nfive\nseven\n", 21);
    stkt_write_file(stkt_path("a.jsonl"), "{\"text\": \"one\"}\n{\"text\": \"three\"}\n{\"text\": \"five\"}\n", 51);
    stkt_write_file(stkt_path("names.csv"), "name,n\none,1\nthree,2\nfive,3\n", 28);
    write_images();
    return 0;
}

/* ---- loaders ---- */

static STK_PRINTF(1, 2) stk_loader *open_ok(const char *format, ...)
{
    char text[4096];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_ok(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err));
    return loader;
}

static STK_PRINTF(2, 3) void refuse(stk_status expected, const char *format, ...)
{
    char text[4096];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_status(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err), expected);
}

/* Reads all remaining rows of x and, if it is not NULL, of y, whose values have 4 or 8 bytes. Returns the number of
 * rows. */
static int64_t drain(stk_loader *loader, uint8_t *x, int64_t *y)
{
    stk_batch *batch;
    stk_error err;
    stk_status status;
    int64_t rows = 0, used = 0, values = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, "x", &t, &err));
        assert_true(used + stk_tensor_nbytes(&t) <= ROOM);
        memcpy(x + used, t.data, (size_t)stk_tensor_nbytes(&t));
        used += stk_tensor_nbytes(&t);
        rows += t.shape[0];
        if (y) {
            assert_ok(stk_batch_tensor(batch, "y", &t, &err));
            for (int64_t i = 0; i < stk_tensor_nbytes(&t) / stk_dtype_size(t.dtype); i++)
                y[values++] =
                    stk_dtype_size(t.dtype) == 4 ? ((const int32_t *)t.data)[i] : ((const int64_t *)t.data)[i];
        }
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    stk_loader_destroy(loader);
    return rows;
}

/* The number of the image from which all pixels of this 2 x 2 row come. */
static int gray_of(const uint8_t *row)
{
    const int number = (row[0] + 10) / 20;

    for (int i = 0; i < 12; i++)
        assert_in_range(row[i] + 2, 20 * number, 20 * number + 4);
    return number;
}

#define IMAGES_OF(path) \
    "x: {path: " path ", transforms: [{resize: {size: [2, 2]}}], source: {name: image, window: {%s}}}"

static uint8_t x[ROOM], again[ROOM];
static int64_t y[4096];

/* Checks clips of `length` images that begin with the images in `firsts`. */
static void check_clips(const uint8_t *rows, int64_t count, int length, int dilation, int expected, const int *firsts)
{
    assert_int_equal(count, expected);
    for (int64_t r = 0; r < count; r++)
        for (int k = 0; k < length; k++)
            assert_int_equal(gray_of(rows + (r * length + k) * 12), firsts[r] + k * dilation);
}

/* ---- tests ---- */

static void folders_give_clips(void **state)
{
    static const int firsts[] = {0, 2, 4, 6}, dilated[] = {0, 3}, two[] = {0, 2, 6}, across[] = {0, 2, 4, 6};
    static const int64_t of_first[] = {0, 0, 1}, of_last[] = {0, 0, 1, 1}, all[] = {0, 0, 0, 0, 0, 0, 1, 1, 1};

    (void)state;
    check_clips(x, drain(open_ok("{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 3, stride: 2"), x, NULL), 3,
                1, 4, firsts);
    check_clips(
        x, drain(open_ok("{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 3, dilation: 3, stride: 3"), x, NULL),
        3, 3, 2, dilated);
    check_clips(x,
                drain(open_ok("{dataset: {fields: {x: {path: frames.tar, transforms: [{resize: {size: [2, 2]}}], "
                              "source: {name: jpg, window: {length: 3, stride: 2}}}}}}"),
                      x, NULL),
                3, 1, 4, firsts);
#define WITH_LABELS "{dataset: {fields: {" IMAGES_OF("classes") ", y: {path: classes, source: {name: label}}}}}"
    check_clips(x, drain(open_ok(WITH_LABELS, "length: 3, stride: 2"), x, y), 3, 1, 3, two);
    assert_memory_equal(y, of_first, sizeof of_first);
    check_clips(x, drain(open_ok(WITH_LABELS, "length: 3, stride: 2, take: last, group_by: none"), x, y), 3, 1, 4,
                across);
    assert_memory_equal(y, of_last, sizeof of_last);
    check_clips(x, drain(open_ok(WITH_LABELS, "length: 3, stride: 2, take: all"), x, y), 3, 1, 3, two);
    assert_memory_equal(y, all, sizeof all);
}

#define CLIPS                                                                                          \
    "x: {path: %s, source: {layout: nhwc, window: {%s}}, transforms: [{random_crop: {size: [8, 8]}}, " \
    "{random_horizontal_flip: "                                                                        \
    "{p: 0.5}}]}"

/* Checks a clip of frames first, first + dilation, …, with one crop of SIDE x SIDE that may be flipped. Returns the
 * crop and the flip as a number. */
static int check_clip(const uint8_t *row, int length, int dilation, int first)
{
    const int top = row[0], turned = row[4] < row[1], left = turned ? row[1] - CROP + 1 : row[1];

    for (int k = 0; k < length; k++)
        for (int v = 0; v < CROP; v++)
            for (int u = 0; u < CROP; u++) {
                const uint8_t *pixel = row + ((k * CROP + v) * CROP + u) * 3;

                assert_int_equal(pixel[0], top + v);
                assert_int_equal(pixel[1], turned ? left + CROP - 1 - u : left + u);
                assert_int_equal(pixel[2], first + k * dilation);
            }
    return (top * SIDE + left) * 2 + turned;
}

static void a_clip_has_one_draw(void **state)
{
    enum { LENGTH = 5, ROW = LENGTH * CROP * CROP * 3 };
    static const char *const accesses[] = {"auto", "pread"};
    int differ = 0, turned = 0;

    (void)state;
    for (int access = 0; access < 2; access++)
        for (int workers = 0; workers < 4; workers += 3) {
            int64_t rows = drain(open_ok("{dataset: {fields: {" CLIPS ", y: {path: labels.npy}}}, loader: {batch_size: "
                                         "3, seed: 5, num_workers: %d, access: %s}}",
                                         "clip.npy", "length: 5, stride: 1, dilation: 2", workers, accesses[access]),
                                 access + workers ? again : x, y);

            assert_int_equal(rows, 32);
            if (access + workers)
                assert_memory_equal(x, again, 32 * ROW);
        }
    for (int r = 0, before = -1; r < 32; r++) {
        const int how = check_clip(x + r * ROW, LENGTH, 2, r);

        differ += how != before;
        turned += how % 2;
        before = how;
        assert_int_equal(y[r], 100 + r);
    }
    assert_in_range(turned, 4, 28);
    assert_true(differ > 28);
}

static void shards_are_not_crossed(void **state)
{
    enum { ROW = 4 * CROP * CROP * 3 };
    int64_t rows =
        drain(open_ok("{dataset: {fields: {" CLIPS "}}}", "[first.npy, second.npy]", "length: 4, stride: 5"), x, NULL);
    static const int firsts[] = {0, 5, 10, 16, 21, 26, 31, 36}, none[] = {0, 5, 10, 15, 20, 25, 30, 35};

    (void)state;
    assert_int_equal(rows, 8);
    for (int r = 0; r < 8; r++)
        (void)check_clip(x + r * ROW, 4, 1, firsts[r]);
    rows = drain(
        open_ok("{dataset: {fields: {" CLIPS "}}}", "[first.npy, second.npy]", "length: 4, stride: 5, group_by: none"),
        x, NULL);
    assert_int_equal(rows, 8);
    for (int r = 0; r < 8; r++)
        (void)check_clip(x + r * ROW, 4, 1, none[r]);
}

/* Runs of 7, 2 and 31 frames: every second window of 3 begins at 0, 2, 4 and at 9, 11, …, 37. */
static void a_field_divides_groups(void **state)
{
    stk_loader *loader = open_ok("{dataset: {fields: {x: {path: labels.npy, dtype: uint8, source: {window: {length: 3, "
                                 "stride: 2, group_by: y, take: last}}}, y: {path: videos.npy}}}}");
    int64_t rows;

    (void)state;
    assert_int_equal(stk_loader_note_count(loader), 1); /* a note: no window contains the run of two */
    rows = drain(loader, x, y);
    assert_int_equal(rows, 3 + 15);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < 3; k++) {
            assert_int_equal(x[r * 3 + k], 100 + (r < 3 ? 2 * r : 9 + 2 * (r - 3)) + k);
            assert_int_equal(y[r], r < 3 ? 3 : 2);
        }
}

static void arrays_with_values_in_other_fields(void **state)
{
    const float *values = (const float *)(const void *)x;
    int64_t rows = drain(open_ok("{dataset: {fields: {x: {path: series.npy, source: {window: {length: 5, dilation: 3, "
                                 "stride: 1}}}}}, loader: {batch_size: 7}}"),
                         x, NULL);

    (void)state;
    assert_int_equal(rows, 1000 - 12);
    for (int64_t r = 0; r < rows; r++)
        for (int k = 0; k < 5; k++)
            assert_int_equal((int)values[r * 5 + k], r + 3 * k);
    rows = drain(open_ok("{dataset: {fields: {x: {path: videos.npy, dtype: uint8, source: {window: {length: 4, stride: "
                         "3, take: last}}}, y: {path: labels.npy}}}}"),
                 x, y);
    assert_int_equal(rows, 13);
    for (int64_t r = 0; r < rows; r++)
        assert_int_equal(y[r], 100 + 3 * r + 3);
    rows = drain(open_ok("{dataset: {fields: {x: {path: table.csv, dtype: uint8, source: {name: n, window: {length: 4, "
                         "stride: 3}}}, y: {path: table.csv, source: {name: m}, dtype: int64}}}}"),
                 x, y);
    assert_int_equal(rows, 13);
    for (int64_t r = 0; r < rows; r++) {
        assert_int_equal(y[r], 2 * 3 * r);
        for (int k = 0; k < 4; k++)
            assert_int_equal(x[r * 4 + k], 3 * r + k);
    }
}

/* Every window is in one folder, whatever its offset. With random offsets, every position is used once before any is
 * used again. */
static void moving_windows_stay_in_their_group(void **state)
{
    enum { EPOCHS = 40 };
    static const char *const words[] = {"shifted", "random"};

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        int seen[IMAGES] = {0}, places = 0, least = EPOCHS, most = 0;
        char window[96];
        int64_t rows;

        snprintf(window, sizeof window, "length: 3, stride: 2, offsets: %s", words[kind]);
        rows = drain(open_ok("{dataset: {fields: {" IMAGES_OF(
                                 "classes") ", y: {path: classes, source: {name: label}}}}, "
                                            "loader: {order: random, num_epochs: %d, num_workers: 2, batch_size: 2}}",
                             window, EPOCHS),
                     x, y);
        assert_int_equal(rows, EPOCHS * 3); /* every second of 4 and of 2 positions: 2 and 1 */
        for (int64_t r = 0; r < rows; r++) {
            const int first = gray_of(x + r * 36);

            for (int k = 1; k < 3; k++)
                assert_int_equal(gray_of(x + r * 36 + k * 12), first + k);
            assert_true(first + 2 < 6 || first >= 6);
            assert_int_equal(y[r], first >= 6);
            seen[first]++;
        }
        for (int i = 0; i < IMAGES; i++) {
            const bool may = i <= 3 || i == 6 || i == 7;

            assert_int_equal(seen[i] > 0, may);
            places += may;
            least = may && seen[i] < least ? seen[i] : least;
            most = seen[i] > most ? seen[i] : most;
        }
        assert_int_equal(places, 6);
        if (kind == 1)
            assert_true(most - least <= 1);
    }
}

/* A failed sample fails the windows that contain it, and no others. */
static void a_failed_sample_fails_its_windows(void **state)
{
    stkt_fault fault = {.field = "x", .opts = STKI_FAULTY_OPTS_INIT};
    stk_loader *loader;
    stk_error err;
    int64_t rows;

    (void)state;
    for (int workers = 0; workers < 3; workers += 2) {
        fault.opts.fail_at = 7;
        assert_ok(stkt_open_faulty(&loader, &fault, true, &err,
                                   "{dataset: {fields: {x: {path: %s, source: {layout: nhwc, window: {length: 3, "
                                   "stride: 2}}}, y: {path: %s}}}, loader: {batch_size: 4, num_workers: %d}}",
                                   stkt_path("clip.npy"), stkt_path("labels.npy"), workers));
        rows = drain(loader, x, y);
        assert_int_equal(rows, 19 - 1); /* windows begin at 0, 2, …, 36; sample 7 is in the one at 6 */
        for (int64_t r = 0; r < rows; r++)
            assert_int_equal(y[r], 100 + 2 * (r < 3 ? r : r + 1));
    }
    fault.opts.fail_at = 8;
    assert_ok(stkt_open_faulty(&loader, &fault, true, &err,
                               "{dataset: {fields: {x: {path: %s, source: {layout: nhwc, window: {length: 3, stride: "
                               "2}}}, y: {path: %s}}}}",
                               stkt_path("clip.npy"), stkt_path("labels.npy")));
    assert_int_equal(drain(loader, x, y), 19 - 2);
    assert_ok(stkt_open_faulty(&loader, &fault, false, &err,
                               "{dataset: {fields: {x: {path: %s, source: {layout: nhwc, window: {length: 3, stride: "
                               "2}}}, y: {path: %s}}}, loader: {on_error: substitute, max_error_fraction: 1}}",
                               stkt_path("clip.npy"), stkt_path("labels.npy")));
    assert_int_equal(drain(loader, x, y), 19);
    for (int64_t r = 0; r < 19; r++) {
        assert_true((y[r] == 100 + 2 * r) == (r != 3 && r != 4));
        for (int k = 0; k < 3; k++) {
            const int frame = x[(3 * r + k) * SIDE * SIDE * 3 + 2];

            assert_int_equal(frame, y[r] - 100 + k);
            assert_int_not_equal(frame, 8);
        }
    }
}

#define RESUMED                                                                                                \
    "{dataset: {fields: {" CLIPS ", y: {path: labels.npy}}}, loader: {batch_size: 4, order: random, seed: 9, " \
    "num_workers: %d, num_epochs: 2, rank: %d, world_size: %d}}"

/* A run that resumes in the middle delivers the same as an uninterrupted run, and so do two ranks together. */
static void resumes_and_ranks_agree(void **state)
{
    enum { ROW = 3 * CROP * CROP * 3 };
    static int64_t labels[4096], half[2][4096];
    int64_t rows = drain(open_ok(RESUMED, "clip.npy", "length: 3, stride: 2, offsets: shifted", 2, 0, 1), x, labels);
    uint8_t state_bytes[512];
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t size, at[2], sum = 0;

    (void)state;
    assert_int_equal(rows, 2 * 19);
    loader = open_ok(RESUMED, "clip.npy", "length: 3, stride: 2, offsets: shifted", 0, 0, 1);
    for (int i = 0; i < 6; i++) {
        assert_ok(stk_loader_next(loader, &batch, &err));
        stk_batch_release(batch);
    }
    assert_ok(stk_loader_save(loader, state_bytes, sizeof state_bytes, &size, &err));
    stk_loader_destroy(loader);
    loader = open_ok(RESUMED, "clip.npy", "length: 3, stride: 2, offsets: shifted", 3, 0, 1);
    assert_ok(stk_loader_restore(loader, state_bytes, size, &err));
    assert_int_equal(drain(loader, again, y), rows - (19 + 4)); /* one epoch and a batch of 4 */
    assert_memory_equal(again, x + (19 + 4) * ROW, (2 * 19 - 23) * ROW);
    loader = open_ok(RESUMED, "clip.npy", "length: 4, stride: 2, offsets: shifted", 3, 0, 1);
    assert_true(stk_loader_restore(loader, state_bytes, size, &err) < 0);
    stk_loader_destroy(loader);
    for (int rank = 0; rank < 2; rank++)
        at[rank] = drain(open_ok(RESUMED, "clip.npy", "length: 3, stride: 2, offsets: shifted", 2, rank, 2), again,
                         half[rank]);
    assert_int_equal(at[0] + at[1], rows);
    for (int64_t r = 0; r < rows; r++)
        sum += labels[r];
    for (int rank = 0; rank < 2; rank++)
        for (int64_t i = 0; i < at[rank]; i++)
            sum -= half[rank][i];
    assert_int_equal(sum, 0);
}

static void data_sets_are_not_crossed(void **state)
{
    enum { ROW = 3 * CROP * CROP * 3 };
    stk_dataset_info info;
    stk_loader *loader =
        open_ok("{datasets: [{name: a, weight: 1, fields: {" CLIPS "}}, {name: b, weight: 2, fields: {x: {path: "
                "second.npy, source: {layout: nhwc, window: {length: 3, stride: 1}}}}}], loader: {order: random, "
                "epoch_length: 60}}",
                "first.npy", "length: 3, stride: 1");
    stk_error err;
    int64_t rows, of[2] = {0};

    (void)state;
    assert_ok(stk_loader_dataset(loader, 1, &info, &err));
    assert_int_equal(info.first, 14);
    assert_int_equal(info.samples, 22);
    rows = drain(loader, x, NULL);
    assert_int_equal(rows, 60);
    for (int64_t r = 0; r < rows; r++) {
        const int first = x[r * ROW + 2];

        (void)check_clip(x + r * ROW, 3, 1, first);
        of[first >= 16]++;
        assert_true(first < 14 || first >= 16);
    }
    assert_int_equal(of[0], 20);
    assert_int_equal(of[1], 40);
}

/* 1000 values have 951 windows of 50 with stride 1. The last 190 are the validation part, and the training part ends
 * before its windows would overlap it. */
static void a_split_by_place_keeps_parts_apart(void **state)
{
#define SERIES                                                                                                         \
    "{dataset: {fields: {x: {path: series.npy, source: {window: {length: 50, stride: %d%s}}}}}, loader: {batch_size: " \
    "16, order: random, split: {part: %s, fraction: 0.2, method: %s%s}}}"
    static const struct {
        int stride;
        const char *gap;
        int train, val;
    } cases[] = {{1, "", 951 - 190 - 49, 190},
                 {1, ", gap: 0", 951 - 190, 190},
                 {1, ", gap: 100", 951 - 190 - 100, 190},
                 {50, "", 16, 4},
                 {20, "", 48 - 10 - 2, 10}};
    const float *values = (const float *)(const void *)x;

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        static uint8_t in_train[1000];
        int64_t rows = drain(open_ok(SERIES, cases[c].stride, "", "train", "contiguous", cases[c].gap), x, NULL);
        int both = 0;

        memset(in_train, 0, sizeof in_train);
        assert_int_equal(rows, cases[c].train);
        for (int64_t i = 0; i < rows * 50; i++)
            in_train[(int)values[i]] = 1;
        rows = drain(open_ok(SERIES, cases[c].stride, "", "val", "contiguous", cases[c].gap), x, NULL);
        assert_int_equal(rows, cases[c].val);
        for (int64_t i = 0; i < rows * 50; i++)
            both += in_train[(int)values[i]];
        assert_true(c == 1 ? both > 0 : both == 0);
    }
}

static int note_count(stk_loader *loader)
{
    const int notes = stk_loader_note_count(loader);

    stk_loader_destroy(loader);
    return notes;
}

/* With random offsets, the validation part has its share of an epoch's windows. A random split of overlapping windows
 * adds a note. */
static void a_split_has_its_share(void **state)
{
    (void)state;
    for (int method = 0; method < 2; method++) {
        const char *words = method ? "contiguous" : "exact";
        const int64_t train = drain(open_ok(SERIES, 10, ", offsets: random", "train", words, ""), x, NULL);

        assert_int_equal(drain(open_ok(SERIES, 10, ", offsets: random", "val", words, ""), x, NULL), 19); /* of 96 */
        assert_int_equal(train, method ? 72 : 77); /* 96 * 712 / 951, 96 * 761 / 951 */
    }
    assert_int_equal(note_count(open_ok(SERIES, 1, "", "val", "exact", "")), 1);
    assert_int_equal(note_count(open_ok(SERIES, 50, "", "val", "exact", "")), 0);
    assert_int_equal(note_count(open_ok(SERIES, 1, "", "val", "contiguous", "")), 0);
    refuse(STK_E_CONFIG, SERIES, 1, "", "val", "exact", ", gap: 3");
}

/* Folders of 6 and 4 images have 5 and 3 windows of 2; the validation part is the last fifth of each. */
static void each_group_is_split(void **state)
{
    static const int train[] = {0, 1, 2, 6}, val[] = {4, 8};

    (void)state;
#define SPLIT \
    "{dataset: {fields: {" IMAGES_OF("classes") "}}, loader: {split: {part: %s, fraction: 0.2, method: contiguous}}}"
    check_clips(x, drain(open_ok(SPLIT, "length: 2, stride: 1", "train"), x, NULL), 2, 1, 4, train);
    check_clips(x, drain(open_ok(SPLIT, "length: 2, stride: 1", "val"), x, NULL), 2, 1, 2, val);
    assert_int_equal(drain(open_ok("{dataset: {fields: {x: {path: labels.npy}}}, loader: {split: {part: val, fraction: "
                                   "0.25, method: contiguous}}}"),
                           x, NULL),
                     10);
    assert_int_equal(((const int32_t *)(const void *)x)[0], 130);
}

/* Files of 20, 3, 7, 31 and 12 rows; row r of file f is f * 100 + r. */
enum { FILES = 5 };
static const int rows_of[FILES] = {20, 3, 7, 31, 12};

static void write_segments(void)
{
    for (int f = 0; f < FILES; f++) {
        static uint8_t video[31][4][4][3];
        int32_t series[31];
        char name[32], shape[64];

        for (int r = 0; r < rows_of[f]; r++) {
            series[r] = f * 100 + r;
            for (int p = 0; p < 16; p++)
                memcpy(video[r][p / 4][p % 4], (uint8_t[]){(uint8_t)f, (uint8_t)r, (uint8_t)p}, 3);
        }
        snprintf(name, sizeof name, "piece%d.npy", f);
        snprintf(shape, sizeof shape, "(%d,)", rows_of[f]);
        stkt_write_npy(stkt_path(name), "<i4", "False", shape, 64, series, sizeof series[0] * (size_t)rows_of[f]);
        snprintf(name, sizeof name, "movie%d.npy", f);
        snprintf(shape, sizeof shape, "(%d, 4, 4, 3)", rows_of[f]);
        stkt_write_npy(stkt_path(name), "|u1", "False", shape, 64, video, sizeof video[0] * (size_t)rows_of[f]);
    }
}

#define SEGMENTS                                                                                                    \
    "{dataset: {fields: {x: {path: 'piece*.npy', source: {sample_per_file: true, window: {%s}}}}}, loader: {seed: " \
    "4, num_workers: 2, batch_size: 3%s}}"

static void files_give_segments(void **state)
{
    const int32_t *values = (const int32_t *)(const void *)x;
    int64_t rows, at = 0, seen[FILES] = {0}, train, val;
    bool places[FILES][31] = {{false}};

    (void)state;
    write_segments();
    rows = drain(open_ok(SEGMENTS, "length: 4, stride: 3, dilation: 2", ""), x, NULL);
    for (int f = 0; f < FILES; f++)
        for (int r = 0; r + 6 < rows_of[f]; r += 3, at++)
            for (int k = 0; k < 4; k++)
                assert_int_equal(values[at * 4 + k], f * 100 + r + 2 * k);
    assert_int_equal(rows, at);
    /* each file that is long enough occurs once per epoch, with a window at a random position */
    rows =
        drain(open_ok(SEGMENTS, "length: 4, stride: 4, offsets: random", ", order: random, num_epochs: 200"), x, NULL);
    assert_int_equal(rows, 4 * 200);
    for (int64_t r = 0; r < rows; r++) {
        const int file = values[r * 4] / 100, row = values[r * 4] % 100;

        for (int k = 1; k < 4; k++)
            assert_int_equal(values[r * 4 + k], values[r * 4] + k);
        assert_true(row + 4 <= rows_of[file]);
        seen[file]++;
        places[file][row] = true;
        if (r % 4 == 3)
            for (int f = 0; f < FILES; f++)
                assert_int_equal(seen[f], f == 1 ? 0 : r / 4 + 1);
    }
    for (int f = 0; f < FILES; f++)
        for (int r = 0; r + 4 <= rows_of[f]; r++)
            assert_true(places[f][r]);
    /* a part consists of whole files: random ones or the last ones */
    for (int method = 0; method < 2; method++) {
        const char *part = method ? ", num_epochs: 9, split: {part: val, fraction: 0.25, method: contiguous}"
                                  : ", num_epochs: 9, split: {part: val, fraction: 0.25}";

        val = drain(open_ok(SEGMENTS, "length: 4, offsets: random", part), x, NULL);
        assert_int_equal(val, 9);
        for (int64_t r = 0; r < val; r++)
            assert_int_equal(values[r * 4] / 100, method ? 4 : values[0] / 100);
    }
    train = drain(open_ok(SEGMENTS, "length: 4, offsets: random", ", split: {part: train, fraction: 0.25}"), x, NULL);
    assert_int_equal(train, 3);
}

static void videos_give_clips(void **state)
{
    int64_t rows;
    int at = 0;

    (void)state;
    write_segments();
    rows =
        drain(open_ok("{dataset: {fields: {x: {path: 'movie*.npy', source: {layout: nhwc, sample_per_file: true, "
                      "window: {length: 4, stride: 3}}, transforms: [{random_horizontal_flip: {p: 0.5}}]}}}, loader: "
                      "{num_workers: 2, batch_size: 3}}"),
              x, NULL);
    for (int f = 0; f < FILES; f++)
        for (int r = 0; r + 3 < rows_of[f]; r += 3, at++) {
            const uint8_t *row = x + at * 4 * 48;
            const bool turned = row[2] == 3;

            for (int k = 0; k < 4; k++)
                for (int p = 0; p < 16; p++) {
                    assert_int_equal(row[k * 48 + p * 3], f);
                    assert_int_equal(row[k * 48 + p * 3 + 1], r + k);
                    assert_int_equal(row[k * 48 + p * 3 + 2], turned ? p / 4 * 4 + 3 - p % 4 : p);
                }
        }
    assert_int_equal(rows, at);
}

/* A file that cannot be read is a failed row and does not end the run. */
static void an_unreadable_file_fails_its_segment(void **state)
{
    stk_loader *loader;

    (void)state;
    write_segments();
    stkt_write_file(stkt_path("piece2.npy"), "nothing", 7);
    loader = open_ok(SEGMENTS, "length: 4, offsets: random", ", on_error: skip, max_error_fraction: 1, num_epochs: 5");
    assert_int_equal(drain(loader, x, NULL), 3 * 5);
}

/* The error states how many samples a window needs and how many the longest group has. */
static void no_window_fits(void **state)
{
    static const struct {
        const char *text, *file, *found, *expected;
    } cases[] = {
        {"{dataset: {fields: {x: {path: series.npy, source: {window: {length: 300, dilation: 4}}}}}}", "series.npy",
         "1000", "1197 or more"},
        {"{dataset: {fields: {x: {path: series.npy, source: {window: {length: 1001}}}}}}", "series.npy", "1000",
         "1001 or more"},
        {"{dataset: {fields: {x: {path: labels.npy, source: {window: {length: 32, group_by: y}}}, y: {path: "
         "videos.npy}}}}",
         "labels.npy", "31", "32 or more"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stk_loader *loader;
        stk_error err;

        assert_status(stk_loader_open_text(cases[i].text, stkt_dir, NULL, 0, &loader, &err), STK_E_EMPTY);
        assert_non_null(strstr(err.file, cases[i].file));
        assert_string_equal(err.found, cases[i].found);
        assert_string_equal(err.expected, cases[i].expected);
    }
}

static void windows_of_data_sets_that_differ(void **state)
{
    stk_loader *loader;
    stk_error err;

    (void)state;
    assert_status(
        stk_loader_open_text("{datasets: [{name: web, fields: {x: {path: series.npy, source: {window: {length: 2}}}}}, "
                             "{name: books, fields: {x: {path: series.npy, source: {window: {length: 3}}}}}]}",
                             stkt_dir, NULL, 0, &loader, &err),
        STK_E_CONFIG);
    assert_non_null(strstr(err.message, "source.window"));
    assert_non_null(strstr(err.message, "web"));
    assert_non_null(strstr(err.message, "books"));
}

static void invalid_windows_are_rejected(void **state)
{
    (void)state;
    refuse(STK_E_UNSUPPORTED, "{dataset: {fields: {x: {path: a.txt, source: {window: {length: 2}}}}}}");
    refuse(STK_E_UNSUPPORTED, "{dataset: {fields: {x: {path: a.jsonl, source: {window: {length: 2}}}}}}");
    refuse(STK_E_UNSUPPORTED, "{dataset: {fields: {x: {path: names.csv, source: {name: name, window: {length: 2}}}}}}");
    refuse(STK_E_UNSUPPORTED,
           "{dataset: {fields: {x: {path: flat, ragged: true, source: {name: image, window: {length: 2}}}}}}");
    refuse(STK_E_CONFIG, "{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 2, group_by: nothing");
    refuse(STK_E_CONFIG, "{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 2, take: last");
    refuse(STK_E_EMPTY, "{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 11");
    refuse(STK_E_CONFIG, "{dataset: {fields: {" IMAGES_OF("flat") "}}}", "length: 2, dilation: 1099511627776");
    refuse(STK_E_CONFIG,
           "{dataset: {fields: {" IMAGES_OF("flat") ", y: {path: flat, source: {name: label, window: {length: 3}}}}}}",
           "length: 2");
    refuse(STK_E_CONFIG, "{dataset: {fields: {x: {path: clip.npy, source: {layout: nhwc, window: {length: 2}}, "
                         "transforms: [{mixup: {alpha: 1}}]}}}, loader: {batch_size: 4}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_give_clips),
        cmocka_unit_test(a_clip_has_one_draw),
        cmocka_unit_test(shards_are_not_crossed),
        cmocka_unit_test(a_field_divides_groups),
        cmocka_unit_test(arrays_with_values_in_other_fields),
        cmocka_unit_test(moving_windows_stay_in_their_group),
        cmocka_unit_test(a_failed_sample_fails_its_windows),
        cmocka_unit_test(resumes_and_ranks_agree),
        cmocka_unit_test(data_sets_are_not_crossed),
        cmocka_unit_test(a_split_by_place_keeps_parts_apart),
        cmocka_unit_test(a_split_has_its_share),
        cmocka_unit_test(each_group_is_split),
        cmocka_unit_test(files_give_segments),
        cmocka_unit_test(videos_give_clips),
        cmocka_unit_test(an_unreadable_file_fails_its_segment),
        cmocka_unit_test(no_window_fits),
        cmocka_unit_test(windows_of_data_sets_that_differ),
        cmocka_unit_test(invalid_windows_are_rejected),
    };

    return cmocka_run_group_tests(tests, write_files, NULL);
}
