/* packing.h: documents put into windows of one length, so that little of a window is empty: the plan, made once, from
 * lengths alone.
 *
 * A document that is longer than a window is cut into pieces of the window's length, each `overlap` before the end of
 * the one before; a piece that fills a window has it for itself, in the order of the documents. What is left of each
 * document (or all of a short one) is put, the longest first and of equal ones the earlier first, into the window with
 * the least room that still takes it (best fit, decreasing; among equals the one that was last touched), or else begins
 * one. O(documents) time and memory. `apart`: nothing shares a window.
 */
#ifndef STKI_PACKING_H
#define STKI_PACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

typedef struct stki_piece {
    int64_t document, start, length; /* elements [start, start + length) of it */
} stki_piece;

typedef struct stki_packing {
    int64_t windows, length, piece_count;
    int64_t *first;     /* windows + 1: which pieces a window has */
    stki_piece *pieces; /* in the order they lie in their window */
    int64_t used;       /* elements of documents, overlaps counted twice; the rest of windows * length is empty */
} stki_packing;

typedef struct stki_packing_opts {
    int64_t length, overlap; /* of a window; 0 <= overlap < length */
    bool apart;
    /* Elements of a document; below 0: its length can't be read. */
    int64_t (*length_of)(void *context, int64_t document);
    void *context;
    int64_t documents;
} stki_packing_opts;

/* STK_E_CORRUPT: a document whose length can't be read. */
stk_status stki_packing_plan(const stki_packing_opts *opts, stki_packing *out, stk_error *err);
void stki_packing_fini(stki_packing *packing); /* fine on a zeroed one */

#endif
