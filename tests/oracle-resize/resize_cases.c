/* resize_cases.c: resizes the images of a list of cases with every variant of the resizer, and compares the SHA-256 of
 * the results with those of Pillow's results.
 *
 *     resize_cases CASES.tsv
 *
 * The inputs are .npy files in the folder of CASES.tsv. The last line is "N passed, N failed". */
#include "allocate.h"
#include "format.h"
#include "reader.h"
#include "resize.h"
#include "sha256.h"
#include <ctype.h>
#include <stdlib.h>

enum { MAX_LINE = 1024, COLUMNS = 6 };

typedef struct image {
    char name[128];
    int64_t height, width;
    int channels;
    uint8_t *pixels;
} image;

static int complain(const char *what, const stk_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->message);
    return 0;
}

/* Reads an array of bytes row by row. */
static int read_image(const char *directory, const char *name, image *out)
{
    char path[MAX_LINE + 256];
    stki_reader_opts opts = {.access = STKI_ACCESS_AUTO};
    stki_scratch scratch;
    stki_reader *reader;
    stk_error err;
    int fine = 1;

    snprintf(path, sizeof path, "%s%s.npy", directory, name);
    if (stki_reader_open(path, &opts, &reader, &err) != STK_OK)
        return complain(path, &err);
    snprintf(out->name, sizeof out->name, "%s", name);
    out->height = reader->count;
    out->width = reader->shape[0];
    out->channels = reader->ndim == 2 ? (int)reader->shape[1] : 1;
    out->pixels = malloc((size_t)(out->height * out->width * out->channels));
    stki_scratch_init(&scratch);
    for (int64_t y = 0; fine && y < out->height; y++) {
        stk_tensor row;

        if (reader->ops->read(reader, y, NULL, &scratch, &row, &err) != STK_OK)
            fine = complain(path, &err);
        else
            memcpy(out->pixels + y * out->width * out->channels, row.data, (size_t)(out->width * out->channels));
        if (fine)
            stki_reader_done(reader, &row);
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
    return fine;
}

/* Copies the support out of the image, resizes the copy with one variant, and returns whether the hash of the result is
 * `expected`. */
static int run_variant(enum stki_isa isa, const image *in, const stki_resize_job *job, const char *expected)
{
    const int64_t in_row = in->width * in->channels, out_row = job->out_width * in->channels;
    const stki_resize_support *support;
    stki_resizer *resizer;
    uint8_t *out = malloc((size_t)(out_row * job->out_height)), *part;
    char hex[65];
    stk_error err;
    int fine;

    if (stki_resizer_create_isa(isa, &resizer, &err) != STK_OK || stki_resizer_set(resizer, job, &err) != STK_OK)
        return complain("resizer", &err);
    support = stki_resizer_support(resizer);
    part = malloc((size_t)(support->height * support->width * in->channels));
    for (int64_t y = 0; y < support->height; y++)
        memcpy(part + y * support->width * in->channels,
               in->pixels + (support->top + y) * in_row + support->left * in->channels,
               (size_t)(support->width * in->channels));
    stki_resizer_run(resizer, part, support->width * in->channels, out, out_row);
    stkt_sha256_of(out, (size_t)(out_row * job->out_height), hex);
    fine = strcmp(hex, expected) == 0;
    stki_resizer_destroy(resizer);
    free(part);
    free(out);
    return fine;
}

static int run_case(const image *in, char **column)
{
    static const enum stki_isa isas[] = {STKI_ISA_REF, STKI_ISA_AVX2, STKI_ISA_AVX512, STKI_ISA_NEON};
    stki_resize_job job = {.in_height = in->height,
                           .in_width = in->width,
                           .channels = in->channels,
                           .box = {0, 0, (double)in->width, (double)in->height},
                           .out_height = atoll(column[1]),
                           .out_width = atoll(column[2])};
    int filter = 0;

    while (filter < STKI_FILTERS && strcmp(column[3], stki_filter_words[filter]))
        filter++;
    if (filter == STKI_FILTERS || (column[4][0] != '-' && sscanf(column[4], "%lf,%lf,%lf,%lf", &job.box[0], &job.box[1],
                                                                 &job.box[2], &job.box[3]) != 4))
        return 0;
    job.filter = (enum stki_filter)filter;
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (stki_isa_usable(isas[i]) && !run_variant(isas[i], in, &job, column[5])) {
            printf("FAIL %s: %s %s x %s %s box %s\n", stki_isa_name(isas[i]), column[0], column[1], column[2],
                   column[3], column[4]);
            return 0;
        }
    return 1;
}

static int split(char *line, char **column)
{
    int n = 0;

    for (char *at = strtok(line, "\t\n"); at && n < COLUMNS; at = strtok(NULL, "\t\n"))
        column[n++] = at;
    return n == COLUMNS;
}

int main(int argc, char **argv)
{
    char line[MAX_LINE], directory[MAX_LINE] = "", *slash, *column[COLUMNS];
    image in = {""};
    int passed = 0, failed = 0;
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!file) {
        fprintf(stderr, argc == 2 ? "cannot open %s\n" : "usage: resize_cases CASES.tsv\n", argc == 2 ? argv[1] : "");
        return 2;
    }
    snprintf(directory, sizeof directory, "%s", argv[1]);
    slash = strrchr(directory, '/');
    directory[slash ? slash + 1 - directory : 0] = '\0';
    while (fgets(line, sizeof line, file)) {
        int fine;

        if (line[0] == '#' || isspace((unsigned char)line[0]))
            continue;
        fine = split(line, column);
        if (fine && strcmp(in.name, column[0]) != 0) {
            free(in.pixels);
            in = (image){""};
            fine = read_image(directory, column[0], &in);
        }
        fine = fine && run_case(&in, column);
        passed += fine;
        failed += !fine;
    }
    free(in.pixels);
    fclose(file);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || !passed;
}
