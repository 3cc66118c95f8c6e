/* piece.c: see piece.h. */
#include "piece.h"
#include "allocate.h"
#include "error.h"

enum { PIECE = 1 << 20, AHEAD = 4 /* number of chunks of readahead */, ALIGNMENT = 64 };

stk_status stki_pieces_init(stki_pieces *pieces, const stki_file *file, int64_t offset, int64_t unit_bytes,
                            int64_t count, stk_error *err)
{
    int64_t units = unit_bytes < PIECE ? PIECE / unit_bytes : 1;

    *pieces = (stki_pieces){.file = file, .at = offset, .end = offset + unit_bytes * count};
    pieces->most = unit_bytes * (units < count ? units : count);
    if (file->map || pieces->most == 0)
        return STK_OK;
    pieces->buffer = stki_block_alloc(&stki_heap, pieces->most, ALIGNMENT);
    return pieces->buffer ? STK_OK : stki_fail_memory(err, pieces->most, "a piece of a file");
}

stk_status stki_pieces_next(stki_pieces *pieces, const void **out, int64_t *bytes, stk_error *err)
{
    int64_t left = pieces->end - pieces->at, ahead = pieces->at + pieces->most * AHEAD;
    int64_t now = left < pieces->most ? left : pieces->most;
    stk_status status = STK_OK;

    *bytes = now;
    if (now == 0)
        return STK_OK;
    if (pieces->file->map) {
        if (ahead < pieces->end)
            stki_file_will_need(pieces->file, ahead,
                                pieces->end - ahead < pieces->most ? pieces->end - ahead : pieces->most);
        *out = (const char *)pieces->file->map + pieces->at;
    } else {
        status = stki_file_read(pieces->file, pieces->at, pieces->buffer, now, err);
        *out = pieces->buffer;
    }
    pieces->at += now;
    return status;
}

void stki_pieces_fini(stki_pieces *pieces)
{
    stki_block_free(&stki_heap, pieces->buffer, pieces->most, ALIGNMENT);
    pieces->buffer = NULL;
}
