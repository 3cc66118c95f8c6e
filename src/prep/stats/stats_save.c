/* stats_save.c: serializes tallies. Numbers are LEB128 (7 bits per byte, lowest first, top bit set in all but the
 * last):
 *
 *     "STKT" 1  dtype  flags  channels  rows
 *     moments, once per channel (if moments are kept)
 *     counts (if values are counted), moments and counts of lengths (if rows vary), classes
 *     8 bytes: XXH3 of all bytes before
 *
 *     moments   count nan infinite[2] zeros, min max (8 bytes each), least most (16 each), sum, squares
 *     sum       sign, first digit, number of digits, 4 bytes per digit
 *     counts    per channel: number of pages; per page: its number, its number of non-empty bins, and for each bin the
 *               distance from the previous one and the count
 *     classes   their number; for each the difference from the previous one (zigzag encoded) and the count
 */
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "stats_tally.h"
#include <math.h>
#include <string.h>

static const char magic[5] = {'S', 'T', 'K', 'T', 1};

/* ---- writing ---- */

typedef struct writer {
    char *bytes;
    int64_t used, room;
    bool failed;
} writer;

static void put(writer *w, const void *bytes, int64_t size)
{
    if (w->failed)
        return;
    if (w->used + size > w->room) {
        const int64_t room = 2 * (w->used + size) + 1024;
        char *grown = stki_resize(w->bytes, room);

        if (!grown) {
            w->failed = true;
            return;
        }
        w->bytes = grown;
        w->room = room;
    }
    memcpy(w->bytes + w->used, bytes, (size_t)size);
    w->used += size;
}

static void put_number(writer *w, uint64_t number)
{
    uint8_t text[10];
    int n = 0;

    for (; number >= 0x80; number >>= 7)
        text[n++] = (uint8_t)(number | 0x80);
    text[n++] = (uint8_t)number;
    put(w, text, n);
}

static void put_sum(writer *w, const stki_exact *sum)
{
    stki_exact digits = *sum;
    int first = 0, last = STKI_EXACT_DIGITS - 1;
    bool negative;

    stki_exact_settle(&digits);
    negative = digits.digit[last] < 0;
    if (negative) {
        for (int i = 0; i < STKI_EXACT_DIGITS; i++)
            digits.digit[i] = -digits.digit[i];
        stki_exact_settle(&digits);
    }
    while (last >= 0 && !digits.digit[last])
        last--;
    while (first < last && !digits.digit[first])
        first++;
    put_number(w, negative);
    put_number(w, (uint64_t)first);
    put_number(w, (uint64_t)(last - first + 1));
    for (int i = first; i <= last; i++)
        put(w, &(uint32_t){(uint32_t)digits.digit[i]}, sizeof(uint32_t));
}

static void put_moments(writer *w, const stki_moments *m)
{
    put_number(w, (uint64_t)m->count);
    put_number(w, (uint64_t)m->nan);
    put_number(w, (uint64_t)m->infinite[0]);
    put_number(w, (uint64_t)m->infinite[1]);
    put_number(w, (uint64_t)m->zeros);
    put(w, &m->min, sizeof m->min);
    put(w, &m->max, sizeof m->max);
    put(w, &m->least, sizeof m->least);
    put(w, &m->most, sizeof m->most);
    put_sum(w, &m->sum);
    put_sum(w, &m->squares);
}

static void put_page(writer *w, int page, const uint64_t *bins, int64_t size)
{
    int64_t used = 0, before = 0;

    for (int64_t i = 0; i < size; i++)
        used += bins[i] != 0;
    put_number(w, (uint64_t)page);
    put_number(w, (uint64_t)used);
    for (int64_t i = 0; i < size; i++)
        if (bins[i]) {
            put_number(w, (uint64_t)(i - before));
            put_number(w, bins[i]);
            before = i;
        }
}

static void put_counts(writer *w, const stki_counts *counts)
{
    for (int64_t c = 0; c < counts->channels; c++) {
        uint64_t pages = 0;

        for (int page = 0; page < counts->page_count; page++)
            pages += stki_counts_look(counts, c, page) != NULL;
        put_number(w, pages);
        for (int page = 0; page < counts->page_count; page++)
            if (stki_counts_look(counts, c, page))
                put_page(w, page, stki_counts_look(counts, c, page), INT64_C(1) << counts->bits);
    }
}

