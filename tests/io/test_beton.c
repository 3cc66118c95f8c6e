/* stki-threads */
/* Tests of reading .beton files that are built byte by byte: entries of the allocation table in any order, faults in
 * single records, options, memory, and that opening changes nothing. Files written by FFCV are read by the oracle
 * driver. */
#include "allocate.h"
#include "beton.h"
#include "beton_build.h"
#include "faults.h"
#include "file.h"
#include "format.h"
#include "source_opts.h"
#include "stk_test.h"
#include "tensor_internal.h"
#include "thread.h"
#include <sys/wait.h>

enum { PAGE = 4096 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { PRIVATE_KIB = 1 << 20 }; /* sanitizers keep shadow memory for every byte that is read */
#else
enum { PRIVATE_KIB = 4096 }; /* one or two huge pages */
#endif

/* ---- opening and reading ---- */

static stk_status open_field(const char *path, const char *name, const stki_reader_opts *base, stki_reader **out,
                             stk_error *err)
{
    stki_reader_opts opts = base ? *base : (stki_reader_opts){0};
    stki_container *container;
    int64_t member;
    stk_status status;

    opts.name = name;
    opts.format = "beton";
    status = stki_container_open(path, &opts, &container, err);
    if (status)
        return status;
    status = stki_container_find(container, &opts, &member, err);
    if (!status)
        status = stki_container_reader(container, member, &opts, out, err);
    stki_container_release(container);
    return status;
}

/* A field of bytes: sample i consists of `i % 50 + 1` bytes of value i. */
static int64_t length_of(int64_t sample)
{
    return sample % 50 + 1;
}

static void put_bytes(struct stkt_beton *b, int64_t sample)
{
    char bytes[64];
    uint64_t size = (uint64_t)length_of(sample), pointer;

    memset(bytes, (int)sample, sizeof bytes);
    pointer = stkt_beton_region(b, sample, bytes, (int64_t)size);
    memcpy(stkt_beton_row(b, sample), &pointer, 8);
    memcpy(stkt_beton_row(b, sample) + 8, &size, 8);
}

/* `order` gives the number of the i-th sample to be written. */
static void write_bytes(const char *path, int64_t count, int64_t (*order)(int64_t i, int64_t count))
{
    struct stkt_beton b;

    stkt_beton_begin(&b, 1, PAGE, count, 16);
    stkt_beton_field(&b, 0, STKI_BETON_BYTES, "b", 0, NULL, NULL);
    for (int64_t i = 0; i < count; i++)
        put_bytes(&b, order(i, count));
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
}

static int64_t in_order(int64_t i, int64_t count)
{
    (void)count;
    return i;
}

static int64_t backwards(int64_t i, int64_t count)
{
    return count - 1 - i;
}

static void check_bytes(const stki_reader *reader, int64_t sample, stki_scratch *scratch)
{
    stk_tensor t;
    stk_error err;
    int64_t shape[1];

    assert_ok(reader->ops->shape(reader, sample, shape, &err));
    assert_ok(reader->ops->read(reader, sample, NULL, scratch, &t, &err));
    assert_int_equal(t.ndim, 1);
    assert_int_equal(t.shape[0], length_of(sample));
    assert_int_equal(shape[0], length_of(sample));
    assert_int_equal(t.dtype, STK_U8);
    assert_true(t.flags & STK_TENSOR_READONLY);
    for (int64_t i = 0; i < t.shape[0]; i++)
        assert_int_equal(((unsigned char *)t.data)[i], (unsigned char)sample);
    stki_reader_done(reader, &t);
}

static void check_all(const char *path, int64_t count)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    stki_scratch scratch;
    stk_error err;

    stki_scratch_init(&scratch);
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m], .pattern = STKI_PATTERN_RANDOM};
        stki_reader *reader;
        int64_t asked[] = {0, count - 1, count / 2};

        assert_ok(open_field(path, "b", &opts, &reader, &err));
        assert_int_equal(reader->count, count);
        assert_true(reader->variable);
        assert_int_equal(reader->shape[0], count < 50 ? count : 50);
        assert_string_equal(reader->access, m == 0 ? "mmap" : "pread");
        reader->ops->will_need(reader, asked, 3);
        for (int64_t i = 0; i < count; i++)
            check_bytes(reader, i, &scratch);
        stki_reader_destroy(reader);
    }
    stki_scratch_fini(&scratch);
}

