/* Tests of printed tensors against NumPy's output (print_cases.txt, written by print_cases.py), and of what NumPy does
 * not have: strides, byte orders, devices, bf16 and 8-bit floats, rejected options. */
#include "allocate.h"
#include "comma_locale.h"
#include "device_table.h"
#include "faults.h"
#include "leak_check.h"
#include "print_number.h"
#include "small_float.h"
#include "stk_test.h"
#include "test_device.h"
#include "test_random.h"
#include <math.h>
#include <stoker/stoker.h>

/* ---- NumPy's texts ---- */

struct print_case {
    stk_tensor tensor;
    stk_print_opts opts;
    char separator[16];
    char *expected;
    int line;
};

static char *read_line(FILE *file, int *number)
{
    static char *line;
    static size_t size;
    ssize_t length = getline(&line, &size, file);

    if (length < 0)
        return NULL;
    if (length > 0 && line[length - 1] == '\n')
        line[length - 1] = '\0';
    ++*number;
    return line;
}

static int read_shape(const char *text, int64_t *shape)
{
    int ndim = 0;

    if (strcmp(text, "()") == 0)
        return 0;
    for (char *end; *text; text = *end ? end + 1 : end)
        shape[ndim++] = strtoll(text, &end, 10);
    return ndim;
}

static void fill(stk_tensor *tensor, const char *hex)
{
    stk_error err;

    if (strcmp(hex, "arange") == 0) {
        stk_tensor counted, shaped;
        assert_ok(stk_tensor_arange(tensor->dtype == STK_C64 ? STK_F32 : tensor->dtype, stk_int(0),
                                    stk_int(stk_tensor_numel(tensor)), stk_int(1), NULL, &counted, &err));
        assert_ok(stk_tensor_view(&counted, tensor->ndim, tensor->shape, &shaped, &err));
        assert_ok(stk_tensor_copy(tensor, &shaped, &err));
        stk_tensor_release(&shaped);
        stk_tensor_release(&counted);
        return;
    }
    for (int64_t i = 0; i < stk_tensor_nbytes(tensor); i++) {
        unsigned byte = 0;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        ((unsigned char *)tensor->data)[i] = (unsigned char)byte;
    }
}

