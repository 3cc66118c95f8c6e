/* stays.h: counts rows of a job that were kept unchanged instead of encoded: JSON {field: {reason: count}}, stored with
 * each piece, so that it is complete after interruptions and for any number of tasks. */
#ifndef STKI_STAYS_H
#define STKI_STAYS_H

#include "sink.h"
#include <jansson.h>

/* Counts the unchanged rows among `values`, [rows][field_count]. */
stk_status stki_stays_count(json_t *stays, const stki_sink_field *fields, int field_count,
                            const stki_sink_value *values, int64_t rows, stk_error *err);
/* Adds all of `more` (may be NULL). */
stk_status stki_stays_merge(json_t *stays, const json_t *more, stk_error *err);
/* Lists the reasons of a field, for notes: "3 arithmetic coding, 1 PNG". Returns the buffer. *count: total. */
const char *stki_stays_text(const json_t *of_field, int64_t *count, char *text, size_t size);

#endif
