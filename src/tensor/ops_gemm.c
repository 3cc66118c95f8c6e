/* ops_gemm.c: see ops_gemm.h.
 *
 * c is computed block by block in the compute dtype, and each block is stored once. For every BLOCK_DEPTH values of k,
 * blocks of a and b are packed into panels: a panel of a has as many rows as a tile, a panel of b as many columns, and
 * both are ordered by k. The tile loop therefore reads both sequentially, regardless of strides and dtypes, and its
 * sums stay in registers. Products with few columns (or, symmetrically, rows) use each element of the large side only a
 * few times, so packing does not pay off, and the large side is read in place. */
#include "ops_gemm.h"
#include "allocate.h"
#include "dtype.h"
#include "error.h"
#include "ops_cblas.h"
#include "ops_promote.h"
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 192,    /* a multiple of tile_rows of all loops */
    BLOCK_COLUMNS = 512, /* a multiple of tile_columns of all loops */
    BLOCK_DEPTH = 256,
    THIN = 4, /* maximum number of columns of the thin side */
    THIN_BLOCK = 1024,
    MAX_SIZE = 8,
    ALIGNMENT = 64
};
/* Number of multiplications below which calling CBLAS does not pay off. */
static const int64_t least_for_cblas = 1 << 15;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t round_to(int64_t value, int64_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

const stki_gemm_loops *stki_gemm_loops_of(enum stki_isa isa, enum stki_gemm_kind kind)
{
#if defined(__x86_64__)
    if (isa == STKI_ISA_AVX512)
        return &stki_gemm_loops_avx512[kind];
    if (isa == STKI_ISA_AVX2)
        return &stki_gemm_loops_avx2[kind];
#endif
    (void)isa;
    return &stki_gemm_loops_ref[kind];
}

/* ---- begin and end ---- */

/* Integers of up to 32 bits, and bool, are computed as i32. The cast back keeps the low bits of integers and makes
 * every nonzero value true. */
static stk_dtype computing_dtype(stk_dtype dtype)
{
    if (stki_dtype_category(dtype) == STKI_CATEGORY_REAL)
        return stki_compute_dtype(dtype);
    return stk_dtype_size(dtype) == 8 ? STK_I64 : STK_I32;
}

static enum stki_gemm_kind kind_of(stk_dtype compute)
{
    return compute == STK_F32   ? STKI_GEMM_F32
           : compute == STK_F64 ? STKI_GEMM_F64
           : compute == STK_I32 ? STKI_GEMM_U32
                                : STKI_GEMM_U64;
}

static bool is_thin(const stki_gemm *gemm)
{
    return gemm->columns <= THIN || gemm->rows <= THIN;
}

stk_status stki_gemm_begin(stki_gemm *gemm, stk_error *err)
{
    stk_dtype compute = computing_dtype(gemm->dtype);
    int64_t elements;

    gemm->loops = stki_gemm_loops_of(stki_isa(), kind_of(compute));
    gemm->size = stk_dtype_size(gemm->dtype);
    gemm->compute_size = stk_dtype_size(compute);
    stki_cast_init(&gemm->load, compute, gemm->dtype, false);
    stki_cast_init(&gemm->store, gemm->dtype, compute, false);
    gemm->block_rows = smaller(round_to(gemm->rows, gemm->loops->tile_rows), BLOCK_ROWS);
    gemm->block_columns = smaller(round_to(gemm->columns, gemm->loops->tile_columns), BLOCK_COLUMNS);
    gemm->block_depth = smaller(gemm->depth, BLOCK_DEPTH);
    if (is_thin(gemm)) /* room for all of the thin side */
        elements = (gemm->columns <= THIN ? gemm->columns : gemm->rows) * gemm->depth;
    else
        elements =
            gemm->block_depth * (gemm->block_rows + gemm->block_columns) + gemm->block_rows * gemm->block_columns;
    gemm->bytes = elements * gemm->compute_size;
    gemm->memory = stki_block_alloc(NULL, gemm->bytes, ALIGNMENT);
    return gemm->memory ? STK_OK : stki_fail_memory(err, gemm->bytes, "the blocks of a matrix product");
}

void stki_gemm_end(stki_gemm *gemm)
{
    stki_block_free(NULL, gemm->memory, gemm->bytes, ALIGNMENT);
    gemm->memory = NULL;
}

/* ---- thin: c has few columns ---- */

/* Returns at most THIN_BLOCK elements in the compute dtype, in place or in `block`. */
static const void *load(const stki_gemm *gemm, void *block, const char *x, int64_t step, int64_t n)
{
    if (gemm->size == gemm->compute_size && step == gemm->size)
        return x;
    stki_cast_row(&gemm->load, block, gemm->compute_size, x, step, n);
    return block;
}

/* a is contiguous along k: every element of c is a dot product with a row of a. `packed` is b, column by column. */
static void thin_by_rows(const stki_gemm *gemm, stki_matrix c, stki_matrix a, const char *packed)
{
    int64_t size = gemm->compute_size;
    _Alignas(ALIGNMENT) char block[THIN_BLOCK * MAX_SIZE];

    for (int64_t i = 0; i < gemm->rows; i++) {
        char sums[THIN * MAX_SIZE] = {0};
        for (int64_t k = 0; k < gemm->depth; k += THIN_BLOCK) {
            int64_t n = smaller(gemm->depth - k, THIN_BLOCK);
            const void *row = load(gemm, block, a.data + i * a.row_stride + k * a.column_stride, a.column_stride, n);
            for (int64_t j = 0; j < gemm->columns; j++)
                gemm->loops->dot(sums + j * size, row, packed + (j * gemm->depth + k) * size, n);
        }
        stki_cast_row(&gemm->store, c.data + i * c.row_stride, c.column_stride, sums, size, gemm->columns);
    }
}

/* a is contiguous along its columns: columns of a are summed, each scaled by an element of b. */
static void thin_by_columns(const stki_gemm *gemm, stki_matrix c, stki_matrix a, const char *packed)
{
    int64_t size = gemm->compute_size;
    _Alignas(ALIGNMENT) char block[THIN_BLOCK * MAX_SIZE], sums[THIN][THIN_BLOCK * MAX_SIZE];

    for (int64_t i = 0; i < gemm->rows; i += THIN_BLOCK) {
        int64_t n = smaller(gemm->rows - i, THIN_BLOCK);
        memset(sums, 0, sizeof sums);
        for (int64_t k = 0; k < gemm->depth; k++) {
            const void *column = load(gemm, block, a.data + i * a.row_stride + k * a.column_stride, a.row_stride, n);
            for (int64_t j = 0; j < gemm->columns; j++)
                gemm->loops->scale_add(sums[j], column, packed + (j * gemm->depth + k) * size, n);
        }
        for (int64_t j = 0; j < gemm->columns; j++)
            stki_cast_row(&gemm->store, c.data + i * c.row_stride + j * c.column_stride, c.row_stride, sums[j], size,
                          n);
    }
}

static void run_thin(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b)
{
    char *packed = gemm->memory;
    bool along_k = llabs(a.column_stride) <= llabs(a.row_stride);

    for (int64_t j = 0; j < gemm->columns; j++)
        stki_cast_row(&gemm->load, packed + j * gemm->depth * gemm->compute_size, gemm->compute_size,
                      b.data + j * b.column_stride, b.row_stride, gemm->depth);
    (along_k ? thin_by_rows : thin_by_columns)(gemm, c, a, packed);
}

/* ---- blocked ---- */

/* Packs `lines` lines (rows of a, or columns of b) of `depth` elements into panels of `width` lines, ordered by k. An
 * incomplete last panel is padded with zeros. */
static void pack(const stki_gemm *gemm, char *panel, int width, const char *x, int64_t lines, int64_t line_stride,
                 int64_t depth, int64_t stride)
{
    int64_t size = gemm->compute_size;

    for (; lines > 0; lines -= width, x += width * line_stride, panel += depth * width * size) {
        int64_t n = smaller(lines, width);
        if (n < width)
            memset(panel, 0, (size_t)(depth * width * size));
        if (llabs(line_stride) < llabs(stride))
            for (int64_t k = 0; k < depth; k++)
                stki_cast_row(&gemm->load, panel + k * width * size, size, x + k * stride, line_stride, n);
        else
            for (int64_t i = 0; i < n; i++)
                stki_cast_row(&gemm->load, panel + i * size, width * size, x + i * line_stride, stride, depth);
    }
}

static void run_tiles(const stki_gemm *gemm, char *sums, const char *a, const char *b, int64_t rows, int64_t columns,
                      int64_t depth)
{
    int tile_rows = gemm->loops->tile_rows, tile_columns = gemm->loops->tile_columns;
    int64_t size = gemm->compute_size;

    for (int64_t j = 0; j < columns; j += tile_columns)
        for (int64_t i = 0; i < rows; i += tile_rows)
            gemm->loops->tile(sums + (i * gemm->block_columns + j) * size, gemm->block_columns, a + i * depth * size,
                              b + j * depth * size, depth);
}

static void store_block(const stki_gemm *gemm, stki_matrix c, const char *sums, int64_t rows, int64_t columns)
{
    int64_t size = gemm->compute_size, sums_stride = gemm->block_columns * size;

    if (llabs(c.column_stride) <= llabs(c.row_stride))
        for (int64_t i = 0; i < rows; i++)
            stki_cast_row(&gemm->store, c.data + i * c.row_stride, c.column_stride, sums + i * sums_stride, size,
                          columns);
    else
        for (int64_t j = 0; j < columns; j++)
            stki_cast_row(&gemm->store, c.data + j * c.column_stride, c.row_stride, sums + j * size, sums_stride, rows);
}

/* Computes rows [i, i + rows) and columns [j, j + columns) of c. */
static void run_block(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b, int64_t i, int64_t rows,
                      int64_t j, int64_t columns)
{
    int64_t size = gemm->compute_size;
    char *packed_a = gemm->memory, *packed_b = packed_a + gemm->block_rows * gemm->block_depth * size,
         *sums = packed_b + gemm->block_depth * gemm->block_columns * size;

    memset(sums, 0, (size_t)(gemm->block_rows * gemm->block_columns * size));
    for (int64_t k = 0; k < gemm->depth; k += gemm->block_depth) {
        int64_t depth = smaller(gemm->depth - k, gemm->block_depth);
        pack(gemm, packed_a, gemm->loops->tile_rows, a.data + i * a.row_stride + k * a.column_stride, rows,
             a.row_stride, depth, a.column_stride);
        pack(gemm, packed_b, gemm->loops->tile_columns, b.data + k * b.row_stride + j * b.column_stride, columns,
             b.column_stride, depth, b.row_stride);
        run_tiles(gemm, sums, packed_a, packed_b, rows, columns, depth);
    }
    c.data += i * c.row_stride + j * c.column_stride;
    store_block(gemm, c, sums, rows, columns);
}

static stki_matrix transposed(stki_matrix matrix)
{
    return (stki_matrix){matrix.data, matrix.column_stride, matrix.row_stride};
}

void stki_gemm_run(const stki_gemm *gemm, stki_matrix c, stki_matrix a, stki_matrix b)
{
    if (gemm->columns <= THIN) {
        run_thin(gemm, c, a, b);
        return;
    }
    if (gemm->rows <= THIN) {
        stki_gemm flipped = *gemm;
        flipped.rows = gemm->columns;
        flipped.columns = gemm->rows;
        run_thin(&flipped, transposed(c), transposed(b), transposed(a));
        return;
    }
    if (!gemm->no_cblas && gemm->rows * gemm->columns >= least_for_cblas / gemm->depth &&
        stki_cblas_gemm(gemm, c, a, b))
        return;
    for (int64_t j = 0; j < gemm->columns; j += gemm->block_columns)
        for (int64_t i = 0; i < gemm->rows; i += gemm->block_rows)
            run_block(gemm, c, a, b, i, smaller(gemm->rows - i, gemm->block_rows), j,
                      smaller(gemm->columns - j, gemm->block_columns));
}