static void test_regular(void **state)
{
    const char *path = stkt_path("regular.beton");

    (void)state;
    write_bytes(path, 1000, in_order);
    check_all(path, 1000);
}

static void test_runs(void **state)
{
    const char *path = stkt_path("backwards.beton");

    (void)state;
    write_bytes(path, 1000, backwards);
    check_all(path, 1000);
}

/* Two regions per sample whose entries are apart: all first regions, then all second ones. */
static void test_scattered(void **state)
{
    const char *path = stkt_path("scattered.beton");
    enum { COUNT = 300 };
    struct stkt_beton b;
    uint64_t pointer, size = 3;

    (void)state;
    stkt_beton_begin(&b, 2, PAGE, COUNT, 32);
    stkt_beton_field(&b, 0, STKI_BETON_BYTES, "other", 0, NULL, NULL);
    stkt_beton_field(&b, 1, STKI_BETON_BYTES, "b", 0, NULL, NULL);
    for (int64_t i = 0; i < COUNT; i++) {
        pointer = stkt_beton_region(&b, i, "abc", 3);
        memcpy(stkt_beton_row(&b, i), &pointer, 8);
        memcpy(stkt_beton_row(&b, i) + 8, &size, 8);
    }
    for (int64_t i = 0; i < COUNT; i++) {
        char bytes[64];

        memset(bytes, (int)i, sizeof bytes);
        size = (uint64_t)length_of(i);
        pointer = stkt_beton_region(&b, i, bytes, (int64_t)size);
        memcpy(stkt_beton_row(&b, i) + 16, &pointer, 8);
        memcpy(stkt_beton_row(&b, i) + 24, &size, 8);
    }
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
    check_all(path, COUNT);
}

/* The entry of an empty region may have the pointer of the next region; the larger size is the right one. */
static void test_shared_pointer(void **state)
{
    const char *path = stkt_path("shared.beton");
    stki_reader *reader;
    stki_scratch scratch;
    struct stkt_beton b;
    uint64_t pointer, zero = 0;
    stk_tensor t;
    stk_error err;

    (void)state;
    stkt_beton_begin(&b, 2, PAGE, 1, 32);
    stkt_beton_field(&b, 0, STKI_BETON_BYTES, "empty", 0, NULL, NULL);
    stkt_beton_field(&b, 1, STKI_BETON_JSON, "js", 0, NULL, NULL);
    pointer = stkt_beton_put(&b, "{}", 3);
    stkt_beton_entry(&b, 0, pointer, 3);
    stkt_beton_entry(&b, 0, pointer, 0);
    memcpy(stkt_beton_row(&b, 0), &(uint64_t){12345678901}, 8); /* must not be used */
    memcpy(stkt_beton_row(&b, 0) + 8, &zero, 8);
    memcpy(stkt_beton_row(&b, 0) + 16, &pointer, 8);
    memcpy(stkt_beton_row(&b, 0) + 24, &(uint64_t){3}, 8);
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
    stki_scratch_init(&scratch);
    assert_ok(open_field(path, "js", NULL, &reader, &err));
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &t, &err));
    assert_int_equal(t.shape[0], 3);
    assert_memory_equal(t.data, "{}", 3);
    stki_reader_destroy(reader);
    assert_ok(open_field(path, "empty", NULL, &reader, &err));
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &t, &err));
    assert_int_equal(t.shape[0], 0);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

/* ---- single bad records ---- */

/* Breaks sample 2 of five samples of bytes with `fault`. The error must name the sample, and the others must be
 * readable. */
