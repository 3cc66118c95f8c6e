/* bench_ops.c: sums and element-wise additions of arrays of 150 MB, compared with the machine's read and copy limits in
 * the same run; small tensors; and matrix products. One thread. Each output line has the label, the variant, the
 * threads, passes/s, and GB/s read and written.
 *
 *     bench_ops [sum | add | small | matmul]... [--rounds=N]
 *
 * bench/peers/bench_ops.py measures the same operations with NumPy and torch.
 */
#include "bench_support.h"
#include "limit_kernels.h"
#include "ops_cblas.h"
#include "ops_gemm.h"
#include <stoker/stoker.h>

enum { ROWS = 4096, COLUMNS = 9216, SIDE = 6144 };

static int rounds = 11;
static float *memory[3]; /* of ROWS * COLUMNS = SIDE * SIDE elements */
static const int64_t bytes = INT64_C(4) * ROWS * COLUMNS;

static void check(stk_status status, const stk_error *err)
{
    if (status == STK_OK)
        return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static stk_tensor over(int which, int64_t rows, int64_t columns)
{
    stk_tensor tensor;
    stk_error err;

    check(stk_tensor_borrow(memory[which], STK_F32, 2, (const int64_t[]){rows, columns}, NULL, &tensor, &err), &err);
    return tensor;
}

static stk_tensor turned(stk_tensor tensor)
{
    stk_error err;

    check(stk_tensor_transpose(&tensor, 0, 1, &tensor, &err), &err);
    return tensor;
}

/* ---- limits ---- */

static uint64_t sink;

static void pass_read(const bench_way *way, int thread, int threads)
{
    (void)way, (void)thread, (void)threads;
    sink += limit_read(memory[0], (size_t)bytes);
}

static void pass_copy(const bench_way *way, int thread, int threads)
{
    (void)way, (void)thread, (void)threads;
    limit_copy_streaming(memory[1], memory[0], (size_t)bytes);
}

/* ---- sums ---- */

struct sum {
    stk_tensor in;
    int dim; /* STK_ALL_DIMS: all */
};

static void pass_sum(const bench_way *way, int thread, int threads)
{
    const struct sum *sum = way->context;
    stk_tensor out;
    stk_error err;

    (void)thread, (void)threads;
    check(stk_tensor_sum(&sum->in, 1, sum->dim == STK_ALL_DIMS ? NULL : &sum->dim, false, STK_DTYPE_NONE, &out, &err),
          &err);
    stk_tensor_release(&out);
}

static void run_sums(void)
{
    const stk_tensor wide = over(0, ROWS, COLUMNS), tall = turned(wide);
    stk_tensor channels = over(0, ROWS * COLUMNS / 4, 4);
    const struct sum sums[] = {{wide, STK_ALL_DIMS}, {wide, 0},    {wide, 1},
                               {tall, STK_ALL_DIMS}, {tall, 0},    {tall, 1},
                               {channels, 0},        {channels, 1}};
    static const char *const names[] = {
        "sum all",          "sum axis 0",       "sum axis 1",         "sum all of .T",
        "sum axis 0 of .T", "sum axis 1 of .T", "sum axis 0 of [,4]", "sum axis 1 of [,4]"};
    bench_way ways[BENCH_MAX_WAYS] = {{.name = "limit read", .pass = pass_read}};
    int count = 1;

    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++)
        ways[count++] = (bench_way){.name = names[i], .pass = pass_sum, .context = &sums[i]};
    for (int i = 0; i < count; i++) {
        ways[i].units = 1;
        ways[i].unit = "passes/s";
        ways[i].bytes = (double)bytes;
    }
    bench_run("sum", ways, count, 1, rounds);
}

/* ---- additions ---- */

struct add {
    stk_tensor out, a, b;
    bool fresh;
};

static void pass_add(const bench_way *way, int thread, int threads)
{
    const struct add *add = way->context;
    stk_tensor out = add->out;
    stk_error err;

    (void)thread, (void)threads;
    if (add->fresh) {
        check(stk_tensor_add(&add->a, &add->b, &out, &err), &err);
        stk_tensor_release(&out);
    } else {
        check(stk_tensor_add_into(&add->a, &add->b, &out, &err), &err);
    }
}

static void run_adds(void)
{
    const stk_tensor a = over(0, ROWS, COLUMNS), b = over(1, ROWS, COLUMNS), out = over(2, ROWS, COLUMNS);
    const stk_tensor row = over(1, 1, COLUMNS), column = over(1, ROWS, 1);
    const stk_tensor square = over(0, SIDE, SIDE), other = over(1, SIDE, SIDE), result = over(2, SIDE, SIDE);
    const struct add adds[] = {{out, a, b, false},
                               {out, a, row, false},
                               {out, a, column, false},
                               {result, square, turned(other), false},
                               {result, turned(square), turned(other), false},
                               {out, out, b, false},
                               {out, a, b, true},
                               {result, turned(square), turned(other), true}};
    static const struct {
        const char *name;
        double streams; /* arrays read and written */
    } rows[] = {{"add contiguous", 3}, {"add broadcast row", 2},  {"add broadcast column", 2},
                {"add a + b.T", 3},    {"add a.T + b.T", 3},      {"add in place", 3},
                {"add fresh", 3},      {"add fresh a.T + b.T", 3}};
    bench_way ways[BENCH_MAX_WAYS] = {{.name = "limit copy, past the caches", .pass = pass_copy, .bytes = 2}};
    int count = 1;

    for (size_t i = 0; i < sizeof adds / sizeof adds[0]; i++)
        ways[count++] =
            (bench_way){.name = rows[i].name, .pass = pass_add, .context = &adds[i], .bytes = rows[i].streams};
    for (int i = 0; i < count; i++) {
        ways[i].units = 1;
        ways[i].unit = "passes/s";
        ways[i].bytes *= (double)bytes;
    }
    bench_run("add", ways, count, 1, rounds);
}

