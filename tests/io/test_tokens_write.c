/* Tests of writing token files: the bytes that follow from the formats' descriptions (tests/data/written), the bytes of
 * files written by the original programs, the limits of each number, and failures. */
#include "allocate.h"
#include "faults.h"
#include "file_compare.h"
#include "output.h"
#include "spill.h"
#include "tokens_write.h"

static stk_error err;

/* ---- known bytes ---- */

static stk_status write_documents(const char *path, stk_tokens_format format, stk_dtype dtype, stk_error *error)
{
    static const uint16_t all[55] = {1, 2, 3, 65535, 0};
    static const int64_t lengths[4] = {3, 0, 2, 50};
    uint16_t narrow[55];
    uint32_t wide[55];
    stk_tokens_writer *w;
    stk_status status = stk_tokens_create(path, format, dtype, &w, error);
    int64_t at = 0;

    for (int i = 0; i < 55; i++)
        wide[i] = narrow[i] = i < 5 ? all[i] : (uint16_t)(i - 5);
    if (status)
        return status;
    for (int i = 0; i < 4 && !status; at += lengths[i++])
        status = stk_tokens_append(w, dtype == STK_U16 ? (const void *)(narrow + at) : wide + at, lengths[i], error);
    if (!status)
        return stk_tokens_commit(w, error);
    stk_tokens_abort(w);
    return status;
}

static void check_golden(const char *name, const char *written)
{
    char golden[400];

    snprintf(golden, sizeof golden, "%s/data/written/%s", STKT_TESTS_DIR, name);
    if (getenv("STKT_WRITE_GOLDEN")) /* then run check_written.py */
        assert_int_equal(rename(written, golden), 0);
    else
        stkt_same_files(written, golden);
}

static void test_golden(void **state)
{
    (void)state;
    assert_ok(write_documents(stkt_path("a.bin"), STK_TOKENS_LLMC, STK_U16, &err));
    check_golden("llmc_u16.bin", stkt_path("a.bin"));
    assert_ok(write_documents(stkt_path("a.bin"), STK_TOKENS_LLMC, STK_U32, &err));
    check_golden("llmc_u32.bin", stkt_path("a.bin"));
    assert_ok(write_documents(stkt_path("a.bin"), STK_TOKENS_RAW, STK_U16, &err));
    check_golden("raw_u16.bin", stkt_path("a.bin"));
    assert_ok(write_documents(stkt_path("m.bin"), STK_TOKENS_MEGATRON, STK_U16, &err));
    check_golden("megatron.bin", stkt_path("m.bin"));
    check_golden("megatron.idx", stkt_path("m.idx"));
}

/* Any name of the pair selects both files. */
static void test_megatron_names(void **state)
{
    static const char *const names[] = {"n.bin", "n.idx", "n"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ok(write_documents(stkt_path(names[i]), STK_TOKENS_MEGATRON, STK_U16, &err));
        stkt_same_files(stkt_path("n.idx"), STKT_TESTS_DIR "/data/written/megatron.idx");
        stkt_same_files(stkt_path("n.bin"), STKT_TESTS_DIR "/data/written/megatron.bin");
        assert_int_equal(stkt_files_beginning("n"), 2);
        unlink(stkt_path("n.idx"));
        unlink(stkt_path("n.bin"));
    }
}

/* Writes the tokens of a file of the original program again: the bytes must be equal. */
static void copy_original(const char *name, stk_tokens_format format, stk_dtype dtype, int64_t header)
{
    char original[400];
    stk_tokens_writer *w;
    int64_t count;
    char *bytes;

    snprintf(original, sizeof original, "%s/oracle/tokens/%s", STKT_TESTS_DIR, name);
    bytes = stkt_read_whole(original, &count);
    assert_ok(stk_tokens_create(stkt_path("copy.bin"), format, dtype, &w, &err));
    assert_ok(stk_tokens_append(w, bytes + header, (count - header) / stk_dtype_size(dtype), &err));
    assert_ok(stk_tokens_commit(w, &err));
    stkt_same_files(stkt_path("copy.bin"), original);
    free(bytes);
}

