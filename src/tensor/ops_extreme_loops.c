/* ops_extreme_loops.c: the choice among the variants of the loops of smallest and largest, and what they begin with. */
#include "ops_extreme_loops.h"
#include "dtype.h"
#include "sync_device.h"
#include <math.h>
#include <string.h>

const stki_extreme_loops *stki_extreme_loops_of(enum stki_isa isa, stk_dtype dtype, bool largest)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_extreme_loops_avx512[largest][dtype];
    if (isa == STKI_ISA_AVX2)
        return &stki_extreme_loops_avx2[largest][dtype];
#endif
    (void)isa;
    return &stki_extreme_loops_ref[largest][dtype];
}

void stki_extreme_fill(void *best, stk_dtype dtype, bool largest, int64_t count)
{
    int64_t size = stk_dtype_size(dtype);
    char worst[8];

    if (dtype == STK_F32) {
        memcpy(worst, &(float){largest ? -INFINITY : INFINITY}, sizeof(float));
    } else if (dtype == STK_F64) {
        memcpy(worst, &(double){largest ? -(double)INFINITY : (double)INFINITY}, sizeof(double));
    } else {
        memset(worst, largest ? 0 : 0xff, sizeof worst);
        if (stki_dtype_signed(dtype))
            worst[size - 1] = (char)(largest ? 0x80 : 0x7f); /* the byte with the sign; little-endian */
        if (dtype == STK_BOOL)
            worst[0] = !largest;
    }
    stki_fill_bytes(best, worst, size, count);
}
