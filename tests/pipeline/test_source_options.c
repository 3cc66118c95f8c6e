/* Tries every option of `source` with every kind of source, including two shards of different formats. An option must
 * be rejected, with STK_E_CONFIG and the names of the option and the file, exactly where the tables say so. An accepted
 * option must reach its format: some value must change the result or the error in at least one kind of source, unless
 * it is listed in `unseen`. */
#include "beton.h"
#include "beton_build.h"
#include "config.h"
#include "container.h"
#include "format.h"
#include "format_options.h"
#include "io_files.h"
#include "jpeg_make.h"
#include "loader_test.h"
#include "option_row.h"
#include "png_make.h"
#include "source_opts.h"
#include "tar_build.h"
#include <stoker/dataset.h>
#include <sys/stat.h>

/* ---- kinds of source ---- */

static const struct kind {
    const char *file;                   /* NULL: synthetic */
    const char *member, *source, *rest; /* other options that the source and the field need, each followed by a comma */
    const char *other;                  /* the second of two shards; NULL: one file */
} kinds[] = {
    {"a.npy", "", "", ""},
    {"a.npz", "a", "", ""},
    {"deflated.npz", "a", "", ""},
    {"a.pt", "a", "", ""},
    {"a.safetensors", "a", "", ""},
    {"a.hdf5", "a", "", ""},
    {"deflated.hdf5", "a", "", ""},
    {"a.raw", "", "dtype: f32, ", ""},
    {"a.txt", "text", "", ""},
    {"a.jsonl", "text", "", ""},
    {"a.csv", "n", "name: n, ", ""},
    {"a.csv", "t", "name: t, ", ""},
    {"a.csv", "m", "name: m, ", ""},
    {"a.csv", "i", "name: i, files: images, ", "transforms: [{resize: [4, 4]}], "},
    {"a.csv", "i", "name: i, files: bytes, ", ""},
    {"a.tar", "txt", "name: txt, ", ""},
    {"a.tar", "jpg", "name: jpg, ", "transforms: [{resize: [4, 4]}], "},
    {"a.jpg", "image", "", "transforms: [{resize: [4, 4]}], "},
    {"a.png", "image", "", "transforms: [{resize: [4, 4]}], "},
    {"pictures", "image", "name: image, ", "transforms: [{resize: [4, 4]}], "},
    {"pictures", "path", "name: path, ", ""},
    {"pictures", "label", "name: label, ", ""},
    {"a.tar", "npy", "name: npy, ", ""},
    {"a.tar", "png", "name: png, ", "transforms: [{resize: [4, 4]}], "},
    {"a.tar", "cls", "name: cls, ", ""},
    {"a.beton", "jpg", "name: jpg, ", "transforms: [{resize: [4, 4]}], "},
    {"a.beton", "number", "name: number, ", ""},
    {"a.beton", "array", "name: array, ", ""},
    {"a.lst", "image", "name: image, ", "transforms: [{resize: [4, 4]}], "},
    {"a.lst", "path", "name: path, ", ""},
    {"a.lst", "label", "name: label, ", ""},
    {"llmc.bin", "", "", ""},
    {"megatron.idx", "tokens", "name: tokens, ", ""},
    {"megatron.idx", "documents", "name: documents, ", ""},
    {"a.npy", "", "sample_per_file: true, ", ""},
    {NULL, "", "", "synthetic: {count: 2, shape: [3], dtype: f32}, "},
    {NULL, "", "", "synthetic: {count: 2, shape: [3], dtype: f32, min_length: 1}, "},
    {"a.npy", "", "", "", "a.npz"},
    {"deflated.npz", "", "", "", "a.npy"},
    {"a.npz", "a", "", "", "a.pt"},
    {"a.pt", "a", "", "", "deflated.hdf5"},
    {"a.hdf5", "a", "", "", "a.npz"},
    {"a.safetensors", "", "", "", "a.npy"},
    {"a.npy", "", "", "", "a.safetensors"},
    {"a.txt", "text", "", "", "a.jsonl"},
    {"a.jsonl", "text", "", "", "a.txt"},
    {"llmc.bin", "", "dtype: u16, ", "", "tokens.raw"},
    {"tokens.raw", "", "dtype: u16, ", "", "llmc.bin"},
    {"a.beton", "jpg", "name: jpg, ", "transforms: [{resize: [4, 4]}], ", "a.tar"},
    {"a.tar", "jpg", "name: jpg, ", "transforms: [{resize: [4, 4]}], ", "a.beton"},
    {"a.lst", "image", "name: image, ", "transforms: [{resize: [4, 4]}], ", "pictures"},
};
enum { KINDS = sizeof kinds / sizeof kinds[0], VALUES = 16 };

