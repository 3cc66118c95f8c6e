/* stats_options.h: the section `stats` of a job. */
#ifndef STKI_STATS_OPTIONS_H
#define STKI_STATS_OPTIONS_H

#include "calibrate.h"
#include "option.h"
#include "sink.h"
#include "stats_tally.h"

enum stki_stats_per { STKI_PER_AUTO, STKI_PER_TENSOR, STKI_PER_CHANNEL };

/* `stats.fields.NAME`, and the corresponding keys of `quantize: {calibrate: …}`. */
typedef struct stki_stats_opts {
    int per;
    int64_t histogram; /* bins; 0: none, -1: default of the dtype */
    bool classes;
    const stki_node *calibrate;
    double percentile;
    int dtype, symmetric;
    unsigned methods; /* bit m: enum stki_calibration m is requested */
} stki_stats_opts;

/* `stats` */
typedef struct stki_stats_section {
    const char *path;
    const stki_node *fields;
} stki_stats_section;

extern const stki_option_table stki_stats_table, stki_stats_field_table;

/* `map` NULL: the defaults. */
stk_status stki_stats_opts_read(const stki_node *map, stki_stats_opts *out, stk_error *err);
stk_status stki_stats_section_read(const stki_node *stats, stki_stats_section *out, stk_error *err);
/* Determines what is counted for `field`. `map`: node of its options, for messages; may be NULL. */
stk_status stki_stats_form(const stki_stats_opts *opts, const stki_sink_field *field, const stki_node *map,
                           stki_tally_form *out, stk_error *err);
/* Returns whether exactly one calibration is requested. */
bool stki_stats_only_method(const stki_stats_opts *opts);
/* Returns whether channels, if any, are calibrated separately. For asymmetric schemes only on request, because loaders
 * accept a single zero point. */
bool stki_stats_calibrates_channels(const stki_stats_opts *opts);
stk_qdtype stki_stats_qdtype(const stki_stats_opts *opts);
stk_qscheme stki_stats_scheme(const stki_stats_opts *opts);

/* stats_report.c: creates the field's part of NAME.stats.json, as a new JSON value. */
stk_status stki_stats_report(const stki_tally *tally, const stki_tally_form *form, const stki_stats_opts *opts,
                             json_t **out, stk_error *err);
/* Returns the content of NAME.stats.json with the reports by field (takes ownership), as a new JSON value. */
json_t *stki_stats_document(int64_t rows, json_t *fields);

#endif
