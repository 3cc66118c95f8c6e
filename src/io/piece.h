/* piece.h: a long range of a file looked through once from front to back, in pieces: of the mapping, with the next one
 * asked for ahead, or read into memory. One thread. */
#ifndef STKI_PIECE_H
#define STKI_PIECE_H

#include "file.h"

typedef struct stki_pieces {
    const stki_file *file;
    int64_t at, end; /* what is left */
    int64_t most;    /* bytes of one piece */
    void *buffer;    /* where the file is not mapped */
} stki_pieces;

/* `count` units of `unit_bytes` from `offset`, which must be inside the file. */
stk_status stki_pieces_init(stki_pieces *pieces, const stki_file *file, int64_t offset, int64_t unit_bytes,
                            int64_t count, stk_error *err);
/* The next whole units, as a pointer and their bytes; 0 at the end. They are good until the next call. */
stk_status stki_pieces_next(stki_pieces *pieces, const void **out, int64_t *bytes, stk_error *err);
void stki_pieces_fini(stki_pieces *pieces);

#endif
