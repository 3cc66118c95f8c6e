/* ops_unaligned.h: element types that may lie anywhere and alias anything, for loops over memory of which only the
 * dtype is known; and the promise that lets compilers use vectors in them. */
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

/* The output of the next loop is an input or apart from it: no element is read after another was written there. */
#if defined(__clang__)
#define STKI_NO_OVERLAP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define STKI_NO_OVERLAP _Pragma("GCC ivdep")
#else
#define STKI_NO_OVERLAP
#endif

#endif
