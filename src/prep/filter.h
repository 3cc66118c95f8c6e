/* filter.h: selects the samples of a job by label and size: `prep.filter`. Evaluated once, after the data set is opened
 * and before its order is computed; split and order only use the remaining samples. Memory: 8 bytes per remaining
 * sample, and temporarily one byte per sample.
 *
 *     filter: {label: {field: label, keep: [n01440764, 7]}, size: {field: image, min_height: 64, max_bytes: 1MiB}}
 *
 * `label` and `size` are a rule or a list of rules; a sample is kept if all rules accept it. Sizes come from headers.
 * An unreadable sample is kept and handled by `on_error` at its position in the job.
 */
#ifndef STKI_FILTER_H
#define STKI_FILTER_H

#include "core.h"

enum { STKI_FILTER_RULES = 16 };

typedef struct stki_filter_rule {
    char name[80];     /* "label of field label", "size of field image" */
    int64_t dropped;   /* samples removed by this rule; each is counted only for the first rule that removes it */
    int64_t not_known; /* unreadable samples, which are kept */
} stki_filter_rule;

typedef struct stki_filter_counts {
    int64_t before, after; /* samples */
    int rule_count;
    stki_filter_rule rules[STKI_FILTER_RULES];
} stki_filter_counts;

/* Checks the rules without data: STK_E_CONFIG. NULL or empty: no filter. */
stk_status stki_filter_check(const stki_node *filter, stk_error *err);
/* Restricts config->index_list of the core (NULL: all samples) to the kept samples, without changing their order.
 * STK_E_CONFIG: an unknown field or class. STK_E_EMPTY: no sample is kept. STK_E_CANCELLED. */
stk_status stki_filter_apply(const stki_node *filter, stki_core *core, const _Atomic bool *cancelled,
                             stki_filter_counts *out, stk_error *err);
/* Writes text such as "label of field label: 12 of 100 samples", for notes. Returns the buffer. */
const char *stki_filter_text(const stki_filter_rule *rule, int64_t before, char *buffer, int size);
/* Describes the filter for the manifest, as a new JSON value. NULL: out of memory. */
json_t *stki_filter_json(const stki_filter_counts *counts);

extern const stki_option_table stki_filter_table; /* of prep.filter */

#endif
