/* zip.c: see zip.h. The end record is the one whose comment ends exactly at the end of the file, because a comment may
 * itself contain the signature. An archive may be preceded by other bytes (offsets are then relative to its start),
 * which is detected from the end of its directory. Overlapping members are rejected, because zip bombs can be built
 * from them. */
#include "zip.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_MAX = 0xFFFF,
    FLAG_ENCRYPTED = 1 << 0 | 1 << 6,
    FLAG_MASKED = 1 << 13,
    DEFLATE_RATIO = 1032 /* the highest ratio that deflate can reach: 258 bytes in 2 bits */
};

/* Contents of the end records. */
struct end {
    int64_t position; /* offset of the zip64 end record, or else of the end record; the directory ends here */
    uint64_t count, size, offset;    /* entries, bytes and offset of the directory */
    uint64_t disk, disk_of, on_disk; /* numbers of this file and of the directory's file; entries in this file */
};

static uint16_t u16(const char *p)
{
    const unsigned char *b = (const unsigned char *)p;

    return (uint16_t)(b[0] | b[1] << 8);
}

static uint32_t u32(const char *p)
{
    return u16(p) | (uint32_t)u16(p + 2) << 16;
}

static uint64_t u64(const char *p)
{
    return u32(p) | (uint64_t)u32(p + 4) << 32;
}

static bool is_signature(const char *p, char a, char b)
{
    return p[0] == 'P' && p[1] == 'K' && p[2] == a && p[3] == b;
}

static stk_status fail(const stki_file *file, stk_status status, int64_t offset, const char *what, const char *found,
                       const char *expected, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){file->path, -1, offset, found, expected}, "%s", what);
}

/* ---- end records ---- */

static stk_status fail_no_end(const stki_file *file, int64_t other_end, stk_error *err)
{
    char head[4] = "";
    bool begins = file->size >= 4 && stki_file_read(file, 0, head, 4, NULL) == STK_OK && is_signature(head, 3, 4);

    if (other_end >= 0)
        return fail(file, STK_E_CORRUPT, other_end, "the comment of the zip archive's end record has the wrong length",
                    NULL, "a comment that ends at the end of the file", err);
    if (begins || file->size == 0)
        return fail(file, STK_E_TRUNCATED, -1, "the zip archive has no end record",
                    STKI_TEXT("%" PRId64 " bytes", file->size), "a complete archive", err);
    return fail(file, STK_E_CORRUPT, -1, "not a zip archive", "no end record", "the signature PK 5 6 near the end",
                err);
}

/* `tail` contains the last bytes of the file. Returns the position of the end record in it. -1: none; *other is then
 * the position of the first signature with a wrong comment length, or -1. */
static int64_t find_end(const char *tail, int64_t bytes, int64_t *other)
{
    *other = -1;
    for (int64_t at = bytes - END_BYTES; at >= 0; at--) {
        if (!is_signature(tail + at, 5, 6))
            continue;
        if (u16(tail + at + 20) == bytes - at - END_BYTES)
            return at;
        *other = at;
    }
    return -1;
}

/* Reads the zip64 record at the position given by its locator, or directly before the locator if other bytes precede
 * the archive, in which case the given position is too small. */
static stk_status read_end64(const stki_file *file, const char *locator, int64_t locator_at, char *record,
                             struct end *out, stk_error *err)
{
    uint64_t stated = u64(locator + 8);
    int64_t places[2] = {stated < (uint64_t)locator_at ? (int64_t)stated : -1, locator_at - END64_BYTES};
    stk_status status;

    if (u32(locator + 16) > 1)
        return fail(file, STK_E_UNSUPPORTED, locator_at, "split zip archives are not supported: join the parts",
                    STKI_TEXT("%" PRIu32 " files", u32(locator + 16)), "one file", err);
    for (int i = 0; i < 2; i++) {
        if (places[0] < 0 || !stki_inside(places[i], END64_BYTES, locator_at))
            continue;
        status = stki_file_read(file, places[i], record, END64_BYTES, err);
        if (status != STK_OK)
            return status;
        out->position = places[i];
        if (is_signature(record, 6, 6))
            return STK_OK;
    }
    return fail(file, STK_E_CORRUPT, locator_at + 8, "the zip64 end record is not at the offset given by its locator",
                STKI_TEXT("offset %" PRIu64, stated), STKI_TEXT("one before %" PRId64, locator_at), err);
}

