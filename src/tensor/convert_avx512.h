/* convert_avx512.h: what the AVX-512 files share. */
#ifndef STKI_CONVERT_AVX512_H
#define STKI_CONVERT_AVX512_H

#include "convert_internal.h"
#include "vector_avx512.h"

void stki_avx512_table_u8(const stki_lane *lane, uint8_t *dst, const uint8_t *src, int64_t n, int64_t channel);
void stki_avx512_table_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel);
void stki_avx512_split_plane(const stki_lane *lane, uint8_t *dst, const uint8_t *src, const stki_rows *rows,
                             int channel);

#endif
