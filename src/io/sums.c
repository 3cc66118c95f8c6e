/* sums.c: see sums.h. The mapped file may change at any time, so every pass checks all lengths again. */
#include "sums.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "option_print.h"
#include "output.h"
#include "packed.h"
#include "path.h"
#include "source.h"
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_STATIC_LINKING_ONLY /* needed for a state on the stack */
#include <xxhash.h>

enum { HEADER = 40, ENTRY = 24, SUMMED_FROM = 40 };

static const char magic[8] = "\x89STKSUM\n";

struct stki_sums {
    stki_file *file;
    void *copy; /* owned copy if the file is not mapped */
    const char *bytes;
};

struct entry {
    int64_t count, first, name_bytes, how_bytes;
    const char *name, *how;
};

/* ---- values ---- */

static void add(void *state, const void *bytes, int64_t count)
{
    (void)XXH3_64bits_update(state, bytes, (size_t)count);
}

uint64_t stki_sums_of(const stk_tensor *tensor)
{
    XXH3_state_t state;

    if (!(tensor->flags & STK_TENSOR_SWAPPED) && tensor->dtype != STK_BOOL && stk_tensor_is_contiguous(tensor))
        return XXH3_64bits(tensor->data, (size_t)stk_tensor_nbytes(tensor));
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    stki_packed_each(tensor, add, &state);
    return XXH3_64bits_digest(&state);
}

static void STK_PRINTF(2, 3) put(char how[STKI_SUMS_HOW], const char *format, ...)
{
    size_t used = strlen(how);
    va_list args;

    va_start(args, format);
    vsnprintf(how + used, STKI_SUMS_HOW - used, format, args);
    va_end(args);
}

/* Adds the options of formats that may change samples. Options implemented above the formats are not included here,
 * because those that change records are members of stki_reader_opts. */
static void put_options(char how[STKI_SUMS_HOW], const stki_source *source)
{
    stki_print print = {0};
    int first = 0;

    while (first < source->count && source->groups[first]->refuses)
        first++;
    stki_print_parts(&print, source->parts + first, source->count - first, source->map, "source");
    if (stki_print_end(&print, NULL) != STK_OK)
        put(how, "; ?"); /* matches no stored description */
    for (int i = 0; i < print.count; i++)
        put(how, "; %s=%s", print.lines[i].path, print.lines[i].value);
    stki_print_fini(&print);
}

void stki_sums_how(const stki_reader *reader, const stki_reader_opts *opts, char how[STKI_SUMS_HOW])
{
    how[0] = '\0';
    put(how, "%s%s", stk_dtype_long_name(reader->dtype), reader->variable ? " varying" : " [");
    for (int i = 0; !reader->variable && i < reader->ndim; i++)
        put(how, "%s%" PRId64, i ? ", " : "", reader->shape[i]);
    put(how, "%s", reader->variable ? "" : "]");
    if (opts->axis)
        put(how, "; axis %d", opts->axis);
    if (opts->window_length)
        put(how, "; windows of %" PRId64 " every %" PRId64, opts->window_length, opts->window_stride);
    if (opts->window_length && opts->window_dilation > 1)
        put(how, " of every %" PRId64, opts->window_dilation);
    if (opts->source)
        put_options(how, opts->source);
}

/* ---- the file's bytes ---- */

static uint64_t number_at(const char *bytes, int64_t at, int size)
{
    uint64_t value = 0;

    memcpy(&value, bytes + at, (size_t)size);
    return value;
}

static stk_status fail(const char *path, stk_status status, int64_t offset, const char *found, const char *expected,
                       const char *what, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){path, -1, offset, found, expected}, "%s", what);
}