static void take_end64(const char *record, struct end *end)
{
    end->disk = end->disk == 0xFFFF ? u32(record + 16) : end->disk;
    end->disk_of = end->disk_of == 0xFFFF ? u32(record + 20) : end->disk_of;
    end->on_disk = end->on_disk == 0xFFFF ? u64(record + 24) : end->on_disk;
    end->count = end->count == 0xFFFF ? u64(record + 32) : end->count;
    end->size = end->size == 0xFFFFFFFF ? u64(record + 40) : end->size;
    end->offset = end->offset == 0xFFFFFFFF ? u64(record + 48) : end->offset;
}

static stk_status parse_end(const stki_file *file, const char *tail, int64_t tail_bytes, struct end *out,
                            stk_error *err)
{
    int64_t other, at = find_end(tail, tail_bytes, &other), start = file->size - tail_bytes;
    char record[END64_BYTES];
    stk_status status;

    if (at < 0)
        return fail_no_end(file, other < 0 ? -1 : start + other, err);
    *out = (struct end){.position = start + at,
                        .disk = u16(tail + at + 4),
                        .disk_of = u16(tail + at + 6),
                        .on_disk = u16(tail + at + 8),
                        .count = u16(tail + at + 10),
                        .size = u32(tail + at + 12),
                        .offset = u32(tail + at + 16)};
    if (at >= LOCATOR_BYTES && is_signature(tail + at - LOCATOR_BYTES, 6, 7)) {
        status = read_end64(file, tail + at - LOCATOR_BYTES, start + at - LOCATOR_BYTES, record, out, err);
        if (status != STK_OK)
            return status;
        take_end64(record, out);
    }
    if (out->disk || out->disk_of || out->on_disk != out->count)
        return fail(file, STK_E_UNSUPPORTED, start + at, "split zip archives are not supported: join the parts",
                    STKI_TEXT("file number %" PRIu64, out->disk), "file number 0, with all members", err);
    return STK_OK;
}

static stk_status read_end(const stki_file *file, struct end *out, stk_error *err)
{
    int64_t bytes = file->size < END_BYTES + COMMENT_MAX ? file->size : END_BYTES + COMMENT_MAX;
    char *tail = stki_resize(NULL, bytes + LOCATOR_BYTES); /* the size is never 0 */
    stk_status status;

    /* Reads far enough back to include a locator before an end record with the longest possible comment. */
    if (bytes + LOCATOR_BYTES <= file->size)
        bytes += LOCATOR_BYTES;
    if (!tail)
        return stki_fail_memory(err, bytes, "the end of a zip archive");
    status = stki_file_read(file, file->size - bytes, tail, bytes, err);
    if (status == STK_OK)
        status = parse_end(file, tail, bytes, out, err);
    stki_free(tail);
    return status;
}

/* ---- the directory ---- */

static bool begins_directory(const stki_file *file, int64_t at, const struct end *end)
{
    char head[4];

    if (!stki_inside(at, (int64_t)end->size, end->position))
        return false;
    if (end->count == 0)
        return true;
    return end->size >= ENTRY_BYTES && stki_file_read(file, at, head, 4, NULL) == STK_OK && is_signature(head, 1, 2);
}

/* Finds the directory and the number of bytes that precede the archive. */
static stk_status find_directory(const stki_file *file, const struct end *end, int64_t *at, int64_t *before,
                                 stk_error *err)
{
    uint64_t position = (uint64_t)end->position;

    if (end->size <= position && end->offset <= position - end->size) {
        *before = (int64_t)(position - end->size - end->offset);
        *at = (int64_t)end->offset + *before;
        if (begins_directory(file, *at, end))
            return STK_OK;
        *at = (int64_t)end->offset;
        *before = 0;
        if (begins_directory(file, *at, end))
            return STK_OK;
    }
    return fail(file, STK_E_CORRUPT, end->position, "the zip directory is not at the offset given by the end record",
                STKI_TEXT("%" PRIu64 " bytes at %" PRIu64, end->size, end->offset),
                STKI_TEXT("PK 1 2 and %" PRIu64 " members before %" PRId64, end->count, end->position), err);
}

/* Replaces each 32-bit field whose bits are all ones with its 8-byte value from the zip64 field, which contains the
 * values in the order of `fields`. */
