/* ops_stream.c: see ops_stream.h. A file of its own because the conversion's inner header and the casts' both define a
 * load function. */
#include "ops_stream.h"
#include "convert_internal.h"

stki_stream_fn stki_stream_copy(enum stki_isa isa)
{
    const stki_convert_kernels *kernels = stki_convert_kernels_of(isa);

    return kernels ? kernels->copy_streaming : NULL;
}

/* With AVX-512 too, 32 bytes at a time are the fastest. */
const stki_loops *stki_stream_loops(enum stki_isa isa, enum stki_loop loop, stk_dtype dtype)
{
#if defined(__x86_64__)
    if ((isa == STKI_ISA_AVX2 || isa == STKI_ISA_AVX512) && stki_stream_loops_avx2[loop][dtype].both)
        return &stki_stream_loops_avx2[loop][dtype];
#endif
    (void)isa, (void)loop, (void)dtype;
    return NULL;
}
