/* color_loops_avx512.c: the color loops for AVX-512. */
#include "color_body.h"

const stki_color_loops stki_color_loops_avx512 = STKI_COLOR_BODY;
