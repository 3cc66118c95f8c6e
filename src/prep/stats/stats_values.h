/* stats_values.h: counts of distinct integers, for classes of labels: a growing hash table with open addressing. */
#ifndef STKI_STATS_VALUES_H
#define STKI_STATS_VALUES_H

#include <stdint.h>
#include <stoker/status.h>

enum { STKI_VALUES_MOST = 1 << 15 };

typedef struct stki_value_count {
    int64_t value, count; /* count 0: free slot */
} stki_value_count;

typedef struct stki_values {
    stki_value_count *place;
    int64_t places, used; /* places: a power of two, or 0 */
} stki_values;

void stki_values_fini(stki_values *values);
/* STK_E_LIMIT: more than STKI_VALUES_MOST distinct values. */
stk_status stki_values_add(stki_values *values, int64_t value, int64_t count, stk_error *err);
stk_status stki_values_merge(stki_values *into, const stki_values *from, stk_error *err);
/* Lists `used` entries in ascending order; free with stki_free. */
stk_status stki_values_list(const stki_values *values, stki_value_count **out, stk_error *err);

#endif
