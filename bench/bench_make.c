/* bench_make.c: writes the data of bench/peers/make_data.py in other formats, for bench/formats.py.
 *
 *     bench_make DATA
 *
 * w4/contig.h5 becomes x.npy, x.npz (stored), x.safetensors and x.pt. The images of w2 become images.beton (raw). The
 * folder of w5 becomes images.beton (JPEG) and boxes.npy: for each image, the box of a random resized crop (top, left,
 * height, width), drawn as in bench/peers/limits_jpeg.c. Existing files are not replaced.
 */
#include "allocate.h"
#include "container.h"
#include "decode.h"
#include "error.h"
#include "files.h"
#include "format.h"
#include "npy_write.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>
#include <unistd.h>

static stk_error err;

static void must(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_make: %s\n", err.message);
    exit(1);
}

static char *in(const char *data, const char *name)
{
    char *path = stki_format("%s/%s", data, name);

    if (!path)
        exit(1);
    return path;
}

static bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

static stk_tensor read_array(const char *path)
{
    stki_reader_opts opts = {0};
    stki_container *container;
    stki_array array;
    stk_tensor tensor;
    int64_t member;

    must(stki_container_open(path, &opts, &container, &err));
    must(stki_container_find(container, &opts, &member, &err));
    must(stki_container_array(container, member, &opts, &array, &err));
    must(stki_array_tensor(&array, path, &tensor, &err));
    stki_array_release(&array);
    stki_container_release(container);
    return tensor;
}

static void make_arrays(const char *data)
{
    static const char *const names[] = {"w4/x.npy", "w4/x.npz", "w4/x.safetensors", "w4/x.pt"};
    stk_tensor x = read_array(in(data, "w4/contig.h5"));

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = in(data, names[i]);
        stk_writer *writer;

        if (there(path))
            continue;
        must(stk_writer_create(path, NULL, NULL, &writer, &err));
        must(stk_writer_add(writer, "x", &x, &err));
        must(stk_writer_commit(writer, &err));
        printf("%s\n", path);
    }
    stk_tensor_release(&x);
}

static void make_raw_beton(const char *data)
{
    static const stk_beton_field fields[] = {{.name = "image", .kind = STK_BETON_IMAGE},
                                             {.name = "label", .kind = STK_BETON_INT}};
    const char *path = in(data, "w2/images.beton");
    stk_tensor images, labels;
    stk_beton_writer *writer;

    if (there(path))
        return;
    images = read_array(in(data, "w2/images.npy"));
    labels = read_array(in(data, "w2/labels.npy"));
    must(stk_beton_create(path, fields, 2, images.shape[0], NULL, &writer, &err));
    for (int64_t i = 0; i < images.shape[0]; i++) {
        stk_beton_value values[2] = {{.bytes = (char *)images.data + i * images.strides[0],
                                      .size = images.strides[0],
                                      .height = images.shape[1],
                                      .width = images.shape[2]},
                                     {.integer = ((const int64_t *)labels.data)[i]}};

        must(stk_beton_append(writer, values, 1, &err));
    }
    must(stk_beton_commit(writer, &err));
    printf("%s\n", path);
    stk_tensor_release(&images);
    stk_tensor_release(&labels);
}

/* ---- w5 ---- */

static double draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*seed >> 11) / 9007199254740992.0;
}

/* Draws a box of 8 to 100 % of the area with an aspect ratio of 3:4 to 4:3. If ten draws do not fit, the box is the
 * square in the middle. */
static void draw_box(uint64_t *seed, int64_t height, int64_t width, int64_t box[4])
{
    for (int t = 0; t < 10; t++) {
        double area = (double)(height * width) * (0.08 + 0.92 * draw(seed));
        double ratio = exp(log(0.75) + draw(seed) * (log(4.0 / 3) - log(0.75)));

        box[3] = lround(sqrt(area * ratio));
        box[2] = lround(sqrt(area / ratio));
        if (box[3] <= width && box[2] <= height) {
            box[0] = (int64_t)(draw(seed) * (double)(height - box[2] + 1));
            box[1] = (int64_t)(draw(seed) * (double)(width - box[3] + 1));
            return;
        }
    }
    box[2] = box[3] = height < width ? height : width;
    box[0] = (height - box[2]) / 2;
    box[1] = (width - box[3]) / 2;
}

static void make_w5(const char *data)
{
    static const stk_beton_field fields[] = {{.name = "image", .kind = STK_BETON_IMAGE},
                                             {.name = "label", .kind = STK_BETON_INT}};
    const char *beton = in(data, "w5/images.beton"), *boxes = in(data, "w5/boxes.npy");
    stki_file_list list = {0};
    stk_beton_writer *records;
    stk_npy_writer *rows;
    int64_t four[1] = {4}, box[4], label = -1;
    uint64_t seed = 99;
    const char *class = "";

    if (there(beton) && there(boxes))
        return;
    must(stki_file_list_add(&list, in(data, "w5/jpeg/*/*.jpg"), &err));
    must(stk_beton_create(beton, fields, 2, list.count, NULL, &records, &err));
    must(stk_npy_create(boxes, STK_I64, 1, four, false, &rows, &err));
    for (int64_t i = 0; i < list.count; i++) {
        size_t folder = (size_t)(strrchr(list.paths[i], '/') - list.paths[i]);
        stki_image_info info;
        stki_file *file;

        label += strncmp(class, list.paths[i], folder + 1) != 0;
        class = list.paths[i];
        must(stki_file_open(list.paths[i], STKI_ACCESS_MMAP, STKI_PATTERN_SEQUENTIAL, &file, &err));
        must(stki_image_info_of(file->map, file->size, &(stki_decode_opts){0}, &info, &err));
        must(stk_beton_append(
            records,
            (stk_beton_value[2]){
                {.bytes = file->map, .size = file->size, .height = info.height, .width = info.width, .jpeg = true},
                {.integer = label}},
            1, &err));
        draw_box(&seed, info.height, info.width, box);
        must(stk_npy_append(rows, box, 1, &err));
        stki_file_close(file);
    }
    must(stk_beton_commit(records, &err));
    must(stk_npy_commit(rows, &err));
    printf("%s\n%s\n", beton, boxes);
    stki_file_list_fini(&list);
}

int main(int argc, char **argv)
{
    if (argc != 2 || argv[1][0] == '-') {
        fputs("usage: bench_make DATA\n", stderr);
        return 2;
    }
    if (there(in(argv[1], "w4")))
        make_arrays(argv[1]);
    if (there(in(argv[1], "w2")))
        make_raw_beton(argv[1]);
    if (there(in(argv[1], "w5")))
        make_w5(argv[1]);
    return 0;
}
