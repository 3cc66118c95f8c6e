/* stki-threads */
/* Streams of tokens in loaders: windows that do not cross the ends of shards, at fixed, shifted and random offsets;
 * targets for the next token as views; documents, padded and packed, with segments and positions. Token i of shard s is
 * s * 1000 + i + 1, so each window shows where it comes from. */
#include "io_files.h"
#include "stk_test.h"
#include <stoker/loader.h>

enum { SHARDS = 3, END = 999 };
static const int64_t tokens_of[SHARDS] = {100, 37, 512};

/* Writes an llm.c shard of 16-bit tokens. */
static void write_shard(const char *name, int64_t first, int64_t count)
{
    const char *path = stkt_path(name);
    int32_t head[256] = {20240520, 1, (int32_t)count};

    stkt_write_file(path, head, sizeof head);
    for (int64_t i = 0; i < count; i++) {
        uint16_t token = (uint16_t)(first + i);

        stkt_append_file(path, &token, sizeof token);
    }
}

static void write_shards(void)
{
    for (int s = 0; s < SHARDS; s++) {
        char name[32];

        snprintf(name, sizeof name, "shard%d.bin", s);
        write_shard(name, s * 1000 + 1, tokens_of[s]);
    }
}

static STK_PRINTF(1, 2) stk_loader *open_text(const char *format, ...)
{
    char text[2048];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_ok(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err));
    return loader;
}

static STK_PRINTF(3, 4) void refuse_text(stk_status expected, const char *words, const char *format, ...)
{
    char text[2048];
    stk_loader *loader = NULL;
    stk_error err;
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert_status(stk_loader_open_text(text, stkt_dir, NULL, 0, &loader, &err), expected);
    assert_says(words);
}

/* Collects the first tokens of all windows of `length`; each window must be consecutive tokens of one shard. */
static int64_t first_tokens(stk_loader *loader, int64_t length, int64_t *firsts, int64_t room)
{
    stk_batch *batch;
    stk_status status;
    stk_error err;
    int64_t n = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t, inputs, targets;

        assert_ok(stk_batch_tensor(batch, "tokens", &t, &err));
        assert_ok(stk_batch_tensor(batch, "inputs", &inputs, &err));
        assert_ok(stk_batch_tensor(batch, "targets", &targets, &err));
        assert_int_equal(t.shape[1], length);
        assert_int_equal(inputs.shape[1], length - 1);
        assert_int_equal(targets.shape[1], length - 1);
        assert_int_equal(inputs.strides[0], t.strides[0]);
        assert_ptr_equal(inputs.data, t.data);
        assert_ptr_equal(targets.data, (char *)t.data + 4);
        for (int64_t r = 0; r < t.shape[0]; r++) {
            const int32_t *row = (const int32_t *)t.data + r * length;
            int64_t shard = row[0] / 1000;

            for (int64_t i = 1; i < length; i++)
                assert_int_equal(row[i], row[0] + i);
            assert_true(row[length - 1] <= shard * 1000 + tokens_of[shard]);
            assert_true(n < room);
            firsts[n++] = row[0];
        }
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    stk_loader_destroy(loader);
    return n;
}

#define WINDOWS                                                                                                  \
    "{dataset: {fields: {tokens: {path: 'shard*.bin', source: {window: {length: %d, stride: %d, offsets: %s}}, " \
    "dtype: "                                                                                                    \
    "int32, views: {inputs: [0, -1], targets: [1, null]}}}}, loader: {batch_size: 5, num_workers: %d, seed: 3, " \
    "num_epochs: %d, order: %s%s}}"

static void windows_stay_in_their_shard(void **state)
{
    static int64_t firsts[4000];

    (void)state;
    write_shards();
    for (int length = 2; length <= 40; length += 19)
        for (int stride = 1; stride <= 40; stride += 13) {
            int64_t n = first_tokens(open_text(WINDOWS, length, stride, "fixed", 2, 1, "sequential", ""), length,
                                     firsts, 4000),
                    at = 0;

            for (int s = 0; s < SHARDS; s++)
                for (int64_t i = 0; i + length <= tokens_of[s]; i += stride)
                    assert_int_equal(firsts[at++], s * 1000 + 1 + i);
            assert_int_equal(at, n);
        }
}

