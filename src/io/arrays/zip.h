/* zip.h: the directory of a zip archive, and the bytes of its members. What .npz and .pt have in common. Reads from a
 * stki_file, believes nothing and creates nothing on disk: a name is a key, never a path. Read-only after open, any
 * thread.
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
    const char *name;         /* as stored, without a NUL inside; may be no UTF-8 */
    int64_t size, compressed; /* bytes */
    int64_t header;           /* of its local header, from the start of the file */
    uint32_t crc;
    uint16_t method, flags;
    const char *fault; /* NULL, or why the directory's entry contradicts itself or another one; static */
} stki_zip_entry;

typedef struct stki_zip {
    const stki_file *file; /* borrowed */
    int64_t count;
    stki_zip_entry *entries; /* in the directory's order */
    int64_t end;             /* members lie before this offset */
    char *directory;         /* holds the names */
    bool crc_optional;       /* a CRC of 0 means that none was computed (torch); set by the format */
} stki_zip;

/* `directory_limit`: bytes of the directory; 0: 64 MiB. STK_E_TRUNCATED: begins like an archive and has no end.
 * STK_E_CORRUPT: is none, or contradicts itself. STK_E_UNSUPPORTED: split over several files. What is wrong with one
 * member alone shows in stki_zip_locate. */
stk_status stki_zip_open(const stki_file *file, int64_t directory_limit, stki_zip *out, stk_error *err);
void stki_zip_close(stki_zip *zip); /* an empty one is fine */
/* A message about one member: "FILE: offset O: member NAME: WHAT: found …". */
stk_status stki_zip_fail(const stki_zip *zip, const stki_zip_entry *entry, stk_status status, int64_t offset,
                         const char *what, const char *found, const char *expected, stk_error *err);

/* Where the data of a member begins. Checks all that can be known without reading it: its local header, that the data
 * lies inside the file, the method, and that a deflated member of its size can exist at all. */
stk_status stki_zip_locate(const stki_zip *zip, const stki_zip_entry *entry, int64_t *out_offset, stk_error *err);

/* zip_unpack.c. `offset` comes from stki_zip_locate. */

/* The first min(bytes, entry->size) bytes of the member; *got says how many. Only these are unpacked. */
stk_status stki_zip_head(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, int64_t bytes,
                         int64_t *got, stk_error *err);
/* All entry->size bytes, CRC checked. Nothing is written behind them, whatever the data says. */
stk_status stki_zip_read(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, void *to, stk_error *err);
/* The CRC of a stored member, in a pass over its data. */
stk_status stki_zip_check(const stki_zip *zip, const stki_zip_entry *entry, int64_t offset, stk_error *err);

/* Memory for the streams of zlib; the context is not used. */
void *stki_zip_stream_alloc(void *context, unsigned count, unsigned bytes);
void stki_zip_stream_free(void *context, void *block);

#endif
