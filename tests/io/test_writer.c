/* Tests of writing arrays in every format and reading them back: all dtypes, streams of unknown length, strides, and
 * failures of memory and disk. tests/data/written has the files that this program writes; check_written.py there reads
 * them with the original libraries. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "output.h"
#include "spill.h"
#include "stk_test.h"
#include "writer.h"
#include "writers.h"
#include <dirent.h>
#include <errno.h>
#include <stoker/dataset.h>

static stk_error err;

static const char *const formats[] = {"npz", "pt", "safetensors"};
enum { FORMATS = 3 };

static const char *named(char *buffer, const char *format)
{
    snprintf(buffer, 300, "%s", stkt_path("written."));
    return strcat(buffer, format);
}

/* The number of files in the program's directory. */
static int file_count(void)
{
    DIR *handle = opendir(stkt_path(""));
    struct dirent *entry;
    int count = 0;

    assert_non_null(handle);
    while ((entry = readdir(handle)))
        count += entry->d_name[0] != '.';
    closedir(handle);
    return count;
}

static void open_file(const char *path, stki_container **out)
{
    stki_reader_opts opts = {.verify = true};

    assert_ok(stki_container_open(path, &opts, out, &err));
}

static void read_array(const stki_container *c, const char *name, stk_dtype alias, stk_tensor *out)
{
    stki_reader_opts opts = {.name = name, .alias_dtype = alias, .verify = true};
    stki_array array;
    int64_t member;

    assert_ok(stki_container_find(c, &opts, &member, &err));
    assert_ok(stki_container_array(c, member, &opts, &array, &err));
    assert_ok(stki_array_tensor(&array, c->path, out, &err));
    stki_array_release(&array);
}

static void expect_bytes(const stk_tensor *t, const void *bytes, size_t count)
{
    stk_tensor dense;

    assert_int_equal(stk_tensor_nbytes(t), count);
    assert_ok(stk_tensor_clone(t, &dense, &err));
    if (count)
        assert_memory_equal(dense.data, bytes, count);
    stk_tensor_release(&dense);
}

/* ---- reading back ---- */

static bool holds(int format, int dtype)
{
    return format != 2 || dtype != STK_C128;
}

static void test_every_dtype(void **state)
{
    char path[300], name[40];
    unsigned char bytes[16 * 12];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 1);
    for (int f = 0; f < FORMATS; f++) {
        stki_writer_opts opts = {.alias = true};
        stki_container *c;
        stki_writer *w;

        assert_ok(stki_writer_create(named(path, formats[f]), NULL, &opts, &w, &err));
        assert_string_equal(w->ops->format, formats[f]);
        for (int d = 1; d < STK_DTYPE_END; d++) {
            int64_t shape[2] = {3, 4};
            unsigned char truth[12];
            stk_tensor t;

            for (int i = 0; i < 12; i++)
                truth[i] = i % 3 == 0;
            snprintf(name, sizeof name, "of %s", stk_dtype_name((stk_dtype)d));
            if (!holds(f, d))
                continue;
            assert_ok(stk_tensor_borrow(d == STK_BOOL ? truth : bytes, (stk_dtype)d, 2, shape, NULL, &t, &err));
            assert_ok(stki_writer_add(w, name, &t, &err));
        }
        assert_ok(stki_writer_commit(w, &err));
        for (int d = 1; d < STK_DTYPE_END; d++) {
            bool alias = f == 0 && (d == STK_BF16 || d == STK_F8_E4M3FN || d == STK_F8_E5M2);
            stki_reader_opts opening = {.verify = true, .alias_dtype = alias ? (stk_dtype)d : STK_DTYPE_NONE};
            stk_tensor t;

            if (!holds(f, d))
                continue;
            assert_ok(stki_container_open(path, &opening, &c, &err));
            assert_int_equal(c->member_count, STK_DTYPE_END - 1 - (f == 2));
            snprintf(name, sizeof name, "of %s", stk_dtype_name((stk_dtype)d));
            read_array(c, name, opening.alias_dtype, &t);
            assert_int_equal(t.dtype, d);
            assert_int_equal(t.ndim, 2);
            assert_int_equal(t.shape[1], 4);
            assert_int_equal(stk_tensor_alignment(&t) % stk_dtype_size(t.dtype), 0);
            if (d != STK_BOOL)
                expect_bytes(&t, bytes, 12 * (size_t)stk_dtype_size((stk_dtype)d));
            stk_tensor_release(&t);
            stki_container_release(c);
        }
        assert_int_equal(unlink(path), 0);
    }
}

