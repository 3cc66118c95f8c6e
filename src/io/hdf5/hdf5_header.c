/* hdf5_header.c: from the signature of an HDF5 file to the layout message of one data set. See hdf5_index.h.
 *
 *     superblock at 0, 512, 1024, 2048 … : \x89HDF\r\n\x1a\n, u8 version
 *         version 0, 1: sizes of offsets and lengths at 13 and 14, base address at 24 (28 in version 1)
 *         version 2, 3: the sizes at 9 and 10, base address at 12
 *     object header, version 1: u8 1, u8, u16 messages, u32, u32 size, 4 bytes; then messages of
 *         u16 type, u16 size, u8 flags, 3 bytes, data
 *     object header, version 2: OHDR, u8 2, u8 flags, 16 bytes if flags & 0x20, 4 bytes if flags & 0x10, the size of
 *         the first block in 1 << (flags & 3) bytes; then messages of u8 type, u16 size, u8 flags, u16 if flags & 4,
 * data message 0x10 goes on elsewhere: u64 address, u64 length (version 2: OCHK before and a checksum behind)
 */
#include "checked.h"
#include "error.h"
#include "hdf5_index.h"
#include <inttypes.h>
#include <string.h>

enum { LAYOUT = 0x08, CONTINUATION = 0x10, SHARED = 2, MAX_BLOCKS = 256 };

static stk_status corrupt(const stki_file *file, int64_t offset, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){file->path, -1, offset, NULL, NULL}, "%s", what);
}

static stk_status unsupported(const stki_file *file, int64_t offset, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){file->path, -1, offset, NULL, NULL}, "%s", what);
}

stk_status stki_hdf5_place(const stki_file *file, int64_t base, uint64_t address, int64_t bytes, const char *what,
                           int64_t *place, stk_error *err)
{
    int64_t at;

    if (address > INT64_MAX || !stki_add(base, (int64_t)address, &at) || !stki_inside(at, bytes, file->size))
        return stki_fail_at(err, STK_E_CORRUPT,
                            (stki_place){file->path, -1, -1, STKI_TEXT("address %" PRIu64, address),
                                         STKI_TEXT("%" PRId64 " bytes inside a file of %" PRId64, bytes, file->size)},
                            "%s", what);
    *place = at;
    return STK_OK;
}

/* ---- superblock ---- */

static stk_status find_signature(const stki_file *file, int64_t *at, stk_error *err)
{
    char head[8];

    for (*at = 0; *at <= file->size - 8; *at = *at ? *at * 2 : 512) {
        stk_status status = stki_file_read(file, *at, head, 8, err);

        if (status != STK_OK)
            return status;
        if (!memcmp(head, "\x89HDF\r\n\x1a\n", 8))
            return STK_OK;
    }
    return corrupt(file, 0, "no HDF5 signature", err);
}

static stk_status read_base(const stki_file *file, int64_t *base, stk_error *err)
{
    unsigned char block[36] = {0};
    int64_t at;
    int sizes, place;
    stk_status status = find_signature(file, &at, err);

    if (status == STK_OK)
        status = stki_file_read(file, at, block, file->size - at < 36 ? file->size - at : 36, err);
    if (status != STK_OK)
        return status;
    if (block[8] > 3)
        return unsupported(file, at + 8, "a superblock of another version than 0 to 3", err);
    sizes = block[8] < 2 ? 13 : 9;
    place = block[8] == 0 ? 24 : block[8] == 1 ? 28 : 12;
    if (block[sizes] != 8 || block[sizes + 1] != 8)
        return unsupported(file, at + sizes, "addresses or lengths of another size than 8 bytes", err);
    if (stki_hdf5_number(block + place, 8) != (uint64_t)at)
        return corrupt(file, at + place, "the base address is not where the file begins", err);
    *base = at;
    return STK_OK;
}

/* ---- object header ---- */

struct block {
    int64_t at, bytes;
};

struct header {
    const stki_file *file;
    int64_t base;
    bool second;      /* version 2 */
    int prefix;       /* bytes before a message's data */
    int64_t messages; /* version 1: so many are left */
    int blocks, done; /* blocks of messages, and how many of them were read */
    struct block block[MAX_BLOCKS];
};

static stk_status add_block(struct header *h, uint64_t address, uint64_t bytes, int64_t head, int64_t tail,
                            stk_error *err)
{
    int64_t at;
    stk_status status;

    if (bytes > INT64_MAX || (int64_t)bytes < head + tail)
        return corrupt(h->file, -1, "an object header's block has no room for itself", err);
    status = stki_hdf5_place(h->file, h->base, address, (int64_t)bytes, "an object header's block", &at, err);
    if (status != STK_OK)
        return status;
    if (h->blocks == MAX_BLOCKS)
        return unsupported(h->file, at, "an object header of more than 256 blocks", err);
    h->block[h->blocks++] = (struct block){at + head, (int64_t)bytes - head - tail};
    return STK_OK;
}

