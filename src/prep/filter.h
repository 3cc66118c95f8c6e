/* filter.h: which samples a job uses, by what their labels are and by their sizes: `prep.filter`. Worked out once, when
 * the data set is open and before its order is made; split and order see what is left. Memory: 8 bytes a sample that
 * stays, one byte each meanwhile.
 *
 *     filter: {label: {field: label, keep: [n01440764, 7]}, size: {field: image, min_height: 64, max_bytes: 1MiB}}
 *
 * `label` and `size` are a rule or a list of rules; a sample stays if every rule lets it. Sizes come from headers. A
 * sample of which a rule cannot tell (it cannot be read) stays: it meets `on_error` in its place in the job.
 */
#ifndef STKI_FILTER_H
#define STKI_FILTER_H

#include "core.h"

enum { STKI_FILTER_RULES = 16 };

typedef struct stki_filter_rule {
    char name[80];     /* "label of field label", "size of field image" */
    int64_t dropped;   /* samples that this rule sent away; none is counted twice: the first rule in order counts */
    int64_t not_known; /* that it could not tell of, and let stay */
} stki_filter_rule;

typedef struct stki_filter_counts {
    int64_t before, after; /* samples */
    int rule_count;
    stki_filter_rule rules[STKI_FILTER_RULES];
} stki_filter_counts;

/* The rules alone, without data: STK_E_CONFIG. NULL or nothing: no filter. */
stk_status stki_filter_check(const stki_node *filter, stk_error *err);
/* Of an open data set: narrows config->index_list of the core (NULL: all samples) to what stays, in its order.
 * STK_E_CONFIG: a field or class that there is not. STK_E_EMPTY: nothing stays. STK_E_CANCELLED. */
stk_status stki_filter_apply(const stki_node *filter, stki_core *core, const _Atomic bool *cancelled,
                             stki_filter_counts *out, stk_error *err);
/* "label of field label: 12 of 100 samples", one a rule: for notes. Returns the buffer. */
const char *stki_filter_text(const stki_filter_rule *rule, int64_t before, char *buffer, int size);
/* For the manifest; new JSON. NULL: no memory. */
json_t *stki_filter_json(const stki_filter_counts *counts);

extern const stki_option_table stki_filter_table; /* of prep.filter */

#endif
