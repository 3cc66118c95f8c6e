/* Tests of the sinks of all formats: however rows are divided into calls, wherever the work is interrupted, and
 * whatever was written after the mark, the bytes must be those of a single run, and readers must return the written
 * values. */
#include "allocate.h"
#include "beton.h"
#include "container.h"
#include "error.h"
#include "faults.h"
#include "format.h"
#include "output.h"
#include "sink_rows.h"
#include "source_opts.h"
#include "spill.h"
#include <dirent.h>
#include <errno.h>
#include <stoker/dataset.h>

static stk_error err;

/* ---- data sets and options ---- */

/* Options as the option tables store them: each is an 8-byte number or an enum. */
struct two_numbers {
    int64_t a, b;
};

struct case_of {
    const char *name, *format, *path;
    int64_t rows;
    void (*make)(struct stkt_rows *rows);
    union {
        struct two_numbers numbers;
        int word;
    } options;
    bool may_skip; /* fewer rows than announced may be appended */
};

static void one_array(struct stkt_rows *r)
{
    stkt_add_field(r, "x", STKI_SINK_ARRAY, STK_F32, 2, 3, 5);
}

static void labels(struct stkt_rows *r)
{
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_U8, 0, 0, 0);
}

static void numbers(struct stkt_rows *r)
{
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_I16, 0, 0, 0);
    stkt_add_field(r, "weight", STKI_SINK_ARRAY, STK_F32, 0, 0, 0);
}

/* Arrays, numbers, ragged rows, pixels of varying size, bytes. */
static void all_kinds(struct stkt_rows *r)
{
    stkt_add_field(r, "x", STKI_SINK_ARRAY, STK_F16, 1, 7, 0);
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_I32, 0, 0, 0);
    stkt_add_field(r, "walk", STKI_SINK_RAGGED, STK_F64, 2, 0, 2);
    stkt_add_field(r, "pixels", STKI_SINK_IMAGE, STK_U8, 3, 0, 0);
    stkt_add_field(r, "note", STKI_SINK_BYTES, STK_U8, 1, 0, 0);
}

static void beton_kinds(struct stkt_rows *r)
{
    stkt_add_field(r, "image", STKI_SINK_IMAGE, STK_U8, 3, 0, 0);
    r->fields[0].encode = "jpeg"; /* every second one */
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_I32, 0, 0, 0);
    stkt_add_field(r, "weight", STKI_SINK_ARRAY, STK_F64, 0, 0, 0);
    stkt_add_field(r, "x", STKI_SINK_ARRAY, STK_F32, 2, 2, 3);
    stkt_add_field(r, "note", STKI_SINK_BYTES, STK_U8, 1, 0, 0);
    stkt_add_field(r, "meta", STKI_SINK_BYTES, STK_U8, 1, 0, 0);
    r->fields[5].encode = "json";
    stkt_add_field(r, "tokens", STKI_SINK_RAGGED, STK_U8, 1, 0, 0);
}

/* Five samples per page, with unused space at the end. */
static void large(struct stkt_rows *r)
{
    stkt_add_field(r, "x", STKI_SINK_ARRAY, STK_U8, 1, 400000, 0);
    stkt_add_field(r, "label", STKI_SINK_ARRAY, STK_I64, 0, 0, 0);
}

/* Images of one size: images in a .beton, arrays in a tar and other formats. */
static void same_images(struct stkt_rows *r)
{
    stkt_add_field(r, "image", STKI_SINK_ARRAY, STK_U8, 3, 8, 4);
    r->fields[0].shape[2] = 3;
    r->fields[0].image = true;
}

static void tokens_of_texts(struct stkt_rows *r)
{
    stkt_add_field(r, "text", STKI_SINK_RAGGED, STK_U16, 1, 0, 0);
}

static void wide_tokens(struct stkt_rows *r)
{
    stkt_add_field(r, "text", STKI_SINK_ARRAY, STK_U32, 1, 9, 0);
}

