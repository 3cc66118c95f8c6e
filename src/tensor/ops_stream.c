/* ops_stream.c: see ops_stream.h. A file of its own because the conversion's inner header and the casts' both define a
 * load function. */
#include "ops_stream.h"
#include "convert_internal.h"

stki_stream_fn stki_stream_copy(void)
{
    const stki_convert_kernels *kernels = stki_convert_kernels_of(stki_isa());

    return kernels ? kernels->copy_streaming : NULL;
}
