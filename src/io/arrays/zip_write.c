/* zip_write.c: see zip_write.h. Sizes and CRC are known only at the end, so a member's local header is written first
 * with room for them and for a zip64 field, and rewritten at the end. That room is an extra field, whose length also
 * aligns stored data to a multiple of 64.
 *
 * The head of a deflated member is one stored deflate block, so that it can be overwritten in place. The CRC of the
 * member is combined from those of the head and the body. */
#include "zip_write.h"
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "zip.h"
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>

enum {
    ALIGN = 64,
    LOCAL_BYTES = 30,
    ENTRY_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ZIP64_EXTRA = 20, /* zip64 field of a local header, which contains both sizes */
    EXTRA_HEAD = 4,   /* id and length of an extra field */
    EXTRA_MAX = 20 + 4 + 64,
    PADDING_ID = 0x4246, /* as in torch */
    BLOCK_HEAD = 5,      /* header of a stored deflate block */
    PACKED = 64 << 10,
    FIRST_DAY = 0x21, /* 1980-01-01 */
    FLAG_UTF8 = 1 << 11
};

#define WIDE INT64_C(0xFFFFFFFF) /* values of at least this need zip64, and are stored as this value */

/* ---- little-endian records ---- */

struct bytes {
    char data[ENTRY_BYTES + END64_BYTES + EXTRA_MAX];
    int64_t count;
};

static void put(struct bytes *to, int count, uint64_t number)
{
    for (int i = 0; i < count; i++)
        to->data[to->count++] = (char)(number >> (8 * i));
}

static void put_signature(struct bytes *to, char a, char b)
{
    put(to, 2, 'P' | 'K' << 8);
    put(to, 2, (uint64_t)a | (uint64_t)b << 8);
}

static uint64_t narrow(int64_t size)
{
    return size < WIDE ? (uint64_t)size : (uint64_t)WIDE;
}

static bool is_wide(const stki_zip_record *record)
{
    return record->size >= WIDE || record->compressed >= WIDE;
}

static int flags_of(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name > 127)
            return FLAG_UTF8;
    return 0;
}

/* Fields common to local headers and directory entries. */
static void put_common(struct bytes *to, const stki_zip_record *record, bool wide)
{
    put(to, 2, wide ? 45 : 20);
    put(to, 2, (uint64_t)flags_of(record->name));
    put(to, 2, record->deflated ? STKI_ZIP_DEFLATED : STKI_ZIP_STORED);
    put(to, 2, 0);
    put(to, 2, FIRST_DAY);
    put(to, 4, record->crc);
    put(to, 4, narrow(record->compressed));
    put(to, 4, narrow(record->size));
    put(to, 2, strlen(record->name));
}

static void put_zip64(struct bytes *to, const stki_zip_record *record)
{
    put(to, 2, 1);
    put(to, 2, 16);
    put(to, 8, (uint64_t)record->size);
    put(to, 8, (uint64_t)record->compressed);
}

/* ---- members ---- */

static stk_status write_local(stki_zip_writer *zip, bool again, stk_error *err)
{
    const stki_zip_record *record = &zip->records[zip->count - 1];
    int64_t name = (int64_t)strlen(record->name), left = zip->extra_bytes;
    struct bytes local = {.count = 0}, extra = {.count = 0};
    bool wide = is_wide(record);
    stk_status status;

    put_signature(&local, 3, 4);
    put_common(&local, record, wide);
    put(&local, 2, (uint64_t)left);
    if (wide) {
        local.count = 18; /* the extra field has both sizes or neither */
        put(&local, 4, (uint64_t)WIDE);
        put(&local, 4, (uint64_t)WIDE);
        local.count = LOCAL_BYTES;
        put_zip64(&extra, record);
        left -= ZIP64_EXTRA;
    }
    put(&extra, 2, PADDING_ID);
    put(&extra, 2, (uint64_t)(left - EXTRA_HEAD));
    memset(extra.data + extra.count, 'Z', (size_t)(left - EXTRA_HEAD));
    extra.count += left - EXTRA_HEAD;
    if (again) {
        status = stki_output_write_at(zip->output, record->header, local.data, local.count, err);
        return status != STK_OK ? status
                                : stki_output_write_at(zip->output, record->header + LOCAL_BYTES + name, extra.data,
                                                       extra.count, err);
    }
    status = stki_output_append(zip->output, local.data, local.count, err);
    if (status == STK_OK)
        status = stki_output_append(zip->output, record->name, name, err);
    return status != STK_OK ? status : stki_output_append(zip->output, extra.data, extra.count, err);
}

