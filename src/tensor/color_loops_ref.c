/* color_loops_ref.c: the color loops for any processor. */
#include "color_body.h"

const stki_color_loops stki_color_loops_ref = STKI_COLOR_BODY;