static void check_fault(void (*fault)(struct stkt_beton *b), const char *says)
{
    const char *path = stkt_path("fault.beton");
    struct stkt_beton b;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;

    stkt_beton_begin(&b, 1, PAGE, 5, 16);
    stkt_beton_field(&b, 0, STKI_BETON_BYTES, "b", 0, NULL, NULL);
    for (int64_t i = 0; i < 5; i++)
        put_bytes(&b, i);
    fault(&b);
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
    stki_scratch_init(&scratch);
    assert_ok(open_field(path, "b", NULL, &reader, &err));
    assert_true(reader->shape[0] <= PAGE);
    for (int64_t i = 0; i < 5; i++) {
        if (i != 2) {
            check_bytes(reader, i, &scratch);
            continue;
        }
        assert_status(reader->ops->read(reader, i, NULL, &scratch, &t, &err), STK_E_CORRUPT);
        assert_int_equal(err.record, 2);
        assert_says("fault.beton: record 2: offset ");
        assert_says(says);
        assert_status(reader->ops->shape(reader, i, t.shape, &err), STK_E_CORRUPT);
    }
    assert_status(reader->ops->read(reader, 5, NULL, &scratch, &t, &err), STK_E_RANGE);
    assert_status(reader->ops->read(reader, -1, NULL, &scratch, &t, &err), STK_E_RANGE);
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void move_pointer(struct stkt_beton *b)
{
    stkt_beton_row(b, 2)[0] ^= 1;
}

static void take_other_samples(struct stkt_beton *b)
{
    memcpy(stkt_beton_row(b, 2), stkt_beton_row(b, 1), 16); /* a region of another sample */
}

static void longer(struct stkt_beton *b)
{
    stkt_beton_row(b, 2)[8]++;
}

static void shorter(struct stkt_beton *b)
{
    stkt_beton_row(b, 2)[8]--;
}

static void too_long(struct stkt_beton *b)
{
    memset(stkt_beton_row(b, 2) + 8, 0xff, 8);
}

static void beyond_page(struct stkt_beton *b)
{
    stkt_beton_row(b, 2)[10] = 1;
}

static void test_faults(void **state)
{
    (void)state;
    check_fault(move_pointer, "the region is not allocated to this sample: found pointer");
    check_fault(take_other_samples, "the region is not allocated to this sample: found pointer");
    check_fault(longer, "wrong region size: found 3 bytes allocated, expected 4");
    check_fault(shorter, "wrong region size: found 3 bytes allocated, expected 2");
    check_fault(too_long, "invalid size: found 18446744073709551615 bytes");
    check_fault(beyond_page, "at most one page (4096 bytes)");
}

/* An invalid table makes the fields that need it fail, and the error names the entry. Fields of numbers do not need
 * it. */
static void test_bad_table(void **state)
{
    static const struct {
        uint64_t entry[3];
        const char *says;
    } cases[] = {{{5, PAGE, 1}, "belongs to a sample that does not exist"},
                 {{UINT64_MAX, PAGE, 1}, "belongs to a sample that does not exist"},
                 {{1, 8, 1}, "is outside the pages"},
                 {{1, PAGE - 1, 1}, "is outside the pages"},
                 {{1, 2 * PAGE, 1}, "is outside the pages"},
                 {{1, UINT64_MAX, 2}, "is outside the pages"},
                 {{1, PAGE + 1, PAGE}, "is outside the pages"}};
    const char *path = stkt_path("table.beton");
    stk_error err;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stkt_beton b;
        stki_reader *reader;

        stkt_beton_begin(&b, 2, PAGE, 5, 24);
        stkt_beton_field(&b, 0, STKI_BETON_BYTES, "b", 0, NULL, NULL);
        stkt_beton_field(&b, 1, STKI_BETON_INT, "i", 0, NULL, NULL);
        for (int64_t k = 0; k < 5; k++)
            put_bytes(&b, k);
        stkt_beton_entry(&b, cases[i].entry[0], cases[i].entry[1], cases[i].entry[2]);
        stkt_beton_write(&b, path);
        stkt_beton_free(&b);
        assert_status(open_field(path, "b", NULL, &reader, &err), STK_E_CORRUPT);
        assert_says("allocation 5 ");
        assert_says(cases[i].says);
        assert_ok(open_field(path, "i", NULL, &reader, &err));
        stki_reader_destroy(reader);
    }
}

