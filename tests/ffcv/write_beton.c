/* write_beton.c: writes a .beton with fields of every kind for read_beton.py, which reads it with FFCV itself.
 *
 *     write_beton FILE.beton JPEG-FILE.beton THREADS
 *
 * The JPEG image is the first one of another .beton (20 x 16 pixels). */
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>

enum { SAMPLES = 300, HEIGHT = 60, WIDTH = 70, FIELDS = 8, JPEG_HEIGHT = 16, JPEG_WIDTH = 20 };

static stk_error err;

static void must(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "write_beton: %s\n", err.message);
    exit(1);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long size;
    char *bytes;

    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
        exit(1);
    rewind(file);
    bytes = malloc((size_t)size + 1);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        exit(1);
    fclose(file);
    return bytes;
}

static void append(stk_beton_writer *writer, int64_t i, const char *jpeg, int64_t jpeg_bytes)
{
    static unsigned char image[HEIGHT * WIDTH * 3], bytes[64];
    static float array[12];
    static int32_t tensor[6];
    char json[64];
    stk_beton_value values[FIELDS] = {
        {.bytes = image, .size = sizeof image, .height = HEIGHT, .width = WIDTH},
        {.bytes = jpeg, .size = jpeg_bytes, .height = JPEG_HEIGHT, .width = JPEG_WIDTH, .jpeg = true},
        {.integer = i * i - 1000},
        {.real = (double)i / 3},
        {.bytes = array, .size = sizeof array},
        {.bytes = bytes, .size = i % 3 == 0 ? 0 : i % 64},
        {.bytes = json},
        {.bytes = tensor, .size = sizeof tensor}};

    for (int64_t k = 0; k < (int64_t)sizeof image; k++)
        image[k] = (unsigned char)(i * 31 + k * 7);
    for (int k = 0; k < 12; k++)
        array[k] = (float)i + (float)k / 2;
    for (int k = 0; k < 6; k++)
        tensor[k] = (int32_t)i * 10 + k;
    for (int64_t k = 0; k < 64; k++)
        bytes[k] = (unsigned char)(i + k);
    values[6].size = snprintf(json, sizeof json,
                              "{\"id\": %d, \"name\": \"gr\xc3\xb6\xc3\x9f"
                              "e\"}",
                              (int)i);
    must(stk_beton_append(writer, values, 1, &err));
}

int main(int argc, char **argv)
{
    static const int64_t array_shape[2] = {3, 4}, tensor_shape[2] = {2, 3};
    static const stk_beton_field fields[FIELDS] = {
        {.name = "image", .kind = STK_BETON_IMAGE},
        {.name = "jpeg", .kind = STK_BETON_IMAGE},
        {.name = "i", .kind = STK_BETON_INT},
        {.name = "f", .kind = STK_BETON_FLOAT},
        {.name = "array", .kind = STK_BETON_NDARRAY, .dtype = STK_F32, .ndim = 2, .shape = array_shape},
        {.name = "sixteen letters_", .kind = STK_BETON_BYTES},
        {.name = "json", .kind = STK_BETON_JSON},
        {.name = "tensor", .kind = STK_BETON_TENSOR, .dtype = STK_I32, .ndim = 2, .shape = tensor_shape}};
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    stk_beton_writer *writer;
    uint64_t table, entry[3];
    char *other;

    if (argc != 4)
        return 2;
    other = read_file(argv[2]);
    memcpy(&table, other + 16, 8);
    memcpy(entry, other + table, sizeof entry);
    opts.threads = (uint32_t)atoi(argv[3]);
    opts.page_bytes = 2 << 20;
    must(stk_beton_create(argv[1], fields, FIELDS, SAMPLES, &opts, &writer, &err));
    for (int64_t i = 0; i < SAMPLES; i++)
        append(writer, i, other + entry[1], (int64_t)entry[2]);
    must(stk_beton_commit(writer, &err));
    free(other);
    return 0;
}