/* Each epoch has one grid of windows, with a separate offset in each shard, whatever the number of workers. */
static void shifted_windows(void **state)
{
    enum { LENGTH = 9, STRIDE = 8, EPOCHS = 30 };
    static int64_t firsts[6000], again[6000];
    bool offset_seen[STRIDE] = {false};
    int64_t n, an_epoch = 0;

    (void)state;
    write_shards();
    for (int s = 0; s < SHARDS; s++)
        an_epoch += (tokens_of[s] - LENGTH + 1 - STRIDE) / STRIDE + 1;
    for (int kind = 0; kind < 2; kind++) {
        const char *order = kind ? "random" : "sequential";

        n = first_tokens(open_text(WINDOWS, LENGTH, STRIDE, "shifted", 0, EPOCHS, order, ""), LENGTH, firsts, 6000);
        assert_int_equal(n, EPOCHS * an_epoch);
        assert_int_equal(
            first_tokens(open_text(WINDOWS, LENGTH, STRIDE, "shifted", 3, EPOCHS, order, ""), LENGTH, again, 6000), n);
        assert_memory_equal(firsts, again, (size_t)n * sizeof *firsts);
        for (int e = 0; e < EPOCHS; e++) {
            int64_t offset[SHARDS] = {-1, -1, -1}, windows[SHARDS] = {0};
            bool seen[3000] = {false};

            for (int64_t i = 0; i < an_epoch; i++) {
                int64_t first = firsts[e * an_epoch + i], shard = first / 1000, at = first % 1000 - 1;

                assert_false(seen[first]);
                seen[first] = true;
                offset[shard] = offset[shard] < 0 ? at % STRIDE : offset[shard];
                assert_int_equal(at % STRIDE, offset[shard]);
                windows[shard]++;
            }
            for (int s = 0; s < SHARDS; s++)
                assert_int_equal(windows[s], (tokens_of[s] - LENGTH + 1 - STRIDE) / STRIDE + 1);
            offset_seen[offset[0]] = true;
        }
    }
    for (int i = 0; i < STRIDE; i++)
        assert_true(offset_seen[i]);
    /* a shard with fewer window starts than the stride has one window */
    n = first_tokens(open_text(WINDOWS, 30, 500, "shifted", 0, 1, "sequential", ""), 30, firsts, 6000);
    assert_int_equal(n, 3);
}

static void shifted_mixture(void **state)
{
    static int64_t firsts[4000];
    stk_dataset_info info;
    stk_loader *loader;
    stk_error err;
    int64_t of[2] = {0}, n;

    (void)state;
    write_shards();
#define SHIFTED "source: {window: {length: 9, stride: 8, offsets: shifted}}"
    loader = open_text("{datasets: [{name: a, weight: 3, fields: {tokens: {path: [shard0.bin, shard1.bin], " SHIFTED
                       ", dtype: "
                       "int32, views: {inputs: [0, -1], targets: [1, null]}}}}, {name: b, weight: 1, fields: {tokens: "
                       "{path: shard2.bin, " SHIFTED "}}}], loader: {order: random, num_epochs: 4, batch_size: 4}}");
    assert_ok(stk_loader_dataset(loader, 0, &info, &err));
    assert_int_equal(info.positions, 14);             /* 11 + 3 windows */
    assert_int_equal(stk_loader_samples(loader), 18); /* 14 / 0.75 = 18.67 */
    n = first_tokens(loader, 9, firsts, 4000);
    for (int64_t i = 0; i < n; i++)
        of[firsts[i] >= 2000]++;
    assert_int_equal(of[0], 56);
    assert_int_equal(of[1], 16);
}

/* Windows at random offsets: an epoch has as many windows as fit without overlap, and none is repeated before all have
 * been delivered once. */
static void random_windows(void **state)
{
    static int64_t firsts[4000];
    int64_t starts = 0, an_epoch = 0, n;
    int seen[3000] = {0}, unlike = 0;

    (void)state;
    write_shards();
    for (int s = 0; s < SHARDS; s++) {
        starts += tokens_of[s] - 9 + 1;
        an_epoch += (tokens_of[s] - 9) / 8 + 1;
    }
    n = first_tokens(open_text(WINDOWS, 9, 8, "random", 2, 8, "random", ""), 9, firsts, 4000);
    assert_int_equal(n, 8 * an_epoch);
    for (int64_t i = 0; i < n; i++) {
        seen[firsts[i]]++;
        unlike += (firsts[i] - 1) % 8 != 0;
    }
    for (int i = 0; i < 3000; i++)
        assert_true(seen[i] <= n / starts + 1);
    assert_true(unlike > n / 2);
    n = first_tokens(open_text(WINDOWS, 9, 8, "random", 2, 1, "random", ", epoch_length: 1000"), 9, firsts, 4000);
    assert_int_equal(n, 1000);
}

