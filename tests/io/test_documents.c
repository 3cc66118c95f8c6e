/* Tests of streams of tokens that are split into documents, mapped and read, in all widths and byte orders, with the
 * separator at the beginning or the end of a document. Short reads, rejected options and failing allocations are also
 * tested. */
#include "allocate.h"
#include "documents.h"
#include "faults.h"
#include "io_files.h"
#include "stk_test.h"

enum { MARK = 7 };

static void check_documents(const stki_reader *reader, const int64_t *lengths, int64_t count, const int64_t *tokens)
{
    stki_scratch scratch;
    stk_error err;
    int64_t at = 0, longest = 0;

    stki_scratch_init(&scratch);
    assert_int_equal(reader->count, count);
    assert_true(reader->variable);
    for (int64_t d = 0; d < count; d++) {
        stk_tensor document;
        int64_t shape[STK_MAX_DIMS];

        assert_ok(reader->ops->shape(reader, d, shape, &err));
        assert_int_equal(shape[0], lengths[d]);
        assert_ok(reader->ops->read(reader, d, NULL, &scratch, &document, &err));
        assert_int_equal(document.shape[0], lengths[d]);
        assert_int_equal(document.strides[0], stk_dtype_size(reader->dtype));
        for (int64_t i = 0; i < lengths[d]; i++) {
            uint64_t value = 0;

            memcpy(&value, (const char *)document.data + i * document.strides[0], (size_t)document.strides[0]);
            if (document.flags & STK_TENSOR_SWAPPED)
                value = __builtin_bswap64(value) >> (64 - 8 * document.strides[0]);
            assert_int_equal(value, tokens[at++]);
        }
        stki_reader_done(reader, &document);
        longest = lengths[d] > longest ? lengths[d] : longest;
    }
    assert_int_equal(reader->shape[0], longest);
    assert_status(reader->ops->shape(reader, count, (int64_t[STK_MAX_DIMS]){0}, &err), STK_E_RANGE);
    stki_scratch_fini(&scratch);
}

/* Writes the tokens after a gap and opens the file. */
static stk_status open_tokens(const int64_t *tokens, int64_t count, stk_dtype dtype, bool swapped,
                              enum stki_access access, bool ends, int64_t mark, stki_reader **out, stk_error *err)
{
    const char *path = stkt_path("tokens.bin");
    int64_t size = stk_dtype_size(dtype);
    char *bytes = calloc((size_t)(count + 1), 8);
    stki_reader_opts opts = {0};
    stki_array array = {
        .offset = size, .dtype = dtype, .swapped = swapped, .ndim = 1, .shape = {count}, .strides = {size}};
    stk_status status;

    for (int64_t i = 0; i < count; i++) {
        uint64_t value = (uint64_t)tokens[i];

        if (swapped)
            value = __builtin_bswap64(value) >> (64 - 8 * size);
        memcpy(bytes + (i + 1) * size, &value, (size_t)size);
    }
    stkt_write_file(path, bytes, (size_t)((count + 1) * size));
    free(bytes);
    status = stki_file_open(path, access, STKI_PATTERN_RANDOM, &array.file, err);
    if (status == STK_OK)
        status = stki_documents_open(&array, "raw", path, mark, ends, &opts, out, err);
    stki_file_close(array.file);
    return status;
}

static void cut(const int64_t *tokens, int64_t count, bool ends, const int64_t *lengths, int64_t documents)
{
    static const stk_dtype dtypes[] = {STK_U8, STK_I8, STK_U16, STK_I16, STK_U32, STK_I32, STK_U64, STK_I64};
    stki_reader *reader;
    stk_error err;

    for (int i = 0; i < 8; i++)
        for (int swapped = 0; swapped <= (i >= 2); swapped++)
            for (int access = 0; access < 2; access++) {
                assert_ok(open_tokens(tokens, count, dtypes[i], swapped, access ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP,
                                      ends, MARK, &reader, &err));
                assert_int_equal(reader->copies, access);
                check_documents(reader, lengths, documents, tokens);
                stki_reader_destroy(reader);
            }
}

