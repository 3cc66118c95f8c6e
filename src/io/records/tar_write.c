/* tar_write.c: see tar_write.h. A ustar header is a block of 512 bytes of text fields:
 *
 *     0 name 100, 100 mode 8, 108 uid 8, 116 gid 8, 124 size 12, 136 time 12, 148 checksum 8, 156 type 1,
 *     257 "ustar\0" "00"
 *
 * A pax header is a member of type x that precedes the member that it describes; its data consists of records "LENGTH
 * key=value\n". */
#include "tar_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "tar.h"
#include "text_check.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    NAME_BYTES = 100,
    MODE = 100,
    UID = 108,
    GID = 116,
    SIZE = 124,
    TIME = 136,
    SUM = 148,
    TYPE = 156,
    MAGIC = 257,
    RECORD = 10240,          /* archives are written in units of 20 blocks */
    NAME_LIMIT = 1000 * 1000 /* readers accept 1 MiB of pax data */
};
#define OCTAL_LIMIT (INT64_C(1) << 33) /* 11 digits */

/* ---- names ---- */

static stk_status fail_name(const char *path, int64_t record, const char *name, const char *expected, const char *what,
                            stk_error *err)
{
    return stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, record, -1, STKI_TEXT("'%.80s'", name), expected}, "%s",
                        what);
}

