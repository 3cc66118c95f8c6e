/* cast.h: converts rows of elements between any two dtypes, with any step in bytes and any alignment. A cast is chosen
 * once and then applied to any number of rows.
 *
 * Between different dtypes a row is converted in blocks, through one of four wide types that hold every source value
 * exactly (int64, uint64, float, double): one function per dtype loads, one per dtype and wide type stores. The number
 * of functions is therefore linear in the number of dtypes. docs/reference/tensor.md has the rules. */
#ifndef STKI_CAST_H
#define STKI_CAST_H

#include <stoker/tensor.h>

typedef struct stki_cast stki_cast;

/* Convert `count` elements to and from their wide type. */
typedef void (*stki_cast_load_fn)(void *wide, const char *src, int64_t src_step, int64_t count);
typedef void (*stki_cast_store_fn)(char *dst, int64_t dst_step, const void *wide, int64_t count);

struct stki_cast {
    void (*row)(const stki_cast *cast, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t count);
    stki_cast_load_fn load;
    stki_cast_store_fn store;
    int64_t src_unit;           /* bytes of a source element, or of one part of a complex source element */
    int64_t dst_imag, src_imag; /* offset of the imaginary part; 0: none */
    bool raw;                   /* copies the bits unchanged */
    bool swapped;               /* the source has the opposite byte order */
};

/* Whether a cast copies bits: same dtype except bool, or integers of the same size. */
bool stki_same_bits(stk_dtype dst, stk_dtype src);

/* Both dtypes must be valid. */
void stki_cast_init(stki_cast *cast, stk_dtype dst, stk_dtype src, bool src_swapped);

/* Steps are in bytes, of any sign; a source step may be 0. The rows may overlap only if both address
 * and step are equal. */
static inline void stki_cast_row(const stki_cast *cast, void *dst, int64_t dst_step, const void *src, int64_t src_step,
                                 int64_t count)
{
    cast->row(cast, dst, dst_step, src, src_step, count);
}

#endif