static stk_status put_values(writer *w, const stki_values *values, stk_error *err)
{
    stki_value_count *list;
    int64_t before = 0;
    const stk_status status = stki_values_list(values, &list, err);

    if (status != STK_OK)
        return status;
    put_number(w, (uint64_t)values->used);
    for (int64_t i = 0; i < values->used; i++) {
        const uint64_t step = (uint64_t)list[i].value - (uint64_t)before;

        put_number(w, step << 1 ^ (uint64_t) - (int64_t)(step >> 63));
        put_number(w, (uint64_t)list[i].count);
        before = list[i].value;
    }
    stki_free(list);
    return STK_OK;
}

static unsigned flags_of(const stki_tally_form *form)
{
    return (unsigned)form->counts | (unsigned)form->classes << 1 | (unsigned)form->ragged << 2 |
           (unsigned)form->opaque << 3;
}

stk_status stki_tally_save(stki_tally *tally, const stki_tally_form *form, char **out, int64_t *size, stk_error *err)
{
    writer w = {0};
    stk_status status;
    uint64_t sum;

    put(&w, magic, sizeof magic);
    put_number(&w, (uint64_t)form->dtype);
    put_number(&w, flags_of(form));
    put_number(&w, (uint64_t)form->channels);
    put_number(&w, (uint64_t)tally->rows);
    for (int64_t c = 0; tally->moments && c < form->channels; c++)
        put_moments(&w, &tally->moments[c]);
    if (tally->counts.page_of)
        put_counts(&w, &tally->counts);
    if (tally->length_counts.page_of) {
        put_moments(&w, &tally->lengths);
        put_counts(&w, &tally->length_counts);
    }
    status = put_values(&w, &tally->values, err);
    sum = w.failed ? 0 : stki_digest_64(w.bytes, w.used);
    put(&w, &sum, sizeof sum);
    if (status == STK_OK && w.failed)
        status = stki_fail_memory(err, w.room, "saved statistics");
    if (status != STK_OK) {
        stki_free(w.bytes);
        return status;
    }
    *out = w.bytes;
    *size = w.used;
    return STK_OK;
}

/* ---- reading ---- */

/* Limit for counts, so that sums of the counts of several files cannot overflow. */
#define MOST_COUNTED (INT64_C(1) << 56)

typedef struct reader {
    const uint8_t *at, *end;
    bool failed;
    int64_t counted; /* total of the counts in the current part so far */
} reader;

static void get(reader *r, void *out, int64_t size)
{
    if (r->failed || r->end - r->at < size) {
        r->failed = true;
        memset(out, 0, (size_t)size);
        return;
    }
    memcpy(out, r->at, (size_t)size);
    r->at += size;
}

static uint64_t get_number(reader *r)
{
    uint64_t number = 0;

    for (int shift = 0; shift < 64; shift += 7) {
        uint8_t byte;

        get(r, &byte, 1);
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return number;
    }
    r->failed = true;
    return 0;
}

/* Reads a number below `end`. */
static int64_t get_below(reader *r, int64_t end)
{
    const uint64_t number = get_number(r);

    r->failed |= number >= (uint64_t)end;
    return r->failed ? 0 : (int64_t)number;
}

/* Reads a count; the running total must stay below the limit. */
static int64_t get_count(reader *r)
{
    const int64_t count = get_below(r, MOST_COUNTED - r->counted);

    r->counted += count;
    return count;
}

static void get_sum(reader *r, stki_exact *sum)
{
    const bool negative = get_below(r, 2) != 0;
    const int64_t first = get_below(r, STKI_EXACT_DIGITS), count = get_below(r, STKI_EXACT_DIGITS + 1);

    *sum = (stki_exact){{0}, 0};
    r->failed |= first + count > STKI_EXACT_DIGITS;
    for (int64_t i = first; !r->failed && i < first + count; i++) {
        uint32_t digit;

        get(r, &digit, sizeof digit);
        sum->digit[i] = negative ? -(int64_t)digit : (int64_t)digit;
    }
}

