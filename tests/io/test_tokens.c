/* Tests of token files of llm.c and Megatron: the limits of each number, documents in several pieces, options and
 * failures. Files written by the original programs are read by the oracle driver. */
#include "allocate.h"
#include "faults.h"
#include "file.h"
#include "format.h"
#include "io_files.h"
#include "stk_test.h"
#include "tokens.h"

/* ---- llm.c ---- */

static void check_llmc(int32_t magic, int32_t version, int32_t count, int64_t file_bytes, stk_status expected,
                       const char *says)
{
    int32_t head[3] = {magic, version, count};
    stk_dtype dtype = STK_DTYPE_NONE;
    int64_t tokens = -1;
    stk_error err;

    assert_status(stki_llmc_read_header(head, file_bytes, "t.bin", &dtype, &tokens, &err), expected);
    if (expected) {
        assert_says(says);
        assert_says("t.bin: ");
    } else {
        assert_int_equal(tokens, count);
        assert_int_equal(dtype, magic == 20240520 ? STK_U16 : STK_U32);
    }
}

static void test_llmc_header(void **state)
{
    (void)state;
    check_llmc(20240520, 1, 5, 1034, STK_OK, NULL);
    check_llmc(20240801, 7, 5, 1044, STK_OK, NULL);
    check_llmc(20240520, 1, 0, 1024, STK_OK, NULL);
    check_llmc(20240520, 1, INT32_MAX, 1024 + 2 * (int64_t)INT32_MAX, STK_OK, NULL);
    check_llmc(20240520, 1, 0, 1023, STK_E_TRUNCATED, "found 1023 bytes");
    check_llmc(20240520, 1, 5, 1033, STK_E_TRUNCATED, "found 1033 bytes, expected 1034 for 5 tokens");
    check_llmc(20240520, 1, 5, 1035, STK_E_CORRUPT, "found 1035 bytes");
    check_llmc(20240520, 1, -1, 1024, STK_E_CORRUPT, "number of tokens");
    check_llmc(20240520, 7, 5, 1034, STK_E_UNSUPPORTED, "version 7");
    check_llmc(20240801, 1, 5, 1044, STK_E_UNSUPPORTED, "version 1");
    check_llmc(20240522, 1, 5, 1034, STK_E_UNSUPPORTED, "evaluation");
    check_llmc(20240521, 1, 5, 1034, STK_E_CORRUPT, "magic 20240521");
}

