/* zip_write.h: writes zip archives member by member to an output. Shared by .npz and .pt. Stored data starts at a
 * multiple of 64. All dates are the earliest possible one, so that identical inputs produce identical files. zip64 is
 * used if sizes or counts require it. Not thread-safe. */
#ifndef STKI_ZIP_WRITE_H
#define STKI_ZIP_WRITE_H

#include "output.h"
#include <zlib.h>

typedef struct stki_zip_record {
    char *name;
    int64_t header, size, compressed;
    uint32_t crc;
    bool deflated;
} stki_zip_record;

typedef struct stki_zip_writer {
    stki_output *output; /* borrowed */
    stki_zip_record *records;
    int64_t count, room;
    /* The member being written. */
    int64_t extra_bytes, data_offset, head_bytes, body_bytes;
    uint32_t body_crc;
    z_stream *stream; /* deflated members */
    unsigned char *packed;
} stki_zip_writer; /* initialize with {.output = …} */

/* Starts a member. Its first `head_bytes` bytes (at most 65,535) are passed to stki_zip_write_end. level 0: the member
 * is stored. */
stk_status stki_zip_write_begin(stki_zip_writer *zip, const char *name, int64_t head_bytes, int level, stk_error *err);
/* Appends bytes after the head. */
stk_status stki_zip_write_append(stki_zip_writer *zip, const void *bytes, int64_t count, stk_error *err);
stk_status stki_zip_write_end(stki_zip_writer *zip, const void *head, stk_error *err);
/* Writes a small stored member. */
stk_status stki_zip_write_member(stki_zip_writer *zip, const char *name, const void *bytes, int64_t count,
                                 stk_error *err);
/* Writes the directory, which completes the output without committing it. */
stk_status stki_zip_write_directory(stki_zip_writer *zip, stk_error *err);
void stki_zip_write_fini(stki_zip_writer *zip);

#endif