static const struct case_of cases[] = {
    {"npy", "npy", "one.npy", 14, one_array, {{0}}, false},
    {"npy labels, fewer", "npy", "labels.npy", 14, labels, {{0}}, true},
    {"npy of all kinds", "npy", "all.npy", 13, all_kinds, {{0}}, false},
    {"raw", "raw", "one.raw", 14, one_array, {{0}}, false},
    {"raw of all kinds", "raw", "all.bin", 13, all_kinds, {{0}}, true},
    {"tar", "tar", "all.tar", 13, all_kinds, {{0}}, false},
    {"tar of images", "tar", "images.tar", 13, beton_kinds, {{0}}, true},
    {"llm.c", "tokens", "llmc.bin", 14, tokens_of_texts, {.word = 0}, false},
    {"llm.c, wide", "tokens", "wide.bin", 14, wide_tokens, {.word = 0}, false},
    {"nanoGPT", "tokens", "raw.bin", 14, tokens_of_texts, {.word = 1}, true},
    {"Megatron", "tokens", "mega.idx", 14, tokens_of_texts, {.word = 2}, false},
    {"beton of numbers", "beton", "numbers.beton", 14, numbers, {{2 << 20, 0}}, false},
    {"beton of numbers, fewer", "beton", "fewer.beton", 14, numbers, {{2 << 20, 0}}, true},
    {"beton of all kinds", "beton", "all.beton", 13, beton_kinds, {{2 << 20, 1}}, false},
    {"beton of pages", "beton", "large.beton", 9, large, {{2 << 20, 0}}, true},
    {"beton of images", "beton", "same.beton", 14, same_images, {{2 << 20, 0}}, false},
    {"beton of tensors", "beton", "tensors.beton", 14, same_images, {{2 << 20, 1}}, false},
    {"npz", "npz", "all.npz", 13, all_kinds, {{0}}, false},
    {"npz, deflated", "npz", "deflated.npz", 13, all_kinds, {{6, 0}}, true},
    {"hdf5", "hdf5", "all.h5", 13, all_kinds, {{0}}, false},
    {"hdf5, chunked", "hdf5", "chunked.h5", 13, all_kinds, {{0, 3}}, true},
    {"hdf5, deflated", "hdf5", "deflated.h5", 13, all_kinds, {{4, 3}}, false},
    {"pt", "pt", "all.pt", 13, all_kinds, {{0}}, true},
    {"safetensors", "safetensors", "all.safetensors", 13, all_kinds, {{0}}, false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

struct setting {
    const struct case_of *is;
    const stki_sink_ops *ops;
    struct stkt_rows rows;
    stki_sink_opts opts;
    int64_t come; /* rows that are appended */
    char path[300], folder[300];
};

static const char *folder_named(const char *name)
{
    const char *path = stkt_path(name);

    if (mkdir(path, 0700) && errno != EEXIST)
        fail_msg("cannot create %s", path);
    return path;
}

static void set_up(struct setting *s, const struct case_of *is, const char *folder)
{
    memset(s, 0, sizeof *s);
    s->is = is;
    assert_ok(stki_sink_find(is->format, is->path, &s->ops, &err));
    stkt_rows_init(&s->rows, is->rows, is->make == large ? 400100 : 4000);
    is->make(&s->rows);
    stkt_fill_rows(&s->rows);
    snprintf(s->path, sizeof s->path, "%s", stkt_path(is->path));
    snprintf(s->folder, sizeof s->folder, "%s", folder_named(folder));
    stkt_sink_opts(&s->rows, s->ops, s->path, s->folder, s->ops->table ? &s->is->options : NULL, &s->opts);
    s->opts.may_skip = is->may_skip;
    s->opts.first_row = 999999990; /* the length of the keys changes */
    s->come = is->may_skip ? is->rows - 2 : is->rows;
}

static void tear_down(struct setting *s)
{
    stkt_rows_fini(&s->rows);
}

static void open_sink(const struct setting *s, const json_t *mark, stki_sink **out)
{
    assert_ok(s->ops->check ? s->ops->check(&s->opts, &err) : STK_OK);
    assert_ok(s->ops->open(&s->opts, mark, out, &err));
}

static int finish_files(stki_sink *sink, stki_sink_file *files)
{
    int count;

    assert_ok(sink->ops->finish(sink, &err));
    count = sink->ops->files(sink, files, STKT_SINK_FILES);
    assert_true(count > 0 && count <= STKT_SINK_FILES);
    for (int i = 0; i < count; i++)
        assert_int_equal(stkt_file_bytes(files[i].temporary), files[i].bytes);
    return count;
}

/* Writes all rows with one call; the files stay in the folder "whole". */
static void write_whole(const struct case_of *is)
{
    stki_sink_file files[STKT_SINK_FILES];
    struct setting s;
    stki_sink *sink;

    set_up(&s, is, "whole");
    open_sink(&s, NULL, &sink);
    assert_ok(s.ops->append(sink, s.rows.values, s.come, &err));
    finish_files(sink, files);
    s.ops->destroy(sink);
    tear_down(&s);
}

static void compare_with_whole(const stki_sink_file *files, int count)
{
    for (int i = 0; i < count; i++) {
        char whole[600];

        snprintf(whole, sizeof whole, "%s/%s", stkt_path("whole"), strrchr(files[i].temporary, '/') + 1);
        stkt_same_files(files[i].temporary, whole);
    }
}

/* ---- sizes ---- */

/* The size of all files of a data set. */
static int64_t write_and_weigh(const struct setting *s)
{
    stki_sink_file files[STKT_SINK_FILES];
    stki_sink *sink;
    int64_t bytes = 0;

    open_sink(s, NULL, &sink);
    assert_ok(s->ops->append(sink, s->rows.values, s->come, &err));
    for (int i = finish_files(sink, files) - 1; i >= 0; i--)
        bytes += files[i].bytes;
    s->ops->destroy(sink);
    return bytes;
}

/* The size of the files, with any number of rows, must equal the size predicted before any row was written. */
static void test_measured(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        const bool beton = !strcmp(cases[c].format, "beton");

        for (int64_t come = beton; come <= cases[c].rows; come++) { /* a .beton file cannot be empty */
            stki_sink_size size = {0};
            struct setting s;
            int64_t bytes, measured;

            set_up(&s, &cases[c], "measured");
            s.come = come;
            s.opts.most_rows = come + (s.opts.may_skip && come % 2);
            for (int64_t row = 0; row < come; row++)
                (void)s.ops->measure(&s.opts, stkt_value(&s.rows, 0, row), 1, &size);
            measured = s.ops->measure(&s.opts, NULL, 0, &size);
            assert_int_equal(size.rows, come);
            bytes = write_and_weigh(&s);
            if (s.ops->resumes)
                assert_int_equal(measured, bytes);
            else if (!strcmp(cases[c].format, "hdf5")) /* each of 11 arrays has an index and a partial chunk */
                assert_in_range(measured, bytes, bytes + 11 * ((14 << 10) + (512 << 10)) + 1024);
            else if (!strcmp(cases[c].name, "npz, deflated"))
                assert_true(measured >= bytes);
            else
                assert_in_range(measured, bytes, bytes + 11 * 1024 + 1024);
            tear_down(&s);
        }
    }
}

/* The predicted size of many equal rows is the sum of the predictions for single rows, and sizes do not overflow. */
static void test_measured_together(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        for (int64_t before = 0; before < 7; before += 3) {
            stki_sink_size one = {0}, all = {0};
            struct setting s;
            int64_t each = 0, together;

            set_up(&s, &cases[c], "measured");
            s.opts.most_rows = INT64_MAX / 1024;
            for (int64_t row = 0; row < before; row++) {
                (void)s.ops->measure(&s.opts, stkt_value(&s.rows, 0, row), 1, &one);
                (void)s.ops->measure(&s.opts, stkt_value(&s.rows, 0, row), 1, &all);
            }
            for (int i = 0; i < 1000; i++)
                each = s.ops->measure(&s.opts, stkt_value(&s.rows, 0, 5), 1, &one);
            together = s.ops->measure(&s.opts, stkt_value(&s.rows, 0, 5), 1000, &all);
            assert_int_equal(each, together);
            assert_int_equal(one.rows, all.rows);
            assert_int_equal(one.bytes, all.bytes);
            each = s.ops->measure(&s.opts, stkt_value(&s.rows, 0, 5), INT64_MAX / 1024, &all);
            assert_in_range(each, together, INT64_MAX / 2 + (1 << 20));
            tear_down(&s);
        }
}

/* In compressed files, zeros take almost no space, and noise takes its full size. Other formats predict nothing. */
static void test_packed(void **state)
{
    enum { BYTES = 1 << 16 };
    char *bytes = calloc(1, BYTES);

    (void)state;
    for (int c = 0; c < CASES; c++) {
        const bool packs = strstr(cases[c].name, "deflated") != NULL;
        uint64_t random = 3;
        struct setting s;

        set_up(&s, &cases[c], "packed");
        if (s.ops->packed && packs) {
            memset(bytes, 0, BYTES);
            assert_in_range(s.ops->packed(&s.opts, 0, bytes, BYTES), 1, BYTES / 100);
            for (int i = 0; i < BYTES; i++)
                bytes[i] = (char)stkt_random(&random);
            assert_in_range(s.ops->packed(&s.opts, 0, bytes, BYTES), BYTES * 99 / 100, BYTES + 1000);
            assert_int_equal(s.ops->packed(&s.opts, 0, bytes, 0), 0);
        } else {
            assert_false(packs);
            assert_true(!s.ops->packed || s.ops->packed(&s.opts, 0, bytes, BYTES) == -1);
        }
        tear_down(&s);
    }
    free(bytes);
}

/* ---- calls, threads and interruptions ---- */

static void test_any_calls_any_threads(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        uint64_t random = 7;

        write_whole(&cases[c]);
        for (int threads = 0; threads < 5; threads += 2) {
            stki_sink_file files[STKT_SINK_FILES];
            struct setting s;
            stki_sink *sink;

            set_up(&s, &cases[c], "pieces");
            s.opts.threads = threads;
            open_sink(&s, NULL, &sink);
            assert_ok(s.ops->append(sink, NULL, 0, &err));
            assert_ok(stkt_append(sink, &s.rows, 0, s.come, threads ? 5 : 1, &random, &err));
            compare_with_whole(files, finish_files(sink, files));
            s.ops->destroy(sink);
            tear_down(&s);
        }
    }
}