/* Reads the entry at *at and advances *at. Returns false if the entry extends beyond the end. */
static bool next_entry(const char *bytes, int64_t count, int64_t *at, struct entry *out)
{
    int64_t end;

    if (!stki_inside(*at, ENTRY, count))
        return false;
    out->count = (int64_t)number_at(bytes, *at, 8);
    out->first = (int64_t)number_at(bytes, *at + 8, 8);
    out->name_bytes = (int64_t)number_at(bytes, *at + 16, 4);
    out->how_bytes = (int64_t)number_at(bytes, *at + 20, 4);
    out->name = bytes + *at + ENTRY;
    if (!stki_inside(*at + ENTRY, out->name_bytes + out->how_bytes, count))
        return false;
    out->how = out->name + out->name_bytes;
    end = stki_round_up(*at + ENTRY + out->name_bytes + out->how_bytes, 8);
    *at = end;
    return end <= count && out->count >= 0 && out->count <= count / 8 && out->first >= HEADER && out->first % 8 == 0 &&
           stki_inside(out->first, out->count * 8, count);
}

static stk_status check_entries(const char *bytes, int64_t count, const char *path, stk_error *err)
{
    uint64_t members = number_at(bytes, 12, 4);
    int64_t at = HEADER;
    struct entry entry;

    for (uint64_t i = 0; i < members; i++) {
        int64_t before = at;

        if (!next_entry(bytes, count, &at, &entry))
            return fail(path, STK_E_CORRUPT, before, STKI_TEXT("member %" PRIu64 " of %" PRIu64, i, members),
                        "a name and checksums inside the file", "invalid entry of a member", err);
    }
    return STK_OK;
}

stk_status stki_sums_validate(const void *data, int64_t count, const char *path, stk_error *err)
{
    const char *bytes = data;
    uint64_t sum;

    if (memcmp(bytes, magic, (size_t)(count < 8 ? count : 8)) != 0)
        return fail(path, STK_E_CORRUPT, 0, "an unknown signature", "a file written by stoker verify --write-sums",
                    "not a checksum file", err);
    if (count < HEADER)
        return fail(path, STK_E_TRUNCATED, -1, STKI_TEXT("%" PRId64 " bytes", count), "at least 40",
                    "the file is truncated", err);
    if (number_at(bytes, 8, 4) != 1)
        return fail(path, STK_E_UNSUPPORTED, 8, STKI_TEXT("version %" PRIu64, number_at(bytes, 8, 4)), "version 1",
                    "unsupported version of a checksum file", err);
    if (number_at(bytes, 24, 8) != (uint64_t)count)
        return fail(path, number_at(bytes, 24, 8) > (uint64_t)count ? STK_E_TRUNCATED : STK_E_CORRUPT, 24,
                    STKI_TEXT("%" PRId64, count), STKI_TEXT("%" PRIu64 " bytes", number_at(bytes, 24, 8)),
                    "unexpected file size", err);
    sum = XXH3_64bits(bytes + SUMMED_FROM, (size_t)(count - SUMMED_FROM));
    if (number_at(bytes, 32, 8) != sum)
        return fail(path, STK_E_CORRUPT, 32, STKI_TEXT("%016" PRIx64, sum),
                    STKI_TEXT("%016" PRIx64, number_at(bytes, 32, 8)), "wrong checksum of the checksum file", err);
    return check_entries(bytes, count, path, err);
}

/* ---- reading ---- */

/* Returns the path FILE.sums, which the caller frees with stki_free; NULL: out of memory. */
static char *sums_path(const char *data_path)
{
    const char *base = stki_base_name(data_path);
    size_t length = strlen(data_path);
    char whole[PATH_MAX];

    if ((!strcmp(base, ".") || !strcmp(base, "..")) &&
        realpath(data_path, whole)) /* next to the folder, under the folder's real name */
        return stki_format("%s.sums", whole);

    while (length > 1 && data_path[length - 1] == '/')
        length--;
    return stki_format("%.*s.sums", (int)length, data_path);
}

bool stki_sums_exist(const char *data_path)
{
    char *path = sums_path(data_path);
    struct stat st;
    bool exist = path && !stat(path, &st);

    stki_free(path);
    return exist;
}

static int64_t data_bytes(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) ? st.st_size : -1;
}

