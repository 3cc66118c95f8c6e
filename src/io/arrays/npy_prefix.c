/* npy_prefix.c: the fixed part before an .npy header's text (layout in npy_header.c) and the encoding of the text. */
#include "checked.h"
#include "error.h"
#include "npy_header.h"
#include <inttypes.h>

static stk_status fail_short(const char *path, int64_t file_bytes, const char *expected, stk_error *err)
{
    return stki_fail_at(err, STK_E_TRUNCATED,
                        (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", file_bytes), expected},
                        "the file ends before its header");
}

stk_status stki_npy_read_prefix(const void *head, int64_t file_bytes, int64_t limit, const char *path,
                                stki_npy_prefix *out, stk_error *err)
{
    static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    const unsigned char *h = head;
    int64_t known = file_bytes < 6 ? file_bytes : 6;

    for (int64_t i = 0; i < known; i++)
        if (h[i] != magic[i])
            return stki_fail_at(
                err, STK_E_CORRUPT,
                (stki_place){path, -1, i, STKI_TEXT("byte 0x%02x", h[i]), STKI_TEXT("0x%02x", magic[i])},
                "not an npy file");
    if (file_bytes < 10)
        return fail_short(path, file_bytes, "at least 10 bytes (magic, version, length)", err);
    if (h[6] < 1 || h[6] > 3 || h[7] != 0)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, 6, STKI_TEXT("version %d.%d", h[6], h[7]), "1.0, 2.0 or 3.0"},
                            "unsupported npy version");
    out->major = h[6];
    out->text_offset = h[6] == 1 ? 10 : 12;
    if (file_bytes < out->text_offset)
        return fail_short(path, file_bytes, "at least 12 bytes (magic, version, length)", err);
    out->text_bytes = h[8] | h[9] << 8;
    if (h[6] > 1)
        out->text_bytes |= (int64_t)h[10] << 16 | (int64_t)h[11] << 24;
    if (!stki_inside(out->text_offset, out->text_bytes, file_bytes))
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, 8, STKI_TEXT("%" PRId64 " bytes", file_bytes - out->text_offset),
                                         STKI_TEXT("%" PRId64 " bytes of header", out->text_bytes)},
                            "the file ends inside its header");
    limit = limit > 0 ? limit : STKI_NPY_HEADER_LIMIT;
    if (out->text_bytes > limit)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){path, -1, 8, STKI_TEXT("%" PRId64 " bytes", out->text_bytes),
                                         STKI_TEXT("at most %" PRId64 " (header_limit)", limit)},
                            "the header is too long");
    return STK_OK;
}

/* Returns the length of the UTF-8 sequence at `s`, where `left` bytes remain; 0: it is invalid. Overlong forms,
 * surrogates and values above 10FFFF are also invalid. */
static int utf8_length(const unsigned char *s, int64_t left)
{
    int length = s[0] < 0x80                   ? 1
                 : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                 : (s[0] & 0xF0) == 0xE0       ? 3
                 : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                               : 0;

    if (length == 0 || length > left)
        return 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return length;
}

stk_status stki_npy_check_encoding(const stki_npy_prefix *prefix, const char *text, const char *path, stk_error *err)
{
    for (int64_t i = 0; i < prefix->text_bytes;) {
        int length = utf8_length((const unsigned char *)text + i, prefix->text_bytes - i);

        if (!length)
            return stki_fail_at(err, STK_E_CORRUPT,
                                (stki_place){path, -1, prefix->text_offset + i,
                                             STKI_TEXT("byte 0x%02x", (unsigned char)text[i]), "UTF-8 (version 3)"},
                                "invalid npy header");
        i += length;
    }
    return STK_OK;
}