/* A region that crosses the end of its page, inside the file. */
static void test_crosses_page(void **state)
{
    const char *path = stkt_path("crosses.beton");
    char bytes[PAGE] = {0};
    struct stkt_beton b;
    stki_reader *reader;
    stk_error err;

    (void)state;
    stkt_beton_begin(&b, 1, PAGE, 5, 16);
    stkt_beton_field(&b, 0, STKI_BETON_BYTES, "b", 0, NULL, NULL);
    stkt_beton_put(&b, bytes, PAGE);
    stkt_beton_put(&b, bytes, PAGE);
    stkt_beton_entry(&b, 0, (uint64_t)b.data + PAGE - 1, 2);
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
    assert_status(open_field(path, "b", NULL, &reader, &err), STK_E_CORRUPT);
    assert_says("crosses a page");
}

/* ---- options and names ---- */

static void test_max_bytes(void **state)
{
    const char *path = stkt_path("limit.beton");
    stki_reader_opts opts = {.max_bytes = 20};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;

    (void)state;
    write_bytes(path, 100, in_order);
    stki_scratch_init(&scratch);
    assert_ok(open_field(path, "b", &opts, &reader, &err));
    assert_int_equal(reader->shape[0], 20);
    check_bytes(reader, 19, &scratch);
    assert_status(reader->ops->read(reader, 20, NULL, &scratch, &t, &err), STK_E_LIMIT);
    assert_says("found 21 bytes, expected at most 20 (max_bytes)");
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

static void write_two_ints(const char *path)
{
    struct stkt_beton b;

    stkt_beton_begin(&b, 2, PAGE, 3, 16);
    stkt_beton_field(&b, 0, STKI_BETON_INT, "same", 0, NULL, NULL);
    stkt_beton_field(&b, 1, STKI_BETON_INT, "same", 0, NULL, NULL);
    for (int64_t i = 0; i < 3; i++) {
        memcpy(stkt_beton_row(&b, i), &(int64_t){i}, 8);
        memcpy(stkt_beton_row(&b, i) + 8, &(int64_t){-i}, 8);
    }
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
}

/* Fields of numbers are strided views of the rows, so reading them needs no copy. */
static void test_numbers_in_place(void **state)
{
    const char *path = stkt_path("ints.beton");
    stki_reader *reader;
    stk_error err;

    (void)state;
    write_two_ints(path);
    assert_ok(open_field(path, "same#1", NULL, &reader, &err));
    assert_non_null(reader->base);
    assert_int_equal(reader->sample_stride, 16);
    assert_int_equal(reader->dtype, STK_I64);
    assert_int_equal(reader->ndim, 0);
    for (int64_t i = 0; i < 3; i++) {
        int64_t value;

        memcpy(&value, (const char *)reader->base + i * 16, 8);
        assert_int_equal(value, -i);
    }
    stki_reader_destroy(reader);
    assert_ok(open_field(path, "same", NULL, &reader, &err));
    stki_reader_destroy(reader);
    assert_status(open_field(path, "other", NULL, &reader, &err), STK_E_NOT_FOUND);
    assert_says("same#1");
    assert_status(open_field(path, "same", &(stki_reader_opts){.alias_dtype = STK_F32}, &reader, &err), STK_E_MISMATCH);
}

/* bfloat16 is stored as bits in integers; the user names the dtype. */
static void test_alias(void **state)
{
    const char *path = stkt_path("alias.beton");
    int64_t shape[1] = {2};
    uint16_t bits[2] = {0x3f80, 0x4000};
    struct stkt_beton b;
    uint64_t pointer;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;

    (void)state;
    stkt_beton_begin(&b, 1, PAGE, 1, 8);
    stkt_beton_field(&b, 0, STKI_BETON_NDARRAY, "a", 1, shape, "[[\"\", \"<u2\"]]");
    pointer = stkt_beton_region(&b, 0, bits, 4);
    memcpy(stkt_beton_row(&b, 0), &pointer, 8);
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
    stki_scratch_init(&scratch);
    assert_ok(open_field(path, "a", &(stki_reader_opts){.alias_dtype = STK_BF16}, &reader, &err));
    assert_false(reader->variable);
    assert_int_equal(reader->max_bytes, 4);
    assert_ok(reader->ops->read(reader, 0, NULL, &scratch, &t, &err));
    assert_int_equal(t.dtype, STK_BF16);
    assert_memory_equal(t.data, bits, 4);
    stki_reader_destroy(reader);
    assert_status(open_field(path, "a", &(stki_reader_opts){.alias_dtype = STK_F32}, &reader, &err), STK_E_MISMATCH);
    stki_scratch_fini(&scratch);
}

static void write_images(const char *path, int64_t count, bool one_size)
{
    static const unsigned char pixels[3 * 8 * 8];
    struct stkt_beton b;

    stkt_beton_begin(&b, 1, PAGE, count, 13);
    stkt_beton_field(&b, 0, STKI_BETON_IMAGE, "image", 0, NULL, NULL);
    for (int64_t i = 0; i < count; i++) {
        uint16_t width = (uint16_t)(one_size ? 5 : 1 + i % 8), height = (uint16_t)(one_size ? 4 : 1 + i % 3);
        uint64_t pointer = stkt_beton_region(&b, i, pixels, (int64_t)width * height * 3);
        unsigned char *row = stkt_beton_row(&b, i);

        row[0] = STKI_BETON_RAW;
        memcpy(row + 1, &width, 2);
        memcpy(row + 3, &height, 2);
        memcpy(row + 5, &pointer, 8);
    }
    stkt_beton_write(&b, path);
    stkt_beton_free(&b);
}

static void test_image_shapes(void **state)
{
    const char *path = stkt_path("images.beton");
    stki_reader *reader;
    int64_t shape[3];
    stk_error err;

    (void)state;
    write_images(path, 50, true);
    assert_ok(open_field(path, "image", NULL, &reader, &err));
    assert_false(reader->variable);
    assert_false(reader->copies);
    assert_null(reader->ops->shape);
    assert_int_equal(reader->shape[0], 4);
    assert_int_equal(reader->shape[1], 5);
    assert_int_equal(reader->shape[2], 3);
    stki_reader_destroy(reader);
    write_images(path, 50, false);
    assert_ok(open_field(path, "image", NULL, &reader, &err));
    assert_true(reader->variable);
    assert_int_equal(reader->shape[0], 3);
    assert_int_equal(reader->shape[1], 8);
    assert_int_equal(reader->max_bytes, 72);
    assert_ok(reader->ops->shape(reader, 9, shape, &err));
    assert_int_equal(shape[0], 1);
    assert_int_equal(shape[1], 2);
    stki_reader_destroy(reader);
    assert_status(open_field(path, "image", stkt_source("{color: gray}"), &reader, &err), STK_E_UNSUPPORTED);
    assert_says("raw RGB images");
}

/* The units of `order: block` are pages; 68 images of 60 bytes fit in one. */
static void test_units(void **state)
{
    const char *path = stkt_path("units.beton");
    stki_reader *reader;
    stk_error err;

    (void)state;
    write_images(path, 200, true);
    assert_ok(open_field(path, "image", NULL, &reader, &err));
    assert_int_equal(reader->unit_count, 3);
    assert_int_equal(reader->unit_first[0], 0);
    assert_int_equal(reader->unit_first[1], 68);
    assert_int_equal(reader->unit_first[2], 136);
    assert_int_equal(reader->unit_first[3], 200);
    stki_reader_destroy(reader);
}

/* ---- costs and side effects of opening ---- */

/* Row F09: a file without write permission can be opened and is left unchanged, even if it is mapped. */
static void test_f09_left_alone(void **state)
{
    const char *path = stkt_path("readonly.beton");
    struct stat before, after;
    FILE *maps;
    char line[512];
    int found = 0;
    stki_reader *reader;
    stk_error err;

    (void)state;
    write_bytes(path, 1000, in_order);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(stat(path, &before), 0);
    assert_ok(open_field(path, "b", NULL, &reader, &err));
    maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "readonly.beton")) {
            assert_non_null(strstr(line, " r--s "));
            found++;
        }
    fclose(maps);
    assert_true(found > 0);
    check_bytes(reader, 999, &(stki_scratch){0});
    stki_reader_destroy(reader);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim);
}