static void windows_refused(void **state)
{
    (void)state;
    write_shards();
    refuse_text(STK_E_UNSUPPORTED, "shifted", WINDOWS, 9, 8, "shifted", 0, 1, "block", "");
    refuse_text(STK_E_UNSUPPORTED, "shifted", WINDOWS, 9, 8, "shifted", 0, 1, "random", ", split: val");
    refuse_text(STK_E_UNSUPPORTED, "shifted", WINDOWS, 9, 8, "shifted", 0, 1, "random", ", indices: [1]");
    refuse_text(STK_E_CONFIG, "differs",
                "{dataset: {fields: {a: {path: shard0.bin, source: {window: {length: 9, offsets: shifted}}}, b: {path: "
                "shard0.bin, source: {window: {length: 9, stride: 1}}}}}}");
    refuse_text(STK_E_CONFIG, "offsets", WINDOWS, 9, 8, "anywhere", 0, 1, "random", "");
}

/* ---- documents ---- */

/* Document d: END, then d % 23 tokens 10 * d + i. */
enum { DOCUMENTS = 200 };

static int64_t document_length(int64_t d)
{
    return 1 + d % 23;
}

static int32_t document_token(int64_t d, int64_t i)
{
    return i == 0 ? END : (int32_t)(1000 + 30 * d + i);
}

static void write_documents(const char *name)
{
    static uint16_t tokens[DOCUMENTS * 23];
    const char *path = stkt_path(name);
    int64_t n = 0;

    for (int64_t d = 0; d < DOCUMENTS; d++)
        for (int64_t i = 0; i < document_length(d); i++)
            tokens[n++] = (uint16_t)document_token(d, i);
    stkt_write_file(path, tokens, (size_t)n * sizeof *tokens);
}

#define DOCUMENT_FIELD "path: docs.bin, source: {format: raw, dtype: uint16, documents: {begin: 999}%s}, dtype: int32"

static void documents_are_padded(void **state)
{
    stk_loader *loader;
    stk_batch *batch;
    stk_error err;
    int64_t rows = 0;

    (void)state;
    write_documents("docs.bin");
    loader = open_text("{dataset: {fields: {tokens: {" DOCUMENT_FIELD
                       ", pad: {value: -1}}}}, loader: {batch_size: 8, shuffle: "
                       "true, bucket_by: tokens, bucket_window: 4}}",
                       "");
    for (; stk_loader_next(loader, &batch, &err) == STK_OK; stk_batch_release(batch)) {
        stk_tensor t;

        assert_ok(stk_batch_tensor(batch, "tokens", &t, &err));
        for (int64_t r = 0; r < t.shape[0]; r++, rows++) {
            int64_t d = stk_batch_indices(batch)[r];

            for (int64_t i = 0; i < t.shape[1]; i++)
                assert_int_equal(((const int32_t *)t.data)[r * t.shape[1] + i],
                                 i < document_length(d) ? document_token(d, i) : -1);
        }
    }
    assert_int_equal(rows, DOCUMENTS);
    stk_loader_destroy(loader);
}

/* If the separating token never occurs, the whole file is one document, and a note says so. */
static void a_separator_that_never_occurs(void **state)
{
    static const char *const cuts[] = {"begin: 7", "end: 7", "begin: 999"};

    (void)state;
    write_documents("docs.bin");
    for (int c = 0; c < 3; c++) {
        stk_loader *loader = open_text("{dataset: {fields: {t: {path: docs.bin, source: {format: raw, dtype: uint16, "
                                       "documents: {%s}}, pad: batch}}}, loader: {}}",
                                       cuts[c]);
        bool noted = false;

        for (int i = 0; i < stk_loader_note_count(loader); i++)
            noted |= strstr(stk_loader_note(loader, i), "does not occur, so the file is a single document") != NULL;
        assert_int_equal(noted, c < 2);
        assert_int_equal(stk_loader_samples(loader), c < 2 ? 1 : DOCUMENTS);
        stk_loader_destroy(loader);
    }
}

