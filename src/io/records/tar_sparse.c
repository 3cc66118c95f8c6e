/* tar_sparse.c: reads sparse members, of which an archive stores only some runs of bytes; all other bytes are 0. The
 * map of runs is in the header (old GNU tar), in pax records (GNU 0.0 and 0.1, Solaris) or at the beginning of the data
 * (GNU 1.0), as described in the GNU tar manual ("Storing Sparse Files"). */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "npy_header.h"
#include "tar.h"
#include <inttypes.h>
#include <string.h>

/* The map of old GNU tar: pairs of 12-byte numbers, 4 pairs in the header and 21 in each following block. */
enum { GNU_MAP = 386, GNU_SIZE = 483, GNU_IN_HEADER = 4, GNU_IN_BLOCK = 21 };

stk_status stki_tar_reserve(stki_tar_array *array, int64_t more, int64_t each, stk_error *err)
{
    return stki_grow(&array->data, &array->room, array->count + more, each, "the index of an archive", err);
}

/* ---- maps ---- */

struct map {
    const stki_file *file;
    stki_tar_array *runs;
    int64_t size, at;     /* size of the file, and end of the previous run */
    int64_t stored, left; /* offset of the next run's data, and number of bytes left in the member */
    int64_t place;        /* offset of the map, for messages */
};

static stk_status fail_map(const struct map *m, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){m->file->path, -1, m->place, found, expected},
                        "invalid map of a sparse member");
}

static stk_status put_run(struct map *m, int64_t at, int64_t bytes, stk_error *err)
{
    stk_status status = stki_tar_reserve(m->runs, 1, sizeof(stki_tar_run), err);

    if (status == STK_OK)
        ((stki_tar_run *)m->runs->data)[m->runs->count++] = (stki_tar_run){at, bytes, m->stored};
    return status;
}

static stk_status add_run(struct map *m, int64_t at, int64_t bytes, stk_error *err)
{
    stk_status status = STK_OK;

    if (at < m->at || !stki_inside(at, bytes, m->size))
        return fail_map(m, STKI_TEXT("%" PRId64 " bytes starting at byte %" PRId64, bytes, at),
                        STKI_TEXT("ascending runs within its %" PRId64 " bytes", m->size), err);
    if (bytes > m->left)
        return fail_map(m, STKI_TEXT("a run of %" PRId64 " bytes", bytes),
                        STKI_TEXT("at most the %" PRId64 " that are stored", m->left), err);
    if (bytes > 0)
        status = put_run(m, at, bytes, err);
    m->at = at + bytes;
    m->stored += bytes;
    m->left -= bytes;
    return status;
}

static stk_status end_map(struct map *m, stk_error *err)
{
    if (m->left > 0)
        return fail_map(m, STKI_TEXT("%" PRId64 " bytes that do not belong to any run", m->left), "none", err);
    return put_run(m, m->size, 0, err);
}

/* Parses a decimal number followed by the byte `behind`, and advances *at past both. */
static stk_status map_number(const struct map *m, stki_tar_text text, char behind, int64_t *at, int64_t *out,
                             stk_error *err)
{
    char shown[32];
    int64_t left = text.bytes > *at ? text.bytes - *at : 0;
    int64_t digits = stki_tar_decimal(text.text + *at, left, out), end = *at + digits;

    if (digits == 0 || (end < text.bytes && text.text[end] != behind))
        return fail_map(
            m, left > 0 ? stki_npy_printable(shown, sizeof shown, text.text + *at, left) : "the end of the map",
            "a decimal number", err);
    *at = end + 1;
    return STK_OK;
}

/* ---- pax ---- */

/* Parses OFFSET,BYTES,OFFSET,BYTES… */
static stk_status read_pairs(struct map *m, stki_tar_text text, stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0, at, bytes; i < text.bytes && status == STK_OK;) {
        status = map_number(m, text, ',', &i, &at, err);
        if (status == STK_OK && i >= text.bytes)
            status = fail_map(m, "an odd number of values", "pairs", err);
        if (status == STK_OK)
            status = map_number(m, text, ',', &i, &bytes, err);
        if (status == STK_OK)
            status = add_run(m, at, bytes, err);
    }
    return status;
}

