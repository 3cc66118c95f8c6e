/* play_memory.c: --memory. The column `fits in` names the smallest common memory size that is large enough. */
#include "play_memory.h"
#include "allocate.h"
#include "error.h"
#include "html.h"
#include "play.h"
#include "play_ops.h"
#include "play_page.h"
#include "play_sparse.h"
#include "play_table.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A pseudo dtype with two elements per byte, which uses the free value STK_DTYPE_NONE. */
#define INT4 STK_DTYPE_NONE

static const stk_dtype model_dtypes[] = {STK_F64, STK_F32, STK_BF16, STK_F16, STK_F8_E4M3FN, STK_F8_E5M2, STK_I8, INT4};

/* False: overflow. */
static bool bytes_of(int64_t elements, stk_dtype dtype, int64_t *out)
{
    if (dtype == INT4) {
        *out = elements / 2 + elements % 2;
        return true;
    }
    return !__builtin_mul_overflow(elements, stk_dtype_size(dtype), out);
}

static void put_bytes(struct pl_table *table, int64_t bytes)
{
    char text[32];

    pl_table_put(table, "%s", pl_bytes_text(text, sizeof text, bytes));
}

static void put_fits(struct pl_table *table, int64_t bytes, int64_t fits)
{
    static const int usual[] = {1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 141, 192, 288};

    if (fits) {
        pl_table_put(table, "%s", bytes <= fits ? "yes" : "no");
        return;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (bytes <= (int64_t)usual[i] << 30) {
            pl_table_put(table, "%d GiB", usual[i]);
            return;
        }
    pl_table_put(table, "more than %d GiB", usual[sizeof usual / sizeof *usual - 1]);
}

static void put_fits_heading(struct pl_table *table, int64_t fits)
{
    char text[32];

    if (fits)
        pl_table_put(table, "fits in %s", pl_bytes_text(text, sizeof text, fits));
    else
        pl_table_put(table, "fits in");
}

/* Returns the bytes of weights and gradients in the dtype, both moments of Adam and, for 16 bits, a master copy of the
 * weights in f32. 0: the dtype is not used for training. */
static int64_t training_bytes(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F64:
        return 4 * 8;
    case STK_F32:
        return 4 * 4;
    case STK_BF16:
    case STK_F16:
        return 2 * 2 + 3 * 4;
    default:
        return 0;
    }
}

static const char *name_of(stk_dtype dtype)
{
    return dtype == INT4 ? "int4" : stk_dtype_long_name(dtype);
}

static void put_model_row(struct pl_table *table, stk_dtype dtype, int64_t count, int64_t fits)
{
    int64_t bytes, training;

    pl_table_put(table, "%s", name_of(dtype));
    pl_table_put(table, "%" PRId64, dtype == INT4 ? 4 : 8 * stk_dtype_size(dtype));
    if (!bytes_of(count, dtype, &bytes)) {
        pl_table_put(table, "too many to count");
        pl_table_end_row(table);
        return;
    }
    put_bytes(table, bytes);
    put_fits(table, bytes, fits);
    if (training_bytes(dtype) && !__builtin_mul_overflow(count, training_bytes(dtype), &training)) {
        put_bytes(table, training);
        put_fits(table, training, fits);
    }
    pl_table_end_row(table);
}

static void show(const char *title, const struct pl_table *table, const char *note, FILE *page)
{
    printf("%s\n\n", title);
    pl_table_text(table, stdout);
    putchar('\n');
    pl_print_folded(note, 100, 0, stdout);
    if (!page)
        return;
    fputs("<section class=\"step\"><h2>", page);
    html_text(page, title);
    fputs("</h2>\n", page);
    pl_table_html(table, page);
    fputs("<p class=\"note\">", page);
    html_text(page, note);
    fputs("</p></section>\n", page);
}

static void show_model(int64_t count, int64_t fits, struct pl_table *table, FILE *page)
{
    char title[80];

    pl_table_put(table, "dtype");
    pl_table_put(table, "bits");
    pl_table_put(table, "weights");
    put_fits_heading(table, fits);
    pl_table_put(table, "training");
    put_fits_heading(table, fits);
    pl_table_end_row(table);
    for (size_t i = 0; i < sizeof model_dtypes / sizeof *model_dtypes; i++)
        put_model_row(table, model_dtypes[i], count, fits);
    snprintf(title, sizeof title, "A model of %" PRId64 " parameters", count);
    show(title, table,
         "Activations and buffers are not included. Training: weights, gradients and Adam's two moments in the dtype; "
         "with 16 bits, the moments and a master copy of the weights are in float32. int4: two values per byte; a "
         "float16 scale for every 32 values would add 12.5 %.",
         page);
}

