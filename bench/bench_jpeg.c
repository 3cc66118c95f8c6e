/* bench_jpeg.c: decoding JPEG files from memory: libjpeg-turbo by itself, with one decompressor per thread, compared
 * with the functions that readers call; whole images and the boxes of a random resized crop.
 *
 *     bench_jpeg FOLDER [ROUNDS [THREADS]]        a folder of class folders of .jpg files
 *
 * "from files" also reads the files, through the reader of an image folder. libjpeg and the readers get the same boxes.
 * "fast" uses the fast DCT and plain upsampling; boxes are then also scaled by the DCT, to no less than 224 x 224. */
#include "bench_support.h"
#include "container.h"
#include "decode.h"
#include "format.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>

#include <jpeglib.h>

struct file {
    uint8_t *bytes;
    size_t count;
    int height, width;
    int box[4]; /* top, left, height, width */
};

static struct file *files;
static int64_t file_count;
static stki_reader *folder;
static stki_scratch scratch[16];
static uint8_t *lines[16];

enum { WHOLE, CROP, FAST, FAST_CROP, FOLDER };

/* CPU time by variant and thread; other programs affect it less than the wall time. */
static double cpu_seconds[16][16];
static int64_t cpu_images[16];

static double cpu_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- files ---- */

static double uniform(uint64_t *state)
{
    return (double)(bench_random(state) >> 11) * 0x1p-53;
}

/* Draws a box of 8 to 100 % of the area with an aspect ratio of 3:4 to 4:3. */
static void choose_box(struct file *file, uint64_t *state)
{
    for (int tries = 0; tries < 10; tries++) {
        double area = (double)file->height * file->width * (0.08 + 0.92 * uniform(state));
        double ratio = exp(log(0.75) + uniform(state) * log(16.0 / 9));
        int w = (int)lround(sqrt(area * ratio)), h = (int)lround(sqrt(area / ratio));

        if (w > file->width || h > file->height)
            continue;
        file->box[0] = (int)(uniform(state) * (file->height - h + 1));
        file->box[1] = (int)(uniform(state) * (file->width - w + 1));
        file->box[2] = h;
        file->box[3] = w;
        return;
    }
    file->box[2] = file->box[3] = file->height < file->width ? file->height : file->width;
    file->box[0] = (file->height - file->box[2]) / 2;
    file->box[1] = (file->width - file->box[3]) / 2;
}

static void add_file(const char *path, uint64_t *state)
{
    FILE *in = fopen(path, "rb");
    stki_decode_opts opts = {0};
    struct file file;
    int64_t shape[3];
    long size;

    if (!in || fseek(in, 0, SEEK_END) || (size = ftell(in)) <= 0)
        abort();
    rewind(in);
    file.count = (size_t)size;
    file.bytes = malloc(file.count);
    if (!file.bytes || fread(file.bytes, 1, file.count, in) != file.count)
        abort();
    fclose(in);
    if (stki_image_shape(file.bytes, size, &opts, shape, NULL))
        return;
    file.height = (int)shape[0];
    file.width = (int)shape[1];
    choose_box(&file, state);
    if ((file_count & (file_count - 1)) == 0)
        files = realloc(files, (size_t)(file_count ? 2 * file_count : 1) * sizeof *files);
    files[file_count++] = file;
}

static void read_folder(const char *root)
{
    stki_reader_opts opts = {.name = "path"};
    stki_container *container;
    stki_reader *paths;
    uint64_t state = 99;
    stk_error err;
    int64_t member;

    if (stki_container_open(root, &opts, &container, &err) || stki_container_find(container, &opts, &member, &err) ||
        stki_container_reader(container, member, &opts, &paths, &err)) {
        fprintf(stderr, "bench_jpeg: %s\n", err.message);
        exit(1);
    }
    for (int64_t i = 0; i < paths->count; i++) {
        char path[8192];
        stk_tensor name;
        if (paths->ops->read(paths, i, NULL, NULL, &name, &err))
            exit(1);
        snprintf(path, sizeof path, "%s/%.*s", root, (int)name.shape[0], (const char *)name.data);
        add_file(path, &state);
    }
    stki_reader_destroy(paths);
    opts.name = "image";
    if (stki_container_find(container, &opts, &member, &err) ||
        stki_container_reader(container, member, &opts, &folder, &err))
        exit(1);
    stki_container_release(container);
}

/* ---- libjpeg by itself ---- */