static void beginnings_and_ends(void **state)
{
    (void)state;
#define CUT(ends, count, ...) cut(tokens, sizeof tokens / sizeof *tokens, ends, (const int64_t[]){__VA_ARGS__}, count)
    {
        static const int64_t tokens[] = {7, 1, 2, 7, 7, 3, 4, 5};
        CUT(false, 3, 3, 1, 4);
        CUT(true, 4, 1, 3, 1, 3);
    }
    {
        static const int64_t tokens[] = {1, 2, 7, 3, 7};
        CUT(false, 3, 2, 2, 1);
        CUT(true, 2, 3, 2);
    }
    {
        static const int64_t tokens[] = {1, 2, 3};
        CUT(false, 1, 3);
        CUT(true, 1, 3);
    }
    {
        static const int64_t tokens[] = {7};
        CUT(false, 1, 1);
        CUT(true, 1, 1);
    }
    cut((const int64_t[]){0}, 0, false, NULL, 0);
    cut((const int64_t[]){0}, 0, true, NULL, 0);
}

/* More than one read, more documents than the initial capacity of the list, and separators at the boundaries of
 * reads. */
static void many_documents(void **state)
{
    enum { COUNT = 1500000 };
    int64_t *tokens = calloc(COUNT, sizeof *tokens), *lengths = calloc(COUNT, sizeof *lengths), documents = 0, last = 0;
    stki_reader *reader;
    stk_error err;

    (void)state;
    for (int64_t i = 0; i < COUNT; i++) {
        tokens[i] = 1 + (i * i) % 5;
        if (i % 64 == 0 || i % 977 == 63)
            tokens[i] = MARK;
    }
    for (int64_t i = 1; i <= COUNT; i++)
        if (i == COUNT || tokens[i] == MARK) {
            lengths[documents++] = i - last;
            last = i;
        }
    for (int access = 0; access < 2; access++) {
        stkt_short_reads(access ? 4099 : 0);
        assert_ok(open_tokens(tokens, COUNT, STK_U16, false, access ? STKI_ACCESS_PREAD : STKI_ACCESS_MMAP, false, MARK,
                              &reader, &err));
        check_documents(reader, lengths, documents, tokens);
        stkt_short_reads(0);
        reader->ops->will_need(reader, (const int64_t[]){0, documents - 1, 17}, 3);
        stki_reader_destroy(reader);
    }
    free(tokens);
    free(lengths);
}

static void refusals(void **state)
{
    static const int64_t tokens[] = {1, 2, 3};
    const char *path = stkt_path("x");
    stki_reader_opts opts = {.window_length = 3};
    stki_array array = {.dtype = STK_U16, .ndim = 1, .shape = {3}, .strides = {2}};
    stki_reader *reader = NULL;
    stk_error err;

    (void)state;
    assert_status(open_tokens(tokens, 3, STK_U8, false, STKI_ACCESS_MMAP, false, 256, &reader, &err), STK_E_CONFIG);
    assert_says("found 256");
    assert_status(open_tokens(tokens, 3, STK_I16, false, STKI_ACCESS_MMAP, false, 32768, &reader, &err), STK_E_CONFIG);
    assert_status(open_tokens(tokens, 3, STK_U16, false, STKI_ACCESS_MMAP, false, -1, &reader, &err), STK_E_CONFIG);
    assert_status(open_tokens(tokens, 3, STK_F32, false, STKI_ACCESS_MMAP, false, 1, &reader, &err), STK_E_UNSUPPORTED);
    assert_status(stki_documents_open(&array, "raw", path, 1, false, &opts, &reader, &err), STK_E_CONFIG);
    assert_says("window");
    stkt_fail_read(1, EIO);
    assert_status(open_tokens(tokens, 3, STK_U16, false, STKI_ACCESS_PREAD, false, 1, &reader, &err), STK_E_IO);
    assert_null(reader);
}

static void allocations(void **state)
{
    static const int64_t tokens[] = {7, 1, 7, 2};
    stki_memory_stats before, after;
    stki_reader *reader = NULL;
    stk_error err;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1;; n++) {
        stk_status status;

        stki_memory_fail_at(n);
        status = open_tokens(tokens, 4, STK_U16, false, STKI_ACCESS_PREAD, false, MARK, &reader, &err);
        stki_memory_fail_at(0);
        if (status == STK_OK)
            break;
        assert_int_equal(status, STK_E_MEMORY);
        assert_true(n < 20);
    }
    stki_reader_destroy(reader);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_int_equal(after.bytes, before.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(beginnings_and_ends),
        cmocka_unit_test(many_documents),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