static void add_garbage(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[700];

    while ((entry = readdir(dir)))
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            stkt_append_file(path, "garbage that a crash may leave", 30);
        }
    closedir(dir);
}

/* Writes garbage into the table entry of the last announced row of large(), as if from a sample that was never
 * appended. The entry has 16 bytes; before the table there are a header of 24 bytes and two descriptors of 1041. */
static void add_garbage_row(const struct setting *s)
{
    char path[700];
    FILE *file;

    if (s->is->make != large)
        return;
    snprintf(path, sizeof path, "%s/%s", s->folder, s->is->path);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 24 + 2 * 1041 + 16 * (s->rows.rows - 1), SEEK_SET), 0);
    assert_int_equal(fwrite("sixteen bytes ..", 16, 1, file), 1);
    fclose(file);
}

/* Syncs are slow, so only some marks are synced. */
static bool is_synced(const json_t *mark)
{
    return json_integer_value(json_object_get(mark, "rows")) % 4 == 1;
}

static void mark_and_sync(stki_sink *sink, json_t **mark)
{
    json_decref(*mark);
    assert_ok(sink->ops->mark(sink, mark, &err));
    if (is_synced(*mark))
        assert_ok(sink->ops->sync(sink, &err));
}

/* Converts the mark to text and back, as the journal does. */
static void through_text(json_t **mark)
{
    char *text = json_dumps(*mark, JSON_COMPACT);

    assert_true(strlen(text) < 400);
    json_decref(*mark);
    *mark = json_loads(text, 0, NULL);
    free(text);
}

/* Interrupts after row `at`, possibly after appending more rows, and continues with calls of random lengths. */
static void interrupt(struct setting *s, int64_t at, bool to_the_end, uint64_t *random)
{
    int64_t further = to_the_end ? s->come : stkt_random_in(random, at, s->come);
    stki_sink_file files[STKT_SINK_FILES];
    json_t *mark = NULL;
    stki_sink *sink;

    open_sink(s, NULL, &sink);
    if (at > 2) {
        int64_t before = stkt_random_in(random, 0, at);

        assert_ok(stkt_append(sink, &s->rows, 0, before, 4, random, &err));
        mark_and_sync(sink, &mark);
        assert_ok(stkt_append(sink, &s->rows, before, at, 4, random, &err));
    } else {
        assert_ok(stkt_append(sink, &s->rows, 0, at, 4, random, &err));
    }
    mark_and_sync(sink, &mark);
    assert_ok(stkt_append(sink, &s->rows, at, further, 4, random, &err));
    if (to_the_end) { /* killed after the file was finished, before this was recorded */
        assert_ok(sink->ops->finish(sink, &err));
    } else { /* the last mark did not reach the journal */
        json_t *lost;

        assert_ok(sink->ops->mark(sink, &lost, &err));
        json_decref(lost);
    }
    sink->ops->destroy(sink);
    add_garbage(s->folder);
    add_garbage_row(s);
    through_text(&mark);
    open_sink(s, mark, &sink);
    assert_ok(stkt_append(sink, &s->rows, at, s->come, 4, random, &err));
    compare_with_whole(files, finish_files(sink, files));
    sink->ops->destroy(sink);
    json_decref(mark);
}

