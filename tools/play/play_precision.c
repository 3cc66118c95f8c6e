/* play_precision.c: --precision. The reference is a sine computed in double and stored as f32. It is then
 * cast (or quantized) to every other form and converted back to f32. */
#include "play_precision.h"
#include "allocate.h"
#include "error.h"
#include "html.h"
#include "play_page.h"
#include "play_table.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <stoker/create.h>
#include <stoker/quant.h>
#include <string.h>

enum { SAMPLES = 320 }; /* over about two periods, with distinct values */

struct form {
    const char *name, *note;
    stk_dtype dtype; /* NONE: quantized */
    bool fixed;      /* quantized for -range to range instead of the range of the values */
};

static const struct form forms[] = {
    {"float16", "11 bits of precision, up to 65504", STK_F16, false},
    {"bfloat16", "8 bits of precision, the range of float32", STK_BF16, false},
    {"float8_e4m3fn", "4 bits of precision, up to 448, no infinity", STK_F8_E4M3FN, false},
    {"float8_e5m2", "3 bits of precision, up to 57344", STK_F8_E5M2, false},
    {"int8 cast", "fractions truncated, -128 to 127", STK_I8, false},
    {"qint8 calibrated", "256 levels over the sine's own range", STK_DTYPE_NONE, false},
    {"qint8 fixed", "256 levels over a range given in advance", STK_DTYPE_NONE, true},
};

enum { FORMS = sizeof forms / sizeof *forms };

struct outcome {
    float values[SAMPLES];
    double largest_error;      /* over the samples that are finite */
    double limit;              /* numbers beyond it are clipped */
    int levels, clipped, lost; /* lost: infinite or NaN */
};

static void measure(const float *sine, struct outcome *outcome)
{
    outcome->largest_error = 0;
    outcome->levels = outcome->clipped = outcome->lost = 0;
    for (int i = 0; i < SAMPLES; i++) {
        bool seen = false;
        if (!isfinite(outcome->values[i])) {
            outcome->lost++;
            continue;
        }
        for (int j = 0; j < i && !seen; j++)
            seen = outcome->values[j] == outcome->values[i];
        outcome->levels += !seen;
        outcome->clipped += fabs((double)sine[i]) > outcome->limit;
        outcome->largest_error = fmax(outcome->largest_error, fabs((double)outcome->values[i] - (double)sine[i]));
    }
}

/* The largest finite number. */
static double largest(stk_dtype dtype)
{
    switch (dtype) {
    case STK_F16:
        return 65504;
    case STK_F8_E4M3FN:
        return 448;
    case STK_F8_E5M2:
        return 57344;
    case STK_I8:
        return 128;
    default:
        return 3.4e38;
    }
}

static stk_status cast(const stk_tensor *sine, stk_dtype dtype, struct outcome *out, stk_error *err)
{
    stk_tensor there, back;
    stk_status status = stk_tensor_to(sine, dtype, &there, err);

    if (status != STK_OK)
        return status;
    status = stk_tensor_to(&there, STK_F32, &back, err);
    stk_tensor_release(&there);
    if (status != STK_OK)
        return status;
    status = stk_tensor_to_bytes(&back, out->values, sizeof out->values, err);
    stk_tensor_release(&back);
    out->limit = largest(dtype);
    return status;
}

static stk_status quantize(const stk_tensor *sine, double fixed, struct outcome *out, stk_error *err)
{
    stk_quant *quant = NULL;
    stk_qtensor there;
    stk_tensor back;
    double scale = fixed / 127.5;
    stk_status status =
        fixed > 0 ? stk_quant_create(STK_QINT8, STK_QUANT_PER_TENSOR, 1, &scale, &(const int64_t){0}, &quant, err)
                  : stk_quant_minmax(sine, STK_QINT8, STK_QUANT_SYMMETRIC, &quant, err);

    if (status != STK_OK)
        return status;
    out->limit = 128.5 * stk_quant_scale(quant, 0);
    status = stk_quantize(sine, quant, &there, err);
    if (status == STK_OK) {
        status = stk_dequantize(&there, &back, err);
        stk_qtensor_release(&there);
    }
    if (status == STK_OK) {
        status = stk_tensor_to_bytes(&back, out->values, sizeof out->values, err);
        stk_tensor_release(&back);
    }
    stk_quant_release(quant);
    return status;
}

static void put_row(struct pl_table *table, const struct form *form, const struct outcome *outcome, double amplitude)
{
    pl_table_put(table, "%s", form->name);
    pl_table_put(table, "%d", outcome->levels);
    pl_table_put(table, "%.3g", outcome->largest_error);
    pl_table_put(table, "%.3g %%", 100 * outcome->largest_error / amplitude);
    pl_table_put(table, "%d", outcome->clipped);
    pl_table_put(table, "%d", outcome->lost);
    pl_table_end_row(table);
}

/* ---- drawing ---- */

enum { WIDE = 322, HIGH = 176, MIDDLE = 62, HALF = 54, ERROR_MIDDLE = 148, ERROR_HALF = 20 };

static void draw_curve(const float *values, double scale, double middle, const char *class, bool steps, FILE *to)
{
    bool pen_down = false;

    fprintf(to, "<path class=\"%s\" d=\"", class);
    for (int i = 0; i < SAMPLES; i++) {
        if (!isfinite(values[i])) {
            pen_down = false;
            continue;
        }
        double y = middle - (double)values[i] * scale;
        if (pen_down && steps)
            fprintf(to, "H%dV%.1f", i + 1, y);
        else
            fprintf(to, "%c%d %.1f", pen_down ? 'L' : 'M', i + 1, y);
        pen_down = true;
    }
    fputs("\"/>\n", to);
}