static bool take_zip64(const char *extra, int64_t bytes, uint64_t *const fields[3])
{
    int64_t at = 0, left;

    while (bytes - at >= 4 && u16(extra + at) != 1)
        at += 4 + (int64_t)u16(extra + at + 2);
    if (bytes - at < 4)
        return false;
    left = u16(extra + at + 2);
    if (left > bytes - at - 4)
        return false;
    extra += at + 4;
    for (int i = 0; i < 3; i++) {
        if (*fields[i] != 0xFFFFFFFF)
            continue;
        if (left < 8)
            return false;
        *fields[i] = u64(extra);
        extra += 8;
        left -= 8;
    }
    return true;
}

/* Overwrites the record: moves the name to its start and terminates it with a NUL. */
static void parse_entry(char *record, int64_t before, stki_zip_entry *out)
{
    uint64_t size = u32(record + 24), compressed = u32(record + 20), offset = u32(record + 42);
    uint64_t *const fields[3] = {&size, &compressed, &offset};
    int64_t name = u16(record + 28), extra = u16(record + 30), header;
    bool wide = size == 0xFFFFFFFF || compressed == 0xFFFFFFFF || offset == 0xFFFFFFFF;

    *out = (stki_zip_entry){
        .name = record, .crc = u32(record + 16), .method = u16(record + 10), .flags = u16(record + 8), .header = -1};
    if (wide && !take_zip64(record + ENTRY_BYTES + name, extra, fields))
        out->fault = "a size or offset is 0xFFFFFFFF, but its zip64 field is missing";
    else if (size > INT64_MAX || compressed > INT64_MAX || offset > INT64_MAX ||
             !stki_add((int64_t)offset, before, &header))
        out->fault = "a size or offset does not fit in 63 bits";
    else
        out->size = (int64_t)size, out->compressed = (int64_t)compressed, out->header = header;
    memmove(record, record + ENTRY_BYTES, (size_t)name);
    record[name] = '\0';
}

static stk_status fail_entry_at(const stki_zip *zip, int64_t index, int64_t at, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){zip->file->path, -1, zip->end + at, what, NULL},
                        "invalid entry %" PRId64 " of the zip directory", index);
}

static stk_status parse_directory(stki_zip *zip, int64_t bytes, int64_t before, stk_error *err)
{
    int64_t at = 0;

    for (int64_t i = 0; i < zip->count; i++) {
        char *record = zip->directory + at;
        int64_t name, whole;

        if (bytes - at < ENTRY_BYTES)
            return fail_entry_at(zip, i, at, "the end of the directory", err);
        if (!is_signature(record, 1, 2))
            return fail_entry_at(zip, i, at, "no signature", err);
        name = u16(record + 28);
        whole = ENTRY_BYTES + name + u16(record + 30) + u16(record + 32);
        if (whole > bytes - at)
            return fail_entry_at(zip, i, at, "more bytes than the directory has", err);
        if (u16(record + 34) != 0 && u16(record + 34) != 0xFFFF)
            return fail(zip->file, STK_E_UNSUPPORTED, zip->end + at + 34,
                        "split zip archives are not supported: join the parts",
                        STKI_TEXT("a member in file number %d", u16(record + 34)), "file number 0", err);
        if (memchr(record + ENTRY_BYTES, '\0', (size_t)name))
            return fail_entry_at(zip, i, at, "a NUL in the name", err);
        parse_entry(record, before, &zip->entries[i]);
        at += whole;
    }
    if (bytes - at >= 4 && is_signature(zip->directory + at, 5, 5)) /* a digital signature */
        return STK_OK;
    return at == bytes ? STK_OK : fail_entry_at(zip, zip->count, at, "bytes after the last entry", err);
}

/* ---- overlapping members ---- */

static int by_header(const void *a, const void *b)
{
    int64_t x = (*(stki_zip_entry *const *)a)->header, y = (*(stki_zip_entry *const *)b)->header;

    return (x > y) - (x < y);
}

/* Sets *end to a lower bound of the entry's end. Returns false if the entry is not inside the file, which is reported
 * when the member is read. */
static bool extent(const stki_zip *zip, const stki_zip_entry *entry, int64_t *end)
{
    int64_t least = LOCAL_BYTES + (int64_t)strlen(entry->name);

    if (entry->fault || !stki_inside(entry->header, least, zip->end) ||
        entry->compressed > zip->end - entry->header - least)
        return false;
    *end = entry->header + least + entry->compressed;
    return true;
}

