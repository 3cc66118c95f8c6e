/* dlpack_type.h: DLPack's encoding of dtypes. */
#ifndef STKI_DLPACK_TYPE_H
#define STKI_DLPACK_TYPE_H

#include <stoker/tensor.h>

typedef struct stki_dlpack_type {
    uint8_t code, bits;
} stki_dlpack_type;

/* `major` 0 means version 0.6, which has no bool (encoded as u8) and no 8-bit floats (returns false). */
bool stki_dlpack_type_of(stk_dtype dtype, int major, stki_dlpack_type *out);
/* STK_DTYPE_NONE: stoker has no such dtype. */
stk_dtype stki_dlpack_dtype(int code, int bits, int lanes);

#endif