/* Recognized by its contents under any name; windows run along the tokens. */
static void test_llmc_windows(void **state)
{
    const char *path = stkt_path("shard.dat");
    int32_t head[256] = {20240520, 1, 10};
    uint16_t tokens[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    stki_reader_opts opts = {.window_length = 4, .window_stride = 3};
    stki_reader *reader;
    stki_scratch scratch;
    stk_tensor sample;
    stk_error err;

    (void)state;
    stkt_write_file(path, head, sizeof head);
    stkt_append_file(path, tokens, sizeof tokens);
    stki_scratch_init(&scratch);
    assert_ok(stki_reader_open(path, &opts, &reader, &err));
    assert_int_equal(reader->count, 3);
    assert_int_equal(reader->dtype, STK_U16);
    for (int64_t i = 0; i < 3; i++) {
        assert_ok(reader->ops->read(reader, i, NULL, &scratch, &sample, &err));
        assert_int_equal(sample.shape[0], 4);
        assert_memory_equal(sample.data, tokens + 3 * i, 8);
        stki_reader_done(reader, &sample);
    }
    stki_reader_destroy(reader);
    stki_scratch_fini(&scratch);
    assert_status(stki_reader_open(path, &(stki_reader_opts){.alias_dtype = STK_U32}, &reader, &err), STK_E_MISMATCH);
    assert_ok(stki_reader_open(path, &(stki_reader_opts){.alias_dtype = STK_U16}, &reader, &err));
    stki_reader_destroy(reader);
}

/* ---- Megatron ---- */

struct idx {
    unsigned char bytes[4096];
    int64_t size;
};

static void put(struct idx *x, const void *bytes, int64_t count)
{
    memcpy(x->bytes + x->size, bytes, (size_t)count);
    x->size += count;
}

static void begin_idx(struct idx *x, int code, uint64_t sequences, uint64_t entries)
{
    uint64_t version = 1;
    unsigned char type = (unsigned char)code;

    x->size = 0;
    put(x, "MMIDIDX\0\0", 9);
    put(x, &version, 8);
    put(x, &type, 1);
    put(x, &sequences, 8);
    put(x, &entries, 8);
}

static void make_idx(struct idx *x, int code, int sequences, const int32_t *lengths, const int64_t *offsets,
                     int entries, const int64_t *list)
{
    begin_idx(x, code, (uint64_t)sequences, (uint64_t)entries);
    put(x, lengths, 4 * (int64_t)sequences);
    put(x, offsets, 8 * (int64_t)sequences);
    put(x, list, 8 * (int64_t)entries);
}

/* Sequences of u16: 0 1 2; 3 4; empty; 8 9 (not adjacent); 0 (again). Documents: [0, 2), [2, 2), [2, 4), [4, 5). */
static const int32_t lengths[5] = {3, 2, 0, 2, 1};
static const int64_t offsets[5] = {0, 6, 2, 16, 0}, list[5] = {0, 2, 2, 4, 5};

static void write_pair(struct idx *x)
{
    uint16_t tokens[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    make_idx(x, 8, 5, lengths, offsets, 5, list);
    stkt_write_file(stkt_path("m.idx"), x->bytes, (size_t)x->size);
    stkt_write_file(stkt_path("m.bin"), tokens, sizeof tokens);
}

static stk_status open_member(const char *path, const char *name, const stki_reader_opts *base, stki_reader **out,
                              stk_error *err)
{
    stki_reader_opts opts = base ? *base : (stki_reader_opts){0};

    opts.format = "megatron";
    opts.name = name;
    return stki_reader_open(path, &opts, out, err);
}

static void check_span(const stki_reader *reader, int64_t index, int count, const uint16_t *expected)
{
    stki_scratch scratch;
    stk_tensor sample;
    int64_t shape[1];
    stk_error err;

    stki_scratch_init(&scratch);
    assert_ok(reader->ops->shape(reader, index, shape, &err));
    assert_int_equal(shape[0], count);
    assert_ok(reader->ops->read(reader, index, NULL, &scratch, &sample, &err));
    assert_int_equal(sample.shape[0], count);
    assert_int_equal(sample.dtype, STK_U16);
    if (count > 0)
        assert_memory_equal(sample.data, expected, (size_t)count * 2);
    stki_reader_done(reader, &sample);
    stki_scratch_fini(&scratch);
}

/* Documents of adjacent and of separate sequences; the name may be either file or their common prefix. */
static void test_megatron_documents(void **state)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    static const char *const names[] = {"m.idx", "m.bin", "m"};
    static const uint16_t first[] = {0, 1, 2, 3, 4}, third[] = {8, 9}, last[] = {0};
    stki_reader *reader;
    struct idx x;
    stk_error err;

    (void)state;
    write_pair(&x);
    for (int i = 0; i < 6; i++) {
        stki_reader_opts opts = {.access = modes[i % 2], .pattern = STKI_PATTERN_RANDOM};
        int64_t asked[] = {3, 0, 2, 1};

        assert_ok(open_member(stkt_path(names[i / 2]), "documents", &opts, &reader, &err));
        assert_int_equal(reader->count, 4);
        assert_true(reader->variable);
        assert_int_equal(reader->shape[0], 5);
        assert_int_equal(reader->max_bytes, 10);
        assert_true(reader->unit_length > 0);
        reader->ops->will_need(reader, asked, 4);
        check_span(reader, 0, 5, first);
        check_span(reader, 1, 0, NULL);
        check_span(reader, 2, 2, third);
        check_span(reader, 3, 1, last);
        stki_reader_destroy(reader);
    }
}

static void test_megatron_gathered(void **state)
{
    static const int64_t apart[5] = {0, 16, 2, 6, 0}, all[2] = {0, 5};
    static const uint16_t tokens[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, expected[] = {0, 1, 2, 8, 9, 3, 4, 0};
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    stki_reader *reader;
    struct idx x;
    stk_error err;

    (void)state;
    make_idx(&x, 8, 5, lengths, apart, 2, all);
    stkt_write_file(stkt_path("g.idx"), x.bytes, (size_t)x.size);
    stkt_write_file(stkt_path("g.bin"), tokens, sizeof tokens);
    for (int m = 0; m < 2; m++) {
        stki_reader_opts opts = {.access = modes[m]};
        stk_tensor sample;

        assert_ok(open_member(stkt_path("g.idx"), "documents", &opts, &reader, &err));
        check_span(reader, 0, 8, expected);
        assert_status(reader->ops->read(reader, 1, NULL, NULL, &sample, &err), STK_E_RANGE);
        stki_reader_destroy(reader);
        opts.max_bytes = 15;
        assert_ok(open_member(stkt_path("g.idx"), "documents", &opts, &reader, &err));
        assert_int_equal(reader->shape[0], 7);
        assert_status(reader->ops->read(reader, 0, NULL, NULL, &sample, &err), STK_E_LIMIT);
        assert_says("found 8 tokens of 2 bytes, expected at most 15 bytes (max_bytes)");
        stki_reader_destroy(reader);
    }
}

/* Sequences in order with a gap between them are not a view either. */
static void test_megatron_gap(void **state)
{
    static const int32_t two[2] = {3, 2};
    static const int64_t gap[2] = {0, 16}, all[2] = {0, 2};
    static const uint16_t tokens[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, expected[] = {0, 1, 2, 8, 9};
    stki_reader *reader;
    struct idx x;
    stk_error err;

    (void)state;
    make_idx(&x, 8, 2, two, gap, 2, all);
    stkt_write_file(stkt_path("gap.idx"), x.bytes, (size_t)x.size);
    stkt_write_file(stkt_path("gap.bin"), tokens, sizeof tokens);
    assert_ok(open_member(stkt_path("gap.idx"), "documents", NULL, &reader, &err));
    check_span(reader, 0, 5, expected);
    stki_reader_destroy(reader);
}

static void test_megatron_members(void **state)
{
    stki_container *container;
    stki_reader *reader;
    struct idx x;
    unsigned char modes[5] = {0, 1, 2, 1, 0};
    stk_error err;

    (void)state;
    write_pair(&x);
    put(&x, modes, 5);
    stkt_write_file(stkt_path("m.idx"), x.bytes, (size_t)x.size);
    assert_ok(stki_container_open(stkt_path("m.idx"), NULL, &container, &err)); /* recognized by content */
    assert_int_equal(container->member_count, 5);
    assert_string_equal(container->members[4].name, "modes");
    stki_container_release(container);
    assert_ok(open_member(stkt_path("m.idx"), "tokens", NULL, &reader, &err));
    assert_int_equal(reader->count, 10);
    assert_non_null(reader->base);
    stki_reader_destroy(reader);
    assert_ok(open_member(stkt_path("m.idx"), "document_index", NULL, &reader, &err));
    assert_int_equal(reader->count, 5);
    assert_memory_equal(reader->base, list, sizeof list);
    stki_reader_destroy(reader);
    assert_ok(open_member(stkt_path("m.idx"), "modes", NULL, &reader, &err));
    assert_memory_equal(reader->base, modes, sizeof modes);
    stki_reader_destroy(reader);
    assert_status(open_member(stkt_path("m.idx"), NULL, NULL, &reader, &err), STK_E_CONFIG);
    assert_says("documents, sequences, tokens");
    assert_status(open_member(stkt_path("m.idx"), "tokens", &(stki_reader_opts){.alias_dtype = STK_U32}, &reader, &err),
                  STK_E_MISMATCH);
    unlink(stkt_path("m.bin"));
    assert_status(open_member(stkt_path("m.idx"), "tokens", NULL, &reader, &err), STK_E_NOT_FOUND);
    assert_says("m.bin");
}

/* The .bin is checked together with its index, even by readers that outlive the container and all other readers. */
static void test_megatron_changed(void **state)
{
    (void)state;
    for (int with_documents = 0; with_documents < 2; with_documents++) {
        stki_container *container;
        stki_reader *documents, *tokens;
        struct idx x;
        stk_error err;

        write_pair(&x);
        assert_ok(stki_container_open(stkt_path("m.idx"), NULL, &container, &err));
        assert_string_equal(container->members[0].name, "documents");
        assert_string_equal(container->members[2].name, "tokens");
        assert_ok(stki_container_reader(container, 2, NULL, &tokens, &err));
        if (with_documents) {
            assert_ok(stki_container_reader(container, 0, NULL, &documents, &err));
            stki_reader_destroy(documents);
        }
        stki_container_release(container);
        assert_ok(stki_file_intact(tokens->file, -1, &err));
        stkt_write_file(stkt_path("m.idx"), x.bytes, (size_t)x.size - 1);
        assert_status(stki_file_intact(tokens->file, -1, &err), STK_E_TRUNCATED);
        assert_says("m.idx");
        stki_reader_destroy(tokens);
    }
}

static void check_idx(const struct idx *x, int64_t bin_bytes, stk_status expected, int64_t offset, const char *says)
{
    stki_megatron_index index;
    stk_error err;
    stk_status status = stki_megatron_read_header(x->bytes, x->size, "t.idx", &index, &err);

    if (!status)
        status = stki_megatron_check(&index, x->bytes, bin_bytes, "t.idx", &err);
    if (status != expected)
        fail_msg("found %s (%s), expected %s", stk_status_name(status), status ? err.message : "",
                 stk_status_name(expected));
    if (!expected)
        return;
    assert_says(says);
    if (offset >= 0)
        assert_int_equal(err.offset, offset);
}

/* Each number of the index just outside its valid range. */
static void test_megatron_limits(void **state)
{
    struct idx x;
    int32_t other[5];
    int64_t other_offsets[5], other_list[5];

    (void)state;
    make_idx(&x, 8, 5, lengths, offsets, 5, list);
    check_idx(&x, 20, STK_OK, -1, NULL);
    check_idx(&x, 19, STK_E_CORRUPT, 34 + 20 + 24, "2 tokens at byte 16, expected a range inside the 19 bytes");
    x.size--;
    check_idx(&x, 20, STK_E_TRUNCATED, 18, "room for 5 sequences, 5 documents");
    x.size += 2;
    check_idx(&x, 20, STK_E_CORRUPT, x.size - 1, "found 1 bytes, expected none, or 5 bytes of modes");
    x.size = 33;
    check_idx(&x, 20, STK_E_TRUNCATED, -1, "33 bytes");
    x.size = 5;
    check_idx(&x, 20, STK_E_TRUNCATED, -1, "5 bytes");
    x.bytes[3] = 'X';
    check_idx(&x, 20, STK_E_CORRUPT, 0, "not an index");
    for (int code = 0; code < 12; code++) {
        make_idx(&x, code, 5, lengths, offsets, 5, list);
        check_idx(&x, 1000, code >= 1 && code <= 8 ? STK_OK : STK_E_CORRUPT, 17, "invalid token type");
    }
    begin_idx(&x, 8, UINT64_C(1) << 61, 5);
    check_idx(&x, 20, STK_E_TRUNCATED, 18, "room for");
    begin_idx(&x, 8, 0, UINT64_MAX);
    check_idx(&x, 20, STK_E_TRUNCATED, 18, "room for");
    begin_idx(&x, 8, 0, 0);
    check_idx(&x, 20, STK_OK, -1, NULL);

    memcpy(other, lengths, sizeof other);
    other[1] = -1;
    make_idx(&x, 8, 5, other, offsets, 5, list);
    check_idx(&x, 20, STK_E_CORRUPT, 38, "-1 tokens");
    other[1] = INT32_MAX;
    make_idx(&x, 8, 5, other, offsets, 5, list);
    check_idx(&x, 20, STK_E_CORRUPT, 34 + 20 + 8, "2147483647 tokens");
    for (int i = 0; i < 2; i++) {
        memcpy(other_offsets, offsets, sizeof other_offsets);
        other_offsets[2] = i == 0 ? -1 : INT64_MAX;
        make_idx(&x, 8, 5, lengths, other_offsets, 5, list);
        check_idx(&x, 20, STK_E_CORRUPT, 34 + 20 + 16, "0 tokens at byte");
    }
    for (int i = 0; i < 5; i++) {
        static const int64_t wrong[5] = {1, -1, 1, 6, 3};

        memcpy(other_list, list, sizeof other_list);
        other_list[i] = wrong[i];
        make_idx(&x, 8, 5, lengths, offsets, 5, other_list);
        check_idx(&x, 20, STK_E_CORRUPT, 34 + 60 + 8 * i, "invalid first sequence of a document");
    }
}

static void test_no_memory(void **state)
{
    static const stki_reader_opts opts = {.access = STKI_ACCESS_PREAD};
    stki_memory_stats before, after;
    struct idx x;
    stk_error err;
    int64_t n;

    (void)state;
    write_pair(&x);
    stki_memory_read(STKI_MEM_HOST, &before);
    for (n = 1;; n++) {
        stki_reader *reader;
        stki_scratch scratch;
        stk_tensor sample;
        stk_status status;

        stki_scratch_init(&scratch);
        stki_memory_fail_at(n);
        status = open_member(stkt_path("m"), "documents", &opts, &reader, &err);
        if (!status) {
            status = reader->ops->read(reader, 0, NULL, &scratch, &sample, &err);
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
    assert_true(n > 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_llmc_header),        cmocka_unit_test(test_llmc_windows),
        cmocka_unit_test(test_megatron_documents), cmocka_unit_test(test_megatron_gathered),
        cmocka_unit_test(test_megatron_gap),       cmocka_unit_test(test_megatron_members),
        cmocka_unit_test(test_megatron_changed),   cmocka_unit_test(test_megatron_limits),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
