/* hdf5_header.c: superblocks and object headers. See hdf5_parse.h.
 *
 *     superblock at 0, 512, 1024, 2048 … (II.A): \x89HDF\r\n\x1a\n, u8 version
 *         version 0, 1: u8 x 4, u8 bytes of offsets, u8 of lengths, u8, u16 leaf K, u16 internal K, u32 flags,
 *             (version 1: u16, u16), base, free space, end of file, driver information; root: u64, u64 object header
 *         version 2, 3: u8 bytes of offsets, u8 of lengths, u8 flags, base, extension, end of file, root's object
 *             header, u32 checksum
 *     object header, version 1 (IV.A.1.a): u8 1, u8, u16 messages, u32, u32 size, 4 bytes; then messages of
 *         u16 type, u16 size, u8 flags, 3 bytes, data
 *     object header, version 2 (IV.A.1.b): OHDR, u8 2, u8 flags, 16 bytes if flags & 0x20, 4 bytes if flags & 0x10,
 *         the size of the first block in 1 << (flags & 3) bytes; then messages of u8 type, u16 size, u8 flags, u16 if
 *         flags & 4, data; u32 checksum
 *     message 0x10 is a continuation: u64 address, u64 length (version 2: OCHK before and a checksum after)
 */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "grow.h"
#include "hdf5_index.h"
#include <inttypes.h>
#include <string.h>

enum {
    CONTINUATION = 0x10,
    NEWEST = 0x17, /* highest message type in the specification */
    SHARED = 2,
    FAILS_IF_UNKNOWN = 0x80,
    MAX_BLOCKS = 256,
    MAX_BYTES = 1 << 24, /* limit of one header */
    HEAD = 34            /* largest prefix of version 2 before the messages */
};

stk_status stki_hdf5_corrupt(const stki_hdf5_super *super, uint64_t address, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_CORRUPT, (stki_place){super->file->path, -1, -1, NULL, NULL}, "%s%s", what,
                        address > 0 ? STKI_TEXT(" (address %" PRIu64 ")", address) : "");
}

stk_status stki_hdf5_unsupported(const stki_hdf5_super *super, uint64_t address, const char *what, stk_error *err)
{
    return stki_fail_at(err, STK_E_UNSUPPORTED, (stki_place){super->file->path, -1, -1, NULL, NULL}, "%s%s", what,
                        address > 0 ? STKI_TEXT(" (address %" PRIu64 ")", address) : "");
}

stk_status stki_hdf5_place(const stki_file *file, int64_t base, uint64_t address, int64_t bytes, const char *what,
                           int64_t *place, stk_error *err)
{
    int64_t at;

    if (address > INT64_MAX || !stki_add(base, (int64_t)address, &at) || !stki_inside(at, bytes, file->size))
        return stki_fail_at(
            err, STK_E_CORRUPT,
            (stki_place){file->path, -1, -1, STKI_TEXT("address %" PRIu64, address),
                         STKI_TEXT("%" PRId64 " bytes inside a file of %" PRId64 " bytes", bytes, file->size)},
            "%s is outside the file", what);
    *place = at;
    return STK_OK;
}

stk_status stki_hdf5_copy(const stki_hdf5_super *super, uint64_t address, void *to, int64_t bytes, const char *what,
                          stk_error *err)
{
    int64_t at;
    stk_status status = stki_hdf5_place(super->file, super->base, address, bytes, what, &at, err);

    return status == STK_OK ? stki_file_read(super->file, at, to, bytes, err) : status;
}