/* Rows that are appended one by one, their number known only at the end; single numbers; no rows. */
static void write_stream(stki_writer *w, int rows)
{
    static const int64_t shape[1] = {2};
    int16_t row[2];
    double one = 2.5;

    assert_ok(stki_writer_begin(w, "stream", STK_I16, 1, shape, -1, &err));
    for (int i = 0; i < rows; i++) {
        row[0] = (int16_t)i;
        row[1] = (int16_t)-i;
        assert_ok(stki_writer_append(w, row, 1, &err));
        assert_ok(stki_writer_append(w, row, 0, &err));
    }
    assert_ok(stki_writer_end(w, &err));
    assert_ok(stki_writer_begin(w, "number", STK_F64, -1, NULL, 1, &err));
    assert_ok(stki_writer_append(w, &one, 1, &err));
    assert_ok(stki_writer_end(w, &err));
    assert_ok(stki_writer_begin(w, "none", STK_F32, 1, shape, 0, &err));
    assert_ok(stki_writer_end(w, &err));
}

static void check_stream(const char *path, int rows)
{
    double one = 2.5;
    stki_container *c;
    stk_tensor t;

    open_file(path, &c);
    assert_int_equal(c->member_count, 3);
    read_array(c, "stream", STK_DTYPE_NONE, &t);
    assert_int_equal(t.ndim, 2);
    assert_int_equal(t.shape[0], rows);
    for (int i = 0; i < rows; i++) {
        int16_t row[2];

        memcpy(row, (char *)t.data + i * t.strides[0], sizeof row);
        assert_int_equal(row[0], (int16_t)i);
        assert_int_equal(row[1], (int16_t)-i);
    }
    stk_tensor_release(&t);
    read_array(c, "number", STK_DTYPE_NONE, &t);
    assert_int_equal(t.ndim, 0);
    expect_bytes(&t, &one, sizeof one);
    stk_tensor_release(&t);
    read_array(c, "none", STK_DTYPE_NONE, &t);
    assert_int_equal(t.ndim, 2);
    assert_int_equal(t.shape[0], 0);
    stk_tensor_release(&t);
    stki_container_release(c);
}

static void test_streams(void **state)
{
    char path[300];

    (void)state;
    for (int f = 0; f < FORMATS; f++)
        for (int rows = 0; rows <= 200000; rows = rows ? rows * 40 : 5000) {
            stki_writer *w;

            assert_ok(stki_writer_create(named(path, formats[f]), NULL, NULL, &w, &err));
            write_stream(w, rows);
            assert_int_equal(stkt_file_bytes(path), rows ? stkt_file_bytes(path) : -1);
            assert_ok(stki_writer_commit(w, &err));
            check_stream(path, rows);
            assert_int_equal(unlink(path), 0);
            assert_int_equal(file_count(), 0);
        }
}

static void test_deflated(void **state)
{
    char path[300];

    (void)state;
    for (int level = 1; level <= 9; level += 4) {
        stki_writer_opts opts = {.level = level};
        stki_container *c;
        stki_writer *w;

        assert_ok(stki_writer_create(named(path, "npz"), NULL, &opts, &w, &err));
        write_stream(w, 100000);
        assert_ok(stki_writer_commit(w, &err));
        assert_true(stkt_file_bytes(path) < 390000);
        check_stream(path, 100000);
        open_file(path, &c);
        assert_string_equal(c->members[0].layout, "deflated");
        stki_container_release(c);
        assert_int_equal(unlink(path), 0);
    }
}