/* ---- small tensors ---- */

enum { CALLS = 1000 };

static void pass_small(const bench_way *way, int thread, int threads)
{
    (void)thread, (void)threads;
    for (int i = 0; i < CALLS; i++)
        pass_add(way, 0, 1);
}

static void run_small(void)
{
    stk_tensor a = over(0, 2, 3), b = over(1, 2, 3), out = over(2, 2, 3);
    stk_tensor a_mid = over(0, 64, 64), b_mid = over(1, 64, 64), out_mid = over(2, 64, 64);
    const struct add adds[] = {
        {out, a, b, false}, {out, a, b, true}, {out_mid, a_mid, b_mid, false}, {out_mid, a_mid, turned(b_mid), false}};
    static const char *const names[] = {"add 2x3 into", "add 2x3 fresh", "add 64x64 into", "add 64x64 a + b.T into"};
    bench_way ways[4];

    for (int i = 0; i < 4; i++)
        ways[i] =
            (bench_way){.name = names[i], .pass = pass_small, .context = &adds[i], .units = CALLS, .unit = "calls/s"};
    bench_run("small", ways, 4, 1, rounds);
}

/* ---- matrix products ---- */

struct product {
    stki_gemm gemm;
    bool flip_b;
};

static void pass_product(const bench_way *way, int thread, int threads)
{
    const struct product *product = way->context;
    int64_t n = product->gemm.rows, size = stk_dtype_size(product->gemm.dtype);
    stki_matrix matrix = {NULL, n * size, size}, c = matrix, a = matrix, b = matrix;

    (void)thread, (void)threads;
    c.data = (char *)memory[2];
    a.data = (char *)memory[0];
    b.data = (char *)memory[1];
    if (product->flip_b)
        b = (stki_matrix){b.data, b.column_stride, b.row_stride};
    stki_gemm_run(&product->gemm, c, a, b);
}

static void run_products(void)
{
    static const struct {
        const char *name;
        stk_dtype dtype;
        int64_t n;
        bool no_cblas, flip_b, thin;
    } rows[] = {{"f32 1024, CBLAS", STK_F32, 1024, false, false, false},
                {"f32 1024, own", STK_F32, 1024, true, false, false},
                {"f32 1024 a * b.T, own", STK_F32, 1024, true, true, false},
                {"f32 64, CBLAS", STK_F32, 64, false, false, false},
                {"f32 64, own", STK_F32, 64, true, false, false},
                {"f64 512, CBLAS", STK_F64, 512, false, false, false},
                {"f64 512, own", STK_F64, 512, true, false, false},
                {"i32 512, own", STK_I32, 512, true, false, false},
                {"bf16 512, own", STK_BF16, 512, true, false, false},
                {"f32 4096 times vector", STK_F32, 4096, true, false, true}};
    enum { COUNT = sizeof rows / sizeof rows[0] };
    struct product products[COUNT];
    bench_way ways[COUNT];
    stk_error err;

    for (int i = 0; i < COUNT; i++) {
        int64_t n = rows[i].n;
        products[i].gemm = (stki_gemm){.dtype = rows[i].dtype,
                                       .rows = n,
                                       .columns = rows[i].thin ? 1 : n,
                                       .depth = n,
                                       .no_cblas = rows[i].no_cblas};
        products[i].flip_b = rows[i].flip_b;
        check(stki_gemm_begin(&products[i].gemm, &err), &err);
        ways[i] = (bench_way){.name = rows[i].name,
                              .pass = pass_product,
                              .context = &products[i],
                              .units = 2e-6 * (double)n * (double)n * (double)products[i].gemm.columns,
                              .unit = "MFLOP/s"};
    }
    printf("CBLAS: %s\n", stki_cblas_name() ? stki_cblas_name() : "none");
    bench_run("matmul", ways, COUNT, 1, rounds);
    for (int i = 0; i < COUNT; i++)
        stki_gemm_end(&products[i].gemm);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } groups[] = {{"sum", run_sums}, {"add", run_adds}, {"small", run_small}, {"matmul", run_products}};
    bool all = true;

    for (int k = 0; k < 3; k++) {
        memory[k] = bench_memory(bytes);
        for (int64_t i = 0; i < bytes / 4; i++)
            memory[k][i] = (float)(i % 1000) / 1000;
    }
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--rounds=", 9))
            rounds = atoi(argv[i] + 9);
        else
            all = false;
    }
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++) {
        bool wanted = all;
        for (int i = 1; i < argc; i++)
            wanted = wanted || !strcmp(argv[i], groups[g].name);
        if (wanted)
            groups[g].run();
    }
    return sink == 1; /* so that the compiler does not remove the reads */
}
