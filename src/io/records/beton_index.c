/* beton_index.c: the table of allocations of a .beton file, which contains the length of each region. For JPEG images,
 * it is the only source of the length; for all other regions, it must agree with the row.
 *
 * The table is in the order in which its writers filled their pages. A single writer, such as stoker's, writes the
 * entries of sample 0, 1, 2, … consecutively; if all samples have the same number of entries, an entry's index follows
 * from its sample. Several writers interleave runs of samples, in which case the first entry of each sample is
 * recorded. The table is sorted (with a counting sort) only if a sample's entries are not consecutive.
 *
 * An empty region has an entry of size 0, whose pointer is meaningless and may equal that of the next region. */
#include "allocate.h"
#include "beton.h"
#include "checked.h"
#include "error.h"
#include "piece.h"
#include <inttypes.h>
#include <string.h>

enum { UNKNOWN = -1 };
#define NO_ENTRY UINT32_MAX

struct entry {
    uint64_t sample, pointer, bytes;
};

static struct entry load(const void *bytes)
{
    struct entry entry;

    memcpy(&entry, bytes, sizeof entry);
    return entry;
}

static stk_status fail_entry(const stki_beton_table *table, int64_t number, const struct entry *e, const char *what,
                             stk_error *err)
{
    const stki_beton_layout *l = table->layout;

    return stki_fail_at(
        err, STK_E_CORRUPT,
        (stki_place){table->file->path, e->sample < (uint64_t)l->sample_count ? (int64_t)e->sample : -1,
                     l->table + number * STKI_BETON_ENTRY,
                     STKI_TEXT("sample %" PRIu64 ", %" PRIu64 " bytes at %" PRIu64, e->sample, e->bytes, e->pointer),
                     STKI_TEXT("%" PRId64 " samples, and pages of %" PRId64 " bytes from offset %" PRId64
                               " to %" PRId64,
                               l->sample_count, l->page_bytes, l->data_start, l->table)},
        "allocation %" PRId64 " %s", number, what);
}

static stk_status check_entry(const stki_beton_table *table, int64_t number, const struct entry *e, stk_error *err)
{
    const stki_beton_layout *l = table->layout;
    uint64_t pages = l->table > l->data_start ? (uint64_t)(l->table - l->data_start) : 0,
             page = (uint64_t)l->page_bytes;
    uint64_t offset = e->pointer - (uint64_t)l->data_start; /* wraps around for pointers before the pages */

    if (e->sample >= (uint64_t)l->sample_count)
        return fail_entry(table, number, e, "belongs to a sample that does not exist", err);
    if (e->bytes == 0)
        return STK_OK;
    if (offset >= pages || e->bytes > pages - offset)
        return fail_entry(table, number, e, "is outside the pages", err);
    if ((offset & (page - 1)) + e->bytes > page)
        return fail_entry(table, number, e, "crosses a page", err);
    return STK_OK;
}

/* ---- building ---- */

/* Calls `visit` for every entry, in order. */
static stk_status each_entry(stki_beton_table *table,
                             stk_status (*visit)(void *context, int64_t number, const struct entry *e, stk_error *err),
                             void *context, stk_error *err)
{
    const stki_beton_layout *l = table->layout;
    stki_pieces pieces;
    const void *bytes;
    int64_t count, number = 0;
    stk_status status = stki_pieces_init(&pieces, table->file, l->table, STKI_BETON_ENTRY, l->entry_count, err);

    while (status == STK_OK) {
        status = stki_pieces_next(&pieces, &bytes, &count, err);
        if (status != STK_OK || count == 0)
            break;
        for (int64_t at = 0; at < count && status == STK_OK; at += STKI_BETON_ENTRY, number++) {
            struct entry e = load((const char *)bytes + at);

            status = visit(context, number, &e, err);
        }
    }
    stki_pieces_fini(&pieces);
    return status;
}

