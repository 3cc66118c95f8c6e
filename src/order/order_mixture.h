/* order_mixture.h: an epoch over several data sets ("sources"), each with its share of the positions.
 *
 *     c_d      positions of source d in an epoch of length L: L * weight_d / sum of weights, rounded by the largest
 *              remainder method, so that the c_d add up to L (of equal remainders, that of the first source wins)
 *     q        = perm(p): the slot in [0, L) at position p; perm is the permutation of the epoch
 *     d, j     the source whose range [c_0 + … + c_(d-1), … + c_d) contains q, and the offset in it
 *     J        = epoch * c_d + j, counted over all epochs
 *     sample   = perm_d(pass J div n_d)(J mod n_d), where n_d is the number of samples of the source
 *
 * Counts are therefore exact in every epoch, and any position is evaluated in O(1). Each sample of a source occurs once
 * before any occurs twice, regardless of the length of the epochs. Without shuffling both permutations are identities,
 * so the sources follow one another. Weights are read as decimal numbers of 15 digits. Immutable after creation and
 * thread-safe. */
#ifndef STKI_ORDER_MIXTURE_H
#define STKI_ORDER_MIXTURE_H

#include "order.h"
#include <stdbool.h>

typedef struct stki_mixture stki_mixture;

/* STK_E_RANGE, STK_E_EMPTY and STK_E_LIMIT identify the source by its number or name. */
stk_status stki_mixture_create(const stki_order_source *sources, int count, enum stki_mixture_stop stop, int64_t length,
                               bool shuffled, uint64_t seed, stki_mixture **out, stk_error *err);
void stki_mixture_destroy(stki_mixture *mixture); /* NULL is allowed. */
int64_t stki_mixture_length(const stki_mixture *mixture);
int64_t stki_mixture_share(const stki_mixture *mixture, int source); /* c_d */
void stki_mixture_eval(const stki_mixture *mixture, int64_t epoch, int64_t first, int64_t n, stki_position *out);
/* Like stki_random_order_ahead. */
void stki_mixture_ahead(const stki_mixture *mixture, int64_t epoch, int64_t taken, int64_t n);

/* Divides `length` by the largest remainder method: counts[d] is the share proportional to weights[d]. The weights are
 * integers with a sum > 0. */
void stki_mixture_counts(const int64_t *weights, int count, int64_t length, int64_t *counts);

/* Whether an epoch can be evaluated without building a table first. */
bool stki_mixture_is_ready(const stki_mixture *mixture, int64_t epoch);

#endif
