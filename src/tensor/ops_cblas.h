/* ops_cblas.h: matrix products through a CBLAS library, if one is found. */
#ifndef STKI_OPS_CBLAS_H
#define STKI_OPS_CBLAS_H

#include "ops_gemm.h"

/* Returns false and leaves c unchanged if there is no CBLAS, the dtype is not f32 or f64, a size exceeds its integer
 * type, or there is no memory to copy a matrix with unsupported strides. */
bool stki_cblas_gemm(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b);
/* The name of the library in use, as it was requested; NULL: none. Loads the library if necessary. */
const char *stki_cblas_name(void);

#endif