/* First pass: checks every entry, and whether the entries are sorted by sample with the same number for each sample.
 * The loop visits all entries of the file, so it works on local copies, which is faster. */
struct first_look {
    const stki_beton_table *table;
    int64_t number;    /* number of the next entry */
    uint64_t expected; /* its sample */
    int64_t left;      /* remaining entries of that sample, including this one */
    bool regular;
};

static stk_status look_at(struct first_look *first, const char *bytes, int64_t count, stk_error *err)
{
    const int64_t each = first->table->per_sample;
    struct first_look now = *first;
    stk_status status = STK_OK;

    for (int64_t at = 0; at < count && status == STK_OK; at += STKI_BETON_ENTRY, now.number++) {
        struct entry e = load(bytes + at);

        status = check_entry(now.table, now.number, &e, err);
        now.regular &= e.sample == now.expected;
        if (--now.left == 0) {
            now.left = each;
            now.expected++;
        }
    }
    *first = now;
    return status;
}

static stk_status look_at_all(stki_beton_table *table, bool *regular, stk_error *err)
{
    const stki_beton_layout *l = table->layout;
    struct first_look first = {.table = table, .left = table->per_sample};
    stki_pieces pieces;
    const void *bytes;
    int64_t count;
    stk_status status = stki_pieces_init(&pieces, table->file, l->table, STKI_BETON_ENTRY, l->entry_count, err);

    first.regular = l->sample_count > 0 && l->entry_count % l->sample_count == 0;
    while (status == STK_OK) {
        status = stki_pieces_next(&pieces, &bytes, &count, err);
        if (status != STK_OK || count == 0)
            break;
        status = look_at(&first, bytes, count, err);
    }
    stki_pieces_fini(&pieces);
    *regular = first.regular;
    return status;
}

/* Second pass: finds the first entry of each sample. */
struct runs {
    stki_beton_table *table;
    uint64_t previous;
    bool apart; /* a sample's entries are not consecutive */
};

static stk_status note_run(void *context, int64_t number, const struct entry *e, stk_error *err)
{
    struct runs *runs = context;
    uint32_t *first = &runs->table->first[e->sample];

    (void)err;
    if (e->sample == runs->previous)
        return STK_OK;
    runs->apart = runs->apart || *first != NO_ENTRY;
    *first = (uint32_t)number;
    runs->previous = e->sample;
    return STK_OK;
}

/* Counting sort: count the entries of each sample, compute the starts, then place each entry. */
static stk_status count_one(void *context, int64_t number, const struct entry *e, stk_error *err)
{
    stki_beton_table *table = context;

    (void)number, (void)err;
    table->first[e->sample + 1]++;
    return STK_OK;
}

static stk_status place_one(void *context, int64_t number, const struct entry *e, stk_error *err)
{
    stki_beton_table *table = context;

    (void)err;
    table->order[table->first[e->sample]++] = (uint32_t)number;
    return STK_OK;
}

static stk_status sort_entries(stki_beton_table *table, stk_error *err)
{
    int64_t samples = table->layout->sample_count;
    stk_status status;

    table->order = stki_zalloc_array(table->layout->entry_count, sizeof *table->order);
    if (!table->order)
        return stki_fail_memory(err, table->layout->entry_count * (int64_t)sizeof *table->order, "an index");
    memset(table->first, 0, (size_t)(samples + 1) * sizeof *table->first);
    status = each_entry(table, count_one, table, err);
    if (status != STK_OK)
        return status;
    for (int64_t i = 0; i < samples; i++)
        table->first[i + 1] += table->first[i];
    status = each_entry(table, place_one, table, err);
    /* each start has advanced to the next start */
    memmove(table->first + 1, table->first, (size_t)samples * sizeof *table->first);
    table->first[0] = 0;
    return status;
}

