/* kernel_source.h: the language of the device kernels: the common subset of C and nvcc's C++. A kernel is a sequence of
 * phases. A phase is a function of (the kernel's arguments, block, thread, the block's shared memory) and contains
 * everything except the launch: index arithmetic, loads, element functions, stores. kernels_*.cu call them from a
 * __global__ function with barriers between phases; kernel_twin.c runs each phase for all threads of a block, block
 * after block. Data that is needed in a later phase is in shared memory.
 *
 * No `restrict`, designated initializers or compound literals, because the code is also compiled as C++. */
#ifndef STKI_KERNEL_SOURCE_H
#define STKI_KERNEL_SOURCE_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define STKI_KERNEL_FN static __device__ __forceinline__
#define STKI_UNROLL _Pragma("unroll")
#define STKI_ROLL _Pragma("unroll 1")
#else
#include <assert.h>
#include <math.h>
#define STKI_KERNEL_FN static inline
#define STKI_UNROLL
#define STKI_ROLL
#endif

enum { STKI_BLOCK_THREADS = 256 };

/* The number of a thread's block, and of the thread in the block. */
typedef struct stki_spot {
    uint32_t block, thread;
} stki_spot;

/* ---- memory ---- */

/* 16 bytes that are loaded or stored at once. */
#ifdef __cplusplus
#define STKI_ALIGNAS alignas
#else
#define STKI_ALIGNAS _Alignas
#endif
typedef struct stki_words {
    STKI_ALIGNAS(16) uint32_t w[4];
} stki_words;

/* A GPU traps on an unaligned access. On the CPU, this assertion replaces the trap. */
#ifdef __CUDACC__
#define STKI_CHECK_ALIGNED(address, size) ((void)0)
#else
#define STKI_CHECK_ALIGNED(address, size) assert((uintptr_t)(address) % (size) == 0)
#endif

#ifdef __CUDACC__
#define STKI_ACCESS(suffix, type)                                    \
    STKI_KERNEL_FN type stki_load_##suffix(const uint8_t *from)      \
    {                                                                \
        return *reinterpret_cast<const type *>(from);                \
    }                                                                \
    STKI_KERNEL_FN void stki_store_##suffix(uint8_t *to, type value) \
    {                                                                \
        *reinterpret_cast<type *>(to) = value;                       \
    }
#else
#define STKI_ACCESS(suffix, type)                                    \
    STKI_KERNEL_FN type stki_load_##suffix(const uint8_t *from)      \
    {                                                                \
        type value;                                                  \
        STKI_CHECK_ALIGNED(from, sizeof value);                      \
        memcpy(&value, from, sizeof value);                          \
        return value;                                                \
    }                                                                \
    STKI_KERNEL_FN void stki_store_##suffix(uint8_t *to, type value) \
    {                                                                \
        STKI_CHECK_ALIGNED(to, sizeof value);                        \
        memcpy(to, &value, sizeof value);                            \
    }
#endif
STKI_ACCESS(8, uint8_t)
STKI_ACCESS(16, uint16_t)
STKI_ACCESS(32, uint32_t)
STKI_ACCESS(64, uint64_t)
STKI_ACCESS(words, stki_words)

/* Loads an element of 1, 2, 4 or 8 bytes, aligned or not: strided views of structs and files may have any address. */
STKI_KERNEL_FN uint64_t stki_load_bits(const uint8_t *from, int size)
{
    uint64_t bits = 0;

    if ((uintptr_t)from % (unsigned)size == 0) {
        switch (size) {
        case 1:
            return stki_load_8(from);
        case 2:
            return stki_load_16(from);
        case 4:
            return stki_load_32(from);
        default:
            return stki_load_64(from);
        }
    }
    STKI_ROLL
    for (int i = 0; i < size; i++)
        bits |= (uint64_t)from[i] << 8 * i;
    return bits;
}

STKI_KERNEL_FN void stki_store_bits(uint8_t *to, uint64_t bits, int size)
{
    if ((uintptr_t)to % (unsigned)size == 0) {
        switch (size) {
        case 1:
            stki_store_8(to, (uint8_t)bits);
            return;
        case 2:
            stki_store_16(to, (uint16_t)bits);
            return;
        case 4:
            stki_store_32(to, (uint32_t)bits);
            return;
        default:
            stki_store_64(to, bits);
            return;
        }
    }
    STKI_ROLL
    for (int i = 0; i < size; i++)
        to[i] = (uint8_t)(bits >> 8 * i);
}

/* ---- division by an invariant divisor ---- */

/* Granlund and Montgomery's method: for x < 2^31 the quotient is ((x * multiplier >> 32) + x) >> shift. */
typedef struct stki_divisor {
    uint32_t multiplier, shift;
} stki_divisor;

STKI_KERNEL_FN uint32_t stki_quotient(stki_divisor by, uint32_t x)
{
    return ((uint32_t)((uint64_t)x * by.multiplier >> 32) + x) >> by.shift;
}

/* ---- axes ---- */

enum { STKI_KERNEL_AXES = 33, STKI_KERNEL_SIDES = 3 };

/* Axes with the strides of up to three operands, innermost first. The length of the last axis is not used: its index is
 * the remaining quotient. */
typedef struct stki_axis_of {
    int64_t n;
    stki_divisor by;
    int64_t stride[STKI_KERNEL_SIDES];
} stki_axis_of;

typedef struct stki_nest {
    int32_t count; /* at least 1 */
    int32_t wide;  /* indices may exceed 31 bits, which requires slow divisions */
    stki_axis_of axes[STKI_KERNEL_AXES];
} stki_nest;

typedef struct stki_offsets {
    int64_t side[STKI_KERNEL_SIDES];
} stki_offsets;

/* The offsets of element `index` of the nest, without its `first` innermost axes. */
STKI_KERNEL_FN stki_offsets stki_nest_at(const stki_nest *nest, int first, uint64_t index, int sides)
{
    stki_offsets at;

    for (int k = 0; k < sides; k++)
        at.side[k] = 0;
    if (!nest->wide) {
        uint32_t rest = (uint32_t)index;
        STKI_ROLL
        for (int i = first; i < nest->count; i++) {
            const stki_axis_of *axis = &nest->axes[i];
            uint32_t quotient = i + 1 < nest->count ? stki_quotient(axis->by, rest) : 0;
            uint32_t here = rest - quotient * (uint32_t)axis->n;
            for (int k = 0; k < sides; k++)
                at.side[k] += (int64_t)here * axis->stride[k];
            rest = quotient;
        }
        return at;
    }
    STKI_ROLL
    for (int i = first; i < nest->count; i++) {
        const stki_axis_of *axis = &nest->axes[i];
        uint64_t quotient = i + 1 < nest->count ? index / (uint64_t)axis->n : 0;
        int64_t here = (int64_t)(index - quotient * (uint64_t)axis->n);
        for (int k = 0; k < sides; k++)
            at.side[k] += here * axis->stride[k];
        index = quotient;
    }
    return at;
}

#endif