/* Parses alternating records GNU.sparse.offset and GNU.sparse.numbytes. */
static stk_status read_records(struct map *m, const stki_tar_sparse *member, stk_error *err)
{
    int64_t i = 0, at = -1, value;
    stki_tar_record record;
    stk_status status;

    while ((status = stki_tar_next_record(member->pax_text, member->pax_bytes, member->pax_offset, m->file->path, &i,
                                          &record, err)) == STK_OK) {
        bool offset = stki_tar_record_is(&record, "GNU.sparse.offset");

        if (!offset && !stki_tar_record_is(&record, "GNU.sparse.numbytes"))
            continue;
        if (stki_tar_decimal(record.value, record.bytes, &value) != record.bytes || record.bytes == 0)
            return fail_map(m, "a value that is not a number", "a decimal number", err);
        if (offset != (at < 0))
            return fail_map(m, offset ? "two offsets" : "two byte counts", "pairs", err);
        if (!offset)
            status = add_run(m, at, value, err);
        if (status != STK_OK)
            return status;
        at = offset ? value : -1;
    }
    if (status != STK_END)
        return status;
    return at < 0 ? STK_OK : fail_map(m, "an offset without a byte count", "pairs", err);
}

/* Parses the number of runs and then a pair of numbers per run. Each number is on its own line; the map is padded to
 * whole blocks. */
static stk_status read_lines(struct map *m, stki_tar_text text, int64_t *used, stk_error *err)
{
    int64_t count, i = 0;
    stk_status status = map_number(m, text, '\n', &i, &count, err);

    for (int64_t n = 0, at, bytes; n < count && status == STK_OK; n++) {
        status = map_number(m, text, '\n', &i, &at, err);
        if (status == STK_OK)
            status = map_number(m, text, '\n', &i, &bytes, err);
        if (status == STK_OK && i > text.bytes)
            return stki_fail_at(err, text.bytes < STKI_TAR_EXTRA_LIMIT ? STK_E_CORRUPT : STK_E_LIMIT,
                                (stki_place){m->file->path, -1, m->place, STKI_TEXT("%" PRId64 " runs", count),
                                             STKI_TEXT("a map of at most %" PRId64 " bytes", text.bytes)},
                                "the map of a sparse member is too long");
        if (status == STK_OK)
            status = add_run(m, at, bytes, err);
    }
    *used = stki_round_up(i, STKI_TAR_BLOCK);
    return status;
}

static stk_status read_data_map(struct map *m, stki_tar_sparse *member, stk_error *err)
{
    int64_t bytes = member->stored < STKI_TAR_EXTRA_LIMIT ? member->stored : STKI_TAR_EXTRA_LIMIT, used = 0;
    int64_t first = m->runs->count;
    char *text = stki_zalloc(bytes + 1);
    stk_status status;

    if (!text)
        return stki_fail_memory(err, bytes + 1, "the map of a sparse member");
    status = stki_file_read(m->file, member->offset, text, bytes, err);
    if (status == STK_OK)
        status = read_lines(m, (stki_tar_text){text, bytes}, &used, err);
    stki_free(text);
    if (status != STK_OK)
        return status;
    m->left = member->stored - used - (m->stored - member->offset);
    if (used > member->stored || m->left < 0)
        return fail_map(m, STKI_TEXT("runs of %" PRId64 " bytes", m->stored - member->offset),
                        STKI_TEXT("the %" PRId64 " that are stored after it", member->stored - used), err);
    for (int64_t i = first; i < m->runs->count; i++)
        ((stki_tar_run *)m->runs->data)[i].offset += used;
    m->stored += used;
    member->offset += used;
    return STK_OK;
}

/* Parses " END END…": the ends of the first hole, of the data after it, of the next hole, and so on. All bytes are
 * stored. */
static stk_status read_holes(struct map *m, stki_tar_sparse *member, stki_tar_text text, stk_error *err)
{
    int64_t i = 1, start = 0, end = 0;
    bool hole = true;
    stk_status status = STK_OK;

    if (text.bytes < 2 || text.text[0] != ' ')
        return fail_map(m, "other text", "ends of holes and data, each after a space", err);
    while (i < text.bytes && status == STK_OK) {
        status = map_number(m, text, ' ', &i, &end, err);
        if (status == STK_OK && (end < start || end > member->stored))
            status = fail_map(m, STKI_TEXT("byte %" PRId64, end),
                              STKI_TEXT("an ascending end of at most %" PRId64, member->stored), err);
        m->stored = member->offset + start;
        if (status == STK_OK && !hole)
            status = add_run(m, start, end - start, err);
        start = end;
        hole = !hole;
    }
    m->stored = member->offset + member->stored;
    m->left = 0;
    return status;
}