/* ---- checksums ---- */

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* Bob Jenkins, "lookup3", 2006: three words of state absorb twelve bytes at a time. */
uint32_t stki_hdf5_sum(const void *bytes, int64_t count)
{
    static const int mixing[6] = {4, 6, 8, 16, 19, 4}, ending[7] = {14, 11, 25, 16, 4, 14, 24};
    const unsigned char *at = bytes;
    uint32_t s[3] = {0xDEADBEEF + (uint32_t)count, 0xDEADBEEF + (uint32_t)count, 0xDEADBEEF + (uint32_t)count};

    if (count == 0)
        return s[2];
    for (; count > 12; count -= 12, at += 12) {
        for (int i = 0; i < 3; i++)
            s[i] += (uint32_t)stki_hdf5_number(at + 4 * i, 4);
        for (int i = 0; i < 6; i++) { /* a -= c, a ^= c rotated, c += b; then with the roles rotated */
            uint32_t *a = &s[i % 3], b = s[(i + 1) % 3], *c = &s[(i + 2) % 3];

            *a -= *c;
            *a ^= rotate(*c, mixing[i]);
            *c += b;
        }
    }
    for (int i = 0; i < (int)count; i++)
        s[i / 4] += (uint32_t)at[i] << 8 * (i % 4);
    for (int i = 0; i < 7; i++) { /* c ^= b, c -= b rotated; then with a and c, b and a, … */
        uint32_t *c = &s[(i + 2) % 3], b = s[(i + 1) % 3];

        *c ^= b;
        *c -= rotate(b, ending[i]);
    }
    return s[2];
}

bool stki_hdf5_sum_fits(const stki_hdf5_super *super, const unsigned char *bytes, int64_t count)
{
    return super->unsummed ||
           (count >= 4 && stki_hdf5_sum(bytes, count - 4) == (uint32_t)stki_hdf5_number(bytes + count - 4, 4));
}

/* ---- superblock ---- */

stk_status stki_hdf5_find_signature(const stki_file *file, int64_t *at, stk_error *err)
{
    char head[8];

    for (*at = 0; *at <= file->size - 8; *at = *at ? *at * 2 : 512) {
        stk_status status = stki_file_read(file, *at, head, 8, err);

        if (status != STK_OK)
            return status;
        if (!memcmp(head, "\x89HDF\r\n\x1a\n", 8))
            return STK_OK;
    }
    return stki_fail_at(err, file->size < 8 ? STK_E_TRUNCATED : STK_E_CORRUPT,
                        (stki_place){file->path, -1, 0,
                                     file->size < 8 ? STKI_TEXT("%d bytes", (int)file->size) : "no signature",
                                     "the signature of an HDF5 file at 0, 512, 1024, 2048, …"},
                        "not an HDF5 file");
}

/* Parses the fields that start with the base address. */
static bool is_plain_old(stki_hdf5_super *s, const unsigned char *block, int64_t room)
{
    const int base = block[8] == 0 ? 24 : 28;
    stki_hdf5_cursor rest = {block + base + 8, room - base - 8, false};
    uint64_t end, driver;

    s->leaf_k = (int)stki_hdf5_number(block + 16, 2);
    s->internal_k = (int)stki_hdf5_number(block + 18, 2);
    (void)stki_hdf5_take(&rest, 8);
    end = stki_hdf5_take(&rest, 8);
    driver = stki_hdf5_take(&rest, 8);
    (void)stki_hdf5_take(&rest, 8);
    s->root = stki_hdf5_take(&rest, 8);
    return !rest.bad && block[9] == 0 && block[10] == 0 && block[12] == 0 && s->leaf_k > 0 && s->internal_k > 0 &&
           driver == STKI_HDF5_UNDEFINED && end <= (uint64_t)s->file->size;
}

static bool is_plain_new(stki_hdf5_super *s, const unsigned char *block, int64_t room)
{
    stki_hdf5_cursor rest = {block + 20, room - 20, false};
    uint64_t extension = stki_hdf5_take(&rest, 8), end = stki_hdf5_take(&rest, 8);

    s->leaf_k = 4; /* the default without a superblock extension */
    s->internal_k = 16;
    s->root = stki_hdf5_take(&rest, 8);
    (void)stki_hdf5_take(&rest, 4);
    return !rest.bad && block[11] == 0 && extension == STKI_HDF5_UNDEFINED && end <= (uint64_t)s->file->size &&
           stki_hdf5_sum_fits(s, block, 48);
}

