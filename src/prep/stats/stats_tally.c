/* stats_tally.c: see stats_tally.h. */
#include "stats_tally.h"
#include "allocate.h"
#include "dtype.h"
#include "error.h"
#include "float_control.h"
#include <inttypes.h>
#include <string.h>

enum { FEW_CHANNELS = 256, LEAST_ELEMENTS = 256, RAGGED_BLOCK = 64, LONG_ROW = 4096 };

static bool by_counts(const stki_tally_form *form)
{
    return stki_counts_are_exact(form->dtype);
}

static bool is_whole(stk_dtype dtype)
{
    return dtype == STK_BOOL || dtype == STK_U8 || dtype == STK_I8 || dtype == STK_U16 || dtype == STK_I16 ||
           dtype == STK_U32 || dtype == STK_I32 || dtype == STK_U64 || dtype == STK_I64;
}

void stki_tally_form_blocks(stki_tally_form *form, int64_t largest)
{
    const int64_t target = form->channels <= FEW_CHANNELS                ? STKI_RUN
                           : (1 << 20) / form->channels > LEAST_ELEMENTS ? (1 << 20) / form->channels
                                                                         : LEAST_ELEMENTS;
    int64_t each = form->outer * form->inner;

    if (form->ragged || form->opaque) {
        form->block_rows = largest > 0 && largest <= LONG_ROW ? RAGGED_BLOCK : 1;
        return;
    }
    each = each > 0 ? each : 1;
    form->block_rows = each < target ? target / each : 1;
}

stk_status stki_tally_form_check(const stki_tally_form *form, const char *field, stk_error *err)
{
    if (form->opaque)
        return STK_OK;
    if (stki_dtype_category(form->dtype) != STKI_CATEGORY_REAL && !is_whole(form->dtype))
        return stki_fail(err, STK_E_UNSUPPORTED, "statistics of field %s: found %s, expected real numbers", field,
                         stk_dtype_name(form->dtype));
    if (form->classes && !is_whole(form->dtype))
        return stki_fail(err, STK_E_UNSUPPORTED, "classes of field %s: found %s, expected integers", field,
                         stk_dtype_name(form->dtype));
    return STK_OK;
}

/* ---- create and destroy ---- */

static stk_status make_parts(stki_tally *tally, const stki_tally_form *form, stk_error *err)
{
    stk_status status = STK_OK;

    tally->room = stki_zalloc(sizeof *tally->room);
    tally->gathered = stki_zalloc((int64_t)STKI_RUN * 8);
    if (!tally->room || !tally->gathered)
        return stki_fail_memory(err, sizeof *tally->room, "statistics");
    if (form->ragged || form->opaque)
        status = stki_counts_init(&tally->length_counts, STK_I64, 1, form->most_bytes, err);
    if (status != STK_OK || form->opaque)
        return status;
    if (by_counts(form) || form->counts)
        status = stki_counts_init(&tally->counts, form->dtype, form->channels, form->most_bytes, err);
    if (status == STK_OK && !by_counts(form)) {
        tally->moments = stki_zalloc_array(form->channels, sizeof *tally->moments);
        if (!tally->moments)
            status = stki_fail_memory(err, form->channels * (int64_t)sizeof *tally->moments, "statistics");
    }
    return status;
}

stk_status stki_tally_create(const stki_tally_form *form, enum stki_isa isa, stki_tally **out, stk_error *err)
{
    stki_tally *tally = stki_zalloc(sizeof *tally);
    stk_status status;

    if (!tally)
        return stki_fail_memory(err, sizeof *tally, "statistics");
    tally->loops = stki_stats_loops_of(isa);
    status = make_parts(tally, form, err);
    if (status != STK_OK) {
        stki_tally_destroy(tally);
        return status;
    }
    *out = tally;
    return STK_OK;
}

void stki_tally_destroy(stki_tally *tally)
{
    if (!tally)
        return;
    stki_free(tally->moments);
    stki_counts_fini(&tally->counts);
    stki_values_fini(&tally->values);
    stki_counts_fini(&tally->length_counts);
    stki_free(tally->room);
    stki_free(tally->gathered);
    stki_free(tally);
}

/* ---- rows ---- */

static int64_t whole_at(stk_dtype dtype, const char *at)
{
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        int64_t i64;
    } word = {0};

    memcpy(&word, at, (size_t)stk_dtype_size(dtype));
    switch (dtype) {
    case STK_BOOL:
        return word.u8 != 0;
    case STK_U8:
        return word.u8;
    case STK_I8:
        return word.i8;
    case STK_U16:
        return word.u16;
    case STK_I16:
        return word.i16;
    case STK_U32:
        return word.u32;
    case STK_I32:
        return word.i32;
    default:
        return word.i64;
    }
}

static stk_status add_classes(stki_tally *tally, const stki_tally_form *form, const char *data, int64_t elements,
                              stk_error *err)
{
    const int64_t size = stk_dtype_size(form->dtype);
    stk_status status = STK_OK;

    for (int64_t i = 0; i < elements && status == STK_OK; i++) {
        const int64_t value = whole_at(form->dtype, data + i * size);

        if (form->dtype == STK_U64 && value < 0)
            return stki_fail(err, STK_E_RANGE, "classes: found %" PRIu64 ", expected at most %" PRId64, (uint64_t)value,
                             INT64_MAX);
        status = stki_values_add(&tally->values, value, 1, err);
    }
    return status;
}

