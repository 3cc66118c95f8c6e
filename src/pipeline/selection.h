/* selection.h: which samples of a data set take part, and with which weights: what the config says of it, made into
 * lists for the order. */
#ifndef STKI_SELECTION_H
#define STKI_SELECTION_H

#include "config.h"
#include "dataset_internal.h"

/* What a split divides; by place: runs of numbers, `step` samples from one number to the next, each standing for `span`
 * neighboring samples. */
typedef struct stki_split_groups {
    int64_t *first; /* count + 1 numbers */
    int64_t count, step, span;
    const int64_t *numbers; /* what is divided stands for these numbers of the data set; NULL: for its own */
    bool of_indices;        /* the samples of the list alone are divided; else all, and the list then chooses */
} stki_split_groups;

/* The samples of [first, first + count) of a data set that belong to the part, by their number from `first` on: all in
 * rising order, or those of `indices` (NULL: none given) in its order. stki_free(*out). STK_E_RANGE: an index outside.
 *
 *     exact   sample i is val where the keyed bijection of the split's seed sends i below round(fraction * count);
 *             with of_indices, i is its place among the samples that are divided, and count their number
 *     hash    sample i is val where XXH3-64 with the split's seed, of the 8 bytes of its key, lies below
 *             fraction * 2^64; the key being i, or the XXH3-64 of a field's values or of its file's name
 *     contiguous  of those that are divided, the last round(fraction * n) numbers of each group of n are val; those
 * that begin `gap` samples or fewer before them belong to neither part
 */
stk_status stki_split_select(const stki_dataset *dataset, int64_t first, int64_t count, const stki_split_config *split,
                             const stki_split_groups *groups, const int64_t *indices, int64_t index_count,
                             int64_t **out, int64_t *out_count, stk_error *err);
/* One number a sample, from a list, a file or a field, as the config says. stki_free(*out). STK_E_MISMATCH: another
 * number of them. */
stk_status stki_weights_read(const stki_dataset *dataset, const stki_loader_config *config, double **out,
                             stk_error *err);
/* The value `name` of option `key` is no field's. `others`: what else it might be, "none or ". */
stk_status stki_no_such_field(const stki_dataset *dataset, const char *key, const char *name, const char *others,
                              stk_error *err);
/* NULL: there is none of that name. */
const stki_field *stki_dataset_field(const stki_dataset *dataset, const char *name);

#endif