static void test_interrupted_anywhere(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        uint64_t random = 11;
        struct setting s;

        set_up(&s, &cases[c], "interrupted");
        for (int64_t at = 0; at <= s.come && s.ops->resumes; at++)
            for (int way = 0; way < 2; way++)
                interrupt(&s, at, way == 1, &random);
        tear_down(&s);
    }
}

/* ---- reading back ---- */

enum part { ROWS, VALUES, OFFSETS, SHAPES };

/* The expected contents of an array, computed by simple code. *rows is the number of rows of the array. */
static char *expected_part(const struct setting *s, int field, enum part part, int64_t *rows, int64_t *bytes)
{
    const stki_sink_field *f = &s->rows.fields[field];
    char *all = malloc((size_t)s->rows.room + 64);
    int64_t total = 0, entries = 0;

    if (part == OFFSETS)
        memset(all, 0, 8);
    *bytes = part == OFFSETS ? 8 : 0;
    for (int64_t row = 0; row < s->come; row++) {
        const stki_sink_value *v = stkt_value((struct stkt_rows *)(uintptr_t)&s->rows, field, row);
        int64_t shape[3] = {v->height, v->width, v->channels};

        entries = f->kind == STKI_SINK_RAGGED ? v->length : v->size;
        total += entries;
        if (part == OFFSETS)
            memcpy(all + *bytes, &total, 8);
        else if (part == SHAPES)
            memcpy(all + *bytes, shape, 24);
        else if (v->size > 0)
            memcpy(all + *bytes, v->bytes, (size_t)v->size);
        *bytes += part == OFFSETS ? 8 : part == SHAPES ? 24 : v->size;
    }
    *rows = part == VALUES ? total : part == OFFSETS ? s->come + 1 : s->come;
    return all;
}

static void check_array(const struct setting *s, const char *path, const char *name, int field, enum part part)
{
    const stki_sink_field *f = &s->rows.fields[field];
    const stki_reader_opts opts = {.name = name};
    stki_container *container;
    int64_t member, rows, bytes;
    char *expected = expected_part(s, field, part, &rows, &bytes);
    stki_array array;
    stk_tensor t;

    assert_ok(stki_container_open(path, &opts, &container, &err));
    assert_ok(stki_container_find(container, &opts, &member, &err));
    if (!strcmp(s->is->format, "hdf5")) { /* chunks are read sample by sample */
        stki_reader *reader;
        stki_scratch scratch;
        int64_t at = 0;

        assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
        stki_scratch_init(&scratch);
        assert_int_equal(reader->count, rows);
        assert_int_equal(reader->dtype, part == OFFSETS || part == SHAPES ? STK_I64 : f->dtype);
        for (int64_t i = 0; i < rows; i++) {
            assert_ok(reader->ops->read(reader, i, NULL, &scratch, &t, &err));
            assert_memory_equal(t.data, expected + at, (size_t)reader->max_bytes);
            at += reader->max_bytes;
            stki_reader_done(reader, &t);
        }
        assert_int_equal(at, bytes);
        stki_scratch_fini(&scratch);
        reader->ops->destroy(reader);
    } else {
        assert_ok(stki_container_array(container, member, &opts, &array, &err));
        assert_ok(stki_array_tensor(&array, path, &t, &err));
        stki_array_release(&array);
        assert_int_equal(t.shape[0], rows);
        assert_int_equal(t.dtype, part == OFFSETS || part == SHAPES ? STK_I64 : f->dtype);
        assert_int_equal(stk_tensor_numel(&t) * stk_dtype_size(t.dtype), bytes);
        if (bytes > 0)
            assert_memory_equal(t.data, expected, (size_t)bytes);
        stk_tensor_release(&t);
    }
    stki_container_release(container);
    free(expected);
}

static void check_part(const struct setting *s, const stki_sink_file *files, int count, int field, enum part part)
{
    static const char *const endings[] = {"", ".values", ".offsets", ".shapes"};
    char name[80], file[100];
    int64_t rows, bytes, found_bytes;

    snprintf(name, sizeof name, "%s%s", s->rows.fields[field].name, endings[part]);
    snprintf(file, sizeof file, ".%s.", name);
    for (int i = 0; i < count; i++) {
        if (count > 1 && !strstr(files[i].final, file))
            continue;
        if (strcmp(s->is->format, "raw") != 0) {
            check_array(s, files[i].temporary, !strcmp(s->is->format, "npy") ? "" : name, field, part);
        } else {
            char *expected = expected_part(s, field, part, &rows, &bytes);
            char *found = stkt_read_whole(files[i].temporary, &found_bytes);

            assert_int_equal(found_bytes, bytes);
            assert_memory_equal(found, expected, (size_t)bytes);
            free(found);
            free(expected);
        }
        return;
    }
    fail_msg("no file for %s", name);
}

static void test_arrays_are_read_back(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        stki_sink_file files[STKT_SINK_FILES];
        struct setting s;
        uint64_t random = 5;
        stki_sink *sink;
        int count;

        if (!strcmp(cases[c].format, "tar") || !strcmp(cases[c].format, "beton") || !strcmp(cases[c].format, "tokens"))
            continue;
        set_up(&s, &cases[c], "back");
        open_sink(&s, NULL, &sink);
        assert_ok(stkt_append(sink, &s.rows, 0, s.come, 6, &random, &err));
        count = finish_files(sink, files);
        for (int f = 0; f < s.rows.field_count; f++) {
            bool rows = s.rows.fields[f].kind == STKI_SINK_ARRAY;

            check_part(&s, files, count, f, rows ? ROWS : VALUES);
            if (!rows)
                check_part(&s, files, count, f, OFFSETS);
            if (s.rows.fields[f].kind == STKI_SINK_IMAGE)
                check_part(&s, files, count, f, SHAPES);
        }
        sink->ops->destroy(sink);
        tear_down(&s);
    }
}

/* The .beton file must be the one that the public writer makes from the same samples, which test_beton_write.c compares
 * with another program's. Values are converted to that writer's form here. */
