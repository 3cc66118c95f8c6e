/* ops_cblas.c: see ops_cblas.h.
 *
 * The library is not linked, but loaded by the first product that is large enough, because OpenBLAS starts one thread
 * per processor when it is loaded. A program that never multiplies matrices should not have those threads. The name is
 * the soname that the build found (STKI_CBLAS_LIBRARY); STOKER_CBLAS=NAME selects another library, STOKER_CBLAS=off
 * none.
 *
 * Products run in the calling thread, like all tensor operations. OpenBLAS is therefore set to one thread if this file
 * loaded it. If the program had already loaded it, its setting is left unchanged. */
#include "ops_cblas.h"
#include "allocate.h"
#include "thread.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* From the CBLAS standard (cblas.h). */
enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111, TRANSPOSED = 112 };
typedef void (*sgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
typedef void (*dgemm_fn)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a,
                         int lda, const double *b, int ldb, double beta, double *c, int ldc);
typedef void (*set_threads_fn)(int threads);

static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static const char *library; /* NULL: none */
static sgemm_fn sgemm;
static dgemm_fn dgemm;

/* ---- the library ---- */

/* POSIX guarantees that the result of dlsym can be a function pointer; ISO C has no cast for it. */
#define FIND(handle, name, function)                    \
    do {                                                \
        void *found_ = dlsym(handle, name);             \
        memcpy(&(function), &found_, sizeof(function)); \
    } while (0)

static void load_library(void)
{
    const char *name = secure_getenv("STOKER_CBLAS");
    set_threads_fn set_threads;
    void *handle;
    bool was_loaded;

#if defined(STKI_CBLAS_LIBRARY)
    name = name && *name ? name : STKI_CBLAS_LIBRARY;
#endif
    if (!name || !*name || !strcmp(name, "off"))
        return;
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    was_loaded = handle != NULL;
    handle = handle ? handle : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return;
    FIND(handle, "cblas_sgemm", sgemm);
    FIND(handle, "cblas_dgemm", dgemm);
    FIND(handle, "openblas_set_num_threads", set_threads);
    if (!sgemm || !dgemm) {
        dlclose(handle);
        return;
    }
    if (set_threads && !was_loaded)
        set_threads(1);
    library = name; /* never unloaded */
}

const char *stki_cblas_name(void)
{
    pthread_once(&loaded, load_library);
    return library;
}

/* ---- operands ---- */

struct operand {
    char *data;
    int64_t leading; /* elements from one row to the next, or from one column to the next if transposed */
    bool transposed;
    void *copy; /* row-major copy; NULL: none needed */
    int64_t bytes;
};

static bool takes(int64_t near, int64_t far, int64_t length, int64_t size)
{
    return near == size && far % size == 0 && far / size >= (length > 1 ? length : 1) && far / size <= INT_MAX;
}

/* Describes the matrix in the form that CBLAS accepts. False: its strides or alignment do not allow that. */
static bool fits(struct operand *out, stki_matrix matrix, int64_t rows, int64_t columns, int64_t size)
{
    *out = (struct operand){.data = matrix.data};
    if ((uintptr_t)matrix.data % (uintptr_t)size != 0)
        return false;
    out->transposed = !takes(matrix.column_stride, matrix.row_stride, columns, size);
    out->leading = (out->transposed ? matrix.column_stride : matrix.row_stride) / size;
    return !out->transposed || takes(matrix.row_stride, matrix.column_stride, rows, size);
}

/* Allocates memory for a row-major copy. */
static bool make_room(struct operand *out, int64_t rows, int64_t columns, int64_t size)
{
    *out = (struct operand){.leading = columns, .bytes = rows * columns * size};
    out->copy = out->data = stki_block_alloc(NULL, out->bytes, 64);
    return out->copy != NULL;
}

static bool prepare(struct operand *out, const stki_gemm *gemm, stki_matrix matrix, int64_t rows, int64_t columns)
{
    if (fits(out, matrix, rows, columns, gemm->size))
        return true;
    if (!make_room(out, rows, columns, gemm->size))
        return false;
    for (int64_t i = 0; i < rows; i++)
        stki_cast_row(&gemm->load, out->data + i * columns * gemm->size, gemm->size,
                      matrix.data + i * matrix.row_stride, matrix.column_stride, columns);
    return true;
}

static void finish(struct operand *operand)
{
    stki_block_free(NULL, operand->copy, operand->bytes, 64);
}

/* ---- the product ---- */

/* c is row-major; a and b may be transposed. */
static void multiply(stk_dtype dtype, int64_t rows, int64_t columns, int64_t depth, const struct operand *c,
                     const struct operand *a, const struct operand *b)
{
    int flip_a = a->transposed ? TRANSPOSED : NOT_TRANSPOSED, flip_b = b->transposed ? TRANSPOSED : NOT_TRANSPOSED;
    int m = (int)rows, n = (int)columns, k = (int)depth;

    if (dtype == STK_F32)
        sgemm(ROW_MAJOR, flip_a, flip_b, m, n, k, 1.0f, (const void *)a->data, (int)a->leading, (const void *)b->data,
              (int)b->leading, 0.0f, (void *)c->data, (int)c->leading);
    else
        dgemm(ROW_MAJOR, flip_a, flip_b, m, n, k, 1.0, (const void *)a->data, (int)a->leading, (const void *)b->data,
              (int)b->leading, 0.0, (void *)c->data, (int)c->leading);
}

/* Computes the product into `c`. If c is transposed, computes c' = b' a'. */
static void run(const stki_gemm *gemm, const struct operand *c, struct operand *a, struct operand *b)
{
    if (!c->transposed) {
        multiply(gemm->dtype, gemm->rows, gemm->columns, gemm->depth, c, a, b);
        return;
    }
    a->transposed = !a->transposed;
    b->transposed = !b->transposed;
    multiply(gemm->dtype, gemm->columns, gemm->rows, gemm->depth, c, b, a);
}

static bool in_range(const stki_gemm *gemm)
{
    return (gemm->dtype == STK_F32 || gemm->dtype == STK_F64) && gemm->rows <= INT_MAX && gemm->columns <= INT_MAX &&
           gemm->depth <= INT_MAX;
}

bool stki_cblas_gemm(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b)
{
    struct operand left = {0}, right = {0}, result = {0};
    bool ready;

    if (!in_range(gemm) || !stki_cblas_name())
        return false;
    ready = prepare(&left, gemm, a, gemm->rows, gemm->depth) && prepare(&right, gemm, b, gemm->depth, gemm->columns) &&
            (fits(&result, c, gemm->rows, gemm->columns, gemm->size) ||
             make_room(&result, gemm->rows, gemm->columns, gemm->size));
    if (ready)
        run(gemm, &result, &left, &right);
    for (int64_t i = 0; ready && result.copy && i < gemm->rows; i++)
        stki_cast_row(&gemm->store, c.data + i * c.row_stride, c.column_stride,
                      result.data + i * gemm->columns * gemm->size, gemm->size, gemm->columns);
    finish(&left);
    finish(&right);
    finish(&result);
    return ready;
}