/* Any strides, the other byte order, and bools other than 0 and 1. */
static void test_views(void **state)
{
    int32_t numbers[24];
    unsigned char odd[3] = {0, 7, 1}, truth[3] = {0, 1, 1};
    int64_t shape[3] = {2, 3, 4}, three = 3;
    int dims[3] = {2, 0, 1};
    char path[300];

    (void)state;
    for (int i = 0; i < 24; i++)
        numbers[i] = i * 1000003;
    for (int f = 0; f < FORMATS; f++) {
        stk_tensor t, view, swapped, bools, back;
        stki_container *c;
        stki_writer *w;

        assert_ok(stk_tensor_borrow(numbers, STK_I32, 3, shape, NULL, &t, &err));
        assert_ok(stk_tensor_permute(&t, dims, &view, &err));
        swapped = t;
        swapped.flags |= STK_TENSOR_SWAPPED;
        assert_ok(stk_tensor_borrow(odd, STK_BOOL, 1, &three, NULL, &bools, &err));
        assert_ok(stki_writer_create(named(path, formats[f]), NULL, NULL, &w, &err));
        assert_ok(stki_writer_add(w, "view", &view, &err));
        assert_ok(stki_writer_add(w, "swapped", &swapped, &err));
        assert_ok(stki_writer_add(w, "bools", &bools, &err));
        assert_ok(stki_writer_commit(w, &err));
        open_file(path, &c);
        read_array(c, "view", STK_DTYPE_NONE, &back);
        assert_true(stk_tensor_is_contiguous(&back));
        for (int i = 0; i < 24; i++) {
            int32_t number;
            memcpy(&number, (char *)back.data + 4 * i, 4);
            assert_int_equal(number, numbers[(i / 6) + 4 * (i % 6)]);
        }
        stk_tensor_release(&back);
        read_array(c, "swapped", STK_DTYPE_NONE, &back);
        for (int i = 0; i < 24; i++) {
            uint32_t number;
            memcpy(&number, (char *)back.data + 4 * i, 4);
            assert_int_equal(__builtin_bswap32(number), (uint32_t)numbers[i]);
        }
        stk_tensor_release(&back);
        read_array(c, "bools", STK_DTYPE_NONE, &back);
        assert_memory_equal(back.data, truth, 3);
        stk_tensor_release(&back);
        stki_container_release(c);
        assert_int_equal(unlink(path), 0);
    }
}

/* Stored data begins at multiples of 64, so that mapped arrays are aligned. safetensors allows no gaps, so there only
 * the first one does. */
static void test_alignment(void **state)
{
    char path[300];

    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        stki_container *c;
        stki_writer *w;

        assert_ok(stki_writer_create(named(path, formats[f]), NULL, NULL, &w, &err));
        for (char name[2] = "a"; name[0] <= 'z'; name[0]++) {
            assert_ok(stki_writer_begin(w, name, STK_U8, 0, NULL, -1, &err));
            assert_ok(stki_writer_append(w, "0123456789abcdefghijklmnopqrstuvwxyz", name[0] - 'a', &err));
            assert_ok(stki_writer_end(w, &err));
        }
        assert_ok(stki_writer_commit(w, &err));
        open_file(path, &c);
        assert_int_equal(c->member_count, 26);
        for (int i = 0; i < (f == 2 ? 1 : 26); i++)
            assert_int_equal(c->members[i].offset % 64, 0);
        stki_container_release(c);
        assert_int_equal(unlink(path), 0);
    }
}

/* More members than the 16-bit count of the plain end record can hold. */
static void test_many_members(void **state)
{
    char path[300], name[16];
    stki_container *c;
    stki_writer *w;
    stk_tensor t;

    (void)state;
    assert_ok(stki_writer_create(named(path, "npz"), NULL, NULL, &w, &err));
    for (int i = 0; i < 66000; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_ok(stki_writer_begin(w, name, STK_I32, -1, NULL, 1, &err));
        assert_ok(stki_writer_append(w, &i, 1, &err));
        assert_ok(stki_writer_end(w, &err));
    }
    assert_ok(stki_writer_commit(w, &err));
    open_file(path, &c);
    assert_int_equal(c->member_count, 66000);
    read_array(c, "n65999", STK_DTYPE_NONE, &t);
    assert_int_equal(*(int32_t *)t.data, 65999);
    stk_tensor_release(&t);
    stki_container_release(c);
    assert_int_equal(unlink(path), 0);
}

/* ---- the same bytes as in tests/data/written ---- */