stk_status stki_hdf5_super_read(const stki_file *file, stki_hdf5_super *out, stk_error *err)
{
    unsigned char block[96] = {0};
    int64_t at, room;
    int sizes, place;
    stk_status status = stki_hdf5_find_signature(file, &at, err);

    *out = (stki_hdf5_super){.file = file};
    if (status != STK_OK)
        return status;
    room = file->size - at < (int64_t)sizeof block ? file->size - at : (int64_t)sizeof block;
    status = stki_file_read(file, at, block, room, err);
    if (status != STK_OK)
        return status;
    if (block[8] > 3)
        return stki_hdf5_unsupported(out, (uint64_t)at + 8, "a superblock version other than 0 to 3", err);
    sizes = block[8] < 2 ? 13 : 9;
    place = block[8] == 0 ? 24 : block[8] == 1 ? 28 : 12;
    if (block[sizes] != 8 || block[sizes + 1] != 8)
        return stki_hdf5_unsupported(out, (uint64_t)at + (uint64_t)sizes,
                                     "addresses or lengths that are not 8 bytes long", err);
    if (stki_hdf5_number(block + place, 8) != (uint64_t)at)
        return stki_hdf5_corrupt(out, (uint64_t)at + (uint64_t)place, "the base address is not the start of the file",
                                 err);
    out->base = at;
    out->plain = block[8] < 2 ? is_plain_old(out, block, room) : is_plain_new(out, block, room);
    return STK_OK;
}

/* ---- object headers ---- */

struct stki_hdf5_block {
    struct stki_hdf5_block *next;
    unsigned char bytes[];
};

struct reading {
    const stki_hdf5_super *super;
    stki_hdf5_header *header;
    bool second; /* version 2 */
    int prefix;  /* size of a message's prefix */
    int pending; /* number of continuation blocks, which are read in order */
    struct {
        uint64_t address, bytes;
    } blocks[MAX_BLOCKS];
    int64_t total; /* total size of all blocks */
};

/* Copies a block of the file; the header owns the copy. */
static stk_status copy_block(struct reading *r, uint64_t address, uint64_t bytes, unsigned char **out, stk_error *err)
{
    struct stki_hdf5_block *block;
    int64_t at;
    stk_status status;

    if (bytes > MAX_BYTES || (r->total += (int64_t)bytes) > MAX_BYTES)
        return stki_hdf5_unsupported(r->super, address, "an object header of more than 16 MiB", err);
    status = stki_hdf5_place(r->super->file, r->super->base, address, (int64_t)bytes, "an object header", &at, err);
    if (status != STK_OK)
        return status;
    block = stki_zalloc((int64_t)sizeof *block + (int64_t)bytes);
    if (!block)
        return stki_fail_memory(err, (int64_t)bytes, "an object header");
    block->next = r->header->blocks;
    r->header->blocks = block;
    *out = block->bytes;
    return stki_file_read(r->super->file, at, block->bytes, (int64_t)bytes, err);
}

static stk_status add_message(struct reading *r, stki_hdf5_message message, stk_error *err)
{
    stki_hdf5_header *h = r->header;
    stk_status status =
        stki_grow(&h->messages, &h->capacity, h->count + 1, sizeof *h->messages, "an object header", err);

    if (status == STK_OK)
        h->messages[h->count++] = message;
    return status;
}

static stk_status go_on(struct reading *r, stki_hdf5_cursor data, uint64_t address, stk_error *err)
{
    const uint64_t next = stki_hdf5_take(&data, 8), bytes = stki_hdf5_take(&data, 8);

    if (data.bad)
        return stki_hdf5_corrupt(r->super, address, "a continuation message of an object header is truncated", err);
    if (r->pending == MAX_BLOCKS)
        return stki_hdf5_unsupported(r->super, address, "an object header of more than 256 blocks", err);
    r->blocks[r->pending].address = next;
    r->blocks[r->pending++].bytes = bytes;
    return STK_OK;
}

