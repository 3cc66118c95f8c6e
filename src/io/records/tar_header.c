/* tar_header.c: parses a 512-byte header block of a tar archive (V7, ustar, GNU) and the records of a pax header, and
 * splits names by WebDataset's rule. Works only on bytes in memory.
 *
 *     0 name 100, 124 size 12, 148 checksum 8, 156 type 1, 157 link 100, 257 magic 6, 345 prefix 155
 *
 * A size is octal text, or, if its first bit is set, a big-endian two's complement number. */
#include "checked.h"
#include "error.h"
#include "npy_header.h"
#include "tar.h"
#include <inttypes.h>
#include <string.h>

enum {
    NAME = 0,
    NAME_BYTES = 100,
    SIZE = 124,
    SIZE_BYTES = 12,
    SUM = 148,
    SUM_BYTES = 8,
    TYPE = 156,
    LINK = 157,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155
};

/* Parses octal digits, optionally surrounded by blanks, up to a NUL. Returns false if they are invalid. */
static bool read_octal(const unsigned char *text, int length, int64_t *out)
{
    int at = 0;
    int64_t value = 0;

    while (at < length && text[at] == ' ')
        at++;
    for (; at < length && text[at] >= '0' && text[at] <= '7'; at++)
        value = value * 8 + (text[at] - '0'); /* at most 12 digits: 36 bits */
    while (at < length && text[at] == ' ')
        at++;
    *out = value;
    return at == length || text[at] == '\0';
}

/* Adds the bytes to *sum, and counts those above 127, whose signed values are 256 less. */
static void add_bytes(const unsigned char *bytes, int count, int32_t *sum, int32_t *high)
{
    int32_t total = 0, above = 0;

    for (int i = 0; i < count; i++) {
        total += bytes[i];
        above += bytes[i] >> 7;
    }
    *sum = total;
    *high = above;
}

/* Computes the checksum with unsigned and signed bytes. The checksum field itself counts as if it contained blanks. */
static void sums(const unsigned char *block, int64_t *plain, int64_t *of_signed)
{
    int32_t sum, high, field, field_high;

    add_bytes(block, STKI_TAR_BLOCK, &sum, &high);
    add_bytes(block + SUM, SUM_BYTES, &field, &field_high);
    *plain = sum - field + SUM_BYTES * ' ';
    *of_signed = *plain - 256 * (int64_t)(high - field_high);
}

/* Also accepts the sum of signed bytes, which old programs write. */
static bool sum_holds(const unsigned char *block, int64_t *found, int64_t *expected)
{
    int64_t of_signed;

    sums(block, expected, &of_signed);
    return read_octal(block + SUM, SUM_BYTES, found) && (*found == *expected || *found == of_signed);
}

bool stki_tar_checksum_holds(const void *block)
{
    int64_t found, expected;

    return sum_holds(block, &found, &expected);
}

static bool is_zero(const unsigned char *block)
{
    return block[0] == 0 && !memcmp(block, block + 1, STKI_TAR_BLOCK - 1);
}

stk_status stki_tar_number(const unsigned char *field, int64_t offset, const char *path, const char *what, int64_t *out,
                           stk_error *err)
{
    char shown[SIZE_BYTES + 1];
    uint64_t value = field[0] & 0x3f;

    if (!(field[0] & 0x80)) {
        if (read_octal(field, SIZE_BYTES, out))
            return STK_OK;
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, offset,
                                         stki_npy_printable(shown, sizeof shown, (const char *)field, SIZE_BYTES),
                                         "octal digits"},
                            "%s", what);
    }
    for (int i = 1; i < SIZE_BYTES; i++) {
        if (value >> 55 || field[0] & 0x40) /* the number overflows or is negative */
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, offset,
                                             field[0] & 0x40 ? "a negative number" : "a number of more than 63 bits",
                                             NULL},
                                "%s", what);
        value = value << 8 | field[i];
    }
    *out = (int64_t)value;
    return STK_OK;
}

static stk_status read_type(unsigned char type, bool gnu, const char *name, int64_t offset, const char *path,
                            enum stki_tar_what *out, stk_error *err)
{
    char shown[STKI_TAR_NAME];