static stk_status mark_overlaps(stki_zip *zip, stk_error *err)
{
    stki_zip_entry **sorted = stki_zalloc_array(zip->count, sizeof(stki_zip_entry *)), *last = NULL;
    int64_t last_end = 0, end;

    if (!sorted)
        return stki_fail_memory(err, zip->count * (int64_t)sizeof *sorted, "a zip directory");
    for (int64_t i = 0; i < zip->count; i++)
        sorted[i] = &zip->entries[i];
    qsort(sorted, (size_t)zip->count, sizeof(stki_zip_entry *), by_header);
    for (int64_t i = 0; i < zip->count; i++) {
        if (!extent(zip, sorted[i], &end))
            continue;
        if (last && sorted[i]->header < last_end)
            last->fault = sorted[i]->fault = "the member overlaps another one";
        if (end > last_end) {
            last = sorted[i];
            last_end = end;
        }
    }
    stki_free(sorted);
    return STK_OK;
}

/* ---- opening ---- */

static stk_status read_directory(stki_zip *zip, const struct end *end, int64_t limit, stk_error *err)
{
    int64_t bytes = (int64_t)end->size, before = 0;
    stk_status status = find_directory(zip->file, end, &zip->end, &before, err);

    if (status != STK_OK)
        return status;
    if (end->count > (uint64_t)bytes / ENTRY_BYTES)
        return fail(zip->file, STK_E_CORRUPT, end->position, "the zip directory is too short for its members",
                    STKI_TEXT("%" PRId64 " bytes", bytes), STKI_TEXT("%" PRIu64 " members", end->count), err);
    if (bytes > limit)
        return fail(zip->file, STK_E_LIMIT, zip->end, "the zip directory is too long",
                    STKI_TEXT("%" PRId64 " bytes", bytes), STKI_TEXT("at most %" PRId64 " (header_limit)", limit), err);
    if (end->count == 0)
        return STK_OK;
    zip->directory = stki_resize(NULL, bytes);
    if (!zip->directory)
        return stki_fail_memory(err, bytes, "a zip directory");
    status = stki_file_read(zip->file, zip->end, zip->directory, bytes, err);
    if (status != STK_OK)
        return status;
    zip->count = (int64_t)end->count;
    zip->entries = stki_zalloc_array(zip->count, sizeof *zip->entries);
    if (!zip->entries)
        return stki_fail_memory(err, zip->count * (int64_t)sizeof *zip->entries, "a zip directory");
    status = parse_directory(zip, bytes, before, err);
    return status != STK_OK ? status : mark_overlaps(zip, err);
}

stk_status stki_zip_open(const stki_file *file, int64_t directory_limit, stki_zip *out, stk_error *err)
{
    stki_zip zip = {.file = file};
    struct end end = {0};
    stk_status status = read_end(file, &end, err);

    if (status == STK_OK)
        status = read_directory(
            &zip, &end, directory_limit > STKI_ZIP_DIRECTORY_LIMIT ? directory_limit : STKI_ZIP_DIRECTORY_LIMIT, err);
    if (status != STK_OK)
        stki_zip_close(&zip);
    else
        *out = zip;
    return status;
}

void stki_zip_close(stki_zip *zip)
{
    stki_free(zip->entries);
    stki_free(zip->directory);
    *zip = (stki_zip){0};
}

/* ---- reading a member ---- */

stk_status stki_zip_fail(const stki_zip *zip, const stki_zip_entry *entry, stk_status status, int64_t offset,
                         const char *what, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, status, (stki_place){zip->file->path, -1, offset, found, expected}, "member %.100s: %s",
                        entry->name, what);
}

static const char *method_name(int method)
{
    switch (method) {
    case 9:
        return "9 (deflate64)";
    case 12:
        return "12 (bzip2)";
    case 14:
        return "14 (lzma)";
    case 93:
        return "93 (zstd)";
    case 99:
        return "99 (encrypted by AES)";
    default:
        return NULL;
    }
}

