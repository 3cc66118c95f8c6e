/* cuda_provider.h: finds the devices "cuda" and "cuda:N" (cuda_provider.c, or cuda_absent.c in a build without CUDA).
 */
#ifndef STKI_CUDA_PROVIDER_H
#define STKI_CUDA_PROVIDER_H

#include "device_table.h"

extern const stki_device_provider stki_cuda_provider;

/* 1: the primary context of that GPU exists; 0: it does not; -1: unknown. */
int stki_cuda_context_active(int index);

#endif