static int64_t memory_of_open(const char *path)
{
    stki_memory_stats before, opened;
    stki_reader *reader;
    stk_error err;

    stki_memory_read(STKI_MEM_HOST, &before);
    assert_ok(open_field(path, "b", NULL, &reader, &err));
    stki_memory_read(STKI_MEM_HOST, &opened);
    stki_reader_destroy(reader);
    return opened.bytes - before.bytes;
}

/* Rows F09 and F13: if samples are in order, memory does not grow with their number; otherwise it grows by 4 bytes per
 * sample. */
static void test_f13_memory(void **state)
{
    const char *path = stkt_path("memory.beton");
    int64_t small, large;

    (void)state;
    write_bytes(path, 1000, in_order);
    small = memory_of_open(path);
    write_bytes(path, 100000, in_order);
    large = memory_of_open(path);
    assert_true(large - small < 20000); /* 8 bytes per page, for the units of `order: block` */
    write_bytes(path, 100000, backwards);
    assert_true(memory_of_open(path) - large < 100000 * 4 + 300000);
}

static long private_kib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long total = -1, one;

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Private_Dirty: %ld", &one) == 1)
            total = one;
    if (file)
        fclose(file);
    return total;
}

/* Row F13: four processes that read the whole file share its pages; a reader opened before a fork works in the
 * child. */