static void public_value(const struct setting *s, int field, int64_t row, stk_beton_value *out)
{
    const stki_sink_value *v = stkt_value((struct stkt_rows *)(uintptr_t)&s->rows, field, row);
    const stki_sink_field *f = &s->rows.fields[field];

    *out = (stk_beton_value){.bytes = v->bytes, .size = v->size};
    if (f->image) {
        out->height = f->shape[0];
        out->width = f->shape[1];
    } else if (f->kind == STKI_SINK_IMAGE) {
        out->height = v->height;
        out->width = v->width;
        out->jpeg = v->encoding == STKI_JPEG;
    } else if (f->dtype == STK_I16) {
        out->integer = *(const int16_t *)v->bytes;
    } else if (f->dtype == STK_I32) {
        out->integer = *(const int32_t *)v->bytes;
    } else if (f->dtype == STK_I64) {
        out->integer = *(const int64_t *)v->bytes;
    } else if (f->dtype == STK_F32 && f->ndim == 0) {
        out->real = (double)*(const float *)v->bytes;
    } else if (f->dtype == STK_F64 && f->ndim == 0) {
        out->real = *(const double *)v->bytes;
    }
}

static void write_public_beton(const struct setting *s, const char *path)
{
    const struct two_numbers *options = &s->is->options.numbers;
    stk_beton_opts opts = STK_BETON_OPTS_INIT;
    stk_beton_field fields[STKT_SINK_FIELDS] = {0};
    stk_beton_value values[STKT_SINK_FIELDS];
    stk_beton_writer *w;

    for (int f = 0; f < s->rows.field_count; f++) {
        const stki_sink_field *from = &s->rows.fields[f];

        fields[f].name = from->name;
        fields[f].kind = from->kind == STKI_SINK_IMAGE || (from->image && !options->b) ? STK_BETON_IMAGE
                         : from->kind != STKI_SINK_ARRAY ? (from->encode ? STK_BETON_JSON : STK_BETON_BYTES)
                         : from->ndim > 0                ? (options->b ? STK_BETON_TENSOR : STK_BETON_NDARRAY)
                         : from->dtype == STK_F32 || from->dtype == STK_F64 ? STK_BETON_FLOAT
                                                                            : STK_BETON_INT;
        fields[f].dtype = from->dtype;
        fields[f].ndim = from->ndim;
        fields[f].shape = from->shape;
    }
    opts.page_bytes = options->a;
    opts.threads = 2;
    assert_ok(stk_beton_create(path, fields, s->rows.field_count, s->come, &opts, &w, &err));
    for (int64_t row = 0; row < s->come; row++) {
        for (int f = 0; f < s->rows.field_count; f++)
            public_value(s, f, row, &values[f]);
        assert_ok(stk_beton_append(w, values, 1, &err));
    }
    assert_ok(stk_beton_commit(w, &err));
}

static void test_beton_is_the_public_one(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        stki_sink_file file;
        struct setting s;
        uint64_t random = 5;
        stki_sink *sink;

        if (strcmp(cases[c].format, "beton") != 0)
            continue;
        set_up(&s, &cases[c], "beton");
        open_sink(&s, NULL, &sink);
        assert_ok(stkt_append(sink, &s.rows, 0, s.come, 6, &random, &err));
        finish_files(sink, &file);
        assert_string_equal(file.final, s.path);
        write_public_beton(&s, s.path);
        stkt_same_files(file.temporary, s.path);
        sink->ops->destroy(sink);
        tear_down(&s);
    }
}

/* If so many rows are announced that the pages begin elsewhere, the file differs but has the same samples. */
static void test_beton_of_far_fewer_rows(void **state)
{
    static const struct case_of is = {"far fewer", "beton", "far.beton", 5, beton_kinds, {{2 << 20, 0}}, true};
    const stki_reader_opts opts = {.name = "note"};
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    stki_sink_file file;
    struct setting s;
    uint64_t random = 5;
    stki_sink *sink;
    int64_t member;
    stk_tensor t;

    (void)state;
    set_up(&s, &is, "far");
    s.opts.most_rows = 200000;
    open_sink(&s, NULL, &sink);
    assert_ok(stkt_append(sink, &s.rows, 0, 5, 6, &random, &err));
    finish_files(sink, &file);
    assert_int_equal(file.rows, 5);
    assert_ok(stki_container_open(file.temporary, &opts, &container, &err));
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    assert_int_equal(reader->count, 5);
    stki_scratch_init(&scratch);
    for (int64_t row = 0; row < 5; row++) {
        const stki_sink_value *v = stkt_value(&s.rows, 4, row);

        assert_ok(reader->ops->read(reader, row, NULL, &scratch, &t, &err));
        assert_int_equal(t.shape[0], v->size);
        assert_true(v->size == 0 || !memcmp(t.data, v->bytes, (size_t)v->size));
        stki_reader_done(reader, &t);
    }
    stki_scratch_fini(&scratch);
    reader->ops->destroy(reader);
    stki_container_release(container);
    sink->ops->destroy(sink);
    tear_down(&s);
}

/* ---- tar ---- */

/* Compares sample `row` of an extension with these bytes. */
static void check_member(const char *path, const char *extension, int64_t row, const void *bytes, int64_t size)
{
    stki_reader_opts opts = *stkt_source("{index_cache: none}");
    stki_container *container;
    stki_reader *reader;
    stki_scratch scratch;
    int64_t member;
    stk_tensor t;

    opts.name = extension;
    assert_ok(stki_container_open(path, &opts, &container, &err));
    assert_int_equal(container->warning_count, 0);
    assert_ok(stki_container_find(container, &opts, &member, &err));
    assert_ok(stki_container_reader(container, member, &opts, &reader, &err));
    stki_scratch_init(&scratch);
    assert_ok(reader->ops->read(reader, row, NULL, &scratch, &t, &err));
    assert_int_equal(stk_tensor_numel(&t) * stk_dtype_size(t.dtype), size);
    if (size > 0)
        assert_memory_equal(t.data, bytes, (size_t)size);
    stki_reader_done(reader, &t);
    stki_scratch_fini(&scratch);
    reader->ops->destroy(reader);
    stki_container_release(container);
}

