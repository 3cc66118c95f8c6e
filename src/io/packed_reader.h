/* packed_reader.h: documents (samples of varying length along one axis) packed into windows of fixed length
 * (packing.h). For each element of a window, two additional readers deliver the number of its piece in the window and
 * its position in that piece. */
#ifndef STKI_PACKED_READER_H
#define STKI_PACKED_READER_H

#include "packing.h"
#include "reader.h"

typedef struct stki_pack_opts {
    int64_t length, overlap, value; /* value: padding value */
    bool apart, plain; /* apart: one document per window (packing.h); plain: without the two additional readers */
} stki_pack_opts;

/* `documents`: a reader whose samples have one varying axis. Takes ownership of it, even on failure. Computes the
 * plan. */
stk_status stki_packed_open(stki_reader *documents, const stki_pack_opts *opts, stki_reader **out, stk_error *err);
/* Returns the plan of a reader that stki_packed_open created; NULL: it is another kind of reader. */
const stki_packing *stki_packed_plan(const stki_reader *reader);

enum stki_packed_tensor {
    STKI_PACKED_SEGMENTS, /* i32: number of the piece in the window, from 1; 0: padding */
    STKI_PACKED_POSITIONS /* i32: position in the piece, from 0; padding: 0 */
};

/* STK_E_UNSUPPORTED: the reader was not created by stki_packed_open. */
stk_status stki_packed_tensor_open(const stki_reader *packed, enum stki_packed_tensor tensor, stki_reader **out,
                                   stk_error *err);

#endif