static stk_status index_samples(stki_beton_table *table, stk_error *err)
{
    const stki_beton_layout *l = table->layout;
    struct runs runs = {.table = table, .previous = UINT64_MAX};
    stk_status status;

    table->per_sample = UNKNOWN;
    if (l->entry_count >= NO_ENTRY)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){table->file->path, -1, l->table, STKI_TEXT("%" PRId64, l->entry_count),
                                         STKI_TEXT("fewer than %u", NO_ENTRY)},
                            "too many allocations that are not in the order of the samples");
    table->first = stki_zalloc_array(l->sample_count + 1, sizeof *table->first);
    if (!table->first)
        return stki_fail_memory(err, (l->sample_count + 1) * (int64_t)sizeof *table->first, "an index");
    memset(table->first, 0xff, (size_t)(l->sample_count + 1) * sizeof *table->first);
    status = each_entry(table, note_run, &runs, err);
    return status != STK_OK || !runs.apart ? status : sort_entries(table, err);
}

static stk_status build(const stki_file *file, const stki_beton_layout *layout, stki_beton_table *out, stk_error *err)
{
    bool regular;
    stk_status status;

    *out = (stki_beton_table){.file = file, .layout = layout};
    if (layout->sample_count > 0)
        out->per_sample = layout->entry_count / layout->sample_count;
    status = look_at_all(out, &regular, err);
    if (status == STK_OK && layout->entry_count > 0 && !regular)
        status = index_samples(out, err);
    if (status != STK_OK)
        stki_beton_table_fini(out);
    return status;
}

void stki_beton_table_fini(stki_beton_table *table)
{
    stki_free(table->first);
    stki_free(table->order);
    table->first = table->order = NULL;
}

/* ---- lookup ---- */

static stk_status entry_at(const stki_beton_table *table, int64_t number, struct entry *out, stk_error *err)
{
    int64_t offset = table->layout->table + number * STKI_BETON_ENTRY;

    if (table->file->map) {
        *out = load((const char *)table->file->map + offset);
        return STK_OK;
    }
    return stki_file_read(table->file, offset, out, sizeof *out, err);
}

/* Finds the sample's entries [first, last), as indexes into `order` if there is one; `last` may be beyond those of the
 * sample. */
static void entries_of(const stki_beton_table *table, int64_t sample, int64_t *first, int64_t *last)
{
    int64_t entries = table->layout->entry_count;

    if (table->per_sample >= 0) {
        *first = sample * table->per_sample;
        *last = *first + table->per_sample;
    } else if (table->order) {
        *first = table->first[sample];
        *last = table->first[sample + 1];
    } else {
        *first = table->first[sample];
        *last = table->first[sample] == NO_ENTRY ? *first : entries;
    }
}

stk_status stki_beton_table_find(const stki_beton_table *table, int64_t sample, uint64_t pointer, int64_t *bytes,
                                 stk_error *err)
{
    int64_t first, last;

    *bytes = UNKNOWN;
    entries_of(table, sample, &first, &last);
    for (int64_t i = first; i < last; i++) {
        struct entry e;
        stk_status status = entry_at(table, table->order ? table->order[i] : i, &e, err);

        if (status != STK_OK)
            return status;
        if (e.sample != (uint64_t)sample)
            break; /* the sample's run of entries ends here */
        if (e.pointer == pointer && e.bytes <= (uint64_t)table->layout->page_bytes && (int64_t)e.bytes > *bytes)
            *bytes = (int64_t)e.bytes;
    }
    return STK_OK;
}

stk_status stki_beton_table_of(const stki_beton *beton, const stki_beton_table **out, stk_error *err)
{
    stki_beton_lazy *lazy = beton->lazy;
    stk_status status = STK_OK;

    stki_lock(&lazy->lock);
    if (!lazy->made)
        status = build(beton->file, &beton->layout, &lazy->table, err);
    lazy->made = lazy->made || status == STK_OK;
    stki_unlock(&lazy->lock);
    *out = &lazy->table;
    return status;
}