static stk_status check_data(const stki_sums *sums, const char *data_path, stk_error *err)
{
    int64_t found = data_bytes(data_path), expected = (int64_t)number_at(sums->bytes, 16, 8);

    if (found == expected)
        return STK_OK;
    return stki_fail_at(err, STK_E_MISMATCH,
                        (stki_place){sums->file->path, -1, 16, STKI_TEXT("a file of %" PRId64 " bytes", expected),
                                     STKI_TEXT("a file of %" PRId64 " bytes", found)},
                        "the checksums were computed for a file whose size differs from that of %s", data_path);
}

static stk_status load(stki_sums *sums, stk_error *err)
{
    const stki_file *file = sums->file;
    stk_status status;

    if (file->map || file->size == 0) {
        sums->bytes = file->map ? file->map : "";
        return STK_OK;
    }
    sums->copy = stki_zalloc(file->size);
    if (!sums->copy)
        return stki_fail_memory(err, file->size, file->path);
    sums->bytes = sums->copy;
    status = stki_file_read(file, 0, sums->copy, file->size, err);
    return status;
}

stk_status stki_sums_open(const char *data_path, stki_sums **out, stk_error *err)
{
    stki_sums *sums = stki_zalloc(sizeof *sums);
    char *path = sums_path(data_path);
    stk_status status;

    if (!sums || !path)
        status = stki_fail_memory(err, sizeof *sums, "checksums");
    else
        status = stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_SEQUENTIAL, &sums->file, err);
    if (status == STK_OK)
        status = load(sums, err);
    if (status == STK_OK)
        status = stki_sums_validate(sums->bytes, sums->file->size, path, err);
    if (status == STK_OK)
        status = check_data(sums, data_path, err);
    if (status == STK_OK)
        status = stki_file_intact(sums->file, -1, err);
    stki_free(path);
    if (status != STK_OK)
        stki_sums_close(sums);
    else
        *out = sums;
    return status;
}

void stki_sums_close(stki_sums *sums)
{
    if (!sums)
        return;
    stki_file_close(sums->file);
    stki_free(sums->copy);
    stki_free(sums);
}

static bool is_text(const char *bytes, int64_t count, const char *text)
{
    return (size_t)count == strlen(text) && !memcmp(bytes, text, (size_t)count);
}

stk_status stki_sums_find(const stki_sums *sums, const char *member, const char *how, int64_t count, int64_t *first,
                          stk_error *err)
{
    const char *path = sums->file->path;
    uint64_t members = number_at(sums->bytes, 12, 4);
    int64_t at = HEADER;
    struct entry entry, found = {.name = NULL};

    for (uint64_t i = 0; i < members && next_entry(sums->bytes, sums->file->size, &at, &entry); i++)
        if (is_text(entry.name, entry.name_bytes, member)) /* of several entries with this name, the last one wins */
            found = entry;
    if (!found.name)
        return fail(path, STK_E_NOT_FOUND, -1, NULL, member, "the file has no checksums for this member", err);
    if (!is_text(found.how, found.how_bytes, how))
        return fail(path, STK_E_MISMATCH, -1,
                    STKI_TEXT("%.*s", (int)(found.how_bytes < 90 ? found.how_bytes : 90), found.how), how,
                    "the checksums were computed with different read options: rewrite them with stoker verify "
                    "--write-sums and the options used here",
                    err);
    if (found.count != count)
        return fail(path, STK_E_MISMATCH, -1, STKI_TEXT("%" PRId64, found.count), STKI_TEXT("%" PRId64, count),
                    "unexpected number of records with checksums", err);
    *first = found.first;
    return STK_OK;
}

