/* cuda_launches.c: the table of cuda_launches.h with the real kernels. */
#include "cuda_launches.h"

static const stki_cuda_launches real = {
    .load = stki_cuda_load,
    .fill = stki_cuda_fill,
    .spin = stki_cuda_spin,
    .launch = stki_cuda_launch,
};

const stki_cuda_launches *stki_cuda_launcher = &real;
