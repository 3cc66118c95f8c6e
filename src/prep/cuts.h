/* cuts.h: divides the positions of a job into pieces and shards. A piece is written, recorded and, after an
 * interruption, redone as a whole. A shard consists of whole pieces. The division depends only on the job and data. */
#ifndef STKI_CUTS_H
#define STKI_CUTS_H

#include <stdint.h>

typedef struct stki_cuts {
    int64_t positions, piece_rows;
    int64_t shard_rows; /* positions in every shard except the last; `positions` if there is only one shard */
    int64_t shards, pieces, shard_pieces; /* shard_pieces: pieces in every shard except the last */
} stki_cuts;

static inline int64_t stki_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* positions >= 0; piece_rows >= 1; shard_rows 0: one shard. */
static inline stki_cuts stki_cuts_of(int64_t positions, int64_t piece_rows, int64_t shard_rows)
{
    stki_cuts c = {.positions = positions, .piece_rows = piece_rows, .shard_rows = shard_rows};
    int64_t rest;

    if (c.shard_rows == 0 || c.shard_rows > positions)
        c.shard_rows = positions > 0 ? positions : 1;
    c.shards = positions > 0 ? stki_ceil_div(positions, c.shard_rows) : 1;
    c.shard_pieces = stki_ceil_div(c.shard_rows, piece_rows);
    rest = positions - (c.shards - 1) * c.shard_rows;
    c.pieces = (c.shards - 1) * c.shard_pieces + stki_ceil_div(rest, piece_rows);
    return c;
}

static inline int64_t stki_cut_shard(const stki_cuts *c, int64_t piece)
{
    int64_t shard = piece / c->shard_pieces;

    return shard < c->shards ? shard : c->shards - 1;
}

/* Positions [first, end) of a shard, and its pieces. */
static inline void stki_cut_of_shard(const stki_cuts *c, int64_t shard, int64_t *first, int64_t *end,
                                     int64_t *first_piece, int64_t *end_piece)
{
    *first = shard * c->shard_rows;
    *end = shard == c->shards - 1 ? c->positions : *first + c->shard_rows;
    *first_piece = shard * c->shard_pieces;
    *end_piece = shard == c->shards - 1 ? c->pieces : *first_piece + c->shard_pieces;
}

static inline void stki_cut(const stki_cuts *c, int64_t piece, int64_t *first, int64_t *end)
{
    const int64_t shard = stki_cut_shard(c, piece);
    int64_t shard_end;

    *first = shard * c->shard_rows + (piece - shard * c->shard_pieces) * c->piece_rows;
    shard_end = shard == c->shards - 1 ? c->positions : (shard + 1) * c->shard_rows;
    *end = shard_end - *first > c->piece_rows ? *first + c->piece_rows : shard_end;
}

#endif