stk_status stki_tar_sparse_pax(const stki_file *file, const stki_tar_pax *pax, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err)
{
    struct map m = {file, runs, member->size, 0, member->offset, member->stored, member->pax_offset};
    stk_status status;

    switch (pax->map) {
    case STKI_TAR_MAP_RECORD:
        status = read_pairs(&m, pax->map_text, err);
        break;
    case STKI_TAR_MAP_RECORDS:
        status = read_records(&m, member, err);
        break;
    case STKI_TAR_MAP_DATA:
        m.place = member->offset;
        status = read_data_map(&m, member, err);
        break;
    default:
        status = read_holes(&m, member, pax->map_text, err);
        break;
    }
    return status != STK_OK ? status : end_map(&m, err);
}

/* ---- old GNU ---- */

static stk_status add_pairs(struct map *m, const unsigned char *pairs, int count, stk_error *err)
{
    stk_status status = STK_OK;

    for (int i = 0; i < count && status == STK_OK; i++) {
        const unsigned char *pair = pairs + i * 24;
        int64_t at, bytes;

        if (pair[0] == '\0')
            break; /* the rest is unused */
        status = stki_tar_number(pair, m->place, m->file->path, "invalid map of a sparse member", &at, err);
        if (status == STK_OK)
            status = stki_tar_number(pair + 12, m->place, m->file->path, "invalid map of a sparse member", &bytes, err);
        if (status == STK_OK)
            status = add_run(m, at, bytes, err);
    }
    return status;
}

stk_status stki_tar_sparse_gnu(const stki_file *file, const unsigned char *block, stki_tar_sparse *member,
                               stki_tar_array *runs, stk_error *err)
{
    struct map m = {file, runs, 0, 0, 0, member->stored, member->offset - STKI_TAR_BLOCK + GNU_MAP};
    int64_t first = runs->count;
    bool more = block[STKI_TAR_GNU_MORE] != 0;
    stk_status status = stki_tar_number(block + GNU_SIZE, member->offset - STKI_TAR_BLOCK + GNU_SIZE, file->path,
                                        "invalid size of a sparse member", &member->size, err);

    m.size = member->size;
    if (status == STK_OK)
        status = add_pairs(&m, block + GNU_MAP, GNU_IN_HEADER, err);
    while (status == STK_OK && more) {
        unsigned char next[STKI_TAR_BLOCK];

        m.place = member->offset;
        status = stki_file_read(file, member->offset, next, sizeof next, err);
        if (status == STK_OK)
            status = add_pairs(&m, next, GNU_IN_BLOCK, err);
        more = status == STK_OK && next[STKI_TAR_GNU_BLOCK_MORE] != 0;
        member->offset += STKI_TAR_BLOCK;
    }
    if (status != STK_OK)
        return status;
    for (int64_t i = first; i < runs->count; i++)
        ((stki_tar_run *)runs->data)[i].offset += member->offset;
    m.stored += member->offset;
    return end_map(&m, err);
}

/* ---- reading ---- */

const void *stki_tar_index_mapped(const stki_file *file, const stki_tar_entry *entry)
{
    return file->map && !entry->sparse ? (const char *)file->map + entry->offset : NULL;
}

/* Returns the first run whose data is at `offset` or later. */
static int64_t find_run(const stki_tar_run *runs, int64_t count, int64_t offset)
{
    int64_t low = 0, high = count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;

        if (runs[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

stk_status stki_tar_runs_read(const stki_tar_run *runs, int64_t run_count, const stki_file *file,
                              const stki_tar_entry *entry, int64_t at, void *to, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    if (!entry->sparse)
        return stki_file_read(file, entry->offset + at, to, count, err);
    memset(to, 0, (size_t)count);
    for (int64_t i = find_run(runs, run_count, entry->offset); i < run_count && runs[i].bytes > 0 && status == STK_OK;
         i++) {
        int64_t from = runs[i].at > at ? runs[i].at : at, end;

        if (!stki_inside(runs[i].at, runs[i].bytes, entry->size) ||
            !stki_inside(runs[i].offset, runs[i].bytes, file->size))
            return stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, -1, runs[i].offset, NULL, NULL},
                                "the cached index does not match the archive: remove the index");
        end = runs[i].at + runs[i].bytes;
        end = end < at + count ? end : at + count;
        if (from < end)
            status =
                stki_file_read(file, runs[i].offset + (from - runs[i].at), (char *)to + (from - at), end - from, err);
    }
    return status;
}

stk_status stki_tar_index_read(const stki_tar_index *index, const stki_file *file, const stki_tar_entry *entry,
                               int64_t at, void *to, int64_t count, stk_error *err)
{
    return stki_tar_runs_read(index->runs, index->run_count, file, entry, at, to, count, err);
}