static stk_status begin_first(struct header *h, uint64_t address, int64_t at, stk_error *err)
{
    unsigned char head[16];
    stk_status status = stki_file_read(h->file, at, head, 16, err);

    if (status != STK_OK)
        return status;
    h->second = false;
    h->prefix = 8;
    h->messages = (int64_t)stki_hdf5_number(head + 2, 2);
    return add_block(h, address + 16, stki_hdf5_number(head + 8, 4), 0, 0, err);
}

static stk_status begin_second(struct header *h, uint64_t address, int64_t at, stk_error *err)
{
    unsigned char head[34] = {0};
    int64_t room = h->file->size - at < 34 ? h->file->size - at : 34, first;
    stk_status status = stki_file_read(h->file, at, head, room, err);
    int flags = head[5];

    if (status != STK_OK)
        return status;
    if (head[4] != 2)
        return unsupported(h->file, at + 4, "an object header of another version than 1 and 2", err);
    first = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0);
    h->second = true;
    h->prefix = flags & 4 ? 6 : 4;
    h->messages = INT64_MAX;
    return add_block(h, address + (uint64_t)first + (1u << (flags & 3)),
                     stki_hdf5_number(head + first, 1 << (flags & 3)), 0, 0, err);
}

static stk_status begin(struct header *h, uint64_t address, stk_error *err)
{
    unsigned char head[16];
    int64_t at;
    stk_status status = stki_hdf5_place(h->file, h->base, address, 16, "an object header", &at, err);

    if (status == STK_OK)
        status = stki_file_read(h->file, at, head, 16, err);
    if (status != STK_OK)
        return status;
    if (!memcmp(head, "OHDR", 4))
        return begin_second(h, address, at, err);
    if (head[0] == 1)
        return begin_first(h, address, at, err);
    return corrupt(h->file, at, "no object header", err);
}

static stk_status go_on(struct header *h, int64_t at, int64_t bytes, stk_error *err)
{
    unsigned char data[16], mark[4];
    stk_status status;

    if (bytes < 16)
        return corrupt(h->file, at, "a continuation of an object header is cut", err);
    status = stki_file_read(h->file, at, data, 16, err);
    if (status == STK_OK)
        status = add_block(h, stki_hdf5_number(data, 8), stki_hdf5_number(data + 8, 8), h->second ? 4 : 0,
                           h->second ? 4 : 0, err);
    if (status != STK_OK || !h->second)
        return status;
    status = stki_file_read(h->file, h->block[h->blocks - 1].at - 4, mark, 4, err);
    if (status == STK_OK && memcmp(mark, "OCHK", 4))
        status = corrupt(h->file, h->block[h->blocks - 1].at - 4, "no continuation of an object header", err);
    return status;
}

/* The messages of one block. STK_END: the layout is found. */
static stk_status scan(struct header *h, struct block block, stki_hdf5_layout *out, stk_error *err)
{
    unsigned char head[8];

    while (block.bytes >= h->prefix && h->messages-- > 0) {
        int type, flags;
        int64_t bytes, data = block.at + h->prefix;
        stk_status status = stki_file_read(h->file, block.at, head, h->prefix, err);

        if (status != STK_OK)
            return status;
        type = h->second ? head[0] : (int)stki_hdf5_number(head, 2);
        bytes = (int64_t)stki_hdf5_number(head + (h->second ? 1 : 2), 2);
        flags = h->second ? head[3] : head[4];
        if (bytes > block.bytes - h->prefix)
            return corrupt(h->file, block.at, "a message of an object header is longer than its block", err);
        if (type == LAYOUT && (flags & SHARED))
            return unsupported(h->file, block.at, "a shared layout message", err);
        if (type == LAYOUT) {
            out->length = (int)(bytes < STKI_HDF5_LAYOUT_ROOM ? bytes : STKI_HDF5_LAYOUT_ROOM);
            out->place = data;
            status = stki_file_read(h->file, data, out->bytes, out->length, err);
            return status != STK_OK ? status : STK_END;
        }
        if (type == CONTINUATION)
            status = go_on(h, data, bytes, err);
        if (status != STK_OK)
            return status;
        block.at = data + bytes;
        block.bytes -= h->prefix + bytes;
    }
    return STK_OK;
}

stk_status stki_hdf5_layout_read(const stki_file *file, uint64_t header, stki_hdf5_layout *out, stk_error *err)
{
    struct header h = {.file = file};
    stk_status status = read_base(file, &h.base, err);

    if (status == STK_OK)
        status = begin(&h, header, err);
    while (status == STK_OK && h.done < h.blocks)
        status = scan(&h, h.block[h.done++], out, err);
    out->base = h.base;
    if (status == STK_OK)
        return corrupt(file, -1, "an object header without a layout", err);
    return status == STK_END ? STK_OK : status;
}