static void write_golden(const char *path, const stki_writer_opts *opts)
{
    float images[2 * 3 * 4];
    int64_t labels[2] = {-5, INT64_C(1) << 40}, image_shape[3] = {2, 3, 4}, two = 2;
    uint16_t wide[2] = {1, 65535}, half[2] = {0x3F80, 0xC049};
    unsigned char flags[2] = {1, 0};
    stk_tensor t;
    stki_writer *w;

    for (int i = 0; i < 24; i++)
        images[i] = (float)i / 7;
    assert_ok(stki_writer_create(path, NULL, opts, &w, &err));
    assert_ok(stk_tensor_borrow(images, STK_F32, 3, image_shape, NULL, &t, &err));
    assert_ok(stki_writer_add(w, "train/images", &t, &err));
    assert_ok(stk_tensor_borrow(labels, STK_I64, 1, &two, NULL, &t, &err));
    assert_ok(stki_writer_add(w, "labels", &t, &err));
    assert_ok(stk_tensor_borrow(wide, STK_U16, 1, &two, NULL, &t, &err));
    assert_ok(stki_writer_add(w, "gr\303\266\303\237e", &t, &err));
    assert_ok(stk_tensor_borrow(flags, STK_BOOL, 1, &two, NULL, &t, &err));
    assert_ok(stki_writer_add(w, "flags", &t, &err));
    if (strcmp(w->ops->format, "npz") != 0) {
        assert_ok(stk_tensor_borrow(half, STK_BF16, 1, &two, NULL, &t, &err));
        assert_ok(stki_writer_add(w, "half", &t, &err));
    }
    assert_ok(stki_writer_begin(w, "none", STK_F32, 1, &two, 0, &err));
    assert_ok(stki_writer_end(w, &err));
    assert_ok(stki_writer_begin(w, "number", STK_F64, -1, NULL, 1, &err));
    assert_ok(stki_writer_append(w, &(double){0.1}, 1, &err));
    assert_ok(stki_writer_end(w, &err));
    assert_ok(stki_writer_commit(w, &err));
}

static void same_file(const char *found, const char *expected)
{
    int64_t bytes = stkt_file_bytes(expected);
    char *a = malloc((size_t)bytes + 1), *b = malloc((size_t)bytes + 1);
    FILE *file;

    assert_true(bytes > 0);
    assert_int_equal(stkt_file_bytes(found), bytes);
    file = fopen(found, "rb");
    assert_int_equal(fread(a, 1, (size_t)bytes, file), bytes);
    fclose(file);
    file = fopen(expected, "rb");
    assert_int_equal(fread(b, 1, (size_t)bytes, file), bytes);
    fclose(file);
    assert_memory_equal(a, b, (size_t)bytes);
    free(a);
    free(b);
}

static void test_golden(void **state)
{
    char path[300], golden[400];

    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        write_golden(named(path, formats[f]), NULL);
        snprintf(golden, sizeof golden, "%s/data/written/arrays.%s", STKT_TESTS_DIR, formats[f]);
        if (getenv("STKT_WRITE_GOLDEN")) /* then run check_written.py */
            assert_int_equal(rename(path, golden), 0);
        else
            same_file(path, golden);
        unlink(path);
    }
}

/* ---- wrong calls ---- */

static void test_wrong_calls(void **state)
{
    char path[300];
    stki_writer *w;

    (void)state;
    assert_status(stki_writer_create(stkt_path("x.zip"), NULL, NULL, &w, &err), STK_E_UNSUPPORTED);
    assert_says("npz");
    assert_status(stki_writer_create(stkt_path("x.npz"), "tar", NULL, &w, &err), STK_E_UNSUPPORTED);
    assert_status(stki_writer_create(stkt_path("x.npz"), NULL, &(stki_writer_opts){.level = 10}, &w, &err),
                  STK_E_BAD_ARG);
    assert_status(stki_writer_create(stkt_path("x.pt"), NULL, &(stki_writer_opts){.level = 1}, &w, &err),
                  STK_E_UNSUPPORTED);
    assert_status(stki_writer_create(stkt_path("none/x.npz"), NULL, NULL, &w, &err), STK_E_NOT_FOUND);
    assert_int_equal(file_count(), 0);
    for (int f = 0; f < FORMATS; f++) {
        named(path, formats[f]);
        assert_ok(stki_writer_create(path, NULL, NULL, &w, &err));
        assert_ok(stki_writer_begin(w, "a", STK_U8, 0, NULL, 3, &err));
        assert_status(stki_writer_end(w, &err), STK_E_BAD_SHAPE);
        /* an earlier call failed */
        assert_status(stki_writer_begin(w, "b", STK_U8, 0, NULL, 3, &err), STK_E_BAD_SHAPE);
        assert_status(stki_writer_commit(w, &err), STK_E_BAD_SHAPE);
        assert_int_equal(file_count(), 0);
    }
    stki_writer_abort(NULL);
    assert_ok(stki_writer_create(named(path, "npy"), NULL, NULL, &w, &err));
    assert_ok(stki_writer_begin(w, "a", STK_U8, 0, NULL, -1, &err));
    assert_ok(stki_writer_end(w, &err));
    assert_status(stki_writer_begin(w, "b", STK_U8, 0, NULL, -1, &err), STK_E_UNSUPPORTED);
    stki_writer_abort(w);
    assert_status(stki_writer_create(named(path, "npz"), NULL, NULL, &w, &err), STK_OK);
    assert_status(stki_writer_begin(w, "a", STK_BF16, 0, NULL, -1, &err), STK_E_UNSUPPORTED);
    assert_says("bfloat16");
    stki_writer_abort(w);
    assert_int_equal(file_count(), 0);
}

