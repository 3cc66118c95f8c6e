/* packed_reader.h: documents (samples of varying length along one axis) as packed windows (packing.h): samples of one
 * length. Beside the values there are two more readers of the same windows: which of its documents an element is of,
 * and its place in the piece. */
#ifndef STKI_PACKED_READER_H
#define STKI_PACKED_READER_H

#include "packing.h"
#include "reader.h"

typedef struct stki_pack_opts {
    int64_t length, overlap, value; /* value: of what stays empty */
    bool apart, plain;              /* plain: the two more are not wanted */
} stki_pack_opts;

/* Of a reader whose samples have one axis that varies; it is taken over, also where this fails. Plans. */
stk_status stki_packed_open(stki_reader *documents, const stki_pack_opts *opts, stki_reader **out, stk_error *err);
/* The plan of such a reader; NULL: it is none. */
const stki_packing *stki_packed_plan(const stki_reader *reader);

enum stki_packed_tensor {
    STKI_PACKED_SEGMENTS, /* i32: 1, 2, … in the order of the pieces; 0: empty */
    STKI_PACKED_POSITIONS /* i32: 0, 1, … from the beginning of its piece; empty: 0 */
};

/* STK_E_UNSUPPORTED: the reader is none of stki_packed_open. */
stk_status stki_packed_tensor_open(const stki_reader *packed, enum stki_packed_tensor tensor, stki_reader **out,
                                   stk_error *err);

#endif