/* Options for which these files show no difference, and why. */
static const struct {
    const char *option, *because;
} unseen[] = {
    {"index_cache", "where an index is kept changes nothing that is read: test_tar"},
    {"verify", "the sums of these files are right: test_npz"},
    {"cf", "no attributes to apply: test_hdf5"},
    {"allow_external", "no links: test_hdf5"},
    {"allow_plugins", "no filter that needs a plugin: test_hdf5"},
    {"on_warning", "whole images: test_jpeg"},
    {"header_limit", "headers are shorter than the lowest limit, 64, allows: test_npy"},
};

static bool is_unseen(const char *option)
{
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++)
        if (strcmp(unseen[i].option, option) == 0)
            return true;
    return false;
}

/* ---- one config ---- */

/* For messages. */
static const char *title(const struct kind *kind)
{
    static char text[128];

    snprintf(text, sizeof text, "%s%s%s", kind->file ? kind->file : "synthetic", kind->other ? " and " : "",
             kind->other ? kind->other : "");
    return text;
}

/* Opens and reads everything. Returns the status; *hash identifies the rows. `err` is the error of opening or
 * reading. */
static stk_status outcome(const struct kind *kind, const char *more, uint64_t *hash, stk_error *err)
{
    char path[600] = "", text[2048];
    stk_loader *loader;
    stk_batch *batch;
    stk_status status;

    *hash = 1;
    *err = (stk_error){0};
    if (kind->other)
        snprintf(path, sizeof path, "path: ['%s', '%s'], ", stkt_path(kind->file), stkt_path(kind->other));
    else if (kind->file)
        snprintf(path, sizeof path, "path: '%s', ", stkt_path(kind->file));
    snprintf(text, sizeof text,
             "{dataset: {fields: {x: {%s%ssource: {%s%s}}}}, loader: {batch_size: 1, num_workers: 0}}", path,
             kind->rest, kind->source, more);
    status = stk_loader_open_text(text, NULL, NULL, 0, &loader, err);
    if (status != STK_OK)
        return status;
    while ((status = stk_loader_next(loader, &batch, err)) == STK_OK) {
        for (int i = 0; i < stk_loader_tensor_count(loader); i++) {
            char name[64];
            stk_tensor t;

            assert_int_equal(stk_loader_tensor_name(loader, i, name, sizeof name, NULL), STK_OK);
            assert_int_equal(stk_batch_tensor(batch, name, &t, NULL), STK_OK);
            *hash = stkt_hash(*hash, t.shape, t.ndim * (int64_t)sizeof *t.shape);
            *hash = stkt_hash(*hash, &t.dtype, sizeof t.dtype);
            *hash = stkt_hash(*hash, t.data, stk_tensor_nbytes(&t));
        }
        stk_batch_release(batch);
    }
    stk_loader_destroy(loader);
    return status;
}

static int values_of(const stki_option *row, char values[VALUES][64])
{
    int count = 0;

    for (int i = 0; row->examples && row->examples[i] && count < VALUES; i++)
        snprintf(values[count++], 64, row->type == STKI_OPT_TEXT ? "'%s'" : "%s", row->examples[i]);
    for (int i = 0; row->type != STKI_OPT_TEXT && row->words && row->words[i] && count < VALUES; i++)
        snprintf(values[count++], 64, "%s", row->words[i]);
    if (row->type == STKI_OPT_BOOL)
        snprintf(values[count++], 64, "%s", row->fallback && !strcmp(row->fallback, "true") ? "false" : "true");
    if (row->type == STKI_OPT_INT || row->type == STKI_OPT_SIZE) {
        snprintf(values[count++], 64, "%.0f", row->low < 0 ? 0 : row->low);
        snprintf(values[count++], 64, "%.0f", row->low < 0 ? 1 : row->low + 1);
    }
    return count;
}

