/* floor_division.h: floor division of floats, shared by CPU and GPU code. The quotient is computed from p minus its
 * remainder, which is exact except for one rounding, so it is within half a unit of the intended integer. Division by 0
 * gives the result of plain division. Follows Python, NumPy and torch. */
#ifndef STKI_FLOOR_DIVISION_H
#define STKI_FLOOR_DIVISION_H

#define STKI_FLOOR_DIVISION(declare, name, real, fmod_fn, floor_fn, copysign_fn) \
    declare real name(real p, real q)                                            \
    {                                                                            \
        real rest, quotient, floored;                                            \
        if (q == 0)                                                              \
            return p / q;                                                        \
        rest = fmod_fn(p, q);                                                    \
        quotient = (p - rest) / q;                                               \
        if (rest != 0 && (q < 0) != (rest < 0))                                  \
            quotient -= 1;                                                       \
        if (quotient == 0)                                                       \
            return copysign_fn((real)0, p / q);                                  \
        floored = floor_fn(quotient);                                            \
        return quotient - floored > (real)0.5 ? floored + 1 : floored;           \
    }

#endif
