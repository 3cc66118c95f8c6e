/* quant_avx512.c: quantization of rows for AVX-512. */
#include "quant_internal.h"
#include "vector_avx512.h"

enum { HOLDS = true };

INLINE vi load_integers(stk_qdtype from, const char *src, int64_t first, int64_t valid)
{
    const __mmask16 lanes = (__mmask16)low_bits(valid);

    if (from == STK_QINT32)
        return _mm512_maskz_loadu_epi32(lanes, src + 4 * first);
    __m128i bytes = valid == WIDTH ? bytes_16(src + first) : _mm_maskz_loadu_epi8(lanes, src + first);
    return from == STK_QINT8 ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

#include "quant_body.h"

const stki_quant_kernels stki_quant_avx512 = STKI_QUANT_BODY;
