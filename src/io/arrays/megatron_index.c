/* megatron_index.c: the index of Megatron's token files, little-endian and unaligned:
 *
 *     0            "MMIDIDX\0\0"
 *     9            u64 version, 1
 *     17           u8 type of a token
 *     18           u64 sequences S
 *     26           u64 entries E of the list of documents
 *     34           S i32: tokens of each sequence
 *     34 + 4 S     S i64: its byte offset in the .bin
 *     34 + 12 S    E i64: the first sequence of each document, then S
 *     … + 8 E      S i8: modes, only in multimodal files
 *
 * The functions in this file work on bytes in memory. */
#include "checked.h"
#include "error.h"
#include "npy_header.h"
#include "tokens.h"
#include <inttypes.h>
#include <string.h>

static const char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};

static uint64_t load(const void *bytes, int count)
{
    uint64_t value = 0;

    memcpy(&value, bytes, (size_t)count);
    return value;
}

static int64_t load_i64(const void *bytes)
{
    int64_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

static int32_t load_i32(const void *bytes)
{
    int32_t value;

    memcpy(&value, bytes, sizeof value);
    return value;
}

bool stki_megatron_matches(const char *head, int64_t length)
{
    return length >= (int64_t)sizeof magic && !memcmp(head, magic, sizeof magic);
}

static stk_status check_start(const char *h, int64_t file_bytes, const char *path, stk_error *err)
{
    char shown[16];
    int64_t known = file_bytes < (int64_t)sizeof magic ? file_bytes : (int64_t)sizeof magic;

    if (memcmp(h, magic, (size_t)known) != 0)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, 0, stki_npy_printable(shown, sizeof shown, h, known), "MMIDIDX"},
                            "not an index of Megatron's token files");
    if (file_bytes < STKI_MEGATRON_HEADER)
        return stki_fail_at(err, STK_E_TRUNCATED,
                            (stki_place){path, -1, -1, STKI_TEXT("%" PRId64 " bytes", file_bytes), "at least 34"},
                            "the file ends inside its header");
    if (load(h + 9, 8) != 1)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){path, -1, 9, STKI_TEXT("version %" PRIu64, load(h + 9, 8)), "version 1"},
                            "unsupported version of Megatron's index");
    return STK_OK;
}

static stk_status read_type(const char *h, const char *path, stk_dtype *out, stk_error *err)
{
    static const stk_dtype types[] = {STK_DTYPE_NONE, STK_U8,  STK_I8,  STK_I16, STK_I32,
                                      STK_I64,        STK_F64, STK_F32, STK_U16};
    unsigned char code = (unsigned char)h[17];

    if (code == 0 || code >= sizeof types / sizeof types[0])
        return stki_fail_at(err, STK_E_CORRUPT, (stki_place){path, -1, 17, STKI_TEXT("%d", code), "1 to 8"},
                            "invalid token type");
    *out = types[code];
    return STK_OK;
}

stk_status stki_megatron_read_header(const void *head, int64_t file_bytes, const char *path, stki_megatron_index *out,
                                     stk_error *err)
{
    const char *h = head;
    uint64_t sequences, entries, left;
    stk_status status = check_start(h, file_bytes, path, err);

    *out = (stki_megatron_index){.modes = -1};
    if (status == STK_OK)
        status = read_type(h, path, &out->dtype, err);
    if (status != STK_OK)
        return status;
    sequences = load(h + 18, 8);
    entries = load(h + 26, 8);
    left = (uint64_t)(file_bytes - STKI_MEGATRON_HEADER);
    if (sequences > left / 12 || entries > (left - sequences * 12) / 8)
        return stki_fail_at(
            err, STK_E_TRUNCATED,
            (stki_place){path, -1, 18, STKI_TEXT("%" PRId64 " bytes", file_bytes),
                         STKI_TEXT("room for %" PRIu64 " sequences, %" PRIu64 " documents", sequences, entries)},
            "the file ends inside its lists");
    left -= sequences * 12 + entries * 8;
    if (left != 0 && left != sequences)
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){path, -1, file_bytes - (int64_t)left, STKI_TEXT("%" PRIu64 " bytes", left),
                                         STKI_TEXT("none, or %" PRIu64 " bytes of modes", sequences)},
                            "unexpected data after the list of documents");
    out->sequences = (int64_t)sequences;
    out->documents = entries > 0 ? (int64_t)entries - 1 : 0;
    out->lengths = STKI_MEGATRON_HEADER;
    out->offsets = out->lengths + 4 * out->sequences;
    out->list = out->offsets + 8 * out->sequences;
    if (left > 0)
        out->modes = out->list + 8 * (int64_t)entries;
    return STK_OK;
}

static stk_status check_sequence(const stki_megatron_index *index, const char *b, int64_t i, int64_t bin_bytes,
                                 const char *path, stk_error *err)
{
    int64_t length = load_i32(b + index->lengths + 4 * i), offset = load_i64(b + index->offsets + 8 * i);

    if (length >= 0 && stki_inside(offset, length * stk_dtype_size(index->dtype), bin_bytes))
        return STK_OK;
    return stki_fail_at(err, STK_E_CORRUPT,
                        (stki_place){path, i, length < 0 ? index->lengths + 4 * i : index->offsets + 8 * i,
                                     STKI_TEXT("%" PRId64 " tokens at byte %" PRId64, length, offset),
                                     STKI_TEXT("a range inside the %" PRId64 " bytes of the .bin", bin_bytes)},
                        "invalid sequence");
}

static stk_status check_documents(const stki_megatron_index *index, const char *b, int64_t entries, const char *path,
                                  stk_error *err)
{
    int64_t before = 0;

    for (int64_t i = 0; i < entries; i++) {
        int64_t first = load_i64(b + index->list + 8 * i);

        if (first < before || first > index->sequences || (i == 0 && first != 0))
            return stki_fail_at(
                err, STK_E_CORRUPT,
                (stki_place){path, i, index->list + 8 * i, STKI_TEXT("sequence %" PRId64, first),
                             i == 0 ? "0" : STKI_TEXT("%" PRId64 " to %" PRId64, before, index->sequences)},
                "invalid first sequence of a document");
        before = first;
    }
    return STK_OK;
}

stk_status stki_megatron_check(const stki_megatron_index *index, const void *bytes, int64_t bin_bytes, const char *path,
                               stk_error *err)
{
    stk_status status = STK_OK;

    for (int64_t i = 0; i < index->sequences && status == STK_OK; i++)
        status = check_sequence(index, bytes, i, bin_bytes, path, err);
    return status != STK_OK ? status
                            : check_documents(index, bytes, index->documents > 0 ? index->documents + 1 : 0, path, err);
}