/* Scans the messages of the block at `address`. */
static stk_status scan(struct reading *r, const unsigned char *bytes, int64_t count, uint64_t address, stk_error *err)
{
    stki_hdf5_cursor rest = {bytes, count, false};
    stk_status status = STK_OK;

    while (rest.left >= r->prefix && status == STK_OK) {
        const uint64_t here = address + (uint64_t)(count - rest.left);
        const unsigned char *head = stki_hdf5_skip(&rest, r->prefix);
        const int type = r->second ? head[0] : (int)stki_hdf5_number(head, 2), flags = head[r->second ? 3 : 4];
        const int64_t size = (int64_t)stki_hdf5_number(head + (r->second ? 1 : 2), 2);
        const unsigned char *data = stki_hdf5_skip(&rest, size);
        stki_hdf5_message message = {
            type, (flags & SHARED) != 0, r->super->base + (int64_t)here + r->prefix, {data, size, false}};

        if (!data || (!r->second && size % 8))
            return stki_hdf5_corrupt(r->super, here, "a message of an object header is longer than its block", err);
        if (type > NEWEST && (flags & FAILS_IF_UNKNOWN))
            return stki_hdf5_unsupported(r->super, here, "a message of a newer version", err);
        status = type == CONTINUATION ? go_on(r, message.data, here, err) : STK_OK;
        if (status == STK_OK)
            status = add_message(r, message, err);
    }
    return status;
}

static stk_status begin_first(struct reading *r, uint64_t address, const unsigned char *head, int64_t *messages,
                              stk_error *err)
{
    const uint64_t bytes = stki_hdf5_number(head + 8, 4);
    unsigned char *block = NULL;
    stk_status status = copy_block(r, address + 16, bytes, &block, err);

    r->prefix = 8;
    *messages = (int64_t)stki_hdf5_number(head + 2, 2);
    return status == STK_OK ? scan(r, block, (int64_t)bytes, address + 16, err) : status;
}

static stk_status begin_second(struct reading *r, uint64_t address, const unsigned char *head, stk_error *err)
{
    const int flags = head[5], wide = 1 << (flags & 3),
              first = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + wide;
    const uint64_t bytes = stki_hdf5_number(head + first - wide, wide);
    unsigned char *block = NULL;
    stk_status status;

    if (head[4] != 2 || (flags & 0xC0))
        return stki_hdf5_unsupported(r->super, address, "an object header version other than 1 or 2", err);
    if (bytes > MAX_BYTES)
        return stki_hdf5_unsupported(r->super, address, "an object header of more than 16 MiB", err);
    status = copy_block(r, address, bytes + (uint64_t)first + 4, &block, err);
    r->second = true;
    r->prefix = flags & 4 ? 6 : 4;
    if (status == STK_OK && !stki_hdf5_sum_fits(r->super, block, (int64_t)bytes + first + 4))
        return stki_hdf5_corrupt(r->super, address, "the checksum of an object header is wrong", err);
    return status == STK_OK ? scan(r, block + first, (int64_t)bytes, address + (uint64_t)first, err) : status;
}

/* Reads a continuation block. */
static stk_status next_block(struct reading *r, uint64_t address, uint64_t bytes, stk_error *err)
{
    unsigned char *block = NULL;
    const int around = r->second ? 4 : 0; /* signature before, checksum after */
    stk_status status;

    if (bytes < (uint64_t)(2 * around))
        return stki_hdf5_corrupt(r->super, address, "a block of an object header is too short", err);
    status = copy_block(r, address, bytes, &block, err);
    if (status != STK_OK)
        return status;
    if (r->second && (memcmp(block, "OCHK", 4) != 0 || !stki_hdf5_sum_fits(r->super, block, (int64_t)bytes)))
        return stki_hdf5_corrupt(r->super, address,
                                 "not a continuation block of an object header, or its checksum is wrong", err);
    return scan(r, block + around, (int64_t)bytes - 2 * around, address + (uint64_t)around, err);
}

