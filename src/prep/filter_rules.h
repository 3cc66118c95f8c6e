/* filter_rules.h: one rule of a filter, as it is written and as it is asked; filter.c goes through the samples. */
#ifndef STKI_FILTER_RULES_H
#define STKI_FILTER_RULES_H

#include "filter.h"

/* `filter.label` */
typedef struct stki_label_rule {
    const char *field;
    const stki_node *keep, *drop; /* one of the two */
    /* Of an open data set. */
    int64_t *numbers; /* sorted */
    int64_t number_count;
    bool texts; /* labels are texts: those of the list are compared with */
} stki_label_rule;

/* `filter.size` */
typedef struct stki_size_rule {
    const char *field;
    int64_t min_height, max_height, min_width, max_width, min_bytes, max_bytes, min_length, max_length; /* -1: any */
} stki_size_rule;

typedef struct stki_filter_step {
    const stki_node *node;
    bool is_label;
    stki_label_rule label;
    stki_size_rule size;
    const stki_field *source; /* of an open data set */
    bool from_bytes;          /* images are files as they are: height and width stand in their headers */
    stki_filter_rule *counts;
} stki_filter_step;

/* filter_read.c: the steps of a filter, labels first. */
stk_status stki_filter_read(const stki_node *filter, stki_filter_step *steps, int *count, stk_error *err);

/* filter_ask.c: what a step needs of an open data set. */
stk_status stki_filter_step_open(stki_filter_step *step, const stki_core *core, stk_error *err);
void stki_filter_step_fini(stki_filter_step *step); /* fine on a zeroed one */
enum stki_filter_answer { STKI_FILTER_STAYS, STKI_FILTER_GOES, STKI_FILTER_UNKNOWN };
/* STK_E_MEMORY is the only failure. */
stk_status stki_filter_ask(const stki_filter_step *step, int64_t sample, stki_scratch *scratch,
                           enum stki_filter_answer *out, stk_error *err);

#endif