static void test_tar_is_read_back(void **state)
{
    stki_sink_file file;
    struct setting s;
    uint64_t random = 5;
    stki_sink *sink;

    (void)state;
    set_up(&s, &cases[5], "tar");
    assert_string_equal(s.is->name, "tar");
    open_sink(&s, NULL, &sink);
    assert_ok(stkt_append(sink, &s.rows, 0, s.come, 6, &random, &err));
    finish_files(sink, &file);
    for (int64_t row = 0; row < s.come; row++) {
        int64_t label = *(const int32_t *)stkt_value(&s.rows, 1, row)->bytes;

        check_member(file.temporary, "x.npy", row, stkt_value(&s.rows, 0, row)->bytes, 14);
        check_member(file.temporary, "cls", row, &label, 8);
        check_member(file.temporary, "walk.npy", row, stkt_value(&s.rows, 2, row)->bytes,
                     stkt_value(&s.rows, 2, row)->size);
        check_member(file.temporary, "pixels.npy", row, stkt_value(&s.rows, 3, row)->bytes,
                     stkt_value(&s.rows, 3, row)->size);
        check_member(file.temporary, "bin", row, stkt_value(&s.rows, 4, row)->bytes, stkt_value(&s.rows, 4, row)->size);
    }
    sink->ops->destroy(sink);
    tear_down(&s);
}

/* Keys are positions in the job; those of a later shard continue from its first position. */
static void test_tar_keys(void **state)
{
    stki_sink_file file;
    struct setting s;
    stki_sink *sink;
    int64_t count;
    char *bytes;

    (void)state;
    set_up(&s, &cases[5], "keys");
    s.opts.first_row = 41;
    open_sink(&s, NULL, &sink);
    assert_ok(sink->ops->append(sink, s.rows.values, s.come, &err));
    finish_files(sink, &file);
    bytes = stkt_read_whole(file.temporary, &count);
    assert_string_equal(bytes, "000000041.x.npy");
    assert_string_equal(bytes + 1024, "000000041.cls");
    free(bytes);
    sink->ops->destroy(sink);
    tear_down(&s);
}

/* ---- failures ---- */

/* Runs from the mark *reached (NULL: from the beginning) to the end, setting and syncing marks in between. Returns the
 * first error, and in *reached the last mark that was synced. */
static stk_status run_through(const struct setting *s, json_t **reached)
{
    stki_sink *sink = NULL;
    int64_t row = *reached ? json_integer_value(json_object_get(*reached, "rows")) : 0;
    stk_status status = s->ops->check ? s->ops->check(&s->opts, &err) : STK_OK;

    if (!status)
        status = s->ops->open(&s->opts, *reached, &sink, &err);
    for (int64_t n; row < s->come && !status; row += n) {
        n = s->come - row < 5 ? s->come - row : 5;
        status = sink->ops->append(sink, s->rows.values + row * s->rows.field_count, n, &err);
        if (!status && s->ops->resumes) {
            json_t *mark = NULL;

            status = sink->ops->mark(sink, &mark, &err);
            if (!status)
                status = sink->ops->sync(sink, &err);
            if (!status) {
                json_decref(*reached);
                *reached = mark;
            } else if (mark) {
                json_decref(mark);
            }
        }
    }
    if (!status)
        status = sink->ops->finish(sink, &err);
    if (!status) {
        stki_sink_file files[STKT_SINK_FILES];

        compare_with_whole(files, sink->ops->files(sink, files, STKT_SINK_FILES));
    } else if (sink) { /* after a failure, nothing more works */
        stk_error kept = err;
        json_t *mark;

        assert_true(!s->ops->resumes || sink->ops->mark(sink, &mark, &err) != STK_OK);
        assert_int_not_equal(sink->ops->finish(sink, &err), STK_OK);
        err = kept;
    }
    if (sink)
        sink->ops->destroy(sink);
    return status;
}

static void test_every_allocation_failing(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        stk_status status = STK_E_MEMORY;
        struct setting s;

        if (!strcmp(cases[c].format, "hdf5") || cases[c].make == large)
            continue; /* failures of libhdf5 are tested in test_hdf5_writer.c */
        set_up(&s, &cases[c], "memory");
        for (int64_t n = 1; status; n++) {
            json_t *reached = NULL;

            stki_memory_fail_at(n);
            status = run_through(&s, &reached);
            stki_memory_fail_at(0);
            if (status && status != STK_E_MEMORY)
                fail_msg("%s: allocation %d: %s", s.is->name, (int)n, err.message);
            if (reached) /* continues once there is memory again */
                assert_ok(run_through(&s, &reached));
            json_decref(reached);
            assert_true(n < 2000);
        }
        tear_down(&s);
    }
}

static void test_every_write_failing(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        struct setting s;

        if (cases[c].make == large)
            continue; /* one .beton with pages is enough */
        set_up(&s, &cases[c], "writes");
        for (int call = 0; call < STKT_CALLS; call++) {
            stk_status status = STK_E_IO;

            for (int64_t n = 1; status; n += n < 8 ? 1 : 5) {
                json_t *reached = NULL;

                stkt_fail_call((enum stkt_call)call, n, ENOSPC);
                status = run_through(&s, &reached);
                stkt_fail_call((enum stkt_call)call, 0, 0);
                if (status && (status != STK_E_IO || !strstr(err.message, stkt_dir)))
                    fail_msg("%s: call %d, %d: %s", s.is->name, call, (int)n, err.message);
                if (status && (s.ops->resumes || n == 1))
                    assert_ok(run_through(&s, &reached));
                json_decref(reached);
                assert_true(n < 3000);
            }
        }
        for (int64_t n = 1; n < 4; n++) {
            json_t *reached = NULL;

            stkt_fail_call(STKT_SPILL_WRITE, n, ENOSPC);
            if (run_through(&s, &reached))
                assert_ok(run_through(&s, &reached));
            stkt_fail_call(STKT_SPILL_WRITE, 0, 0);
            json_decref(reached);
        }
        tear_down(&s);
    }
}

