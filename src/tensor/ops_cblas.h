/* ops_cblas.h: matrix products by a CBLAS library, where there is one. */
#ifndef STKI_OPS_CBLAS_H
#define STKI_OPS_CBLAS_H

#include "ops_gemm.h"

/* False, and c untouched: no CBLAS, not f32 or f64, too large for its integers, or no memory for a copy of a matrix
 * whose strides it does not take. */
bool stki_cblas_gemm(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b);
/* The library in use, as it was asked for; NULL: none. Loads it. */
const char *stki_cblas_name(void);

#endif
