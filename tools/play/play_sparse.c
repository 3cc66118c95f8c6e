/* play_sparse.c: see play_sparse.h. Sizes of the formats are those given in sparse.h. */
#include "play_sparse.h"
#include "allocate.h"
#include "error.h"
#include "html.h"
#include "play.h"
#include "play_ops.h"
#include "play_page.h"
#include "play_table.h"
#include <inttypes.h>
#include <stoker/sparse.h>

enum { COO, CSR };

struct form {
    const char *name;
    int kind;
    stk_dtype index;
};

static const struct form forms[] = {
    {"COO int64", COO, STK_I64}, {"COO int32", COO, STK_I32}, {"CSR int64", CSR, STK_I64}, {"CSR int32", CSR, STK_I32}};

enum { FORMS = sizeof forms / sizeof *forms };

/* Share of zeros, in units of 1/10000. */
static const int sparsities[] = {0, 5000, 7500, 9000, 9500, 9900, 9990, 9999};

struct matrix {
    int ndim;
    const int64_t *shape;
    int64_t elements;
    stk_dtype dtype;
};

static int64_t form_bytes(const struct matrix *matrix, const struct form *form, int64_t entries)
{
    int64_t index = stk_dtype_size(form->index), value = stk_dtype_size(matrix->dtype);

    if (form->kind == COO)
        return entries * (matrix->ndim * index + value);
    return (matrix->shape[0] + 1) * index + entries * (index + value);
}

static bool has_form(const struct matrix *matrix, const struct form *form)
{
    return form->kind == COO || matrix->ndim == 2;
}

static int64_t worth(const struct matrix *matrix, const struct form *form)
{
    if (form->kind == COO)
        return stk_coo_worth(matrix->ndim, matrix->elements, form->index, matrix->dtype);
    return stk_csr_worth(matrix->shape[0], matrix->shape[1], form->index, matrix->dtype);
}

bool pl_sparse_sensible(int ndim, const int64_t *shape)
{
    double elements = 1;

    for (int i = 0; i < ndim; i++)
        elements *= (double)shape[i];
    return ndim > 0 && elements >= 1 && elements < 1e15;
}

static void fill_table(const struct matrix *matrix, struct pl_table *table)
{
    char text[32];

    pl_table_put(table, "zeros");
    pl_table_put(table, "entries");
    pl_table_put(table, "dense");
    for (int f = 0; f < FORMS; f++)
        if (has_form(matrix, &forms[f]))
            pl_table_put(table, "%s", forms[f].name);
    pl_table_end_row(table);
    for (size_t s = 0; s < sizeof sparsities / sizeof *sparsities; s++) {
        /* divides first, because the product could overflow */
        int64_t entries = matrix->elements / 10000 * (10000 - sparsities[s]) +
                          matrix->elements % 10000 * (10000 - sparsities[s]) / 10000;
        int64_t dense = matrix->elements * stk_dtype_size(matrix->dtype);
        pl_table_put(table, "%g %%", sparsities[s] / 100.0);
        pl_table_put(table, "%" PRId64, entries);
        pl_table_put(table, "%s", pl_bytes_text(text, sizeof text, dense));
        for (int f = 0; f < FORMS; f++)
            if (has_form(matrix, &forms[f])) {
                int64_t bytes = form_bytes(matrix, &forms[f], entries);
                pl_table_put(table, "%s%s", pl_bytes_text(text, sizeof text, bytes), bytes < dense ? " *" : "  ");
            }
        pl_table_end_row(table);
    }
}

static void tell_worth(const struct matrix *matrix, const struct form *form, FILE *to)
{
    int64_t most = worth(matrix, form);

    if (most <= 0)
        fprintf(to, "%s is never smaller than dense.\n", form->name);
    else
        fprintf(to, "%s is smaller than dense for up to %" PRId64 " entries (at least %.2f %% zeros).\n", form->name,
                most, 100 - 100 * (double)most / (double)matrix->elements);
}

/* ---- chart ---- */

enum { WIDE = 560, HIGH = 260, LEFT = 48, TOP = 12, PLOT_WIDE = 400, PLOT_HIGH = 210 };
#define MOST_TIMES 3.0 /* top of the chart, relative to dense */

static double chart_y(double times)
{
    return TOP + PLOT_HIGH * (1 - (times > MOST_TIMES ? MOST_TIMES : times) / MOST_TIMES);
}

