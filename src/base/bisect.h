/* bisect.h: binary search for the range that contains a number. */
#ifndef STKI_BISECT_H
#define STKI_BISECT_H

#include <stdint.h>

/* The last index in [low, high] with first[index] <= value; `low` if there is none, so first[low] is never read.
 * `first` is sorted: range i begins at first[i]. */
static inline int64_t stki_bisect(const int64_t *first, int64_t low, int64_t high, int64_t value)
{
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;

        if (first[middle] <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

#endif