static void test_originals(void **state)
{
    (void)state;
    copy_original("llmc_gpt2.bin", STK_TOKENS_LLMC, STK_U16, 1024);
    copy_original("llmc_llama3.bin", STK_TOKENS_LLMC, STK_U32, 1024);
    copy_original("llmc_empty.bin", STK_TOKENS_LLMC, STK_U16, 1024);
    copy_original("raw_u16.bin", STK_TOKENS_RAW, STK_U16, 0);
    copy_original("raw_u32.bin", STK_TOKENS_RAW, STK_U32, 0);
}

/* Header, lengths and offsets are those of the original. Its documents have several sequences; here each sequence is a
 * document. */
static void test_original_megatron(void **state)
{
    int64_t idx_count, bin_count, made_count;
    char *idx = stkt_read_whole(STKT_TESTS_DIR "/oracle/tokens/mega_i32.idx", &idx_count), *made;
    char *bin = stkt_read_whole(STKT_TESTS_DIR "/oracle/tokens/mega_i32.bin", &bin_count);
    uint64_t sequences;
    int32_t lengths[64];
    stk_tokens_writer *w;
    int64_t at = 0;

    (void)state;
    memcpy(&sequences, idx + 18, 8);
    memcpy(lengths, idx + 34, sequences * 4);
    assert_ok(stk_tokens_create(stkt_path("o"), STK_TOKENS_MEGATRON, STK_I32, &w, &err));
    for (uint64_t i = 0; i < sequences; at += lengths[i++])
        assert_ok(stk_tokens_append(w, bin + at * 4, lengths[i], &err));
    assert_ok(stk_tokens_commit(w, &err));
    stkt_same_files(stkt_path("o.bin"), STKT_TESTS_DIR "/oracle/tokens/mega_i32.bin");
    made = stkt_read_whole(stkt_path("o.idx"), &made_count);
    assert_memory_equal(made, idx, 26);
    assert_memory_equal(made + 34, idx + 34, 12 * sequences);
    for (uint64_t i = 0; i <= sequences; i++)
        assert_memory_equal(made + 34 + 12 * sequences + 8 * i, &i, 8);
    assert_int_equal(made_count, 34 + 12 * sequences + 8 * (sequences + 1));
    free(made);
    free(idx);
    free(bin);
}

/* ---- limits ---- */

static void test_refused(void **state)
{
    static const uint32_t high[3] = {1, 2147483647, 2147483648U};
    stk_tokens_writer *w;

    (void)state;
    assert_status(stk_tokens_create("x.bin", STK_TOKENS_LLMC, STK_I32, &w, &err), STK_E_UNSUPPORTED);
    assert_says("found int32, expected u16 or u32");
    assert_status(stk_tokens_create("x.bin", STK_TOKENS_RAW, STK_F32, &w, &err), STK_E_UNSUPPORTED);
    assert_status(stk_tokens_create("x.bin", STK_TOKENS_MEGATRON, STK_U64, &w, &err), STK_E_UNSUPPORTED);
    assert_status(stk_tokens_create("x.bin", (stk_tokens_format)3, STK_U16, &w, &err), STK_E_BAD_ARG);
    assert_status(stk_tokens_create(NULL, STK_TOKENS_RAW, STK_U16, &w, &err), STK_E_BAD_ARG);
    assert_status(stk_tokens_create("x.bin", STK_TOKENS_RAW, STK_U16, NULL, &err), STK_E_BAD_ARG);
    assert_status(stk_tokens_append(NULL, high, 1, &err), STK_E_BAD_ARG);
    assert_status(stk_tokens_commit(NULL, &err), STK_E_BAD_ARG);
    stk_tokens_abort(NULL);

    assert_ok(stk_tokens_create(stkt_path("r"), STK_TOKENS_MEGATRON, STK_U32, &w, &err));
    assert_ok(stk_tokens_append(w, high, 2, &err));
    assert_status(stk_tokens_append(w, high, 3, &err), STK_E_LIMIT);
    assert_says("record 1: the token is too large: Megatron has no u32, only i32: found 2147483648, expected at most "
                "2147483647");
    assert_status(stk_tokens_commit(w, &err), STK_E_LIMIT);
    assert_int_equal(stkt_files_beginning("r"), 0);

    assert_ok(stk_tokens_create(stkt_path("r"), STK_TOKENS_RAW, STK_U16, &w, &err));
    assert_status(stk_tokens_append(w, high, -1, &err), STK_E_BAD_ARG);
    stk_tokens_abort(w);
    assert_ok(stk_tokens_create(stkt_path("r"), STK_TOKENS_RAW, STK_U16, &w, &err));
    assert_status(stk_tokens_append(w, NULL, 1, &err), STK_E_BAD_ARG);
    stk_tokens_abort(w);
    assert_int_equal(stkt_files_beginning("r"), 0);
}