/* Returns whether the file's member accepts the option group, according to the tables. */
static bool takes(const struct kind *kind, const char *file, const stki_source_group *group)
{
    stki_reader_opts opts = {0};
    char text[128];
    stki_container *container;
    const stki_member *member;
    const stki_source_group *const *groups;
    stk_error err;
    int64_t number;
    bool found;

    if (!file)
        return false;
    snprintf(text, sizeof text, "{%s}", kind->source);
    opts = *stkt_source(text);
    opts.name = *kind->member ? kind->member : NULL;
    assert_ok(stki_container_open(stkt_path(file), &opts, &container, &err));
    assert_ok(stki_container_find(container, &opts, &number, &err));
    member = &container->members[number];
    groups = member->groups ? member->groups : stki_file_format_named(container->ops->format)->groups;
    while (groups && *groups && *groups != group)
        groups++;
    found = groups && *groups;
    stki_container_release(container);
    return found;
}

/* `culprit`: the file that does not accept the option; NULL: all do, or there is no file. Returns whether the option
 * changed the result. */
static bool check(const struct kind *kind, const stki_option *row, bool taken, const char *culprit, int *wrong)
{
    char values[VALUES][64], key[64];
    uint64_t plain, hash;
    stk_error err;
    const stk_status usual = outcome(kind, "", &plain, &err);
    const int count = values_of(row, values);
    bool changes = false;

    if (usual != STK_END)
        fail_msg("%s %s: %s", title(kind), kind->member, err.message);
    snprintf(key, sizeof key, "%s: ", row->name);
    if (strstr(kind->source, key)) /* already given */
        return true;
    if (count == 0)
        fail_msg("%s: its row has no examples", row->name);
    for (int v = 0; v < count; v++) {
        char more[160];
        stk_status status;
        bool refused;

        snprintf(more, sizeof more, "%s: %s", row->name, values[v]);
        status = outcome(kind, more, &hash, &err);
        refused = status == STK_E_CONFIG && strstr(err.message, "does not accept this option");
        changes |= status != usual || hash != plain;
        /* of two shards, the first may reject the value before the other rejects the option */
        if (taken ? refused : !refused && !(kind->other && status != STK_END)) {
            print_message("%s %s {%s}: %s: %s\n", title(kind), kind->member, more, stk_status_name(status),
                          err.message);
            ++*wrong;
        }
        if (refused && (!strstr(err.message, row->name) || (culprit && !strstr(err.message, culprit)))) {
            print_message("the message does not name the option or the file: %s\n", err.message);
            ++*wrong;
        }
    }
    return changes;
}

