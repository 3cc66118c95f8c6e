/* piece.h: reads a long range of a file once, sequentially, in chunks. A chunk is either in the mapping, with readahead
 * of the following chunks, or read into memory. Not thread-safe. */
#ifndef STKI_PIECE_H
#define STKI_PIECE_H

#include "file.h"

typedef struct stki_pieces {
    const stki_file *file;
    int64_t at, end; /* remaining range */
    int64_t most;    /* size of a chunk */
    void *buffer;    /* used if the file is not mapped */
} stki_pieces;

/* Prepares to read `count` units of `unit_bytes` at `offset`, all of which must be inside the file. */
stk_status stki_pieces_init(stki_pieces *pieces, const stki_file *file, int64_t offset, int64_t unit_bytes,
                            int64_t count, stk_error *err);
/* Returns the next whole units and their total size in bytes; 0 at the end. The units are valid until the next call. */
stk_status stki_pieces_next(stki_pieces *pieces, const void **out, int64_t *bytes, stk_error *err);
void stki_pieces_fini(stki_pieces *pieces);

#endif