static void draw_form(const struct matrix *matrix, const struct form *form, int hue, FILE *to)
{
    double dense = (double)(matrix->elements * stk_dtype_size(matrix->dtype));
    double full = (double)form_bytes(matrix, form, matrix->elements) / dense;
    double empty = (double)form_bytes(matrix, form, 0) / dense;
    double from = full > MOST_TIMES ? (full - MOST_TIMES) / (full - empty) : 0;
    int64_t most = worth(matrix, form);

    if (empty >= MOST_TIMES)
        return;
    fprintf(to, "<g class=\"h%d\"><path class=\"line\"%s d=\"M%.1f %.1fL%d %.1f\"/>", hue,
            form->index == STK_I32 ? " stroke-dasharray=\"6 4\"" : "", LEFT + PLOT_WIDE * from, chart_y(full),
            LEFT + PLOT_WIDE, chart_y(empty));
    if (most > 0)
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"var(--h)\"/>",
                LEFT + PLOT_WIDE * (1 - (double)most / (double)matrix->elements), chart_y(1));
    fputs("</g>\n", to);
}

static void draw_chart(const struct matrix *matrix, FILE *to)
{
    int row = 0;

    fprintf(to,
            "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"bytes of the sparse forms "
            "against "
            "dense\">\n",
            WIDE, HIGH, WIDE, HIGH);
    for (int times = 0; times <= 3; times++)
        fprintf(to, "<path class=\"%s\" d=\"M%d %.1fH%d\"/><text class=\"i e\" x=\"%d\" y=\"%.1f\">%s</text>\n",
                times == 1 ? "true" : "grid", LEFT, chart_y(times), LEFT + PLOT_WIDE, LEFT - 6, chart_y(times) + 3,
                (const char *const[]){"0", "dense", "2×", "3×"}[times]);
    for (int percent = 0; percent <= 100; percent += 25)
        fprintf(to, "<text class=\"i\" x=\"%d\" y=\"%d\">%d %%</text>\n", LEFT + PLOT_WIDE * percent / 100,
                TOP + PLOT_HIGH + 16, percent);
    fprintf(to, "<text class=\"i\" x=\"%d\" y=\"%d\">elements that are 0</text>\n", LEFT + PLOT_WIDE / 2, HIGH - 6);
    for (int f = 0; f < FORMS; f++) {
        if (!has_form(matrix, &forms[f]))
            continue;
        draw_form(matrix, &forms[f], forms[f].kind == COO ? 0 : 1, to);
        fprintf(to,
                "<g class=\"h%d\"><path class=\"line\"%s d=\"M%d %dh24\"/><text class=\"i b\" x=\"%d\" "
                "y=\"%d\">%s</text></g>\n",
                forms[f].kind == COO ? 0 : 1, forms[f].index == STK_I32 ? " stroke-dasharray=\"6 4\"" : "",
                LEFT + PLOT_WIDE + 12, TOP + 8 + 18 * row, LEFT + PLOT_WIDE + 41, TOP + 11 + 18 * row, forms[f].name);
        row++;
    }
    fputs("</svg>\n", to);
}

stk_status pl_sparse_table(int ndim, const int64_t *shape, stk_dtype dtype, FILE *page, stk_error *err)
{
    struct matrix matrix = {ndim, shape, 1, dtype};
    struct pl_table *table = stki_zalloc(sizeof *table);
    char title[300];

    if (!table)
        return stki_fail_memory(err, sizeof *table, "a table");
    for (int i = 0; i < ndim; i++)
        matrix.elements *= shape[i];
    fill_table(&matrix, table);
    snprintf(title, sizeof title, "Dense against sparse, %s %s", stk_dtype_long_name(dtype), PL_SHAPE(ndim, shape));
    printf("\n%s\n\n", title);
    pl_table_text(table, stdout);
    printf("\n* smaller than dense\n");
    for (int f = 0; f < FORMS; f++)
        if (has_form(&matrix, &forms[f]))
            tell_worth(&matrix, &forms[f], stdout);
    if (page) {
        fputs("<section class=\"step\"><h2>", page);
        html_text(page, title);
        fputs("</h2>\n", page);
        pl_table_html(table, page);
        fputs("<p class=\"how\">* smaller than dense. The dot in the chart is where the format becomes smaller "
              "than dense.</p>\n",
              page);
        draw_chart(&matrix, page);
        for (int f = 0; f < FORMS; f++)
            if (has_form(&matrix, &forms[f])) {
                fputs("<p>", page);
                tell_worth(&matrix, &forms[f], page);
                fputs("</p>\n", page);
            }
        fputs("</section>\n", page);
    }
    stki_free(table);
    return STK_OK;
}
