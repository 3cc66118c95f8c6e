/* stress_soak.c: opens loaders of every kind of file, and at random reads, holds and exports batches, saves and
 * restores states, seeks, makes samples fail, and stops early, for a number of turns or seconds. Every batch is
 * compared with the batch that a second loader, which has no workers and no faults, reads at the same step.
 *
 *     stress_soak [--turns N | --seconds N] [--seed N]
 *
 * scripts/soak runs it under ThreadSanitizer and AddressSanitizer. If a turn fails, its seed is printed. */
#include "clock.h"
#include "faulty.h"
#include "loader_test.h"
#include "test_random.h"
#include <dlpack/dlpack.h>
#include <stoker/dataset.h>
#include <unistd.h>

enum { COUNT = 157, PIXELS = 6 * 5 * 3, MOST_HELD = 8, STATES = 4, MOST_BAD = 3 };

static char folder[512];
static uint64_t turn_seed;
static int64_t turns, batches, restores, failures, breaks;

#define MUST(condition)                                                                                               \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "stress_soak: seed %llu: %s:%d: %s\n", (unsigned long long)turn_seed, __FILE__, __LINE__, \
                    #condition);                                                                                      \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)
#define MUST_OK(call)                                                                                               \
    do {                                                                                                            \
        stk_status status_ = (call);                                                                                \
        if (status_ != STK_OK) {                                                                                    \
            fprintf(stderr, "stress_soak: seed %llu: %s:%d: %s: %s: %s\n", (unsigned long long)turn_seed, __FILE__, \
                    __LINE__, #call, stk_status_name(status_), err.message);                                        \
            abort();                                                                                                \
        }                                                                                                           \
    } while (0)

/* ---- files ---- */

static uint8_t pixels[COUNT][PIXELS];
static int64_t labels[COUNT];

static const char *in_folder(const char *name)
{
    static char path[4][600];
    static int next;

    next = (next + 1) % 4;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void write_arrays(const char *name, const char *format, int level, int64_t chunk_rows)
{
    static const int64_t shape[3] = {6, 5, 3};
    stk_writer_opts opts = STK_WRITER_OPTS_INIT;
    stk_writer *writer;
    stk_error err;

    opts.level = level;
    opts.chunk_rows = chunk_rows;
    opts.threads = 1;
    MUST_OK(stk_writer_create(in_folder(name), format, &opts, &writer, &err));
    MUST_OK(stk_writer_begin(writer, "x", STK_U8, 3, shape, COUNT, &err));
    MUST_OK(stk_writer_append(writer, pixels, COUNT, &err));
    MUST_OK(stk_writer_end(writer, &err));
    if (strcmp(format, "npy") != 0) {
        MUST_OK(stk_writer_begin(writer, "y", STK_I64, 0, NULL, COUNT, &err));
        MUST_OK(stk_writer_append(writer, labels, COUNT, &err));
        MUST_OK(stk_writer_end(writer, &err));
    }
    MUST_OK(stk_writer_commit(writer, &err));
}

static void write_beton(void)
{
    static const stk_beton_field fields[] = {{.name = "x", .kind = STK_BETON_IMAGE},
                                             {.name = "y", .kind = STK_BETON_INT}};
    stk_beton_writer *writer;
    stk_error err;

    MUST_OK(stk_beton_create(in_folder("s.beton"), fields, 2, COUNT, NULL, &writer, &err));
    for (int64_t i = 0; i < COUNT; i++) {
        stk_beton_value values[2] = {{.bytes = pixels[i], .size = PIXELS, .height = 6, .width = 5},
                                     {.integer = labels[i]}};

        MUST_OK(stk_beton_append(writer, values, 1, &err));
    }
    MUST_OK(stk_beton_commit(writer, &err));
}

static void write_files(void)
{
    uint64_t random = 77;

    for (int64_t i = 0; i < COUNT; i++) {
        labels[i] = i * 7;
        for (int k = 0; k < PIXELS; k++)
            pixels[i][k] = (uint8_t)stkt_random(&random);
    }
    write_arrays("x.npy", "npy", 0, 0);
    write_arrays("stored.npz", "npz", 0, 0);
    write_arrays("deflated.npz", "npz", 6, 0);
    write_arrays("s.pt", "pt", 0, 0);
    write_arrays("s.safetensors", "safetensors", 0, 0);
    write_arrays("contiguous.h5", "hdf5", 0, 0);
    write_arrays("chunked.h5", "hdf5", 6, 13);
    write_beton();
}

/* Fields of configs; @ is replaced by the folder. */
static const char *const data_sets[] = {
    "x: {path: '@/x.npy', source: {layout: nhwc}, layout: nchw, transforms: [{normalize: imagenet}]}",
    "x: {path: '@/stored.npz', source: {name: x, layout: nhwc}, transforms: [{random_crop: {size: [4, 4]}}]}",
    "x: {path: '@/deflated.npz', source: {name: x}, dtype: f16}",
    "x: {path: '@/s.pt', source: {name: x}}",
    "y: {path: '@/s.safetensors', source: {name: y}, dtype: i32}",
    "x: {path: '@/contiguous.h5', source: {name: x}}",
    "x: {path: '@/chunked.h5', source: {name: x}, dtype: f32}",
    "x: {path: '@/s.beton', source: {name: x}, transforms: [{resize: [9, 7]}]}",
    "image: {path: '" STKT_TESTS_DIR "/oracle/jpeg_folder', transforms: [{random_resized_crop: {size: 12}}]}",
    "t: {path: '" STKT_TESTS_DIR
    "/oracle/tokens/llmc_gpt2.bin', source: {window: {length: 17, stride: 8}}, dtype: i32}",
    "m: {synthetic: {count: 157, shape: [50]}}",
    "s: {synthetic: {count: 157, shape: [5, 4], dtype: f32, form: scratch}}",
    ("b: {synthetic: {count: 157, shape: [30], form: block}}, v: {synthetic: {count: 157, shape: [9], dtype: u16, "
     "min_length: 0, form: scratch}}"),
};

/* ---- one turn ---- */

typedef struct turn {
    uint64_t random;
    stk_loader *loader, *reference;
    int64_t samples, steps, epochs, prefetch;
    bool on_device, skips, replaces;
    stki_faulty_opts faults[MOST_BAD];
    int fault_count;
    stk_batch *held[MOST_HELD];
    DLManagedTensor *exported[MOST_HELD];
    int held_count, exported_count;
    struct {
        uint8_t bytes[STK_STATE_MAX];
        int64_t size;
    } states[STATES];
    int state_count;
} turn;

static int64_t below(turn *t, int64_t bound)
{
    return (int64_t)(stkt_random(&t->random) % (uint64_t)bound);
}

static stk_status wrap(void *context, const char *field, stki_reader **reader, stk_error *err)
{
    turn *t = context;
    stk_status status = STK_OK;

    (void)field;
    for (int i = 0; i < t->fault_count && status == STK_OK; i++) {
        stki_reader *wrapped = NULL;

        status = stki_faulty_open(*reader, &t->faults[i], &wrapped, err);
        *reader = wrapped;
    }
    return status;
}

static stk_status open_text(turn *t, const char *text, bool faulty, stk_loader **out, stk_error *err)
{
    stki_document *document;
    stki_loader_config *config;
    stk_status status;

    if ((status = stki_document_parse(text, (int64_t)strlen(text), "soak", NULL, &document, err)) != STK_OK ||
        (status = stki_config_read(document, NULL, &config, err)) != STK_OK)
        return status;
    if (faulty) {
        config->wrap_reader = wrap;
        config->wrap_context = t;
    }
    return stki_loader_open_config(config, out, err);
}

static void choose_faults(turn *t)
{
    t->fault_count = below(t, 3) == 0 ? (int)below(t, MOST_BAD + 1) : 0;
    for (int i = 0; i < t->fault_count; i++) {
        t->faults[i] = (stki_faulty_opts)STKI_FAULTY_OPTS_INIT;
        t->faults[i].status = STK_E_CORRUPT;
        if (below(t, 4) == 0)
            t->faults[i].all_slow_ns = 20000;
        else
            t->faults[i].fail_at = below(t, 12);
    }
}

static void open_turn(turn *t)
{
    static const char *const orders[] = {"sequential", "random", "block"}, *const lasts[] = {"partial", "drop", "pad"},
                             *const policies[] = {"fail", "skip", "substitute"},
                             *const helps[] = {"auto", "true", "false"};
    const char *fields = data_sets[below(t, (int64_t)(sizeof data_sets / sizeof data_sets[0]))];
    int policy = (int)below(t, 3);
    char common[1024], dataset[1024], text[4096];
    stk_error err;

    choose_faults(t);
    t->prefetch = 1 + below(t, 6);
    t->epochs = 1 + below(t, 4);
    t->on_device = below(t, 4) == 0;
    t->skips = policy == 1;
    t->replaces = policy == 2;
    {
        const char *at = strchr(fields, '@');

        snprintf(dataset, sizeof dataset, "%.*s%s%s", at ? (int)(at - fields) : 0, fields, at ? folder : "",
                 at ? at + 1 : fields);
    }
    snprintf(common, sizeof common,
             "global_batch_size: %d, order: %s, seed: %d, num_epochs: %d, last_batch: %s, world_size: 3, rank: %d, "
             "launcher: "
             "none, on_error: %s%s, allow_empty: true, access: %s",
             (int)(1 + below(t, 20)), orders[below(t, 3)], (int)below(t, 5), (int)t->epochs, lasts[below(t, 3)],
             (int)below(t, 3), policies[policy], policy ? ", max_error_fraction: 1" : "",
             below(t, 2) ? "pread" : "auto");
    snprintf(text, sizeof text, "{dataset: {fields: {%s}}, loader: {%s, num_workers: 0, prefetch: 2}}", dataset,
             common);
    MUST_OK(open_text(t, text, false, &t->reference, &err));
    snprintf(text, sizeof text,
             "{dataset: {fields: {%s}}, loader: {%s, num_workers: %d, prefetch: %d, digest: %s, consumer_helps: %s%s}}",
             dataset, common, (int)below(t, 9), (int)t->prefetch, below(t, 2) ? "order" : "none", helps[below(t, 3)],
             t->on_device ? ", device: host, device_prefetch: 3, convert: host" : "");
    MUST_OK(open_text(t, text, true, &t->loader, &err));
    if (t->on_device)
        t->prefetch = 3;
    t->samples = stk_loader_samples(t->loader);
    t->steps = stk_loader_steps_per_epoch(t->loader);
    for (int i = 0; i < t->fault_count; i++)
        if (t->faults[i].fail_at >= t->samples)
            t->faults[i].fail_at = -1;
}

static bool is_bad(const turn *t, int64_t sample)
{
    for (int i = 0; i < t->fault_count; i++)
        if (t->faults[i].fail_at == sample)
            return true;
    return false;
}

static bool same_row(const turn *t, const stk_batch *a, int64_t row_a, const stk_batch *b, int64_t row_b)
{
    for (int i = 0; i < stk_loader_field_count(t->loader); i++) {
        stk_field_info info;
        stk_tensor x, y, here;
        int64_t bytes;
        stk_error err;
        bool same;

        MUST(stk_loader_field(t->reference, i, &info, NULL) == STK_OK);
        if (stk_batch_tensor(a, info.name, &x, NULL) != STK_OK || stk_batch_tensor(b, info.name, &y, NULL) != STK_OK)
            continue; /* samples of varying length: check() compares the whole batch */
        MUST_OK(stk_tensor_to_device(&x, stk_device_cpu(), &here, &err));
        bytes = here.strides[0];
        MUST(bytes == y.strides[0]);
        same = memcmp((char *)here.data + row_a * bytes, (char *)y.data + row_b * bytes, (size_t)bytes) == 0;
        stk_tensor_release(&here);
        if (!same)
            return false;
    }
    return true;
}

/* Compares a batch with that of the reference loader at the same step. */
static void check(turn *t, const stk_batch *batch)
{
    int64_t rows = stk_batch_rows(batch), row = 0;
    bool pads, faulty = false;
    stk_batch *same;
    stk_error err;

    MUST_OK(stk_loader_seek(t->reference, stk_batch_epoch(batch), stk_batch_step(batch), &err));
    MUST_OK(stk_loader_next(t->reference, &same, &err));
    MUST(stk_batch_last_of_epoch(same) == stk_batch_last_of_epoch(batch));
    pads = rows == stk_batch_rows(same);
    for (int64_t r = 0; r < stk_batch_rows(same); r++) {
        int64_t sample = stk_batch_indices(same)[r];

        faulty = faulty || is_bad(t, sample);
        if (is_bad(t, sample) && t->skips && !pads)
            continue;
        MUST(row < rows);
        if (is_bad(t, sample) && t->replaces)
            MUST(!is_bad(t, stk_batch_indices(batch)[row]));
        else
            MUST(stk_batch_indices(batch)[row] == sample);
        if (!is_bad(t, sample)) {
            MUST(stk_batch_mask(batch)[row] == stk_batch_mask(same)[r]);
            MUST(same_row(t, batch, row, same, r));
        } else if (t->skips) {
            MUST(stk_batch_mask(batch)[row] == 0);
        }
        row++;
    }
    MUST(row == rows);
    if (!faulty && !t->on_device)
        MUST(stkt_hash_batch(0, t->loader, batch) == stkt_hash_batch(0, t->reference, same));
    stk_batch_release(same);
    batches++;
}

static void release_one(turn *t, int which)
{
    stk_batch_release(t->held[which]);
    t->held[which] = t->held[--t->held_count];
}

static void drop_exports(turn *t)
{
    while (t->exported_count > 0) {
        DLManagedTensor *tensor = t->exported[--t->exported_count];

        tensor->deleter(tensor);
    }
}

static void go_anywhere(turn *t)
{
    stk_error err;

    if (t->state_count > 0 && below(t, 2)) {
        int which = (int)below(t, t->state_count);

        MUST_OK(stk_loader_restore(t->loader, t->states[which].bytes, t->states[which].size, &err));
    } else {
        MUST_OK(stk_loader_seek(t->loader, below(t, t->epochs), below(t, t->steps + 1), &err));
    }
    restores++;
}

static void take(turn *t)
{
    stk_batch *batch;
    stk_status status;
    stk_error err;

    if (t->exported_count + t->held_count >= t->prefetch) {
        drop_exports(t);
        while (t->held_count > 0)
            release_one(t, t->held_count - 1);
    }
    status = stk_loader_next_timeout(t->loader, 600 * STKI_SECOND, &batch, &err);
    if (status == STK_OK) {
        check(t, batch);
        t->held[t->held_count++] = batch;
        if (!t->on_device && t->exported_count < MOST_HELD && below(t, 5) == 0) {
            char name[128];

            MUST_OK(stk_loader_tensor_name(t->loader, 0, name, sizeof name, &err));
            MUST_OK(stk_batch_dlpack(batch, name, &t->exported[t->exported_count], &err));
            t->exported_count++;
        }
        if (below(t, 3) > 0)
            release_one(t, t->held_count - 1);
        return;
    }
    if (status != STK_END) {
        failures++;
        if (t->fault_count == 0 || (status != STK_E_CORRUPT && status != STK_E_EMPTY)) {
            fprintf(stderr, "stress_soak: %s\n", err.message);
            MUST(status == STK_OK); /* fails, because no injected fault explains the error */
        }
    }
    if (t->steps > 0)
        go_anywhere(t);
}

static void save(turn *t)
{
    int which = t->state_count < STATES ? t->state_count++ : (int)below(t, STATES);
    stk_error err;

    MUST_OK(stk_loader_save(t->loader, t->states[which].bytes, STK_STATE_MAX, &t->states[which].size, &err));
}

static void run_turn(uint64_t seed)
{
    turn *t = calloc(1, sizeof *t);
    int64_t actions;

    turn_seed = t->random = seed;
    open_turn(t);
    actions = below(t, 60);
    for (int64_t i = 0; i < actions; i++)
        switch (below(t, 12)) {
        case 0:
            save(t);
            break;
        case 1:
            if (t->steps > 0)
                go_anywhere(t);
            break;
        case 2:
            if (t->held_count > 0)
                release_one(t, (int)below(t, t->held_count));
            break;
        case 3:
            drop_exports(t);
            break;
        default:
            take(t);
        }
    if (below(t, 2))
        (void)stk_loader_close(t->loader, NULL);
    if (below(t, 2)) { /* held and exported batches outlive the loader */
        stk_loader_destroy(t->loader);
        t->loader = NULL;
    }
    breaks++;
    while (t->held_count > 0)
        release_one(t, (int)below(t, t->held_count));
    drop_exports(t);
    stk_loader_destroy(t->loader);
    stk_loader_destroy(t->reference);
    free(t);
}

int main(int argc, char **argv)
{
    int64_t wanted = 60, seconds = 0, end;
    uint64_t seed = 1;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--turns") == 0)
            wanted = strtoll(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seconds") == 0)
            seconds = strtoll(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
    }
    snprintf(folder, sizeof folder, "%s", stkt_make_dir());
    write_files();
    end = stki_now_ns() + seconds * STKI_SECOND;
    for (turns = 0; seconds > 0 ? stki_now_ns() < end : turns < wanted; turns++)
        run_turn(seed + (uint64_t)turns);
    stkt_remove_dir(folder);
    printf("soak: %lld loaders, %lld batches compared, %lld restores, %lld errors met\n", (long long)turns,
           (long long)batches, (long long)restores, (long long)failures);
    return 0;
}