/* Row T08: a header of more than 100 MB, which no reader accepts, is not written. */
static void test_header_limit(void **state)
{
    enum { LONG = 100000000 };
    char path[300], *name = malloc(LONG + 1);

    (void)state;
    assert_non_null(name);
    memset(name, 'n', LONG);
    name[LONG] = '\0';
    for (int is_short = 0; is_short < 2; is_short++) {
        stki_writer *w;

        name[LONG - 1000 * is_short] = '\0';
        assert_ok(stki_writer_create(named(path, "safetensors"), NULL, NULL, &w, &err));
        assert_ok(stki_writer_begin(w, name, STK_U8, 0, NULL, 1, &err));
        assert_ok(stki_writer_append(w, "x", 1, &err));
        assert_ok(stki_writer_end(w, &err));
        assert_status(stki_writer_commit(w, &err), is_short ? STK_OK : STK_E_LIMIT);
        assert_int_equal(file_count(), is_short);
    }
    assert_int_equal(unlink(path), 0);
    free(name);
}

/* ---- memory and disk ---- */

static char big[700000];

static stk_status write_some(const char *path, const stki_writer_opts *opts)
{
    stki_writer *w;
    stk_status status = stki_writer_create(path, NULL, opts, &w, &err);

    for (int i = 0; i < 2 && !status; i++) {
        status = stki_writer_begin(w, i ? "b" : "a", STK_U8, 0, NULL, -1, &err);
        if (!status)
            status = stki_writer_append(w, big, sizeof big, &err);
        if (!status)
            status = stki_writer_append(w, big, 10, &err);
        if (!status)
            status = stki_writer_end(w, &err);
        if (status) {
            stk_error first = err;

            assert_int_equal(stki_writer_commit(w, &err), status == STK_E_BAD_ARG ? STK_E_BAD_ARG : err.status);
            assert_true(err.status < 0);
            err = first;
            return status;
        }
    }
    return status ? status : stki_writer_commit(w, &err);
}

static void fail_everything(const char *path, const stki_writer_opts *opts)
{
    stki_memory_stats before, after;
    int failures = 0;

    stki_memory_read(STKI_MEM_HOST, &before);
    for (int n = 1; n < 100; n++) {
        stki_memory_fail_at(n);
        if (!write_some(path, opts))
            assert_int_equal(unlink(path), 0);
        else
            failures++;
        assert_int_equal(file_count(), 0);
    }
    stki_memory_fail_at(0);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(failures > 8);
    assert_int_equal(before.bytes, after.bytes);
    for (int call = 0; call < STKT_CALLS; call++)
        for (int n = 1;; n++) {
            stk_status status;

            stkt_fail_call((enum stkt_call)call, n, ENOSPC);
            status = write_some(path, opts);
            stkt_fail_call((enum stkt_call)call, 0, 0);
            if (!status) {
                assert_true(n > 1);
                assert_int_equal(unlink(path), 0);
                break;
            }
            assert_int_equal(status, STK_E_IO); /* row P14 */
            assert_says("No space left");
            assert_int_equal(unlink(path), call == STKT_SYNC_DIRECTORY ? 0 : -1);
            assert_int_equal(file_count(), 0);
        }
}