/* Adds n contiguous elements of one channel. */
static stk_status add_run(stki_tally *tally, const stki_tally_form *form, int64_t channel, const void *x, int64_t n,
                          stk_error *err)
{
    const void *finite = x;
    int64_t count = n;

    if (!by_counts(form))
        stki_moments_add(&tally->moments[channel], tally->loops, form->dtype, x, n, tally->room, &finite, &count);
    if (by_counts(form) || form->counts)
        return stki_counts_add(&tally->counts, tally->loops, channel, finite, count, err);
    return STK_OK;
}

/* Returns elements [start, start + n) of a channel, which is stored in runs of `inner` elements. They are returned in
 * place if contiguous, and otherwise copied to `gathered`. */
static const char *run_of(const stki_tally *tally, const stki_tally_form *form, const char *data, int64_t channel,
                          int64_t start, int64_t n)
{
    const int64_t size = stk_dtype_size(form->dtype), inner = form->inner, channels = form->channels;
    int64_t group = start / inner, inside = start % inner, done = 0;

    if (channels == 1)
        return data + start * size;
    if (inner == 1) {
        tally->loops->gather(tally->gathered, data + (start * channels + channel) * size, n, channels, size);
        return tally->gathered;
    }
    if (inside + n <= inner)
        return data + ((group * channels + channel) * inner + inside) * size;
    while (done < n) {
        const int64_t here = inner - inside < n - done ? inner - inside : n - done;

        memcpy(tally->gathered + done * size, data + ((group * channels + channel) * inner + inside) * size,
               (size_t)(here * size));
        done += here;
        group++;
        inside = 0;
    }
    return tally->gathered;
}

stk_status stki_tally_block(stki_tally *tally, const stki_tally_form *form, const void *data, int64_t rows,
                            int64_t elements, stk_error *err)
{
    const int64_t each = elements / form->channels;
    const int64_t most = form->channels == 1 && stk_dtype_size(form->dtype) == 1 ? STKI_COUNT_RUN : STKI_RUN;
    stki_float_control control;
    stk_status status = STK_OK;

    tally->rows += rows;
    if (form->opaque)
        return STK_OK;
    control = stki_float_enter();
    for (int64_t c = 0; c < form->channels; c++)
        for (int64_t start = 0; start < each && status == STK_OK; start += most) {
            const int64_t n = each - start < most ? each - start : most;

            status = add_run(tally, form, c, run_of(tally, form, data, c, start, n), n, err);
        }
    stki_float_leave(control);
    if (form->classes && status == STK_OK)
        status = add_classes(tally, form, data, elements, err);
    return status;
}

stk_status stki_tally_length(stki_tally *tally, int64_t length, stk_error *err)
{
    const void *finite;
    int64_t count;

    stki_moments_add(&tally->lengths, tally->loops, STK_I64, &length, 1, tally->room, &finite, &count);
    return stki_counts_add(&tally->length_counts, tally->loops, 0, &length, 1, err);
}

stk_status stki_tally_merge(stki_tally *into, const stki_tally_form *form, const stki_tally *from, stk_error *err)
{
    stk_status status = STK_OK;

    into->rows += from->rows;
    stki_moments_merge(&into->lengths, &from->lengths);
    for (int64_t c = 0; into->moments && c < form->channels; c++)
        stki_moments_merge(&into->moments[c], &from->moments[c]);
    if (into->counts.page_of)
        status = stki_counts_merge(&into->counts, &from->counts, err);
    if (status == STK_OK && into->length_counts.page_of)
        status = stki_counts_merge(&into->length_counts, &from->length_counts, err);
    return status == STK_OK ? stki_values_merge(&into->values, &from->values, err) : status;
}

/* ---- results ---- */

static stk_status from_counts(const stki_tally *tally, const stki_tally_form *form, int64_t channel,
                              stki_moments *moments, stk_error *err)
{
    stki_bins bins;
    const stk_status status = stki_counts_bins(&tally->counts, channel, &bins, err);

    for (int64_t i = 0; status == STK_OK && i < bins.count; i++)
        stki_moments_add_value(moments, bins.bin[i].middle, (int64_t)bins.bin[i].count);
    moments->nan = bins.nan;
    moments->infinite[0] = bins.infinite[0];
    moments->infinite[1] = bins.infinite[1];
    stki_bins_fini(&bins);
    (void)form;
    return status;
}

stk_status stki_tally_numbers(const stki_tally *tally, const stki_tally_form *form, int64_t channel, stki_numbers *out,
                              stk_error *err)
{
    stki_moments *moments = stki_zalloc(sizeof *moments);
    stki_float_control control;
    stk_status status = STK_OK;

    if (!moments)
        return stki_fail_memory(err, sizeof *moments, "statistics");
    if (by_counts(form))
        status = from_counts(tally, form, channel, moments, err);
    else if (channel >= 0)
        *moments = tally->moments[channel];
    for (int64_t c = 0; !by_counts(form) && channel < 0 && c < form->channels; c++)
        stki_moments_merge(moments, &tally->moments[c]);
    control = stki_float_enter();
    if (status == STK_OK)
        stki_moments_numbers(moments, is_whole(form->dtype), out);
    stki_float_leave(control);
    stki_free(moments);
    return status;
}