stk_status stki_sums_check(const stki_sums *sums, int64_t first, int64_t index, uint64_t sum, const char *path,
                           stk_error *err)
{
    uint64_t expected;
    stk_status status;

    if (!stki_inside(first + index * 8, 8, sums->file->size))
        return stki_fail_at(err, STK_E_RANGE, (stki_place){sums->file->path, index, -1, NULL, NULL},
                            "the record has no checksum");
    expected = number_at(sums->bytes, first + index * 8, 8);
    if (sum == expected)
        return STK_OK;
    status = stki_file_intact(sums->file, index, err); /* the checksum file itself may have changed */
    if (status != STK_OK)
        return status;
    return stki_fail_at(
        err, STK_E_CORRUPT,
        (stki_place){path, index, -1, STKI_TEXT("%016" PRIx64, sum), STKI_TEXT("%016" PRIx64, expected)},
        "the record's XXH3 checksum differs from the one in %s", sums->file->path);
}

/* ---- writing ---- */

/* Passes everything after the header to `take`, which hashes or writes it. */
static stk_status each_part(const stki_sums_member *members, int64_t count, int64_t first,
                            stk_status (*take)(void *context, const void *bytes, int64_t count, stk_error *err),
                            void *context, stk_error *err)
{
    static const char zeros[8];
    stk_status status = STK_OK;

    for (int64_t i = 0; i < count && status == STK_OK; i++) {
        const stki_sums_member *m = &members[i];
        uint32_t name_bytes = (uint32_t)strlen(m->name), how_bytes = (uint32_t)strlen(m->how);
        int64_t used = (int64_t)name_bytes + how_bytes;
        char entry[ENTRY];

        memcpy(entry, &m->count, 8);
        memcpy(entry + 8, &first, 8);
        memcpy(entry + 16, &name_bytes, 4);
        memcpy(entry + 20, &how_bytes, 4);
        if ((status = take(context, entry, ENTRY, err)) != STK_OK ||
            (status = take(context, m->name, name_bytes, err)) != STK_OK ||
            (status = take(context, m->how, how_bytes, err)) != STK_OK)
            break;
        status = take(context, zeros, stki_round_up(used, 8) - used, err);
        first += m->count * 8;
    }
    for (int64_t i = 0; i < count && status == STK_OK; i++)
        status = take(context, members[i].sums, members[i].count * 8, err);
    return status;
}

static stk_status take_sum(void *context, const void *bytes, int64_t count, stk_error *err)
{
    (void)err;
    if (count > 0)
        add(context, bytes, count);
    return STK_OK;
}

static stk_status take_output(void *context, const void *bytes, int64_t count, stk_error *err)
{
    return stki_output_append(context, bytes, count, err);
}

static stk_status write_all(stki_output *output, const char *data_path, const stki_sums_member *members, int64_t count,
                            stk_error *err)
{
    uint32_t version = 1, member_count = (uint32_t)count;
    int64_t first = HEADER, total, size = data_bytes(data_path);
    char header[HEADER];
    uint64_t sum;
    XXH3_state_t state;
    stk_status status;

    for (int64_t i = 0; i < count; i++)
        first += ENTRY + stki_round_up((int64_t)(strlen(members[i].name) + strlen(members[i].how)), 8);
    total = first;
    for (int64_t i = 0; i < count; i++)
        total += members[i].count * 8;
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset(&state);
    (void)each_part(members, count, first, take_sum, &state, NULL);
    sum = XXH3_64bits_digest(&state);
    memcpy(header, magic, 8);
    memcpy(header + 8, &version, 4);
    memcpy(header + 12, &member_count, 4);
    memcpy(header + 16, &size, 8);
    memcpy(header + 24, &total, 8);
    memcpy(header + 32, &sum, 8);
    status = stki_output_append(output, header, HEADER, err);
    return status != STK_OK ? status : each_part(members, count, first, take_output, output, err);
}

stk_status stki_sums_write(const char *data_path, const stki_sums_member *members, int64_t count, stk_error *err)
{
    char *path = sums_path(data_path);
    stki_output *output;
    stk_status status = path ? stki_output_create(path, &output, err) : stki_fail_memory(err, 64, "a path");

    stki_free(path);
    if (status != STK_OK)
        return status;
    status = write_all(output, data_path, members, count, err);
    return stki_output_end(output, status, err);
}