static void test_failures(void **state)
{
    stki_writer_opts level = {.level = 1};
    char path[300];

    (void)state;
    for (int f = 0; f < FORMATS; f++)
        fail_everything(named(path, formats[f]), NULL);
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * i >> 7);
    fail_everything(named(path, "npz"), &level);
    memset(big, 0, sizeof big);
    for (int n = 1;; n++) {
        stkt_fail_call(STKT_SPILL_WRITE, n, ENOSPC);
        if (!write_some(named(path, "safetensors"), NULL)) {
            assert_true(n > 2);
            break;
        }
        assert_int_equal(err.status, STK_E_IO);
        assert_int_equal(file_count(), 0);
    }
    stkt_fail_call(STKT_SPILL_WRITE, 0, 0);
    assert_int_equal(unlink(path), 0);
}

/* Row P13: a full disk is an error, whichever call encounters it. */
static void test_full_disk(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        int64_t shape[1] = {1000};
        stki_writer *w;
        stk_tensor t;
        stk_status status;

        assert_ok(stk_tensor_borrow(big, STK_U8, 1, shape, NULL, &t, &err));
        assert_ok(stki_writer_create("/dev/full", formats[f], NULL, &w, &err));
        status = stki_writer_add(w, "a", &t, &err);
        if (!status)
            status = stki_writer_commit(w, &err);
        else
            stki_writer_abort(w);
        assert_int_equal(status, STK_E_IO);
        assert_says("/dev/full");
    }
}

/* An older file is kept until the new one is complete, or for good if the new one is abandoned. */
static void test_older_file(void **state)
{
    char path[300];
    int64_t bytes;
    stki_writer *w;

    (void)state;
    for (int f = 0; f < FORMATS; f++) {
        assert_ok(write_some(named(path, formats[f]), NULL));
        bytes = stkt_file_bytes(path);
        assert_ok(stki_writer_create(path, NULL, NULL, &w, &err));
        assert_ok(stki_writer_begin(w, "a", STK_U8, 0, NULL, -1, &err));
        assert_ok(stki_writer_append(w, big, sizeof big, &err));
        assert_int_equal(stkt_file_bytes(path), bytes);
        stki_writer_abort(w);
        assert_int_equal(stkt_file_bytes(path), bytes);
        assert_int_equal(file_count(), 1);
        assert_int_equal(unlink(path), 0);
    }
}

static void test_public(void **state)
{
    stk_writer_opts opts = STK_WRITER_OPTS_INIT, none = {0};
    int64_t shape[2] = {2, 2};
    char path[300];
    float numbers[4] = {1, 2, 3, 4};
    stki_container *c;
    stk_writer *w;
    stk_tensor t;

    (void)state;
    assert_ok(stk_tensor_borrow(numbers, STK_F32, 2, shape, NULL, &t, &err));
    assert_status(stk_writer_create(named(path, "npz"), NULL, &none, &w, &err), STK_E_BAD_ARG);
    opts.level = 6;
    assert_ok(stk_writer_create(path, NULL, &opts, &w, &err));
    assert_ok(stk_writer_add(w, "a", &t, &err));
    assert_ok(stk_writer_begin(w, "b", STK_F32, 1, shape, -1, &err));
    assert_ok(stk_writer_append(w, numbers, 2, &err));
    assert_ok(stk_writer_end(w, &err));
    assert_ok(stk_writer_commit(w, &err));
    open_file(path, &c);
    assert_int_equal(c->member_count, 2);
    assert_string_equal(c->members[1].layout, "deflated");
    stki_container_release(c);
    assert_int_equal(unlink(path), 0);
    assert_ok(stk_writer_create(path, NULL, NULL, &w, &err));
    stk_writer_abort(w);
    assert_int_equal(file_count(), 0);
    /* One tensor without a name, as written by torch.save(tensor). */
    assert_ok(stk_writer_create(named(path, "pt"), NULL, NULL, &w, &err));
    assert_ok(stk_writer_add(w, "", &t, &err));
    assert_ok(stk_writer_commit(w, &err));
    open_file(path, &c);
    assert_int_equal(c->member_count, 1);
    assert_string_equal(c->members[0].name, "");
    stki_container_release(c);
    assert_int_equal(unlink(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype),  cmocka_unit_test(test_golden),      cmocka_unit_test(test_streams),
        cmocka_unit_test(test_deflated),     cmocka_unit_test(test_views),       cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_many_members), cmocka_unit_test(test_wrong_calls), cmocka_unit_test(test_header_limit),
        cmocka_unit_test(test_failures),     cmocka_unit_test(test_full_disk),   cmocka_unit_test(test_older_file),
        cmocka_unit_test(test_public),
    };

    stkt_skip_syncs(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
