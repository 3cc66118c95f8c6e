/* convert_avx2.h: what the AVX2 files share. */
#ifndef STKI_CONVERT_AVX2_H
#define STKI_CONVERT_AVX2_H

#include "convert_internal.h"
#include "vector_avx2.h"

void stki_avx2_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows, int channel);

#endif