static void plain_one(struct jpeg_decompress_struct *d, const struct file *file, int what, uint8_t *to)
{
    int scale = 1;

    jpeg_mem_src(d, file->bytes, file->count);
    jpeg_read_header(d, TRUE);
    d->out_color_space = JCS_RGB;
    if (what == FAST || what == FAST_CROP) {
        d->dct_method = JDCT_IFAST;
        d->do_fancy_upsampling = FALSE;
    }
    while (what == FAST_CROP && scale < 8 && file->box[2] / (2 * scale) >= 224 && file->box[3] / (2 * scale) >= 224)
        scale *= 2;
    d->scale_num = 1;
    d->scale_denom = (unsigned)scale;
    jpeg_start_decompress(d);
    if (what == CROP || what == FAST_CROP) {
        JDIMENSION left = (JDIMENSION)(file->box[1] / scale), width = (JDIMENSION)(file->box[3] / scale);
        jpeg_crop_scanline(d, &left, &width);
        if (file->box[0] / scale)
            jpeg_skip_scanlines(d, (JDIMENSION)(file->box[0] / scale));
        while ((int)d->output_scanline < (file->box[0] + file->box[2]) / scale)
            jpeg_read_scanlines(d, &to, 1);
        jpeg_abort_decompress(d);
        return;
    }
    while (d->output_scanline < d->output_height) {
        JSAMPROW row = to + (size_t)d->output_scanline * d->output_width * 3;
        jpeg_read_scanlines(d, &row, 1);
    }
    jpeg_finish_decompress(d);
}

static void plain_images(const bench_way *way, int thread, int threads)
{
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;

    d.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&d);
    for (int64_t i = thread; i < file_count; i += threads)
        plain_one(&d, &files[i], way->option, lines[thread]);
    jpeg_destroy_decompress(&d);
}

/* ---- stoker ---- */

static void stoker_images(const bench_way *way, int thread, int threads)
{
    int what = way->option;
    stki_decode_opts opts = {.fast = what == FAST || what == FAST_CROP};
    stk_error err;

    for (int64_t i = thread; i < file_count; i += threads) {
        const struct file *file = &files[i];
        stki_given given = {0};
        stki_want want = {.ndim = 3,
                          .start = {file->box[0], file->box[1]},
                          .length = {file->box[2], file->box[3], 3},
                          .enough_height = 224,
                          .enough_width = 224,
                          .given = &given};
        bool part = what == CROP || what == FAST_CROP;
        stk_tensor out;
        stk_status status = what == FOLDER
                                ? folder->ops->read(folder, i, NULL, &scratch[thread], &out, &err)
                                : stki_image_sample(file->bytes, (int64_t)file->count, &opts, part ? &want : NULL,
                                                    &scratch[thread], "memory", i, &out, &err);
        if (status) {
            fprintf(stderr, "bench_jpeg: %s\n", err.message);
            exit(1);
        }
    }
}

/* ---- variants ---- */

struct kind {
    void (*images)(const bench_way *way, int thread, int threads);
    int number;
};

static void pass(const bench_way *way, int thread, int threads)
{
    const struct kind *kind = way->context;
    double start = cpu_now();

    kind->images(way, thread, threads);
    cpu_seconds[kind->number][thread] += cpu_now() - start;
    if (thread == 0)
        cpu_images[kind->number] += file_count;
}

static void print_cpu(const bench_way *ways, int count)
{
    for (int i = 0; i < count; i++) {
        double sum = 0;
        for (int thread = 0; thread < 16; thread++)
            sum += cpu_seconds[i][thread];
        printf("jpeg cpu  %-44s %8.1f us/image\n", ways[i].name, sum * 1e6 / (double)cpu_images[i]);
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 7, threads = argc > 3 ? atoi(argv[3]) : 2;
    bench_way ways[] = {
        {.name = "whole, libjpeg", .context = &(struct kind){plain_images, 0}, .option = WHOLE},
        {.name = "whole, stoker", .context = &(struct kind){stoker_images, 0}, .option = WHOLE},
        {.name = "whole, stoker, from files", .context = &(struct kind){stoker_images, 0}, .option = FOLDER},
        {.name = "crop, libjpeg", .context = &(struct kind){plain_images, 0}, .option = CROP},
        {.name = "crop, stoker", .context = &(struct kind){stoker_images, 0}, .option = CROP},
        {.name = "whole fast, libjpeg", .context = &(struct kind){plain_images, 0}, .option = FAST},
        {.name = "whole fast, stoker", .context = &(struct kind){stoker_images, 0}, .option = FAST},
        {.name = "crop fast, libjpeg", .context = &(struct kind){plain_images, 0}, .option = FAST_CROP},
        {.name = "crop fast, stoker", .context = &(struct kind){stoker_images, 0}, .option = FAST_CROP},
    };
    enum { WAYS = sizeof ways / sizeof ways[0] };

    if (argc < 2 || rounds < 1 || rounds > BENCH_MAX_ROUNDS || threads < 1 || threads > 16) {
        fprintf(stderr, "usage: bench_jpeg FOLDER [ROUNDS [THREADS]]\n");
        return 2;
    }
    read_folder(argv[1]);
    for (int i = 0; i < threads; i++) {
        stki_scratch_init(&scratch[i]);
        lines[i] = bench_memory(64 << 20);
    }
    for (int i = 0; i < WAYS; i++) {
        ways[i].units = (double)file_count;
        ways[i].unit = "images/s";
        ways[i].pass = pass;
        ((struct kind *)(uintptr_t)ways[i].context)->number = i;
    }
    bench_run("jpeg", ways, WAYS, 1, rounds);
    if (threads > 1)
        bench_run("jpeg", ways, WAYS, threads, rounds);
    print_cpu(ways, WAYS);
    for (int i = 0; i < threads; i++)
        stki_scratch_fini(&scratch[i]);
    stki_reader_destroy(folder);
    return 0;
}
