/* ops_unaligned.h: element types without alignment or aliasing restrictions, for loops over the memory of any tensor,
 * and the pragma that lets compilers vectorize those loops. */
#ifndef STKI_OPS_UNALIGNED_H
#define STKI_OPS_UNALIGNED_H

#include <stdint.h>

#define STKI_ANYWHERE __attribute__((aligned(1), may_alias))

typedef uint8_t stki_u8 STKI_ANYWHERE;
typedef int8_t stki_i8 STKI_ANYWHERE;
typedef uint16_t stki_u16 STKI_ANYWHERE;
typedef int16_t stki_i16 STKI_ANYWHERE;
typedef uint32_t stki_u32 STKI_ANYWHERE;
typedef int32_t stki_i32 STKI_ANYWHERE;
typedef uint64_t stki_u64 STKI_ANYWHERE;
typedef int64_t stki_i64 STKI_ANYWHERE;
typedef float stki_f32 STKI_ANYWHERE;
typedef double stki_f64 STKI_ANYWHERE;

/* Asserts that the output of the next loop is either an input or disjoint from it: no element is read after another has
 * been written to its place. */
#if defined(__clang__)
#define STKI_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define STKI_NO_OVERLAP _Pragma("GCC ivdep")
#else
#define STKI_NO_OVERLAP
#endif

#endif