static bool goes_up(const char *key)
{
    for (const char *part = key; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (!strncmp(part, "..", 2) && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

stk_status stki_tar_check_key(const char *key, const char *path, int64_t record, stk_error *err)
{
    int64_t length = (int64_t)strlen(key), key_bytes, extension_at;
    char what[48], *name;
    bool found;

    if (length == 0 || length > NAME_LIMIT || key[0] == '/' || goes_up(key))
        return fail_name(path, record, key, "1 to 1000000 bytes, no leading slash, no ..", "invalid sample key", err);
    if (stki_text_check(key, length, STKI_TEXT_KEY, what) >= 0)
        return fail_name(path, record, what, "plain text", "invalid sample key", err);
    name = stki_format("%s.x", key);
    if (!name)
        return stki_fail_memory(err, length + 3, path);
    found = stki_tar_split_name(name, length + 2, &key_bytes, &extension_at);
    stki_free(name);
    if (found && key_bytes == length)
        return STK_OK;
    return fail_name(path, record, key,
                     "a last part that is not empty and has no dot, and a first part that is not __LIKE_THIS__",
                     "invalid sample key", err);
}

stk_status stki_tar_check_extension(const char *extension, const char *path, stk_error *err)
{
    size_t length = strlen(extension);
    char what[48];

    if (length == 0 || length >= STKI_TAR_EXTENSION_NAME || strchr(extension, '/'))
        return fail_name(path, -1, extension, "1 to 231 bytes without a slash", "invalid extension", err);
    if (stki_text_check(extension, (int64_t)length, STKI_TEXT_KEY, what) >= 0)
        return fail_name(path, -1, what, "plain text", "invalid extension", err);
    for (size_t i = 0; i < length; i++)
        if (extension[i] >= 'A' && extension[i] <= 'Z')
            return fail_name(path, -1, extension, "lower case, as WebDataset reads it", "invalid extension", err);
    return STK_OK;
}

/* ---- blocks ---- */

/* Fills a field with octal digits, except for its last byte, which remains a NUL. */
static void put_octal(char *block, int at, int width, int64_t number)
{
    for (int i = width - 2; i >= 0; i--, number >>= 3)
        block[at + i] = (char)('0' + (number & 7));
}

static stk_status put_block(stki_output *output, char type, const char *name, size_t name_bytes, int mode, int64_t size,
                            stk_error *err)
{
    char block[STKI_TAR_BLOCK] = {0};
    unsigned sum = 0;

    memcpy(block, name, name_bytes < NAME_BYTES ? name_bytes : NAME_BYTES);
    put_octal(block, MODE, 8, mode);
    put_octal(block, UID, 8, 0);
    put_octal(block, GID, 8, 0);
    put_octal(block, SIZE, 12, size);
    put_octal(block, TIME, 12, 0);
    memset(block + SUM, ' ', 8);
    block[TYPE] = type;
    memcpy(block + MAGIC, "ustar\00000", 8);
    for (int i = 0; i < STKI_TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    put_octal(block, SUM, 7, sum); /* followed by a NUL and a blank */
    block[SUM + 6] = '\0';
    return stki_output_append(output, block, sizeof block, err);
}

/* Returns the size of the record, including its length field. */
static int64_t record_bytes(const char *key, int64_t value_bytes)
{
    int64_t rest = 1 + (int64_t)strlen(key) + 1 + value_bytes + 1, digits = 1;

    for (int64_t power = 10; rest + digits >= power; power *= 10)
        digits++;
    return rest + digits;
}

static stk_status put_record(stki_output *output, const char *key, const char *value, stk_error *err)
{
    int64_t value_bytes = (int64_t)strlen(value);
    char front[32];
    int length = snprintf(front, sizeof front, "%" PRId64 " %s=", record_bytes(key, value_bytes), key);
    stk_status status = stki_output_append(output, front, length, err);

    if (status == STK_OK)
        status = stki_output_append(output, value, value_bytes, err);
    return status != STK_OK ? status : stki_output_append(output, "\n", 1, err);
}

static stk_status put_pax(stki_output *output, const char *name, const char *size, stk_error *err)
{
    static const char header[] = "././@PaxHeader";
    int64_t bytes = name ? record_bytes("path", (int64_t)strlen(name)) : 0;
    stk_status status;

    bytes += size ? record_bytes("size", (int64_t)strlen(size)) : 0;
    status = put_block(output, 'x', header, sizeof header - 1, 0, bytes, err);
    if (status == STK_OK && name)
        status = put_record(output, "path", name, err);
    if (status == STK_OK && size)
        status = put_record(output, "size", size, err);
    return status != STK_OK ? status : stki_tar_put_tail(output, err);
}

/* Replaces each non-ASCII character in place with a question mark, as Python does in headers. Returns the new
 * length. */
static size_t make_ascii(char *name)
{
    size_t kept = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        if (*c < 0x80 || *c >= 0xc0) /* skips continuation bytes */
            name[kept++] = (char)(*c < 0x80 ? *c : '?');
    name[kept] = '\0';
    return kept;
}

static bool is_ascii(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name > 127)
            return false;
    return true;
}

static stk_status put_long(stki_output *output, char *name, int64_t size, stk_error *err)
{
    char digits[24];
    bool wide = size >= OCTAL_LIMIT, special = strlen(name) > NAME_BYTES || !is_ascii(name);
    stk_status status;

    snprintf(digits, sizeof digits, "%" PRId64, size);
    status = put_pax(output, special ? name : NULL, wide ? digits : NULL, err);
    return status != STK_OK ? status : put_block(output, '0', name, make_ascii(name), 0644, wide ? 0 : size, err);
}

int64_t stki_tar_member_bytes(int64_t name_bytes, bool ascii, int64_t size)
{
    const bool special = name_bytes > NAME_BYTES || !ascii, wide = size >= OCTAL_LIMIT;
    int64_t records = special ? record_bytes("path", name_bytes) : 0, bytes;

    records += wide ? record_bytes("size", snprintf(NULL, 0, "%" PRId64, size)) : 0;
    bytes = STKI_TAR_BLOCK + stki_round_up(size, STKI_TAR_BLOCK);
    return records > 0 ? bytes + STKI_TAR_BLOCK + stki_round_up(records, STKI_TAR_BLOCK) : bytes;
}

int64_t stki_tar_archive_bytes(int64_t members)
{
    return (members + 2 * STKI_TAR_BLOCK + RECORD - 1) / RECORD * RECORD;
}

stk_status stki_tar_put_header(stki_output *output, const char *key, const char *extension, int64_t size,
                               stk_error *err)
{
    size_t key_bytes = strlen(key), extension_bytes = strlen(extension);
    char name[NAME_BYTES + 1], *longer;
    stk_status status;

    if (key_bytes + 1 + extension_bytes <= NAME_BYTES && size < OCTAL_LIMIT && is_ascii(key) && is_ascii(extension)) {
        memcpy(name, key, key_bytes);
        name[key_bytes] = '.';
        memcpy(name + key_bytes + 1, extension, extension_bytes);
        return put_block(output, '0', name, key_bytes + 1 + extension_bytes, 0644, size, err);
    }
    longer = stki_format("%s.%s", key, extension);
    if (!longer)
        return stki_fail_memory(err, (int64_t)(key_bytes + extension_bytes) + 2, stki_output_path(output));
    status = put_long(output, longer, size, err);
    stki_free(longer);
    return status;
}

stk_status stki_tar_put_tail(stki_output *output, stk_error *err)
{
    return stki_output_pad(output, STKI_TAR_BLOCK, err);
}

stk_status stki_tar_put_end(stki_output *output, stk_error *err)
{
    static const char zeros[2 * STKI_TAR_BLOCK];
    int64_t missing;
    stk_status status = stki_output_append(output, zeros, sizeof zeros, err);

    missing = (RECORD - stki_output_position(output) % RECORD) % RECORD;
    for (; missing > 0 && status == STK_OK; missing -= STKI_TAR_BLOCK)
        status = stki_output_append(output, zeros, STKI_TAR_BLOCK, err);
    return status;
}
