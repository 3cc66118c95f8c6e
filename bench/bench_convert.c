/* bench_convert.c: measures the conversion kernels without the loader, together with plain loops in the same run.
 *
 *     bench_convert [hot | w1 | w2 | w3 | auto]... [--dir=DIR] [--rounds=N] [--threads=N] [--slice=N] [--only=WORDS]
 *
 * hot   a single image, converted repeatedly with source and destination in the L2 cache: the cost of the arithmetic;
 *       also prints a table of the AVX-512 kernels relative to the AVX2 kernels and the compiler's plain loops
 * w2    random rows of 150,528 bytes from a mapped file to the rows of four batches in rotation, with both kinds of
 *       stores
 * w1    the same with images of 3,072 bytes
 * w3    the same with f32 rows of 2,048 bytes
 * auto  rings of several sizes, filled and read alternately by one thread, with both kinds of stores: finds the size at
 *       which STKI_STORES_AUTO should switch
 *
 * Files are created in DIR (by default the working directory), mapped, and unlinked immediately. Each output line has
 * the group, the variant, the number of threads, rows/s, and bytes read and written per second. */
#include "bench_support.h"
#include "convert.h"
#include "limit_kernels.h"
#include <fcntl.h>
#include <unistd.h>

enum { SLOTS = 4, TILE_BYTES = 512 << 10, HOT_IMAGES = 100 };

static const char *dir = ".", *only;            /* only: measure variants whose names contain this */
static int rounds = 7, only_threads, slice = 1; /* slice: divides the rows of a batch and multiplies the slots */

/* ---- conversions ---- */

enum shape { HWC_CHW, HWC_HWC, CHW_CHW, CHW_HWC, CROP_CHW, CROP_HWC, MIRROR_CHW, ROW };

struct job {
    stki_convert *convert;
    void (*plain)(void *dst, const void *src, size_t elements); /* used if `convert` is NULL */
    const uint8_t *rows;
    const uint32_t *order;
    uint8_t *slots;
    int64_t row_count, row_bytes, out_bytes, batch, batches, slot_count, src_offset; /* batches: per pass */
    size_t elements;
};

/* Creates the conversion of an image of `side` x `side` pixels and three channels, or of a row. */
static stki_convert *make(enum shape shape, stk_dtype src, stk_dtype dst, int64_t side, enum stki_isa isa,
                          enum stki_stores stores, bool arithmetic)
{
    static const float scaled_a[3] = {0.9157623f, 0.9362034f, 0.9320425f};
    static const float scaled_b[3] = {-113.2569f, -108.8617f, -96.49435f};
    const int64_t s = stk_dtype_size(src), d = stk_dtype_size(dst);
    bool quantized = arithmetic && (dst == STK_I8 || dst == STK_U8);
    stki_convert_desc desc = {.src_dtype = src, .dst_dtype = dst, .ndim = 3};
    stki_convert *convert = NULL;
    stk_error err;