static stk_status add_record(stki_zip_writer *zip, const char *name, stk_error *err)
{
    int64_t length = (int64_t)strlen(name);
    stk_status status;

    if (length > 0xFFFF)
        return stki_fail_at(err, STK_E_LIMIT,
                            (stki_place){stki_output_path(zip->output), -1, -1, STKI_TEXT("%" PRId64 " bytes", length),
                                         "at most 65535"},
                            "the name of a member is too long");
    status = stki_grow(&zip->records, &zip->room, zip->count + 1, sizeof *zip->records, "a zip directory", err);
    if (status != STK_OK)
        return status;
    zip->records[zip->count] = (stki_zip_record){.name = stki_strdup(name)};
    if (!zip->records[zip->count].name)
        return stki_fail_memory(err, length + 1, "a zip directory");
    zip->records[zip->count++].header = stki_output_position(zip->output);
    return STK_OK;
}

static void end_stream(stki_zip_writer *zip)
{
    if (!zip->stream)
        return;
    (void)deflateEnd(zip->stream);
    stki_free(zip->stream);
    stki_free(zip->packed);
    zip->stream = NULL;
    zip->packed = NULL;
}

static stk_status begin_stream(stki_zip_writer *zip, int level, stk_error *err)
{
    zip->stream = stki_zalloc(sizeof *zip->stream);
    zip->packed = stki_resize(NULL, PACKED);
    if (zip->stream)
        *zip->stream = (z_stream){.zalloc = stki_zip_stream_alloc, .zfree = stki_zip_stream_free};
    if (zip->stream && zip->packed &&
        deflateInit2(zip->stream, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK)
        return STK_OK;
    stki_free(zip->stream);
    stki_free(zip->packed);
    zip->stream = NULL;
    zip->packed = NULL;
    return stki_fail_memory(err, 300 << 10, "deflating");
}

/* The header of a non-final stored deflate block is 0, the length and its complement. */
static stk_status reserve_head(stki_zip_writer *zip, stk_error *err)
{
    static const char zeros[1024];
    struct bytes block = {.count = 0};
    stk_status status = STK_OK;

    if (zip->stream && zip->head_bytes > 0) {
        put(&block, 1, 0);
        put(&block, 2, (uint64_t)zip->head_bytes);
        put(&block, 2, ~(uint64_t)zip->head_bytes);
        status = stki_output_append(zip->output, block.data, block.count, err);
        zip->data_offset += BLOCK_HEAD;
    }
    for (int64_t left = zip->head_bytes; left > 0 && status == STK_OK; left -= (int64_t)sizeof zeros)
        status =
            stki_output_append(zip->output, zeros, left < (int64_t)sizeof zeros ? left : (int64_t)sizeof zeros, err);
    return status;
}

stk_status stki_zip_write_begin(stki_zip_writer *zip, const char *name, int64_t head_bytes, int level, stk_error *err)
{
    stk_status status = add_record(zip, name, err);
    int64_t start;

    if (status != STK_OK)
        return status;
    start = stki_output_position(zip->output) + LOCAL_BYTES + (int64_t)strlen(name);
    zip->extra_bytes = stki_round_up(start + ZIP64_EXTRA + EXTRA_HEAD, ALIGN) - start;
    zip->data_offset = start + zip->extra_bytes;
    zip->head_bytes = head_bytes;
    zip->body_bytes = 0;
    zip->body_crc = 0;
    zip->records[zip->count - 1].deflated = level > 0;
    if (level > 0)
        status = begin_stream(zip, level, err);
    if (status == STK_OK)
        status = write_local(zip, false, err);
    return status != STK_OK ? status : reserve_head(zip, err);
}

static stk_status run_stream(stki_zip_writer *zip, int flush, stk_error *err)
{
    int result = Z_OK;
    stk_status status = STK_OK;

    do {
        zip->stream->next_out = zip->packed;
        zip->stream->avail_out = PACKED;
        result = deflate(zip->stream, flush);
        status = stki_output_append(zip->output, zip->packed, PACKED - (int64_t)zip->stream->avail_out, err);
    } while (status == STK_OK && zip->stream->avail_out == 0 && result != Z_STREAM_END);
    return status;
}

stk_status stki_zip_write_append(stki_zip_writer *zip, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status = STK_OK;

    if (count == 0) /* libdeflate_crc32 returns its initial value for NULL */
        return STK_OK;
    zip->body_crc = libdeflate_crc32(zip->body_crc, bytes, (size_t)count);
    zip->body_bytes += count;
    if (!zip->stream)
        return stki_output_append(zip->output, bytes, count, err);
    for (int64_t done = 0, n; done < count && status == STK_OK; done += n) { /* zlib's counters have 32 bits */
        n = count - done < 1 << 30 ? count - done : 1 << 30;
        zip->stream->next_in = (Bytef *)(uintptr_t)bytes + done;
        zip->stream->avail_in = (uInt)n;
        status = run_stream(zip, Z_NO_FLUSH, err);
    }
    return status;
}

static uint32_t combine(uint32_t head_crc, uint32_t body_crc, int64_t body_bytes)
{
    return (uint32_t)crc32_combine(head_crc, body_crc, (z_off_t)body_bytes);
}

stk_status stki_zip_write_end(stki_zip_writer *zip, const void *head, stk_error *err)
{
    stki_zip_record *record = &zip->records[zip->count - 1];
    uint32_t head_crc = zip->head_bytes ? libdeflate_crc32(0, head, (size_t)zip->head_bytes) : 0;
    int64_t data = record->header + LOCAL_BYTES + (int64_t)strlen(record->name) + zip->extra_bytes;
    stk_status status = zip->stream ? run_stream(zip, Z_FINISH, err) : STK_OK;

    end_stream(zip);
    record->crc = combine(head_crc, zip->body_crc, zip->body_bytes);
    record->size = zip->head_bytes + zip->body_bytes;
    record->compressed = stki_output_position(zip->output) - data;
    if (status == STK_OK) /* flushes, so that the buffer cannot overwrite the bytes written in place */
        status = stki_output_seek(zip->output, stki_output_position(zip->output), err);
    if (status == STK_OK)
        status = write_local(zip, true, err);
    if (status == STK_OK && zip->head_bytes)
        status = stki_output_write_at(zip->output, zip->data_offset, head, zip->head_bytes, err);
    return status;
}

stk_status stki_zip_write_member(stki_zip_writer *zip, const char *name, const void *bytes, int64_t count,
                                 stk_error *err)
{
    stk_status status = stki_zip_write_begin(zip, name, 0, 0, err);

    if (status == STK_OK)
        status = stki_zip_write_append(zip, bytes, count, err);
    return status != STK_OK ? status : stki_zip_write_end(zip, NULL, err);
}

/* ---- the directory ---- */

static stk_status write_entry(stki_zip_writer *zip, const stki_zip_record *record, stk_error *err)
{
    struct bytes entry = {.count = 0}, extra = {.count = 0};
    bool wide = is_wide(record) || record->header >= WIDE;
    stk_status status;

    if (wide) { /* contains only the fields that are all ones in the entry, in this order */
        put(&extra, 4, 1);
        if (record->size >= WIDE)
            put(&extra, 8, (uint64_t)record->size);
        if (record->compressed >= WIDE)
            put(&extra, 8, (uint64_t)record->compressed);
        if (record->header >= WIDE)
            put(&extra, 8, (uint64_t)record->header);
        extra.data[2] = (char)(extra.count - EXTRA_HEAD);
    }
    put_signature(&entry, 1, 2);
    put(&entry, 2, wide ? 45 : 20);
    put_common(&entry, record, wide);
    put(&entry, 2, (uint64_t)extra.count);
    put(&entry, 2, 0); /* comment */
    put(&entry, 2, 0); /* disk */
    put(&entry, 2, 0); /* attributes */
    put(&entry, 4, 0);
    put(&entry, 4, narrow(record->header));
    status = stki_output_append(zip->output, entry.data, entry.count, err);
    if (status == STK_OK)
        status = stki_output_append(zip->output, record->name, (int64_t)strlen(record->name), err);
    return status != STK_OK ? status : stki_output_append(zip->output, extra.data, extra.count, err);
}

static stk_status write_end64(stki_zip_writer *zip, int64_t at, int64_t bytes, stk_error *err)
{
    struct bytes end = {.count = 0};

    put_signature(&end, 6, 6);
    put(&end, 8, END64_BYTES - 12);
    put(&end, 2, 45);
    put(&end, 2, 45);
    put(&end, 4, 0);
    put(&end, 4, 0);
    put(&end, 8, (uint64_t)zip->count);
    put(&end, 8, (uint64_t)zip->count);
    put(&end, 8, (uint64_t)bytes);
    put(&end, 8, (uint64_t)at);
    put_signature(&end, 6, 7);
    put(&end, 4, 0);
    put(&end, 8, (uint64_t)(at + bytes));
    put(&end, 4, 1);
    return stki_output_append(zip->output, end.data, end.count, err);
}

stk_status stki_zip_write_directory(stki_zip_writer *zip, stk_error *err)
{
    struct bytes end = {.count = 0};
    int64_t at = stki_output_position(zip->output), bytes;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < zip->count && status == STK_OK; i++)
        status = write_entry(zip, &zip->records[i], err);
    bytes = stki_output_position(zip->output) - at;
    if (status == STK_OK && (zip->count >= 0xFFFF || at >= WIDE || bytes >= WIDE))
        status = write_end64(zip, at, bytes, err);
    put_signature(&end, 5, 6);
    put(&end, 4, 0);
    put(&end, 2, zip->count < 0xFFFF ? (uint64_t)zip->count : 0xFFFF);
    put(&end, 2, zip->count < 0xFFFF ? (uint64_t)zip->count : 0xFFFF);
    put(&end, 4, narrow(bytes));
    put(&end, 4, narrow(at));
    put(&end, 2, 0);
    return status != STK_OK ? status : stki_output_append(zip->output, end.data, end.count, err);
}

void stki_zip_write_fini(stki_zip_writer *zip)
{
    end_stream(zip);
    for (int64_t i = 0; i < zip->count; i++)
        stki_free(zip->records[i].name);
    stki_free(zip->records);
    *zip = (stki_zip_writer){0};
}