/* Returns false at the end of the file. */
static bool read_case(FILE *file, int *number, struct print_case *c)
{
    char dtype[16], shape_text[128];
    int64_t shape[STK_MAX_DIMS];
    int precision, suppress, ndim, lines;
    long long threshold;
    char *line = read_line(file, number);
    size_t length = 0;
    stk_error err;

    if (!line)
        return false;
    *c = (struct print_case){.opts = STK_PRINT_OPTS_INIT, .line = *number};
    c->separator[0] = '\0';
    if (sscanf(line, "case %15s %127s %d %lld %d %d %d %15s", dtype, shape_text, &precision, &threshold,
               &c->opts.edge_items, &c->opts.line_width, &suppress, c->separator) < 7)
        fail_msg("print_cases.txt line %d: %s", *number, line);
    for (char *at = c->separator; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    c->opts.precision = precision ? precision : STK_PRINT_NONE;
    c->opts.threshold = threshold ? threshold : STK_PRINT_NONE;
    c->opts.suppress_small = suppress != 0;
    c->opts.separator = c->separator;
    ndim = read_shape(shape_text, shape);
    assert_ok(stk_tensor_zeros(stk_dtype_find(dtype), ndim, shape, NULL, &c->tensor, &err));
    fill(&c->tensor, read_line(file, number));
    lines = atoi(read_line(file, number));
    c->expected = calloc(1, 1);
    for (int i = 0; i < lines; i++) {
        line = read_line(file, number);
        c->expected = realloc(c->expected, length + strlen(line) + 2);
        length += (size_t)sprintf(c->expected + length, i ? "\n%s" : "%s", line);
    }
    return true;
}

static void run_cases(int *cases)
{
    FILE *file = fopen(STKT_TESTS_DIR "/tensor/print_cases.txt", "r");
    struct print_case c;
    int number = 0;
    stk_error err;

    assert_non_null(file);
    while (read_case(file, &number, &c)) {
        char *text;
        c.opts.separator = c.separator;
        assert_ok(stk_tensor_format(&c.tensor, &c.opts, &text, &err));
        if (strcmp(text, c.expected) != 0)
            fail_msg("print_cases.txt line %d:\n%s\nexpected\n%s", c.line, text, c.expected);
        stk_text_free(text);
        free(c.expected);
        stk_tensor_release(&c.tensor);
        ++*cases;
    }
    fclose(file);
}

static void test_like_numpy(void **unused)
{
    int cases = 0;

    (void)unused;
    run_cases(&cases);
    assert_true(cases > 800);
}

/* In some locales the decimal point is a comma. */
static void test_any_locale(void **unused)
{
    int cases = 0;

    (void)unused;
    if (!stkt_comma_locale())
        skip();
    run_cases(&cases);
    setlocale(LC_ALL, "C");
    assert_true(cases > 800);
}

/* ---- shortest digits ---- */

/* No decimal with fewer digits may read back as this number: the nearest one is not closer to x than to a neighbor. */
static void assert_shortest(stk_dtype dtype, double x, double below, double above, double back)
{
    stki_decimal decimal;

    stki_decimal_shortest(dtype, x, &decimal);
    assert_true(back == x);
    if (decimal.count > 1) {
        char text[64], *point;
        snprintf(text, sizeof text, "%.*e", decimal.count - 2, x);
        point = strchr(text, 'e');
        assert_non_null(point);
        /* the nearest decimal with one digit fewer is at or beyond the midpoint to a neighbor */
        double fewer = strtod(text, NULL);
        assert_true(fewer <= (x + below) / 2 || fewer >= (x + above) / 2);
    }
}

static double value_of(const stki_decimal *decimal)
{
    char text[64];

    snprintf(text, sizeof text, "%se%d", decimal->digits, decimal->point - decimal->count);
    return strtod(text, NULL);
}

static void test_every_half(void **unused)
{
    (void)unused;
    for (uint32_t bits = 2; bits < 0x7bff; bits++) {
        double x = (double)stki_f16_decode((uint16_t)bits), below = (double)stki_f16_decode((uint16_t)(bits - 1)),
               above = (double)stki_f16_decode((uint16_t)(bits + 1));
        stki_decimal decimal;
        stki_decimal_shortest(STK_F16, x, &decimal);
        assert_shortest(STK_F16, x, below, above, (double)stki_f16_decode(stki_f16_encode((float)value_of(&decimal))));
    }
    for (uint32_t bits = 2; bits < 0x7f7f; bits++) {
        double x = (double)stki_bf16_decode((uint16_t)bits), below = (double)stki_bf16_decode((uint16_t)(bits - 1)),
               above = (double)stki_bf16_decode((uint16_t)(bits + 1));
        stki_decimal decimal;
        stki_decimal_shortest(STK_BF16, x, &decimal);
        assert_shortest(STK_BF16, x, below, above,
                        (double)stki_bf16_decode(stki_bf16_encode((float)value_of(&decimal))));
    }
}

static void test_random_numbers_read_back(void **unused)
{
    uint64_t state = 5;

    (void)unused;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = stkt_random(&state);
        double x;
        float y = stki_f32_of_bits((uint32_t)bits);
        stki_decimal decimal;
        memcpy(&x, &bits, sizeof x);
        if (isfinite(x)) {
            stki_decimal_shortest(STK_F64, x, &decimal);
            assert_true(value_of(&decimal) == fabs(x));
        }
        if (isfinite(y)) {
            stki_decimal_shortest(STK_F32, (double)y, &decimal);
            assert_true((float)value_of(&decimal) == fabsf(y) && decimal.count <= 9);
        }
    }
}

/* ---- without a counterpart in NumPy ---- */

static void prints(const stk_tensor *tensor, const stk_print_opts *opts, const char *expected)
{
    char *text;
    stk_error err;

    assert_ok(stk_tensor_format(tensor, opts, &text, &err));
    if (strcmp(text, expected) != 0)
        fail_msg("%s\nexpected\n%s", text, expected);
    stk_text_free(text);
}

static void test_small_floats(void **unused)
{
    const float values[] = {0.1f, 1.5f, -448, 70144};
    stk_tensor wide, narrow;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)values, STK_F32, 1, (const int64_t[]){3}, NULL, &wide, &err));
    assert_ok(stk_tensor_to(&wide, STK_F8_E4M3FN, &narrow, &err));
    prints(&narrow, NULL, "[ 1.0e-01  1.5e+00 -4.5e+02]");
    stk_tensor_release(&narrow);
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)values, STK_F32, 1, (const int64_t[]){2}, NULL, &wide, &err));
    assert_ok(stk_tensor_to(&wide, STK_F8_E5M2, &narrow, &err));
    prints(&narrow, NULL, "[0.09 1.5 ]");
    stk_tensor_release(&narrow);
    assert_ok(stk_tensor_to(&wide, STK_BF16, &narrow, &err));
    prints(&narrow, NULL, "[0.1 1.5]");
    stk_tensor_release(&narrow);
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)(values + 3), STK_F32, 1, (const int64_t[]){1}, NULL, &wide, &err));
    assert_ok(stk_tensor_to(&wide, STK_BF16, &narrow, &err));
    prints(&narrow, NULL, "[7.e+04]");
    stk_tensor_release(&narrow);
}

