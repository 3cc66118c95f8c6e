/* kernel_nest.h: shared by the kernel planners: nests of axes from planned strides, and launch sizes. */
#ifndef STKI_KERNEL_NEST_H
#define STKI_KERNEL_NEST_H

#include "kernel_launch.h"
#include "kernel_plan.h"
#include "strided.h"

/* Kernel indices have 31 bits unless a nest is wide. */
#define STKI_NARROW (INT64_C(1) << 31)

/* For indices below 2^31. */
stki_divisor stki_divisor_of(int64_t n);
/* Sets the nest to the axes of the plan without the last `inner` axes. It has at least one axis, of length 1 if none is
 * left. */
void stki_nest_of(stki_nest *nest, const stki_strided *plan, int inner, int operands);
/* Number of elements in the axes without the last `inner` axes. */
int64_t stki_nest_count(const stki_strided *plan, int inner);

/* Whether the base and the strides of an operand (except those of the last `inner` axes) are multiples of `alignment`.
 */
bool stki_nest_aligned(const stki_strided *plan, int inner, int operand, const void *base, int64_t alignment);

/* Sets the number of blocks. STK_E_UNSUPPORTED: a launch cannot have that many. */
stk_status stki_launch_blocks(stki_launch *launch, uint64_t threads, uint64_t a_thread, stk_error *err);

/* Plans a map: `plan` has the operands dst, src, channel; `at` has their addresses, the last one as a number. */
typedef struct stki_map_plan {
    enum stki_map_kind kind;
    stk_dtype dst_dtype, src_dtype;
    bool swapped;
    uint8_t *dst;
    const uint8_t *src;
} stki_map_plan;

/* Fills in the rest of a launch whose table and levels, if the kind needs them, have already been set. */
stk_status stki_plan_map(const stki_map_plan *map, stki_strided *plan, stki_launch *out, stk_error *err);

/* ---- kernels for common cases (kernel_plan_fast.c) ----
 *
 * They return false for cases that they do not handle, for which a general kernel is used. */

/* Plans tiles if the source is contiguous along a different axis than the destination; moves that axis before the last
 * one. */
bool stki_plan_tiles(stki_strided *plan, stki_launch *out);
/* Plans a conversion with arithmetic that is contiguous on both sides. Sets everything except the table and the levels.
 * `channels`: number of coefficient pairs. */
bool stki_plan_runs(const stki_map_plan *map, const stki_strided *plan, int64_t channels, stki_launch *out);
/* Plans the conversion of interleaved bytes to planes. */
bool stki_plan_pixels(const stki_map_plan *map, const stki_convert *convert, const stki_strided *plan,
                      stki_levels levels, stki_launch *out);
/* Whether all operands have the same floating-point dtype and are contiguous and aligned to 16 bytes, or scalars. */
bool stki_plan_is_binary_runs(const stki_elementwise_job *job, const stki_strided *plan);

#endif