static stk_status show_batch(int ndim, const int64_t *shape, int64_t fits, struct pl_table *table, FILE *page,
                             stk_error *err)
{
    char title[300];
    int64_t count = 1, bytes;

    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(count, shape[i], &count))
            return stki_fail(err, STK_E_LIMIT, "%s has 2^63 elements or more", PL_SHAPE(ndim, shape));
    pl_table_put(table, "dtype");
    pl_table_put(table, "bits");
    pl_table_put(table, "memory");
    pl_table_put(table, ndim > 0 ? "per index of axis 0" : "");
    put_fits_heading(table, fits);
    if (fits)
        pl_table_put(table, "batches that fit");
    pl_table_end_row(table);
    for (int dtype = INT4; dtype < STK_DTYPE_END; dtype++) {
        pl_table_put(table, "%s", name_of((stk_dtype)dtype));
        pl_table_put(table, "%" PRId64, dtype == INT4 ? 4 : 8 * stk_dtype_size((stk_dtype)dtype));
        if (bytes_of(count, (stk_dtype)dtype, &bytes)) {
            put_bytes(table, bytes);
            put_bytes(table, ndim > 0 && shape[0] > 0 ? bytes / shape[0] : bytes);
            put_fits(table, bytes, fits);
            if (fits && bytes > 0)
                pl_table_put(table, "%" PRId64, fits / bytes);
        } else {
            pl_table_put(table, "too many to count");
        }
        pl_table_end_row(table);
    }
    snprintf(title, sizeof title, "A batch of shape %s: %" PRId64 " elements", PL_SHAPE(ndim, shape), count);
    show(title, table, "This is the memory of one batch; a loader allocates loader.prefetch batches.", page);
    return STK_OK;
}

/* Parses "7B", "125M", "7e9" or "1000"; false: invalid. */
static bool parse_count(const char *text, int64_t *out)
{
    static const struct {
        char sign;
        double factor;
    } signs[] = {{'k', 1e3}, {'K', 1e3}, {'m', 1e6}, {'M', 1e6},  {'g', 1e9},
                 {'G', 1e9}, {'b', 1e9}, {'B', 1e9}, {'t', 1e12}, {'T', 1e12}};
    char *end;
    double value;

    if (!*text || strspn(text, "0123456789.e") == 0)
        return false;
    value = strtod(text, &end);
    for (size_t i = 0; *end && i < sizeof signs / sizeof *signs; i++)
        if (*end == signs[i].sign) {
            value *= signs[i].factor;
            end++;
            break;
        }
    if (*end || !(value >= 1) || value > 9e18)
        return false;
    *out = (int64_t)rint(value);
    return true;
}

stk_status pl_memory(const struct pl_args *args, FILE *page, stk_error *err)
{
    struct pl_table *table = stki_zalloc(sizeof *table);
    int64_t count, shape[STK_MAX_DIMS];
    int ndim;
    stk_status status = STK_OK;

    if (!table)
        return stki_fail_memory(err, sizeof *table, "a table");
    if (parse_count(args->what, &count)) {
        if (args->dtype)
            status = stki_fail(err, STK_E_CONFIG, "--dtype needs --memory SHAPE");
        else
            show_model(count, args->fits, table, page);
    } else if (pl_parse_shape(args->what, shape, &ndim, NULL) == STK_OK && ndim > 0) {
        status = show_batch(ndim, shape, args->fits, table, page, err);
        if (status == STK_OK && pl_sparse_sensible(ndim, shape))
            status = pl_sparse_table(ndim, shape, args->dtype ? args->dtype : STK_F32, page, err);
    } else {
        status =
            stki_fail(err, STK_E_CONFIG,
                      "--memory: found \"%s\", expected a number of parameters such as 7B or 125M, or a shape such as "
                      "32x3x224x224",
                      args->what);
    }
    stki_free(table);
    return status;
}