static void test_views(void **unused)
{
    stk_tensor base, shaped, turned, flipped, swapped, there, wide;
    static const uint8_t big_endian[] = {0, 1, 1, 0, 0xff, 0xff};
    stk_print_opts opts = STK_PRINT_OPTS_INIT;
    stk_error err;

    (void)unused;
    assert_ok(stk_tensor_arange(STK_I32, stk_int(0), stk_int(12), stk_int(1), NULL, &base, &err));
    assert_ok(stk_tensor_view(&base, 2, (const int64_t[]){3, 4}, &shaped, &err));
    assert_ok(stk_tensor_transpose(&shaped, 0, 1, &turned, &err));
    assert_ok(stk_tensor_flip(&turned, 0, &flipped, &err));
    prints(&flipped, NULL, "[[ 3  7 11]\n [ 2  6 10]\n [ 1  5  9]\n [ 0  4  8]]");
    assert_ok(stk_tensor_to_device(&flipped, stki_device_test(), &there, &err));
    prints(&there, NULL, "[[ 3  7 11]\n [ 2  6 10]\n [ 1  5  9]\n [ 0  4  8]]");
    assert_ok(stk_tensor_borrow((void *)(uintptr_t)big_endian, STK_I16, 1, (const int64_t[]){3}, NULL, &swapped, &err));
    swapped.flags = STK_TENSOR_SWAPPED;
    prints(&swapped, NULL, "[  1 256  -1]");
    /* a trillion elements, all at the same address: only the edges are read */
    stk_tensor_release(&base);
    assert_ok(stk_tensor_full(STK_F32, 2, (const int64_t[]){1, 1}, stk_real(2.5), NULL, &base, &err));
    assert_ok(stk_tensor_expand(&base, 2, (const int64_t[]){1000000, 1000000}, &wide, &err));
    opts.edge_items = 1;
    prints(&wide, &opts, "[[2.5 ... 2.5]\n ...\n [2.5 ... 2.5]]");
    stk_tensor_release(&wide);
    /* without elements, NumPy prints [], whatever the other axes are */
    assert_ok(stk_tensor_empty(STK_F32, 2, (const int64_t[]){1 << 30, 0}, NULL, &wide, &err));
    prints(&wide, NULL, "[]");
    stk_tensor_release(&wide);
    stk_tensor_release(&base);
    stk_tensor_release(&there);
    stk_tensor_release(&flipped);
    stk_tensor_release(&turned);
    stk_tensor_release(&shaped);
}

static void test_refusals(void **unused)
{
    stk_tensor base, wide;
    char *text;
    stk_error err;
    stk_print_opts opts = STK_PRINT_OPTS_INIT;

    (void)unused;
    assert_ok(stk_tensor_zeros(STK_F32, 1, (const int64_t[]){3}, NULL, &base, &err));
    opts.precision = 61;
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    assert_says("precision");
    opts = (stk_print_opts)STK_PRINT_OPTS_INIT;
    opts.threshold = -2;
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    opts = (stk_print_opts)STK_PRINT_OPTS_INIT;
    opts.edge_items = -1;
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    opts = (stk_print_opts)STK_PRINT_OPTS_INIT;
    opts.line_width = -1;
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    opts = (stk_print_opts)STK_PRINT_OPTS_INIT;
    opts.separator = "123456789";
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    opts = (stk_print_opts){0};
    assert_status(stk_tensor_format(&base, &opts, &text, &err), STK_E_BAD_ARG);
    base.dtype = STK_DTYPE_NONE;
    assert_status(stk_tensor_format(&base, NULL, &text, &err), STK_E_BAD_DTYPE);
    base.dtype = STK_F32;
    opts = (stk_print_opts)STK_PRINT_OPTS_INIT;
    opts.threshold = INT64_MAX;
    wide = base;
    wide.shape[0] = INT64_C(1) << 40;
    wide.strides[0] = 0;
    assert_status(stk_tensor_format(&wide, &opts, &text, &err), STK_E_LIMIT);
    stk_tensor_release(&base);
}

static void test_failing_allocations(void **unused)
{
    stki_memory_stats before, after;
    stk_status status = STK_E_MEMORY;
    stk_tensor tensor;
    stk_error err;

    (void)unused;
    stk_memory_record_stop(); /* otherwise the recorder's own allocations would fail */
    assert_ok(stk_tensor_zeros(STK_F64, 1, (const int64_t[]){900}, stki_device_test(), &tensor, &err));
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int64_t n = 1; status; n++) {
        char *text = NULL;
        stki_memory_fail_at(n);
        status = stk_tensor_format(&tensor, NULL, &text, &err);
        stki_memory_fail_at(0);
        assert_true(status == STK_OK || status == STK_E_MEMORY);
        stk_text_free(text);
        stki_memory_read(STKI_MEM_HOST, &after);
        assert_int_equal(after.blocks, before.blocks);
    }
    stk_tensor_release(&tensor);
    stk_memory_record_start();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like_numpy),   cmocka_unit_test(test_any_locale),
        cmocka_unit_test(test_every_half),   cmocka_unit_test(test_random_numbers_read_back),
        cmocka_unit_test(test_small_floats), cmocka_unit_test(test_views),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, stkt_leak_setup, stkt_leak_teardown);
}
