/* bench_open.c: the time to open a file of many records, and the memory that its index takes.
 *
 *     bench_open DIR [--records 1000000] [--repeats 5] [--large]
 *
 * Creates these files in DIR, unless they exist: two .beton files of records of 16 bytes and a number (as written by
 * one worker, and by several in turn), a tar archive of texts and classes, a Megatron index, and an .npy file; with
 * --large, also .beton files with ten times as many records. Everything is in the page cache. For each file, prints the
 * median time from opening it for one field until the first record has been read, and the heap memory that is then
 * allocated. The tar archive is opened both by reading its headers and with its saved index.
 */
#include "allocate.h"
#include "clock.h"
#include "container.h"
#include "file.h"
#include "format.h"
#include "format_options.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/dataset.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RECORD = 16, TURN = 100, REPEATS_MOST = 99, ROWS_AT_ONCE = 4096, TAR_TEXT = 64 };

static stk_error err;

static void must(stk_status status)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "bench_open: %s\n", err.message);
    exit(1);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);

    if (!file) {
        perror(path);
        exit(1);
    }
    return file;
}

/* ---- files ---- */

static void make_beton(const char *path, int64_t count)
{
    static const stk_beton_field fields[2] = {{.name = "record", .kind = STK_BETON_BYTES},
                                              {.name = "label", .kind = STK_BETON_INT}};
    stk_beton_value *values = calloc(2 * ROWS_AT_ONCE, sizeof *values);
    char bytes[RECORD] = "sixteen letters";
    stk_beton_writer *writer;

    must(stk_beton_create(path, fields, 2, count, NULL, &writer, &err));
    for (int64_t i = 0; i < count; i += ROWS_AT_ONCE) {
        int64_t n = count - i < ROWS_AT_ONCE ? count - i : ROWS_AT_ONCE;

        for (int64_t k = 0; k < n; k++) {
            values[2 * k] = (stk_beton_value){.bytes = bytes, .size = RECORD};
            values[2 * k + 1].integer = i + k;
        }
        must(stk_beton_append(writer, values, n, &err));
    }
    must(stk_beton_commit(writer, &err));
    free(values);
}

/* Reorders the entries of the table as if two writers had alternated every 100 samples: swaps neighboring runs. */
static void take_turns(const char *path, int64_t count)
{
    FILE *file = open_file(path, "r+b");
    uint64_t table;
    char(*runs)[TURN * 24] = malloc(2 * sizeof *runs);

    if (fseeko(file, 16, SEEK_SET) || fread(&table, 8, 1, file) != 1)
        exit(1);
    for (int64_t i = 0; i + 2 * TURN <= count; i += 2 * TURN) {
        off_t at = (off_t)table + (off_t)i * 24;

        if (fseeko(file, at, SEEK_SET) || fread(runs, sizeof *runs, 2, file) != 2 || fseeko(file, at, SEEK_SET) ||
            fwrite(runs[1], sizeof *runs, 1, file) != 1 || fwrite(runs[0], sizeof *runs, 1, file) != 1)
            exit(1);
    }
    free(runs);
    fclose(file);
}