static void test_f13_processes(void **state)
{
    const char *path = stkt_path("ranks.beton");
    enum { COUNT = 200000 };
    stki_reader *reader;
    stk_error err;
    pid_t children[4];

    (void)state;
    write_bytes(path, COUNT, in_order);
    assert_ok(open_field(path, "b", &(stki_reader_opts){.access = STKI_ACCESS_AUTO}, &reader, &err));
    for (int c = 0; c < 4; c++) {
        children[c] = fork();
        if (children[c] == 0) {
            long before = private_kib();
            stki_reader *own;
            stk_tensor t;
            int64_t sum = 0;

            if (open_field(path, "b", NULL, &own, &err))
                _exit(1);
            for (int64_t i = 0; i < COUNT; i++) {
                if (own->ops->read(i % 2 ? own : reader, i, NULL, NULL, &t, &err) || t.shape[0] != length_of(i))
                    _exit(2);
                sum += *(unsigned char *)t.data;
            }
            if (sum == 0 || (before >= 0 && private_kib() - before > PRIVATE_KIB)) /* of 15 MiB */
                _exit(3);
            _exit(0);
        }
    }
    for (int c = 0; c < 4; c++) {
        int status;

        assert_int_equal(waitpid(children[c], &status, 0), children[c]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    stki_reader_destroy(reader);
}

/* Each allocation fails in turn: the result is an error, nothing leaks, and the next attempt works. */
static void test_no_memory(void **state)
{
    const char *path = stkt_path("nomemory.beton");
    stki_memory_stats before, after;
    stki_reader *reader;
    stk_error err;
    int64_t n;

    (void)state;
    write_bytes(path, 300, backwards);
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1;; n++) {
        stki_scratch scratch;
        stk_tensor t;
        stk_status status;

        stki_scratch_init(&scratch);
        stki_memory_fail_at(n);
        status = open_field(path, "b", &(stki_reader_opts){.access = STKI_ACCESS_PREAD}, &reader, &err);
        if (!status) {
            status = reader->ops->read(reader, 7, NULL, &scratch, &t, &err);
            stki_reader_destroy(reader);
        }
        stki_scratch_fini(&scratch);
        if (!status)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(before.blocks, after.blocks);
    }
    stki_memory_fail_at(0);
    assert_true(n > 8);
}

static void test_reads_fail(void **state)
{
    const char *path = stkt_path("io.beton");
    stki_reader_opts opts = {.access = STKI_ACCESS_PREAD};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;
    stk_error err;

    (void)state;
    write_bytes(path, 100, in_order);
    for (int64_t n = 1; n < 6; n++) {
        stkt_fail_read(n, EIO);
        assert_status(open_field(path, "b", &opts, &reader, &err), STK_E_IO);
        assert_says("io.beton");
    }
    stkt_fail_read(0, 0);
    stkt_short_reads(7);
    stki_scratch_init(&scratch);
    assert_ok(open_field(path, "b", &opts, &reader, &err));
    for (int64_t i = 0; i < 100; i++)
        check_bytes(reader, i, &scratch);
    stkt_short_reads(0);
    for (int64_t n = 1; n <= 3; n++) { /* the row, the entry, the bytes */
        stkt_fail_read(n, EIO);
        assert_status(reader->ops->read(reader, 9, NULL, &scratch, &t, &err), STK_E_IO);
        assert_int_equal(err.record, 9);
    }
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

/* ---- threads ---- */

struct many {
    const stki_container *container;
    int64_t member;
    stki_counter *wrong;
};

static void open_and_read(void *context)
{
    const struct many *many = context;
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor t;

    stki_scratch_init(&scratch);
    if (stki_container_reader(many->container, many->member, NULL, &reader, NULL)) {
        stki_count(many->wrong, 1);
        return;
    }
    for (int64_t i = 0; i < reader->count; i++)
        if (reader->ops->read(reader, i, NULL, &scratch, &t, NULL) || t.shape[0] != length_of(i) ||
            *(unsigned char *)t.data != (unsigned char)i)
            stki_count(many->wrong, 1);
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
}

/* The table is built by the first thread that needs it. */
static void test_threads(void **state)
{
    const char *path = stkt_path("threads.beton");
    stki_counter wrong;
    stki_thread *threads[4];
    struct many many = {.wrong = &wrong};
    stki_container *container;
    stk_error err;

    (void)state;
    stki_count_set(&wrong, 0);
    write_bytes(path, 3000, backwards);
    assert_ok(stki_container_open(path, &(stki_reader_opts){.format = "beton"}, &container, &err));
    many.container = container;
    for (int i = 0; i < 4; i++)
        assert_ok(stki_thread_start(&threads[i], "read", open_and_read, &many, &err));
    for (int i = 0; i < 4; i++)
        assert_true(stki_thread_join(threads[i], INT64_MAX));
    assert_int_equal(stki_counted(&wrong), 0);
    stki_container_release(container);
}

/* ---- recognition ---- */

static void test_matches(void **state)
{
    const char *path = stkt_path("noname");
    stki_container *container;
    char head[STKI_BETON_HEADER + 2] = {2, 0, 1};
    stk_error err;

    (void)state;
    write_bytes(path, 10, in_order);
    assert_ok(stki_container_open(path, NULL, &container, &err)); /* recognized by its content */
    assert_string_equal(container->ops->format, "beton");
    assert_int_equal(container->member_count, 1);
    assert_int_equal(container->members[0].count, 10);
    stki_container_release(container);
    assert_false(stki_beton_matches(head, sizeof head)); /* a page size of 0 */
    head[5] = 0x10;
    assert_false(stki_beton_matches(head, sizeof head)); /* no name */
    head[STKI_BETON_HEADER + 1] = 'x';
    assert_true(stki_beton_matches(head, sizeof head));
    assert_false(stki_beton_matches(head, sizeof head - 1));
    head[STKI_BETON_HEADER] = 9;
    assert_false(stki_beton_matches(head, sizeof head));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regular),        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_scattered),      cmocka_unit_test(test_shared_pointer),
        cmocka_unit_test(test_faults),         cmocka_unit_test(test_bad_table),
        cmocka_unit_test(test_crosses_page),   cmocka_unit_test(test_max_bytes),
        cmocka_unit_test(test_alias),          cmocka_unit_test(test_numbers_in_place),
        cmocka_unit_test(test_image_shapes),   cmocka_unit_test(test_units),
        cmocka_unit_test(test_f09_left_alone), cmocka_unit_test(test_f13_memory),
        cmocka_unit_test(test_f13_processes),  cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_reads_fail),     cmocka_unit_test(test_threads),
        cmocka_unit_test(test_matches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
