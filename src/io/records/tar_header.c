/* tar_header.c: one 512-byte block of a tar archive (V7, ustar, GNU), the records of a pax header, and WebDataset's
 * rule for names. Works on memory alone.
 *
 *     0 name 100, 124 size 12, 148 checksum 8, 156 type 1, 157 link 100, 257 magic 6, 345 prefix 155
 *
 * A size is octal text, or, with its first bit set, a big-endian number of two's complement. */
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
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155
};

/* Octal digits with blanks around them, up to a NUL. False: something else. */
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

/* Sum and number of the bytes above 127, whose signed values are 256 less. */
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

/* The checksum's own field counts as blanks. */
static void sums(const unsigned char *block, int64_t *plain, int64_t *of_signed)
{
    int32_t sum, high, field, field_high;

    add_bytes(block, STKI_TAR_BLOCK, &sum, &high);
    add_bytes(block + SUM, SUM_BYTES, &field, &field_high);
    *plain = sum - field + SUM_BYTES * ' ';
    *of_signed = *plain - 256 * (int64_t)(high - field_high);
}

/* Old programs summed signed bytes. */
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

static stk_status read_size(const unsigned char *field, int64_t offset, const char *path, int64_t *out, stk_error *err)
{
    char shown[SIZE_BYTES + 1];
    uint64_t value = field[0] & 0x3f;

    if (!(field[0] & 0x80)) {
        if (read_octal(field, SIZE_BYTES, out))
            return STK_OK;
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, offset + SIZE,
                                         stki_npy_printable(shown, sizeof shown, (const char *)field, SIZE_BYTES),
                                         "octal digits"},
                            "size of a member");
    }
    for (int i = 1; i < SIZE_BYTES; i++) {
        if (value >> 55 || field[0] & 0x40) /* the next byte would not fit, or it is negative */
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, offset + SIZE,
                                             field[0] & 0x40 ? "a negative number" : "more than 63 bits", NULL},
                                "size of a member");
        value = value << 8 | field[i];
    }
    *out = (int64_t)value;
    return STK_OK;
}

static stk_status read_type(unsigned char type, const char *name, int64_t offset, const char *path,
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
    case '2':
    case '3':
    case '4':
    case '5':
    case '6': /* links, devices, folders, FIFOs */
        *out = STKI_TAR_SKIP;
        return STK_OK;
    case 'L':
        *out = STKI_TAR_LONG_NAME;
        return STK_OK;
    case 'K':
        *out = STKI_TAR_LONG_LINK;
        return STK_OK;
    case 'x':
        *out = STKI_TAR_PAX;
        return STK_OK;
    case 'g':
        *out = STKI_TAR_PAX_GLOBAL;
        return STK_OK;
    default:
        return stki_fail_at(
            err, STK_E_UNSUPPORTED,
            (stki_place){path, -1, offset + TYPE,
                         type > ' ' && type < 127 ? STKI_TEXT("type '%c'", type) : STKI_TEXT("type 0x%02x", type),
                         "a file, a folder, a link, a device, or a long name"},
            "member %s: %s", stki_npy_printable(shown, sizeof shown, name, (int64_t)strlen(name)),
            type == 'S' ? "a sparse file (write the archive without --sparse)" : "a kind of member that is not read");
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
    if (!memcmp(block + MAGIC, "ustar\0", 6)) /* GNU has other things there */
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
                            "the header of a member is damaged, or this is no tar archive");
    read_name(b, out->name);
    status = read_type(b[TYPE], out->name, offset, path, &out->what, err);
    if (!status && out->what != STKI_TAR_SKIP) /* old archives give hard links a size, and no data follows */
        status = read_size(b + SIZE, offset, path, &out->size, err);
    return status;
}

/* ---- pax -----------------------------------------------------------------------------------------------------------
 */

static stk_status fail_pax(const char *path, int64_t offset, const char *found, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, offset, found, expected}, "a pax record");
}

/* Decimal digits at `text`; returns how many, 0 also where they don't fit. */
static int64_t read_decimal(const char *text, int64_t length, int64_t *out)
{
    int64_t at = 0, value = 0;

    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        if (!stki_mul(value, 10, &value) || !stki_add(value, text[at] - '0', &value))
            return 0;
    *out = value;
    return at;
}

/* Records whose presence changes what the data mean, as GNU tar, star and Solaris tar write them. GNU sparse files of
 * format 1.0 even keep their map of holes in front of the data. */
static bool is_encoding(const char *key, int64_t bytes)
{
    static const char *const begins[] = {"GNU.sparse.", "GNU.volume.filename", "SCHILY.realsize", "SCHILY.offset",
                                         "SUN.holesdata"};

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (bytes >= (int64_t)strlen(begins[i]) && !memcmp(key, begins[i], strlen(begins[i])))
            return true;
    return false;
}

static stk_status take_record(const char *key, int64_t key_bytes, const char *value, int64_t bytes, int64_t offset,
                              const char *path, stki_tar_pax *out, stk_error *err)
{
    char shown[32];

    if (key_bytes == 4 && !memcmp(key, "path", 4)) {
        out->path = bytes > 0 ? value : NULL; /* an empty one takes an earlier one back */
        out->path_bytes = bytes;
    } else if (key_bytes == 4 && !memcmp(key, "size", 4)) {
        out->size = -1;
        if (bytes > 0 && read_decimal(value, bytes, &out->size) != bytes)
            return fail_pax(path, offset, stki_npy_printable(shown, sizeof shown, value, bytes), "a size in digits",
                            err);
    } else if (bytes > 0 && !out->encoded && is_encoding(key, key_bytes)) {
        out->encoded = key;
        out->encoded_bytes = key_bytes;
    }
    return STK_OK;
}

stk_status stki_tar_read_pax(const char *text, int64_t length, int64_t offset, const char *path, stki_tar_pax *out,
                             stk_error *err)
{
    int64_t at = 0;

    while (at < length && text[at] != '\0') { /* some writers pad with NULs */
        int64_t bytes = 0, digits = read_decimal(text + at, length - at, &bytes);
        const char *key = text + at + digits + 1, *end, *equals;
        stk_status status;

        if (digits == 0 || bytes < digits + 2 || bytes > length - at || text[at + digits] != ' ')
            return fail_pax(path, offset + at, STKI_TEXT("length %" PRId64, bytes),
                            STKI_TEXT("at most the %" PRId64 " bytes that are left", length - at), err);
        end = text + at + bytes - 1;
        equals = memchr(key, '=', (size_t)(end - key));
        if (*end != '\n' || !equals)
            return fail_pax(path, offset + at, *end != '\n' ? "no line end where the length says" : "no '='",
                            "LENGTH key=value", err);
        status = take_record(key, equals - key, equals + 1, end - equals - 1, offset + at, path, out, err);
        if (status)
            return status;
        at += bytes;
    }
    return STK_OK;
}

/* ---- names ---------------------------------------------------------------------------------------------------------
 */

/* __x__ alone or as the first folder: WebDataset's own notes. */
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