static void get_moments(reader *r, stki_moments *m)
{
    m->count = get_count(r);
    m->nan = get_count(r);
    m->infinite[0] = get_count(r);
    m->infinite[1] = get_count(r);
    m->zeros = get_below(r, m->count + 1);
    get(r, &m->min, sizeof m->min);
    get(r, &m->max, sizeof m->max);
    get(r, &m->least, sizeof m->least);
    get(r, &m->most, sizeof m->most);
    get_sum(r, &m->sum);
    get_sum(r, &m->squares);
    r->failed |= !isfinite(m->min) || !isfinite(m->max) || m->min > m->max || m->least > m->most;
}

static stk_status get_counts(reader *r, stki_counts *counts, stk_error *err)
{
    const int64_t size = INT64_C(1) << counts->bits;

    r->counted = 0;
    for (int64_t c = 0; c < counts->channels && !r->failed; c++)
        for (int64_t pages = get_below(r, counts->page_count + 1); pages > 0 && !r->failed; pages--) {
            const int page = (int)get_below(r, counts->page_count);
            int64_t used = get_below(r, size + 1), at = 0;
            uint64_t *bins;
            stk_status status;

            if (r->failed)
                break;
            if ((status = stki_counts_page(counts, c, page, &bins, err)) != STK_OK)
                return status;
            for (; used > 0 && !r->failed; used--) {
                at += get_below(r, size);
                r->failed |= at >= size;
                if (!r->failed)
                    bins[at] = (uint64_t)get_count(r);
            }
        }
    return STK_OK;
}

static stk_status get_values(reader *r, stki_values *values, stk_error *err)
{
    stk_status status = STK_OK;
    uint64_t value = 0;

    r->counted = 0;
    for (int64_t n = get_below(r, STKI_VALUES_MOST + 1); n > 0 && !r->failed && status == STK_OK; n--) {
        const uint64_t step = get_number(r);

        value += step >> 1 ^ -(step & 1);
        status = stki_values_add(values, (int64_t)value, get_count(r), err);
    }
    return status;
}

static stk_status read_parts(reader *r, const stki_tally_form *form, stki_tally *tally, stk_error *err)
{
    stk_status status = STK_OK;

    tally->rows = get_below(r, MOST_COUNTED);
    for (int64_t c = 0; tally->moments && c < form->channels && !r->failed; c++)
        get_moments(r, &tally->moments[c]);
    if (tally->counts.page_of)
        status = get_counts(r, &tally->counts, err);
    if (status == STK_OK && tally->length_counts.page_of) {
        r->counted = 0;
        get_moments(r, &tally->lengths);
        status = get_counts(r, &tally->length_counts, err);
    }
    return status == STK_OK ? get_values(r, &tally->values, err) : status;
}

stk_status stki_tally_load(const stki_tally_form *form, const void *bytes, int64_t size, stki_tally **out,
                           stk_error *err)
{
    reader r = {.at = bytes, .end = (const uint8_t *)bytes + size};
    char start[sizeof magic];
    stki_tally *tally;
    uint64_t sum = 0;
    stk_status status;

    if (size >= 8)
        memcpy(&sum, (const char *)bytes + size - 8, sizeof sum);
    if (size < 8 || sum != stki_digest_64(bytes, size - 8))
        return stki_fail(err, STK_E_CORRUPT, "saved statistics: damaged");
    r.end -= 8;
    get(&r, start, sizeof start);
    if (r.failed || memcmp(start, magic, sizeof magic) != 0 || get_number(&r) != (uint64_t)form->dtype ||
        get_number(&r) != flags_of(form) || get_number(&r) != (uint64_t)form->channels)
        return stki_fail(err, STK_E_CORRUPT,
                         "the saved statistics belong to another field or were computed with other options");
    status = stki_tally_create(form, stki_isa(), &tally, err);
    if (status != STK_OK)
        return status;
    status = read_parts(&r, form, tally, err);
    if (status == STK_OK && (r.failed || r.at != r.end))
        status = stki_fail(err, STK_E_CORRUPT, "saved statistics: damaged");
    if (status != STK_OK) {
        stki_tally_destroy(tally);
        return status;
    }
    *out = tally;
    return STK_OK;
}
