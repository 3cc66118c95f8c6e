/* selection.h: converts the options that determine which samples of a data set are used, and with which weights, to
 * lists for the order. */
#ifndef STKI_SELECTION_H
#define STKI_SELECTION_H

#include "config.h"
#include "dataset_internal.h"

/* The items that a split divides: samples, windows or groups. For contiguous splits they are in runs of consecutive
 * numbers. Each item covers `span` samples and begins `step` samples after the previous one. */
typedef struct stki_split_groups {
    int64_t *first; /* first number of each run, then the end of the last run: count + 1 numbers */
    int64_t count, step, span;
    /* for each item, the number in the data set at which it begins; NULL: the item's own number */
    const int64_t *numbers;
    bool of_indices; /* divide only the samples in `indices`; false: divide all, then select those in `indices` */
} stki_split_groups;

/* Selects the samples of [first, first + count) of a data set that belong to the part, numbered from `first`: all in
 * ascending order, or those of `indices` (NULL: none given) in its order. The caller frees *out with stki_free.
 * STK_E_RANGE: an index is out of range.
 *
 *     exact   sample i is val if the keyed bijection of the split's seed maps i below round(fraction * count);
 *             with of_indices, i is its index among the divided samples, and count their number
 *     hash    sample i is val if the XXH3-64, with the split's seed, of the 8 bytes of its key is below
 *             fraction * 2^64; the key is i, or the XXH3-64 of a field's values or of its file's name
 *     contiguous  the last round(fraction * n) of the n divided numbers of each group are val; those that begin
 *                 `gap` samples or fewer before them belong to neither part */
stk_status stki_split_select(const stki_dataset *dataset, int64_t first, int64_t count, const stki_split_config *split,
                             const stki_split_groups *groups, const int64_t *indices, int64_t index_count,
                             int64_t **out, int64_t *out_count, stk_error *err);
/* Reads one weight per sample from a list, a file or a field, as configured. The caller frees *out with stki_free.
 * STK_E_MISMATCH: the number of weights is not the number of samples. */
stk_status stki_weights_read(const stki_dataset *dataset, const stki_loader_config *config, double **out,
                             stk_error *err);
/* Fails because the value of option `key`, `name`, is not a field. `others` lists other allowed values, such as "none
 * or ". */
stk_status stki_no_such_field(const stki_dataset *dataset, const char *key, const char *name, const char *others,
                              stk_error *err);
/* Returns NULL if no field has that name. */
const stki_field *stki_dataset_field(const stki_dataset *dataset, const char *name);

#endif
