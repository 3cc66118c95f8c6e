/* packing.h: packs documents into windows of fixed length with little padding. The plan is computed once and depends
 * only on the lengths.
 *
 * A document longer than a window is divided into pieces of the window's length, each starting `overlap` before the end
 * of the previous one; pieces that fill a window come first, in the order of the documents. The remainder of each
 * document (or all of a short one) is placed by best-fit decreasing: in order of decreasing length (of equal lengths,
 * the earlier document first), each goes into the window with the smallest sufficient room (of several such windows,
 * the most recently used one), or into a new window if no window has enough room. This takes O(documents) time and
 * memory. `apart`: no window contains pieces of two documents. */
#ifndef STKI_PACKING_H
#define STKI_PACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_piece {
    int64_t document, start, length; /* elements [start, start + length) of the document */
} stki_piece;

typedef struct stki_packing {
    int64_t windows, length, piece_count;
    int64_t *first;     /* windows + 1 entries: first piece of each window */
    stki_piece *pieces; /* sorted by window, and by position within the window */
    int64_t used;       /* document elements, counting overlaps twice; the rest of windows * length is padding */
} stki_packing;

typedef struct stki_packing_opts {
    int64_t length, overlap; /* length of a window; 0 <= overlap < length */
    bool apart;
    /* Returns the number of elements of a document; negative: it cannot be read. */
    int64_t (*length_of)(void *context, int64_t document);
    void *context;
    int64_t documents;
} stki_packing_opts;

/* Computes the plan. STK_E_CORRUPT: the length of a document cannot be read. */
stk_status stki_packing_plan(const stki_packing_opts *opts, stki_packing *out, stk_error *err);
void stki_packing_fini(stki_packing *packing); /* accepts a zeroed struct */

#endif
