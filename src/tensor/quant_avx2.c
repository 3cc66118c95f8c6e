/* quant_avx2.c: quantization of rows for AVX2. */
#include "quant_internal.h"
#include "vector_avx2.h"

enum { HOLDS = false };

INLINE vi load_integers(stk_qdtype from, const char *src, int64_t first, int64_t valid)
{
    (void)valid;
    if (from == STK_QINT32)
        return vi_load(src + 4 * first);
    return from == STK_QINT8 ? _mm256_cvtepi8_epi32(bytes_8(src + first)) : _mm256_cvtepu8_epi32(bytes_8(src + first));
}

#include "quant_body.h"

const stki_quant_kernels stki_quant_avx2 = STKI_QUANT_BODY;
