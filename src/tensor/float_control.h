/* float_control.h: enables rounding to nearest even and subnormals for a section of code, regardless of the mode that
 * the program has set for the thread (a library built with -ffast-math turns subnormals off, and new threads inherit
 * that).
 *
 *     stki_float_control control = stki_float_enter();
 *     …
 *     stki_float_leave(control);
 */
#ifndef STKI_FLOAT_CONTROL_H
#define STKI_FLOAT_CONTROL_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

typedef unsigned stki_float_control;
enum { STKI_FLOAT_DEFAULT = 0x1f80, STKI_FLOAT_MODES = 0xffc0 }; /* the other bits are exception flags */

static inline stki_float_control stki_float_enter(void)
{
    stki_float_control control = _mm_getcsr();

    if ((control & STKI_FLOAT_MODES) != STKI_FLOAT_DEFAULT)
        _mm_setcsr(STKI_FLOAT_DEFAULT);
    return control;
}

static inline void stki_float_leave(stki_float_control control)
{
    if ((control & STKI_FLOAT_MODES) != STKI_FLOAT_DEFAULT)
        _mm_setcsr(control);
}
#else
typedef uint64_t stki_float_control;

static inline stki_float_control stki_float_enter(void)
{
    stki_float_control control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control) : : "memory");
    if (control != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)) : "memory");
    return control;
}

static inline void stki_float_leave(stki_float_control control)
{
    if (control != 0)
        __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
#endif

#endif
