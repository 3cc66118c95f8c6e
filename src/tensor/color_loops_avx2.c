/* color_loops_avx2.c: the color loops for AVX2. */
#include "color_body.h"

const stki_color_loops stki_color_loops_avx2 = STKI_COLOR_BODY;