/* Continues a file at a count near the limit, without writing so many tokens. */
static void test_counts(void **state)
{
    stki_tokens_mark mark = {1, INT32_MAX - 1};
    stki_tokens_making making = {.temporary = stkt_path("counts"), .mark = &mark};
    static const uint16_t tokens[2] = {7, 8};
    stk_tokens_writer *w;

    (void)state;
    stkt_write_file(making.temporary, "", 0);
    assert_int_equal(truncate(making.temporary, 1024 + 2 * (int64_t)INT32_MAX), 0); /* a hole that takes no space */
    assert_ok(stki_tokens_open("x.bin", STK_TOKENS_LLMC, STK_U16, &making, &w, &err));
    assert_ok(stk_tokens_append(w, tokens, 1, &err));
    assert_status(stk_tokens_append(w, tokens, 1, &err), STK_E_LIMIT);
    assert_says(
        "llm.c stores the count in 31 bits; write several files: found 2147483648, expected at most 2147483647");
    stk_tokens_abort(w);
    unlink(making.temporary);
}

/* ---- failures ---- */

static void test_every_allocation_failing(void **state)
{
    static const stk_tokens_format formats[] = {STK_TOKENS_LLMC, STK_TOKENS_MEGATRON};

    (void)state;
    for (int i = 0; i < 2; i++) {
        stk_status status = STK_E_MEMORY;

        for (int64_t n = 1; status; n++) {
            stki_memory_fail_at(n);
            status = write_documents(stkt_path("memory"), formats[i], STK_U16, &err);
            stki_memory_fail_at(0);
            assert_true(status == STK_OK || status == STK_E_MEMORY);
            assert_true(status == STK_OK ||
                        stkt_files_beginning("memory") <= i); /* the second time, the first file exists */
            assert_true(n < 1000);
        }
    }
}

static void test_every_call_failing(void **state)
{
    (void)state;
    for (int call = 0; call < STKT_CALLS; call++) {
        stkt_fail_call((enum stkt_call)call, 1, ENOSPC);
        assert_status(write_documents(stkt_path("calls"), STK_TOKENS_MEGATRON, STK_U16, &err), STK_E_IO);
        assert_says("calls");
        assert_int_equal(stkt_files_beginning("calls"), call == STKT_SYNC_DIRECTORY);
        assert_int_equal(unlink(stkt_path("calls.bin")), call == STKT_SYNC_DIRECTORY ? 0 : -1);
    }
    stkt_fail_call(STKT_WRITE, 2, ENOSPC); /* for the index */
    assert_status(write_documents(stkt_path("calls"), STK_TOKENS_MEGATRON, STK_U16, &err), STK_E_IO);
    stkt_fail_call(STKT_SPILL_WRITE, 1, ENOSPC); /* for the lengths */
    assert_status(write_documents(stkt_path("calls"), STK_TOKENS_MEGATRON, STK_U16, &err), STK_E_IO);
    assert_int_equal(stkt_files_beginning("calls"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_megatron_names),
        cmocka_unit_test(test_originals),
        cmocka_unit_test(test_original_megatron),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_every_allocation_failing),
        cmocka_unit_test(test_every_call_failing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