/* Checks that the windows contain every token of every document once, with its segment and position. */
static void check_packed(stk_loader *loader, int64_t length, int32_t empty, int64_t most_windows)
{
    int seen[DOCUMENTS][23] = {{0}};
    stk_batch *batch;
    stk_status status;
    stk_error err;
    int64_t windows = 0;

    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor t, segments, positions, inputs;

        assert_ok(stk_batch_tensor(batch, "tokens", &t, &err));
        assert_ok(stk_batch_tensor(batch, "tokens.segments", &segments, &err));
        assert_ok(stk_batch_tensor(batch, "tokens.positions", &positions, &err));
        assert_ok(stk_batch_tensor(batch, "inputs.positions", &inputs, &err));
        assert_ptr_equal(inputs.data, positions.data);
        assert_int_equal(inputs.shape[1], length - 1);
        assert_int_equal(t.shape[1], length);
        assert_int_equal(segments.dtype, STK_I32);
        for (int64_t r = 0; r < t.shape[0]; r++, windows++) {
            const int32_t *row = (const int32_t *)t.data + r * length;
            const int32_t *segment = (const int32_t *)segments.data + r * length;
            const int32_t *position = (const int32_t *)positions.data + r * length;

            assert_int_equal(segment[0], 1);
            for (int64_t i = 0; i < length; i++) {
                if (segment[i] == 0) {
                    assert_int_equal(row[i], empty);
                    assert_int_equal(position[i], 0);
                    assert_true(i == length - 1 || segment[i + 1] == 0);
                    continue;
                }
                if (i > 0 && segment[i] == segment[i - 1])
                    assert_int_equal(position[i], position[i - 1] + 1);
                else
                    assert_int_equal(position[i], 0);
                if (i > 0)
                    assert_true(segment[i] == segment[i - 1] || segment[i] == segment[i - 1] + 1);
                if (row[i] != END) {
                    int64_t d = (row[i] - 1000) / 30, at = (row[i] - 1000) % 30;

                    assert_true(at < document_length(d));
                    seen[d][at]++;
                    if (position[i] > 0 && row[i - 1] != END)
                        assert_int_equal(row[i - 1], row[i] - 1);
                }
            }
        }
        stk_batch_release(batch);
    }
    if (status != STK_END)
        fail_msg("%s", err.message);
    for (int64_t d = 0; d < DOCUMENTS; d++)
        for (int64_t i = 1; i < document_length(d); i++)
            assert_int_equal(seen[d][i], 1);
    assert_true(windows <= most_windows);
    stk_loader_destroy(loader);
}

static void documents_are_packed(void **state)
{
    int64_t total = 0;

    (void)state;
    write_documents("docs.bin");
    for (int64_t d = 0; d < DOCUMENTS; d++)
        total += document_length(d);
    for (int access = 0; access < 2; access++)
        for (int length = 5; length <= 65; length += 20)
            for (int workers = 0; workers <= 3; workers += 3)
                check_packed(open_text("{dataset: {fields: {tokens: {" DOCUMENT_FIELD
                                       ", views: {inputs: [0, -1]}}}}, loader: "
                                       "{batch_size: 4, shuffle: true, num_workers: %d, access: %s}}",
                                       length == 45   ? ", pack: {length: 45, value: 65535}"
                                       : length == 5  ? ", pack: 5"
                                       : length == 25 ? ", pack: 25"
                                                      : ", pack: 65",
                                       workers, access ? "pread" : "mmap"),
                             length, length == 45 ? 65535 : 0, total / length + 1 + (length == 5 ? 30 : 1));
}