/* Files that do not match the mark. */
static void test_marks_that_do_not_fit(void **state)
{
    static const char large_numbers[] = "{\"rows\": 9000000000000000000, \"bytes\": 1, \"tokens\": 1, \"pages\": 1, "
                                        "\"used\": 1, \"arrays\": [9000000000000000000]}";
    static const char *const wrong[] = {"{}", "[]", "{\"rows\": -1}", "{\"rows\": 1.5}", large_numbers};

    (void)state;
    for (int c = 0; c < CASES; c++) {
        uint64_t random = 3;
        json_t *mark = NULL;
        struct setting s;
        stki_sink *sink;

        set_up(&s, &cases[c], "unfit");
        if (s.ops->resumes) {
            open_sink(&s, NULL, &sink);
            assert_ok(stkt_append(sink, &s.rows, 0, 5, 6, &random, &err));
            assert_ok(sink->ops->mark(sink, &mark, &err));
            sink->ops->destroy(sink);
            for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
                json_t *other = json_loads(wrong[i], 0, NULL);
                stk_status status = s.ops->open(&s.opts, other, &sink, &err);

                if (status != STK_E_CORRUPT && status != STK_E_TRUNCATED)
                    fail_msg("%s: %s: %s", s.is->name, wrong[i], stk_status_name(status));
                json_decref(other);
            }
            stkt_remove_dir(s.folder);
            assert_int_equal(mkdir(s.folder, 0700), 0);
            assert_status(s.ops->open(&s.opts, mark, &sink, &err), STK_E_NOT_FOUND);
            json_decref(mark);
        }
        tear_down(&s);
    }
}

/* ---- rejected numbers, fields and values ---- */

static void test_numbers_of_rows(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        struct setting s;
        stki_sink *sink;

        set_up(&s, &cases[c], "rows");
        open_sink(&s, NULL, &sink);
        assert_ok(sink->ops->append(sink, s.rows.values, s.rows.rows - 1, &err));
        assert_status(sink->ops->append(sink, s.rows.values, 2, &err), STK_E_RANGE);
        assert_says("number of rows: found 2 more rows, expected");
        sink->ops->destroy(sink);
        s.opts.may_skip = false;
        open_sink(&s, NULL, &sink);
        assert_ok(sink->ops->append(sink, s.rows.values, s.rows.rows - 1, &err));
        assert_status(sink->ops->finish(sink, &err), STK_E_MISMATCH);
        assert_says("as announced");
        sink->ops->destroy(sink);
        tear_down(&s);
    }
}

/* This format must reject these fields. */
static void refuse(const char *format, const stki_sink_field *fields, int count, const char *says)
{
    const stki_sink_ops *ops;
    const stki_sink_opts opts = {.path = "out.x", .folder = "", .fields = fields, .field_count = count, .most_rows = 9};

    assert_ok(stki_sink_find(format, NULL, &ops, &err));
    assert_status(ops->check(&opts, &err), STK_E_UNSUPPORTED);
    assert_says(says);
}

static void test_fields_refused(void **state)
{
    const stki_sink_field long_name = {.name = "a_name_of_17_byte",
                                       .kind = STKI_SINK_BYTES,
                                       .dtype = STK_U8,
                                       .ndim = 1},
                          ragged = {.name = "walk", .kind = STKI_SINK_RAGGED, .dtype = STK_F32, .ndim = 1},
                          half = {.name = "h", .kind = STKI_SINK_ARRAY, .dtype = STK_BF16, .ndim = 1, .shape = {2}},
                          complex = {.name = "z", .kind = STKI_SINK_ARRAY, .dtype = STK_C128, .ndim = 0},
                          image = {.name = "i", .kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3},
                          slash[2] = {{.name = "a/b", .kind = STKI_SINK_ARRAY, .dtype = STK_U8},
                                      {.name = "c", .kind = STKI_SINK_ARRAY, .dtype = STK_U8}},
                          twins[2] = {{.name = "a", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .extension = "txt"},
                                      {.name = "b", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .extension = "txt"}},
                          parts[2] = {{.name = "w", .kind = STKI_SINK_RAGGED, .dtype = STK_U8, .ndim = 1},
                                      {.name = "w.values", .kind = STKI_SINK_ARRAY, .dtype = STK_U8}},
                          upper = {.name = "a", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .extension = "TXT"},
                          huge = {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_U8, .ndim = 1, .shape = {9 << 20}};
    const stki_sink_ops *ops;
    const stki_sink_opts empty = {.path = "x.beton", .folder = "", .fields = &image, .field_count = 1};

    (void)state;
    assert_ok(stki_sink_find("beton", NULL, &ops, &err));
    assert_status(ops->check(&empty, &err), STK_E_UNSUPPORTED);
    assert_says("FFCV cannot read a .beton without samples");
    assert_status(
        ops->check(&(stki_sink_opts){.path = "x.beton", .fields = &long_name, .field_count = 1, .most_rows = 1}, &err),
        STK_E_BAD_ARG);
    assert_says("found 17 bytes: a_name_of_17_byte, expected 1 to 16 bytes");
    assert_status(
        ops->check(&(stki_sink_opts){.path = "x.beton", .fields = &huge, .field_count = 1, .most_rows = 1}, &err),
        STK_E_LIMIT);
    assert_says("field 'x': a sample does not fit in a page: found 9437184 bytes");
    refuse("beton", &ragged, 1,
           "field walk cannot be written: found rows of float32 of varying length, expected rows of "
           "one shape (pad or crop them)");
    refuse("beton", &complex, 1, "field z cannot be written");
    refuse("npy", &half, 1, "bfloat16");
    refuse("npy", slash, 2, "field a/b cannot be written: found a slash in its name");
    refuse("npz", &half, 1, "bfloat16");
    refuse("tar", &half, 1, "bfloat16");
    refuse("safetensors", &complex, 1, "found complex128, expected another type: use the transform cast");
    refuse("tokens", &ragged, 1, "unsupported token type: found float32, expected u16 or u32");
    refuse("tokens", &image, 1, "expected rows of tokens");
    refuse("tokens", slash, 2, "number of fields in a token file: found 2, expected 1");
    refuse("npy", parts, 2, "two fields would both be stored as array w.values");
    refuse("hdf5", parts, 2, "two fields would both be stored as array w.values");
    refuse("tar", twins, 2, "field b cannot be written: found the same extension as a");
    assert_ok(stki_sink_find("tar", NULL, &ops, &err));
    assert_status(ops->check(&(stki_sink_opts){.path = "x.tar", .fields = &upper, .field_count = 1}, &err),
                  STK_E_BAD_ARG);
    assert_says("lower case");
}