static void put_tar(FILE *file, const char *name, const char *text, int size)
{
    unsigned char block[1024] = {0};
    unsigned sum = 0;

    memcpy(block, name, strlen(name));
    snprintf((char *)block + 124, 12, "%011o", (unsigned)size);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    memset(block + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += block[i];
    snprintf((char *)block + 148, 8, "%06o", sum & 0777777U);
    memcpy(block + 512, text, (size_t)size);
    if (fwrite(block, sizeof block, 1, file) != 1)
        exit(1);
}

static void make_tar(const char *path, int64_t count)
{
    static const char zeros[1024];
    FILE *file = open_file(path, "wb");
    char name[64], text[TAR_TEXT] = "a text of just as many letters as there are in every other one";

    for (int64_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%09" PRId64 ".txt", i);
        put_tar(file, name, text, TAR_TEXT);
        snprintf(name, sizeof name, "%09" PRId64 ".cls", i);
        put_tar(file, name, "7", 1);
    }
    fwrite(zeros, 1, sizeof zeros, file);
    fclose(file);
}

static void make_megatron(const char *path, int64_t count)
{
    FILE *idx = open_file(path, "wb"), *bin;
    char name[4096];
    uint64_t numbers[2] = {(uint64_t)count, (uint64_t)count + 1}, version = 1;
    int32_t length = RECORD;

    snprintf(name, sizeof name, "%.*s.bin", (int)strlen(path) - 4, path);
    bin = open_file(name, "wb");
    fwrite("MMIDIDX\0\0", 1, 9, idx);
    fwrite(&version, 8, 1, idx);
    fputc(8, idx);
    fwrite(numbers, 8, 2, idx);
    for (int64_t i = 0; i < count; i++)
        fwrite(&length, 4, 1, idx);
    for (int64_t i = 0; i < count; i++) {
        int64_t offset = i * RECORD * 2;

        fwrite(&offset, 8, 1, idx);
    }
    for (int64_t i = 0; i <= count; i++)
        fwrite(&i, 8, 1, idx);
    fclose(idx);
    if (fflush(bin) || ftruncate(fileno(bin), count * RECORD * 2))
        exit(1);
    fclose(bin);
}

static void make_npy(const char *path, int64_t count)
{
    int64_t shape[1] = {RECORD};
    stk_npy_writer *writer;
    char *rows = calloc(ROWS_AT_ONCE, RECORD);

    must(stk_npy_create(path, STK_U8, 1, shape, false, &writer, &err));
    for (int64_t i = 0; i < count; i += ROWS_AT_ONCE)
        must(stk_npy_append(writer, rows, count - i < ROWS_AT_ONCE ? count - i : ROWS_AT_ONCE, &err));
    must(stk_npy_commit(writer, &err));
    free(rows);
}

/* ---- opening ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct opened {
    double ms, cpu_ms;
    int64_t held;
};

static struct opened open_once(const char *path, const stki_reader_opts *opts, int64_t expected)
{
    stki_memory_stats before, opened;
    stki_scratch scratch;
    stki_reader *reader;
    stk_tensor sample;
    struct opened result;
    int64_t start;
    double cpu;

    stki_scratch_init(&scratch);
    stki_memory_read(STKI_MEM_HOST, &before);
    cpu = cpu_ms();
    start = stki_now_ns();
    must(stki_reader_open(path, opts, &reader, &err));
    must(reader->ops->read(reader, reader->count / 2, NULL, &scratch, &sample, &err));
    result.ms = (double)(stki_now_ns() - start) / 1e6;
    result.cpu_ms = cpu_ms() - cpu;
    stki_memory_read(STKI_MEM_HOST, &opened);
    if (reader->count != expected) {
        fprintf(stderr, "bench_open: %s: %" PRId64 " records\n", path, reader->count);
        exit(1);
    }
    result.held = opened.bytes - before.bytes;
    stki_reader_done(reader, &sample);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
    return result;
}

static void measure(const char *what, const char *path, const stki_reader_opts *opts, int64_t count, int repeats)
{
    double ms[REPEATS_MOST], cpu[REPEATS_MOST];
    int64_t held = 0;

    for (int i = 0; i < repeats; i++) {
        struct opened opened = open_once(path, opts, count);

        ms[i] = opened.ms;
        cpu[i] = opened.cpu_ms;
        held = opened.held;
    }
    qsort(ms, (size_t)repeats, sizeof *ms, by_value);
    qsort(cpu, (size_t)repeats, sizeof *cpu, by_value);
    printf("%-28s %12" PRId64 " %10.2f ms %10.2f ms %10.1f KiB\n", what, count, ms[repeats / 2], cpu[repeats / 2],
           (double)held / 1024);
    fflush(stdout);
}

static const char *in(const char *dir, const char *name, int64_t count, const char *ending)
{
    static char paths[8][4096];
    static int next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s-%" PRId64 "%s", dir, name, count, ending);
    return path;
}

static void touch_pages(const char *path)
{
    static char buffer[1 << 20];
    FILE *file = open_file(path, "rb");

    while (fread(buffer, 1, sizeof buffer, file) == sizeof buffer)
        ;
    fclose(file);
}

static void beton(const char *dir, const char *name, int64_t count, int repeats, bool turns)
{
    const char *path = in(dir, name, count, ".beton");
    stki_reader_opts opts = {.name = "record", .pattern = STKI_PATTERN_RANDOM};

    if (access(path, F_OK)) {
        make_beton(path, count);
        if (turns)
            take_turns(path, count);
    }
    touch_pages(path);
    measure(turns ? "beton, writers took turns" : "beton", path, &opts, count, repeats);
    opts.access = STKI_ACCESS_PREAD;
    measure(turns ? "beton, turns, pread" : "beton, pread", path, &opts, count, repeats);
    opts.name = "label";
    opts.access = STKI_ACCESS_AUTO;
    if (!turns)
        measure("beton, a number", path, &opts, count, repeats);
}

static void others(const char *dir, int64_t count, int repeats)
{
    const char *tar = in(dir, "texts", count, ".tar"), *idx = in(dir, "tokens", count, ".idx");
    const char *npy = in(dir, "rows", count, ".npy");
    static const char text[] = "{index_cache: none}";
    stki_reader_opts opts = {.name = "txt"};
    stki_document *document;

    if (access(tar, F_OK))
        make_tar(tar, count);
    if (access(idx, F_OK))
        make_megatron(idx, count);
    if (access(npy, F_OK))
        make_npy(npy, count);
    touch_pages(tar);
    touch_pages(idx);
    if (stki_document_parse(text, sizeof text - 1, "bench_open", STKI_NO_INCLUDE, &document, &err) ||
        stki_source_read(stki_document_root(document), NULL, document, &opts.source, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    measure("tar, by its headers", tar, &opts, count, repeats > 3 ? 3 : repeats);
    opts.source = NULL;
    stki_document_destroy(document);
    (void)open_once(tar, &opts, count); /* saves the index */
    measure("tar, by its saved index", tar, &opts, count, repeats);
    opts.name = "cls";
    measure("tar, saved index, classes", tar, &opts, count, repeats);
    opts.name = "documents";
    measure("megatron, documents", idx, &opts, count, repeats);
    opts.name = NULL;
    measure("npy", npy, &opts, count, repeats);
}

int main(int argc, char **argv)
{
    int64_t count = 1000000;
    int repeats = 5;
    bool large = false;

    for (int i = 2; i < argc; i++) {
        if (!strcmp(argv[i], "--records") && i + 1 < argc)
            count = atoll(argv[++i]);
        else if (!strcmp(argv[i], "--repeats") && i + 1 < argc)
            repeats = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--large"))
            large = true;
        else
            argc = 1;
    }
    if (argc < 2 || count < 1 || repeats < 1 || repeats > REPEATS_MOST) {
        fprintf(stderr, "usage: bench_open DIR [--records 1000000] [--repeats 5] [--large]\n");
        return 2;
    }
    printf("%-28s %12s %13s %13s %14s\n", "file", "records", "open", "CPU", "held");
    beton(argv[1], "records", count, repeats, false);
    beton(argv[1], "turns", count, repeats, true);
    others(argv[1], count, repeats);
    if (large) {
        beton(argv[1], "records", 10 * count, repeats, false);
        beton(argv[1], "turns", 10 * count, repeats, true);
    }
    return 0;
}