/* A different packing is a different order, so a saved state must be rejected. */
static void packing_is_in_the_fingerprint(void **state)
{
    char prints[3][32];
    static const char *const packs[] = {", pack: 65", ", pack: 65", ", pack: {length: 65, fit: apart}"};

    (void)state;
    write_documents("docs.bin");
    for (int i = 0; i < 3; i++) {
        stk_loader *loader = open_text("{dataset: {fields: {tokens: {" DOCUMENT_FIELD "}}}}", packs[i]);
        const char *at = strstr(stk_loader_options_json(loader), "\"fingerprint\": \"");

        assert_non_null(at);
        snprintf(prints[i], sizeof prints[i], "%.16s", at + strlen("\"fingerprint\": \""));
        stk_loader_destroy(loader);
    }
    assert_string_equal(prints[0], prints[1]);
    assert_string_not_equal(prints[0], prints[2]);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Appends the elements of a batch's rows that are not empty. */
static int64_t collect(const stk_batch *batch, int64_t *out)
{
    stk_tensor t, segments;
    stk_error err;
    int64_t n = 0;

    if (stk_batch_tensor(batch, "documents.values", &t, &err) == STK_OK) {
        memcpy(out, t.data, (size_t)t.shape[0] * sizeof *out);
        return t.shape[0];
    }
    assert_ok(stk_batch_tensor(batch, "documents", &t, &err));
    assert_ok(stk_batch_tensor(batch, "documents.segments", &segments, &err));
    for (int64_t i = 0; i < t.shape[0] * t.shape[1]; i++)
        if (((const int32_t *)segments.data)[i] > 0)
            out[n++] = ((const int64_t *)t.data)[i];
    return n;
}

/* File pairs written by Megatron's own code give the same tokens whether documents are packed or delivered one by
 * one. */
static void megatron_is_packed(void **state)
{
    static const char *const files[] = {"mega_u16", "mega_i32", "mega_modes"};
    static int64_t plain[100000], packed[100000];

    (void)state;
    for (int f = 0; f < 3; f++)
        for (int access = 0; access < 2; access++) {
            int64_t counts[2] = {0};

            for (int pack = 0; pack < 2; pack++) {
                int64_t *tokens = pack ? packed : plain;
                stk_batch *batch;
                stk_status status;
                stk_error err;
                stk_loader *loader =
                    open_text("{dataset: {fields: {documents: {path: " STKT_TESTS_DIR "/oracle/tokens/%s.idx%s, dtype: "
                              "int64}}}, loader: {shuffle: true, batch_size: 3, access: %s}}",
                              files[f], pack ? ", source: {pack: 32}" : "", access ? "pread" : "mmap");

                while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
                    counts[pack] += collect(batch, tokens + counts[pack]);
                    stk_batch_release(batch);
                }
                if (status != STK_END)
                    fail_msg("%s", err.message);
                stk_loader_destroy(loader);
                qsort(tokens, (size_t)counts[pack], sizeof *tokens, by_value);
            }
            assert_true(counts[0] > 0);
            assert_int_equal(counts[0], counts[1]);
            assert_memory_equal(plain, packed, (size_t)counts[0] * sizeof *plain);
        }
}

static void packing_reports_how_full_windows_are(void **state)
{
    static const char *const notes[] = {"t: 2 packed windows of 8 elements, 75.0 % of which are used",
                                        "t: 1 packed window of 16 elements, 75.0 % of which are used"};

    (void)state;
    write_shard("three.bin", 1, 12); /* one document of 12 tokens */
    for (int k = 0; k < 2; k++) {
        stk_loader *loader = open_text(
            "{dataset: {fields: {t: {path: three.bin, source: {documents: {begin: 999}, pack: %d}}}}}", 8 << k);
        bool noted = false;

        for (int i = 0; i < stk_loader_note_count(loader); i++)
            noted = noted || strstr(stk_loader_note(loader, i), notes[k]);
        assert_true(noted);
        stk_loader_destroy(loader);
    }
}

static void packing_refused(void **state)
{
    (void)state;
    write_documents("docs.bin");
#define REFUSE(status, words, rest) \
    refuse_text(status, words, "{dataset: {fields: {tokens: {" DOCUMENT_FIELD "}}}}", rest)
    REFUSE(STK_E_CONFIG, "window", ", pack: 5, window: {length: 3}");
    REFUSE(STK_E_CONFIG, "length is missing", ", pack: {overlap: 1}");
    REFUSE(STK_E_CONFIG, "less than the length", ", pack: {length: 5, overlap: 5}");
    REFUSE(STK_E_CONFIG, "pack.value", ", pack: {length: 5, value: 65536}");
    REFUSE(STK_E_CONFIG, "a value that fits in uint16, the type of the stored tokens",
           ", pack: {length: 5, value: -100}");
    REFUSE(STK_E_CONFIG, "1 to", ", pack: 0");
    refuse_text(STK_E_CONFIG, "either begin or end",
                "{dataset: {fields: {t: {path: docs.bin, source: {format: raw, dtype: uint16, documents: {}}}}}}");
    refuse_text(STK_E_CONFIG, "source.pack",
                "{dataset: {fields: {t: {path: docs.bin, source: {format: raw, dtype: uint16, pack: 5}}}}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_stay_in_their_shard),
        cmocka_unit_test(shifted_windows),
        cmocka_unit_test(shifted_mixture),
        cmocka_unit_test(random_windows),
        cmocka_unit_test(windows_refused),
        cmocka_unit_test(documents_are_padded),
        cmocka_unit_test(a_separator_that_never_occurs),
        cmocka_unit_test(documents_are_packed),
        cmocka_unit_test(packing_is_in_the_fingerprint),
        cmocka_unit_test(megatron_is_packed),
        cmocka_unit_test(packing_refused),
        cmocka_unit_test(packing_reports_how_full_windows_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