static void refuse_value(const char *format, const stki_sink_field *field, const stki_sink_value *value,
                         stk_status expected, const char *says)
{
    stki_sink_opts opts = {.path = "out.x", .fields = field, .field_count = 1, .most_rows = 9};
    const stki_sink_ops *ops;
    stki_sink *sink;

    opts.folder = folder_named("values");
    assert_ok(stki_sink_find(format, NULL, &ops, &err));
    assert_ok(ops->open(&opts, NULL, &sink, &err));
    assert_status(ops->append(sink, value, 1, &err), expected);
    assert_says(says);
    assert_status(ops->finish(sink, &err), expected);
    ops->destroy(sink);
}

static void test_values_refused(void **state)
{
    static char bytes[9 << 20];
    const stki_sink_field array = {.name = "x", .kind = STKI_SINK_ARRAY, .dtype = STK_F32, .ndim = 1, .shape = {3}},
                          ragged = {.name = "w",
                                    .kind = STKI_SINK_RAGGED,
                                    .dtype = STK_U16,
                                    .ndim = 2,
                                    .shape = {0, 2}},
                          image = {.name = "i", .kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3},
                          jpg = {.name = "i", .kind = STKI_SINK_IMAGE, .dtype = STK_U8, .ndim = 3, .extension = "jpg"},
                          note = {.name = "n", .kind = STKI_SINK_BYTES, .dtype = STK_U8, .ndim = 1},
                          big = {.name = "u", .kind = STKI_SINK_ARRAY, .dtype = STK_U64, .ndim = 0};

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    refuse_value("npy", &array, &(stki_sink_value){.bytes = bytes, .size = 8}, STK_E_BAD_VALUE,
                 "record 0: field x: bytes: found 8, expected 12");
    refuse_value("npy", &array, &(stki_sink_value){.bytes = bytes, .size = -1}, STK_E_BAD_VALUE, "found -1");
    refuse_value("npy", &array, &(stki_sink_value){.bytes = NULL, .size = 12}, STK_E_BAD_ARG, "found NULL");
    refuse_value("npz", &ragged, &(stki_sink_value){.bytes = bytes, .size = 8, .length = 3}, STK_E_BAD_VALUE,
                 "field w: bytes: found 8, expected 12");
    refuse_value("raw", &image, &(stki_sink_value){.bytes = bytes, .size = 9, .height = 2, .width = 2, .channels = 3},
                 STK_E_BAD_VALUE, "field i: bytes: found 9, expected 12");
    refuse_value("raw", &image,
                 &(stki_sink_value){.bytes = bytes, .size = 9, .height = INT64_MAX, .width = 2, .channels = 3},
                 STK_E_BAD_VALUE,
                 "field i: size of the image: found 9223372036854775807 x 2 x 3, expected less than 2^63 bytes");
    refuse_value("beton", &image, &(stki_sink_value){.bytes = bytes, .size = 4, .height = 2, .width = 2, .channels = 1},
                 STK_E_BAD_VALUE, "found 1 channels, expected 3: .beton only stores RGB");
    refuse_value(
        "beton", &image,
        &(stki_sink_value){.bytes = bytes, .size = 9, .height = 2, .width = 2, .channels = 3, .encoding = STKI_PNG},
        STK_E_BAD_VALUE, "found a PNG image, expected pixels or JPEG");
    refuse_value("beton", &note, &(stki_sink_value){.bytes = bytes, .size = sizeof bytes}, STK_E_LIMIT,
                 "the sample does not fit in a page: found 9437184 bytes, expected at most 8388608 (page_bytes)");
    refuse_value("beton", &big, &(stki_sink_value){.bytes = bytes, .size = 8}, STK_E_BAD_VALUE,
                 "field u: found 18446744073709551615, expected at most 2^63 - 1");
    refuse_value("tar", &jpg, &(stki_sink_value){.bytes = bytes, .size = 12, .height = 2, .width = 2, .channels = 3},
                 STK_E_BAD_VALUE, "field i: found pixels, expected an image that matches extension: jpg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_measured),
        cmocka_unit_test(test_measured_together),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_any_calls_any_threads),
        cmocka_unit_test(test_interrupted_anywhere),
        cmocka_unit_test(test_arrays_are_read_back),
        cmocka_unit_test(test_beton_is_the_public_one),
        cmocka_unit_test(test_beton_of_far_fewer_rows),
        cmocka_unit_test(test_tar_is_read_back),
        cmocka_unit_test(test_tar_keys),
        cmocka_unit_test(test_every_allocation_failing),
        cmocka_unit_test(test_every_write_failing),
        cmocka_unit_test(test_marks_that_do_not_fit),
        cmocka_unit_test(test_numbers_of_rows),
        cmocka_unit_test(test_fields_refused),
        cmocka_unit_test(test_values_refused),
    };

    stkt_skip_syncs(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