    switch (type) {
    case '0':
    case '\0':
    case '7': /* contiguous */
        *out = STKI_TAR_FILE;
        return STK_OK;
    case '1':
        *out = STKI_TAR_HARD_LINK;
        return STK_OK;
    case '2':
        *out = STKI_TAR_SYMLINK;
        return STK_OK;
    case '3':
    case '4':
    case '5':
    case '6': /* devices, folders, FIFOs */
        *out = STKI_TAR_SKIP;
        return STK_OK;
    case 'V': /* a volume label */
    case 'D': /* the names in a folder (incremental archives) */
    case 'A': /* Solaris tar: ACL of the next member */
    case 'E': /* Solaris tar: extended attributes of the next member */
        *out = STKI_TAR_OTHER;
        return STK_OK;
    case 'L':
        *out = STKI_TAR_LONG_NAME;
        return STK_OK;
    case 'K':
        *out = STKI_TAR_LONG_LINK;
        return STK_OK;
    case 'x':
    case 'X': /* Solaris tar: extended header */
        *out = STKI_TAR_PAX;
        return STK_OK;
    case 'g':
        *out = STKI_TAR_PAX_GLOBAL;
        return STK_OK;
    default:
        if (gnu && type == 'S') {
            *out = STKI_TAR_SPARSE;
            return STK_OK;
        }
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, offset + TYPE,
                         type > ' ' && type < 127 ? STKI_TEXT("type '%c'", type) : STKI_TEXT("type 0x%02x", type),
                         "a file, a folder, a link, a device, or a long name"},
            "member %s: %s", stki_npy_printable(shown, sizeof shown, name, (int64_t)strlen(name)),
            type == 'S' ? "sparse files in the format of star are not supported (write the archive without -sparse)"
                        : "unsupported kind of member");
    }
}

static void copy_text(char *to, const unsigned char *field, int bytes)
{
    memcpy(to, field, (size_t)bytes);
    to[bytes] = '\0';
}

static void read_name(const unsigned char *block, char *out)
{
    char name[NAME_BYTES + 1], prefix[PREFIX_BYTES + 1] = "";

    copy_text(name, block + NAME, NAME_BYTES);
    if (!memcmp(block + MAGIC, "ustar\0", 6)) /* GNU tar uses these bytes for something else */
        copy_text(prefix, block + PREFIX, PREFIX_BYTES);
    if (prefix[0])
        stki_text(out, STKI_TAR_NAME, "%s/%s", prefix, name);
    else
        memcpy(out, name, sizeof name);
}

stk_status stki_tar_read_header(const void *block, int64_t offset, const char *path, stki_tar_header *out,
                                stk_error *err)
{
    const unsigned char *b = block;
    int64_t found, expected;
    stk_status status;

    *out = (stki_tar_header){.what = STKI_TAR_END};
    if (is_zero(b))
        return STK_OK;
    if (!sum_holds(b, &found, &expected))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, offset + SUM, STKI_TEXT("checksum %" PRId64, found),
                                         STKI_TEXT("%" PRId64, expected)},
                            "the header of a member is damaged, or this is not a tar archive");
    read_name(b, out->name);
    copy_text(out->link, b + LINK, NAME_BYTES);
    status = read_type(b[TYPE], !memcmp(b + MAGIC, "ustar  ", 8), out->name, offset, path, &out->what, err);
    if (status != STK_OK || out->what == STKI_TAR_SKIP || out->what == STKI_TAR_HARD_LINK ||
        out->what == STKI_TAR_SYMLINK) /* in old archives, hard links have a size although no data follows */
        return status;
    return stki_tar_number(b + SIZE, offset + SIZE, path, "invalid member size", &out->size, err);
}

/* ---- pax ---- */

static stk_status fail_pax(const char *path, int64_t offset, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, offset, found, expected}, "invalid pax record");
}

int64_t stki_tar_decimal(const char *text, int64_t length, int64_t *out)
{
    int64_t at = 0, value = 0;

    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        if (!stki_mul(value, 10, &value) || !stki_add(value, text[at] - '0', &value))
            return 0;
    *out = value;
    return at;
}

stk_status stki_tar_next_record(const char *text, int64_t length, int64_t offset, const char *path, int64_t *at,
                                stki_tar_record *out, stk_error *err)
{
    int64_t bytes = 0, left = length - *at, digits;
    const char *line = text + *at, *key, *end, *equals;

    if (left <= 0 || *line == '\0') /* some writers pad the records with NULs */
        return STK_END;
    digits = stki_tar_decimal(line, left, &bytes);
    if (digits == 0 || bytes < digits + 2 || bytes > left || line[digits] != ' ')
        return fail_pax(path, offset + *at, STKI_TEXT("length %" PRId64, bytes),
                        STKI_TEXT("at most the %" PRId64 " bytes that are left", left), err);
    key = line + digits + 1;
    end = line + bytes - 1;
    equals = memchr(key, '=', (size_t)(end - key));
    if (*end != '\n' || !equals)
        return fail_pax(path, offset + *at, *end != '\n' ? "no newline at the end given by the length" : "no '='",
                        "LENGTH key=value", err);
    *out = (stki_tar_record){key, equals + 1, equals - key, end - equals - 1};
    *at += bytes;
    return STK_OK;
}

bool stki_tar_record_is(const stki_tar_record *record, const char *key)
{
    return record->key_bytes == (int64_t)strlen(key) && !memcmp(record->key, key, (size_t)record->key_bytes);
}

static bool value_is(const stki_tar_record *record, char digit)
{
    return record->bytes == 1 && record->value[0] == digit;
}