/* Checks everything that can be checked with the directory alone. */
static stk_status check_entry(const stki_zip *zip, const stki_zip_entry *entry, stk_error *err)
{
    const char *name = method_name(entry->method);

    if (entry->fault)
        return stki_zip_fail(zip, entry, STK_E_CORRUPT, entry->header, entry->fault, NULL, NULL, err);
    if (entry->flags & (FLAG_ENCRYPTED | FLAG_MASKED))
        return stki_zip_fail(zip, entry, STK_E_UNSUPPORTED, entry->header,
                             "encrypted members are not supported: decrypt the archive", NULL, NULL, err);
    if (entry->method != STKI_ZIP_STORED && entry->method != STKI_ZIP_DEFLATED)
        return stki_zip_fail(zip, entry, STK_E_UNSUPPORTED, entry->header, "unsupported compression method",
                             name ? name : STKI_TEXT("%d", entry->method), "0 (stored) or 8 (deflate)", err);
    if (entry->method == STKI_ZIP_STORED && entry->size != entry->compressed)
        return stki_zip_fail(zip, entry, STK_E_CORRUPT, entry->header, "the member is stored, but its two sizes differ",
                             STKI_TEXT("%" PRId64, entry->compressed), STKI_TEXT("%" PRId64, entry->size), err);
    return STK_OK;
}

/* Compares in chunks, because names can have 65,535 bytes. */
static stk_status compare_name(const stki_zip *zip, const stki_zip_entry *entry, int64_t at, int64_t bytes,
                               stk_error *err)
{
    char part[256];
    bool same = bytes == (int64_t)strlen(entry->name);
    stk_status status = STK_OK;

    for (int64_t done = 0, n; same && done < bytes; done += n) {
        n = bytes - done < (int64_t)sizeof part ? bytes - done : (int64_t)sizeof part;
        status = stki_file_read(zip->file, at + done, part, n, err);
        if (status != STK_OK)
            return status;
        same = !memcmp(part, entry->name + done, (size_t)n);
    }
    return same ? STK_OK
                : stki_zip_fail(zip, entry, STK_E_CORRUPT, at,
                                "the local header and the directory have different names", NULL, NULL, err);
}

static stk_status check_extent(const stki_zip *zip, const stki_zip_entry *entry, int64_t data, stk_error *err)
{
    bool cut;

    if (!stki_inside(data, entry->compressed, zip->end)) {
        cut = data > zip->file->size || entry->compressed > zip->file->size - data;
        return stki_zip_fail(zip, entry, cut ? STK_E_TRUNCATED : STK_E_CORRUPT, data,
                             cut ? "the file ends inside the member" : "the member reaches into the directory",
                             STKI_TEXT("%" PRId64 " bytes", data < zip->end ? zip->end - data : 0),
                             STKI_TEXT("%" PRId64, entry->compressed), err);
    }
    if (entry->method == STKI_ZIP_DEFLATED && entry->size / DEFLATE_RATIO > entry->compressed)
        return stki_zip_fail(zip, entry, STK_E_CORRUPT, data, "the compression ratio is impossible for deflate",
                             STKI_TEXT("%" PRId64 " bytes in %" PRId64, entry->size, entry->compressed),
                             "at most 1032 times as many", err);
    return STK_OK;
}

stk_status stki_zip_locate(const stki_zip *zip, const stki_zip_entry *entry, int64_t *out_offset, stk_error *err)
{
    char local[LOCAL_BYTES];
    int64_t name, data;
    stk_status status = check_entry(zip, entry, err);

    if (status != STK_OK)
        return status;
    if (!stki_inside(entry->header, LOCAL_BYTES, zip->end))
        return stki_zip_fail(zip, entry, STK_E_CORRUPT, entry->header, "the local header is outside the archive",
                             STKI_TEXT("offset %" PRId64, entry->header),
                             STKI_TEXT("an offset below %" PRId64, zip->end), err);
    status = stki_file_read(zip->file, entry->header, local, LOCAL_BYTES, err);
    if (status != STK_OK)
        return status;
    if (!is_signature(local, 3, 4))
        return stki_zip_fail(zip, entry, STK_E_CORRUPT, entry->header, "no local header",
                             STKI_TEXT("bytes %02x %02x %02x %02x", (unsigned char)local[0], (unsigned char)local[1],
                                       (unsigned char)local[2], (unsigned char)local[3]),
                             "PK 3 4", err);
    name = u16(local + 26);
    data = entry->header + LOCAL_BYTES + name + u16(local + 28);
    status = compare_name(zip, entry, entry->header + LOCAL_BYTES, name, err);
    if (status == STK_OK)
        status = check_extent(zip, entry, data, err);
    if (status == STK_OK)
        *out_offset = data;
    return status;
}
