/* zip.h: reads the directory of a zip archive and its members. Shared by .npz and .pt. All input is checked, and
 * nothing is created on disk: names are keys, never paths. Immutable after open; thread-safe.
 *
 *     member:        "PK" 3 4, 26 bytes, name, extra, data
 *     directory:     for each member "PK" 1 2, 42 bytes, name, extra, comment   (sizes, CRC and method count from here)
 *     zip64 end:     "PK" 6 6, 52 bytes and more; then its locator "PK" 6 7, 16 bytes        (only where needed)
 *     end:           "PK" 5 6, 18 bytes, comment
 */
#ifndef STKI_ZIP_H
#define STKI_ZIP_H

#include "file.h"

enum { STKI_ZIP_STORED = 0, STKI_ZIP_DEFLATED = 8, STKI_ZIP_DIRECTORY_LIMIT = 64 << 20 };

typedef struct stki_zip_entry {
    const char *name;         /* as stored, without embedded NULs; may be invalid UTF-8 */
    int64_t size, compressed; /* bytes */
    int64_t header;           /* offset of its local header in the file */
    uint32_t crc;
    uint16_t method, flags;
    const char *fault; /* static description of the entry's defect; NULL: none */
} stki_zip_entry;

typedef struct stki_zip {
    const stki_file *file; /* borrowed */
    int64_t count;
    stki_zip_entry *entries; /* in the order of the directory */
    int64_t end;             /* members end before this offset */
    char *directory;         /* memory that contains the names */
    bool crc_optional;       /* set by the format: a CRC of 0 means that none was computed, as in torch */
} stki_zip;

/* Reads the directory of an archive. `directory_limit`: maximum size of the directory; 0: 64 MiB. STK_E_TRUNCATED: the
 * file starts like an archive but has no end record. STK_E_CORRUPT: it is not an archive, or is inconsistent.
 * STK_E_UNSUPPORTED: the archive is split across several files. Errors of individual members are reported by
 * stki_zip_locate. */
stk_status stki_zip_open(const stki_file *file, int64_t directory_limit, stki_zip *out, stk_error *err);
void stki_zip_close(stki_zip *zip); /* accepts a zeroed struct */
/* Fails with a message about one member: "FILE: offset O: member NAME: WHAT: found …". */
stk_status stki_zip_fail(const stki_zip *zip, const stki_zip_entry *entry, stk_status status, int64_t offset,
                         const char *what, const char *found, const char *expected, stk_error *err);

/* Finds the start of a member's data. Checks everything that can be checked without reading the data: the local header,
 * the bounds, the method, and whether the size of a deflated member is possible. */
stk_status stki_zip_locate(const stki_zip *zip, const stki_zip_entry *entry, int64_t *out_offset, stk_error *err);

/* zip_unpack.c. `offset` comes from stki_zip_locate. */

/* Reads the first min(bytes, entry->size) bytes of the member and stores their number in *got. Only these bytes are
 * unpacked. */
stk_status stki_zip_head(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, int64_t bytes,
                         int64_t *got, stk_error *err);
/* Reads all entry->size bytes and checks the CRC. Never writes beyond them. */
stk_status stki_zip_read(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, stk_error *err);
/* Checks the CRC of a stored member in one pass over its data. */
stk_status stki_zip_check(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, stk_error *err);

/* Allocator for zlib streams; the context is unused. */
void *stki_zip_stream_alloc(void *context, unsigned count, unsigned bytes);
void stki_zip_stream_free(void *context, void *block);

#endif