static stk_status take_number(const stki_tar_record *record, int64_t offset, const char *path, int64_t *out,
                              stk_error *err)
{
    char shown[32];

    *out = -1;
    if (record->bytes > 0 && stki_tar_decimal(record->value, record->bytes, out) != record->bytes)
        return fail_pax(path, offset, stki_npy_printable(shown, sizeof shown, record->value, record->bytes),
                        "a decimal size", err);
    return STK_OK;
}

static void take_text(const stki_tar_record *record, stki_tar_text *out)
{
    *out = (stki_tar_text){record->bytes > 0 ? record->value : NULL, record->bytes};
}

/* Handles records about sparse files (GNU tar, Solaris tar) and other records that change the meaning of the data. */
static stk_status take_sparse(const stki_tar_record *record, int64_t offset, const char *path, stki_tar_pax *out,
                              stk_error *err)
{
    static const char *const others[] = {"GNU.sparse.", "GNU.volume.filename", "SCHILY.offset"};

    if (stki_tar_record_is(record, "GNU.sparse.size") || stki_tar_record_is(record, "GNU.sparse.realsize"))
        return take_number(record, offset, path, &out->real_size, err);
    if (stki_tar_record_is(record, "SCHILY.realsize"))
        return take_number(record, offset, path, &out->star_size, err);
    if (stki_tar_record_is(record, "GNU.sparse.name")) {
        take_text(record, &out->sparse_path);
    } else if (stki_tar_record_is(record, "GNU.sparse.map")) {
        out->map = STKI_TAR_MAP_RECORD;
        take_text(record, &out->map_text);
    } else if (stki_tar_record_is(record, "SUN.holesdata")) {
        out->map = STKI_TAR_MAP_HOLES;
        take_text(record, &out->map_text);
    } else if (stki_tar_record_is(record, "GNU.sparse.numblocks") || stki_tar_record_is(record, "GNU.sparse.offset") ||
               stki_tar_record_is(record, "GNU.sparse.numbytes")) {
        out->map = out->map == STKI_TAR_MAP_NONE ? STKI_TAR_MAP_RECORDS : out->map;
    } else if (stki_tar_record_is(record, "GNU.sparse.major") && value_is(record, '1')) {
        out->map = STKI_TAR_MAP_DATA;
    } else if (stki_tar_record_is(record, "GNU.sparse.minor") && value_is(record, '0')) {
        return STK_OK;
    } else {
        for (size_t i = 0; i < sizeof others / sizeof others[0] && !out->encoded.text; i++)
            if (record->key_bytes >= (int64_t)strlen(others[i]) && !memcmp(record->key, others[i], strlen(others[i])))
                out->encoded = (stki_tar_text){record->key, record->key_bytes};
    }
    return STK_OK;
}

stk_status stki_tar_read_pax(const char *text, int64_t length, int64_t offset, const char *path, stki_tar_pax *out,
                             stk_error *err)
{
    int64_t at = 0;

    for (;;) {
        int64_t begin = offset + at;
        stki_tar_record record;
        stk_status status = stki_tar_next_record(text, length, offset, path, &at, &record, err);

        if (status != STK_OK)
            return status == STK_END ? STK_OK : status;
        if (stki_tar_record_is(&record, "path"))
            take_text(&record, &out->path); /* an empty value cancels an earlier record */
        else if (stki_tar_record_is(&record, "linkpath"))
            take_text(&record, &out->link);
        else if (stki_tar_record_is(&record, "size"))
            status = take_number(&record, begin, path, &out->size, err);
        else if (record.bytes > 0)
            status = take_sparse(&record, begin, path, out, err);
        if (status != STK_OK)
            return status;
    }
}

/* ---- names ---- */

/* Whether the name is __x__ or begins with the folder __x__, as WebDataset's metadata does. */
static bool is_note(const char *name, int64_t length)
{
    const char *slash = memchr(name, '/', (size_t)length);
    int64_t first = slash ? slash - name : length;

    return first >= 4 && !memcmp(name, "__", 2) && !memcmp(name + first - 2, "__", 2);
}

bool stki_tar_split_name(const char *name, int64_t length, int64_t *key_bytes, int64_t *extension_at)
{
    int64_t base = length;
    const char *dot;

    while (base > 0 && name[base - 1] != '/')
        base--;
    dot = memchr(name + base, '.', (size_t)(length - base));
    if (!dot || dot == name + base || is_note(name, length))
        return false;
    *key_bytes = dot - name;
    *extension_at = *key_bytes + 1;
    return true;
}

enum stki_tar_kind stki_tar_kind_of(const char *extension)
{
    const char *dot = strrchr(extension, '.'), *last = dot ? dot + 1 : extension;

    if (!strcmp(last, "jpg") || !strcmp(last, "jpeg") || !strcmp(last, "png"))
        return STKI_TAR_IMAGE;
    return !strcmp(last, "npy") ? STKI_TAR_NPY : !strcmp(last, "cls") ? STKI_TAR_CLASS : STKI_TAR_BYTES;
}
