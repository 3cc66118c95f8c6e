/* zip_unpack.c: decompresses zip members. Whole members are decoded by libdeflate, which needs all input and output at
 * once and is several times as fast as a stream decoder. zlib decodes the first bytes, from which the content is
 * identified before memory for the member is allocated. libdeflate allocates a few KiB per call with malloc, because
 * its allocator can only be set for the whole process. */
#include "allocate.h"
#include "error.h"
#include "read_clock.h"
#include "zip.h"
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>
#include <zlib.h>

enum { PIECE = 64 << 10 };

static stk_status fail_deflate(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, const char *found,
                               stk_error *err)
{
    return stki_zip_fail(zip, entry, STK_E_CORRUPT, offset, "the member cannot be inflated", found,
                         STKI_TEXT("%" PRId64 " bytes", entry->size), err);
}

static stk_status compare_crc(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, uint32_t crc,
                              stk_error *err)
{
    if (crc == entry->crc || (entry->crc == 0 && zip->crc_optional))
        return STK_OK;
    return stki_zip_fail(zip, entry, STK_E_CORRUPT, offset, "the CRC is wrong", STKI_TEXT("%08" PRIx32, crc),
                         STKI_TEXT("%08" PRIx32, entry->crc), err);
}

/* ---- the first bytes ---- */

void *stki_zip_stream_alloc(void *context, unsigned count, unsigned bytes)
{
    (void)context;
    return stki_zalloc_array(count, bytes);
}

void stki_zip_stream_free(void *context, void *block)
{
    (void)context;
    stki_free(block);
}

static stk_status inflate_some(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, z_stream *stream,
                               stk_error *err)
{
    unsigned char piece[4096];
    int result = Z_OK;

    for (int64_t done = 0, n; done < entry->compressed && stream->avail_out > 0 && result == Z_OK; done += n) {
        stk_status status;

        n = entry->compressed - done < (int64_t)sizeof piece ? entry->compressed - done : (int64_t)sizeof piece;
        status = stki_file_read(zip->file, offset + done, piece, n, err);
        if (status != STK_OK)
            return status;
        stream->next_in = piece;
        stream->avail_in = (uInt)n;
        result = inflate(stream, Z_NO_FLUSH);
    }
    if (result == Z_MEM_ERROR)
        return stki_fail_memory(err, PIECE, "inflating");
    if (stream->avail_out > 0)
        return fail_deflate(zip, entry, offset,
                            result == Z_STREAM_END || result == Z_OK ? "fewer bytes" : "invalid data", err);
    return STK_OK;
}

static stk_status inflate_head(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to,
                               int64_t bytes, stk_error *err)
{
    z_stream stream = {
        .zalloc = stki_zip_stream_alloc, .zfree = stki_zip_stream_free, .next_out = to, .avail_out = (uInt)bytes};
    stk_status status;

    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return stki_fail_memory(err, PIECE, "inflating");
    status = inflate_some(zip, entry, offset, &stream, err);
    (void)inflateEnd(&stream);
    return status;
}

stk_status stki_zip_head(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, int64_t bytes,
                         int64_t *got, stk_error *err)
{
    bytes = bytes < entry->size ? bytes : entry->size;
    bytes = bytes < 1 << 30 ? bytes : 1 << 30; /* zlib's counters have 32 bits */
    *got = bytes;
    if (entry->method == STKI_ZIP_STORED)
        return stki_file_read(zip->file, offset, to, bytes, err);
    return bytes > 0 ? inflate_head(zip, entry, offset, to, bytes, err) : STK_OK;
}

/* ---- whole members ---- */

static stk_status inflate_whole(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, const void *from,
                                void *to, stk_error *err)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    enum libdeflate_result result;

    if (!decompressor)
        return stki_fail_memory(err, PIECE, "inflating");
    const int64_t began = stki_read_work_begin(STKI_READ_INFLATE, true);
    result =
        libdeflate_deflate_decompress(decompressor, from, (size_t)entry->compressed, to, (size_t)entry->size, NULL);
    stki_read_work_end(STKI_READ_INFLATE, began);
    libdeflate_free_decompressor(decompressor);
    if (result == LIBDEFLATE_SUCCESS)
        return compare_crc(zip, entry, offset, libdeflate_crc32(0, to, (size_t)entry->size), err);
    return fail_deflate(zip, entry, offset,
                        result == LIBDEFLATE_SHORT_OUTPUT         ? "fewer bytes"
                        : result == LIBDEFLATE_INSUFFICIENT_SPACE ? "more bytes"
                                                                  : "invalid data",
                        err);
}

static stk_status read_deflated(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to,
                                stk_error *err)
{
    void *from;
    stk_status status;

    if (zip->file->map)
        return inflate_whole(zip, entry, offset, (const char *)zip->file->map + offset, to, err);
    from = stki_resize(NULL, entry->compressed + 1); /* the size is never 0 */
    if (!from)
        return stki_fail_memory(err, entry->compressed, "a deflated member");
    status = stki_file_read(zip->file, offset, from, entry->compressed, err);
    if (status == STK_OK)
        status = inflate_whole(zip, entry, offset, from, to, err);
    stki_free(from);
    return status;
}

stk_status stki_zip_read(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, stk_error *err)
{
    stk_status status;

    if (entry->method == STKI_ZIP_DEFLATED)
        return read_deflated(zip, entry, offset, to, err);
    status = stki_file_read(zip->file, offset, to, entry->size, err);
    return status != STK_OK ? status
                            : compare_crc(zip, entry, offset, libdeflate_crc32(0, to, (size_t)entry->size), err);
}

stk_status stki_zip_check(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, stk_error *err)
{
    uint32_t crc = 0;
    stk_status status = STK_OK;
    char *piece;

    if (zip->file->map)
        return compare_crc(zip, entry, offset,
                           libdeflate_crc32(0, (const char *)zip->file->map + offset, (size_t)entry->size), err);
    piece = stki_resize(NULL, PIECE);
    if (!piece)
        return stki_fail_memory(err, PIECE, "checking a member");
    for (int64_t done = 0, n; done < entry->size && status == STK_OK; done += n) {
        n = entry->size - done < PIECE ? entry->size - done : PIECE;
        status = stki_file_read(zip->file, offset + done, piece, n, err);
        if (status == STK_OK)
            crc = libdeflate_crc32(crc, piece, (size_t)n);
    }
    stki_free(piece);
    return status != STK_OK ? status : compare_crc(zip, entry, offset, crc, err);
}