static void every_pair(void **state)
{
    int wrong = 0;

    (void)state;
    for (int g = 0; stki_source_group_at(g); g++) {
        const stki_source_group *group = stki_source_group_at(g);

        for (int i = 0; i < group->table->count; i++) {
            const stki_option *row = &group->table->rows[i];
            int took = 0, changed = 0;

            for (int k = 0; k < KINDS; k++) {
                const struct kind *kind = &kinds[k];
                const bool first = takes(kind, kind->file, group);
                const bool second = kind->other ? takes(kind, kind->other, group) : true, taken = first && second;
                const bool changes = check(kind, row, taken,
                                           !first    ? kind->file
                                           : !second ? kind->other
                                                     : NULL,
                                           &wrong);

                took += taken;
                changed += taken && changes;
            }
            if (took == 0 || (changed == 0 && !is_unseen(row->name))) {
                print_message("%s: accepted by %d kinds of source, and changed none\n", row->name, took);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* Options that are applied above the formats are not ignored either. */
static void above_the_formats(void **state)
{
    int wrong = 0;

    (void)state;
    for (int i = 0; i < stki_source_table.count; i++) {
        const stki_option *row = &stki_source_table.rows[i];

        if (row->inner || row->alias_of)
            continue;
        for (int k = 0; k < KINDS; k++) {
            char values[VALUES][64], key[64];
            uint64_t plain, hash;
            stk_error err;
            const stk_status usual = outcome(&kinds[k], "", &plain, &err);
            bool seen = false;

            snprintf(key, sizeof key, "%s: ", row->name);
            if (strstr(kinds[k].source, key))
                continue;
            for (int v = values_of(row, values); v-- > 0 && !seen;) {
                char more[160];

                snprintf(more, sizeof more, "%s: %s", row->name, values[v]);
                seen = outcome(&kinds[k], more, &hash, &err) != usual || hash != plain;
            }
            if (!seen) {
                print_message("%s %s: no value of %s changes anything\n", title(&kinds[k]), kinds[k].member, row->name);
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
}

/* The format stated in the config is checked before any file is opened. */
static void stated_format(void **state)
{
    const stki_reader_opts *opts;
    stk_error err;

    (void)state;
    assert_status(stkt_source_try("{format: npy, delimiter: ';'}", &opts, &err), STK_E_CONFIG);
    assert_says("delimiter");
    assert_says("npy");
    assert_says("csv");
    assert_status(stkt_source_try("{format: csv, delimitr: ';'}", &opts, &err), STK_E_CONFIG);
    assert_says("did you mean delimiter");
}

/* If only other members of the file take an option, the error names them; otherwise it says how to make the member
 * accept it. */
static void members_that_do_not_accept_the_option(void **state)
{
    const struct kind text = {.file = "a.tar", .source = "name: txt, ", .rest = ""},
                      number = {.file = "a.csv", .source = "name: n, ", .rest = ""};
    uint64_t hash;
    stk_error err;

    (void)state;
    assert_status(outcome(&text, "color: gray", &hash, &err), STK_E_CONFIG);
    assert_says("color");
    assert_says("jpg");
    assert_status(outcome(&number, "color: gray", &hash, &err), STK_E_CONFIG);
    assert_says("color");
    assert_says("files");
}

/* An array of 4 x 3 f32 has 48 bytes. */
static void bytes_of_arrays(void **state)
{
    const struct kind arrays[] = {{.file = "a.tar", .source = "name: npy, ", .rest = ""},
                                  {.file = "a.npy", .source = "sample_per_file: true, ", .rest = ""},
                                  {.file = "arrays.csv", .source = "name: p, files: arrays, ", .rest = ""}};
    uint64_t plain, hash;
    stk_error err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_status(outcome(&arrays[i], "", &plain, &err), STK_END);
        assert_status(outcome(&arrays[i], "max_bytes: 48", &hash, &err), STK_END);
        assert_true(hash == plain);
        assert_status(outcome(&arrays[i], "max_bytes: 47", &hash, &err), STK_E_LIMIT);
        assert_says("48");
        assert_says("max_bytes");
        assert_says(i == 0 ? "a.tar" : "a.npy");
    }
}

/* Two groups with an option of the same name must give it the same meaning. */
static void names_are_unambiguous(void **state)
{
    (void)state;
    for (int g = 0; stki_source_group_at(g); g++)
        for (int h = 0; h < g; h++)
            for (int i = 0; i < stki_source_group_at(g)->table->count; i++) {
                const stki_option *row = &stki_source_group_at(g)->table->rows[i];
                const stki_option *other = stki_options_find(stki_source_group_at(h)->table, row->name);

                assert_true(!other || (other->type == row->type && other->words == row->words));
            }
}

/* ---- files ---- */

static void write_array(const char *file, const char *format, int level)
{
    static const float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t shape[1] = {3};
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *w;
    stk_error err;

    opts.level = level;
    assert_ok(stk_writer_create(stkt_path(file), format, &opts, &w, &err));
    assert_ok(stk_writer_begin(w, "a", STK_F32, 1, shape, -1, &err));
    assert_ok(stk_writer_append(w, numbers, 4, &err));
    assert_ok(stk_writer_end(w, &err));
    assert_ok(stk_writer_commit(w, &err));
}

/* Two samples with an image, a number and an array. */
static void write_beton(const stkt_bytes *image)
{
    enum { PAGE = 1 << 15, ROW = 32 }; /* the number is at 0, the array's pointer at 8, the image at 16 */
    static const char descr[] = "[[\"\", \"<f4\"]]";
    const int64_t shape[1] = {3};
    struct stkt_beton b;

    stkt_beton_begin(&b, 3, PAGE, 2, ROW);
    stkt_beton_field(&b, 0, STKI_BETON_INT, "number", 0, NULL, NULL);
    stkt_beton_field(&b, 1, STKI_BETON_NDARRAY, "array", 1, shape, descr);
    stkt_beton_field(&b, 2, STKI_BETON_IMAGE, "jpg", 0, NULL, NULL);
    for (int64_t i = 0; i < 2; i++) {
        const float numbers[3] = {1, 2, (float)i};
        const uint16_t size[2] = {34, 26};
        const uint64_t pointers[2] = {stkt_beton_region(&b, i, numbers, sizeof numbers),
                                      stkt_beton_region(&b, i, image->data, (int64_t)image->size)};
        unsigned char *row = stkt_beton_row(&b, i);

        memcpy(row, &i, 8);
        memcpy(row + 8, &pointers[0], 8);
        memcpy(row + 17, size, 4);
        memcpy(row + 21, &pointers[1], 8);
    }
    stkt_beton_write(&b, stkt_path("a.beton"));
    stkt_beton_free(&b);
}

/* The same ten tokens for llm.c, raw, and for Megatron as documents of 4 and 6. */
static void write_tokens(void)
{
    static const uint16_t tokens[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    static const int32_t head[256] = {20240520, 1, 10}, lengths[2] = {4, 6};
    static const int64_t counts[2] = {2, 3}, offsets[2] = {0, 8}, documents[3] = {0, 1, 2};
    const char *index = stkt_path("megatron.idx");

    stkt_write_file(stkt_path("llmc.bin"), head, sizeof head);
    stkt_append_file(stkt_path("llmc.bin"), tokens, sizeof tokens);
    stkt_write_file(stkt_path("tokens.raw"), tokens, sizeof tokens);
    stkt_write_file(stkt_path("megatron.bin"), tokens, sizeof tokens);
    stkt_write_file(index, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\10", 18); /* version 1, u16 */
    stkt_append_file(index, counts, sizeof counts);
    stkt_append_file(index, lengths, sizeof lengths);
    stkt_append_file(index, offsets, sizeof offsets);
    stkt_append_file(index, documents, sizeof documents);
}

static void put_file(struct stkt_tar *tar, const char *name, const char *file)
{
    unsigned char bytes[4096];
    FILE *from = fopen(stkt_path(file), "rb");

    if (!from)
        abort();
    stkt_tar_put(tar, '0', name, bytes, fread(bytes, 1, sizeof bytes, from));
    fclose(from);
}

static void make_files(void)
{
    static const char arrays[] = "p\na.npy\na.npz\n";
    static const char list[] = "pictures/c/a.jpg\t3\npictures/c/b.png\t5\n";
    static const char text[] = "one\ntwo--three\n\nfour\n", lines[] = "{\"text\": \"alpha\", \"title\": \"beta\"}\n";
    static const char table[] = "n,t,i,m\n1,alpha,pictures/c/a.jpg,4\n2,beta,pictures/c/b.png,\n";
    const stkt_png png = {.width = 9, .height = 7, .bits = 8, .type = 2, .orientation = 6};
    const stkt_jpeg jpeg = {.width = 34, .height = 26, .h = 2, .v = 2};
    stkt_bytes image = stkt_jpeg_make(&jpeg), other = stkt_png_make(&png);
    struct stkt_tar tar = {0};

    write_array("a.npy", "npy", 0);
    write_array("a.npz", "npz", 0);
    write_array("deflated.npz", "npz", 6);
    write_array("a.pt", "pt", 0);
    write_array("a.safetensors", "safetensors", 0);
    write_array("a.hdf5", "hdf5", 0);
    write_array("deflated.hdf5", "hdf5", 6);
    write_array("a.raw", "raw", 0);
    stkt_write_file(stkt_path("a.txt"), text, sizeof text - 1);
    stkt_write_file(stkt_path("a.jsonl"), lines, sizeof lines - 1);
    stkt_write_file(stkt_path("a.csv"), table, sizeof table - 1);
    stkt_write_file(stkt_path("arrays.csv"), arrays, sizeof arrays - 1);
    assert_int_equal(mkdir(stkt_path("pictures"), 0755), 0);
    assert_int_equal(mkdir(stkt_path("pictures/c"), 0755), 0);
    stkt_write_file(stkt_path("a.png"), other.data, other.size);
    stkt_write_file(stkt_path("pictures/c/b.png"), other.data, other.size);
    stkt_write_file(stkt_path("pictures/c/a.jpg"), image.data, image.size);
    stkt_write_file(stkt_path("a.jpg"), image.data, image.size);
    stkt_tar_file(&tar, "s.txt", "text");
    stkt_tar_put(&tar, '0', "s.jpg", image.data, image.size);
    stkt_tar_put(&tar, '0', "s.png", other.data, other.size);
    stkt_tar_file(&tar, "s.cls", "7");
    put_file(&tar, "s.npy", "a.npy");
    stkt_tar_write(&tar, stkt_path("a.tar"));
    stkt_write_file(stkt_path("a.lst"), list, sizeof list - 1);
    write_beton(&image);
    write_tokens();
    free(image.data), free(other.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair),      cmocka_unit_test(above_the_formats),
        cmocka_unit_test(stated_format),   cmocka_unit_test(members_that_do_not_accept_the_option),
        cmocka_unit_test(bytes_of_arrays), cmocka_unit_test(names_are_unambiguous)};

    make_files();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