    desc.shape[0] = desc.shape[1] = side;
    desc.shape[2] = 3;
    desc.src_strides[0] = 3 * side * s;
    desc.src_strides[1] = 3 * s;
    desc.src_strides[2] = s;
    desc.dst_strides[0] = side * d;
    desc.dst_strides[1] = d;
    desc.dst_strides[2] = side * side * d;
    if (shape == HWC_HWC || shape == CROP_HWC)
        for (int k = 0; k < 3; k++)
            desc.dst_strides[k] = desc.src_strides[k] / s * d;
    if (shape == CHW_HWC) {
        for (int k = 0; k < 3; k++) {
            int64_t swap = desc.src_strides[k] / s * d;
            desc.src_strides[k] = desc.dst_strides[k] / d * s;
            desc.dst_strides[k] = swap;
        }
    }
    if (shape == CHW_CHW)
        for (int k = 0; k < 3; k++)
            desc.src_strides[k] = desc.dst_strides[k] / d * s;
    if (shape == CROP_CHW || shape == CROP_HWC)
        desc.src_strides[0] = 3 * 256 * s;
    if (shape == MIRROR_CHW)
        desc.src_strides[1] = -3 * s;
    if (shape == ROW) {
        desc.ndim = 1;
        desc.shape[0] = side;
        desc.src_strides[0] = s;
        desc.dst_strides[0] = d;
    }
    desc.affine = arithmetic;
    desc.channel_axis = shape == ROW ? -1 : 2;
    desc.channels = shape == ROW ? 1 : 3;
    desc.a = quantized ? scaled_a : limit_a;
    desc.b = quantized ? scaled_b : limit_b;
    desc.quantized = quantized;
    desc.zero_point = dst == STK_U8 ? 114 : -14;
    desc.qmin = dst == STK_U8 ? 0 : -128;
    desc.qmax = dst == STK_U8 ? 255 : 127;
    desc.stores = stores;
    if (stki_convert_create_isa(&desc, isa, &convert, &err) != STK_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return convert;
}

/* ---- passes ---- */

static void pass_hot(const bench_way *way, int thread, int threads)
{
    const struct job *job = way->context;
    uint8_t *dst = job->slots + (int64_t)thread * (1 << 20);
    const uint8_t *src = job->rows + (int64_t)thread * (1 << 18) + job->src_offset;

    for (int i = thread; i < HOT_IMAGES; i += threads)
        if (job->convert)
            stki_convert_run(job->convert, dst, src);
        else
            job->plain(dst, src, job->elements);
}

/* Converts one batch after another. The threads take the tiles of a batch in turn, and its slot is reused `slot_count`
 * batches later. With slot_count 0 (only plain loops), each thread fills its own buffer repeatedly, with whole
 * batches. */
static void pass_cold(const bench_way *way, int thread, int threads)
{
    const struct job *job = way->context;
    const int64_t rows_a_tile = TILE_BYTES / job->out_bytes > 0 ? TILE_BYTES / job->out_bytes : 1;
    const void *list[512];
    int64_t tile = 0;

    for (int64_t k = 0; k < job->batches; k++) {
        int64_t batch = (way->round * job->batches + k) % (job->row_count / job->batch);
        int64_t slot = job->slot_count ? batch % job->slot_count : thread;
        if (!job->slot_count && k % threads != thread)
            continue;
        for (int64_t first = 0; first < job->batch; first += rows_a_tile, tile++) {
            if (job->slot_count && tile % threads != thread)
                continue;
            int64_t n = job->batch - first < rows_a_tile ? job->batch - first : rows_a_tile;
            uint8_t *dst = job->slots + (slot * job->batch + first) * job->out_bytes;
            for (int64_t i = 0; i < n; i++)
                list[i] = job->rows + job->order[batch * job->batch + first + i] * job->row_bytes + job->src_offset;
            if (job->convert)
                stki_convert_run_many(job->convert, dst, job->out_bytes, list, n);
            else
                for (int64_t i = 0; i < n; i++) {
                    if (way->option && i + way->option < n)
                        limit_fetch(list[i + way->option], (size_t)job->row_bytes);
                    job->plain(dst + i * job->out_bytes, list[i], job->elements);
                }
            if (job->convert && stki_convert_streams(job->convert))
                stki_store_fence();
        }
    }
}

/* Emulates a ring whose consumer reads its batches at the rate at which they are made: fills a slot, then reads the
 * slot that was filled first. There are `slot_count` slots of `batch` rows. */
static void pass_ring(const bench_way *way, int thread, int threads)
{
    const struct job *job = way->context;
    const int64_t slot_bytes = job->batch * job->out_bytes;
    const void *list[4096];

    (void)thread, (void)threads;
    for (int64_t k = 0; k < job->batches; k++) {
        int64_t batch = way->round * job->batches + k, slot = batch % job->slot_count;
        for (int64_t i = 0; i < job->batch; i++)
            list[i] = job->rows + job->order[(batch * job->batch + i) % job->row_count] * job->row_bytes;
        stki_convert_run_many(job->convert, job->slots + slot * slot_bytes, job->out_bytes, list, job->batch);
        if (stki_convert_streams(job->convert))
            stki_store_fence();
        limit_read(job->slots + (slot + 1) % job->slot_count * slot_bytes, (size_t)slot_bytes);
    }
}

/* ---- plain loops with a common signature ---- */

#define PLAIN(name, call, dst_type)                        \
    static void name(void *dst, const void *src, size_t n) \
    {                                                      \
        call((dst_type *)dst, src, n);                     \
    }
PLAIN(plain_simple, limit_norm_simple, float)
PLAIN(plain_blocked, limit_norm_blocked, float)
PLAIN(plain_blocked_nt, limit_norm_blocked_streaming, float)
PLAIN(plain_half, limit_half_blocked, uint16_t)
PLAIN(plain_quant, limit_quant_blocked, int8_t)
PLAIN(plain_u16, limit_row_u16, void)
PLAIN(plain_i32, limit_row_i32, void)
PLAIN(plain_i64, limit_row_i64, void)
PLAIN(plain_f32, limit_row_f32, void)
PLAIN(plain_f64, limit_row_f64, void)
PLAIN(plain_memcpy, memcpy, void)
PLAIN(plain_copy_nt, limit_copy_streaming, void)

/* ---- groups ---- */

static bench_way ways[BENCH_MAX_WAYS];
static struct job jobs[BENCH_MAX_WAYS];
static char names[BENCH_MAX_WAYS][80];
static int way_count;

static void add(const char *name, struct job job, void (*pass)(const bench_way *, int, int), int option, double units,
                double bytes_each, const char *unit)
{
    if (only && !strstr(name, only)) {
        stki_convert_destroy(job.convert);
        return;
    }
    jobs[way_count] = job;
    snprintf(names[way_count], sizeof names[0], "%s", name);
    ways[way_count] = (bench_way){.name = names[way_count],
                                  .pass = pass,
                                  .context = &jobs[way_count],
                                  .option = option,
                                  .units = units,
                                  .bytes = units * bytes_each,
                                  .unit = unit};
    way_count++;
}

static void add_convert(const char *prefix, struct job job, stki_convert *convert,
                        void (*pass)(const bench_way *, int, int), double units, const char *unit)
{
    char name[80];

    job.convert = convert;
    job.out_bytes = stki_convert_bytes_written(convert);
    snprintf(name, sizeof name, "%s %s", prefix, stki_convert_name(convert));
    add(name, job, pass, 0, units, (double)(stki_convert_bytes_read(convert) + stki_convert_bytes_written(convert)),
        unit);
}

/* The same kernel for another instruction set; NULL: none was measured. */
static const bench_way *same_of(const bench_way *way, const char *isa, const char *other)
{
    const char *at = strstr(way->name, isa);
    char name[80];

    snprintf(name, sizeof name, "%.*s%s%s", (int)(at - way->name), way->name, other, at + strlen(isa));
    for (int i = 0; i < way_count; i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    return NULL;
}

/* The plain loop for the same work; NULL: there is none. */
static const bench_way *plain_of(const bench_way *way)
{
    static const char *const pairs[][2] = {{"hot avx512 u8>f32 hwc3-planar", "norm_hot_blocked"},
                                           {"hot avx512 u8>bf16 hwc3-planar", "half_hot_blocked"},
                                           {"hot avx512 u8>i8 hwc3-planar", "quant_hot_blocked"},
                                           {"hot row avx512 u16>f32 runs", "row_u16"},
                                           {"hot row avx512 i32>f32 runs", "row_i32"},
                                           {"hot row avx512 i64>f32 runs", "row_i64"},
                                           {"hot row avx512 f32>f32 runs", "row_f32"},
                                           {"hot row avx512 f64>f32 runs", "row_f64"}};

    for (int k = 0; k < (int)(sizeof pairs / sizeof pairs[0]); k++)
        for (int i = 0; i < way_count && strcmp(way->name, pairs[k][0]) == 0; i++)
            if (strcmp(ways[i].name, pairs[k][1]) == 0)
                return &ways[i];
    return NULL;
}

/* Prints the rate of each AVX-512 kernel, and its ratios to the AVX2 kernel and to the compiler's plain loop. No ratio
 * should be below 1. */
static void print_table(int passes)
{
    printf("%-36s %12s %8s %8s\n", "# kernel", "per second", "to avx2", "to plain");
    for (int i = 0; i < way_count; i++) {
        const bench_way *lower, *plain;
        double best;

        if (!strstr(ways[i].name, "avx512"))
            continue;
        const double own = ways[i].units / bench_median(&ways[i], passes, &best);
        printf("%-36s %12.0f", ways[i].name, own);
        if ((lower = same_of(&ways[i], "avx512", "avx2")))
            printf(" %8.2f", own * bench_median(lower, passes, &best) / lower->units);
        else
            printf(" %8s", "-");
        if ((plain = plain_of(&ways[i])))
            printf(" %8.2f", own * bench_median(plain, passes, &best) / plain->units);
        printf("\n");
    }
}

static void run_group(const char *label, int passes)
{
    for (int threads = 1; threads <= 2; threads++)
        if (!only_threads || only_threads == threads)
            bench_run(label, ways, way_count, threads, passes);
    if (strcmp(label, "hot") == 0)
        print_table(passes);
    for (int i = 0; i < way_count; i++)
        stki_convert_destroy(jobs[i].convert);
    way_count = 0;
}

static void group_hot(void)
{
    static const enum stki_isa isas[] = {STKI_ISA_AVX512, STKI_ISA_AVX2, STKI_ISA_NEON, STKI_ISA_REF};
    static const stk_dtype to[] = {STK_F32, STK_BF16, STK_F16, STK_I8, STK_U8};
    static const struct {
        const char *name;
        void (*plain)(void *, const void *, size_t);
        double bytes;
    } rows[] = {{"row_u16", plain_u16, 6},
                {"row_i32", plain_i32, 8},
                {"row_i64", plain_i64, 12},
                {"row_f32", plain_f32, 8},
                {"row_f64", plain_f64, 12}};
    struct job job = {.rows = bench_memory(4 << 20), .slots = bench_memory(4 << 20), .elements = 224 * 224};
    const double each = 150528;

    job.plain = plain_simple;
    add("norm_hot_simple", job, pass_hot, 0, HOT_IMAGES, 5 * each, "images/s");
    job.plain = plain_blocked;
    add("norm_hot_blocked", job, pass_hot, 0, HOT_IMAGES, 5 * each, "images/s");
    job.plain = plain_half;
    add("half_hot_blocked", job, pass_hot, 0, HOT_IMAGES, 3 * each, "images/s");
    job.plain = plain_quant;
    add("quant_hot_blocked", job, pass_hot, 0, HOT_IMAGES, 2 * each, "images/s");
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        job.plain = rows[i].plain;
        add(rows[i].name, job, pass_hot, 0, HOT_IMAGES, rows[i].bytes * 50176, "rows/s");
    }
    for (int i = 0; i < 3; i++) {
        if (!stki_isa_usable(isas[i]))
            continue;
        for (int d = 0; d < 5; d++)
            add_convert("hot", job, make(HWC_CHW, STK_U8, to[d], 224, isas[i], STKI_STORES_CACHED, true), pass_hot,
                        HOT_IMAGES, "images/s");
        add_convert("hot", job, make(HWC_CHW, STK_U8, STK_U8, 224, isas[i], STKI_STORES_CACHED, false), pass_hot,
                    HOT_IMAGES, "images/s");
        add_convert("hot", job, make(HWC_HWC, STK_U8, STK_F32, 224, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "images/s");
        add_convert("hot", job, make(CHW_CHW, STK_U8, STK_F32, 224, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "images/s");
        add_convert("hot chw-hwc", job, make(CHW_HWC, STK_U8, STK_F32, 224, isas[i], STKI_STORES_CACHED, true),
                    pass_hot, HOT_IMAGES, "images/s");
        add_convert("hot hwc-chw", job, make(HWC_CHW, STK_F32, STK_F32, 128, isas[i], STKI_STORES_CACHED, true),
                    pass_hot, HOT_IMAGES, "images/s");
        add_convert("hot hwc-chw", job, make(HWC_CHW, STK_U16, STK_F32, 128, isas[i], STKI_STORES_CACHED, true),
                    pass_hot, HOT_IMAGES, "images/s");
        for (int from = STK_U16; from <= STK_F64; from++)
            if (from != STK_U32 && from != STK_U64)
                add_convert("hot row", job,
                            make(ROW, (stk_dtype)from, STK_F32, 50176, isas[i], STKI_STORES_CACHED, true), pass_hot,
                            HOT_IMAGES, "rows/s");
        add_convert("hot row", job, make(ROW, STK_F32, STK_I8, 50176, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "rows/s");
        add_convert("hot row", job, make(ROW, STK_F32, STK_BF16, 50176, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "rows/s");
        add_convert("hot crop", job, make(CROP_CHW, STK_U8, STK_F32, 224, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "images/s");
        struct job mirror = job;
        mirror.src_offset = 223 * 3;
        add_convert("hot", mirror, make(MIRROR_CHW, STK_U8, STK_F32, 224, isas[i], STKI_STORES_CACHED, true), pass_hot,
                    HOT_IMAGES, "images/s");
    }
    run_group("hot", rounds * 10);
}

/* Creates a mapped, unlinked file of `bytes` bytes, all of which are in the page cache. */
static const uint8_t *make_rows(int64_t bytes)
{
    char path[512];
    uint64_t state = 7, block[1 << 14];

    snprintf(path, sizeof path, "%s/bench_convert.XXXXXX", dir);
    int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        exit(1);
    }
    unlink(path);
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof block) {
        for (size_t i = 0; i < sizeof block / sizeof block[0]; i++)
            block[i] = (bench_random(&state) & UINT64_C(0xbfffffffbfffffff)) |
                       UINT64_C(0x2000000020000000); /* as f32: no NaN, no subnormals */
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block) {
            perror("write");
            exit(1);
        }
    }
    void *rows = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (rows == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    close(fd);
    return rows;
}

static void add_plain(const char *name, struct job job, void (*plain)(void *, const void *, size_t), int64_t out_bytes,
                      int ahead)
{
    char rotated[80];
    double rows = (double)(job.batches * job.batch), bytes = (double)(job.row_bytes + out_bytes);

    job.plain = plain;
    job.out_bytes = out_bytes;
    job.slot_count = 0;
    add(name, job, pass_cold, ahead, rows, bytes, "rows/s");
    job.slot_count = SLOTS * slice;
    snprintf(rotated, sizeof rotated, "%s rotated", name);
    add(rotated, job, pass_cold, ahead, rows, bytes, "rows/s");
}

static void add_both(const char *prefix, struct job job, enum shape shape, stk_dtype src, stk_dtype dst, int64_t side,
                     bool arithmetic)
{
    job.slot_count = SLOTS * slice;
    for (int stores = STKI_STORES_CACHED; stores <= STKI_STORES_STREAMING; stores++)
        add_convert(prefix, job, make(shape, src, dst, side, stki_isa(), (enum stki_stores)stores, arithmetic),
                    pass_cold, (double)(job.batches * job.batch), "rows/s");
}

static void group_w2(void)
{
    struct job job = {
        .row_count = 4096, .row_bytes = 150528, .batch = 256 / slice, .batches = 2, .elements = 224 * 224};
    const int64_t each = job.row_bytes;

    job.rows = make_rows(job.row_count * each + (1 << 20));
    job.order = bench_shuffled(job.row_count);
    job.slots = bench_memory(SLOTS * slice * job.batch * each * 4);
    struct job bytes = job;
    bytes.elements = (size_t)each;
    add_plain("w2_gather_150KB_rows_memcpy", bytes, plain_memcpy, each, 0);
    add_plain("w2_gather_150KB_rows_nontemporal", bytes, plain_copy_nt, each, 0);
    add_plain("w2_norm_f32_nchw_simple", job, plain_simple, 4 * each, 0);
    add_plain("w2_norm_f32_nchw_blocked", job, plain_blocked, 4 * each, 0);
    add_plain("w2_norm_f32_nchw_blocked_nt", job, plain_blocked_nt, 4 * each, 0);
    add_plain("w2_norm_bf16_nchw_blocked", job, plain_half, 2 * each, 0);
    add_plain("w2_quant_i8_nchw_blocked", job, plain_quant, each, 0);
    add_both("w2", job, HWC_CHW, STK_U8, STK_F32, 224, true);
    add_both("w2", job, HWC_CHW, STK_U8, STK_BF16, 224, true);
    add_both("w2", job, HWC_CHW, STK_U8, STK_F16, 224, true);
    add_both("w2", job, HWC_CHW, STK_U8, STK_I8, 224, true);
    add_both("w2", job, HWC_HWC, STK_U8, STK_U8, 224, false);
    add_both("w2 crop", job, CROP_CHW, STK_U8, STK_F32, 224, true);
    add_both("w2 crop", job, CROP_CHW, STK_U8, STK_I8, 224, true);
    add_both("w2 crop", job, CROP_HWC, STK_U8, STK_U8, 224, false);
    job.src_offset = 223 * 3;
    add_both("w2", job, MIRROR_CHW, STK_U8, STK_F32, 224, true);
    add_both("w2", job, MIRROR_CHW, STK_U8, STK_I8, 224, true);
    run_group("w2", rounds * 10);
}

static void group_w1(void)
{
    struct job job = {.row_count = 50000, .row_bytes = 3072, .batch = 512 / slice, .batches = 24, .elements = 32 * 32};
    const int64_t each = job.row_bytes;

    job.rows = make_rows(job.row_count * each);
    job.order = bench_shuffled(job.row_count);
    job.slots = bench_memory(SLOTS * slice * job.batch * each * 4);
    add_plain("w1_norm_f32_nchw_blocked", job, plain_blocked, 4 * each, 0);
    add_plain("w1_norm_f32_nchw_blocked_nt", job, plain_blocked_nt, 4 * each, 0);
    add_both("w1", job, HWC_CHW, STK_U8, STK_F32, 32, true);
    add_both("w1", job, HWC_CHW, STK_U8, STK_I8, 32, true);
    run_group("w1", rounds * 10);
}

static void group_w3(void)
{
    struct job job = {.row_count = 400000, .row_bytes = 2048, .batch = 256 / slice, .batches = 80, .elements = 2048};

    job.rows = make_rows(job.row_count * job.row_bytes);
    job.order = bench_shuffled(job.row_count);
    job.slots = bench_memory(SLOTS * slice * job.batch * job.row_bytes * 4);
    add_plain("w3_gather_2KiB_rows_memcpy", job, plain_memcpy, job.row_bytes, 0);
    add_plain("w3_gather_2KiB_rows_nontemporal", job, plain_copy_nt, job.row_bytes, 0);
    add_plain("w3_gather_2KiB_rows_prefetch", job, plain_memcpy, job.row_bytes, 3);
    add_both("w3", job, ROW, STK_F32, STK_F32, 512, false);
    add_both("w3", job, ROW, STK_F32, STK_F32, 512, true);
    add_both("w3", job, ROW, STK_F32, STK_BF16, 512, true);
    add_both("w3", job, ROW, STK_F32, STK_F16, 512, true);
    add_both("w3", job, ROW, STK_F32, STK_I8, 512, true);
    add_both("w3", job, ROW, STK_U8, STK_F32, 2048, true);
    add_both("w3", job, ROW, STK_F64, STK_F32, 256, false);
    add_both("w3", job, ROW, STK_I32, STK_I64, 512, false);
    run_group("w3", rounds * 10);
}

/* Measures both kinds of stores with slots of several total sizes, to find the size above which non-temporal stores are
 * faster. */
static void group_auto(void)
{
    static const int megabytes[] = {4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96};
    struct job job = {.row_count = 50000, .row_bytes = 3072};

    job.rows = make_rows(job.row_count * job.row_bytes);
    job.order = bench_shuffled(job.row_count);
    job.slots = bench_memory(INT64_C(100) << 20);
    for (int m = 0; m < (int)(sizeof megabytes / sizeof megabytes[0]); m++)
        for (int stores = STKI_STORES_CACHED; stores <= STKI_STORES_STREAMING; stores++) {
            char name[32];
            job.slot_count = SLOTS;
            job.batch = ((int64_t)megabytes[m] << 20) / SLOTS / (4 * job.row_bytes);
            job.batches = 8 * SLOTS; /* eight passes over the ring; the first, into cold memory, matters little */
            snprintf(name, sizeof name, "%d MiB in flight", megabytes[m]);
            add_convert(name, job, make(HWC_CHW, STK_U8, STK_F32, 32, stki_isa(), (enum stki_stores)stores, true),
                        pass_ring, (double)(job.batches * job.batch), "rows/s");
        }
    for (int i = 0; i < way_count; i++) /* one thread fills and reads */
        ways[i].bytes += ways[i].units * (double)jobs[i].out_bytes;
    only_threads = 1;
    run_group("auto", rounds * 3);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } groups[] = {{"hot", group_hot}, {"w1", group_w1}, {"w2", group_w2}, {"w3", group_w3}, {"auto", group_auto}};
    bool chosen[5] = {false}, any = false;

    for (int i = 1; i < argc; i++) {
        bool known = true;
        if (strncmp(argv[i], "--dir=", 6) == 0)
            dir = argv[i] + 6;
        else if (strncmp(argv[i], "--rounds=", 9) == 0)
            rounds = atoi(argv[i] + 9);
        else if (strncmp(argv[i], "--threads=", 10) == 0)
            only_threads = atoi(argv[i] + 10);
        else if (strncmp(argv[i], "--slice=", 8) == 0)
            slice = atoi(argv[i] + 8);
        else if (strncmp(argv[i], "--only=", 7) == 0)
            only = argv[i] + 7;
        else
            known = false;
        for (int g = 0; g < 5; g++)
            if (strcmp(argv[i], groups[g].name) == 0)
                known = any = chosen[g] = true;
        if (!known || rounds < 1 || rounds > BENCH_MAX_ROUNDS / 10) {
            fprintf(stderr,
                    "usage: bench_convert [hot | w1 | w2 | w3 | auto]... [--dir=DIR] [--rounds=N] [--threads=N] "
                    "[--slice=N] [--only=WORDS]\n");
            return 2;
        }
    }
    printf("# isa %s, last-level cache %lld bytes, median of %d passes, GB = 10^9 bytes read + written\n",
           stki_isa_name(stki_isa()), (long long)stki_cache_bytes(), 10 * rounds);
    for (int g = 0; g < 5; g++)
        if (!any || chosen[g])
            groups[g].run();
    return 0;
}