static void draw_lost(const struct outcome *outcome, FILE *to)
{
    for (int i = 0; i < SAMPLES; i++) {
        int start = i;
        while (i < SAMPLES && !isfinite(outcome->values[i]))
            i++;
        if (i > start)
            fprintf(to,
                    "<rect class=\"err\" style=\"stroke:none\" x=\"%d\" y=\"1\" width=\"%d\" "
                    "height=\"122\"/>\n",
                    start + 1, i - start);
    }
}

static void draw_panel(const struct form *form, const float *sine, const struct outcome *outcome, double amplitude,
                       FILE *to)
{
    float errors[SAMPLES];
    double scale = HALF / (1.08 * amplitude);

    for (int i = 0; i < SAMPLES; i++)
        errors[i] = outcome->values[i] - sine[i];
    fprintf(to,
            "<figure class=\"h0\"><h3>%s</h3><svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"a "
            "sine in %s\">\n<rect class=\"box\" x=\".5\" y=\".5\" width=\"%d\" height=\"123\"/><path class=\"axis\" "
            "d=\"M1 %dH%dM1 %dH%d\"/>\n",
            form->name, WIDE, HIGH, WIDE, HIGH, form->name, WIDE - 1, MIDDLE, WIDE - 1, ERROR_MIDDLE, WIDE - 1);
    draw_lost(outcome, to);
    draw_curve(outcome->values, scale, MIDDLE, "line", true, to);
    draw_curve(sine, scale, MIDDLE, "true", false, to);
    if (outcome->largest_error > 0) {
        fputs("<g class=\"h4\">", to);
        draw_curve(errors, ERROR_HALF / outcome->largest_error, ERROR_MIDDLE, "line thin", false, to);
        fputs("</g>", to);
    }
    fprintf(to, "<text class=\"i b\" x=\"4\" y=\"%d\">±%.3g</text></svg><figcaption>%s</figcaption></figure>\n",
            HIGH - 1, outcome->largest_error, form->note);
}

static void begin_page(FILE *page, const char *title)
{
    fputs("<section class=\"step\"><h2>", page);
    html_text(page, title);
    fputs("</h2>\n<p class=\"lead\">Gray: the sine in float32. Blue: its stored form. Below: the error, scaled "
          "separately for each form. Red background: infinite or not a number.</p>\n<div class=\"planes\">\n",
          page);
}

static stk_status make_sine(double amplitude, float *values, stk_tensor *out, stk_error *err)
{
    const int64_t count = SAMPLES;

    for (int i = 0; i < SAMPLES; i++)
        values[i] = (float)(amplitude * sin(12.7 * i / SAMPLES));
    return stk_tensor_from_array(STK_F32, values, (int64_t)sizeof *values * SAMPLES, 1, &count, NULL, out, err);
}

static stk_status compare(const stk_tensor *tensor, const float *sine, double amplitude, double range,
                          struct pl_table *table, FILE *page, stk_error *err)
{
    stk_status status = STK_OK;

    for (int f = 0; status == STK_OK && f < FORMS; f++) {
        const struct form *form = &forms[f];
        struct outcome outcome;
        status = form->dtype ? cast(tensor, form->dtype, &outcome, err)
                             : quantize(tensor, form->fixed ? range : 0, &outcome, err);
        if (status != STK_OK)
            break;
        measure(sine, &outcome);
        put_row(table, form, &outcome, amplitude);
        if (page)
            draw_panel(form, sine, &outcome, amplitude, page);
    }
    return status;
}

stk_status pl_precision(const struct pl_args *args, FILE *page, stk_error *err)
{
    static const char *const heading[] = {"form", "levels", "largest error", "of amplitude", "clipped", "lost"};
    double range = args->range > 0 ? args->range : 1;
    float sine[SAMPLES];
    char title[120];
    stk_tensor tensor;
    struct pl_table *table = stki_zalloc(sizeof *table);
    stk_status status =
        table ? make_sine(args->amplitude, sine, &tensor, err) : stki_fail_memory(err, sizeof *table, "a table");

    if (status != STK_OK) {
        stki_free(table);
        return status;
    }
    for (size_t i = 0; i < sizeof heading / sizeof *heading; i++)
        pl_table_put(table, "%s", heading[i]);
    pl_table_end_row(table);
    snprintf(title, sizeof title, "A sine of amplitude %g, %d samples; qint8 fixed for -%g to %g", args->amplitude,
             SAMPLES, range, range);
    if (page)
        begin_page(page, title);
    status = compare(&tensor, sine, args->amplitude, range, table, page, err);
    if (status == STK_OK) {
        printf("%s\n\n", title);
        pl_table_text(table, stdout);
        printf("\nlevels: distinct values; clipped: samples beyond the largest number; lost: infinite or NaN\n");
    }
    if (page && status == STK_OK) {
        fputs("</div>\n", page);
        pl_table_html(table, page);
        fputs("<p class=\"how\">levels: distinct values; clipped: samples beyond the largest number; lost: "
              "infinite or "
              "not a number.</p></section>\n",
              page);
    }
    stk_tensor_release(&tensor);
    stki_free(table);
    return status;
}