static stk_status read_header(struct reading *r, uint64_t address, stk_error *err)
{
    unsigned char head[HEAD] = {0};
    int64_t at, messages = -1;
    stk_status status = stki_hdf5_place(r->super->file, r->super->base, address, 16, "an object header", &at, err);

    if (status == STK_OK)
        status = stki_file_read(r->super->file, at, head,
                                r->super->file->size - at < HEAD ? r->super->file->size - at : HEAD, err);
    if (status != STK_OK)
        return status;
    if (!memcmp(head, "OHDR", 4))
        status = begin_second(r, address, head, err);
    else if (head[0] == 1)
        status = begin_first(r, address, head, &messages, err);
    else
        status = stki_hdf5_corrupt(r->super, address, "not an object header", err);
    for (int i = 0; i < r->pending && status == STK_OK; i++)
        status = next_block(r, r->blocks[i].address, r->blocks[i].bytes, err);
    if (status == STK_OK && messages >= 0 && messages != r->header->count)
        status = stki_hdf5_unsupported(r->super, address, "the number of messages of an object header is wrong", err);
    return status;
}

stk_status stki_hdf5_header_read(const stki_hdf5_super *super, uint64_t address, stki_hdf5_header *out, stk_error *err)
{
    struct reading r = {.super = super, .header = out};
    stk_status status;

    *out = (stki_hdf5_header){0};
    status = read_header(&r, address, err);
    if (status != STK_OK)
        stki_hdf5_header_fini(out);
    return status;
}

void stki_hdf5_header_fini(stki_hdf5_header *header)
{
    while (header->blocks) {
        struct stki_hdf5_block *next = header->blocks->next;

        stki_free(header->blocks);
        header->blocks = next;
    }
    stki_free(header->messages);
    *header = (stki_hdf5_header){0};
}

const stki_hdf5_message *stki_hdf5_header_find(const stki_hdf5_header *header, int type, bool *several)
{
    const stki_hdf5_message *found = NULL;

    for (int64_t i = 0; i < header->count; i++) {
        if (header->messages[i].type != type)
            continue;
        if (found) {
            *several = true;
            return NULL;
        }
        found = &header->messages[i];
    }
    return found;
}

stk_status stki_hdf5_header_kind(const stki_hdf5_super *super, const stki_hdf5_header *header, enum stki_hdf5_kind *out,
                                 stk_error *err)
{
    bool several = false;
    const bool group = stki_hdf5_header_find(header, STKI_HDF5_SYMBOL_TABLE, &several) ||
                       stki_hdf5_header_find(header, STKI_HDF5_LINK_INFO, &several);
    const bool type = stki_hdf5_header_find(header, STKI_HDF5_DATATYPE, &several) != NULL,
               space = stki_hdf5_header_find(header, STKI_HDF5_DATASPACE, &several) != NULL;

    if (several || (group && (type || space)) || (!group && !type))
        return stki_hdf5_unsupported(super, 0, "an object that is neither a group nor a data set", err);
    *out = group ? STKI_HDF5_IS_GROUP : space ? STKI_HDF5_IS_DATASET : STKI_HDF5_IS_OTHER;
    return STK_OK;
}

stk_status stki_hdf5_layout_read(const stki_file *file, uint64_t header, stki_hdf5_layout *out, stk_error *err)
{
    stki_hdf5_super super;
    stki_hdf5_header h;
    const stki_hdf5_message *message;
    bool several = false;
    stk_status status = stki_hdf5_super_read(file, &super, err);

    if (status == STK_OK)
        status = stki_hdf5_header_read(&super, header, &h, err);
    if (status != STK_OK)
        return status;
    out->base = super.base;
    message = stki_hdf5_header_find(&h, STKI_HDF5_LAYOUT, &several);
    if (!message || message->shared) {
        status =
            stki_hdf5_unsupported(&super, header, "an object header with a shared layout message, or without one", err);
    } else {
        out->length = (int)(message->data.left < STKI_HDF5_LAYOUT_ROOM ? message->data.left : STKI_HDF5_LAYOUT_ROOM);
        out->place = message->place;
        memcpy(out->bytes, message->data.at, (size_t)out->length);
    }
    stki_hdf5_header_fini(&h);
    return status;
}
